/* SPDX-License-Identifier: Apache-2.0 */
/* What the handlers of /v1 share: places, preconditions, and how resources are shown. */
#ifndef ISOBAR_V1_V1_H
#define ISOBAR_V1_V1_H

#include "api/body.h"
#include "api/page.h"
#include "api/route.h"
#include "api/view.h"
#include "document/document.h"
#include "v1/resource.h"

/* The document, or NULL with 503 in the call. */
struct document *v1_document(struct api_call *call);
/* What the route is about. */
const struct resource *v1_resource_of(const struct api_call *call);

/* Where a path leads. */
struct v1_place {
    const struct doc_node *parent; /* the map that the list is or would be in */
    const struct doc_node *list;   /* NULL: there is none yet */
    const struct doc_node *item;   /* NULL: none of that id, or the path is that of the list */
};
/* False with 404 in the call: something above the list does not exist. */
bool v1_find_place(struct api_call *call, const struct resource *resource, struct v1_place *out);
/* The id that the path ends with. */
struct slice v1_item_id(const struct api_call *call);
/* 404 for it. */
void v1_fail_missing(struct api_call *call);

/* The validator of an item of the call's resource, or of their list: a hash of what it says; of nothing:
 * NULL. `"version"` of the whole document. In the call's arena. */
struct slice v1_etag(struct api_call *call, const struct doc_node *node);
struct slice v1_etag_of_version(struct api_call *call, uint64_t version);
/* If-Match and If-None-Match of a change against the validator of what is there (ptr NULL: nothing is). False
 * with 412 in the call. Source: RFC 9110 13. */
bool v1_precondition(struct api_call *call, struct slice etag);
/* If-None-Match of a read; true with 304 in the call. Sets the reply's ETag in any case. */
bool v1_not_modified(struct api_call *call, struct slice etag);

/* How a read shows secrets: hidden, or as they are with ?secrets=true. False with 403 in the call: that needs
 * the role admin. */
bool v1_read_view(struct api_call *call, enum schema_view *view);
/* Appends an item as clients see it: {"id": ..., what the document says}. */
void v1_write_item(const struct resource *resource, enum schema_view view, const struct doc_node *item,
                   struct slice id, struct text *out);
/* Appends a whole document as clients see it. */
void v1_write_document(const struct doc_node *root, enum schema_view view, struct text *out);
/* Takes out of a client's item what v1_write_item() and answers add: "id", "version" and the like. */
void v1_strip_added(const struct resource *resource, struct doc_edit *edit, struct doc_node *item);
/* Other names of source 000 become ours: "cert_id" of a listener, in an item or what is in it. */
void v1_translate(const struct resource *resource, struct doc_node *item);
/* What stands in place of secrets becomes the secrets of `before` (NULL: there was nothing), in a map of the
 * section or a list of them. What stays hidden is refused when the document is decoded. */
void v1_keep_secrets(struct doc_edit *edit, const struct schema_section *section, struct doc_node *now,
                     const struct doc_node *before, struct arena *arena);
/* The key of a certificate stays when it is left out and the certificate is the one it belongs to. */
void v1_keep_key(struct doc_edit *edit, struct doc_node *now, const struct doc_node *before);

/* Ends a change with the answer that all kinds share: conflicts, refusals; and dry runs with what they would
 * do. True when the caller has the answer to write (CHANGE_MADE, CHANGE_NONE). */
bool v1_settle(struct change *change, enum change_outcome outcome, const struct config *tried);

/* The document; NULL with 503 in the call while there is none. */
struct document *v1_document_of(struct api_call *call);
/* Defers the call and submits the whole document: that of the body, or of a version, which lives as long as
 * the call and whose document is JSON. */
void v1_config_submit(struct api_call *call, const struct version_info *back_to);

/* What a change would mean for traffic, as a JSON object. Source: issue 4, 2. */
void v1_write_impact(const struct config *now, const struct config *tried, struct text *out);

#endif
