/* SPDX-License-Identifier: Apache-2.0 */
/* Access log lines from whatever a client sent: in JSON, one valid object on one line; in a format string,
 * printable ASCII on one line; both within the bound. The input is cut at its NUL bytes into texts. */
#include "observe/accesslog_line.h"

#include "core/check.h"

#include <jansson.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static char *write_line(const char *format_text, const struct accesslog_entry *entry, size_t *len)
{
    struct accesslog_clock clock = {0};
    struct accesslog_format *format;
    struct slice what;
    iso_assert(accesslog_format_compile(slice_str(format_text), &format, &what) == ISO_OK);
    size_t bound = accesslog_line_bound(format, entry);
    char *out = malloc(bound); /* of its own size, so that a sanitizer sees a byte too many */
    *len = (size_t)(accesslog_line(out, &clock, format, entry) - out);
    iso_assert(*len > 0 && *len <= bound);
    iso_assert(slice_find(slice_of(out, *len), '\n') == *len - 1);
    accesslog_format_free(format);
    return out;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct accesslog_entry entry = {.wall_ns = 1769860800250999999ull, .protocol = "HTTP/1.1", .reason = "-"};
    struct slice *const texts[] = {&entry.path, &entry.query,      &entry.user_agent, &entry.method,
                                   &entry.host, &entry.request_id, &entry.referer,    &entry.target};
    struct slice rest = slice_of((const char *)bytes, len);
    size_t n;
    for (size_t i = 0; i < iso_countof(texts) && slice_next(&rest, '\0', texts[i]); i++)
        continue;
    char *line = write_line("json", &entry, &n);
    json_t *json = json_loadb(line, n, 0, NULL);
    iso_assert(json != NULL);
    json_decref(json);
    free(line);
    line = write_line("combined", &entry, &n);
    for (size_t i = 0; i + 1 < n; i++)
        iso_assert(line[i] >= 0x20 && line[i] < 0x7f);
    free(line);
    return 0;
}
