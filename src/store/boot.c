/* SPDX-License-Identifier: Apache-2.0 */
#include "store/boot.h"

#include "config/diff.h"
#include "core/clock.h"
#include "core/log.h"
#include "doc/doc_edit.h"
#include "doc/json.h"
#include "doc/json_write.h"
#include "store/last_good.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    PATIENCE_MS = 15000, /* for a server, without a last good copy; one that starts beside us takes seconds */
    RETRY_MS = 200,
};

struct boot {
    struct loop loop;
    struct store *store; /* owns */
    struct loop_timer retry;
    struct config_source *file;
    const char *file_name;
    struct iso_diag *diag;
    /* the last answer */
    enum store_outcome outcome;
    uint64_t version;
    bool in_tables;
    struct text document;
    char reason[400];
};

/* ---- documents ---- */

/* The sections of this node in front of those of the store. */
static void join(struct slice document, const struct doc_node *local, struct text *out)
{
    const char *joint = "{";
    for (const char *const *key = store_bootstrap_keys; *key; key++) {
        const struct doc_node *node = doc_get(local, *key);
        if (!node)
            continue;
        text_printf(out, "%s\"%s\":", joint, *key);
        json_write(node, NULL, out);
        joint = ",";
    }
    struct slice rest = slice_trim(document);
    if (*joint == '{' || !slice_starts(rest, SLICE("{")))
        text_add(out, document);
    else if (slice_eq(rest, SLICE("{}")))
        text_printf(out, "}");
    else
        text_printf(out, ",%.*s", (int)rest.len - 1, rest.ptr + 1);
}

iso_err store_decode(struct slice document, const struct doc_node *local, const struct config *before,
                     const char *name, const char *base_dir, struct config_source *out, struct iso_diag *diag)
{
    struct config_source made = {0};
    struct text whole;
    text_init(&whole);
    join(document, local, &whole);
    doc_init(&made.doc, name, diag);
    iso_err err = json_read(text_slice(&whole), &made.doc);
    if (!err && before)
        doc_take_stamps(made.doc.root, local);
    if (!err)
        err = config_load_again(&made.doc, base_dir, before, &made.config);
    text_fini(&whole);
    if (err) {
        doc_fini(&made.doc);
        return err;
    }
    made.base_dir = strdup(base_dir);
    made.doc.name = "";
    *out = made;
    return ISO_OK;
}

bool store_log_difference(const struct config *in_force, const struct config *file, const char *file_name)
{
    struct arena arena;
    arena_init(&arena);
    const struct config_change *change = config_diff(in_force, file, &arena);
    bool differs = change != NULL;
    if (differs)
        log_warning("store: %s says otherwise than the store, which rules (store.file: seed):", file_name);
    for (; change; change = change->next)
        log_warning("store: %s: %s: %s", file_name, change->object, change->what);
    arena_fini(&arena);
    return differs;
}

/* ---- asking, on the loop of the start ---- */

static void on_answer(void *owner, const struct store_answer *answer)
{
    struct boot *boot = owner;
    boot->outcome = answer->outcome;
    boot->version = answer->version;
    boot->in_tables = answer->in_tables;
    boot->document.len = 0;
    if (answer->n_versions)
        text_add(&boot->document, answer->versions[0].document);
    snprintf(boot->reason, sizeof(boot->reason), "%s", answer->reason ? answer->reason : "");
    loop_stop(&boot->loop);
}

static void wait_for_answer(struct boot *boot)
{
    boot->loop.stopping = false;
    loop_run(&boot->loop);
}

static void on_retry(struct loop *loop, struct loop_timer *timer)
{
    loop_stop(loop);
}

static void pause_for(struct boot *boot, uint64_t ms)
{
    loop_timer_set(&boot->loop, &boot->retry, clock_mono_ns() + ms * NS_PER_MS);
    wait_for_answer(boot);
}

static void load(struct boot *boot, uint64_t patience_ms)
{
    uint64_t until_ns = clock_mono_ns() + patience_ms * NS_PER_MS;
    bool was_told = false;
    for (;;) {
        store_load(boot->store, on_answer, boot);
        wait_for_answer(boot);
        if (boot->outcome != STORE_UNAVAILABLE || clock_mono_ns() >= until_ns)
            return;
        if (!was_told)
            log_notice("store: it is waited for, as there is no last good copy to start from");
        was_told = true;
        pause_for(boot, RETRY_MS);
    }
}

static iso_err fail(struct boot *boot, const char *what)
{
    diag_add(boot->diag, DIAG_ERROR, boot->file_name, 0, 0, "/store/url", "%s: %s", what, boot->reason);
    return ISO_ERR_INVALID;
}

static void replace(struct config_source *source, struct config_source *by)
{
    config_source_fini(source);
    *source = *by;
}

static iso_err decode(struct boot *boot, const char *origin, struct config_source *out)
{
    char name[64];
    snprintf(name, sizeof(name), "%s, version %" PRIu64, origin, boot->version);
    return store_decode(text_slice(&boot->document), boot->file->doc.root, NULL, name, boot->file->base_dir,
                        out, boot->diag);
}

static void fill_tables(struct boot *boot, const struct config *config)
{
    uint64_t version = boot->version;
    store_fill_tables(boot->store, version, config, on_answer, boot);
    wait_for_answer(boot);
    boot->version = version;
}

static bool differ(const struct config *a, const struct config *b)
{
    struct arena arena;
    arena_init(&arena);
    bool differs = config_diff(a, b, &arena) != NULL;
    arena_fini(&arena);
    return differs;
}

static iso_err from_store(struct boot *boot, struct store_boot *out)
{
    struct config_source stored;
    out->version = boot->version;
    iso_err err = decode(boot, "the store", &stored);
    if (err)
        return err;
    if (!boot->in_tables)
        fill_tables(boot, stored.config);
    if (boot->file->config->store.file == CONFIG_STORE_FILE_WINS) {
        out->must_record = differ(stored.config, boot->file->config);
        config_source_fini(&stored);
        return ISO_OK;
    }
    log_notice("store: version %" PRIu64 " is in force", out->version);
    store_log_difference(stored.config, boot->file->config, boot->file_name);
    replace(boot->file, &stored);
    return ISO_OK;
}

/* The store is away, and the copy is there or not. */
static iso_err from_last_good(struct boot *boot, const char *path, iso_err found, struct store_boot *out)
{
    struct config_source good;
    if (boot->file->config->store.file == CONFIG_STORE_FILE_WINS) {
        out->version = found ? 0 : out->version;
        out->must_record = true;
        log_warning("store: it is away (%s); %s is in force, and will be recorded when it is back",
                    boot->reason, boot->file_name);
        return ISO_OK;
    }
    if (found == ISO_ERR_NOT_FOUND && path)
        return fail(boot, arena_printf(&boot->diag->arena,
                                       "the store is away and there is no last good copy at %s, so there is "
                                       "nothing to serve",
                                       path));
    if (found)
        return fail(boot,
                    "the store is away and no last good copy can be read (store.last_good), so there is "
                    "nothing to serve");
    iso_err err = decode(boot, path, &good);
    if (err)
        return err;
    log_warning("store: it is away (%s); the last good copy, version %" PRIu64
                ", is in force; changes are refused until it is back",
                boot->reason, out->version);
    replace(boot->file, &good);
    return ISO_OK;
}

static iso_err run(struct boot *boot, struct store_boot *out)
{
    struct arena arena;
    struct text good;
    struct iso_diag good_diag; /* of a copy that nobody may need */
    arena_init(&arena);
    text_init(&good);
    diag_init(&good_diag);
    const char *path = last_good_path(&boot->file->config->store, &arena);
    iso_err found = path ? last_good_read(path, &out->version, &good, &good_diag) : ISO_ERR_NOT_FOUND;
    const struct config_store *at = &boot->file->config->store;
    bool may_wait = found && at->file == CONFIG_STORE_FILE_SEED && !slice_starts(at->url, SLICE("sqlite:"));
    load(boot, may_wait ? PATIENCE_MS : 0);
    iso_err err = ISO_OK;
    if (boot->outcome == STORE_NOT_FOUND) {
        *out = (struct store_boot){.must_record = true};
        log_notice("store: it is empty; %s fills it", boot->file_name);
    } else if (boot->outcome == STORE_DONE) {
        err = from_store(boot, out);
    } else {
        if (found == ISO_ERR_INVALID)
            log_warning("store: %s %s", path, good_diag.first->message);
        text_fini(&boot->document);
        boot->document = good;
        text_init(&good);
        boot->version = out->version;
        err = from_last_good(boot, path, found, out);
    }
    diag_fini(&good_diag);
    text_fini(&good);
    arena_fini(&arena);
    return err;
}

iso_err store_boot(struct config_source *source, const char *file_name, struct store_boot *out,
                   struct iso_diag *diag)
{
    struct boot *boot = calloc(1, sizeof(*boot)); /* a loop is large */
    iso_assert(boot != NULL);
    *out = (struct store_boot){0};
    boot->file = source;
    boot->file_name = file_name;
    boot->diag = diag;
    iso_err err = loop_init(&boot->loop);
    if (err) {
        free(boot);
        return err;
    }
    text_init(&boot->document);
    loop_timer_init(&boot->retry, on_retry);
    struct config_store at = source->config->store;
    at.last_good = SLICE("off"); /* read here, written by the store that stays */
    const struct store_events none = {0};
    err = store_open(&at, 0, &boot->loop, &none, &boot->store, diag);
    if (!err) {
        err = run(boot, out);
        loop_timer_remove(&boot->loop, &boot->retry);
        store_close(&boot->store);
    }
    text_fini(&boot->document);
    loop_fini(&boot->loop);
    free(boot);
    return err;
}
