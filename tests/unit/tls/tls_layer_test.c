/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/tls_layer.h"

#include "tls/client.h"
#include "tls/server.h"

#include <openssl/ec.h>
#include <openssl/pem.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

/* A client and a server of ours on the two ends of a socket pair, on one loop. */
struct pair {
    struct loop loop;
    struct buf_pool bufs;
    struct tls_thread *thread;
    struct tls_cert *cert;
    struct tls_server *server;
    struct tls_client *client;
    struct conn ours, theirs; /* the client's end, the server's end */
};

static char data[200000], got[200000];

static void nothing_ready(struct loop *loop, struct loop_io *io, uint32_t events) {}

static void nothing_due(struct loop *loop, struct loop_timer *timer) {}

static EVP_PKEY *make_key(void)
{
    EVP_PKEY *key = NULL;
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_id(EVP_PKEY_EC, NULL);
    assert_true(context && EVP_PKEY_keygen_init(context) == 1 &&
                EVP_PKEY_CTX_set_ec_paramgen_curve_nid(context, NID_X9_62_prime256v1) == 1 &&
                EVP_PKEY_keygen(context, &key) == 1);
    EVP_PKEY_CTX_free(context);
    return key;
}

/* A certificate that signed itself, with its key, in one file. */
static void write_cert(const char *path)
{
    FILE *file = fopen(path, "w");
    EVP_PKEY *key = make_key();
    X509 *cert = X509_new();
    assert_true(file && key && cert);
    X509_gmtime_adj(X509_getm_notBefore(cert), 0);
    X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
    X509_set_pubkey(cert, key);
    assert_true(X509_sign(cert, key, EVP_sha256()) > 0);
    PEM_write_X509(file, cert);
    PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL);
    fclose(file);
    X509_free(cert);
    EVP_PKEY_free(key);
}

static void start(struct pair *pair)
{
    char path[] = "/tmp/isobar-cert-XXXXXX";
    int fds[2], fd = mkstemp(path);
    struct tls_fault fault;
    struct slice alpn = SLICE("http/1.1");
    memset(pair, 0, sizeof(*pair));
    assert_int_equal(loop_init(&pair->loop), ISO_OK);
    buf_pool_init(&pair->bufs);
    pair->thread = tls_thread_new(&pair->loop, &pair->bufs);
    write_cert(path);
    assert_int_equal(
        tls_cert_load(&(struct tls_cert_files){.name = "c", .cert_file = path}, &pair->cert, &fault), ISO_OK);
    close(fd);
    unlink(path);
    const struct tls_server_options options = {.name = SLICE("l"),
                                               .certs = &pair->cert,
                                               .n_certs = 1,
                                               .alpn = &alpn,
                                               .n_alpn = 1,
                                               .min_version = 12,
                                               .max_version = 13};
    assert_int_equal(tls_server_new(&options, &pair->server, &fault), ISO_OK);
    assert_int_equal(
        tls_client_new(&(struct tls_client_options){.alpn = &alpn, .n_alpn = 1}, &pair->client, &fault),
        ISO_OK);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    conn_init(&pair->ours, fds[0], nothing_ready, nothing_due);
    conn_init(&pair->theirs, fds[1], nothing_ready, nothing_due);
    pair->ours.is_connecting = true;
    assert_true(tls_connect(pair->thread, &pair->ours, pair->client, &(struct ip_addr){0}, NULL));
    assert_true(tls_accept(pair->thread, &pair->theirs, pair->server));
}

static void end(struct pair *pair)
{
    conn_close(&pair->ours, &pair->loop, &pair->bufs);
    conn_close(&pair->theirs, &pair->loop, &pair->bufs);
    tls_thread_free(pair->thread);
    tls_server_unref(&pair->server);
    tls_client_unref(&pair->client);
    tls_cert_free(pair->cert);
    assert_int_equal(pair->bufs.n_lent, 0);
    buf_pool_fini(&pair->bufs);
    loop_fini(&pair->loop);
}

/* As the next turn would: steps of handshakes are counted in each. */
static void turn(struct pair *pair)
{
    pair->loop.turns++;
    conn_note_events(&pair->ours, EPOLLIN);
    conn_note_events(&pair->theirs, EPOLLIN);
}

/* Everything that the server's end can read now. */
static enum conn_result drain(struct conn *conn, size_t *n)
{
    enum conn_result result = CONN_OK;
    size_t part;
    for (*n = 0; (result = conn_read(conn, got + *n, sizeof(got) - *n, &part)) == CONN_OK;)
        *n += part;
    return result;
}

static void shake_hands(struct pair *pair)
{
    size_t n;
    for (int i = 0; i < 10 && (pair->ours.is_connecting || pair->theirs.is_handshaking); i++) {
        turn(pair);
        if (pair->ours.is_connecting)
            assert_int_not_equal(conn_handshake(&pair->ours, &pair->bufs), CONN_FAILED);
        if (pair->theirs.is_handshaking)
            assert_int_equal(drain(&pair->theirs, &n), CONN_BLOCKED);
    }
    assert_false(pair->ours.is_connecting || pair->theirs.is_handshaking);
}

static void a_handshake_ends_with_the_protocol_both_know(void **state)
{
    struct pair pair;
    start(&pair);
    shake_hands(&pair);
    assert_true(slice_eq(tls_alpn(&pair.ours), SLICE("http/1.1")));
    assert_true(slice_eq(tls_alpn(&pair.theirs), SLICE("http/1.1")));
    assert_string_equal(tls_version(&pair.theirs), "TLSv1.3");
    assert_false(tls_is_resumed(&pair.theirs));
    end(&pair);
}

static void what_was_queued_before_the_handshake_arrives_after_it(void **state)
{
    struct pair pair;
    size_t n = 0;
    start(&pair);
    assert_int_equal(conn_write(&pair.ours, &pair.bufs, &(struct iovec){(char[]){"early"}, 5}, 1),
                     CONN_BLOCKED);
    for (int i = 0; i < 10 && n == 0; i++) {
        turn(&pair);
        if (pair.ours.is_connecting)
            conn_handshake(&pair.ours, &pair.bufs);
        drain(&pair.theirs, &n);
    }
    assert_int_equal(n, 5);
    assert_memory_equal(got, "early", 5);
    end(&pair);
}

static void bytes_arrive_whole_through_a_full_socket(void **state)
{
    struct pair pair;
    size_t total = 0, n;
    start(&pair);
    shake_hands(&pair);
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (char)(i * 7 + i / 251);
    struct iovec pieces[] = {{data, 300}, {data + 300, 120000}, {data + 120300, sizeof(data) - 120300}};
    static char all[sizeof(data)];
    conn_write(&pair.theirs, &pair.bufs, pieces, 3);
    for (int i = 0; i < 100 && total < sizeof(data); i++) {
        turn(&pair);
        conn_flush(&pair.theirs, &pair.bufs);
        drain(&pair.ours, &n);
        assert_true(total + n <= sizeof(all));
        memcpy(all + total, got, n);
        total += n;
    }
    assert_int_equal(total, sizeof(data));
    assert_memory_equal(all, data, sizeof(data));
    end(&pair);
}

static void an_end_is_told_from_a_cut(void **state)
{
    struct pair pair;
    size_t n;
    for (int is_cut = 0; is_cut < 2; is_cut++) {
        start(&pair);
        shake_hands(&pair);
        pair.theirs.is_cut = is_cut;
        conn_close(&pair.theirs, &pair.loop, &pair.bufs);
        turn(&pair);
        assert_int_equal(drain(&pair.ours, &n), is_cut ? CONN_FAILED : CONN_EOF);
        end(&pair);
    }
}

static void the_end_goes_with_the_last_write_C_082(void **state)
{
    struct pair pair;
    size_t n;
    start(&pair);
    shake_hands(&pair);
    pair.theirs.is_last_write = true;
    assert_int_equal(conn_write(&pair.theirs, &pair.bufs, &(struct iovec){(char[]){"bye"}, 3}, 1), CONN_OK);
    turn(&pair);
    assert_int_equal(drain(&pair.ours, &n), CONN_EOF);
    assert_int_equal(n, 3);
    /* The other direction is open still. */
    assert_int_equal(conn_write(&pair.ours, &pair.bufs, &(struct iovec){(char[]){"ok"}, 2}, 1), CONN_OK);
    assert_int_equal(drain(&pair.theirs, &n), CONN_BLOCKED);
    assert_int_equal(n, 2);
    end(&pair);
}

static void a_request_in_plain_text_is_seen_C_083(void **state)
{
    struct pair pair;
    size_t n;
    start(&pair);
    assert_int_equal(send(pair.ours.io.fd, "GET /", 5, 0), 5);
    assert_int_equal(drain(&pair.theirs, &n), CONN_FAILED);
    assert_true(pair.theirs.is_misspoken);
    assert_null(pair.theirs.layer);
    end(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_handshake_ends_with_the_protocol_both_know),
        cmocka_unit_test(what_was_queued_before_the_handshake_arrives_after_it),
        cmocka_unit_test(bytes_arrive_whole_through_a_full_socket),
        cmocka_unit_test(an_end_is_told_from_a_cut),
        cmocka_unit_test(the_end_goes_with_the_last_write_C_082),
        cmocka_unit_test(a_request_in_plain_text_is_seen_C_083),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
