/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/basic_auth.h"

#include "core/base64.h"
#include "guard/passwords.h"
#include "worker/worker.h"

#include <stdio.h>

enum { PAIR_BYTES_MAX = BASIC_AUTH_ROOM_BYTES };

struct auth_call {
    struct crypt_job job;
    struct worker *worker;
    basic_auth_done_fn *done; /* NULL: nobody waits any longer */
    void *arg;
    struct passwords *passwords; /* borrows from the snapshot of who waits */
    bool exists;                 /* the user is in the file */
    char pair[PAIR_BYTES_MAX];   /* "user:password" */
    size_t pair_len;
};

iso_err basic_auth_build(struct snapshot *snapshot, struct snap_listener *listener,
                         const struct snap_listener *earlier, struct iso_diag *diag)
{
    const struct config_listener *config = listener->config;
    listener->rule_passwords =
        arena_alloc(&snapshot->arena, sizeof(*listener->rule_passwords) * (config->n_rules + 1));
    for (uint32_t i = 0; i < config->n_rules; i++) {
        struct passwords *before = earlier ? earlier->rule_passwords[i] : NULL;
        if (!config->rules[i].basic_auth.set)
            continue;
        if (before) {
            listener->rule_passwords[i] = passwords_ref(before);
            continue;
        }
        iso_err err = passwords_load(&config->rules[i].basic_auth, &listener->rule_passwords[i], diag);
        if (err)
            return err;
    }
    return ISO_OK;
}

void basic_auth_init(struct worker *worker)
{
    slab_init(&worker->auth_calls, sizeof(struct auth_call));
}

void basic_auth_fini(struct worker *worker)
{
    crypt_forget(&worker->loop);
    slab_fini(&worker->auth_calls);
}

struct slice basic_auth_challenge(const struct config_basic_auth *config, char *out)
{
    int n = snprintf(out, BASIC_AUTH_CHALLENGE_MAX, "Basic realm=\"%.*s\", charset=\"UTF-8\"",
                     SLICE_ARG(config->realm));
    return slice_of(out, (size_t)n);
}

/* With or without padding (RFC 7617), and not strict about its last bits. False: it is no base64, or too
 * long. */
static bool decode(struct slice text, char *out, size_t cap, size_t *len)
{
    bool is_canonical;
    while (text.len && text.ptr[text.len - 1] == '=')
        text.len--;
    return base64_decode(text, BASE64_STANDARD, out, cap, len, &is_canonical);
}

/* "user:password" of the request. False: there is none, or none that anybody could have. */
static bool find_pair(struct http_message *msg, char *pair, size_t *len)
{
    const struct slice scheme = SLICE("basic ");
    struct http_field *field = http_message_find_name(msg, SLICE("authorization"));
    struct slice value = field ? http_field_value(field) : (struct slice){0};
    if (value.len <= scheme.len || !slice_caseeq(slice_of(value.ptr, scheme.len), scheme))
        return false;
    value = slice_trim(slice_of(value.ptr + scheme.len, value.len - scheme.len));
    if (!decode(value, pair, PAIR_BYTES_MAX, len) || memchr(pair, '\0', *len))
        return false;
    size_t colon = slice_find(slice_of(pair, *len), ':');
    return colon < *len && *len - colon - 1 <= CRYPT_PASSWORD_MAX;
}

static void give(struct auth_call *call)
{
    explicit_bzero(call->pair, sizeof(call->pair));
    slab_give(&call->worker->auth_calls, call);
}

/* The comparison is done. */
static void on_done(struct loop *loop, void *arg)
{
    struct auth_call *call = arg;
    basic_auth_done_fn *done = call->done;
    void *waiting = call->arg;
    bool is_good = call->job.matches && call->exists;
    if (done && is_good)
        passwords_remember(call->passwords, slice_of(call->pair, call->pair_len));
    give(call);
    if (done)
        done(waiting, is_good);
}

/* NULL: too many wait already, or there is no memory. */
static struct auth_call *ask(struct worker *worker, struct passwords *passwords, const char *pair, size_t len)
{
    struct auth_call *call = slab_try_take(&worker->auth_calls);
    size_t colon = slice_find(slice_of(pair, len), ':');
    if (!call)
        return NULL;
    *call = (struct auth_call){.worker = worker, .passwords = passwords, .pair_len = len};
    memcpy(call->pair, pair, len);
    const char *hash = passwords_find(passwords, slice_of(pair, colon), &call->exists);
    memcpy(call->job.password, pair + colon + 1, len - colon - 1);
    memcpy(call->job.hash, hash, strlen(hash) + 1);
    call->job.home = &worker->loop;
    call->job.call = (struct loop_call){.fn = on_done, .arg = call};
    if (crypt_post(&call->job))
        return call;
    give(call);
    return NULL;
}

/* The target learns the name by a field that is nobody else's to set. False: there is no room. */
static bool add_user(char *room, const struct config_basic_auth *config, struct http_message *msg,
                     const char *pair, size_t len)
{
    if (!config->user_field.ptr)
        return true;
    size_t name_len = slice_find(slice_of(pair, len), ':');
    memcpy(room, pair, name_len);
    http_message_drop_name(msg, config->user_field);
    return http_message_add(msg, config->user_field, slice_of(room, name_len));
}

enum exchange_end basic_auth_check(struct worker *worker, struct passwords *passwords,
                                   const struct config_basic_auth *config, struct http_message *msg,
                                   basic_auth_done_fn *done, void *arg, struct auth_call **call)
{
    char pair[PAIR_BYTES_MAX];
    size_t len = 0;
    enum exchange_end end = END_NORMAL;
    *call = NULL;
    if (!find_pair(msg, pair, &len)) {
        end = END_NO_CREDENTIALS;
    } else if (!add_user(worker->token, config, msg, pair, len)) { /* until the head is made */
        end = END_HEAD_GREW;
    } else if (!passwords_knows(passwords, slice_of(pair, len))) {
        *call = ask(worker, passwords, pair, len);
        if (*call) {
            (*call)->done = done;
            (*call)->arg = arg;
        } else {
            end = END_PASSWORDS_BUSY;
        }
    }
    explicit_bzero(pair, sizeof(pair));
    return end;
}

void basic_auth_leave(struct auth_call **call)
{
    if (*call)
        (*call)->done = NULL;
    *call = NULL;
}

enum exchange_end basic_auth_peek(const struct passwords *passwords, const struct config_basic_auth *config,
                                  struct http_message *msg, char *room, struct basic_auth_question *out)
{
    char pair[PAIR_BYTES_MAX];
    size_t len = 0;
    bool exists = false;
    enum exchange_end end = END_NORMAL;
    *out = (struct basic_auth_question){.is_known = true};
    if (!find_pair(msg, pair, &len)) {
        end = END_NO_CREDENTIALS;
    } else if (!add_user(room, config, msg, pair, len)) {
        end = END_HEAD_GREW;
    } else if (!passwords_knows(passwords, slice_of(pair, len))) {
        size_t colon = slice_find(slice_of(pair, len), ':');
        out->hash = passwords_find(passwords, slice_of(pair, colon), &exists);
        memcpy(out->password, pair + colon + 1, len - colon - 1);
        out->is_known = !exists;
        end = exists ? END_NORMAL : END_BAD_CREDENTIALS;
    }
    explicit_bzero(pair, sizeof(pair));
    return end;
}
