/* SPDX-License-Identifier: Apache-2.0 */
/* The helpers that take names out of what a client sent: hosts, cookies, query parameters, field and method
 * names. The input is a name, a line feed, and the text to look in. */
#include "http/names.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void check_host(struct slice value)
{
    struct slice host;
    uint16_t port;
    if (!http_host_parse(value, &host, &port))
        return;
    iso_assert(host.len && host.ptr == value.ptr && host.len <= value.len);
    iso_assert(host.len == value.len || value.ptr[host.len] == ':');
    iso_assert(port == 0 || host.len + 2 <= value.len);
    for (size_t i = 0; i < value.len; i++)
        iso_assert(value.ptr[i] > 0x20 && value.ptr[i] < 0x7f && !strchr("\"#,/<>?@\\^`{|}", value.ptr[i]));
    struct slice again;
    uint16_t none;
    iso_assert(http_host_parse(host, &again, &none) && slice_eq(again, host) && none == 0);
}

/* A found value stands behind "name=" or is empty behind the name, at the beginning of a pair. */
static void check_found(struct slice pairs, struct slice name, struct slice value, const char *separators)
{
    iso_assert(value.ptr >= pairs.ptr + name.len && value.ptr + value.len <= pairs.ptr + pairs.len);
    const char *at = value.ptr - name.len;
    if (at > pairs.ptr && memcmp(at - 1, name.ptr, name.len) == 0 && value.ptr[-1] == '=')
        at--;
    iso_assert(memcmp(at, name.ptr, name.len) == 0);
    iso_assert(at == pairs.ptr || strchr(separators, at[-1]));
    iso_assert(!memchr(value.ptr, separators[0], value.len));
}

static void check_names(struct slice text)
{
    enum http_field_id id = http_field_lookup(text);
    for (unsigned other = 1; other < HTTP_FIELD_COUNT; other++) {
        struct slice known = http_field_id_name((enum http_field_id)other);
        iso_assert(slice_caseeq(text, known) == (id == (enum http_field_id)other));
    }
    if (id)
        iso_assert(http_field_lookalike(text) == id);
    http_method_lookup(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct slice text = slice_of((const char *)bytes, len), value;
    size_t line = slice_find(text, '\n');
    struct slice name = slice_of(text.ptr, line);
    if (line < len)
        text = slice_of(text.ptr + line + 1, len - line - 1);
    check_host(text);
    check_names(name);
    if (http_cookie_find(text, name, &value))
        check_found(text, name, value, "; \t");
    if (http_query_find(text, name, &value))
        check_found(text, name, value, "&");
    return 0;
}
