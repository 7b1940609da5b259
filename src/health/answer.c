/* SPDX-License-Identifier: Apache-2.0 */
#include "health/answer.h"

#include <stdlib.h>

static const struct h1_limits limits = {
    .head_bytes = ANSWER_HEAD_MAX, .uri_bytes = ANSWER_HEAD_MAX, .fields = 256};

void answer_init(struct answer *answer, const struct config_health_check *check,
                 const struct body_pattern *pattern, bool is_head_request)
{
    *answer = (struct answer){.check = check,
                              .pattern = pattern,
                              .is_head_request = is_head_request,
                              .has_text = check->expect_body.len == 0};
}

void answer_fini(struct answer *answer)
{
    free(answer->bytes);
    answer->bytes = NULL;
}

void answer_keep(struct answer *answer, const char *data, size_t len)
{
    if (answer->len + len >= answer->cap) { /* also for no bytes: there is memory from here on */
        answer->cap = (answer->len + len) * 2 + 64;
        answer->bytes = realloc(answer->bytes, answer->cap);
        iso_assert(answer->bytes != NULL);
    }
    memcpy(answer->bytes + answer->len, data, len);
    answer->len += len;
}

static bool is_expected(const struct config_health_check *check, unsigned status)
{
    for (uint32_t i = 0; i < check->n_expect; i++)
        if (status >= check->expect[i].from && status <= check->expect[i].to)
            return true;
    return false;
}

static bool decide(enum health_reason *reason, enum health_reason is)
{
    *reason = is;
    return true;
}

/* Looks for the text in the body, whose bytes from `from` on are new. */
static bool search(const struct answer *answer, size_t from)
{
    struct slice want = answer->check->expect_body;
    from = from > want.len - 1 ? from - (want.len - 1) : 0;
    return memmem(answer->bytes + from, answer->len - from, want.ptr, want.len) != NULL;
}

/* Takes the framing off the `len` bytes behind answer->len and keeps the body's; false when it is broken. */
static bool take_body(struct answer *answer, size_t len, bool *is_over)
{
    size_t used, body = len;
    enum http_reject why;
    switch ((enum http_framing)answer->framing) {
    case HTTP_BODY_NONE:
        body = 0;
        *is_over = true;
        break;
    case HTTP_BODY_LENGTH:
        body = len < answer->left ? len : (size_t)answer->left;
        answer->left -= body;
        *is_over = answer->left == 0;
        break;
    case HTTP_BODY_CHUNKED: {
        enum h1_chunked_result result =
            h1_chunked_decode(&answer->chunked, answer->bytes + answer->len, len, &used, &body, &why);
        if (result == H1_CHUNKED_REJECTED)
            return false;
        *is_over = result == H1_CHUNKED_DATA_END;
        break;
    }
    case HTTP_BODY_UNTIL_CLOSE:
        break;
    }
    answer->len += body;
    return true;
}

/* A pattern may ask where the body ends, so it waits until it has. */
static enum health_reason judge_body(const struct answer *answer)
{
    struct slice body = slice_of(answer->bytes, answer->len);
    bool is_good = answer->has_text && (!answer->pattern || body_pattern_matches(answer->pattern, body));
    return is_good ? HEALTH_REASON_OK : HEALTH_REASON_BODY;
}

static bool feed_body(struct answer *answer, const char *data, size_t len, enum health_reason *reason)
{
    bool is_over = false;
    size_t before = answer->len;
    answer_keep(answer, data, len);
    answer->len = before;
    if (!take_body(answer, len, &is_over))
        return decide(reason, HEALTH_REASON_INVALID);
    bool is_full = answer->len >= ANSWER_BODY_MAX;
    if (is_full)
        answer->len = ANSWER_BODY_MAX;
    answer->has_text = answer->has_text || search(answer, before);
    if (is_over || is_full || (answer->has_text && !answer->pattern))
        return decide(reason, judge_body(answer));
    return false;
}

bool answer_head(struct answer *answer, const struct http_message *msg, enum health_reason *reason)
{
    answer->http_status = msg->status;
    answer->in_body = true;
    answer->framing = HTTP_BODY_UNTIL_CLOSE;
    if (!is_expected(answer->check, msg->status))
        return decide(reason, HEALTH_REASON_STATUS);
    return answer->has_text && !answer->pattern ? decide(reason, HEALTH_REASON_OK) : false;
}

static bool judge_head(struct answer *answer, const struct http_message *msg, size_t used,
                       enum health_reason *reason)
{
    if (answer_head(answer, msg, reason))
        return true;
    answer->framing = msg->framing;
    answer->left = msg->content_length;
    /* What came behind the head is the first of the body: fed from a copy, since it is decoded in place. */
    char *head = answer->bytes;
    size_t rest = answer->len - used;
    answer->bytes = NULL;
    answer->len = answer->cap = 0;
    bool is_decided = feed_body(answer, head + used, rest, reason);
    free(head);
    return is_decided;
}

static bool feed_head(struct answer *answer, enum health_reason *reason)
{
    enum http_method method = answer->is_head_request ? HTTP_HEAD : HTTP_GET;
    for (;;) {
        struct http_message msg;
        size_t used;
        enum http_reject why;
        switch (h1_parse_response(answer->bytes, answer->len, &limits, method, &msg, &used, &why)) {
        case H1_REJECTED:
            return decide(reason, HEALTH_REASON_INVALID);
        case H1_INCOMPLETE:
            return answer->len + answer->head_bytes > ANSWER_HEAD_MAX ? decide(reason, HEALTH_REASON_INVALID)
                                                                      : false;
        case H1_COMPLETE:
            break;
        }
        if (msg.status >= 200 || msg.status == 101)
            return judge_head(answer, &msg, used, reason);
        /* An interim answer (100, 103): the real one is behind it. RFC 9110 15.2. */
        answer->head_bytes += (uint32_t)used;
        answer->len -= used;
        memmove(answer->bytes, answer->bytes + used, answer->len);
        if (answer->len == 0)
            return false;
    }
}

bool answer_feed(struct answer *answer, const char *data, size_t len, enum health_reason *reason)
{
    if (len == 0)
        return false;
    if (answer->in_body)
        return feed_body(answer, data, len, reason);
    answer_keep(answer, data, len);
    /* Only a line end can complete anything: a head that comes byte by byte is not parsed for each. */
    if (slice_find(slice_of(data, len), '\n') == len && answer->len + answer->head_bytes <= ANSWER_HEAD_MAX)
        return false;
    return feed_head(answer, reason);
}

enum health_reason answer_end(struct answer *answer)
{
    enum health_reason reason = HEALTH_REASON_CLOSED;
    if (answer->in_body)
        return answer->framing == HTTP_BODY_UNTIL_CLOSE ? judge_body(answer) : HEALTH_REASON_CLOSED;
    if (answer->len)
        feed_head(answer, &reason);
    return reason;
}
