/* SPDX-License-Identifier: Apache-2.0 */
/* The admin pages: from a parsed request to an answer, with nothing of sockets. A page sees the control_view
 * and runs on the control thread, so it may walk the snapshot. */
#ifndef ISOBAR_CONTROL_PAGES_H
#define ISOBAR_CONTROL_PAGES_H

#include "control/control.h"
#include "core/text.h"
#include "http/message.h"

struct page_reply {
    unsigned status;           /* 200 unless the page says otherwise */
    struct slice content_type; /* of the body */
    struct text body;
    struct slice error_code; /* set: an error; the body is its message */
    struct slice allow;      /* of a 405 */
};

void page_reply_init(struct page_reply *reply);
void page_reply_fini(struct page_reply *reply);
/* Makes the reply an error: JSON {"error": {"code", "message"}}. */
void page_reply_error(struct page_reply *reply, unsigned status, struct slice code, const char *message);

/* Answers any request that was parsed: 404 and 405 included. Threads: control. */
void page_answer(const struct control_view *view, struct http_message *request, struct page_reply *reply);

#endif
