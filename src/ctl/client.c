/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/client.h"

#include "http1/parse.h"
#include "tls/blocking.h"

#include <errno.h>
#include <netdb.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum { HEAD_MAX = 64 << 10, READ_BYTES = 16 << 10 };

struct connection {
    int fd;
    struct tls_blocking *tls; /* NULL: plain */
    char host[256];           /* as the Host field has it */
};

static bool fail(char fault[CLIENT_FAULT_MAX], const char *fmt, ...) ISO_PRINTF(2, 3);

static bool fail(char fault[CLIENT_FAULT_MAX], const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(fault, CLIENT_FAULT_MAX, fmt, args);
    va_end(args);
    return false;
}

/* ---- connecting ---- */

static void set_timeouts(int fd)
{
    struct timeval limit = {.tv_sec = CLIENT_TIMEOUT_S};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

static bool open_unix(const char *path, struct connection *conn, char fault[CLIENT_FAULT_MAX])
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof(addr.sun_path))
        return fail(fault, "%s is too long for a unix socket", path);
    memcpy(addr.sun_path, path, strlen(path));
    conn->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    set_timeouts(conn->fd);
    snprintf(conn->host, sizeof(conn->host), "localhost");
    if (connect(conn->fd, (struct sockaddr *)&addr, sizeof(addr)) == 0)
        return true;
    return fail(fault, "cannot connect to %s: %s", path, strerror(errno));
}

static bool open_any(const char *host, const char *port, struct connection *conn,
                     char fault[CLIENT_FAULT_MAX])
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    int why = getaddrinfo(host, port, &hints, &found);
    if (why)
        return fail(fault, "%s: %s", host, gai_strerror(why));
    why = 0;
    for (const struct addrinfo *one = found; one; one = one->ai_next) {
        conn->fd = socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (conn->fd < 0) {
            why = errno;
            continue;
        }
        set_timeouts(conn->fd);
        if (connect(conn->fd, one->ai_addr, one->ai_addrlen) == 0)
            break;
        why = errno;
        close(conn->fd);
        conn->fd = -1;
    }
    freeaddrinfo(found);
    return conn->fd >= 0 || fail(fault, "cannot connect to %s port %s: %s", host, port, strerror(why));
}

/* "HOST:PORT" or "[ADDRESS]:PORT" into its two parts. */
static bool split(const char *text, char host[256], char port[8], char fault[CLIENT_FAULT_MAX])
{
    const char *colon = strrchr(text, ':');
    size_t len = colon ? (size_t)(colon - text) : 0;
    const char *end = colon ? colon + 1 + strcspn(colon + 1, "/") : NULL;
    if (!colon || len == 0 || len >= 256 || end == colon + 1 || end - colon - 1 > 5)
        return fail(fault, "the address \"%s\" is expected as HOST:PORT", text);
    bool bracketed = text[0] == '[' && text[len - 1] == ']';
    snprintf(host, 256, "%.*s", (int)(bracketed ? len - 2 : len), text + bracketed);
    snprintf(port, 8, "%.*s", (int)(end - colon - 1), colon + 1);
    return true;
}

static bool open_connection(const struct client *client, struct connection *conn,
                            char fault[CLIENT_FAULT_MAX])
{
    char host[256], port[8], why[TLS_BLOCKING_FAULT_MAX];
    const char *address = client->address;
    *conn = (struct connection){.fd = -1};
    if (strncmp(address, "unix:", 5) == 0)
        return open_unix(address + 5, conn, fault);
    bool is_tls = strncmp(address, "https://", 8) == 0;
    address += is_tls ? 8 : strncmp(address, "http://", 7) == 0 ? 7 : 0;
    if (!split(address, host, port, fault) || !open_any(host, port, conn, fault))
        return false;
    snprintf(conn->host, sizeof(conn->host), strchr(host, ':') ? "[%.*s]:%s" : "%.*s:%s", 240, host, port);
    if (is_tls && tls_blocking_open(conn->fd, host, client->ca_file, &conn->tls, why))
        return fail(fault, "%s: %s", client->address, why);
    return true;
}

static void close_connection(struct connection *conn)
{
    tls_blocking_close(&conn->tls);
    if (conn->fd >= 0)
        close(conn->fd);
}

/* ---- one request ---- */

static bool send_all(struct connection *conn, struct slice data, char fault[CLIENT_FAULT_MAX])
{
    while (data.len) {
        ssize_t n = conn->tls ? tls_blocking_write(conn->tls, data.ptr, data.len)
                              : send(conn->fd, data.ptr, data.len, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return fail(fault, "the connection broke while the request was sent: %s", strerror(errno));
        data = slice_of(data.ptr + n, data.len - (size_t)n);
    }
    return true;
}

static bool send_request(const struct client *client, struct connection *conn,
                         const struct client_request *request, char fault[CLIENT_FAULT_MAX])
{
    struct text head;
    text_init(&head);
    text_printf(&head, "%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n", request->method, request->path,
                conn->host);
    if (client->token)
        text_printf(&head, "Authorization: Bearer %s\r\n", client->token);
    if (request->if_match)
        text_printf(&head, "If-Match: %s\r\n", request->if_match);
    if (request->body.ptr)
        text_printf(&head, "Content-Type: %s\r\nContent-Length: %zu\r\n", request->content_type,
                    request->body.len);
    text_add(&head, SLICE("\r\n"));
    bool sent = send_all(conn, text_slice(&head), fault) && send_all(conn, request->body, fault);
    text_fini(&head);
    return sent;
}

/* Reads everything until the server closes; a timeout is a fault. */
static bool receive_all(struct connection *conn, struct text *in, char fault[CLIENT_FAULT_MAX])
{
    char data[READ_BYTES];
    for (;;) {
        ssize_t n = conn->tls ? tls_blocking_read(conn->tls, data, sizeof(data))
                              : recv(conn->fd, data, sizeof(data), 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n == 0)
            return true;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return fail(fault, "no answer within %d s", CLIENT_TIMEOUT_S);
        if (n < 0)
            return in->len > 0 || fail(fault, "the connection broke: %s", strerror(errno));
        if (in->len + (size_t)n > CLIENT_BODY_MAX + HEAD_MAX)
            return fail(fault, "the answer exceeds %d MiB", CLIENT_BODY_MAX >> 20);
        text_add(in, slice_of(data, (size_t)n));
    }
}

static bool take_body(const struct http_message *msg, struct slice rest, struct text *body,
                      char fault[CLIENT_FAULT_MAX])
{
    struct h1_chunked chunked = {0};
    enum http_reject why;
    size_t used, n;
    switch ((enum http_framing)msg->framing) {
    case HTTP_BODY_NONE:
        return true;
    case HTTP_BODY_UNTIL_CLOSE:
        text_add(body, rest);
        return true;
    case HTTP_BODY_LENGTH:
        if (rest.len < msg->content_length)
            return fail(fault, "the answer ended early");
        text_add(body, slice_of(rest.ptr, (size_t)msg->content_length));
        return true;
    case HTTP_BODY_CHUNKED:
        if (h1_chunked_decode(&chunked, (char *)rest.ptr, rest.len, &used, &n, &why) != H1_CHUNKED_DATA_END)
            return fail(fault, "the answer ended early");
        text_add(body, slice_of(rest.ptr, n));
        return true;
    }
    return fail(fault, "the answer has no end");
}

static bool take_reply(struct text *in, struct client_reply *reply, bool is_head,
                       char fault[CLIENT_FAULT_MAX])
{
    static const struct h1_limits limits = {HEAD_MAX, HEAD_MAX, 100};
    struct http_message *msg = malloc(sizeof(*msg));
    enum http_reject why = HTTP_REJECT_NONE;
    size_t used = 0, at = 0;
    enum h1_result result;
    iso_assert(msg != NULL);
    do { /* an interim answer is no answer */
        result = h1_parse_response(in->data + at, in->len - at, &limits, is_head ? HTTP_HEAD : HTTP_GET, msg,
                                   &used, &why);
        at += used;
    } while (result == H1_COMPLETE && msg->status < 200);
    bool ok = result == H1_COMPLETE || fail(fault, "the answer is no HTTP: %s", http_reject_text(why));
    if (ok) {
        const struct http_field *type = http_message_find(msg, HTTP_FIELD_CONTENT_TYPE);
        reply->status = msg->status;
        if (type)
            snprintf(reply->content_type, sizeof(reply->content_type), "%.*s", (int)type->value_len,
                     type->value);
        ok = take_body(msg, slice_of(in->data + at, in->len - at), &reply->body, fault);
    }
    free(msg);
    return ok;
}

bool client_call(const struct client *client, const struct client_request *request,
                 struct client_reply *reply, char fault[CLIENT_FAULT_MAX])
{
    struct connection conn;
    struct text in;
    *reply = (struct client_reply){0};
    fault[0] = '\0';
    signal(SIGPIPE, SIG_IGN); /* TLS writes by itself; a server that goes away is a fault, not an end */
    text_init(&reply->body);
    text_init(&in);
    bool ok = open_connection(client, &conn, fault);
    if (ok) {
        char unread[CLIENT_FAULT_MAX];
        bool sent = send_request(client, &conn, request, fault);
        /* One that refuses a body before it has all of it answers all the same. */
        ok = receive_all(&conn, &in, sent ? fault : unread) && in.len > 0;
        if (sent && !ok && in.len == 0 && !fault[0])
            fail(fault, "the server closed the connection without an answer");
        ok = ok && take_reply(&in, reply, strcmp(request->method, "HEAD") == 0, fault);
    }
    close_connection(&conn);
    text_fini(&in);
    return ok;
}

void client_reply_fini(struct client_reply *reply)
{
    text_fini(&reply->body);
}

void client_add_segment(struct text *path, struct slice segment)
{
    for (size_t i = 0; i < segment.len; i++) {
        char c = segment.ptr[i];
        bool is_plain =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || strchr("-._~:", c);
        text_printf(path, is_plain && c ? "%c" : "%%%02X", (unsigned char)c);
    }
}
