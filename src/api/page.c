/* SPDX-License-Identifier: Apache-2.0 */
#include "api/page.h"

#include <time.h>

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* A cursor is the last id that was shown, in hexadecimal: nobody takes that for something to be made by hand.
 */
static bool read_cursor(struct arena *arena, struct slice cursor, struct slice *id)
{
    enum { CURSOR_MAX = 1000 };
    if (cursor.len == 0 || cursor.len % 2 || cursor.len > CURSOR_MAX)
        return false;
    char *text = arena_alloc(arena, cursor.len / 2 + 1);
    for (size_t i = 0; i < cursor.len; i += 2) {
        int high = hex_digit(cursor.ptr[i]), low = hex_digit(cursor.ptr[i + 1]);
        if (high < 0 || low < 0)
            return false;
        text[i / 2] = (char)(high << 4 | low);
    }
    *id = slice_of(text, cursor.len / 2);
    return true;
}

bool api_read_page(struct api_call *call, struct api_page *page)
{
    struct slice text;
    uint64_t number;
    *page = (struct api_page){.limit = API_PAGE};
    if (api_query(call, "limit", &text)) {
        if (!slice_u64(text, &number) || number == 0) {
            api_fail(call, 400, "invalid", "limit", "is \"%.*s\", expected a whole number from 1 to %d",
                     (int)(text.len < 100 ? text.len : 100), text.ptr, API_PAGE_MAX);
            return false;
        }
        page->limit = number < API_PAGE_MAX ? (uint32_t)number : API_PAGE_MAX;
    }
    if (api_query(call, "cursor", &text) && !read_cursor(&call->arena, text, &page->after)) {
        api_fail(call, 400, "invalid", "cursor", "is not what next_cursor said");
        return false;
    }
    return true;
}

void api_write_cursor(struct text *out, struct slice id)
{
    if (!id.ptr) {
        text_add(out, SLICE("\"next_cursor\":null"));
        return;
    }
    text_add(out, SLICE("\"next_cursor\":\""));
    for (size_t i = 0; i < id.len; i++)
        text_printf(out, "%02x", (unsigned char)id.ptr[i]);
    text_add(out, SLICE("\""));
}

void api_write_time(struct text *out, uint64_t wall_ms)
{
    time_t seconds = (time_t)(wall_ms / 1000);
    char text[40];
    struct tm tm;
    gmtime_r(&seconds, &tm);
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
    text_printf(out, "\"%s.%03uZ\"", text, (unsigned)(wall_ms % 1000));
}
