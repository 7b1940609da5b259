/* SPDX-License-Identifier: Apache-2.0 */
/* A token's JSON: what is found in a valid object lies within it, and nothing is read beyond it. */
#include "guard/claims.h"

#include "core/check.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static const char *const names[] = {"alg", "kid", "exp", "aud", "a", ""};
    char *copy = malloc(len + 1),
         *room = malloc(len + 16); /* exact, so that a sanitizer sees every step beyond */
    iso_assert(copy && room);
    memcpy(copy, bytes, len);
    struct slice json = slice_of(copy, len), out;
    struct scratch scratch = {room, room + len + 16};
    if (claims_decode64(json, &scratch, &out))
        iso_assert(out.len <= len);
    for (size_t i = 0; claims_are_valid(json) && i < iso_countof(names); i++) {
        struct claim claim;
        uint64_t seconds;
        if (!claims_find(json, slice_str(names[i]), &claim))
            continue;
        iso_assert(claim.raw.ptr >= copy && claim.raw.ptr + claim.raw.len <= copy + len);
        scratch = (struct scratch){room, room + len + 16};
        (void)claim_has_text(&claim, SLICE("x"), scratch);
        if (claim.kind == CLAIM_TEXT)
            iso_assert(claim_text(&claim, &scratch, &out) && out.len <= claim.raw.len);
        if (claim.kind == CLAIM_NUMBER)
            (void)claim_seconds(&claim, &seconds);
    }
    free(copy);
    free(room);
    return 0;
}
