/* SPDX-License-Identifier: Apache-2.0 */
/* Rings and the writer. A ring is memory mapped twice in a row, so that a line is always one piece; the
 * worker moves `head`, the writer `tail`, and neither waits for the other. The writer looks at the rings
 * every NAP_MS and writes all that is there with one call; a worker wakes it only when its ring becomes half
 * full, so that a line costs no system call. Descriptors are non-blocking where the kernel allows it: a pipe
 * that nobody reads must not hold up the end of the process. */
#include "observe/accesslog_line.h"

#include "core/check.h"
#include "core/clock.h"
#include "core/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    /* 1 MiB: 25 ms of lines of 400 bytes at 100,000 requests a second. A multiple of every page size. */
    RING_BYTES = 1 << 20,
    NAP_MS = 50,
    /* How long a descriptor that takes nothing may delay accesslog_close(). */
    PATIENCE_MS = 1000,
    IOV_BATCH = 64,
};

struct ring {
    /* set once before the threads start */
    char *data; /* owns; RING_BYTES mapped twice */
    /* the worker */
    struct {
        _Atomic size_t head; /* bytes written since the start; release: the line before it is complete */
        size_t tail_seen;
        struct accesslog_clock clock;
    } ISO_CACHE_ALIGN;
    /* the writer */
    struct {
        _Atomic size_t tail; /* bytes taken since the start; release: they may be overwritten */
    } ISO_CACHE_ALIGN;
};

struct accesslog {
    /* set once before the threads start */
    char *file;         /* owns */
    struct ring *rings; /* owns; [n_rings] */
    uint32_t n_rings;
    pthread_t writer;
    sem_t wake;
    /* any thread: atomic */
    _Atomic bool stopping; /* release */
    _Atomic int next_fd;   /* acq_rel; taken by the writer; -1: none */
    _Atomic uint64_t lost; /* relaxed */
    /* the writer */
    int fd; /* owns */
    bool is_socket;
    bool is_failing;
    bool is_midline; /* what was written last did not end a line */
};

static iso_err map_ring(struct ring *ring)
{
    int fd = memfd_create("isobar-access-log", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, RING_BYTES) < 0)
        goto fail;
    char *at = mmap(NULL, 2 * RING_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        goto fail;
    ring->data = at;
    for (int half = 0; half < 2; half++)
        if (mmap(at + half * RING_BYTES, RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) ==
            MAP_FAILED)
            goto fail;
    close(fd);
    return ISO_OK;
fail:
    log_error("cannot make an access log ring: %m");
    if (fd >= 0)
        close(fd);
    return ISO_ERR_SYSTEM;
}

/* stdout as a descriptor of ours. A pipe or a terminal is opened anew, because O_NONBLOCK on the shared
 * description would surprise whoever else has it; a file is not, because its offset must stay shared. */
static int open_stdout(void)
{
    struct stat st;
    if (fstat(STDOUT_FILENO, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode))) {
        int fd = open("/proc/self/fd/1", O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        if (fd >= 0)
            return fd;
    }
    return fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
}

static iso_err open_file(const char *file, int *out)
{
    int fd = strcmp(file, "stdout") == 0
                 ? open_stdout()
                 : open(file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0640);
    if (fd < 0) {
        log_error("cannot open the access log %s: %m", file);
        return ISO_ERR_SYSTEM;
    }
    *out = fd;
    return ISO_OK;
}

/* Lines that will not reach the file, the one that was written in part included. */
static void lose(struct accesslog *log, const struct iovec *iov, int n)
{
    uint64_t lines = 0;
    for (int i = 0; i < n; i++)
        for (size_t at = 0; at < iov[i].iov_len; lines++)
            at += slice_find(slice_of((char *)iov[i].iov_base + at, iov[i].iov_len - at), '\n') + 1;
    atomic_fetch_add_explicit(&log->lost, lines, memory_order_relaxed);
}

/* One line about the begin and one about the end of a failure, however many writes it takes. */
static void say_state(struct accesslog *log, bool is_failing)
{
    if (is_failing && !log->is_failing)
        log_error("access log %s: lines are lost: %m", log->file);
    if (!is_failing && log->is_failing)
        log_notice("access log %s: written again", log->file);
    log->is_failing = is_failing;
}

static ssize_t write_some(struct accesslog *log, struct iovec *iov, int n)
{
    struct msghdr msg = {.msg_iov = iov, .msg_iovlen = (size_t)n};
    ssize_t done =
        log->is_socket ? sendmsg(log->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) : writev(log->fd, iov, n);
    if (done > 0) {
        size_t left = (size_t)done;
        int i = 0;
        for (; left > iov[i].iov_len; i++)
            left -= iov[i].iov_len;
        log->is_midline = ((char *)iov[i].iov_base)[left - 1] != '\n';
    }
    return done;
}

/* Waits for room; false when the log is being closed and there was none for PATIENCE_MS. */
static bool wait_for_room(struct accesslog *log, uint64_t since_ns)
{
    struct pollfd poller = {.fd = log->fd, .events = POLLOUT};
    poll(&poller, 1, NAP_MS);
    return !atomic_load_explicit(&log->stopping, memory_order_acquire) ||
           clock_mono_ns() - since_ns < PATIENCE_MS * NS_PER_MS;
}

static void write_all(struct accesslog *log, struct iovec *iov, int n)
{
    uint64_t since_ns = clock_mono_ns();
    while (n > 0) {
        ssize_t done = write_some(log, iov, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0 && errno == EAGAIN && wait_for_room(log, since_ns))
            continue;
        say_state(log, done < 0);
        if (done < 0) {
            lose(log, iov, n);
            return;
        }
        since_ns = clock_mono_ns();
        size_t left = (size_t)done;
        for (; n > 0 && left >= iov->iov_len; iov++, n--)
            left -= iov->iov_len;
        if (n > 0) {
            iov->iov_base = (char *)iov->iov_base + left;
            iov->iov_len -= left;
        }
    }
}

/* Writes what rings [from, from + IOV_BATCH) hold; false when that was nothing. */
static bool drain_batch(struct accesslog *log, uint32_t from)
{
    struct iovec iov[IOV_BATCH + 1];
    size_t taken[IOV_BATCH] = {0};
    int n = 0;
    uint32_t to = log->n_rings - from > IOV_BATCH ? from + IOV_BATCH : log->n_rings;
    if (log->is_midline)
        iov[n++] = (struct iovec){(char *)"\n", 1};
    int first = n;
    for (uint32_t i = from; i < to; i++) {
        struct ring *ring = &log->rings[i];
        size_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
        taken[i - from] = atomic_load_explicit(&ring->head, memory_order_acquire) - tail;
        if (taken[i - from])
            iov[n++] = (struct iovec){ring->data + tail % RING_BYTES, taken[i - from]};
    }
    if (n == first)
        return false;
    write_all(log, iov, n);
    for (uint32_t i = from; i < to; i++)
        atomic_fetch_add_explicit(&log->rings[i].tail, taken[i - from], memory_order_release);
    return true;
}

static bool drain(struct accesslog *log)
{
    bool any = false;
    for (uint32_t from = 0; from < log->n_rings; from += IOV_BATCH)
        any |= drain_batch(log, from);
    return any;
}

static void use_fd(struct accesslog *log, int fd)
{
    struct stat st;
    log->fd = fd;
    log->is_midline = false;
    log->is_socket = fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode);
}

static void nap(struct accesslog *log)
{
    uint64_t until_ns = clock_mono_ns() + NAP_MS * NS_PER_MS;
    struct timespec until = {(time_t)(until_ns / NS_PER_S), (long)(until_ns % NS_PER_S)};
    sem_clockwait(&log->wake, CLOCK_MONOTONIC, &until);
}

static void *run_writer(void *arg)
{
    struct accesslog *log = arg;
    pthread_setname_np(pthread_self(), "isobar-log");
    while (!atomic_load_explicit(&log->stopping, memory_order_acquire)) {
        nap(log);
        int fd = atomic_exchange_explicit(&log->next_fd, -1, memory_order_acq_rel);
        if (fd >= 0) {
            close(log->fd);
            use_fd(log, fd);
        }
        drain(log);
    }
    while (drain(log))
        continue;
    return NULL;
}

static void free_log(struct accesslog *log)
{
    for (uint32_t i = 0; i < log->n_rings; i++)
        if (log->rings[i].data)
            munmap(log->rings[i].data, 2 * RING_BYTES);
    if (log->fd >= 0)
        close(log->fd);
    sem_destroy(&log->wake);
    free(log->rings);
    free(log->file);
    free(log);
}

static iso_err start_writer(struct accesslog *log)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* the writer takes no signal, SIGPIPE neither */
    int failed = pthread_create(&log->writer, NULL, run_writer, log);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed)
        log_error("cannot start the access log writer: %s", strerror(failed));
    return failed ? ISO_ERR_SYSTEM : ISO_OK;
}

iso_err accesslog_open(struct slice file, uint32_t n_workers, struct accesslog **out)
{
    struct accesslog *log = calloc(1, sizeof(*log));
    iso_assert(log != NULL);
    *log = (struct accesslog){.fd = -1, .next_fd = -1, .n_rings = n_workers};
    sem_init(&log->wake, 0, 0);
    log->file = strndup(file.ptr, file.len);
    log->rings = aligned_alloc(ISO_CACHE_LINE, sizeof(struct ring) * n_workers);
    iso_assert(log->file != NULL && log->rings != NULL);
    memset(log->rings, 0, sizeof(struct ring) * n_workers);
    int fd;
    iso_err err = open_file(log->file, &fd);
    if (err)
        goto fail;
    use_fd(log, fd);
    for (uint32_t i = 0; i < n_workers; i++)
        if ((err = map_ring(&log->rings[i])))
            goto fail;
    if ((err = start_writer(log)))
        goto fail;
    *out = log;
    return ISO_OK;
fail:
    free_log(log);
    return err;
}

void accesslog_close(struct accesslog **log)
{
    if (!*log)
        return;
    atomic_store_explicit(&(*log)->stopping, true, memory_order_release);
    sem_post(&(*log)->wake);
    pthread_join((*log)->writer, NULL);
    int fd = atomic_load_explicit(&(*log)->next_fd, memory_order_acquire);
    if (fd >= 0)
        close(fd);
    free_log(*log);
    *log = NULL;
}

iso_err accesslog_reopen(struct accesslog *log)
{
    int fd;
    iso_err err = open_file(log->file, &fd);
    if (err)
        return err;
    int unused = atomic_exchange_explicit(&log->next_fd, fd, memory_order_acq_rel);
    if (unused >= 0)
        close(unused);
    sem_post(&log->wake);
    return ISO_OK;
}

uint64_t accesslog_lost(const struct accesslog *log)
{
    return atomic_load_explicit(&((struct accesslog *)log)->lost, memory_order_relaxed);
}

bool accesslog_write(struct accesslog *log, uint32_t worker, const struct accesslog_format *format,
                     const struct accesslog_entry *entry)
{
    iso_assert(worker < log->n_rings);
    struct ring *ring = &log->rings[worker];
    size_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    size_t bound = accesslog_line_bound(format, entry);
    if (iso_unlikely(RING_BYTES - (head - ring->tail_seen) < bound)) {
        ring->tail_seen = atomic_load_explicit(&ring->tail, memory_order_acquire);
        if (RING_BYTES - (head - ring->tail_seen) < bound)
            return false;
    }
    char *out = ring->data + head % RING_BYTES;
    size_t used = head - ring->tail_seen;
    size_t len = (size_t)(accesslog_line(out, &ring->clock, format, entry) - out);
    atomic_store_explicit(&ring->head, head + len, memory_order_release);
    /* Half full, as far as this worker knows: look whether the writer has been here since, else wake it. */
    if (iso_unlikely(used < RING_BYTES / 2 && used + len >= RING_BYTES / 2)) {
        ring->tail_seen = atomic_load_explicit(&ring->tail, memory_order_acquire);
        if (head + len - ring->tail_seen >= RING_BYTES / 2)
            sem_post(&log->wake);
    }
    return true;
}
