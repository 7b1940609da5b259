/* SPDX-License-Identifier: Apache-2.0 */
#include "shared/state.h"

#include "core/clock.h"
#include "core/log.h"
#include "shared/outbox.h"
#include "shared/redis.h"
#include "shared/session_key.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    OUTBOX_MAX = 16384,
    SEND_AT_ONCE = 256, /* writes under way at the same time, so that look-ups find room */
    RESEND_MS = 100,    /* until writes that failed are sent again */
};

static const char channel_forget[] = "isobar:forget";

/* The server's word wins; without one ours is put back. Nil: it is ours now. */
static const char renew_script[] = "local v = redis.call('GET', KEYS[1]) "
                                   "if v and v ~= ARGV[1] then return v end "
                                   "redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2]) return false";

struct state_counters {
    _Atomic uint64_t found, none, unanswered, outages, stored, errors, lost, waiting;
};

struct shared_state {
    struct loop loop;
    pthread_t thread;
    struct buf_pool bufs;
    struct tls_thread *tls;
    /* the thread's */
    struct redis *calls, *ears;  /* owns; NULL: no server is configured */
    struct outbox *outbox;       /* owns */
    struct shared_table *tables; /* owns */
    uint32_t n_tables;
    uint32_t n_writes; /* under way */
    uint64_t outage_ns;
    bool is_out; /* and it was said */
    struct loop_timer resend_timer;
    char endpoint[300];
    /* the control thread's */
    struct shared_options options; /* owns its texts; in force */
    bool has_options;
    /* any thread: atomic, relaxed */
    _Atomic uint32_t health; /* enum redis_health */
    _Atomic bool is_configured;
    struct state_counters counters;
};

static void count(_Atomic uint64_t *what)
{
    atomic_fetch_add_explicit(what, 1, memory_order_relaxed);
}

static uint32_t now_s(const struct shared_state *state)
{
    return (uint32_t)(state->loop.now_ns / NS_PER_S);
}

static void give_back(struct shared_call *call, enum shared_answer answer)
{
    call->answer = answer;
    call->post = (struct loop_call){.fn = call->answered, .arg = call};
    loop_post(call->home, &call->post);
}

/* ---- writes ---- */

static void send_writes(struct shared_state *state);

static void show_outbox(struct shared_state *state)
{
    atomic_store_explicit(&state->counters.waiting, outbox_count(state->outbox), memory_order_relaxed);
    atomic_store_explicit(&state->counters.lost, outbox_lost(state->outbox), memory_order_relaxed);
}

static void on_written(void *owner, void *arg, const struct resp_value *reply)
{
    struct shared_state *state = owner;
    bool is_stored = reply && reply->type != RESP_ERROR;
    if (reply && !is_stored)
        count(&state->counters.errors);
    if (is_stored)
        count(&state->counters.stored);
    state->n_writes--;
    outbox_done(state->outbox, arg, is_stored);
    show_outbox(state);
    if (is_stored)
        send_writes(state);
    else if (!state->resend_timer.due_ns)
        loop_timer_set(&state->loop, &state->resend_timer, state->loop.now_ns + RESEND_MS * NS_PER_MS);
}

static bool send_write(struct shared_state *state, struct outbox_entry *entry)
{
    char ttl[24];
    if (!entry->value.ptr)
        return redis_call(state->calls, (struct slice[]){SLICE("DEL"), entry->key}, 2, on_written, entry);
    uint64_t left_s = (entry->expires_ns - state->loop.now_ns + NS_PER_S - 1) / NS_PER_S;
    snprintf(ttl, sizeof(ttl), "%lu", left_s);
    struct slice args[] = {SLICE("SET"), entry->key, entry->value, SLICE("EX"), slice_str(ttl)};
    return redis_call(state->calls, args, iso_countof(args), on_written, entry);
}

static void send_writes(struct shared_state *state)
{
    struct outbox_entry *entry;
    while (state->calls && redis_health(state->calls) == REDIS_GOOD && state->n_writes < SEND_AT_ONCE &&
           (entry = outbox_next(state->outbox, state->loop.now_ns))) {
        if (!send_write(state, entry)) {
            outbox_done(state->outbox, entry, false);
            return;
        }
        state->n_writes++;
    }
}

static void on_resend(struct loop *loop, struct loop_timer *timer)
{
    send_writes(container_of(timer, struct shared_state, resend_timer));
}

static void put_write(struct shared_state *state, struct slice key, struct slice value, uint32_t ttl_s)
{
    if (!state->calls)
        return;
    outbox_put(state->outbox, key, value, state->loop.now_ns + ttl_s * NS_PER_S);
    send_writes(state);
    show_outbox(state);
}

/* ---- calls of workers ---- */

static void on_found(void *owner, void *arg, const struct resp_value *reply)
{
    struct shared_state *state = owner;
    struct shared_call *call = arg;
    if (reply && reply->type == RESP_BULK && reply->text.len <= sizeof(call->value)) {
        memcpy(call->value, reply->text.ptr, reply->text.len);
        call->value_len = (uint16_t)reply->text.len;
        count(&state->counters.found);
        give_back(call, SHARED_FOUND);
        return;
    }
    bool is_error = reply && reply->type != RESP_NIL;
    count(is_error ? &state->counters.errors : reply ? &state->counters.none : &state->counters.unanswered);
    give_back(call, reply && !is_error ? SHARED_NONE : SHARED_NO_ANSWER);
}

/* What a renewal has to be put right with, when the server knows better. */
struct renewal {
    struct local_sessions *table;
    uint64_t key;
    uint32_t ttl_s;
};

static const struct shared_table *find_table(const struct shared_state *state,
                                             const struct local_sessions *table)
{
    for (uint32_t i = 0; i < state->n_tables; i++)
        if (state->tables[i].table == table)
            return &state->tables[i];
    return NULL;
}

static void on_renewed(void *owner, void *arg, const struct resp_value *reply)
{
    struct shared_state *state = owner;
    struct renewal *renewal = arg;
    if (reply && reply->type == RESP_ERROR)
        count(&state->counters.errors);
    else if (reply && reply->type == RESP_BULK && find_table(state, renewal->table))
        local_sessions_put(renewal->table, renewal->key, now_s(state), renewal->ttl_s,
                           session_target_half(reply->text));
    else if (reply)
        count(&state->counters.stored);
    free(renewal);
}

static void renew(struct shared_state *state, const struct shared_call *call)
{
    char ttl[16];
    struct renewal *renewal = malloc(sizeof(*renewal));
    iso_assert(renewal != NULL);
    *renewal = (struct renewal){call->table, call->table_key, call->ttl_s};
    snprintf(ttl, sizeof(ttl), "%u", call->ttl_s);
    struct slice args[] = {SLICE("EVAL"),
                           slice_str(renew_script),
                           SLICE("1"),
                           slice_of(call->key, call->key_len),
                           slice_of(call->value, call->value_len),
                           slice_str(ttl)};
    if (!state->calls || redis_health(state->calls) != REDIS_GOOD ||
        !redis_call(state->calls, args, iso_countof(args), on_renewed, renewal))
        free(renewal); /* the next use renews it, or a look-up finds that it has expired */
}

static void on_call(struct loop *loop, void *arg)
{
    struct shared_call *call = arg;
    struct shared_state *state = container_of(loop, struct shared_state, loop);
    struct slice key = slice_of(call->key, call->key_len), value = slice_of(call->value, call->value_len);
    switch (call->op) {
    case SHARED_FIND:
        if (state->calls && redis_health(state->calls) == REDIS_GOOD &&
            redis_call(state->calls, (struct slice[]){SLICE("GET"), key}, 2, on_found, call))
            return;
        count(&state->counters.unanswered);
        give_back(call, SHARED_NO_ANSWER);
        return;
    case SHARED_BIND:
        put_write(state, key, value, call->ttl_s);
        break;
    case SHARED_RENEW:
        renew(state, call);
        break;
    }
    give_back(call, SHARED_NONE);
}

bool shared_state_answers(const struct shared_state *state)
{
    return atomic_load_explicit(&((struct shared_state *)state)->health, memory_order_relaxed) == REDIS_GOOD;
}

void shared_state_post(struct shared_state *state, struct shared_call *call)
{
    call->post = (struct loop_call){.fn = on_call, .arg = call};
    loop_post(&state->loop, &call->post);
}

bool shared_key_of_session(struct shared_call *call, struct slice id)
{
    call->key_len = (uint16_t)session_key_of_id(call->key, sizeof(call->key), id);
    return call->key_len > 0;
}

bool shared_key_of_client(struct shared_call *call, struct slice group, const struct ip_addr *ip)
{
    call->key_len = (uint16_t)session_key_of_client(call->key, sizeof(call->key), group, ip);
    return call->key_len > 0;
}

/* ---- the server's health and what it announces ---- */

static void on_health(void *owner, enum redis_health health, const char *why)
{
    struct shared_state *state = owner;
    enum redis_health before = atomic_exchange_explicit(&state->health, health, memory_order_relaxed);
    if (health == REDIS_GOOD) {
        if (state->is_out)
            log_notice("shared state: %s answers again after %.1f s; %u writes are sent now", state->endpoint,
                       (double)(state->loop.now_ns - state->outage_ns) / 1e9, outbox_count(state->outbox));
        else if (before == REDIS_AWAY)
            log_notice("shared state: %s answers", state->endpoint);
        state->is_out = false;
        send_writes(state);
        return;
    }
    if (before == REDIS_GOOD)
        count(&state->counters.outages);
    if (!state->is_out) {
        log_warning("shared state: %s is %s: %s; sessions are kept in memory meanwhile", state->endpoint,
                    health == REDIS_SLOW ? "slow" : "away", why);
        state->outage_ns = state->loop.now_ns;
    }
    state->is_out = true;
}

static void on_ears_health(void *owner, enum redis_health health, const char *why) {}

/* Forgets the local copies of what another node, or this one, has ended. */
static void on_message(void *owner, struct slice channel, struct slice key)
{
    struct shared_state *state = owner;
    for (uint32_t i = 0; i < state->n_tables; i++) {
        uint64_t table_key;
        if (session_key_in_table(key, state->tables[i].group, &state->tables[i].salt, &table_key))
            local_sessions_drop(state->tables[i].table, table_key);
    }
}

static void on_announced(void *owner, void *arg, const struct resp_value *reply) {}

/* A message of its own memory, from another thread. */
struct forget {
    struct loop_call call;
    uint16_t len;
    char key[SHARED_KEY_MAX];
};

static void on_forget(struct loop *loop, void *arg)
{
    struct forget *forget = arg;
    struct shared_state *state = container_of(loop, struct shared_state, loop);
    struct slice key = slice_of(forget->key, forget->len);
    struct slice args[] = {SLICE("PUBLISH"), slice_str(channel_forget), key};
    put_write(state, key, (struct slice){0}, 0);
    if (state->calls)
        redis_call(state->calls, args, iso_countof(args), on_announced, NULL);
    free(forget);
}

void shared_state_forget(struct shared_state *state, struct slice group, struct slice id)
{
    struct forget *forget = calloc(1, sizeof(*forget));
    struct ip_addr ip;
    iso_assert(forget != NULL);
    size_t n = ip_parse(id, &ip) ? session_key_of_client(forget->key, sizeof(forget->key), group, &ip)
                                 : session_key_of_id(forget->key, sizeof(forget->key), id);
    if (n == 0) {
        free(forget);
        return;
    }
    forget->len = (uint16_t)n;
    forget->call = (struct loop_call){.fn = on_forget, .arg = forget};
    loop_post(&state->loop, &forget->call);
}

/* ---- configuration ---- */

struct apply {
    struct shared_state *state;
    const struct shared_options *options; /* NULL: none */
    bool is_new;                          /* other than before */
    struct shared_table *tables;
    uint32_t n_tables;
    sem_t done;
    struct loop_call call;
};

static void free_tables(struct shared_table *tables, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        free((char *)tables[i].group.ptr);
    free(tables);
}

static void disconnect(struct shared_state *state)
{
    redis_free(&state->calls);
    redis_free(&state->ears);
    atomic_store_explicit(&state->health, REDIS_AWAY, memory_order_relaxed);
    state->is_out = false;
}

static void connect_to(struct shared_state *state, const struct shared_options *from)
{
    static const char *const channels[] = {channel_forget, NULL};
    static const struct redis_events calls = {.on_health = on_health};
    static const struct redis_events ears = {.on_health = on_ears_health, .on_message = on_message};
    struct redis_options options = {.host = from->host,
                                    .port = from->port,
                                    .user = from->user,
                                    .password = from->password,
                                    .db = from->db,
                                    .tls = from->tls,
                                    .timeout_ms = from->timeout_ms};
    snprintf(state->endpoint, sizeof(state->endpoint), "%.*s:%u", SLICE_ARG(from->host), from->port);
    state->calls = redis_new(&state->loop, &state->bufs, state->tls, &options, &calls, state);
    options.channels = channels;
    state->ears = redis_new(&state->loop, &state->bufs, state->tls, &options, &ears, state);
}

static void on_apply(struct loop *loop, void *arg)
{
    struct apply *apply = arg;
    struct shared_state *state = apply->state;
    free_tables(state->tables, state->n_tables);
    state->tables = apply->tables;
    state->n_tables = apply->n_tables;
    if (apply->is_new) {
        disconnect(state);
        if (apply->options)
            connect_to(state, apply->options);
        atomic_store_explicit(&state->is_configured, apply->options != NULL, memory_order_relaxed);
    }
    sem_post(&apply->done);
}

static struct slice copy(struct slice s)
{
    char *text = strndup(s.ptr ? s.ptr : "", s.len);
    iso_assert(text != NULL);
    return slice_of(text, s.len);
}

static void forget_options(struct shared_state *state)
{
    free((char *)state->options.host.ptr);
    free((char *)state->options.user.ptr);
    free((char *)state->options.password.ptr);
    if (state->options.tls)
        tls_client_unref(&state->options.tls);
    state->options = (struct shared_options){0};
    state->has_options = false;
}

static bool same_options(const struct shared_options *a, const struct shared_options *b)
{
    return slice_eq(a->host, b->host) && slice_eq(a->user, b->user) && slice_eq(a->password, b->password) &&
           a->port == b->port && a->db == b->db && a->timeout_ms == b->timeout_ms &&
           tls_client_id(a->tls) == tls_client_id(b->tls);
}

void shared_state_apply(struct shared_state *state, const struct shared_options *options,
                        const struct shared_table *tables, uint32_t n_tables)
{
    struct apply apply = {.state = state, .options = options, .n_tables = n_tables};
    apply.is_new =
        state->has_options != (options != NULL) || (options && !same_options(options, &state->options));
    apply.tables = calloc(n_tables + 1, sizeof(*tables));
    iso_assert(apply.tables != NULL && sem_init(&apply.done, 0, 0) == 0);
    for (uint32_t i = 0; i < n_tables; i++) {
        apply.tables[i] = tables[i];
        apply.tables[i].group = copy(tables[i].group);
    }
    apply.call = (struct loop_call){.fn = on_apply, .arg = &apply};
    loop_post(&state->loop, &apply.call);
    while (sem_wait(&apply.done) < 0) {
    }
    sem_destroy(&apply.done);
    if (!apply.is_new)
        return;
    forget_options(state);
    if (!options)
        return;
    state->options = *options;
    state->options.host = copy(options->host);
    state->options.user = copy(options->user);
    state->options.password = copy(options->password);
    if (options->tls)
        state->options.tls = tls_client_ref(options->tls);
    state->has_options = true;
}

/* ---- the thread ---- */

static void *state_main(void *arg)
{
    struct shared_state *state = arg;
    loop_run(&state->loop);
    return NULL;
}

iso_err shared_state_start(struct shared_state **out)
{
    struct shared_state *state = calloc(1, sizeof(*state));
    iso_assert(state != NULL);
    if (loop_init(&state->loop)) {
        free(state);
        return ISO_ERR_SYSTEM;
    }
    buf_pool_init(&state->bufs);
    state->tls = tls_thread_new(&state->loop, &state->bufs);
    state->outbox = outbox_new(OUTBOX_MAX);
    loop_timer_init(&state->resend_timer, on_resend);
    if (pthread_create(&state->thread, NULL, state_main, state) != 0) {
        tls_thread_free(state->tls);
        outbox_free(&state->outbox);
        loop_fini(&state->loop);
        buf_pool_fini(&state->bufs);
        free(state);
        return ISO_ERR_SYSTEM;
    }
    pthread_setname_np(state->thread, "shared");
    *out = state;
    return ISO_OK;
}

static void on_stop(struct loop *loop, void *arg)
{
    struct shared_state *state = arg;
    disconnect(state);
    loop_timer_remove(loop, &state->resend_timer);
    loop_stop(loop);
}

void shared_state_stop(struct shared_state **stopped)
{
    struct shared_state *state = *stopped;
    *stopped = NULL;
    if (!state)
        return;
    struct loop_call call = {.fn = on_stop, .arg = state};
    loop_post(&state->loop, &call);
    pthread_join(state->thread, NULL);
    tls_thread_free(state->tls);
    loop_fini(&state->loop);
    buf_pool_fini(&state->bufs);
    outbox_free(&state->outbox);
    free_tables(state->tables, state->n_tables);
    forget_options(state);
    free(state);
}

void shared_state_figures(const struct shared_state *from, struct shared_figures *figures)
{
    struct shared_state *state = (struct shared_state *)from;
#define READ(field) atomic_load_explicit(&state->field, memory_order_relaxed)
    *figures = (struct shared_figures){.is_configured = READ(is_configured),
                                       .is_up = READ(health) == REDIS_GOOD,
                                       .found = READ(counters.found),
                                       .none = READ(counters.none),
                                       .unanswered = READ(counters.unanswered),
                                       .outages = READ(counters.outages),
                                       .stored = READ(counters.stored),
                                       .errors = READ(counters.errors),
                                       .lost = READ(counters.lost),
                                       .waiting = READ(counters.waiting)};
#undef READ
}
