/* SPDX-License-Identifier: Apache-2.0 */
/* The admin listener: its socket, who may come in, and how it changes while it serves. */
#include "control/admin.h"

#include "control/admin_internal.h"
#include "core/clock.h"
#include "core/log.h"
#include "net/listen.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

static void accept_all(struct admin *admin)
{
    for (;;) {
        int fd = accept4(admin->listener.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0 && (admin->n_conns < ADMIN_CONNECTIONS || admin_conn_close_idle(admin)))
            admin_conn_open(admin, fd);
        else if (fd >= 0)
            close(fd);
        else if (errno != EINTR && errno != ECONNABORTED)
            break;
    }
    if (errno != EAGAIN)
        loop_timer_set(admin->loop, &admin->retry, admin->loop->now_ns + NS_PER_S);
}

static void on_accept(struct loop *loop, struct loop_io *io, uint32_t events)
{
    accept_all(container_of(io, struct admin, listener));
}

static void on_retry(struct loop *loop, struct loop_timer *timer)
{
    struct admin *admin = container_of(timer, struct admin, retry);
    if (admin->listener.fd >= 0)
        accept_all(admin);
}

struct admin *admin_new(struct loop *loop, const struct control_view *view)
{
    struct admin *admin = calloc(1, sizeof(*admin));
    iso_assert(admin != NULL);
    *admin = (struct admin){.loop = loop, .view = view, .listener = {.fd = -1, .on_ready = on_accept}};
    buf_pool_init(&admin->bufs);
    admin->tls = tls_thread_new(loop, &admin->bufs);
    list_init(&admin->conns);
    loop_timer_init(&admin->retry, on_retry);
    return admin;
}

static void stop_listening(struct admin *admin)
{
    loop_timer_remove(admin->loop, &admin->retry);
    loop_disarm(admin->loop, &admin->listener);
    loop_close(admin->loop, &admin->listener);
    if (admin->configured)
        listen_remove_file(&admin->addr);
    free(admin->configured);
    admin->configured = NULL;
    admin->actual[0] = '\0';
}

void admin_free(struct admin **taken)
{
    struct admin *admin = *taken;
    *taken = NULL;
    if (!admin)
        return;
    admin_conn_close_all(admin);
    stop_listening(admin);
    auth_free(&admin->auth);
    if (admin->server)
        tls_server_unref(&admin->server);
    tls_thread_free(admin->tls);
    buf_pool_fini(&admin->bufs);
    free(admin);
}

static iso_err fail(struct iso_diag *diag, const struct config_endpoint *endpoint, int why)
{
    diag_add(diag, DIAG_ERROR, "", 0, 0, "/admin/listen", "cannot listen on %.*s: %s",
             SLICE_ARG(endpoint->text), strerror(why));
    return ISO_ERR_SYSTEM;
}

static const struct listen_options listening = {.backlog = ADMIN_CONNECTIONS};

/* The new address overlaps the one in use (0.0.0.0 and 127.0.0.1 with one port): the old one must go first,
 * and comes back when the new one fails. */
static int swap_overlapping(struct admin *admin, const struct net_addr *addr, int *fd)
{
    loop_close(admin->loop, &admin->listener);
    int why = listen_open(addr, &listening, fd);
    if (!why)
        return 0;
    int old = -1;
    if (listen_open(&admin->addr, &listening, &old) == 0) {
        admin->listener.fd = old;
        if (loop_arm_events(admin->loop, &admin->listener, EPOLLIN | EPOLLET))
            loop_close(admin->loop, &admin->listener);
    }
    if (admin->listener.fd < 0) {
        log_error("the admin listener %s is lost", admin->actual);
        stop_listening(admin);
    }
    return why;
}

static void print_actual(struct admin *admin, const struct config_endpoint *endpoint)
{
    struct slice text = endpoint->text;
    if (!endpoint->unix_path.ptr && endpoint->port == 0) {
        size_t colon = text.len;
        while (colon && text.ptr[colon - 1] != ':')
            colon--;
        snprintf(admin->actual, sizeof(admin->actual), "%.*s%u", (int)colon, text.ptr,
                 net_addr_port(&admin->addr));
    } else {
        snprintf(admin->actual, sizeof(admin->actual), "%.*s", SLICE_ARG(text));
    }
}

/* Opens the new address, if it is another one, and closes the old one. */
static iso_err move(struct admin *admin, const struct config_endpoint *endpoint, struct iso_diag *diag)
{
    struct net_addr addr;
    if (admin->configured && slice_eq(slice_str(admin->configured), endpoint->text))
        return ISO_OK;
    if (!endpoint->unix_path.ptr)
        net_addr_ip(&addr, &endpoint->ip, endpoint->port);
    else if (!net_addr_unix(&addr, endpoint->unix_path))
        return fail(diag, endpoint, ENAMETOOLONG);
    int fd = -1, why = listen_open(&addr, &listening, &fd);
    if (why == EADDRINUSE && admin->listener.fd >= 0 && net_addr_port(&addr) == net_addr_port(&admin->addr))
        why = swap_overlapping(admin, &addr, &fd);
    if (why)
        return fail(diag, endpoint, why);
    stop_listening(admin);
    admin->listener.fd = fd;
    if (loop_arm_events(admin->loop, &admin->listener, EPOLLIN | EPOLLET)) {
        why = errno;
        stop_listening(admin);
        return fail(diag, endpoint, why);
    }
    if (!endpoint->unix_path.ptr && endpoint->port == 0)
        net_addr_ip(&addr, &endpoint->ip, listen_port(fd));
    admin->addr = addr;
    admin->configured = strndup(endpoint->text.ptr, endpoint->text.len);
    iso_assert(admin->configured != NULL);
    print_actual(admin, endpoint);
    return ISO_OK;
}

static iso_err load_server(const struct config_admin *config, struct tls_server **out, struct iso_diag *diag)
{
    static const struct slice alpn = SLICE("http/1.1");
    const struct tls_cert_files files = {
        .name = "admin", .cert_file = config->tls.cert_file.ptr, .key_file = config->tls.key_file.ptr};
    struct tls_cert *cert = NULL;
    struct tls_fault fault;
    *out = NULL;
    if (!config->tls.set)
        return ISO_OK;
    iso_err err = tls_cert_load(&files, &cert, &fault);
    struct tls_server_options options = {
        .name = SLICE("admin"),
        .certs = &cert,
        .n_certs = 1,
        .alpn = &alpn,
        .n_alpn = 1,
        .min_version = CONFIG_TLS_1_2,
        .max_version = CONFIG_TLS_1_3,
        .policy = {.has_auth = config->tls.client_ca_file.ptr != NULL,
                   .auth = config->tls.client_ca_file.ptr ? TLS_AUTH_REQUIRED : TLS_AUTH_NONE,
                   .ca_file = config->tls.client_ca_file.ptr}};
    if (!err)
        err = tls_server_new(&options, out, &fault);
    tls_cert_free(cert);
    if (err) {
        char path[64];
        snprintf(path, sizeof(path), "/admin/tls/%s", fault.key);
        diag_add(diag, DIAG_ERROR, "", 0, 0, path, "%s", fault.text);
    }
    return err;
}

/* Everything that can fail comes first; nothing has changed when something does. */
iso_err admin_listen(struct admin *admin, const struct config_admin *config, struct iso_diag *diag)
{
    struct auth *auth = NULL;
    struct tls_server *server = NULL;
    if (!config->listen.text.ptr) {
        stop_listening(admin);
        return ISO_OK;
    }
    iso_err err = config->token_file.ptr ? auth_load(config->token_file.ptr, &auth, diag) : ISO_OK;
    if (!err)
        err = load_server(config, &server, diag);
    if (!err)
        err = move(admin, &config->listen, diag);
    if (err) {
        auth_free(&auth);
        if (server)
            tls_server_unref(&server);
        return err;
    }
    auth_free(&admin->auth);
    if (admin->server)
        tls_server_unref(&admin->server);
    admin->auth = auth;
    admin->server = server;
    return ISO_OK;
}

void admin_set_document(struct admin *admin, struct document *document)
{
    admin->document = document;
}

bool admin_is_tls(const struct admin *admin)
{
    return admin->server != NULL;
}

const char *admin_endpoint(const struct admin *admin)
{
    return admin->actual;
}
