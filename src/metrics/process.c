/* SPDX-License-Identifier: Apache-2.0 */
#include "metrics/process.h"

#include "core/clock.h"
#include "core/slice.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

/* A file of /proc, whole, into out[cap]. */
static struct slice read_file(const char *path, char *out, size_t cap)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return (struct slice){0};
    ssize_t n = read(fd, out, cap);
    close(fd);
    return slice_of(out, n > 0 ? (size_t)n : 0);
}

/* The number in field `index`, from 0, of a text of fields with one space between. */
static uint64_t field(struct slice text, unsigned index)
{
    struct slice word = {0};
    uint64_t value = 0;
    for (unsigned i = 0; i <= index; i++)
        if (!slice_next(&text, ' ', &word))
            return 0;
    return slice_u64(word, &value) ? value : 0;
}

static uint64_t count_fds(void)
{
    uint64_t n = 0;
    DIR *dir = opendir("/proc/self/fd");
    if (!dir)
        return 0;
    for (struct dirent *entry; (entry = readdir(dir));)
        n += entry->d_name[0] != '.';
    closedir(dir);
    return n ? n - 1 : 0; /* without the one that reads */
}

/* Seconds since the epoch when the machine started, from "btime N" in /proc/stat. */
static double boot_time_s(void)
{
    static char text[64 << 10]; /* control thread only */
    struct slice rest = read_file("/proc/stat", text, sizeof(text)), line;
    while (slice_next(&rest, '\n', &line))
        if (slice_starts(line, SLICE("btime ")))
            return (double)field(line, 1);
    return 0;
}

void process_read(struct process_figures *out)
{
    char text[4096];
    struct rlimit limit;
    *out = (struct process_figures){.cpu_s = (double)clock_ns(CLOCK_PROCESS_CPUTIME_ID) / 1e9,
                                    .open_fds = count_fds()};
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
        out->max_fds = limit.rlim_cur;

    /* proc(5): the command's name is in parentheses and may hold anything; field 3 follows it. */
    struct slice stat = read_file("/proc/self/stat", text, sizeof(text));
    const char *close = stat.len ? memrchr(stat.ptr, ')', stat.len) : NULL;
    if (!close || close + 2 > stat.ptr + stat.len)
        return;
    struct slice rest = slice_of(close + 2, (size_t)(stat.ptr + stat.len - close) - 2);
    enum { FIELD_THREADS = 20 - 3, FIELD_START = 22 - 3, FIELD_VSIZE = 23 - 3, FIELD_RSS = 24 - 3 };
    out->threads = field(rest, FIELD_THREADS);
    out->virtual_bytes = field(rest, FIELD_VSIZE);
    out->resident_bytes = field(rest, FIELD_RSS) * (uint64_t)sysconf(_SC_PAGESIZE);
    static double boot_s;
    if (boot_s == 0)
        boot_s = boot_time_s();
    out->start_time_s = boot_s + (double)field(rest, FIELD_START) / (double)sysconf(_SC_CLK_TCK);
}
