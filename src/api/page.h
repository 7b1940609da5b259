/* SPDX-License-Identifier: Apache-2.0 */
/* Long lists in pages, and how times are told. */
#ifndef ISOBAR_API_PAGE_H
#define ISOBAR_API_PAGE_H

#include "api/api.h"

enum { API_PAGE = 100, API_PAGE_MAX = 1000 };

struct api_page {
    uint32_t limit;
    struct slice after; /* the id that the cursor names; ptr NULL: from the start */
};
/* ?limit= and ?cursor=; false with 400 in the call. */
bool api_read_page(struct api_call *call, struct api_page *page);
/* Appends "next_cursor" for the last id of a page; ptr NULL: there is no next. */
void api_write_cursor(struct text *out, struct slice id);

/* "2026-11-30T00:39:04.250Z". */
void api_write_time(struct text *out, uint64_t wall_ms);

#endif
