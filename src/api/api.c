/* SPDX-License-Identifier: Apache-2.0 */
#include "api/api.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

const char *api_role_word(enum api_role role)
{
    static const char *const words[] = {"open", "read", "operate", "admin"};
    iso_assert(role < iso_countof(words));
    return words[role];
}

struct api_call *api_call_new(void)
{
    struct api_call *call = calloc(1, sizeof(*call));
    iso_assert(call != NULL);
    arena_init(&call->arena);
    call->reply.status = 200;
    call->reply.content_type = SLICE("application/json");
    return call;
}

void api_call_free(struct api_call **taken)
{
    struct api_call *call = *taken;
    *taken = NULL;
    if (!call)
        return;
    text_fini(&call->reply.body);
    free((char *)call->body.ptr);
    arena_fini(&call->arena);
    free(call);
}

void api_defer(struct api_call *call)
{
    call->is_deferred = true;
}

void api_finish(struct api_call *call)
{
    iso_assert(call->is_deferred);
    call->finish(call);
}

static void begin_error(struct api_call *call, unsigned status)
{
    call->reply.status = status;
    call->reply.content_type = SLICE("application/json");
    call->reply.etag = call->reply.location = (struct slice){0};
    call->reply.body.len = 0;
}

static void write_fault(struct text *out, const char *code, const char *path, const char *message)
{
    text_add(out, SLICE("{"));
    if (code) {
        text_add(out, SLICE("\"code\":"));
        text_json(out, slice_str(code));
        text_add(out, SLICE(","));
    }
    text_add(out, SLICE("\"path\":"));
    text_json(out, slice_str(path));
    text_add(out, SLICE(",\"message\":"));
    text_json(out, slice_str(message));
}

void api_fail(struct api_call *call, unsigned status, const char *code, const char *path, const char *fmt,
              ...)
{
    char message[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(message, sizeof(message), fmt, args);
    va_end(args);
    begin_error(call, status);
    struct text *out = &call->reply.body;
    text_add(out, SLICE("{\"error\":"));
    write_fault(out, code, path, message);
    text_add(out, SLICE("}}\n"));
}

void api_fail_diag(struct api_call *call, unsigned status, const char *code, const struct iso_diag *diag)
{
    const struct diag_entry *first = diag->first;
    while (first && first->severity != DIAG_ERROR)
        first = first->next;
    if (!first) {
        api_fail(call, status, code, "", "the change was refused");
        return;
    }
    begin_error(call, status);
    struct text *out = &call->reply.body;
    text_add(out, SLICE("{\"error\":"));
    write_fault(out, code, first->path, first->message);
    const char *joint = ",\"errors\":[";
    for (const struct diag_entry *entry = first; entry; entry = entry->next) {
        if (entry->severity != DIAG_ERROR)
            continue;
        text_add(out, slice_str(joint));
        write_fault(out, NULL, entry->path, entry->message);
        text_add(out, SLICE("}"));
        joint = ",";
    }
    text_add(out, SLICE("]}}\n"));
}

static int hex_digit(char c)
{
    c = ascii_lower(c);
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static struct slice decode_query(struct arena *arena, struct slice raw)
{
    char *out = arena_alloc(arena, raw.len + 1);
    size_t len = 0;
    for (size_t i = 0; i < raw.len; i++) {
        int high = -1, low = -1;
        if (raw.ptr[i] == '%' && i + 2 < raw.len && (high = hex_digit(raw.ptr[i + 1])) >= 0 &&
            (low = hex_digit(raw.ptr[i + 2])) >= 0 && (high || low)) {
            out[len++] = (char)(high << 4 | low);
            i += 2;
        } else {
            out[len++] = raw.ptr[i];
            if (raw.ptr[i] == '+')
                out[len - 1] = ' ';
        }
    }
    return slice_of(out, len);
}

bool api_query(struct api_call *call, const char *name, struct slice *value)
{
    struct slice raw;
    if (!http_query_find(call->request->query, slice_str(name), &raw))
        return false;
    *value = decode_query(&call->arena, raw);
    return true;
}

bool api_query_flag(struct api_call *call, const char *name)
{
    struct slice value;
    return api_query(call, name, &value) &&
           (value.len == 0 || slice_eq(value, SLICE("true")) || slice_eq(value, SLICE("1")));
}

struct slice api_field(struct api_call *call, const char *name)
{
    const struct http_field *field = http_message_find_name(call->request, slice_str(name));
    return field ? http_field_value(field) : (struct slice){0};
}

void api_reply_plain(struct api_call *call)
{
    call->reply.content_type = SLICE("text/plain; charset=utf-8");
}
