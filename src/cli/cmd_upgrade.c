/* SPDX-License-Identifier: Apache-2.0 */
/* isobar upgrade: asks a running process to be replaced and tells how it went. */
#include "cli/cmd.h"

#include "core/clock.h"
#include "core/slice.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

const char cmd_upgrade_help[] =
    "usage: isobar upgrade --pid PID [--wait SECONDS]\n"
    "\n"
    "Replaces the running process PID (isobar serve or isobar proxy) by a new one, started from the same "
    "path with\n"
    "the same arguments, to bring a new binary into force. Both hold the listening sockets until the new "
    "one\n"
    "serves; then the old one finishes its requests, for at most shutdown_s, and exits. The number of "
    "workers\n"
    "stays. When the new one does not come up, the old one goes on as if nothing had been asked.\n"
    "\n"
    "  -p, --pid PID        the process to replace\n"
    "  -w, --wait SECONDS   how long to wait for its end (default 60)\n"
    "  -h, --help           this text\n"
    "\n"
    "Exit status: 0 when the old process has ended and the new one runs, 1 when not, 2 for wrong usage.\n";

enum { POLL_US = 50000, START_POLL_US = 500, START_MS = 10000 }; /* a successor takes a few ms to serve */

/* The first child of a process; 0: none. */
static pid_t child_of(pid_t pid)
{
    char path[64];
    int child = 0;
    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
    FILE *file = fopen(path, "re");
    if (file && fscanf(file, "%d", &child) != 1)
        child = 0;
    if (file)
        fclose(file);
    return child;
}

/* One that has ended and waits for its parent to notice does not count. */
static bool is_alive(pid_t pid)
{
    char path[64], state = 'Z';
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    if (file && fscanf(file, "%*d %*[^)]) %c", &state) != 1)
        state = 'Z';
    if (file)
        fclose(file);
    return state != 'Z' && state != 'X';
}

static int replace(pid_t pid, uint64_t wait_s)
{
    if (kill(pid, SIGUSR2) < 0) {
        fprintf(stderr, "isobar upgrade: process %d: %m\n", (int)pid);
        return 1;
    }
    uint64_t now_ns = clock_mono_ns(), start_ns = now_ns + START_MS * NS_PER_MS,
             end_ns = now_ns + wait_s * NS_PER_S;
    pid_t successor = 0;
    while ((successor = child_of(pid)) == 0 && clock_mono_ns() < start_ns && is_alive(pid))
        usleep(START_POLL_US);
    if (successor == 0) {
        fprintf(stderr, "isobar upgrade: process %d started no successor; its log says why\n", (int)pid);
        return 1;
    }
    while (is_alive(pid) && clock_mono_ns() < end_ns) {
        if (child_of(pid) == 0) {
            fprintf(stderr, "isobar upgrade: process %d ended before it served; %d goes on\n", (int)successor,
                    (int)pid);
            return 1;
        }
        usleep(POLL_US);
    }
    if (is_alive(pid) || !is_alive(successor)) {
        fprintf(stderr, "isobar upgrade: process %d is still there after %lu s\n", (int)pid, wait_s);
        return 1;
    }
    printf("process %d serves in place of %d\n", (int)successor, (int)pid);
    return 0;
}

int cmd_upgrade(int argc, char **argv)
{
    static const struct option options[] = {{"pid", required_argument, NULL, 'p'},
                                            {"wait", required_argument, NULL, 'w'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    uint64_t pid = 0, wait_s = 60;
    for (int c; (c = getopt_long(argc, argv, "p:w:h", options, NULL)) != -1;) {
        if (c == 'h') {
            fputs(cmd_upgrade_help, stdout);
            return 0;
        }
        if ((c == 'p' && slice_u64(slice_str(optarg), &pid)) ||
            (c == 'w' && slice_u64(slice_str(optarg), &wait_s)))
            continue;
        fputs("isobar upgrade: numbers are expected; see isobar upgrade --help\n", stderr);
        return 2;
    }
    if (pid <= 1 || pid > INT32_MAX || optind < argc) {
        fputs("isobar upgrade: --pid PID is needed, and nothing else; see isobar upgrade --help\n", stderr);
        return 2;
    }
    return replace((pid_t)pid, wait_s);
}
