/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/announce.h"

#include "proxy/exchange.h"

#include <errno.h>

/* Of the SSL TLV: the connection came over TLS; with a certificate; which was good. */
enum { SSL_CLIENT = 1, SSL_CERT = 2, SSL_NOT_VERIFIED = 1 };

struct writer {
    char *out;
    size_t at, cap;
};

static void add(struct writer *w, uint8_t type, struct slice value)
{
    w->at = proxyproto_add_tlv(w->out, w->at, w->cap, type, value);
}

/* What a proxy in front said goes on, but for what speaks of the header itself. */
static void add_told(struct writer *w, struct slice told)
{
    struct slice value;
    uint8_t type;
    while (proxyproto_next_tlv(&told, &type, &value))
        if (type != PROXYPROTO_CRC32C && type != PROXYPROTO_NOOP)
            add(w, type, value);
}

static void add_ssl(struct writer *w, const struct conn *conn)
{
    struct slice subject, sha256;
    bool has_cert = tls_peer_subject(conn, &subject, &sha256);
    char value[64] = {(char)(SSL_CLIENT | (has_cert ? SSL_CERT : 0)), 0, 0, 0,
                      (char)(has_cert ? 0 : SSL_NOT_VERIFIED)};
    size_t len =
        proxyproto_add_tlv(value, 5, sizeof(value), PROXYPROTO_SSL_VERSION, slice_str(tls_version(conn)));
    add(w, PROXYPROTO_SSL, slice_of(value, len));
}

/* What we know ourselves, where nobody spoke of it before. */
static void add_known(struct writer *w, const struct announce_facts *facts, struct slice told)
{
    struct slice alpn = facts->tls ? tls_alpn(facts->tls) : facts->alpn;
    if (alpn.len && !proxyproto_find_tlv(told, PROXYPROTO_ALPN).ptr)
        add(w, PROXYPROTO_ALPN, alpn);
    if (facts->server_name.len && !proxyproto_find_tlv(told, PROXYPROTO_AUTHORITY).ptr)
        add(w, PROXYPROTO_AUTHORITY, facts->server_name);
    if (facts->tls && !proxyproto_find_tlv(told, PROXYPROTO_SSL).ptr)
        add_ssl(w, facts->tls);
}

size_t announce_write(enum config_proxy_version version, const struct announce_facts *facts, char *out)
{
    char tlvs[PROXYPROTO_BYTES];
    struct writer w = {tlvs, 0, sizeof(tlvs)};
    const struct buf *proxied = facts->proxied;
    struct proxyproto told = {0};
    struct proxyproto header = {.version = version == CONFIG_PROXY_V1 ? 1 : 2,
                                .has_addresses = true,
                                .src = *facts->peer,
                                .src_port = facts->peer_port};
    if (proxied &&
        proxyproto_read(proxied->data + proxied->start, buf_len(proxied), &told) == PROXYPROTO_COMPLETE) {
        header.dst = told.dst;
        header.dst_port = told.dst_port;
    } else {
        struct net_addr local = {.len = sizeof(local.un)};
        if (getsockname(facts->fd, &local.sa, &local.len) == 0) {
            header.dst = net_addr_to_ip(&local);
            header.dst_port = net_addr_port(&local);
        }
    }
    if (header.version == 2) {
        add_told(&w, told.tlvs);
        add_known(&w, facts, told.tlvs);
        header.tlvs = slice_of(tlvs, w.at);
    }
    return proxyproto_write(&header, out, PROXYPROTO_WRITE_BYTES);
}

bool announce_client(struct exchange *x, struct upstream *upstream)
{
    enum config_proxy_version version = x->group->config->proxy_protocol;
    if (iso_likely(version == CONFIG_PROXY_NONE))
        return true;
    struct client *client = x->client;
    const struct conn *conn = client->downstream->transport(client);
    char header[PROXYPROTO_WRITE_BYTES];
    const struct announce_facts facts = {.peer = &client->peer,
                                         .peer_port = client->peer_port,
                                         .fd = conn->io.fd,
                                         .proxied = client->proxied,
                                         .tls = x->listener->tls ? conn : NULL};
    errno = ENOMEM;
    return pool_preface(upstream, slice_of(header, announce_write(version, &facts, header)));
}

struct upstream *announce_take(struct exchange *x, struct backend *backend, bool must_be_fresh)
{
    struct pool *pool = &x->worker->pool;
    if (iso_likely(x->group->config->proxy_protocol == CONFIG_PROXY_NONE))
        return pool_take(pool, backend, x->group->tls, must_be_fresh);
    return pool_take_kept(pool, &x->client->own_upstream, backend, x->group->tls, must_be_fresh);
}

void announce_give(struct exchange *x)
{
    const struct config_target_group *config = x->group->config;
    struct pool *pool = &x->worker->pool;
    if (iso_likely(config->proxy_protocol == CONFIG_PROXY_NONE))
        pool_give(pool, &x->upstream, config->timeouts.idle_ms);
    else if (config->limits.connections) /* others wait for the place, and could not use the connection */
        pool_close(pool, &x->upstream);
    else
        pool_keep(pool, &x->upstream, config->timeouts.idle_ms, &x->client->own_upstream);
}
