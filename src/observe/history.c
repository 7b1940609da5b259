/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/history.h"

#include "core/check.h"
#include "core/hash.h"

#include <stdlib.h>

enum { SLOTS = 2 * HISTORY_SERIES_MAX, NAME_MAX_BYTES = 150 };

struct step {
    uint32_t requests, errors, active;
    float latency_ms;
};

/* A mark is where the counters stood at the end of a step. */
struct mark {
    struct history_totals totals;
    uint64_t mono_ms;
};

struct history_series {
    struct step steps[HISTORY_STEPS]; /* ring; at sequence % HISTORY_STEPS */
    struct mark last, before;
    uint64_t first; /* sequence of its first complete step */
    uint64_t fed;   /* sequence of the step that last fed it */
    uint32_t name_len;
    char name[NAME_MAX_BYTES];
};

_Static_assert(sizeof(struct history_series) <= HISTORY_SERIES_BYTES, "docs/api-servers.md says so");

struct history {
    uint64_t sequence; /* of the step that the last history_begin() ended; 0: none yet */
    uint64_t mono_ms, wall_ms;
    struct {
        uint64_t wall_ms;
        uint32_t span_ms;
    } ends[HISTORY_STEPS];
    struct history_series *slots[SLOTS]; /* owns; open addressing */
    uint32_t n;
};

struct history *history_new(void)
{
    struct history *history = calloc(1, sizeof(*history));
    iso_assert(history != NULL);
    return history;
}

void history_free(struct history **taken)
{
    struct history *history = *taken;
    *taken = NULL;
    if (!history)
        return;
    for (uint32_t i = 0; i < SLOTS; i++)
        free(history->slots[i]);
    free(history);
}

/* The slot of the name, or the free one where it would go. A longer name than is kept goes by its beginning
 * and counts as another series only if that differs. */
static uint32_t slot_of(const struct history *history, struct slice name)
{
    if (name.len > NAME_MAX_BYTES)
        name.len = NAME_MAX_BYTES;
    uint32_t at = (uint32_t)(iso_hash64(name, 0) % SLOTS);
    while (history->slots[at] &&
           !slice_eq(slice_of(history->slots[at]->name, history->slots[at]->name_len), name))
        at = (at + 1) % SLOTS;
    return at;
}

void history_begin(struct history *history, uint64_t mono_ms, uint64_t wall_ms)
{
    uint64_t sequence = ++history->sequence;
    history->ends[sequence % HISTORY_STEPS].wall_ms = wall_ms;
    history->ends[sequence % HISTORY_STEPS].span_ms =
        sequence > 1 ? (uint32_t)(mono_ms - history->mono_ms) : 0;
    history->mono_ms = mono_ms;
    history->wall_ms = wall_ms;
}

static uint32_t delta(uint64_t now, uint64_t then)
{
    uint64_t d = now > then ? now - then : 0;
    return d > UINT32_MAX ? UINT32_MAX : (uint32_t)d;
}

static float mean_ms(const struct history_totals *now, const struct history_totals *then)
{
    uint64_t requests = now->requests > then->requests ? now->requests - then->requests : 0;
    uint64_t us = now->latency_us > then->latency_us ? now->latency_us - then->latency_us : 0;
    return requests ? (float)((double)us / (double)requests / 1000) : 0;
}

void history_feed(struct history *history, struct slice name, const struct history_totals *totals)
{
    uint32_t at = slot_of(history, name);
    struct history_series *series = history->slots[at];
    struct mark mark = {*totals, history->mono_ms};
    if (!series) {
        if (history->n == HISTORY_SERIES_MAX)
            return;
        series = calloc(1, sizeof(*series));
        iso_assert(series != NULL);
        series->name_len = (uint32_t)(name.len < NAME_MAX_BYTES ? name.len : NAME_MAX_BYTES);
        memcpy(series->name, name.ptr, series->name_len);
        series->first = history->sequence + 1;
        series->last = series->before = mark;
        history->slots[at] = series;
        history->n++;
    } else {
        series->steps[history->sequence % HISTORY_STEPS] =
            (struct step){.requests = delta(totals->requests, series->last.totals.requests),
                          .errors = delta(totals->errors, series->last.totals.errors),
                          .active = totals->active,
                          .latency_ms = mean_ms(totals, &series->last.totals)};
        series->before = series->last;
        series->last = mark;
    }
    series->fed = history->sequence;
}

/* Takes a slot out and moves up those behind it that would no longer be found. */
static void drop_slot(struct history *history, uint32_t at)
{
    free(history->slots[at]);
    history->slots[at] = NULL;
    history->n--;
    for (uint32_t next = (at + 1) % SLOTS; history->slots[next]; next = (next + 1) % SLOTS) {
        struct history_series *series = history->slots[next];
        history->slots[next] = NULL;
        history->slots[slot_of(history, slice_of(series->name, series->name_len))] = series;
    }
}

void history_end(struct history *history)
{
    for (uint32_t i = 0; i < SLOTS;)
        if (history->slots[i] && history->slots[i]->fed != history->sequence)
            drop_slot(history, i); /* another one may stand here now */
        else
            i++;
    /* What drop_slot() moves from the beginning to the end was looked at already. */
}

const struct history_series *history_find(const struct history *history, struct slice name)
{
    return history->slots[slot_of(history, name)];
}

uint32_t history_count(const struct history *history)
{
    return history->n;
}

/* Of the complete steps of the series that are still kept, the first. */
static uint64_t first_kept(const struct history_series *series)
{
    uint64_t kept = series->fed >= HISTORY_STEPS ? series->fed - HISTORY_STEPS + 1 : 1;
    return series->first > kept ? series->first : kept;
}

uint32_t history_steps(const struct history_series *series)
{
    uint64_t first = first_kept(series);
    return first > series->fed ? 0 : (uint32_t)(series->fed - first + 1);
}

struct history_point history_step(const struct history *history, const struct history_series *series,
                                  uint32_t i)
{
    uint64_t at = (first_kept(series) + i) % HISTORY_STEPS;
    const struct step *step = &series->steps[at];
    return (struct history_point){.end_wall_ms = history->ends[at].wall_ms,
                                  .span_ms = history->ends[at].span_ms,
                                  .requests = step->requests,
                                  .errors = step->errors,
                                  .active = step->active,
                                  .latency_ms = step->latency_ms};
}

struct history_point history_recent(const struct history *history, const struct history_series *series,
                                    const struct history_totals *now, uint64_t mono_ms)
{
    const struct mark *since = &series->before;
    return (struct history_point){.end_wall_ms = history->wall_ms + (mono_ms - history->mono_ms),
                                  .span_ms =
                                      (uint32_t)(mono_ms > since->mono_ms ? mono_ms - since->mono_ms : 0),
                                  .requests = delta(now->requests, since->totals.requests),
                                  .errors = delta(now->errors, since->totals.errors),
                                  .active = now->active,
                                  .latency_ms = mean_ms(now, &since->totals)};
}
