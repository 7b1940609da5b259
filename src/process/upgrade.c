/* SPDX-License-Identifier: Apache-2.0 */
#include "process/upgrade.h"

#include "core/log.h"
#include "net/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PREDECESSOR_ENV "ISOBAR_PREDECESSOR"

enum { ARGS_MAX = 1024, ARGS_BYTES = 128 * 1024 };

extern char **environ;

void upgrade_executable(char path[PATH_MAX])
{
    ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);
    path[n > 0 ? n : 0] = '\0';
}

/* This process's arguments, as it was started. `bytes` holds them. */
static bool read_args(char *bytes, char **args)
{
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC), n_args = 0;
    ssize_t n = fd < 0 ? -1 : read(fd, bytes, ARGS_BYTES - 1);
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return false;
    bytes[n] = '\0';
    for (char *at = bytes; at < bytes + n && n_args < ARGS_MAX - 1; at += strlen(at) + 1)
        args[n_args++] = at;
    args[n_args] = NULL;
    return true;
}

/* The environment for the successor says which descriptors are listening sockets, and whom to tell. */
static bool set_environment(posix_spawn_file_actions_t *actions)
{
    static int fds[LISTEN_HANDOVER_MAX];
    uint32_t n = listen_list(fds);
    size_t cap = (size_t)n * 12 + 1, len = 0;
    char *list = malloc(cap), pid[16];
    if (!list)
        return false;
    list[0] = '\0';
    for (uint32_t i = 0; i < n; i++) {
        len += (size_t)snprintf(list + len, cap - len, "%s%d", i ? "," : "", fds[i]);
        posix_spawn_file_actions_adddup2(actions, fds[i], fds[i]); /* clears close-on-exec */
    }
    snprintf(pid, sizeof(pid), "%d", (int)getpid());
    bool ok = setenv(LISTEN_HANDOVER_ENV, list, 1) == 0 && setenv(PREDECESSOR_ENV, pid, 1) == 0;
    free(list);
    return ok;
}

iso_err upgrade_start(const char *executable, pid_t *successor)
{
    static char bytes[ARGS_BYTES];
    static char *args[ARGS_MAX];
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    sigemptyset(&none);
    if (!read_args(bytes, args) || posix_spawn_file_actions_init(&actions) != 0)
        return ISO_ERR_SYSTEM;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setsigmask(&attributes, &none);
    int err = set_environment(&actions)
                  ? posix_spawn(successor, executable, &actions, &attributes, args, environ)
                  : ENOMEM;
    unsetenv(LISTEN_HANDOVER_ENV);
    unsetenv(PREDECESSOR_ENV);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    if (!err)
        return ISO_OK;
    log_error("upgrade: cannot start %s: %s", executable, strerror(err));
    *successor = 0;
    return ISO_ERR_SYSTEM;
}

bool upgrade_has_ended(pid_t successor)
{
    return waitpid(successor, NULL, WNOHANG) != 0;
}

void upgrade_finish(void)
{
    const char *text = getenv(PREDECESSOR_ENV);
    int pid = text ? atoi(text) : 0;
    unsetenv(PREDECESSOR_ENV);
    if (pid <= 1 || pid != getppid()) /* it has ended meanwhile: nobody to tell */
        return;
    log_notice("upgrade: serving; process %d may end", pid);
    kill(pid, SIGTERM);
}
