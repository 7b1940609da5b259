/* SPDX-License-Identifier: Apache-2.0 */
/* Answers to a health check: judged at once and in pieces, with the same verdict, in bounded memory. The
 * first byte of the input is the length of the pieces; its highest bit asks for a body. */
#include "health/answer.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static struct config_status_range good[] = {{200, 399}};

struct verdict {
    enum health_reason reason;
    unsigned status;
    bool in_body;
};

static struct verdict judge(const struct config_health_check *check, const char *data, size_t len,
                            size_t step)
{
    struct answer answer;
    struct verdict verdict = {HEALTH_REASON_NONE, 0, false};
    bool is_decided = false;
    answer_init(&answer, check, NULL, false);
    for (size_t at = 0; at < len && !is_decided; at += step) {
        size_t n = len - at < step ? len - at : step;
        char *piece = malloc(n);
        memcpy(piece, data + at, n);
        is_decided = answer_feed(&answer, piece, n, &verdict.reason);
        free(piece);
        iso_assert(answer.len <= ANSWER_HEAD_MAX + ANSWER_BODY_MAX + len);
    }
    if (!is_decided)
        verdict.reason = answer_end(&answer);
    verdict.status = answer.http_status;
    verdict.in_body = answer.in_body;
    answer_fini(&answer);
    return verdict;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    if (len < 1)
        return 0;
    struct config_health_check check = {.type = CONFIG_HEALTH_HTTP, .expect = good, .n_expect = 1};
    if (bytes[0] & 0x80)
        check.expect_body = SLICE("ok");
    const char *data = (const char *)bytes + 1;
    struct verdict whole = judge(&check, data, len - 1, len);
    struct verdict pieces = judge(&check, data, len - 1, (bytes[0] & 0x7f) + 1u);
    iso_assert(whole.status == pieces.status && whole.in_body == pieces.in_body);
    /* A coding that breaks behind the text is seen only by the reader that got both at once. */
    bool is_late =
        whole.reason == HEALTH_REASON_INVALID && pieces.reason == HEALTH_REASON_OK && whole.in_body;
    iso_assert(whole.reason == pieces.reason || is_late);
    return 0;
}
