/* SPDX-License-Identifier: Apache-2.0 */
/* What one head costs the parser: the best of several rounds, in nanoseconds and per byte. Heads lie in a
 * buffer with other bytes behind them, as in a receive buffer, and are hot in the cache. One head again and
 * again is learned by the branch predictor; the mixed ones, each with other fields of other lengths, are not.
 */
#include "core/clock.h"
#include "http1/parse.h"

#include <stdio.h>

enum { ROUNDS = 30, HEADS_PER_ROUND = 20000 };

static const struct h1_limits limits = {.head_bytes = 16384, .uri_bytes = 8192, .fields = 100};

static const char small[] = "GET /api/v1/items/4711?page=2 HTTP/1.1\r\n"
                            "Host: shop.example:8080\r\n"
                            "User-Agent: curl/8.5.0 test\r\n"
                            "Accept: */*\r\n"
                            "Accept-Encoding: gzip\r\n\r\n";

static const char browser[] =
    "GET /catalogue/shoes/running/index.html?colour=blue&size=44&sort=price HTTP/1.1\r\n"
    "Host: www.shop.example\r\n"
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 "
    "Safari/537.36\r\n"
    "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8\r\n"
    "Accept-Language: en-GB,en;q=0.9,de;q=0.8\r\n"
    "Accept-Encoding: gzip, deflate, br, zstd\r\n"
    "Referer: https://www.shop.example/catalogue/shoes\r\n"
    "Connection: keep-alive\r\n"
    "Cookie: session=0123456789abcdef0123456789abcdef; lb_server=web-3; consent=all\r\n"
    "Upgrade-Insecure-Requests: 1\r\n"
    "Sec-Fetch-Dest: document\r\n"
    "Sec-Fetch-Mode: navigate\r\n"
    "Sec-Fetch-Site: same-origin\r\n"
    "Priority: u=0, i\r\n\r\n";

static const char answer[] = "HTTP/1.1 200 OK\r\n"
                             "Server: nginx\r\n"
                             "Date: Sun, 29 Nov 2026 21:00:00 GMT\r\n"
                             "Content-Type: application/json\r\n"
                             "Content-Length: 512\r\n"
                             "Connection: keep-alive\r\n\r\n";

static struct http_message msg;

static void parse_once(const char *data, size_t len, bool is_response)
{
    size_t used;
    enum http_reject why;
    enum h1_result result = is_response ? h1_parse_response(data, len, &limits, HTTP_GET, &msg, &used, &why)
                                        : h1_parse_request(data, len, &limits, &msg, &used, &why);
    iso_assert(result == H1_COMPLETE);
}

static void report(const char *name, double len, double fields, double ns)
{
    printf("%-22s %6.0f bytes %4.1f fields %8.1f ns per head %6.3f ns per byte\n", name, len, fields, ns,
           ns / len);
}

static void measure(const char *name, const char *text, size_t len, bool is_response)
{
    char buffer[4096];
    memset(buffer, 'x', sizeof(buffer));
    memcpy(buffer, text, len);
    double best_ns = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t begin_ns = clock_mono_ns();
        for (int i = 0; i < HEADS_PER_ROUND; i++)
            parse_once(buffer, len, is_response);
        double ns = (double)(clock_mono_ns() - begin_ns) / HEADS_PER_ROUND;
        if (ns < best_ns)
            best_ns = ns;
    }
    report(name, (double)len, msg.n_fields, best_ns);
}

/* A head of 4 to 13 of the browser's fields, the values cut to some length. */
static size_t mix(char *out, uint32_t *random)
{
    struct slice rest = slice_of(browser, sizeof(browser) - 1 - 2), line;
    size_t at = 0;
    for (int i = 0; slice_next(&rest, '\n', &line) && line.len; i++) {
        *random = *random * 1664525 + 1013904223;
        if (i > 1 && *random >> 30 == 0)
            continue;
        size_t colon = slice_find(line, ':');
        size_t cut = i > 1 && line.len - colon > 12 ? (*random >> 16) % (line.len - colon - 8) : 0;
        memcpy(out + at, line.ptr, line.len - 1 - cut);
        at += line.len - 1 - cut;
        memcpy(out + at, "\r\n", 2);
        at += 2;
    }
    memcpy(out + at, "\r\n", 2);
    return at + 2;
}

static void measure_mixed(void)
{
    enum { MIXED = 512 };
    static char heads[MIXED][1024];
    size_t len[MIXED], bytes = 0;
    uint32_t random = 1, fields = 0;
    for (int i = 0; i < MIXED; i++) {
        len[i] = mix(heads[i], &random);
        bytes += len[i];
        parse_once(heads[i], len[i], false);
        fields += msg.n_fields;
    }
    double best_ns = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t begin_ns = clock_mono_ns();
        for (int i = 0; i < HEADS_PER_ROUND; i++)
            parse_once(heads[i % MIXED], len[i % MIXED], false);
        double ns = (double)(clock_mono_ns() - begin_ns) / HEADS_PER_ROUND;
        if (ns < best_ns)
            best_ns = ns;
    }
    report("mixed requests", (double)bytes / MIXED, (double)fields / MIXED, best_ns);
}

int main(void)
{
    measure("request, 4 fields", small, sizeof(small) - 1, false);
    measure("request of a browser", browser, sizeof(browser) - 1, false);
    measure_mixed();
    measure("response, 5 fields", answer, sizeof(answer) - 1, true);
    return 0;
}
