/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/tls_layer.h"

#include "tls/fault.h"
#include "tls/server.h"
#include "tls/tls_thread.h"

#include <openssl/err.h>

enum { OVERHEAD_BYTES = 256 }; /* of a record, at most */

/* Begins work on a connection: its input in the window, what was held back before what will be made. */
static void begin(struct tls_conn *tls)
{
    struct tls_thread *thread = tls->thread;
    thread->sending = tls->conn;
    thread->in_at = thread->in_end = thread->out_len = 0;
    thread->out_failed = false;
    if (tls->kept) {
        thread->in_end = buf_len(tls->kept);
        memcpy(thread->in, tls->kept->data + tls->kept->start, thread->in_end);
        buf_give(thread->bufs, &tls->kept);
    }
    if (tls->held) {
        thread->out_len = buf_len(tls->held);
        memcpy(thread->out, tls->held->data + tls->held->start, thread->out_len);
        buf_give(thread->bufs, &tls->held);
    }
}

/* Ends it: what OpenSSL did not take is kept, and as long as anything is there reading must go on. */
static bool keep_rest(struct tls_conn *tls)
{
    struct tls_thread *thread = tls->thread;
    struct slice rest = slice_of(thread->in + thread->in_at, thread->in_end - thread->in_at);
    thread->in_at = thread->in_end = 0;
    if (rest.len && !buf_append(thread->bufs, &tls->kept, rest))
        return false;
    if (rest.len || SSL_pending(tls->ssl) > 0)
        tls->conn->can_read = true;
    return true;
}

/* What was made while reading. Tickets and the like are not waited for: they leave with the next write, or
 * with the end. */
static bool hold_or_push(struct tls_conn *tls, bool hold)
{
    struct tls_thread *thread = tls->thread;
    if (!hold)
        return tls_thread_push(thread) != CONN_FAILED;
    struct slice made = slice_of(thread->out, thread->out_len);
    thread->out_len = 0;
    return made.len == 0 || buf_append(thread->bufs, &tls->held, made);
}

/* Fills the empty window. CONN_EOF is an end without close_notify. */
static enum conn_result fill(struct tls_conn *tls, size_t want)
{
    struct tls_thread *thread = tls->thread;
    size_t n, cap = want + OVERHEAD_BYTES < TLS_IN_BYTES ? want + OVERHEAD_BYTES : TLS_IN_BYTES;
    if (!tls->conn->can_read)
        return CONN_BLOCKED;
    enum conn_result result = conn_recv(tls->conn, thread->in, cap, &n);
    if (result != CONN_OK)
        return result;
    thread->in_at = 0;
    thread->in_end = n;
    return CONN_OK;
}

static void fail(struct tls_conn *tls)
{
    long verified = SSL_get_verify_result(tls->ssl);
    if (!tls->why)
        tls->why =
            verified != X509_V_OK ? X509_verify_cert_error_string(verified) : tls_reason(ERR_peek_error());
    tls->has_failed = true;
    ERR_clear_error(); /* SSL_get_error() looks at the queue: it is empty whenever we are called */
}

/* After a call that returned `result` <= 0: does it want more input? */
static bool wants_more(struct tls_conn *tls, int result)
{
    switch (SSL_get_error(tls->ssl, result)) {
    case SSL_ERROR_WANT_READ:
        return true;
    case SSL_ERROR_ZERO_RETURN:
        tls->saw_close = true;
        return false;
    default:
        fail(tls);
        return false;
    }
}

/* One step of the handshake with what the window holds. */
static enum conn_result step(struct tls_conn *tls)
{
    int done = SSL_do_handshake(tls->ssl);
    if (done == 1) {
        tls->is_open = true;
        return CONN_OK;
    }
    return wants_more(tls, done) ? CONN_BLOCKED : CONN_FAILED;
}

/* TLS begins with a handshake record, or with the two bytes of an SSLv2 length; a request in plain text with
 * a letter. */
static bool is_plain_text(const char *data)
{
    return (unsigned)(ascii_lower(data[0]) - 'a') < 26;
}

static void tls_close(struct conn *conn);

/* Goes on with an accepted connection's handshake until it is done or the window is empty. */
static enum conn_result accept_on(struct tls_conn *tls)
{
    struct tls_thread *thread = tls->thread;
    for (;;) {
        if (thread->in_at == thread->in_end) {
            enum conn_result filled = fill(tls, TLS_IN_BYTES);
            if (filled != CONN_OK)
                return filled == CONN_EOF ? CONN_FAILED : filled;
            if (!tls->has_begun && is_plain_text(thread->in)) {
                tls->conn->is_misspoken = true;
                return CONN_FAILED;
            }
            tls->has_begun = true;
        }
        if (!tls_thread_take_step(tls)) {
            tls->conn->can_read = true;
            return CONN_BLOCKED;
        }
        enum conn_result result = step(tls);
        if (result != CONN_BLOCKED)
            return result;
    }
}

/* Application data into data[0..cap). */
static enum conn_result decrypt(struct tls_conn *tls, char *data, size_t cap, size_t *n)
{
    struct tls_thread *thread = tls->thread;
    size_t got = 0;
    for (;;) {
        if (thread->in_at == thread->in_end && SSL_pending(tls->ssl) == 0) {
            enum conn_result filled = got > 0 ? CONN_BLOCKED : fill(tls, cap);
            if (filled != CONN_OK && got == 0)
                return filled == CONN_EOF ? CONN_FAILED : filled;
            if (filled != CONN_OK)
                break;
        }
        int len = SSL_read(tls->ssl, data + got, (int)(cap - got));
        if (len > 0) {
            got += (size_t)len;
            if (got == cap)
                break;
        } else if (!wants_more(tls, len)) {
            break;
        }
    }
    *n = got;
    return got > 0 ? CONN_OK : tls->saw_close ? CONN_EOF : CONN_FAILED;
}

static enum conn_result tls_read(struct conn *conn, char *data, size_t cap, size_t *n)
{
    struct tls_conn *tls = conn->layer_state;
    enum conn_result result = CONN_OK;
    if (tls->has_failed || tls->saw_close) {
        conn->can_read = false;
        conn->saw_eof |= tls->saw_close;
        return tls->has_failed ? CONN_FAILED : CONN_EOF;
    }
    begin(tls);
    bool was_open = tls->is_open;
    if (!was_open)
        result = accept_on(tls);
    if (result == CONN_OK) {
        conn->is_handshaking = false;
        result = decrypt(tls, data, cap, n);
    }
    /* The end of the handshake may go with the answer to what came with the client's, unless the peer still
     * waits for it (TLS 1.2). What a later record asks for, such as the refusal of another handshake, goes at
     * once: no answer may follow. */
    bool is_awaited = was_open || (result != CONN_OK && (result != CONN_BLOCKED || !tls->is_open ||
                                                         SSL_version(tls->ssl) != TLS1_3_VERSION));
    bool ok = keep_rest(tls) && hold_or_push(tls, !is_awaited);
    if (conn->is_misspoken) {
        tls_close(conn);
        return CONN_FAILED;
    }
    if (!ok)
        fail(tls);
    if (result == CONN_OK && (tls->saw_close || tls->has_failed))
        conn->can_read = true; /* to be told at the next read */
    if (result == CONN_EOF)
        conn->saw_eof = true;
    if (result == CONN_FAILED)
        fail(tls);
    return ok ? result : CONN_FAILED;
}

static bool encrypt(struct tls_conn *tls, const char *data, size_t len)
{
    while (len > 0) {
        int n = SSL_write(tls->ssl, data, len > INT32_MAX ? INT32_MAX : (int)len);
        if (n <= 0) {
            fail(tls);
            return false;
        }
        data += n;
        len -= (size_t)n;
    }
    return true;
}

/* A head and the beginning of its body share a record; what fills records alone is not copied. */
static bool encrypt_pieces(struct tls_conn *tls, const struct iovec *pieces, int n)
{
    char *stage = tls->thread->stage;
    size_t staged = 0;
    for (int i = 0; i < n; i++) {
        const char *data = pieces[i].iov_base;
        size_t len = pieces[i].iov_len;
        while (len > 0) {
            if (staged == 0 && (len >= TLS_RECORD_BYTES || i == n - 1)) {
                size_t whole = i == n - 1 ? len : len - len % TLS_RECORD_BYTES;
                if (!encrypt(tls, data, whole))
                    return false;
                data += whole;
                len -= whole;
                continue;
            }
            size_t part = len < TLS_RECORD_BYTES - staged ? len : TLS_RECORD_BYTES - staged;
            memcpy(stage + staged, data, part);
            staged += part;
            data += part;
            len -= part;
            if (staged == TLS_RECORD_BYTES) {
                if (!encrypt(tls, stage, staged))
                    return false;
                staged = 0;
            }
        }
    }
    return encrypt(tls, stage, staged);
}

/* Adds close_notify to the output. Without it a peer cannot tell an end from a cut, and OpenSSL's clients do
 * not resume the session. */
static void add_close(struct tls_conn *tls)
{
    if (tls->sent_close || !tls->is_open || tls->has_failed)
        return;
    tls->sent_close = true;
    if (SSL_shutdown(tls->ssl) < 0)
        ERR_clear_error();
}

static enum conn_result tls_write(struct conn *conn, struct buf_pool *bufs, const struct iovec *pieces, int n)
{
    struct tls_conn *tls = conn->layer_state;
    if (conn->is_connecting)
        return conn_send(conn, bufs, pieces, n);
    if (tls->has_failed || tls->sent_close || !tls->is_open)
        return CONN_FAILED;
    struct buf *kept = tls->kept; /* not this call's business */
    tls->kept = NULL;
    begin(tls);
    bool ok = encrypt_pieces(tls, pieces, n);
    if (ok && conn->is_last_write)
        add_close(tls);
    tls->kept = kept;
    return ok ? tls_thread_push(tls->thread) : CONN_FAILED;
}

static void tls_shut(struct conn *conn)
{
    struct tls_conn *tls = conn->layer_state;
    if (tls->sent_close || conn->is_connecting)
        return;
    struct buf *kept = tls->kept;
    tls->kept = NULL;
    begin(tls);
    add_close(tls);
    tls->kept = kept;
    if (tls_thread_push(tls->thread) == CONN_FAILED)
        tls->has_failed = true;
}

static void tls_close(struct conn *conn)
{
    struct tls_conn *tls = conn->layer_state;
    struct tls_thread *thread = tls->thread;
    if (!conn->is_cut && !conn->out)
        tls_shut(conn);
    buf_give(thread->bufs, &tls->kept);
    buf_give(thread->bufs, &tls->held);
    list_remove(&tls->waiting);
    free(tls->subject);
    if (tls->is_open) /* a peer that closes without close_notify, as many do, may still resume its session */
        SSL_set_shutdown(tls->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    SSL_free(tls->ssl);
    if (tls->server)
        tls_server_unref(&tls->server);
    if (tls->client)
        tls_client_unref(&tls->client);
    slab_give(&thread->slab, tls);
    conn->layer = NULL;
    conn->layer_state = NULL;
    conn->is_handshaking = false;
}

/* What was queued as it is goes out in our form. */
static enum conn_result send_queued(struct tls_conn *tls, struct buf_pool *bufs)
{
    struct conn *conn = tls->conn;
    struct buf *queued = conn->out;
    conn->out = NULL;
    conn->is_connecting = false;
    if (!queued)
        return CONN_OK;
    enum conn_result result =
        tls_write(conn, bufs, &(struct iovec){queued->data + queued->start, buf_len(queued)}, 1);
    buf_give(bufs, &queued);
    return result == CONN_FAILED ? CONN_FAILED : CONN_OK;
}

static enum conn_result tls_handshake(struct conn *conn, struct buf_pool *bufs)
{
    struct tls_conn *tls = conn->layer_state;
    struct tls_thread *thread = tls->thread;
    enum conn_result result = CONN_BLOCKED;
    if (tls->has_failed)
        return CONN_FAILED;
    begin(tls);
    while (result == CONN_BLOCKED) {
        if (tls->has_begun && thread->in_at == thread->in_end) { /* the first step needs no input */
            enum conn_result filled = fill(tls, TLS_IN_BYTES);
            if (filled != CONN_OK) {
                result = filled == CONN_EOF ? CONN_FAILED : filled;
                break;
            }
        }
        if (!tls_thread_take_step(tls))
            break;
        tls->has_begun = true;
        result = step(tls);
    }
    bool ok = keep_rest(tls) && hold_or_push(tls, result == CONN_OK && conn->out);
    if (!ok || result == CONN_FAILED) {
        fail(tls);
        return CONN_FAILED;
    }
    return result == CONN_OK ? send_queued(tls, bufs) : CONN_BLOCKED;
}

static const struct conn_layer layer = {
    .read = tls_read, .write = tls_write, .handshake = tls_handshake, .shut = tls_shut, .close = tls_close};

struct tls_conn *tls_conn_attach(struct tls_thread *thread, struct conn *conn, SSL *ssl)
{
    struct tls_conn *tls = slab_try_take(&thread->slab);
    if (!tls)
        return NULL;
    *tls = (struct tls_conn){.conn = conn, .thread = thread, .ssl = ssl};
    list_init(&tls->waiting);
    SSL_set_app_data(ssl, tls);
    BIO_up_ref(thread->bio);
    SSL_set_bio(ssl, thread->bio, thread->bio);
    conn->layer = &layer;
    conn->layer_state = tls;
    return tls;
}

bool tls_accept(struct tls_thread *thread, struct conn *conn, struct tls_server *server)
{
    SSL *ssl = tls_server_open(server);
    struct tls_conn *tls = ssl ? tls_conn_attach(thread, conn, ssl) : NULL;
    if (!tls) {
        SSL_free(ssl);
        ERR_clear_error();
        return false;
    }
    SSL_set_accept_state(ssl);
    tls->server = tls_server_ref(server);
    conn->is_handshaking = true;
    return true;
}

bool tls_is_resumed(const struct conn *conn)
{
    const struct tls_conn *tls = conn->layer_state;
    return SSL_session_reused(tls->ssl);
}

struct slice tls_alpn(const struct conn *conn)
{
    const struct tls_conn *tls = conn->layer_state;
    const unsigned char *chosen;
    unsigned len;
    SSL_get0_alpn_selected(tls->ssl, &chosen, &len);
    return slice_of((const char *)chosen, len);
}

const char *tls_failure(const struct conn *conn)
{
    const struct tls_conn *tls = conn->layer_state;
    return tls->why;
}

const char *tls_version(const struct conn *conn)
{
    const struct tls_conn *tls = conn->layer_state;
    return SSL_get_version(tls->ssl);
}
