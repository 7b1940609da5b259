/* SPDX-License-Identifier: Apache-2.0 */
/* Judges the answer to an HTTP check as its bytes arrive: the head by our own parser, the status by the
 * expected ranges, the body (64 KiB of it at most) by a text it must contain and a pattern it must match.
 * Bounded memory; no socket, no clock. Source: D1; cases C-091 C-098. */
#ifndef ISOBAR_HEALTH_ANSWER_H
#define ISOBAR_HEALTH_ANSWER_H

#include "config/model.h"
#include "health/body_pattern.h"
#include "health/status.h"
#include "http1/parse.h"

enum { ANSWER_HEAD_MAX = 32 << 10, ANSWER_BODY_MAX = 64 << 10 };

struct answer {
    const struct config_health_check *check; /* borrows until answer_fini() */
    const struct body_pattern *pattern;      /* the same; NULL: none */
    bool is_head_request;
    bool in_body;
    bool has_text;        /* expect_body was found, or there is none */
    uint8_t framing;      /* enum http_framing, of a body that is looked at */
    uint16_t http_status; /* 0: no head yet */
    uint32_t head_bytes;  /* of interim answers that were skipped */
    uint64_t left;        /* body bytes to come, when their number is known */
    struct h1_chunked chunked;
    char *bytes; /* owns; the head so far, then the body so far without its framing */
    size_t len, cap;
};

void answer_init(struct answer *answer, const struct config_health_check *check,
                 const struct body_pattern *pattern, bool is_head_request);
void answer_fini(struct answer *answer);
/* True when the answer is decided: OK or the reason against it. More bytes must not follow then. */
bool answer_feed(struct answer *answer, const char *data, size_t len, enum health_reason *reason);
/* The same of a head that came as a message: the body follows by answer_feed(), without framing, and its end
 * by answer_end(). */
bool answer_head(struct answer *answer, const struct http_message *msg, enum health_reason *reason);
/* Keeps bytes in answer->bytes that nobody judges here. */
void answer_keep(struct answer *answer, const char *data, size_t len);
/* The decision when the target has closed its side before answer_feed() had one. */
enum health_reason answer_end(struct answer *answer);

#endif
