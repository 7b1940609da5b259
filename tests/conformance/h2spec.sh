#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# HTTP/2 conformance with summerwind's h2spec.
#   H2SPEC=path/to/h2spec h2spec.sh HOST PORT [tls|h2c] [PATH] [more h2spec arguments, e.g. --strict or http2/6.9]
# PATH must answer GET with 200 and some body. The suite needs the default 4000-byte header limit or more.
. "$(dirname "$0")/lib.sh"
host=${1:?host} port=${2:?port} how=${3:-h2c} path=${4:-/bytes/64}; shift $(($# > 4 ? 4 : $#))
loopback_only "$host"
bin=${H2SPEC:-h2spec}; need "$bin" "name h2spec's binary in H2SPEC"
flags=(-h "$host" -p "$port" -P "$path" -o "${H2SPEC_TIMEOUT:-2}"); [ "$how" = tls ] && flags+=(-t -k)
out=$(mktemp); trap 'rm -f "$out" "$out.xml"' EXIT
timeout 570 "$bin" "${flags[@]}" -j "$out.xml" "$@" > "$out" 2>&1
python3 - "$out.xml" <<'PY'
import sys, xml.etree.ElementTree as E
ok = bad = skip = 0
try: root = E.parse(sys.argv[1]).getroot()
except Exception as e: print("no report:", e); print("0 passed, 1 failed"); sys.exit(1)
for s in root.iter("testsuite"):
    for c in s.findall("testcase"):
        why = c.find("failure") if c.find("failure") is not None else c.find("error")
        if why is not None: bad += 1; print("FAIL %s %s: ...%s" % (s.get("package"), c.get("classname"), " ".join("".join(why.itertext()).split())[-60:]))
        elif c.find("skipped") is not None: skip += 1
        else: ok += 1
print("%d passed, %d failed%s" % (ok, bad, ", %d skipped" % skip if skip else "")); sys.exit(bad > 0 or ok == 0)
PY
