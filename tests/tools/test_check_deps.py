# SPDX-License-Identifier: Apache-2.0
"""tools/check-deps must find each kind of violation in a tree made to have it, and nothing in one that keeps the rules."""
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

GOOD = {
    "src/core/text.h": "#include <string.h>\n#include <sys/types.h>\n",
    "src/core/hash.c": "#include <xxhash.h>\n",
    "src/balance/ring.c": '#include "core/text.h"\n',
    "src/config/load.c": '#include "balance/ring.h"\n',
    "src/doc/yaml.c": '#include <yaml.h>\n',
    "src/balance/ring.h": "",
    "src/proxy/forward.h": '#include "config/yaml.h"\n',
    "src/config/yaml.h": "",
    "src/control/server.c": '#include "proxy/forward.h"\n',
    "src/l4/abi.h": "#include <linux/types.h>\n",
    "src/l4/bpf/lb.bpf.c": '#include <linux/bpf.h>\n#include "l4/abi.h"\n',
}

BAD = [
    ("src/core/list.c", '#include "proxy/forward.h"', "stands above core/"),
    ("src/http1/parse.c", '#include "config/yaml.h"', "stands above http1/"),
    ("src/balance/ring.c", '#include "observe/counters.h"', "balance/ may include only core"),
    ("src/config/load.c", '#include "net/loop.h"', "config/ may include only balance, core, doc, observe"),
    ("src/route/route.c", '#include "store/sqlite.h"', "route/ never includes store/"),
    ("src/proxy/forward.c", '#include "control/server.h"', "stands above proxy/"),
    ("src/worker/lane.c", '#include "proxy/forward.h"', "stands above worker/"),
    ("src/proxy/forward.c", "#include <jansson.h>", "may be included only in"),
    ("src/proxy/forward.c", "#include <pcre2.h>", "may be included only in"),
    ("src/net/loop.c", "#  include <yaml.h>", "may be included only in"),
    ("src/net/loop.c", "#include <curl/curl.h>", "needs a line in its table"),
    ("src/net/loop.c", '#include "core/none.h"', "does not exist"),
    ("src/net/loop.c", '#include "loop.h"', "with its folder"),
    ("src/misc/helper.c", '#include "core/text.h"', "no folder src/misc"),
    ("src/l4/bpf/lb.bpf.c", '#include "core/text.h"', "only l4/abi.h"),
    ("src/l4/bpf/lb.bpf.c", "#include <stdio.h>", "not a kernel header"),
]


def plant(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def run(root):
    return subprocess.run([ROOT / "tools/check-deps", root], capture_output=True, text=True)


def test_a_tree_that_keeps_the_rules_passes(tmp_path):
    plant(tmp_path, GOOD)
    done = run(tmp_path)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("path,line,why", BAD)
def test_a_violation_is_named_with_its_line(tmp_path, path, line, why):
    plant(tmp_path, GOOD)
    plant(tmp_path, {name: "" for name in ("src/observe/counters.h", "src/net/loop.h", "src/store/sqlite.h",
                                           "src/control/server.h")})
    plant(tmp_path, {path: f"/* first */\n{line}\n"})
    done = run(tmp_path)
    assert done.returncode == 1
    assert f"{path}:2: " in done.stdout and why in done.stdout, done.stdout


def test_this_tree_passes():
    done = run(ROOT)
    assert done.returncode == 0, done.stdout
