/* SPDX-License-Identifier: Apache-2.0 */
#include "http2/closed.h"

void http2_closed_note(struct http2_closed *closed, int32_t id, bool by_client)
{
    closed->ids[closed->n++ % HTTP2_CLOSED_KEPT] = by_client ? id : -id;
}

enum http2_closed_by http2_closed_find(const struct http2_closed *closed, int32_t id)
{
    for (uint32_t i = 0; i < HTTP2_CLOSED_KEPT; i++) {
        if (closed->ids[i] == id)
            return HTTP2_CLOSED_BY_CLIENT;
        if (closed->ids[i] == -id)
            return HTTP2_CLOSED_BY_US;
    }
    return closed->n > HTTP2_CLOSED_KEPT ? HTTP2_CLOSED_UNKNOWN : HTTP2_NEVER_OPENED;
}
