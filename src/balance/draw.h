/* SPDX-License-Identifier: Apache-2.0 */
/* Drawing a target by weight in O(1): Walker's alias table over all targets, drawn again while the one that
 * came is not usable, and after a few misses one exact draw over the usable ones only. Both steps give each
 * usable target its share, so together they do too. Source: Vose, 1991. */
#ifndef ISOBAR_BALANCE_DRAW_H
#define ISOBAR_BALANCE_DRAW_H

#include "balance/usable.h"

struct draw {
    struct usable usable;
    struct {
        uint32_t keep;  /* drawn here: itself when a random word is at most this, else the other */
        uint32_t other; /* a target with more than an even share */
    } * slots;          /* [n] */
};

void draw_build(struct draw *draw, const struct balance_pool *pool, struct arena *arena);
/* A usable target by weight and ramp, never `except` (BALANCE_NONE excepts nobody); BALANCE_NONE when there
 * is none. */
uint32_t draw_one(const struct draw *draw, const struct balance_pool *pool, const struct balance_pick *how,
                  uint32_t except);

#endif
