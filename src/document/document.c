/* SPDX-License-Identifier: Apache-2.0 */
#include "document/document.h"

#include "config/diff.h"
#include "config/load.h"
#include "config/same.h"
#include "config/schema.h"
#include "core/clock.h"
#include "doc/printed.h"
#include "document/idempotency.h"
#include "document/versions.h"

#include <stdlib.h>

/* A document is copied without what was taken out once that is more than half of it. */
enum { COMPACT_BYTES_MIN = 1 << 20 };

struct document {
    struct loop *loop;
    struct document_hooks hooks;
    struct doc doc;          /* owns */
    struct printed *printed; /* shared (counted): its text */
    struct iso_diag no_diag;
    char *base_dir; /* owns */
    uint64_t version;
    struct list queue; /* of struct change, oldest first */
    uint32_t n_queued;
    struct change *at_hand; /* NULL: none; the first one taken from the queue */
    bool is_closed, is_running;
    uint32_t compact_nodes; /* after the last compaction */
    size_t compact_bytes;
    struct versions versions;
    struct idempotency_table *idempotency; /* owns */
};

void document_write_changes(const struct config *from, const struct config *to, struct text *out)
{
    static const char *const words[] = {"added", "removed", "changed"};
    struct arena arena;
    arena_init(&arena);
    const char *joint = "[";
    for (const struct config_change *change = config_diff(from, to, &arena); change; change = change->next) {
        text_printf(out, "%s{\"object\":", joint);
        text_json(out, slice_str(change->object));
        text_printf(out, ",\"change\":\"%s\",\"what\":", words[change->kind]);
        text_json(out, slice_str(change->what));
        text_add(out, SLICE("}"));
        joint = ",";
    }
    text_printf(out, *joint == '[' ? "[]" : "]");
    arena_fini(&arena);
}

/* Tells the changes between documents that are not the same. True when both mean the same. */
static bool tell_changes(const struct config *from, const struct config *to, struct text *out)
{
    document_write_changes(from, to, out);
    if (!slice_eq(text_slice(out), SLICE("[]")))
        return false;
    bool is_same = config_same(&schema_config, from, to);
    out->len = 0;
    text_printf(out, "[{\"object\":\"config\",\"change\":\"changed\",\"what\":\"%s\"}]",
                is_same ? "the same in other words" : "the order of items");
    return is_same;
}

static void remember(struct document *document, struct slice who, uint64_t wall_ms, struct slice changes)
{
    versions_add(&document->versions, &(struct version_info){.number = document->version,
                                                             .wall_ms = wall_ms,
                                                             .who = who,
                                                             .changes = changes,
                                                             .printed = document->printed});
}

/* Faults of a change go to the change; between two, nobody finds any. */
static void set_diag(struct document *document, struct iso_diag *diag)
{
    struct doc *doc = &document->doc;
    doc->diag = diag;
    doc->errors_before = diag->errors;
    doc->warnings_before = diag->warnings;
    doc->unsaid = 0;
    doc->failed = false;
}

static void adopt_doc(struct document *document, struct doc *doc)
{
    document->doc = *doc;
    document->doc.name = "";
    document->compact_nodes = doc->n_nodes;
    document->compact_bytes = doc->arena.total_bytes;
    set_diag(document, &document->no_diag);
    *doc = (struct doc){0};
}

struct document *document_new(struct loop *loop, const struct document_hooks *hooks, struct doc *doc,
                              const char *base_dir, uint64_t version, struct slice who)
{
    struct document *document = calloc(1, sizeof(*document));
    iso_assert(document != NULL);
    document->loop = loop;
    document->hooks = *hooks;
    document->base_dir = strdup(base_dir);
    iso_assert(document->base_dir != NULL);
    document->version = version;
    list_init(&document->queue);
    diag_init(&document->no_diag);
    versions_init(&document->versions);
    document->idempotency = idempotency_table_new();
    adopt_doc(document, doc);
    document->printed = printed_new(document->doc.root, document->hooks.local_keys, NULL);
    remember(document, who, clock_wall_ns() / NS_PER_MS, SLICE("[]"));
    return document;
}

/* The document is that of change->version from now on. */
static void come_into_force(struct document *document, struct change *change)
{
    bool is_new = document->version != change->version; /* not a change of this node's own sections */
    document->version = change->version;
    change->wall_ms = clock_wall_ns() / NS_PER_MS;
    if (change->printed) {
        printed_unref(&document->printed);
        document->printed = printed_ref(change->printed);
    }
    if (is_new)
        remember(document, change->who, change->wall_ms,
                 change->changes.len ? text_slice(&change->changes) : SLICE("[]"));
    if (document->hooks.in_force)
        document->hooks.in_force(document->hooks.owner, document->version, document->printed);
}

static void finish(struct change *change, enum change_outcome outcome, const struct config *tried)
{
    struct document *document = change->document;
    struct api_call *call = change->call;
    if (document->at_hand == change)
        document->at_hand = NULL;
    if (document->doc.diag == &change->diag)
        set_diag(document, &document->no_diag);
    change->done(change, outcome, tried);
    diag_fini(&change->diag);
    text_fini(&change->changes);
    printed_unref(&change->printed);
    if (change->fresh_config)
        config_free(change->fresh_config);
    if (change->fresh) {
        doc_fini(change->fresh);
        free(change->fresh);
    }
    if (change->free)
        change->free(change);
    if (call) /* which holds the change, as a rule */
        api_finish(call);
}

/* Faults are shown as the client sees them: below what it named. */
static void strip_prefix(struct change *change)
{
    size_t len = change->prefix ? strlen(change->prefix) : 0;
    for (struct diag_entry *entry = change->diag.first; entry && len; entry = entry->next)
        if (strncmp(entry->path, change->prefix, len) == 0 &&
            (entry->path[len] == '/' || entry->path[len] == '\0'))
            entry->path += len;
}

static void refuse(struct change *change, enum change_outcome outcome)
{
    strip_prefix(change);
    if (change->call && outcome == CHANGE_FAILED)
        api_fail_diag(change->call, 409, "cannot_apply", &change->diag);
    else if (change->call)
        api_fail_diag(change->call, 422, "invalid", &change->diag);
    finish(change, outcome, NULL);
}

static bool changes_nothing(struct document *document, struct change *change)
{
    if (change->fresh)
        return doc_eq(change->fresh->root, document->doc.root);
    return change->edit.last == NULL;
}

/* What was taken out counts until it is gone: neither memory nor the limit of values is for it. Nor is memory
 * for what was said about changes that were refused. */
static void compact(struct document *document)
{
    uint32_t live = document->compact_nodes, n = document->doc.n_nodes;
    size_t bytes = document->doc.arena.total_bytes;
    bool is_half_dead = bytes >= COMPACT_BYTES_MIN && bytes / 2 >= document->compact_bytes;
    bool is_near_limit = n > live + (DOC_NODES_MAX - live) / 2;
    if (!is_half_dead && !is_near_limit)
        return;
    doc_compact(&document->doc);
    document->compact_nodes = document->doc.n_nodes;
    document->compact_bytes = document->doc.arena.total_bytes;
}

static void run_queue(struct document *document);

static void on_published(void *arg)
{
    struct change *change = arg;
    struct document *document = change->document;
    if (change->fresh && !change->is_unchanged) {
        doc_fini(&document->doc);
        adopt_doc(document, change->fresh);
        free(change->fresh);
        change->fresh = NULL;
    } else if (!change->fresh) {
        doc_edit_redo(&change->edit);
    }
    come_into_force(document, change);
    finish(change, CHANGE_MADE, NULL);
    run_queue(document);
}

/* Committed: nothing can fail any more. */
static void publish(struct change *change)
{
    struct document *document = change->document;
    document->hooks.publish(document->hooks.owner, change->is_patient, on_published, change);
}

/* Compiles, and makes ready what a commit needs. */
static void prepare(struct change *change, struct config *config)
{
    struct document *document = change->document;
    change->config = config;
    iso_err err = document->hooks.prepare(document->hooks.owner, &config, change->reads_files, &change->diag);
    bool is_committed = change->stored_version || change->is_unchanged || !document->hooks.commit;
    if (!err && !change->is_unchanged)
        change->printed = printed_new(change->fresh ? change->fresh->root : document->doc.root,
                                      document->hooks.local_keys, document->printed);
    if (!change->fresh)
        doc_edit_undo(&change->edit);
    if (err) {
        config_free(config);
        refuse(change, err == ISO_ERR_SYSTEM ? CHANGE_FAILED : CHANGE_REFUSED);
        return;
    }
    change->version = change->stored_version ? change->stored_version
                      : change->is_unchanged ? document->version
                                             : document->version + 1;
    if (is_committed)
        publish(change);
    else
        document->hooks.commit(document->hooks.owner, change);
}

void document_committed(struct change *change, enum commit_outcome outcome, uint64_t version,
                        const char *reason)
{
    struct document *document = change->document;
    if (outcome == COMMIT_MADE) {
        change->version = version;
        publish(change);
        return;
    }
    document->hooks.discard(document->hooks.owner);
    change->version = document->version;
    if (change->call && outcome == COMMIT_CONFLICT)
        api_fail(change->call, 409, "conflict", "",
                 "another node has just made version %lu; look at it and try again", version);
    else if (change->call && outcome == COMMIT_FAILED)
        api_fail(change->call, 503, "store_unavailable", "", "nothing changed: the store is away: %s",
                 reason);
    else if (change->call)
        api_fail(change->call, 503, "in_doubt", "",
                 "the store did not confirm the change; should it have been made, it comes into force by "
                 "itself: %s",
                 reason);
    finish(change, CHANGE_FAILED, NULL);
    run_queue(document);
}

static struct config *decode(struct document *document, struct change *change)
{
    struct config *config = change->fresh_config;
    change->fresh_config = NULL;
    if (config)
        return config;
    struct doc *doc = change->fresh ? change->fresh : &document->doc;
    if (change->fresh)
        doc_take_stamps(change->fresh->root, document->doc.root);
    if (config_load_again(doc, document->base_dir, document_config(document), &config))
        return NULL;
    return config;
}

static void take_number(struct document *document, struct change *change)
{
    change->version = change->stored_version;
    come_into_force(document, change);
    finish(change, CHANGE_MADE, NULL);
}

static void take(struct document *document, struct change *change)
{
    change->version = document->version;
    if (document->is_closed) {
        if (change->call)
            api_fail(change->call, 503, "shutting_down", "", "this process is ending");
        finish(change, CHANGE_ABANDONED, NULL);
        return;
    }
    document->at_hand = change;
    set_diag(document, &change->diag);
    doc_edit_begin(&change->edit, &document->doc);
    bool is_made = change->make(change);
    if (!is_made || change->edit.is_too_deep) {
        doc_edit_undo(&change->edit);
        if (is_made && change->call)
            api_fail(change->call, 422, "invalid", "", "is nested deeper than %d levels", DOC_DEPTH_MAX);
        finish(change, CHANGE_REFUSED, NULL);
        return;
    }
    if (!change->is_dry_run && !change->fresh_config && changes_nothing(document, change)) {
        if (change->stored_version)
            take_number(document, change);
        else
            finish(change, CHANGE_NONE, NULL);
        return;
    }
    struct config *config = decode(document, change);
    if (!config || change->is_dry_run) {
        doc_edit_undo(&change->edit);
        if (config)
            finish(change, CHANGE_TRIED, config);
        else
            refuse(change, CHANGE_REFUSED);
        config_free(config);
        return;
    }
    change->is_unchanged =
        !change->stored_version && change->reads_files && changes_nothing(document, change);
    bool is_same = !change->is_unchanged && tell_changes(document_config(document), config, &change->changes);
    if (is_same && change->is_by_meaning) {
        doc_edit_undo(&change->edit);
        config_free(config);
        finish(change, CHANGE_NONE, NULL);
        return;
    }
    prepare(change, config);
}

static void run_queue(struct document *document)
{
    if (document->is_running)
        return;
    document->is_running = true;
    while (!document->at_hand && !list_is_empty(&document->queue)) {
        struct change *change = container_of(document->queue.next, struct change, node);
        list_remove(&change->node);
        document->n_queued--;
        compact(document);
        take(document, change);
    }
    if (!document->at_hand)
        compact(document);
    document->is_running = false;
}

void document_submit(struct document *document, struct change *change)
{
    change->document = document;
    list_init(&change->node);
    diag_init(&change->diag);
    text_init(&change->changes);
    change->printed = NULL;
    if (document->n_queued >= DOCUMENT_QUEUE_MAX) {
        if (change->call)
            api_fail(change->call, 503, "busy", "", "too many changes wait already");
        finish(change, CHANGE_ABANDONED, NULL);
        return;
    }
    list_push_back(&document->queue, &change->node);
    document->n_queued++;
    run_queue(document);
}

void document_close(struct document *document)
{
    document->is_closed = true;
}

void document_free(struct document **taken)
{
    struct document *document = *taken;
    *taken = NULL;
    if (!document)
        return;
    document->is_closed = true;
    if (document->at_hand) { /* it waits for checks of new targets */
        struct change *change = document->at_hand;
        if (change->call)
            api_fail(change->call, 503, "shutting_down", "", "this process is ending");
        finish(change, CHANGE_ABANDONED, NULL);
    }
    run_queue(document);
    versions_fini(&document->versions);
    printed_unref(&document->printed);
    idempotency_table_free(&document->idempotency);
    doc_fini(&document->doc);
    diag_fini(&document->no_diag);
    free(document->base_dir);
    free(document);
}

struct doc *document_doc(struct document *document)
{
    return &document->doc;
}

const struct printed *document_printed(const struct document *document)
{
    return document->printed;
}

const struct config *document_config(const struct document *document)
{
    return document->hooks.current(document->hooks.owner);
}

uint64_t document_version(const struct document *document)
{
    return document->version;
}

struct idempotency_table *document_idempotency(struct document *document)
{
    return document->idempotency;
}

const char *document_base_dir(const struct document *document)
{
    return document->base_dir;
}

const struct version_info *document_history(const struct document *document, size_t index)
{
    return index < document->versions.n ? &document->versions.all[document->versions.n - 1 - index] : NULL;
}

const struct version_info *document_find_version(const struct document *document, uint64_t number)
{
    return versions_find(&document->versions, number);
}
