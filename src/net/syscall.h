/* SPDX-License-Identifier: Apache-2.0 */
/* The system calls of the request path, made directly. libc's wrappers are cancellation points: in a process
 * with threads each calls two more functions around the call, which on a core that has just slept was a tenth
 * of all our own time per request. epoll_wait stays libc's: the simulation stands in for it. Nothing here
 * cancels threads. Return values and errno are as libc's; threads: any. On other machines, and under a
 * sanitizer that must see the calls, these are libc's own. */
#ifndef ISOBAR_NET_SYSCALL_H
#define ISOBAR_NET_SYSCALL_H

#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define SYS_DIRECT 1
#ifdef __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#undef SYS_DIRECT
#endif
#endif
#endif

#ifdef SYS_DIRECT
static inline long sys_call6(long number, long a, long b, long c, long d, long e, long f)
{
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    if (result < 0) { /* a call of these returns counts, never addresses */
        errno = (int)-result;
        return -1;
    }
    return result;
}

static inline ssize_t sys_recv(int fd, void *data, size_t cap)
{
    return sys_call6(SYS_recvfrom, fd, (long)data, (long)cap, 0, 0, 0);
}

/* MSG_NOSIGNAL: a peer that has gone is an error, not a signal. */
static inline ssize_t sys_send(int fd, const void *data, size_t n)
{
    return sys_call6(SYS_sendto, fd, (long)data, (long)n, MSG_NOSIGNAL, 0, 0);
}

static inline ssize_t sys_sendmsg(int fd, const struct msghdr *msg)
{
    return sys_call6(SYS_sendmsg, fd, (long)msg, MSG_NOSIGNAL, 0, 0, 0);
}
#else
static inline ssize_t sys_recv(int fd, void *data, size_t cap)
{
    return recv(fd, data, cap, 0);
}

static inline ssize_t sys_send(int fd, const void *data, size_t n)
{
    return send(fd, data, n, MSG_NOSIGNAL);
}

static inline ssize_t sys_sendmsg(int fd, const struct msghdr *msg)
{
    return sendmsg(fd, msg, MSG_NOSIGNAL);
}
#endif

#undef SYS_DIRECT
#endif
