/* SPDX-License-Identifier: Apache-2.0 */
/* The search for the end of a field value, 32 bytes at a time where the machine has AVX2, else 16. The
 * variant is chosen once, before main() runs. No variant reads outside data[0..len). */
#include "http1/scan.h"

size_t h1_scan_value_scalar(const char *data, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)data[i];
        if ((c < 0x20 && c != '\t') || c == 0x7f)
            return i;
    }
    return len;
}

#ifdef __SSE2__
#include <immintrin.h>

static size_t scan_sse2(const char *data, size_t len)
{
    size_t at = 0;
    if (len < 16)
        return h1_scan_value_scalar(data, len);
    for (; len - at >= 16; at += 16) {
        unsigned stops = scan_value_block(data + at);
        if (stops)
            return at + (size_t)__builtin_ctz(stops);
    }
    if (at == len)
        return len;
    unsigned stops = scan_value_block(data + len - 16) >> (16 - (len - at));
    return stops ? at + (size_t)__builtin_ctz(stops) : len;
}

__attribute__((target("avx2"))) static inline unsigned value_block_avx2(const char *data)
{
    __m256i v = _mm256_loadu_si256((const __m256i *)(const void *)data);
    __m256i control = _mm256_cmpeq_epi8(_mm256_min_epu8(v, _mm256_set1_epi8(0x1f)), v);
    __m256i tab = _mm256_cmpeq_epi8(v, _mm256_set1_epi8('\t'));
    __m256i del = _mm256_cmpeq_epi8(v, _mm256_set1_epi8(0x7f));
    return (unsigned)_mm256_movemask_epi8(_mm256_or_si256(_mm256_andnot_si256(tab, control), del));
}

__attribute__((target("avx2"))) static size_t scan_avx2(const char *data, size_t len)
{
    size_t at = 0;
    if (len < 32)
        return scan_sse2(data, len);
    for (; len - at >= 32; at += 32) {
        unsigned stops = value_block_avx2(data + at);
        if (stops)
            return at + (size_t)__builtin_ctz(stops);
    }
    if (at == len)
        return len;
    unsigned stops = value_block_avx2(data + len - 32) >> (32 - (len - at));
    return stops ? at + (size_t)__builtin_ctz(stops) : len;
}

static size_t (*chosen)(const char *data, size_t len) = scan_sse2;

__attribute__((constructor)) static void choose_scan(void)
{
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2"))
        chosen = scan_avx2;
}

size_t h1_scan_value(const char *data, size_t len)
{
    return chosen(data, len);
}
#else
size_t h1_scan_value(const char *data, size_t len)
{
    return h1_scan_value_scalar(data, len);
}
#endif
