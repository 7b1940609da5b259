/* SPDX-License-Identifier: Apache-2.0 */
#include "virtual.h"

#include "core/clock.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The wall clock of the simulation's first moment: a date, so that nothing takes it for "never". */
#define WALL_OFFSET_NS (1700000000ull * NS_PER_S)

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* covers all below */
static pthread_cond_t go = PTHREAD_COND_INITIALIZER, idle = PTHREAD_COND_INITIALIZER;
static uint64_t now_ns = 1000 * NS_PER_S; /* not 0, which means "not set" in many places */
static uint64_t granted_ns = 1000 * NS_PER_S;
static bool is_idle, is_called;

uint64_t virtual_now_ns(void)
{
    pthread_mutex_lock(&mutex);
    uint64_t now = now_ns;
    pthread_mutex_unlock(&mutex);
    return now;
}

int clock_gettime(clockid_t id, struct timespec *out)
{
    if (id != CLOCK_MONOTONIC && id != CLOCK_REALTIME)
        return (int)syscall(SYS_clock_gettime, id, out);
    uint64_t ns = virtual_now_ns() + (id == CLOCK_REALTIME ? WALL_OFFSET_NS : 0);
    *out = (struct timespec){.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};
    return 0;
}

/* Of the health thread alone. */
int epoll_wait(int fd, struct epoll_event *events, int most, int timeout_ms)
{
    uint64_t due_ns = timeout_ms < 0 ? UINT64_MAX : virtual_now_ns() + (uint64_t)timeout_ms * NS_PER_MS;
    for (;;) {
        int n = (int)syscall(SYS_epoll_pwait, fd, events, most, 0, NULL, _NSIG / 8);
        if (n != 0 || timeout_ms == 0)
            return n;
        pthread_mutex_lock(&mutex);
        if (due_ns <= granted_ns) {
            now_ns = due_ns;
            pthread_mutex_unlock(&mutex);
            return 0;
        }
        bool looks_again = is_called;
        if (!looks_again) {
            is_idle = true;
            pthread_cond_signal(&idle);
            while (is_idle)
                pthread_cond_wait(&go, &mutex);
        }
        pthread_mutex_unlock(&mutex);
        if (looks_again)
            usleep(20);
    }
}

static void wake(void)
{
    is_idle = false;
    pthread_cond_signal(&go);
}

static void wait_until_idle(void)
{
    while (!is_idle)
        pthread_cond_wait(&idle, &mutex);
}

void virtual_advance(uint64_t to_ns)
{
    pthread_mutex_lock(&mutex);
    granted_ns = to_ns;
    wake();
    wait_until_idle();
    now_ns = to_ns;
    pthread_mutex_unlock(&mutex);
}

void virtual_begin_call(void)
{
    pthread_mutex_lock(&mutex);
    is_called = true;
    wake();
    pthread_mutex_unlock(&mutex);
}

void virtual_end_call(void)
{
    pthread_mutex_lock(&mutex);
    is_called = false;
    wait_until_idle();
    pthread_mutex_unlock(&mutex);
}
