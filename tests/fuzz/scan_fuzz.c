/* SPDX-License-Identifier: Apache-2.0 */
/* The vector scans against their scalar twins, from every start within the first bytes, so that each kind of
 * beginning and rest is met. */
#include "http1/scan.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static size_t target_scalar(const char *data, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)data[i] <= 0x20 || (unsigned char)data[i] >= 0x7f || strchr("#?\\", data[i]))
            return i;
    return len;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    const char *data = (const char *)bytes, *end = data + len;
    for (size_t from = 0; from <= len && from < 40; from++) {
        const char *p = data + from;
        size_t want = h1_scan_value_scalar(p, len - from);
        iso_assert(h1_scan_value(p, len - from) == want);
        iso_assert(scan_value(data, p, end) == p + want);
        iso_assert(scan_target(data, p, end) == p + target_scalar(p, len - from));
    }
    return 0;
}
