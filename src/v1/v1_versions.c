/* SPDX-License-Identifier: Apache-2.0 */
/* The versions of the configuration: which there are, what one said, and the way back to it. With a store
 * they are the store's, asked for when a client asks; without one, and while the store is away, those that
 * this process remembers. */
#include "v1/handlers.h"

#include "doc/json.h"
#include "doc/printed.h"
#include "store/store.h"
#include "v1/v1.h"

/* What the store or another program wrote may be anything. */
static bool is_json(struct slice text, enum doc_kind kind)
{
    struct iso_diag diag;
    struct doc doc;
    diag_init(&diag);
    doc_init(&doc, "", &diag);
    bool is_it = json_read(text, &doc) == ISO_OK && doc.root->kind == kind;
    doc_fini(&doc);
    diag_fini(&diag);
    return is_it;
}

/* In the call's arena; of a list without the document. */
static struct version_info *from_store(struct api_call *call, const struct store_version *version)
{
    struct version_info *info = arena_new(&call->arena, struct version_info);
    *info = (struct version_info){.number = version->number,
                                  .wall_ms = version->wall_ms,
                                  .who = arena_slice(&call->arena, version->who),
                                  .changes = SLICE("[]"),
                                  .document = arena_slice(&call->arena, version->document)};
    if (is_json(version->diff, DOC_LIST))
        info->changes = arena_slice(&call->arena, version->diff);
    return info;
}

static void write_version(const struct version_info *version, struct text *out)
{
    text_printf(out, "\"version\":%llu,\"at\":", (unsigned long long)version->number);
    api_write_time(out, version->wall_ms);
    text_add(out, SLICE(",\"who\":"));
    text_json(out, version->who);
    text_add(out, SLICE(",\"changes\":"));
    text_add(out, version->changes);
}

/* ---- the list ---- */

struct listing {
    struct api_call *call;
    uint64_t below; /* versions from this one on were shown */
    uint32_t limit, n;
    uint64_t last;
    bool has_more;
};

/* False: the page is full. */
static bool list_one(struct listing *listing, const struct version_info *version)
{
    struct text *out = &listing->call->reply.body;
    if (version->number >= listing->below)
        return true;
    if (listing->n == listing->limit) {
        listing->has_more = true;
        return false;
    }
    text_add(out, listing->n++ ? SLICE(",{") : SLICE("{"));
    write_version(version, out);
    text_add(out, SLICE("}"));
    listing->last = version->number;
    return true;
}

static void list_remembered(struct listing *listing)
{
    const struct version_info *version;
    for (size_t i = 0; (version = document_history(listing->call->document, i)); i++)
        if (!list_one(listing, version))
            break;
}

static void end_list(struct listing *listing)
{
    struct text *out = &listing->call->reply.body;
    struct slice last = {0};
    if (listing->has_more)
        last = slice_str(arena_printf(&listing->call->arena, "%llu", (unsigned long long)listing->last));
    text_add(out, SLICE("],"));
    api_write_cursor(out, last);
    text_add(out, SLICE("}\n"));
}

static void on_listed(void *owner, const struct store_answer *answer)
{
    struct listing *listing = owner;
    struct api_call *call = listing->call;
    if (answer->outcome == STORE_DONE)
        for (uint32_t i = 0; i < answer->n_versions; i++)
            list_one(listing, from_store(call, &answer->versions[i]));
    else
        list_remembered(listing);
    end_list(listing);
    api_finish(call);
}

void v1_versions_list(struct api_call *call)
{
    struct api_page page;
    uint64_t below = UINT64_MAX;
    if (!v1_document_of(call) || !api_read_page(call, &page))
        return;
    if (page.after.ptr && !slice_u64(page.after, &below)) {
        api_fail(call, 400, "invalid", "cursor", "is not what next_cursor said");
        return;
    }
    struct listing *listing = arena_new(&call->arena, struct listing);
    *listing = (struct listing){.call = call, .below = below, .limit = page.limit};
    text_add(&call->reply.body, SLICE("{\"items\":["));
    if (call->view->store) {
        api_defer(call);
        store_list(call->view->store, below == UINT64_MAX ? 0 : below, page.limit + 1, on_listed, listing);
        return;
    }
    list_remembered(listing);
    end_list(listing);
}

/* ---- one version ---- */

/* What to do with a version that was found; the call is deferred when the store was asked. True: the call
 * goes on by itself, false: its answer stands. */
typedef bool found_fn(struct api_call *call, const struct version_info *version);

struct search {
    struct api_call *call;
    uint64_t number;
    found_fn *found;
};

/* A copy that has its text, in the call's arena. */
static struct version_info *with_document(struct api_call *call, const struct version_info *version)
{
    struct version_info *copy = arena_new(&call->arena, struct version_info);
    struct text text;
    text_init(&text);
    printed_write(version->printed, &text);
    *copy = *version;
    copy->document = arena_slice(&call->arena, text_slice(&text));
    text_fini(&text);
    return copy;
}

static bool search_remembered(struct search *search)
{
    struct api_call *call = search->call;
    const struct version_info *version = document_find_version(call->document, search->number);
    if (version)
        return search->found(call, with_document(call, version));
    api_fail(call, 404, "not_found", "", "version %llu is not known, or no longer",
             (unsigned long long)search->number);
    return false;
}

static bool take_found(struct search *search, const struct store_answer *answer)
{
    struct api_call *call = search->call;
    if (answer->outcome != STORE_DONE)
        return search_remembered(search);
    if (is_json(answer->versions[0].document, DOC_MAP))
        return search->found(call, from_store(call, &answer->versions[0]));
    api_fail(call, 409, "broken", "",
             "version %llu is not a JSON document: something else wrote to the store",
             (unsigned long long)search->number);
    return false;
}

static void on_found(void *owner, const struct store_answer *answer)
{
    struct search *search = owner;
    struct api_call *call = search->call;
    if (!take_found(search, answer))
        api_finish(call);
}

static void find(struct api_call *call, found_fn *found)
{
    struct search *search = arena_new(&call->arena, struct search);
    *search = (struct search){.call = call, .found = found};
    if (!v1_document_of(call))
        return;
    if (!slice_u64(call->params[0], &search->number)) {
        api_fail(call, 404, "not_found", "", "a version has a number");
        return;
    }
    if (!call->view->store) {
        search_remembered(search);
        return;
    }
    api_defer(call);
    store_get(call->view->store, search->number, on_found, search);
}

static bool show(struct api_call *call, const struct version_info *version)
{
    enum schema_view view;
    if (!v1_read_view(call, &view))
        return false;
    struct text *out = &call->reply.body;
    struct iso_diag diag;
    struct doc doc;
    diag_init(&diag);
    doc_init(&doc, "", &diag);
    iso_err err = json_read(version->document, &doc);
    iso_assert(!err); /* we wrote it, or looked at it */
    text_add(out, SLICE("{"));
    write_version(version, out);
    text_add(out, SLICE(",\"config\":"));
    v1_write_document(doc.root, view, out);
    text_add(out, SLICE("}\n"));
    doc_fini(&doc);
    diag_fini(&diag);
    return false;
}

void v1_versions_get(struct api_call *call)
{
    find(call, show);
}

static bool go_back(struct api_call *call, const struct version_info *version)
{
    /* It may be forgotten before its turn comes. */
    struct version_info *copy = arena_new(&call->arena, struct version_info);
    *copy = *version;
    copy->document = arena_slice(&call->arena, version->document);
    v1_config_submit(call, copy);
    return true;
}

void v1_versions_rollback(struct api_call *call)
{
    find(call, go_back);
}
