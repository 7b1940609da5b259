/* SPDX-License-Identifier: Apache-2.0 */
/* A limit that all nodes share, as one node sees it: credit to pass, debt to report. One report per client
 * is under way at a time; what passes meanwhile goes into the next one. */
#include "shared/limiter_internal.h"

#include "core/clock.h"

enum { REPORT_LOST_MS = 1000 }; /* one that never came back: another may be sent */

static uint64_t read(const _Atomic uint64_t *word)
{
    return atomic_load_explicit((_Atomic uint64_t *)word, memory_order_acquire);
}

static bool exchange(_Atomic uint64_t *word, uint64_t from, uint64_t to)
{
    return atomic_compare_exchange_strong_explicit(word, &from, to, memory_order_acq_rel,
                                                   memory_order_acquire);
}

static uint64_t pack(uint32_t credit, uint32_t debt)
{
    return (uint64_t)credit << 32 | debt;
}

static bool is_asking(uint64_t since_ns, uint64_t now_ns)
{
    return since_ns && now_ns < since_ns + REPORT_LOST_MS * NS_PER_MS;
}

/* The credit there is now. None was given yet: half of what the limit allows. It is used up, the store had
 * nothing left and must have something by now: one. */
static uint32_t credit_now(const struct limiter *limiter, const _Atomic uint64_t *words, uint64_t balance,
                           uint64_t now_ns)
{
    uint32_t credit = (uint32_t)(balance >> 32);
    if (credit)
        return credit;
    if (!read(&words[FLEET_KNOWN]))
        return (uint32_t)balance ? 0 : limiter->most / 2 + limiter->most % 2;
    return !is_asking(read(&words[FLEET_ASKING]), now_ns);
}

static bool pass(const struct limiter *limiter, _Atomic uint64_t *words, uint64_t now_ns, uint32_t *left)
{
    for (;;) {
        uint64_t balance = read(&words[FLEET_CREDIT]);
        uint32_t credit = credit_now(limiter, words, balance, now_ns);
        if (credit == 0)
            return false;
        if (exchange(&words[FLEET_CREDIT], balance, pack(credit - 1, (uint32_t)balance + 1))) {
            *left = credit - 1;
            return true;
        }
    }
}

static void take(const struct limiter *limiter, _Atomic uint64_t *own, uint64_t now_ns,
                 struct limiter_verdict *verdict, bool *wants_report)
{
    _Atomic uint64_t *words = own + limiter->own_words;
    uint64_t refusing_ns = read(&words[FLEET_REFUSING]);
    *wants_report = false;
    *verdict = (struct limiter_verdict){.limit = limiter->most};
    if (now_ns < refusing_ns) {
        verdict->retry_ns = refusing_ns - now_ns;
    } else if (pass(limiter, words, now_ns, &verdict->remaining)) {
        uint64_t asking = read(&words[FLEET_ASKING]);
        verdict->passes = true;
        limiter_follow(limiter, own, now_ns);
        *wants_report = !is_asking(asking, now_ns) && exchange(&words[FLEET_ASKING], asking, now_ns);
    } else {
        verdict->retry_ns = NS_PER_MS; /* an answer is on its way */
    }
    verdict->reset_ns = verdict->retry_ns + limiter_reset_ns(limiter, own, now_ns);
}

void limiter_take_fleet(struct limiter *limiter, uint64_t key, uint64_t now_ns,
                        struct limiter_verdict *verdict, bool *wants_report)
{
    take(limiter, keytable_get(limiter->table, key, now_ns), now_ns, verdict, wants_report);
}

/* Takes from a copy. */
void limiter_peek_fleet(const struct limiter *limiter, uint64_t key, uint64_t now_ns,
                        struct limiter_verdict *verdict)
{
    _Atomic uint64_t copy[LIMITER_PIECES + FLEET_WORDS] = {0};
    const _Atomic uint64_t *words = keytable_find(limiter->table, key);
    bool wants_report;
    for (uint32_t i = 0; words && i < limiter->own_words + FLEET_WORDS; i++)
        atomic_store_explicit(&copy[i], read(&words[i]), memory_order_relaxed);
    take(limiter, copy, now_ns, verdict, &wants_report);
}

uint32_t limiter_report(struct limiter *limiter, uint64_t key, uint64_t now_ns)
{
    _Atomic uint64_t *words = keytable_get(limiter->table, key, now_ns) + limiter->own_words;
    uint32_t debt = (uint32_t)atomic_fetch_and_explicit(&words[FLEET_CREDIT], ~(uint64_t)UINT32_MAX,
                                                        memory_order_acq_rel);
    return debt < limiter->most ? debt : limiter->most; /* older than that is paid by time */
}

/* What passed since the report is not in the store's number yet. */
static void take_answer(_Atomic uint64_t *words, uint64_t now_ns, const struct limiter_left *left)
{
    uint64_t balance, tokens;
    atomic_store_explicit(&words[FLEET_REFUSING], left->tokens ? 0 : now_ns + left->retry_ns,
                          memory_order_release);
    atomic_store_explicit(&words[FLEET_KNOWN], now_ns, memory_order_release);
    do {
        balance = read(&words[FLEET_CREDIT]);
        uint32_t debt = (uint32_t)balance;
        tokens = left->tokens > debt ? left->tokens - debt : 0;
    } while (!exchange(&words[FLEET_CREDIT], balance,
                       pack((uint32_t)(tokens / 2 + tokens % 2), (uint32_t)balance)));
}

bool limiter_answer(struct limiter *limiter, uint64_t key, uint64_t now_ns, const struct limiter_left *left)
{
    _Atomic uint64_t *words = keytable_find(limiter->table, key);
    if (!words)
        return false; /* forgotten meanwhile */
    words += limiter->own_words;
    if (left)
        take_answer(words, now_ns, left);
    atomic_store_explicit(&words[FLEET_ASKING], 0, memory_order_release);
    /* A request that passed before this store has left its report to us. */
    return left && (uint32_t)read(&words[FLEET_CREDIT]) && exchange(&words[FLEET_ASKING], 0, now_ns);
}
