# SPDX-License-Identifier: Apache-2.0
"""A wall clock of a process's own, which a test sets: a library that is loaded before libc and adds what a file says. The
monotonic clock stays as it is, as on a machine whose time is set."""
import os
import shutil
import struct
import subprocess

import pytest

from .process import is_sanitized

COMPILER = shutil.which("cc")
SOURCE = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

static volatile long *step_s;

__attribute__((constructor)) static void begin(void)
{
    int fd = open(getenv("WALL_CLOCK_STEP"), O_RDONLY);
    step_s = mmap(NULL, sizeof(long), PROT_READ, MAP_SHARED, fd, 0);
}

int clock_gettime(clockid_t id, struct timespec *out)
{
    static int (*real)(clockid_t, struct timespec *);
    if (!real)
        real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(id, out);
    if (id == CLOCK_REALTIME)
        out->tv_sec += *step_s;
    return result;
}
"""


class WallClock:
    """`environment` is what a process whose clock this is has to be started with."""

    def __init__(self, folder, step_s=0):
        if COMPILER is None or is_sanitized():
            pytest.skip("needs a compiler, and a process that takes a library before its own")
        source, library, self.file = (os.path.join(folder, f"clock{step_s}" + end) for end in (".c", ".so", ""))
        with open(source, "w", encoding="ascii") as out:
            out.write(SOURCE)
        with open(self.file, "wb") as out:
            out.write(struct.pack("l", step_s))
        subprocess.run([COMPILER, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
        self.environment = {**os.environ, "LD_PRELOAD": library, "WALL_CLOCK_STEP": self.file}

    def step(self, step_s):
        with open(self.file, "r+b") as out:
            out.write(struct.pack("l", step_s))
