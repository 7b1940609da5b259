/* SPDX-License-Identifier: Apache-2.0 */
/* The API described in OpenAPI 3.1, from the tables that make it: routes, resources, and the schema of the
 * configuration. Nothing is said here that one of them does not say. */
#include "control/handlers.h"

#include "config/types.h"
#include "control/api_detail.h"
#include "control/router.h"
#include "v1/v1.h"

static void write_pair(struct text *out, const char *name, const char *value)
{
    text_printf(out, "\"%s\":", name);
    text_json(out, slice_str(value));
}

/* ---- schemas ---- */

static void write_section(struct text *out, const struct schema_section *section);

static void write_choices(struct text *out, const struct schema_choice *choices)
{
    text_add(out, SLICE("\"enum\":["));
    for (const struct schema_choice *choice = choices; choice->name; choice++) {
        if (choice != choices)
            text_add(out, SLICE(","));
        text_json(out, slice_str(choice->name));
    }
    text_add(out, SLICE("]"));
}

/* Every kind of value as JSON Schema; one that is not listed is described by its words alone. */
static void write_type(struct text *out, const struct schema_key *key)
{
    const struct schema_type *type = key->type;
    if (type == &type_number) {
        text_printf(out, "\"type\":\"integer\",\"minimum\":%llu,\"maximum\":%llu",
                    (unsigned long long)key->min, (unsigned long long)key->max);
    } else if (type == &type_seconds) {
        text_printf(out, "\"type\":\"number\",\"minimum\":%.10g,\"maximum\":%.10g", (double)key->min / 1000,
                    (double)key->max / 1000);
    } else if (type == &type_flag) {
        text_add(out, SLICE("\"type\":\"boolean\""));
    } else if (type == &type_text || type == &type_address || type == &type_endpoint) {
        text_add(out, SLICE("\"type\":\"string\""));
    } else if (type == &type_choice) {
        bool is_numeric = key->choices->name[0] >= '0' && key->choices->name[0] <= '9';
        text_add(out, is_numeric ? SLICE("\"type\":[\"string\",\"number\"]") : SLICE("\"type\":\"string\","));
        if (!is_numeric)
            write_choices(out, key->choices);
    } else if (type == &type_texts || type == &type_prefixes) {
        text_add(
            out,
            SLICE("\"oneOf\":[{\"type\":\"string\"},{\"type\":\"array\",\"items\":{\"type\":\"string\"}}]"));
    } else if (type == &type_switches) {
        text_add(out, SLICE("\"type\":\"array\",\"items\":{\"type\":\"string\","));
        write_choices(out, key->choices);
        text_add(out, SLICE("}"));
    } else if (type == &type_pairs) {
        text_add(out, SLICE("\"type\":\"object\",\"additionalProperties\":{\"type\":[\"string\",\"number\","
                            "\"boolean\"]}"));
    } else if (schema_is_section(key)) {
        write_section(out, key->section);
    } else if (schema_is_list(key)) {
        text_add(out, SLICE("\"type\":\"array\",\"items\":{"));
        write_section(out, key->section);
        text_add(out, SLICE("}"));
    } else {
        struct text words;
        text_init(&words);
        key->type->expect(key, &words);
        write_pair(out, "$comment", words.data ? words.data : "");
        text_fini(&words);
    }
}

static void write_default(struct text *out, const struct schema_key *key)
{
    bool is_plain = key->type == &type_number || key->type == &type_seconds || key->type == &type_flag;
    bool is_word = key->type == &type_text || key->type == &type_choice || key->type == &type_endpoint;
    if (!key->default_text || !(is_plain || is_word))
        return;
    text_add(out, SLICE(",\"default\":"));
    if (is_plain)
        text_add(out, slice_str(key->default_text));
    else
        text_json(out, slice_str(key->default_text));
}

static void write_section(struct text *out, const struct schema_section *section)
{
    text_add(out, SLICE("\"type\":\"object\","));
    write_pair(out, "description", section->doc);
    text_add(out, SLICE(",\"additionalProperties\":false,\"properties\":{"));
    for (const struct schema_key *key = section->keys; key->name; key++) {
        if (key != section->keys)
            text_add(out, SLICE(","));
        text_printf(out, "\"%s\":{", key->name);
        write_type(out, key);
        write_default(out, key);
        if (key->secret)
            text_add(out, SLICE(",\"x-secret\":true"));
        if (!schema_is_section(key)) {
            text_add(out, SLICE(","));
            write_pair(out, "description", key->doc);
        }
        text_add(out, SLICE("}"));
    }
    text_add(out, SLICE("}"));
    const char *joint = ",\"required\":[";
    for (const struct schema_key *key = section->keys; key->name; key++)
        if (key->required) {
            text_printf(out, "%s\"%s\"", joint, key->name);
            joint = ",";
        }
    if (joint[1] == '\0')
        text_add(out, SLICE("]"));
}

static void write_schemas(struct text *out)
{
    static const struct {
        const char *name;
        const struct resource *resource;
    } named[] = {
#define RESOURCE(id, path, param, what) {#id, &resource_##id},
#include "v1/resources.def"
#undef RESOURCE
    };
    text_add(out,
             SLICE("\"schemas\":{\"error\":{\"type\":\"object\",\"required\":[\"error\"],\"properties\":{"
                   "\"error\":{\"type\":\"object\",\"required\":[\"code\",\"path\",\"message\"],"
                   "\"properties\":{\"code\":{\"type\":\"string\"},\"path\":{\"type\":\"string\"},"
                   "\"message\":{\"type\":\"string\"},\"errors\":{\"type\":\"array\"}}}}},\"config\":{"));
    write_section(out, &schema_config);
    for (size_t i = 0; i < iso_countof(named); i++) {
        text_printf(out, "},\"%s\":{", named[i].name);
        write_section(out, resource_section(named[i].resource));
    }
    text_add(out, SLICE("}}"));
}

/* ---- paths ---- */

static const char *method_word(enum http_method method)
{
    return method == HTTP_GET      ? "get"
           : method == HTTP_POST   ? "post"
           : method == HTTP_PUT    ? "put"
           : method == HTTP_PATCH  ? "patch"
           : method == HTTP_DELETE ? "delete"
                                   : "";
}

static void write_parameter(struct text *out, const char **joint, const char *in, const char *name,
                            const char *type)
{
    text_printf(out, "%s{\"in\":\"%s\",\"name\":\"%s\",\"required\":%s,\"schema\":{\"type\":\"%s\"}}", *joint,
                in, name, strcmp(in, "path") == 0 ? "true" : "false", type);
    *joint = ",";
}

static void write_detail_parameters(struct text *out, const char **joint, const struct api_detail *detail)
{
    const char *list = detail ? detail->query : "";
    struct slice name, type;
    bool is_required;
    while (api_detail_next(&list, &name, &type, &is_required)) {
        text_printf(
            out, "%s{\"in\":\"query\",\"name\":\"%.*s\",\"required\":false,\"schema\":{\"type\":\"%.*s\"}}",
            *joint, SLICE_ARG(name), SLICE_ARG(type));
        *joint = ",";
    }
}

static void write_parameters(struct text *out, const struct api_route *route)
{
    const char *joint = "";
    char name[64];
    text_add(out, SLICE("\"parameters\":["));
    for (const char *at = route->pattern; (at = strchr(at, '{')); at++) {
        size_t len = strcspn(at + 1, "}");
        iso_assert(len < sizeof(name));
        memcpy(name, at + 1, len);
        name[len] = '\0';
        write_parameter(out, &joint, "path", name, "string");
    }
    bool is_list = route->handler == v1_list || route->handler == v1_versions_list;
    bool is_v1_write = (route->resource && route->method != HTTP_GET) || route->handler == v1_config_put ||
                       route->handler == v1_versions_rollback;
    if (is_list) {
        write_parameter(out, &joint, "query", "limit", "integer");
        write_parameter(out, &joint, "query", "cursor", "string");
    }
    if ((route->resource && route->method == HTTP_GET) || route->handler == v1_config_get ||
        route->handler == v1_versions_get)
        write_parameter(out, &joint, "query", "secrets", "boolean");
    if (is_v1_write) {
        write_parameter(out, &joint, "query", "dry_run", "boolean");
        write_parameter(out, &joint, "header", "If-Match", "string");
        write_parameter(out, &joint, "header", "If-None-Match", "string");
    }
    if (route->handler == v1_post)
        write_parameter(out, &joint, "header", "Idempotency-Key", "string");
    write_detail_parameters(out, &joint, api_detail_find(route->handler));
    text_add(out, SLICE("]"));
}

static void write_detail_body(struct text *out, const struct api_detail *detail)
{
    const char *list = detail->body, *joint = "";
    struct slice name, type;
    bool is_required;
    text_add(out, SLICE("\"type\":\"object\",\"required\":["));
    while (api_detail_next(&list, &name, &type, &is_required))
        if (is_required)
            text_printf(out, "\"%.*s\"", SLICE_ARG(name)); /* there is one at most */
    text_add(out, SLICE("],\"properties\":{"));
    for (list = detail->body; api_detail_next(&list, &name, &type, &is_required); joint = ",")
        text_printf(out, "%s\"%.*s\":{\"type\":\"%.*s\"}", joint, SLICE_ARG(name), SLICE_ARG(type));
    text_add(out, SLICE("},\"additionalProperties\":false"));
}

/* A change names what it needs; PATCH and lists are parts of it. */
static void write_body(struct text *out, const struct api_route *route)
{
    const char *schema = NULL;
    if (!router_takes_body(route->method) || route->handler == v1_versions_rollback)
        return;
#define RESOURCE(id, path, param, what)                                                                      \
    if (route->resource == &resource_##id)                                                                   \
        schema = #id;
#include "v1/resources.def"
#undef RESOURCE
    if (route->handler == v1_config_put)
        schema = "config";
    text_add(out,
             SLICE(",\"requestBody\":{\"required\":true,\"content\":{\"application/json\":{\"schema\":{"));
    const struct api_detail *detail = api_detail_find(route->handler);
    if (detail && detail->body)
        write_detail_body(out, detail);
    else if (!schema || route->method == HTTP_PATCH)
        text_add(out, SLICE("\"type\":\"object\""));
    else if (route->handler == v1_replace)
        text_printf(out,
                    "\"type\":\"object\",\"required\":[\"%s\"],\"properties\":{\"%s\":{\"type\":\"array\","
                    "\"items\":{\"$ref\":\"#/components/schemas/%s\"}}}",
                    route->resource->key, route->resource->key, schema);
    else
        text_printf(out, "\"$ref\":\"#/components/schemas/%s\"", schema);
    text_add(out, SLICE("}}}}"));
}

static void write_response(struct text *out, unsigned status, const char *what)
{
    text_printf(out, ",\"%u\":{", status);
    write_pair(out, "description", what);
    if (status >= 400)
        text_add(out, SLICE(",\"content\":{\"application/json\":{\"schema\":{\"$ref\":\"#/components/schemas/"
                            "error\"}}}"));
    text_add(out, SLICE("}"));
}

static void write_write_responses(struct text *out, const struct api_route *route)
{
    bool has_body = router_takes_body(route->method) && route->handler != v1_versions_rollback;
    write_response(out, 409, "it exists already, is in use, or cannot be put in force: nothing changed");
    write_response(out, 412, "it is not what If-Match or If-None-Match says");
    if (has_body) {
        write_response(out, 400, "the body cannot be read, or a parameter");
        write_response(out, 413, "the body is too large");
        write_response(out, 415, "the body is not JSON");
        write_response(out, 422, "the configuration would not be valid: nothing changed");
    }
    write_response(out, 503, "changes cannot be made now: nothing changed");
}

static const char *error_text(unsigned status)
{
    switch (status) {
    case 400:
        return "a parameter or the body cannot be read";
    case 404:
        return "there is none of that name";
    case 409:
        return "it exists already, or cannot be put in force: nothing changed";
    case 413:
        return "the body is too large";
    case 415:
        return "the body is not JSON";
    case 422:
        return "the configuration would not be valid: nothing changed";
    case 503:
        return "it cannot be answered or done now";
    }
    return "it went wrong";
}

static void write_detail_errors(struct text *out, const struct api_detail *detail, bool has_404)
{
    struct slice rest = slice_str(detail->statuses), one;
    uint64_t status;
    while (slice_next(&rest, ' ', &one))
        if (slice_u64(one, &status) && !(has_404 && status == 404))
            write_response(out, (unsigned)status, error_text((unsigned)status));
}

static void write_responses(struct text *out, const struct api_route *route)
{
    const struct api_detail *detail = api_detail_find(route->handler);
    bool is_drain = route->handler == v1_delete && route->resource == &resource_targets;
    bool is_list = route->handler == v1_list || route->handler == v1_versions_list;
    bool is_write = (route->resource && route->method != HTTP_GET) || route->handler == v1_config_put ||
                    route->handler == v1_versions_rollback;
    text_printf(out, ",\"responses\":{\"%u\":{", detail ? detail->success : is_drain ? 202 : 200);
    write_pair(out, "description", is_drain ? "it is draining" : "done");
    text_add(out, SLICE("}"));
    if (route->handler == v1_post || route->handler == v1_put)
        write_response(out, 201, "it was made");
    if (route->resource && route->method == HTTP_GET)
        write_response(out, 304, "it is as If-None-Match says");
    if (is_list)
        write_response(out, 400, "a parameter cannot be read");
    if (route->role > API_OPEN) {
        write_response(out, 401, "no token, or one that is not known");
        if (route->handler != page_metrics) /* which scrapers of any name may ask */
            write_response(out, 403,
                           "the token's role is too low, or the request comes from a page of another site");
    }
    bool makes_it = route->handler == v1_put && !route->resource->parent;
    if (strchr(route->pattern, '{') && !makes_it)
        write_response(out, 404, "there is none of that name");
    if (is_write)
        write_write_responses(out, route);
    if (detail)
        write_detail_errors(out, detail, strchr(route->pattern, '{') != NULL);
    text_add(out, SLICE("}"));
}

static void write_operation(struct text *out, const struct api_route *route)
{
    text_printf(out, "\"%s\":{", method_word(route->method));
    write_pair(out, "summary", route->summary);
    text_printf(out, ",\"operationId\":\"%s", method_word(route->method));
    for (const char *at = route->pattern; *at; at++)
        text_printf(out, "%c", (*at >= 'a' && *at <= 'z') || (*at >= '0' && *at <= '9') ? *at : '_');
    text_printf(out, "\",\"x-role\":\"%s\",", api_role_word(route->role));
    if (route->role == API_OPEN)
        text_add(out, SLICE("\"security\":[],"));
    write_parameters(out, route);
    write_body(out, route);
    write_responses(out, route);
    text_add(out, SLICE("}"));
}

static bool is_first_of_pattern(size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (strcmp(api_routes[i].pattern, api_routes[index].pattern) == 0)
            return false;
    return true;
}

static void write_paths(struct text *out)
{
    text_add(out, SLICE("\"paths\":{"));
    for (size_t i = 0; i < api_routes_n; i++) {
        if (!is_first_of_pattern(i))
            continue;
        text_printf(out, "%s\"%s\":{", i ? "," : "", api_routes[i].pattern);
        const char *joint = "";
        for (size_t j = i; j < api_routes_n; j++) {
            if (strcmp(api_routes[i].pattern, api_routes[j].pattern) != 0)
                continue;
            text_add(out, slice_str(joint));
            write_operation(out, &api_routes[j]);
            joint = ",";
        }
        text_add(out, SLICE("}"));
    }
    text_add(out, SLICE("}"));
}

void v1_openapi(struct api_call *call)
{
    struct text *out = &call->reply.body;
    text_add(out, SLICE("{\"openapi\":\"3.1.0\",\"info\":{\"title\":\"Isobar\","));
    write_pair(out, "version", call->view->version ? call->view->version : "");
    text_add(out, SLICE("},\"security\":[{\"token\":[]}],"));
    write_paths(out);
    text_add(
        out,
        SLICE(",\"components\":{\"securitySchemes\":{\"token\":{\"type\":\"http\",\"scheme\":\"bearer\"}},"));
    write_schemas(out);
    text_add(out, SLICE("}}\n"));
}
