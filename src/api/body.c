/* SPDX-License-Identifier: Apache-2.0 */
#include "api/body.h"

#include "doc/json.h"
#include "doc/yaml.h"

static bool is_type(struct slice type, const char *wanted)
{
    return slice_caseeq(slice_trim(slice_of(type.ptr, slice_find(type, ';'))), slice_str(wanted));
}

bool api_read_body(struct api_call *call, bool or_yaml, struct doc *doc, struct iso_diag *diag)
{
    struct slice type = api_field(call, "content-type");
    bool is_yaml = or_yaml && type.ptr && (is_type(type, "application/yaml") || is_type(type, "text/yaml"));
    bool is_json = !type.ptr || is_type(type, "application/json") ||
                   (call->request->method == HTTP_PATCH && is_type(type, "application/merge-patch+json"));
    doc_init(doc, "", diag);
    if (!is_json && !is_yaml) {
        api_fail(call, 415, "unsupported_media_type", "", "expected Content-Type: application/json%s",
                 or_yaml ? " or application/yaml" : "");
        return false;
    }
    struct slice body = call->body.ptr ? call->body : SLICE("");
    iso_err err = is_yaml ? yaml_read(body, doc) : json_read(body, doc);
    if (err || doc_faults(doc)) {
        const struct diag_entry *first = diag->first;
        if (first && first->line && !first->path[0])
            api_fail(call, 400, "bad_body", "", "line %u, column %u: %s", first->line, first->column,
                     first->message);
        else
            api_fail_diag(call, 400, "bad_body", diag);
        return false;
    }
    if (doc->root->kind == DOC_MAP)
        return true;
    api_fail(call, 400, "bad_body", "", "is %s, expected an object", doc_describe(doc->root, &doc->arena));
    return false;
}
