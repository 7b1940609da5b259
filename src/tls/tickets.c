/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/tickets.h"

#include "tls/cert.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <pthread.h>
#include <stdlib.h>

enum { SHORT_FILE_BYTES = 48, LONG_FILE_BYTES = 80 };

/* What every chain of the process begins with; under `seed_lock`, which no request path takes. */
static struct {
    unsigned char secret[TICKET_KEY_BYTES];
    uint64_t begun_s;
    bool is_set;
} seed;
static pthread_mutex_t seed_lock = PTHREAD_MUTEX_INITIALIZER;

iso_err ticket_file_load(struct ticket_files *files, const char *path, struct tls_fault *fault)
{
    size_t len;
    if (files->n == TICKET_FILES_MAX)
        return tls_fail(fault, "ticket_key_files", "more than %d files", TICKET_FILES_MAX);
    unsigned char *data = tls_read_file(path, 4096, &len);
    if (!data)
        return tls_fail(fault, "ticket_key_files", "cannot read %s: %s", path, strerror(errno));
    struct ticket_key *key = &files->keys[files->n];
    *key = (struct ticket_key){.is_short = len == SHORT_FILE_BYTES};
    if (len == LONG_FILE_BYTES) {
        memcpy(key->name, data, TICKET_NAME_BYTES);
        memcpy(key->hmac, data + 16, 32);
        memcpy(key->aes, data + 48, 32);
    } else if (len == SHORT_FILE_BYTES) {
        memcpy(key->name, data, TICKET_NAME_BYTES);
        memcpy(key->aes, data + 16, 16);
        memcpy(key->hmac, data + 32, 16);
    }
    OPENSSL_cleanse(data, len);
    free(data);
    if (len != LONG_FILE_BYTES && len != SHORT_FILE_BYTES)
        return tls_fail(fault, "ticket_key_files", "%s has %zu bytes, expected 80 (or 48) random ones", path,
                        len);
    files->n++;
    return ISO_OK;
}

static void derive(const unsigned char *secret, const char *what, unsigned char *out)
{
    unsigned len = TICKET_KEY_BYTES;
    const void *done =
        HMAC(EVP_sha256(), secret, TICKET_KEY_BYTES, (const unsigned char *)what, strlen(what), out, &len);
    iso_assert(done != NULL);
}

/* The key of the secret, which becomes the next one's. */
static void make_key(struct ticket_chain *chain)
{
    unsigned char name[TICKET_KEY_BYTES];
    derive(chain->secret, "name", name);
    memcpy(chain->now.name, name, TICKET_NAME_BYTES);
    derive(chain->secret, "hmac", chain->now.hmac);
    derive(chain->secret, "aes", chain->now.aes);
    chain->now.is_short = false;
    unsigned char next[TICKET_KEY_BYTES];
    derive(chain->secret, "next", next);
    memcpy(chain->secret, next, sizeof(next));
    OPENSSL_cleanse(next, sizeof(next));
}

void ticket_chain_init(struct ticket_chain *chain, uint64_t now_s)
{
    pthread_mutex_lock(&seed_lock);
    if (!seed.is_set) {
        iso_assert(RAND_bytes(seed.secret, sizeof(seed.secret)) == 1);
        seed.begun_s = now_s;
        seed.is_set = true;
    }
    *chain = (struct ticket_chain){.begun_s = seed.begun_s};
    memcpy(chain->secret, seed.secret, sizeof(seed.secret));
    pthread_mutex_unlock(&seed_lock);
    make_key(chain);
    ticket_chain_turn(chain, now_s);
}

void ticket_seed_drop(void)
{
    pthread_mutex_lock(&seed_lock);
    OPENSSL_cleanse(&seed, sizeof(seed));
    pthread_mutex_unlock(&seed_lock);
}

void ticket_chain_turn(struct ticket_chain *chain, uint64_t now_s)
{
    while (chain->begun_s + (chain->epoch + 1) * TICKET_EPOCH_S <= now_s) {
        chain->before = chain->now;
        chain->has_before = true;
        make_key(chain);
        chain->epoch++;
    }
}

void ticket_chain_fini(struct ticket_chain *chain)
{
    OPENSSL_cleanse(chain, sizeof(*chain));
}

const struct ticket_key *ticket_key_now(const struct ticket_files *files, const struct ticket_chain *chain)
{
    return files->n ? &files->keys[0] : &chain->now;
}

const struct ticket_key *ticket_key_find(const struct ticket_files *files, const struct ticket_chain *chain,
                                         const unsigned char *name, bool *is_old)
{
    for (uint32_t i = 0; i < files->n; i++)
        if (memcmp(files->keys[i].name, name, TICKET_NAME_BYTES) == 0) {
            *is_old = i > 0;
            return &files->keys[i];
        }
    if (files->n)
        return NULL;
    *is_old = memcmp(chain->now.name, name, TICKET_NAME_BYTES) != 0;
    if (!*is_old)
        return &chain->now;
    return chain->has_before && memcmp(chain->before.name, name, TICKET_NAME_BYTES) == 0 ? &chain->before
                                                                                         : NULL;
}
