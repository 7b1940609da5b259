/* SPDX-License-Identifier: Apache-2.0 */
/* How often a client may do what costs us more than it: so many at once, and so many a second on top. Those
 * of ordinary clients are far below (a browser that leaves a page resets what it had open; a gRPC client
 * pings every few seconds), those of floods far above. Source: CVE-2023-44487, CVE-2019-9512 to 9518; RFC
 * 9113 10.5; cases C-051 C-053. */
#ifndef ISOBAR_HTTP2_BUDGET_H
#define ISOBAR_HTTP2_BUDGET_H

#include "http2/server.h"

struct http2_budget {
    uint32_t left;
    uint64_t filled_ns; /* up to this time the budget has been refilled */
};

void http2_budget_init(struct http2_budget *budget, enum http2_flood what, uint64_t now_ns);
/* False: it is spent. */
bool http2_budget_take(struct http2_budget *budget, enum http2_flood what, uint64_t now_ns);

#endif
