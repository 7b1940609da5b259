/* SPDX-License-Identifier: Apache-2.0 */
/* The first blocks of a scan, inlined into the parsers: most field values and targets end within 32 bytes, so
 * that a call would cost more than the search. `floor` is the beginning of the buffer: with 16 readable bytes
 * between it and `end`, a rest shorter than a block is covered by a load that ends at `end`. Never reads
 * outside floor..end. */
#ifndef ISOBAR_HTTP1_SCAN_H
#define ISOBAR_HTTP1_SCAN_H

#include "http1/parse.h"

#ifdef __SSE2__
#include <emmintrin.h>

/* Bit i: byte i may not stand in a field value. */
static inline unsigned scan_value_block(const char *data)
{
    __m128i v = _mm_loadu_si128((const __m128i *)(const void *)data);
    __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(v, _mm_set1_epi8(0x1f)), v);
    __m128i tab = _mm_cmpeq_epi8(v, _mm_set1_epi8('\t'));
    __m128i del = _mm_cmpeq_epi8(v, _mm_set1_epi8(0x7f));
    return (unsigned)_mm_movemask_epi8(_mm_or_si128(_mm_andnot_si128(tab, control), del));
}

/* Bit i: byte i ends a run of plain target bytes (see h1_scan_target). */
static inline unsigned scan_target_block(const char *data)
{
    __m128i v = _mm_loadu_si128((const __m128i *)(const void *)data);
    __m128i low = _mm_cmpeq_epi8(_mm_min_epu8(v, _mm_set1_epi8(0x20)), v);
    __m128i high = _mm_cmpeq_epi8(_mm_max_epu8(v, _mm_set1_epi8(0x7f)), v);
    __m128i hash = _mm_cmpeq_epi8(v, _mm_set1_epi8('#')), query = _mm_cmpeq_epi8(v, _mm_set1_epi8('?'));
    __m128i backslash = _mm_cmpeq_epi8(v, _mm_set1_epi8('\\'));
    return (unsigned)_mm_movemask_epi8(
        _mm_or_si128(_mm_or_si128(low, high), _mm_or_si128(_mm_or_si128(hash, query), backslash)));
}
#endif

/* Like h1_scan_value(p, end - p). */
static inline const char *scan_value(const char *floor, const char *p, const char *end)
{
#ifdef __SSE2__
    if (iso_likely(end - p >= 32)) {
        unsigned stops = scan_value_block(p) | scan_value_block(p + 16) << 16;
        if (stops)
            return p + __builtin_ctz(stops);
        p += 32;
    }
    if (end - p < 16 && end - floor >= 16) {
        unsigned stops = scan_value_block(end - 16) >> (16 - (end - p));
        return stops ? p + __builtin_ctz(stops) : end;
    }
#endif
    return p + h1_scan_value(p, (size_t)(end - p));
}

/* The first byte in p..end that is no plain target byte: a control, a space, '#', '?', '\\', DEL or one above
 * it; or `end`. */
static inline const char *scan_target(const char *floor, const char *p, const char *end)
{
#ifdef __SSE2__
    for (; end - p >= 16; p += 16) {
        unsigned stops = scan_target_block(p);
        if (stops)
            return p + __builtin_ctz(stops);
    }
    if (end > p && end - floor >= 16) {
        unsigned stops = scan_target_block(end - 16) >> (16 - (end - p));
        return stops ? p + __builtin_ctz(stops) : end;
    }
#endif
    for (; p < end; p++) {
        unsigned char c = (unsigned char)*p;
        if (c <= 0x20 || c >= 0x7f || c == '#' || c == '?' || c == '\\')
            break;
    }
    return p;
}

#endif
