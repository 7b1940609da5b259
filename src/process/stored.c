/* SPDX-License-Identifier: Apache-2.0 */
/* Between the configuration document and the durable store: changes made here are committed before they come
 * into force, versions of other nodes are loaded and put in force, and what is in force is kept as the last
 * good copy (H1, H3). Everything on the control thread; the store answers in later turns. */
#include "process/process_internal.h"

#include "config/diff.h"
#include "core/clock.h"
#include "core/log.h"
#include "doc/printed.h"
#include "store/store.h"

#include <inttypes.h>
#include <stdlib.h>

enum { RETRY_MS = 10000 /* of a version that could not be put in force: an address may be free again */ };

struct stored {
    struct process *process;      /* borrows */
    struct store *store;          /* owns */
    struct stored_states *states; /* owns */
    struct loop_timer retry;
    bool is_loading, must_load_again; /* asked for while the answer was on its way */
    bool must_record;  /* the file is in force and becomes the next version, see store/boot.h */
    uint64_t begun_at; /* the version that the process began with */
    uint64_t failed;   /* the last version that could not be put in force; said once */
};

/* ---- a change of ours ---- */

static void on_committed(void *owner, const struct store_answer *answer)
{
    struct change *change = owner;
    enum commit_outcome outcome = COMMIT_FAILED;
    switch (answer->outcome) {
    case STORE_DONE:
        outcome = COMMIT_MADE;
        break;
    case STORE_CONFLICT:
        outcome = COMMIT_CONFLICT;
        break;
    case STORE_IN_DOUBT:
        outcome = COMMIT_IN_DOUBT;
        break;
    case STORE_NOT_FOUND:
    case STORE_UNAVAILABLE:
        break;
    }
    document_committed(change, outcome, answer->version, answer->reason);
}

static void commit(void *owner, struct change *change)
{
    struct process *process = owner;
    if (process->stored->must_record) { /* what it would be made from has no number yet */
        document_committed(change, COMMIT_FAILED, 0,
                           "the file that this process began with is still being stored; try again");
        return;
    }
    const struct store_change made = {.expected = document_version(process->document),
                                      .who = change->who,
                                      .diff = text_slice(&change->changes),
                                      .document = change->printed,
                                      .from = process->current->config,
                                      .to = change->config};
    store_commit(process->stored->store, &made, on_committed, change);
}

static void in_force(void *owner, uint64_t version, const struct printed *printed)
{
    struct process *process = owner;
    if (process->stored)
        store_keep_good(process->stored->store, version, printed);
}

void stored_add_hooks(struct document_hooks *hooks)
{
    hooks->commit = commit;
    hooks->in_force = in_force;
    hooks->local_keys = store_bootstrap_keys;
}

/* ---- a version of the store ---- */

/* A version on its way into force here. */
struct arrival {
    struct change change;
    struct stored *stored;
    struct text document, who; /* own */
    const struct config *before;
};

/* The number alone does not say it after a failover that lost versions: it may stand for another document. */
static bool is_news(const struct stored *stored, uint64_t version, struct slice text)
{
    const struct document *document = stored->process->document;
    return version != document_version(document) || !printed_is(document_printed(document), text);
}

static void give_source(struct change *change, struct config_source *source)
{
    change->fresh = malloc(sizeof(*change->fresh));
    iso_assert(change->fresh != NULL);
    *change->fresh = source->doc;
    change->fresh_config = source->config;
    free(source->base_dir);
}

static bool make_arrival(struct change *change)
{
    struct arrival *arrival = container_of(change, struct arrival, change);
    struct process *process = arrival->stored->process;
    struct config_source source;
    if (!is_news(arrival->stored, change->stored_version, text_slice(&arrival->document)))
        return true; /* it came another way meanwhile: our own commit */
    arrival->before = process->current->config;
    if (store_decode(text_slice(&arrival->document), document_doc(process->document)->root,
                     document_config(process->document), "the store", document_base_dir(process->document),
                     &source, &change->diag))
        return false;
    give_source(change, &source);
    return true;
}

static void log_arrival(const struct arrival *arrival)
{
    struct arena arena;
    arena_init(&arena);
    log_notice("store: version %" PRIu64 " of %.*s is in force", arrival->change.version,
               SLICE_ARG(text_slice(&arrival->who)));
    for (const struct config_change *change = config_diff(arrival->before, arrival->change.config, &arena);
         change; change = change->next)
        log_notice("store: %s: %s", change->object, change->what);
    arena_fini(&arena);
}

static void arrival_done(struct change *change, enum change_outcome outcome, const struct config *tried)
{
    struct arrival *arrival = container_of(change, struct arrival, change);
    struct stored *stored = arrival->stored;
    if (outcome == CHANGE_ABANDONED)
        return;
    if (outcome == CHANGE_MADE) {
        if (change->config)
            log_arrival(arrival);
        stored->failed = 0;
        return;
    }
    if (stored->failed != change->stored_version) {
        process_log_diag(&change->diag);
        log_error("store: version %" PRIu64 " cannot be put in force here; version %" PRIu64
                  " goes on, and changes made here are refused until then",
                  change->stored_version, document_version(stored->process->document));
    }
    stored->failed = change->stored_version;
    loop_timer_set(control_loop(stored->process->control), &stored->retry,
                   clock_mono_ns() + RETRY_MS * NS_PER_MS);
}

static void free_arrival(struct change *change)
{
    struct arrival *arrival = container_of(change, struct arrival, change);
    text_fini(&arrival->document);
    text_fini(&arrival->who);
    free(arrival);
}

static void arrive(struct stored *stored, const struct store_version *version)
{
    struct arrival *arrival = calloc(1, sizeof(*arrival));
    iso_assert(arrival != NULL);
    arrival->stored = stored;
    text_init(&arrival->document);
    text_init(&arrival->who);
    text_add(&arrival->document, version->document);
    text_add(&arrival->who, version->who);
    arrival->change = (struct change){.who = text_slice(&arrival->who),
                                      .is_patient = true,
                                      .reads_files = true,
                                      .make = make_arrival,
                                      .done = arrival_done,
                                      .free = free_arrival,
                                      .stored_version = version->number};
    document_submit(stored->process->document, &arrival->change);
}

static bool consider_record(struct stored *stored, const struct store_answer *answer);
static void load(struct stored *stored);

static void on_loaded(void *owner, const struct store_answer *answer)
{
    struct stored *stored = owner;
    stored->is_loading = false;
    if (stored->must_load_again)
        load(stored);
    if (answer->outcome == STORE_UNAVAILABLE)
        loop_timer_set(control_loop(stored->process->control), &stored->retry,
                       clock_mono_ns() + RETRY_MS * NS_PER_MS);
    if (stored->must_record && consider_record(stored, answer))
        return;
    if (answer->outcome == STORE_DONE && is_news(stored, answer->version, answer->versions[0].document))
        arrive(stored, &answer->versions[0]);
}

static void load(struct stored *stored)
{
    stored->must_load_again = stored->is_loading;
    if (stored->is_loading || stored->process->view.is_shutting_down)
        return;
    stored->is_loading = true;
    store_load(stored->store, on_loaded, stored);
}

static void on_changed(void *owner, uint64_t version)
{
    load(owner);
}

static void on_retry(struct loop *loop, struct loop_timer *timer)
{
    load(container_of(timer, struct stored, retry));
}

/* ---- the file becomes a version ---- */

/* What is in force is in the store as a version with a new number. */
static bool make_nothing(struct change *change)
{
    return true;
}

static void number_in_force(struct stored *stored, uint64_t version)
{
    struct arrival *arrival = calloc(1, sizeof(*arrival));
    iso_assert(arrival != NULL);
    arrival->stored = stored;
    text_init(&arrival->document);
    text_init(&arrival->who);
    arrival->change = (struct change){.who = SLICE("file"),
                                      .make = make_nothing,
                                      .done = arrival_done,
                                      .free = free_arrival,
                                      .stored_version = version};
    stored->must_record = false;
    log_notice("store: %s is version %" PRIu64, stored->process->source->name, version);
    document_submit(stored->process->document, &arrival->change);
}

static void on_recorded(void *owner, const struct store_answer *answer)
{
    struct stored *stored = owner;
    if (answer->outcome == STORE_DONE)
        number_in_force(stored, answer->version);
    else if (answer->outcome == STORE_CONFLICT)
        load(stored);
    else
        loop_timer_set(control_loop(stored->process->control), &stored->retry,
                       clock_mono_ns() + RETRY_MS * NS_PER_MS);
}

/* True: the answer was about what is to be recorded, and dealt with. */
static bool consider_record(struct stored *stored, const struct store_answer *answer)
{
    struct process *process = stored->process;
    bool wins = process->current->config->store.file == CONFIG_STORE_FILE_WINS;
    if (answer->outcome != STORE_DONE && answer->outcome != STORE_NOT_FOUND)
        return true;
    if (document_version(process->document) != stored->begun_at || (answer->outcome == STORE_DONE && !wins)) {
        stored->must_record = false; /* a change was made on top of it, or another node was first */
        return false;
    }
    const struct printed *document = document_printed(process->document);
    uint64_t found = answer->outcome == STORE_DONE ? answer->version : 0;
    if (found && printed_is(document, answer->versions[0].document)) {
        number_in_force(stored, found);
    } else {
        const struct store_change change = {.expected = found,
                                            .who = SLICE("file"),
                                            .diff = SLICE("[]"),
                                            .document = document,
                                            .to = process->current->config};
        store_commit(stored->store, &change, on_recorded, stored);
    }
    return true;
}

static void on_available(void *owner, bool is_available)
{
    struct stored *stored = owner;
    if (is_available)
        load(stored);
}

/* ---- the file, read again ---- */

static bool file_is_seed(struct process *process, struct change *change, struct config_source *file)
{
    struct config_source merged;
    struct text stored;
    text_init(&stored);
    printed_write(document_printed(process->document), &stored);
    store_log_difference(process->current->config, file->config, process->source->name);
    iso_err err = store_decode(text_slice(&stored), file->doc.root, NULL, "the store", file->base_dir,
                               &merged, &change->diag);
    text_fini(&stored);
    config_source_fini(file);
    if (err)
        return false;
    give_source(change, &merged);
    change->stored_version = document_version(process->document);
    return true;
}

bool stored_take_file(struct process *process, struct change *change, struct config_source *file)
{
    const struct config_store *now = &process->current->config->store, *new = &file->config->store;
    bool is_same = process->stored ? new->set &&slice_eq(now->url, new->url) : !new->set;
    if (!is_same)
        log_warning("reload: store: another store needs a restart; %s goes on",
                    process->stored ? "the present one" : "none");
    if (process->stored && new->file == CONFIG_STORE_FILE_SEED)
        return file_is_seed(process, change, file);
    give_source(change, file);
    return true;
}

/* ---- start and end ---- */

iso_err stored_open(struct process *process, const struct store_boot *boot, struct iso_diag *diag)
{
    struct stored *stored = calloc(1, sizeof(*stored));
    const struct config_store *config = &process->current->config->store;
    const struct store_events events = {
        .owner = stored, .on_changed = on_changed, .on_available = on_available};
    iso_assert(stored != NULL);
    stored->process = process;
    stored->must_record = boot->must_record;
    stored->begun_at = boot->version;
    loop_timer_init(&stored->retry, on_retry);
    iso_err err =
        store_open(config, boot->version, control_loop(process->control), &events, &stored->store, diag);
    if (err) {
        free(stored);
        return err;
    }
    process->stored = stored;
    if (!boot->must_record)
        store_keep_good(stored->store, boot->version, document_printed(process->document));
    process->view.store = stored->store;
    stored->states = stored_states_new(process, stored->store);
    return ISO_OK;
}

void stored_close(struct process *process)
{
    struct stored *stored = process->stored;
    if (!stored)
        return;
    process->view.store = NULL;
    store_close(&stored->store);
    loop_timer_remove(control_loop(process->control), &stored->retry);
    stored_states_free(&stored->states);
    process->stored = NULL;
    free(stored);
}
