/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/basic_auth.h"

#include "guard/crypt_thread.h"
#include "guard/passwords.h"
#include "proxy/affinity_share.h"
#include "proxy/exchange.h"

#include <stdio.h>

enum { PAIR_BYTES_MAX = 2 * CRYPT_PASSWORD_MAX };

struct auth_call {
    struct crypt_job job;
    struct worker *worker;
    struct exchange *x;          /* that waits; NULL: it has ended */
    struct passwords *passwords; /* borrows from the snapshot of x */
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

static void refuse(struct exchange *x, enum exchange_end end)
{
    char challenge[300];
    struct slice realm = x->rule->basic_auth.realm;
    int n =
        snprintf(challenge, sizeof(challenge), "Basic realm=\"%.*s\", charset=\"UTF-8\"", SLICE_ARG(realm));
    exchange_answer_challenge(x, end, slice_of(challenge, (size_t)n));
}

static int digit64(char c)
{
    return c >= 'A' && c <= 'Z'   ? c - 'A'
           : c >= 'a' && c <= 'z' ? c - 'a' + 26
           : c >= '0' && c <= '9' ? c - '0' + 52
           : c == '+'             ? 62
           : c == '/'             ? 63
                                  : -1;
}

/* Base64 as RFC 7617 has it, with or without its padding. False: it is none, or too long. */
static bool decode(struct slice text, char *out, size_t cap, size_t *len)
{
    unsigned bits = 0, n_bits = 0;
    size_t n = 0;
    while (text.len && text.ptr[text.len - 1] == '=')
        text.len--;
    for (size_t i = 0; i < text.len; i++) {
        int digit = digit64(text.ptr[i]);
        if (digit < 0 || n == cap)
            return false;
        bits = (bits << 6 | (unsigned)digit) & 0xffff;
        n_bits += 6;
        if (n_bits >= 8) {
            n_bits -= 8;
            out[n++] = (char)(bits >> n_bits);
        }
    }
    *len = n;
    return true;
}

/* "user:password" of the request. False: there is none. */
static bool find_pair(struct http_message *msg, char *pair, size_t *len)
{
    const struct slice scheme = SLICE("basic ");
    struct http_field *field = http_message_find_name(msg, SLICE("authorization"));
    struct slice value = field ? http_field_value(field) : (struct slice){0};
    if (value.len <= scheme.len || !slice_caseeq(slice_of(value.ptr, scheme.len), scheme))
        return false;
    value = slice_trim(slice_of(value.ptr + scheme.len, value.len - scheme.len));
    return decode(value, pair, PAIR_BYTES_MAX, len) && slice_find(slice_of(pair, *len), ':') < *len &&
           !memchr(pair, '\0', *len);
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
    struct exchange *x = call->x;
    bool is_good = call->job.matches && call->exists;
    if (x && is_good)
        passwords_remember(call->passwords, slice_of(call->pair, call->pair_len));
    give(call);
    if (!x)
        return;
    x->auth = NULL;
    if (!is_good)
        refuse(x, END_BAD_CREDENTIALS);
    else if (!share_is_asking(x))
        forward_again(x);
}

/* False: too many wait already, or there is no memory. */
static bool ask(struct exchange *x, struct passwords *passwords, const char *pair, size_t len)
{
    struct worker *worker = x->worker;
    struct auth_call *call = slab_try_take(&worker->auth_calls);
    size_t colon = slice_find(slice_of(pair, len), ':');
    if (!call)
        return false;
    *call = (struct auth_call){.worker = worker, .x = x, .passwords = passwords, .pair_len = len};
    memcpy(call->pair, pair, len);
    const char *hash = passwords_find(passwords, slice_of(pair, colon), &call->exists);
    memcpy(call->job.password, pair + colon + 1, len - colon - 1);
    memcpy(call->job.hash, hash, strlen(hash) + 1);
    call->job.home = &worker->loop;
    call->job.call = (struct loop_call){.fn = on_done, .arg = call};
    if (!crypt_post(&call->job)) {
        give(call);
        return false;
    }
    x->auth = call;
    return true;
}

/* The target learns the name by a field that is nobody else's to set. False: there is no room. */
static bool add_user(struct exchange *x, struct http_message *msg, const char *pair, size_t len)
{
    struct slice field = x->rule->basic_auth.user_field;
    if (!field.ptr)
        return true;
    size_t name_len = slice_find(slice_of(pair, len), ':');
    char *kept = x->worker->token; /* until the head is made */
    memcpy(kept, pair, name_len);
    struct slice name = slice_of(kept, name_len);
    http_message_drop_name(msg, field);
    return http_message_add(msg, field, name);
}

bool basic_auth_refuses(struct exchange *x, struct passwords *passwords, struct http_message *msg)
{
    char pair[PAIR_BYTES_MAX];
    size_t len = 0;
    bool refuses = true;
    if (!find_pair(msg, pair, &len) || len - slice_find(slice_of(pair, len), ':') - 1 > CRYPT_PASSWORD_MAX)
        refuse(x, END_NO_CREDENTIALS);
    else if (!add_user(x, msg, pair, len))
        exchange_fail(x, END_HEAD_GREW);
    else if (!passwords_knows(passwords, slice_of(pair, len)) && !ask(x, passwords, pair, len))
        exchange_fail(x, END_PASSWORDS_BUSY);
    else
        refuses = false;
    explicit_bzero(pair, sizeof(pair));
    return refuses;
}

bool basic_auth_is_asking(const struct exchange *x)
{
    return x->auth != NULL;
}

void basic_auth_leave(struct exchange *x)
{
    if (x->auth)
        x->auth->x = NULL;
    x->auth = NULL;
}
