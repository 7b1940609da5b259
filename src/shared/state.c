/* SPDX-License-Identifier: Apache-2.0 */
#include "shared/state_internal.h"

#include "core/clock.h"
#include "core/log.h"
#include "shared/session_key.h"

#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum { OUTBOX_MAX = 16384 };

static const char channel_forget[] = "isobar:forget";

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
        if (before == REDIS_AWAY)
            roster_again(state->roster);
        state_send_writes(state);
        return;
    }
    if (before == REDIS_GOOD)
        state_count(&state->counters.outages);
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
    if (slice_eq(channel, slice_str(roster_channel))) {
        roster_hear(state->roster, key);
        return;
    }
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
    state_put_write(state, key, (struct slice){0}, 0);
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

/* ---- rate limits ---- */

static void on_report(struct loop *loop, void *arg)
{
    struct shared_report *report = arg;
    struct shared_state *state = container_of(loop, struct shared_state, loop);
    fleet_report(state->fleet, state->calls, &report->bucket);
    report->post = (struct loop_call){.fn = report->returned, .arg = report};
    loop_post(report->home, &report->post);
}

void shared_state_report(struct shared_state *state, struct shared_report *report)
{
    report->post = (struct loop_call){.fn = on_report, .arg = report};
    loop_post(&state->loop, &report->post);
}

/* ---- configuration ---- */

struct apply {
    struct shared_state *state;
    const struct shared_options *options; /* NULL: none */
    const struct shared_objects *objects;
    bool is_new; /* options other than before */
    struct shared_table *tables;
    struct limiter **limiters;
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
    roster_use(state->roster, NULL);
    redis_free(&state->calls);
    redis_free(&state->ears);
    atomic_store_explicit(&state->health, REDIS_AWAY, memory_order_relaxed);
    state->is_out = false;
}

static void connect_to(struct shared_state *state, const struct shared_options *from)
{
    static const char *const channels[] = {channel_forget, roster_channel, NULL};
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
    roster_use(state->roster, state->calls);
    options.channels = channels;
    state->ears = redis_new(&state->loop, &state->bufs, state->tls, &options, &ears, state);
}

static void on_apply(struct loop *loop, void *arg)
{
    struct apply *apply = arg;
    struct shared_state *state = apply->state;
    const struct shared_objects *objects = apply->objects;
    free_tables(state->tables, state->n_tables);
    state->tables = apply->tables;
    state->n_tables = objects->n_tables;
    fleet_set_limiters(state->fleet, apply->limiters, objects->n_limiters);
    roster_set(state->roster, &objects->words, objects->targets, objects->n_targets);
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
                        const struct shared_objects *objects)
{
    struct apply apply = {.state = state, .options = options, .objects = objects};
    apply.is_new =
        state->has_options != (options != NULL) || (options && !same_options(options, &state->options));
    apply.tables = calloc(objects->n_tables + 1, sizeof(*apply.tables));
    apply.limiters = calloc(objects->n_limiters + 1, sizeof(struct limiter *));
    iso_assert(apply.tables && apply.limiters && sem_init(&apply.done, 0, 0) == 0);
    for (uint32_t i = 0; i < objects->n_tables; i++) {
        apply.tables[i] = objects->tables[i];
        apply.tables[i].group = copy(objects->tables[i].group);
    }
    for (uint32_t i = 0; i < objects->n_limiters; i++)
        apply.limiters[i] = objects->limiters[i];
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
    state->fleet = fleet_new(&state->loop);
    state->roster = roster_new(&state->loop);
    loop_timer_init(&state->resend_timer, state_on_resend);
    if (pthread_create(&state->thread, NULL, state_main, state) != 0) {
        tls_thread_free(state->tls);
        outbox_free(&state->outbox);
        fleet_free(&state->fleet);
        roster_free(&state->roster);
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
    fleet_free(&state->fleet);
    roster_free(&state->roster);
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
