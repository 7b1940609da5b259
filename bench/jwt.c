/* SPDX-License-Identifier: Apache-2.0 */
/* What a token costs a request (guard/jwt), verified each time and known to the worker's cache: the best of
 * several rounds, in nanoseconds. The keys are of this file alone. */
#include "core/clock.h"
#include "guard/jwt.h"
#include "guard/jwt_cache.h"
#include "http1/parse.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ROUNDS = 20, TURNS = 2000 };

static const char jwks[] =
    "{\"keys\": [{\"kty\": \"RSA\", \"kid\": \"r\", \"alg\": \"RS256\", \"use\": \"sig\", \"n\": "
    "\"pfLGxX-IUbjMejI"
    "3Oi-xAa_uASg0saVvKpO3x2RH1dpG_KnoG-UXS4t75asoEl07Oll89KIOAZ_jFVT7RA4-QOOdR5Q37wdIdV-cTIC"
    "jhkOb7DMNbQHNjQ8ijfRIEuYie-H9yJRDWwJ_akvkhSrPuOmDeu-Wntd3JUCQgNq_vrlIQsturEhe9jsfI8dxGO5"
    "TYKcW6P_eeFkGh2uSZTheoKOqrFQ2uGkW-1Uc6VKjX2B7k2QP5i5PQIxoEmlBCJFyA2JY2u_WK86eIJ6wNIaaw6H"
    "LhUgNlO39scIzG_-ntkEsaNRes8NH8URKHBkSfwU3xeHkY-gSR6oRfH9qd-T6mQ\", \"e\": \"AQAB\"}, {\"kty\": "
    "\"EC\", \"kid\": \"e\", \"crv\": \"P-256\", \"x\": \"mkyOwNysYauJn4Rx0whZiHkpfGbJzIz1VeJKF7BAnRA\", "
    "\"y\": \"hodXGYox5_IDKmzi8-KTzufwxe3PUyFOzFL1agTib4Y\"}, {\"kty\": \"oct\", \"kid\": \"h\", \"k\": "
    "\"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY\"}]}";

static const char *const tokens[] = {
    /* RS256 */
    "eyJhbGciOiAiUlMyNTYiLCAia2lkIjogInIifQ.eyJzdWIiOiAiYWxpY2UifQ.QZHEcc75uBTTbuPlw0Dy-S5OUs"
    "tAVzpDftfYKV8WNnLgLI2y9ISTUYU4u8JmZo4Ury6BluTZvxIY1AR5AiSczw-BWMD58q-IdLz9ezBq4QUIX_rM9N"
    "P18P3Kbi37BL0L4jBJuRRw9pG3KZugW9h_NU0bWmrcKBS1zC_LBopiFIBNwNxUflltNdrDWiOKRam_45Oh0IqTmS"
    "J7OwnF_TzIVaAfauyPTfloIwGoeNEIGOvOPrMnDrIouaEoqEalXmBLD-re5Dvdy6fg_ZFRRVR6jyg5qy8o5_RL-b"
    "WSB9e2pzWbLGL0-hWrnCP0Fw5mKTA8NVd7U_s6cNvuaxzjEoLYIg",
    /* ES256 */
    "eyJhbGciOiAiRVMyNTYiLCAia2lkIjogImUifQ.eyJzdWIiOiAiYWxpY2UifQ.sa4uoI8mzNMwOKXg70-VcK7z5a"
    "VfzFV5oX4HMI_LesCC4Rma6TX7L6jQg8wF9j9wP5sN0F7T1TWmY7lo55doew",
    /* HS256 */
    "eyJhbGciOiAiSFMyNTYiLCAia2lkIjogImgifQ.eyJzdWIiOiAiYWxpY2UifQ.Xxf-kBH5dYItMccEuflIGMkmm5"
    "o3ZW62SHVbTpGZUlA",
    /* RS256 */
    "eyJhbGciOiAiUlMyNTYiLCAia2lkIjogInIifQ.eyJzdWIiOiAiYWxpY2UiLCAiZ3JvdXBzIjogWyJnMCIsICJnM"
    "SIsICJnMiIsICJnMyIsICJnNCIsICJnNSIsICJnNiIsICJnNyIsICJnOCIsICJnOSIsICJnMTAiLCAiZzExIiwgI"
    "mcxMiIsICJnMTMiLCAiZzE0IiwgImcxNSIsICJnMTYiLCAiZzE3IiwgImcxOCIsICJnMTkiLCAiZzIwIiwgImcyM"
    "SIsICJnMjIiLCAiZzIzIiwgImcyNCIsICJnMjUiLCAiZzI2IiwgImcyNyIsICJnMjgiLCAiZzI5IiwgImczMCIsI"
    "CJnMzEiLCAiZzMyIiwgImczMyIsICJnMzQiLCAiZzM1IiwgImczNiIsICJnMzciLCAiZzM4IiwgImczOSIsICJnN"
    "DAiLCAiZzQxIiwgImc0MiIsICJnNDMiLCAiZzQ0IiwgImc0NSIsICJnNDYiLCAiZzQ3IiwgImc0OCIsICJnNDkiL"
    "CAiZzUwIiwgImc1MSIsICJnNTIiLCAiZzUzIiwgImc1NCIsICJnNTUiLCAiZzU2IiwgImc1NyIsICJnNTgiLCAiZ"
    "zU5Il19.OeBFGZ7aV74obd6A9s4OeV9a2MQLQryAhuxSqk5hY87qq_eTLTzg12C-u3ZgCeVTPYbmEbb_YWiS4SXE"
    "yz_KvCSj54bI966snWuw7QCMeosDp-Z6tcRXVwBAKi9GQba7XvsndXhdRgdEj54B8PRYNnhzmp61TlkFAZaVQyWn"
    "OWUxpJIHiIJQNS9GJEClHQ_o0g6tcBJrznRYglF8EZU2M1OC6DGX0AtANnwqhK9C79_DUVBokzv_fyjZwvmKH3H1"
    "iGz7mVAGojjmjsuPNqC_okRw8F8VNoq1T_vV-Fy4shKr27LYJnRwZ-9E2wNDny-AkGM2w87fTfvcMEuzQ23UtA"};

static char room[JWT_ROOM_BYTES];
static struct http_message msg;

static double measure(const struct jwt_verifier *verifier, const struct config_jwt *config, const char *head,
                      struct jwt_cache *cache)
{
    static const struct h1_limits limits = {.head_bytes = 16384, .uri_bytes = 8192, .fields = 100};
    double best = 1e18;
    size_t used;
    enum http_reject why;
    iso_assert(h1_parse_request(head, strlen(head), &limits, &msg, &used, &why) == H1_COMPLETE);
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t begun_ns = clock_mono_ns(), now_s = clock_wall_ns() / NS_PER_S;
        for (int i = 0; i < TURNS; i++)
            iso_assert(jwt_check(verifier, config, now_s, &msg, room, cache) == END_NORMAL);
        double ns = (double)(clock_mono_ns() - begun_ns) / TURNS;
        best = ns < best ? ns : best;
    }
    return best;
}

/* Keys come from files only. */
static void write_keys(char *path)
{
    int fd = mkstemp(path);
    iso_assert(fd >= 0 && write(fd, jwks, sizeof(jwks) - 1) == sizeof(jwks) - 1);
    close(fd);
}

int main(void)
{
    char path[] = "/tmp/bench_jwt_XXXXXX", head[16384];
    struct snapshot snapshot = {0};
    struct config_rule rule = {.jwt = {.set = true, .jwks_file = slice_str(path)}};
    struct config_listener config = {.rules = &rule, .n_rules = 1};
    struct snap_listener listener = {.config = &config};
    struct jwt_cache *cache = jwt_cache_new();
    struct iso_diag diag;
    arena_init(&snapshot.arena);
    diag_init(&diag);
    write_keys(path);
    iso_err err = jwt_build(&snapshot, &listener, NULL, &diag);
    iso_assert(!err);
    unlink(path);
    for (size_t i = 0; i < iso_countof(tokens); i++) {
        snprintf(head, sizeof(head), "GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\n\r\n",
                 tokens[i]);
        printf("token of %4zu bytes: verified %8.0f ns, known %8.0f ns\n", strlen(tokens[i]),
               measure(listener.rule_jwt[0], &rule.jwt, head, NULL),
               measure(listener.rule_jwt[0], &rule.jwt, head, cache));
    }
    jwt_cache_free(&cache);
    jwt_unref(&listener.rule_jwt[0]);
    arena_fini(&snapshot.arena);
    diag_fini(&diag);
    return 0;
}
