/* SPDX-License-Identifier: Apache-2.0 */
#include "shared/fleet.h"

#include "core/clock.h"

#include <stdio.h>
#include <stdlib.h>

/* KEYS[1] holds when the bucket will be full, in microseconds. ARGV: a token's time, the bucket's, requests
 * to charge. A report is charged even when the bucket is empty, up to twice its depth: whoever passed too
 * much waits for it. */
static const char script[] =
    "local t = redis.call('TIME') local now = t[1] * 1000000 + t[2] "
    "local token, depth = tonumber(ARGV[1]), tonumber(ARGV[2]) "
    "local full = math.max(tonumber(redis.call('GET', KEYS[1]) or '0'), now) + ARGV[3] * token "
    "full = math.min(full, now + 2 * depth) "
    "redis.call('SET', KEYS[1], string.format('%.3f', full), 'PX', math.ceil((full - now) / 1000) + 1000) "
    "local left = math.floor((now + depth - full) / token + 0.001) "
    "if left >= 1 then return {left, 0} end "
    "return {0, math.ceil(full + token - depth - now)}";

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

void fleet_report(struct fleet *fleet, struct redis *redis, const struct fleet_bucket *bucket)
{
    uint64_t now_ns = clock_mono_ns();
    char token[32], depth[32], n[16];
    if (!is_known(fleet, bucket->limiter))
        return;
    const struct limiter_policy *policy = limiter_policy(bucket->limiter);
    double token_us = (double)policy->period_ns / policy->requests / NS_PER_US;
    snprintf(token, sizeof(token), "%.6f", token_us);
    snprintf(depth, sizeof(depth), "%.6f", token_us * policy->burst);
    snprintf(n, sizeof(n), "%u", limiter_report(bucket->limiter, bucket->key, now_ns));
    struct slice args[] = {
        SLICE("EVAL"),    slice_str(script), SLICE("1"),  slice_of(bucket->name, bucket->name_len),
        slice_str(token), slice_str(depth),  slice_str(n)};
    struct report *report = malloc(sizeof(*report));
    iso_assert(report != NULL);
    *report = (struct report){fleet, redis, *bucket};
    if (redis && redis_health(redis) == REDIS_GOOD &&
        redis_call(redis, args, iso_countof(args), on_reported, report))
        return;
    limiter_answer(bucket->limiter, bucket->key, now_ns, NULL);
    free(report);
}
