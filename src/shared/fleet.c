/* SPDX-License-Identifier: Apache-2.0 */
#include "shared/fleet.h"

#include "core/clock.h"

#include <stdio.h>
#include <stdlib.h>

/* KEYS[1] holds when the bucket will be full, in microseconds. ARGV: a token's time, the bucket's, requests
 * to charge. A report is charged even when the bucket is empty, up to twice its depth: whoever passed too
 * much waits for it. */
static const char bucket_script[] =
    "local t = redis.call('TIME') local now = t[1] * 1000000 + t[2] "
    "local token, depth = tonumber(ARGV[1]), tonumber(ARGV[2]) "
    "local full = math.max(tonumber(redis.call('GET', KEYS[1]) or '0'), now) + ARGV[3] * token "
    "full = math.min(full, now + 2 * depth) "
    "redis.call('SET', KEYS[1], string.format('%.3f', full), 'PX', math.ceil((full - now) / 1000) + 1000) "
    "local left = math.floor((now + depth - full) / token + 0.001) "
    "if left >= 1 then return {left, 0} end "
    "return {0, math.ceil(full + token - depth - now)}";

/* KEYS[1] is a hash of pieces, as shared/limiter has them: number and requests. ARGV: requests of a window, a
 * piece in microseconds, requests to charge. The walk over the pieces to come says when one will have left
 * far enough. */
static const char window_script[] =
    "local t = redis.call('TIME') local now = t[1] * 1000000 + t[2] "
    "local limit, piece = tonumber(ARGV[1]), tonumber(ARGV[2]) "
    "local number = math.floor(now / piece) local into = now - number * piece "
    "if tonumber(ARGV[3]) > 0 then redis.call('HINCRBY', KEYS[1], string.format('%.0f', number), ARGV[3]) "
    "redis.call('PEXPIRE', KEYS[1], math.ceil(piece * 8 / 1000) + 1000) end "
    "local all, pieces, wait = redis.call('HGETALL', KEYS[1]), {}, 0 "
    "for i = 1, #all, 2 do local k = tonumber(all[i]) "
    "if number - k > 7 then redis.call('HDEL', KEYS[1], all[i]) else pieces[k] = tonumber(all[i + 1]) end "
    "end "
    "for step = 0, 8 do local whole, leaving = 0, pieces[number + step - 7] or 0 "
    "for i = 0, 6 do whole = whole + (pieces[number + step - i] or 0) end "
    "if whole < limit then "
    "local left = limit - whole - math.floor(leaving * (piece - into) / piece) "
    "if left >= 1 and step == 0 then return {left, 0} end "
    "local free = 0 if leaving > 0 then free = piece - ((limit - whole) * piece - 1) / leaving end "
    "return {0, math.ceil(wait + math.max(free - into, 0))} end "
    "wait = wait + piece - into into = 0 end "
    "return {0, math.ceil(wait)}";

struct fleet {
    struct loop *loop;
    struct limiter **limiters; /* owns the array */
    uint32_t n_limiters;
};

struct report {
    struct fleet *fleet;
    struct redis *redis; /* that it was sent to */
    struct fleet_bucket bucket;
};

struct fleet *fleet_new(struct loop *loop)
{
    struct fleet *fleet = calloc(1, sizeof(*fleet));
    iso_assert(fleet != NULL);
    fleet->loop = loop;
    return fleet;
}

void fleet_free(struct fleet **fleet)
{
    if (*fleet)
        free((*fleet)->limiters);
    free(*fleet);
    *fleet = NULL;
}

void fleet_set_limiters(struct fleet *fleet, struct limiter **limiters, uint32_t n)
{
    free(fleet->limiters);
    fleet->limiters = limiters;
    fleet->n_limiters = n;
}

static bool is_known(const struct fleet *fleet, const struct limiter *limiter)
{
    for (uint32_t i = 0; i < fleet->n_limiters; i++)
        if (fleet->limiters[i] == limiter)
            return true;
    return false;
}

static const struct limiter_left *read_left(const struct resp_value *reply, struct limiter_left *left)
{
    if (!reply || reply->type != RESP_ARRAY || reply->n != 2 || reply->elements[0].type != RESP_INTEGER ||
        reply->elements[1].type != RESP_INTEGER)
        return NULL;
    int64_t tokens = reply->elements[0].integer, retry_us = reply->elements[1].integer;
    if (tokens < 0 || tokens > LIMITER_REQUESTS_MAX || retry_us < 0 ||
        retry_us > (int64_t)(2 * LIMITER_REFILL_MAX_S * 1000000))
        return NULL;
    *left = (struct limiter_left){(uint32_t)tokens, (uint64_t)retry_us * NS_PER_US};
    return left;
}

static void on_reported(void *owner, void *arg, const struct resp_value *reply)
{
    struct report *report = arg;
    struct fleet *fleet = report->fleet;
    struct fleet_bucket *bucket = &report->bucket;
    struct limiter_left left;
    if (is_known(fleet, bucket->limiter) &&
        limiter_answer(bucket->limiter, bucket->key, clock_mono_ns(), read_left(reply, &left)))
        fleet_report(fleet, report->redis, bucket);
    free(report);
}

/* The script, and the two numbers that tell it of the limit. */
static const char *print_policy(const struct limiter_policy *policy, char first[32], char second[32])
{
    double token_us = (double)policy->period_ns / policy->requests / NS_PER_US;
    if (policy->algorithm == LIMITER_SLIDING_WINDOW) {
        snprintf(first, 32, "%u", policy->requests);
        snprintf(second, 32, "%.0f", (double)limiter_piece_ns(policy) / NS_PER_US);
        return window_script;
    }
    snprintf(first, 32, "%.6f", token_us);
    snprintf(second, 32, "%.6f", token_us * policy->burst);
    return bucket_script;
}

void fleet_report(struct fleet *fleet, struct redis *redis, const struct fleet_bucket *bucket)
{
    uint64_t now_ns = clock_mono_ns();
    char first[32], second[32], n[16];
    if (!is_known(fleet, bucket->limiter))
        return;
    const struct limiter_policy *policy = limiter_policy(bucket->limiter);
    const char *script = print_policy(policy, first, second);
    snprintf(n, sizeof(n), "%u", limiter_report(bucket->limiter, bucket->key, now_ns));
    struct slice args[] = {
        SLICE("EVAL"),    slice_str(script), SLICE("1"),  slice_of(bucket->name, bucket->name_len),
        slice_str(first), slice_str(second), slice_str(n)};
    struct report *report = malloc(sizeof(*report));
    iso_assert(report != NULL);
    *report = (struct report){fleet, redis, *bucket};
    if (redis && redis_health(redis) == REDIS_GOOD &&
        redis_call(redis, args, iso_countof(args), on_reported, report))
        return;
    limiter_answer(bucket->limiter, bucket->key, now_ns, NULL);
    free(report);
}
