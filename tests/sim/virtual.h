/* SPDX-License-Identifier: Apache-2.0 */
/* Time that passes when the simulation says so. This program has its own clock_gettime() and epoll_wait(), so
 * that the health thread of the real code runs in it unchanged: it sleeps until the driver lets time go on,
 * and wakes at each of its deadlines on the way. Exactly one of the two threads runs at any moment, so that
 * every run is the same. */
#ifndef ISOBAR_TESTS_SIM_VIRTUAL_H
#define ISOBAR_TESTS_SIM_VIRTUAL_H

#include <stdint.h>

uint64_t virtual_now_ns(void);
/* Lets the health thread do what is due until then, and makes it then. Threads: the driver. */
void virtual_advance(uint64_t to_ns);
/* Around calls that wait for the health thread (health_apply, health_stop): it may take what was posted to
 * it, while the time stands still. */
void virtual_begin_call(void);
void virtual_end_call(void);

#endif
