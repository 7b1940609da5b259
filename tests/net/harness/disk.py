# SPDX-License-Identifier: Apache-2.0
"""A disk that hangs when a test says so: a library that is loaded before libc, whose fsync() and fdatasync() of files with a
certain name do not return."""
import os
import shutil
import subprocess

import pytest

from .process import is_sanitized

COMPILER = shutil.which("cc")
SOURCE = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int hangs(int fd)
{
    char link[64], path[4096], name[256];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof(path) - 1);
    int control = open(getenv("HUNG_DISK"), O_RDONLY);
    ssize_t len = control < 0 ? 0 : read(control, name, sizeof(name) - 1);
    if (control >= 0)
        close(control);
    if (n < 0 || len <= 0)
        return 0;
    path[n] = name[len] = 0;
    return strstr(path, name) != NULL;
}

static int sync_with(const char *name, int fd)
{
    while (hangs(fd))
        usleep(20000);
    return ((int (*)(int))dlsym(RTLD_NEXT, name))(fd);
}

int fsync(int fd)
{
    return sync_with("fsync", fd);
}

int fdatasync(int fd)
{
    return sync_with("fdatasync", fd);
}
"""


class HungDisk:
    """`environment` is what a process whose disk this is has to be started with."""

    def __init__(self, folder):
        if COMPILER is None or is_sanitized():
            pytest.skip("needs a compiler, and a process that takes a library before its own")
        source, library, self.file = (os.path.join(folder, "disk" + end) for end in (".c", ".so", ""))
        with open(source, "w", encoding="ascii") as out:
            out.write(SOURCE)
        self.release()
        subprocess.run([COMPILER, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
        self.environment = {**os.environ, "LD_PRELOAD": library, "HUNG_DISK": self.file}

    def hang(self, name):
        """From now on, for files with this in their path."""
        with open(self.file, "w", encoding="utf-8") as out:
            out.write(name)

    def release(self):
        with open(self.file, "w", encoding="utf-8"):
            pass
