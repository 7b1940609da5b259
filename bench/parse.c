/* SPDX-License-Identifier: Apache-2.0 */
/* What one head costs the parser: the best of several rounds, in nanoseconds and per byte. Heads lie in a
 * buffer with other bytes behind them, as in a receive buffer, and are hot in the cache. */
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
    printf("%-22s %5zu bytes %3u fields %8.1f ns per head %6.3f ns per byte\n", name, len, msg.n_fields,
           best_ns, best_ns / (double)len);
}

int main(void)
{
    measure("request, 4 fields", small, sizeof(small) - 1, false);
    measure("request of a browser", browser, sizeof(browser) - 1, false);
    measure("response, 5 fields", answer, sizeof(answer) - 1, true);
    return 0;
}
