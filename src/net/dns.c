/* SPDX-License-Identifier: Apache-2.0 */
/* c-ares opens and closes sockets as it likes, so they live in an epoll set of their own, which stands as one
 * descriptor in the loop. */
#define CARES_NO_DEPRECATED
#include "net/dns.h"

#include "core/clock.h"
#include "core/log.h"
#include "core/slice.h"
#include "net/dns_ttl.h"

#include <ares.h>
#include <arpa/inet.h>
#include <arpa/nameser.h>
#include <ctype.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

enum {
    TRY_MS = 1000, /* the first try of a server; c-ares doubles it for each further one */
    TRIES = 3,
    EVENTS = 16,
};

struct dns {
    struct loop *loop; /* borrows */
    ares_channel channel;
    struct loop_io sockets; /* the epoll set */
    struct loop_timer timer;
};

/* A question under way; its own allocation, freed when c-ares has called back, which it always does. */
struct question {
    enum dns_type type;
    dns_done_fn *fn;
    void *arg;
};

static iso_err library_init(void)
{
    static bool is_done; /* first called before there are threads */
    if (!is_done && ares_library_init(ARES_LIB_INIT_ALL) != ARES_SUCCESS)
        return ISO_ERR_SYSTEM;
    is_done = true;
    return ISO_OK;
}

static void set_timer(struct dns *dns)
{
    struct timeval left;
    if (ares_timeout(dns->channel, NULL, &left))
        loop_timer_set(dns->loop, &dns->timer,
                       clock_mono_ns() + (uint64_t)left.tv_sec * NS_PER_S + (uint64_t)left.tv_usec * 1000);
    else
        loop_timer_clear(&dns->timer);
}

/* What has come, and what is overdue. */
static void process(struct dns *dns, int timeout_ms)
{
    struct epoll_event events[EVENTS];
    int n = epoll_wait(dns->sockets.fd, events, EVENTS, timeout_ms);
    for (int i = 0; i < n; i++) {
        int fd = events[i].data.fd;
        bool is_readable = events[i].events & (EPOLLIN | EPOLLERR | EPOLLHUP);
        bool is_writable = events[i].events & EPOLLOUT;
        ares_process_fd(dns->channel, is_readable ? fd : ARES_SOCKET_BAD, is_writable ? fd : ARES_SOCKET_BAD);
    }
    ares_process_fd(dns->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
    set_timer(dns);
}

static void on_ready(struct loop *loop, struct loop_io *io, uint32_t events)
{
    process(container_of(io, struct dns, sockets), 0);
}

static void on_due(struct loop *loop, struct loop_timer *timer)
{
    process(container_of(timer, struct dns, timer), 0);
}

static void on_socket(void *arg, ares_socket_t fd, int readable, int writable)
{
    struct dns *dns = arg;
    struct epoll_event event = {.events = (readable ? EPOLLIN : 0u) | (writable ? EPOLLOUT : 0u),
                                .data.fd = fd};
    if (!readable && !writable)
        epoll_ctl(dns->sockets.fd, EPOLL_CTL_DEL, fd, NULL);
    else if (epoll_ctl(dns->sockets.fd, EPOLL_CTL_MOD, fd, &event) < 0 &&
             epoll_ctl(dns->sockets.fd, EPOLL_CTL_ADD, fd, &event) < 0)
        log_error("dns: cannot watch a socket: %m");
}

iso_err dns_open(struct loop *loop, const char *servers, struct dns **out)
{
    char from_servers[] = "b", from_hosts_file_first[] = "fb"; /* c-ares wants them writable, and copies */
    struct ares_options options = {.flags = ARES_FLAG_NOSEARCH,
                                   .timeout = TRY_MS,
                                   .tries = TRIES,
                                   .lookups = servers ? from_servers : from_hosts_file_first,
                                   .sock_state_cb = on_socket};
    if (library_init())
        return ISO_ERR_SYSTEM;
    struct dns *dns = calloc(1, sizeof(*dns));
    iso_assert(dns != NULL);
    options.sock_state_cb_data = dns;
    dns->loop = loop;
    dns->sockets = (struct loop_io){.fd = epoll_create1(EPOLL_CLOEXEC), .on_ready = on_ready};
    loop_timer_init(&dns->timer, on_due);
    int status = dns->sockets.fd < 0
                     ? ARES_ENOMEM
                     : ares_init_options(&dns->channel, &options,
                                         ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES |
                                             ARES_OPT_LOOKUPS | ARES_OPT_SOCK_STATE_CB);
    if (!status && servers)
        status = ares_set_servers_ports_csv(dns->channel, servers);
    if (status || loop_arm_events(loop, &dns->sockets, EPOLLIN)) {
        log_error("dns: cannot start: %s", ares_strerror(status));
        dns_close(&dns);
        return ISO_ERR_SYSTEM;
    }
    *out = dns;
    return ISO_OK;
}

void dns_close(struct dns **taken)
{
    struct dns *dns = *taken;
    if (!dns)
        return;
    if (dns->channel)
        ares_destroy(dns->channel);
    *taken = NULL;
    loop_timer_remove(dns->loop, &dns->timer);
    loop_close(dns->loop, &dns->sockets);
    free(dns);
}

static enum dns_status status_of(int status)
{
    switch (status) {
    case ARES_SUCCESS:
        return DNS_OK;
    case ARES_ENODATA:
    case ARES_ENOTFOUND:
        return DNS_EMPTY;
    default:
        return DNS_FAILED;
    }
}

static void finish(struct question *question, int status, struct dns_answer *answer)
{
    answer->status = answer->n || status != ARES_SUCCESS ? status_of(status) : DNS_EMPTY;
    answer->why =
        ares_strerror(answer->status == DNS_EMPTY && status == ARES_SUCCESS ? ARES_ENODATA : status);
    if (answer->status != DNS_OK)
        answer->n = 0;
    question->fn(question->arg, answer);
    free(question);
}

static bool read_address(const struct sockaddr *sa, struct ip_addr *out)
{
    *out = (struct ip_addr){0};
    if (sa->sa_family == AF_INET) {
        out->family = 4;
        memcpy(out->bytes, &((const struct sockaddr_in *)sa)->sin_addr, 4);
    } else if (sa->sa_family == AF_INET6) {
        out->family = 6;
        memcpy(out->bytes, &((const struct sockaddr_in6 *)sa)->sin6_addr, 16);
    }
    return out->family != 0;
}

static void keep_shortest(uint32_t *ttl_s, int record_ttl_s)
{
    uint32_t ttl = record_ttl_s > 0 ? (uint32_t)record_ttl_s : 0; /* RFC 2181 8: a negative one counts as 0 */
    if (ttl < *ttl_s)
        *ttl_s = ttl;
}

static void on_addresses(void *arg, int status, int timeouts, struct ares_addrinfo *info)
{
    struct question *question = arg;
    struct dns_record records[DNS_RECORDS_MAX];
    struct dns_answer answer = {.records = records, .ttl_s = UINT32_MAX};
    for (const struct ares_addrinfo_node *node = info ? info->nodes : NULL;
         node && answer.n < DNS_RECORDS_MAX; node = node->ai_next) {
        keep_shortest(&answer.ttl_s, node->ai_ttl);
        answer.n += read_address(node->ai_addr, &records[answer.n].ip);
    }
    for (const struct ares_addrinfo_cname *cname = info ? info->cnames : NULL; cname; cname = cname->next)
        keep_shortest(&answer.ttl_s, cname->ttl);
    if (info)
        ares_freeaddrinfo(info);
    finish(question, status, &answer);
}

/* False: "." (the service is decidedly not there, RFC 2782), or a name too long for us. */
static bool read_host(const char *text, char out[DNS_NAME_MAX + 1])
{
    size_t len = strlen(text);
    if (len && text[len - 1] == '.')
        len--;
    if (len == 0 || len > DNS_NAME_MAX)
        return false;
    for (size_t i = 0; i < len; i++)
        out[i] = (char)tolower((unsigned char)text[i]);
    out[len] = '\0';
    return true;
}

static void on_services(void *arg, int status, int timeouts, unsigned char *data, int len)
{
    struct question *question = arg;
    struct dns_record records[DNS_RECORDS_MAX];
    struct dns_answer answer = {.records = records};
    struct ares_srv_reply *first = NULL;
    if (status == ARES_SUCCESS)
        status = ares_parse_srv_reply(data, len, &first);
    if (status == ARES_SUCCESS)
        answer.ttl_s = dns_shortest_ttl(data, (size_t)len);
    for (const struct ares_srv_reply *srv = first; srv && answer.n < DNS_RECORDS_MAX; srv = srv->next) {
        struct dns_record *record = &records[answer.n];
        *record = (struct dns_record){.port = srv->port, .priority = srv->priority, .weight = srv->weight};
        answer.n += srv->port != 0 && read_host(srv->host, record->host);
    }
    if (first)
        ares_free_data(first);
    finish(question, status, &answer);
}

/* RFC 6761 6.3: this name is known, and nobody is asked. c-ares 1.18 would also leak its copy of it each
 * time. */
static bool is_localhost(const char *name)
{
    struct slice s = slice_str(name);
    return slice_eq(s, SLICE("localhost")) || slice_ends(s, SLICE(".localhost"));
}

static void answer_localhost(enum dns_type type, dns_done_fn *fn, void *arg)
{
    struct dns_record record = {.ip = {.family = type == DNS_A ? 4 : 6}};
    if (type == DNS_A)
        memcpy(record.ip.bytes, (const uint8_t[]){127, 0, 0, 1}, 4);
    else
        record.ip.bytes[15] = 1;
    fn(arg, &(struct dns_answer){.status = DNS_OK, .ttl_s = UINT32_MAX, .n = 1, .records = &record});
}

void dns_ask(struct dns *dns, enum dns_type type, const char *name, dns_done_fn *fn, void *arg)
{
    if (type != DNS_SRV && is_localhost(name)) {
        answer_localhost(type, fn, arg);
        return;
    }
    struct question *question = malloc(sizeof(*question));
    iso_assert(question != NULL);
    *question = (struct question){.type = type, .fn = fn, .arg = arg};
    if (type == DNS_SRV) {
        ares_query(dns->channel, name, ns_c_in, ns_t_srv, on_services, question);
    } else {
        const struct ares_addrinfo_hints hints = {.ai_flags = ARES_AI_NOSORT,
                                                  .ai_family = type == DNS_A ? AF_INET : AF_INET6,
                                                  .ai_socktype = SOCK_STREAM};
        ares_getaddrinfo(dns->channel, name, NULL, &hints, on_addresses, question);
    }
    set_timer(dns);
}

void dns_wait(struct dns *dns, uint32_t timeout_ms)
{
    struct timeval left;
    int ms = (int)timeout_ms;
    if (ares_timeout(dns->channel, NULL, &left) && left.tv_sec * 1000 + left.tv_usec / 1000 < ms)
        ms = (int)(left.tv_sec * 1000 + left.tv_usec / 1000) + 1;
    process(dns, ms);
}
