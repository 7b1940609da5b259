/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of calls, their deadlines, and what the store knows about itself. Everything runs on the loop's
 * thread. A call is in `waiting` until the store is up and has nothing else to do, then `active`, then in
 * `answers` until the next turn, unless its deadline came first. */
#include "store/store.h"

#include "config/secret.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/random.h"
#include "store/last_good.h"
#include "store/store_internal.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

const char *const store_bootstrap_keys[] = {"admin", "store", NULL};

#define KIND(name) extern const struct store_kind name;
#include "store/kinds.def"
#undef KIND

enum store_state { STORE_OPENING, STORE_UP, STORE_DOWN };

struct store {
    struct loop *loop; /* borrows */
    struct store_events events;
    const struct store_kind *type;
    void *kind;            /* owns: the kind's own */
    struct arena arena;    /* owns the texts */
    const char *shown_url; /* for messages */
    uint32_t timeout_ms, keep_versions;
    enum store_state state;
    char reason[512];
    struct list waiting, answers;
    struct store_call *active; /* owns */
    struct loop_timer deadline;
    struct loop_later answer, start;
    uint64_t tables_version;     /* the tables are those of this one */
    uint64_t announced;          /* on_changed was called for it */
    struct chain chain;          /* owns: what the next commit may build on */
    struct last_good *last_good; /* owns; NULL: none is kept */
    struct store_figures figures;
    bool is_closing;
};

/* ---- URLs ---- */

static bool has_scheme(struct slice url, const char *scheme)
{
    size_t at = slice_find(url, ':');
    struct slice given = slice_of(url.ptr, at);
    if (at == url.len)
        return false;
    return slice_eq(given, slice_str(scheme)) ||
           (slice_eq(given, SLICE("postgres")) && slice_eq(slice_str(scheme), SLICE("postgresql")));
}

static const struct store_kind *kind_of(struct slice url)
{
#define KIND(name)                                                                                           \
    if (has_scheme(url, name.scheme))                                                                        \
        return &name;
#include "store/kinds.def"
#undef KIND
    return NULL;
}

/* ---- answers ---- */

void store_moved(struct store *store, uint64_t version)
{
    if (version <= store->figures.known || version <= store->announced || store->is_closing)
        return;
    store->announced = version;
    if (store->events.on_changed)
        store->events.on_changed(store->events.owner, version);
}

static void note_error(struct store *store)
{
    store->figures.last_error_wall_ns = clock_wall_ns();
}

static void note_commit(struct store *store, const struct store_call *call)
{
    struct store_figures *figures = &store->figures;
    uint64_t took_ns = clock_mono_ns() - call->begun_ns;
    switch (call->outcome) {
    case STORE_DONE:
        figures->commits++;
        figures->commit_ns_sum += took_ns;
        if (took_ns > figures->commit_ns_max)
            figures->commit_ns_max = took_ns;
        figures->last_commit_wall_ns = clock_wall_ns();
        break;
    case STORE_CONFLICT:
        figures->conflicts++;
        break;
    case STORE_UNAVAILABLE:
    case STORE_IN_DOUBT:
    case STORE_NOT_FOUND:
        figures->failures++;
        note_error(store);
        log_warning("store: a change was not made%s: %s",
                    call->outcome == STORE_IN_DOUBT ? ", or its confirmation was lost" : "", call->reason);
        break;
    }
}

/* Tells who asked; the call goes on if a kind still has it. */
static void tell(struct store *store, struct store_call *call)
{
    call->is_answered = true;
    if (call->is_commit)
        note_commit(store, call);
    const struct store_answer answer = {.outcome = call->outcome,
                                        .version = call->version,
                                        .versions = call->versions,
                                        .n_versions = call->n_versions,
                                        .in_tables = call->in_tables,
                                        .reason = call->reason};
    call->done(call->owner, &answer);
    if (call->outcome == STORE_CONFLICT) /* whoever was faster is known now, before anybody else tells */
        store_moved(store, call->version);
}

static void on_answer(struct loop *loop, struct loop_later *later)
{
    struct store *store = container_of(later, struct store, answer);
    while (!list_is_empty(&store->answers)) {
        struct store_call *call = container_of(store->answers.next, struct store_call, node);
        list_remove(&call->node);
        tell(store, call);
        call_free(call);
    }
}

static void answer_soon(struct store *store, struct store_call *call)
{
    list_push_back(&store->answers, &call->node);
    loop_later(store->loop, &store->answer);
}

/* ---- the queue ---- */

static void set_deadline(struct store *store)
{
    uint64_t due_ns = 0;
    if (store->active && !store->active->is_answered)
        due_ns = store->active->due_ns;
    else if (!list_is_empty(&store->waiting))
        due_ns = container_of(store->waiting.next, struct store_call, node)->due_ns;
    if (due_ns)
        loop_timer_set(store->loop, &store->deadline, due_ns);
    else
        loop_timer_clear(&store->deadline);
}

static void on_start(struct loop *loop, struct loop_later *later)
{
    struct store *store = container_of(later, struct store, start);
    if (!store->active && store->state == STORE_UP && !list_is_empty(&store->waiting)) {
        store->active = container_of(store->waiting.next, struct store_call, node);
        list_remove(&store->active->node);
        store->type->run(store->kind, store->active);
    }
    set_deadline(store);
}

static void ask(struct store *store, struct store_call *call)
{
    call->begun_ns = clock_mono_ns();
    call->due_ns = call->begun_ns + store->timeout_ms * NS_PER_MS;
    if (store->state == STORE_DOWN || store->is_closing) {
        call_fail(call, "%s", store->is_closing ? "this process is ending" : store->reason);
        answer_soon(store, call);
        return;
    }
    list_push_back(&store->waiting, &call->node);
    loop_later(store->loop, &store->start);
    set_deadline(store);
}

/* In doubt when the kind is beyond the point where it could still be called off. */
static void expire_active(struct store *store)
{
    struct store_call *call = store->active;
    bool is_called_off = call_abandon(call);
    /* The kind's thread may be writing the call's results: the answer is made beside them. */
    struct store_call *gone = call_new(call->done, call->owner);
    gone->is_commit = call->is_commit;
    gone->begun_ns = call->begun_ns;
    call_fail(gone, "it did not answer within %u ms", store->timeout_ms);
    if (call->writes && !is_called_off)
        gone->outcome = STORE_IN_DOUBT;
    call->is_answered = true;
    answer_soon(store, gone);
    store->type->give_up(store->kind, call);
}

static void on_deadline(struct loop *loop, struct loop_timer *timer)
{
    struct store *store = container_of(timer, struct store, deadline);
    uint64_t now_ns = clock_mono_ns();
    if (store->active && !store->active->is_answered && store->active->due_ns <= now_ns)
        expire_active(store);
    while (!list_is_empty(&store->waiting)) {
        struct store_call *call = container_of(store->waiting.next, struct store_call, node);
        if (call->due_ns > now_ns)
            break;
        list_remove(&call->node);
        if (store->state == STORE_UP)
            call_fail(call, "it did not answer within %u ms", store->timeout_ms);
        else
            call_fail(call, "it could not be reached within %u ms", store->timeout_ms);
        answer_soon(store, call);
    }
    set_deadline(store);
}

/* ---- what a kind says ---- */

struct loop *store_loop(const struct store *store)
{
    return store->loop;
}

uint32_t store_timeout_ms(const struct store *store)
{
    return store->timeout_ms;
}

uint64_t store_retry_ns(uint32_t attempt)
{
    struct rng rng;
    uint64_t wait_ms = STORE_RETRY_MIN_MS;
    for (; attempt > 0 && wait_ms < STORE_RETRY_MAX_MS; attempt--)
        wait_ms *= 2;
    if (wait_ms > STORE_RETRY_MAX_MS)
        wait_ms = STORE_RETRY_MAX_MS;
    rng_init(&rng, clock_mono_ns());
    return (wait_ms / 2 + rng_below(&rng, (uint32_t)wait_ms)) * NS_PER_MS;
}

static void know(struct store *store, uint64_t version)
{
    if (version > store->figures.known)
        store->figures.known = version;
}

void store_is_up(struct store *store, uint64_t version)
{
    enum store_state before = store->state;
    store->state = STORE_UP;
    store->reason[0] = 0;
    if (before == STORE_DOWN) {
        store->figures.reconnects++;
        log_notice("store: %s is back, at version %" PRIu64, store->shown_url, version);
    }
    if (before != STORE_UP && store->events.on_available)
        store->events.on_available(store->events.owner, true);
    if (version < store->figures.known) {
        log_warning("store: it had version %" PRIu64 " and has %" PRIu64
                    " now: it was restored from an older "
                    "copy, or a standby without the last changes took over; what it has comes into force",
                    store->figures.known, version);
        store->figures.known = store->announced = store->tables_version = 0;
    }
    store_moved(store, version);
    loop_later(store->loop, &store->start);
}

void store_is_down(struct store *store, const char *fmt, ...)
{
    enum store_state before = store->state;
    va_list args;
    va_start(args, fmt);
    vsnprintf(store->reason, sizeof(store->reason), fmt, args);
    va_end(args);
    for (char *c = store->reason; *c; c++)
        if (*c == '\n' || *c == '\t')
            *c = ' ';
    for (size_t n = strlen(store->reason); n > 0 && store->reason[n - 1] == ' '; n--)
        store->reason[n - 1] = 0;
    note_error(store);
    chain_fini(&store->chain);
    store->state = STORE_DOWN;
    while (!list_is_empty(&store->waiting)) {
        struct store_call *call = container_of(store->waiting.next, struct store_call, node);
        list_remove(&call->node);
        call_fail(call, "%s", store->reason);
        answer_soon(store, call);
    }
    if (before == STORE_DOWN || store->is_closing)
        return;
    log_error("store: %s is away: %s; traffic goes on, changes are refused", store->shown_url, store->reason);
    if (store->events.on_available)
        store->events.on_available(store->events.owner, false);
}

void store_call_done(struct store *store, struct store_call *call)
{
    bool was_late = call->is_answered;
    if (call == store->active)
        store->active = NULL;
    if (call->outcome == STORE_DONE && call->writes)
        store->tables_version = call->version;
    if (call->outcome == STORE_DONE && call->is_commit)
        chain_follow(&store->chain, call->version, call->token, call->document, &call->row);
    else if (call->is_commit)
        chain_fini(&store->chain);
    if (was_late) { /* told that nobody knows; now we do */
        if (call->outcome == STORE_DONE && call->is_commit)
            store_moved(store, call->version);
        call_free(call);
    } else {
        if (call->outcome == STORE_DONE && call->is_commit)
            know(store, call->version);
        answer_soon(store, call);
    }
    loop_later(store->loop, &store->start);
}

void store_call_left(struct store *store, struct store_call *call)
{
    iso_assert(store->is_closing && call == store->active && call->is_answered);
    store->active = NULL;
}

/* ---- public ---- */

/* For messages. */
static const char *shown_url(struct slice url, struct arena *arena)
{
    struct text shown;
    text_init(&shown);
    secret_in_url(SLICE("url"), url, &shown);
    const char *copy = arena_slice(arena, text_slice(&shown)).ptr;
    text_fini(&shown);
    return copy;
}

iso_err store_check(const struct config_store *config, struct iso_diag *diag)
{
    const struct store_kind *type = config->url.len ? kind_of(config->url) : NULL;
    return type && type->check ? type->check(diag) : ISO_OK;
}

iso_err store_open(const struct config_store *config, uint64_t known, struct loop *loop,
                   const struct store_events *events, struct store **out, struct iso_diag *diag)
{
    const struct store_kind *type = kind_of(config->url);
    iso_err err = store_check(config, diag);
    if (err)
        return err;
    struct store *store = calloc(1, sizeof(*store));
    iso_assert(type && store); /* check_store_url() has refused other URLs */
    *store = (struct store){.loop = loop,
                            .events = *events,
                            .type = type,
                            .timeout_ms = config->timeout_ms,
                            .keep_versions = config->keep_versions,
                            .tables_version = known,
                            .announced = known,
                            .figures.known = known};
    arena_init(&store->arena);
    store->shown_url = shown_url(config->url, &store->arena);
    list_init(&store->waiting);
    list_init(&store->answers);
    loop_timer_init(&store->deadline, on_deadline);
    loop_later_init(&store->answer, on_answer);
    loop_later_init(&store->start, on_start);
    err = last_good_open(config, loop, &store->figures.last_good_failures, &store->last_good);
    if (!err)
        err = type->open(store, config->url, &store->kind, diag);
    if (err) {
        if (store->last_good)
            last_good_close(&store->last_good);
        arena_fini(&store->arena);
        free(store);
        return err;
    }
    *out = store;
    return ISO_OK;
}

void store_close(struct store **taken)
{
    struct store *store = *taken;
    *taken = NULL;
    store->is_closing = true;
    store_is_down(store, "this process is ending");
    if (store->active && !store->active->is_answered)
        expire_active(store);
    store->type->close(&store->kind);
    on_answer(store->loop, &store->answer);
    iso_assert(!store->active && list_is_empty(&store->waiting) && list_is_empty(&store->answers));
    loop_timer_remove(store->loop, &store->deadline);
    loop_cancel_later(&store->answer);
    loop_cancel_later(&store->start);
    if (store->last_good)
        last_good_close(&store->last_good);
    chain_fini(&store->chain);
    arena_fini(&store->arena);
    free(store);
}

void store_load(struct store *store, store_answer_fn *done, void *owner)
{
    struct store_call *call = call_new(done, owner);
    call_make_load(call);
    store->figures.loads++;
    ask(store, call);
}

void store_commit(struct store *store, const struct store_change *change, store_answer_fn *done, void *owner)
{
    struct store_call *call = call_new(done, owner);
    struct store_change made = *change;
    if (made.expected != store->tables_version)
        made.from = NULL; /* the tables are of another version: no difference would be right */
    call_make_commit(call, store->type->dialect, &made, &store->chain, store->keep_versions);
    ask(store, call);
}

void store_fill_tables(struct store *store, uint64_t version, const struct config *config,
                       store_answer_fn *done, void *owner)
{
    struct store_call *call = call_new(done, owner);
    call_make_tables(call, store->type->dialect, version, config);
    ask(store, call);
}

void store_record_states(struct store *store, struct slice rows, store_answer_fn *done, void *owner)
{
    struct store_call *call = call_new(done, owner);
    call_make_states(call, store->type->dialect, rows);
    ask(store, call);
}

void store_list(struct store *store, uint64_t below, uint32_t limit, store_answer_fn *done, void *owner)
{
    struct store_call *call = call_new(done, owner);
    call_make_list(call, below, limit);
    ask(store, call);
}

void store_get(struct store *store, uint64_t number, store_answer_fn *done, void *owner)
{
    struct store_call *call = call_new(done, owner);
    call_make_get(call, number);
    ask(store, call);
}

void store_keep_good(struct store *store, uint64_t version, const struct printed *document)
{
    know(store, version);
    store->figures.in_force = version;
    if (store->last_good)
        last_good_write(store->last_good, version, document);
}

bool store_is_available(const struct store *store)
{
    return store->state == STORE_UP;
}

const char *store_reason(const struct store *store)
{
    return store->state == STORE_OPENING ? "it is being opened" : store->reason;
}

const struct store_figures *store_figures(const struct store *store)
{
    return &store->figures;
}
