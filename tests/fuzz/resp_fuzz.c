/* SPDX-License-Identifier: Apache-2.0 */
/* Replies of a Redis that may be none: the whole input as one stream, read reply by reply. What is found lies
 * within the input, and a beginning of a complete reply is never taken for another one. */
#include "shared/resp.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void check_within(struct slice data, struct slice part)
{
    iso_assert(part.len == 0 || (part.ptr >= data.ptr && part.ptr + part.len <= data.ptr + data.len));
    iso_assert(part.len <= RESP_BULK_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct slice data = slice_of((const char *)bytes, len);
    struct resp_value value, shorter;
    size_t used, other;
    while (data.len && resp_parse(data, &value, &used) == RESP_COMPLETE) {
        iso_assert(used > 0 && used <= data.len && value.n <= RESP_ELEMENTS_MAX);
        check_within(data, value.text);
        for (uint32_t i = 0; i < value.n; i++)
            check_within(data, value.elements[i].text);
        for (size_t cut = 0; cut < used && cut < 64; cut++)
            iso_assert(resp_parse(slice_of(data.ptr, cut), &shorter, &other) == RESP_NEED_MORE);
        resp_error_word(&value);
        data = slice_of(data.ptr + used, data.len - used);
    }
    return 0;
}
