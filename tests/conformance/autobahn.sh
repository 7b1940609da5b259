#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# WebSocket conformance with the Autobahn testsuite's fuzzing client, through the proxy to a WebSocket echo server.
#   WSTEST=path/to/wstest autobahn.sh HOST PORT [PATH] [CASE,CASE...]
# BRIDGE=PORT (BRIDGE_TLS=tls) puts h2bridge.py on that port, so that the proxy is spoken to in HTTP/2.
# Cases: 1-7 framing, pings, reserved bits, fragments, UTF-8, close; 9 limits (big); 10 misc; 12, 13 compression (long).
# Default: all but 9.7, 9.8, 12 and 13. AUTOBAHN_ALL=1 runs everything. Needs Python 2.7, whichever runs wstest.
. "$(dirname "$0")/lib.sh"
host=${1:?host} port=${2:?port} path=${3:-/ws} cases=${4:-*}; loopback_only "$host"
need "${WSTEST:?names the suite command wstest}" "the Autobahn testsuite"
bridge= tmp=$(mktemp -d)
# shellcheck disable=SC2317
end() { [ -n "$bridge" ] && kill "$bridge" 2>/dev/null; rm -rf "$tmp"; }
trap end EXIT
cd "$tmp" || exit 2
if [ -n "${BRIDGE:-}" ]; then
  # shellcheck disable=SC2086
  /usr/bin/python3 "$KIT/h2bridge.py" "$BRIDGE" "$port" ${BRIDGE_TLS:-} &
  bridge=$! port=$BRIDGE
  wait_port "$host" "$port" || exit 1
fi
excl='["9.7.*","9.8.*","12.*","13.*"]'; [ -n "${AUTOBAHN_ALL:-}" ] && excl='[]'
printf '{"outdir":"out","servers":[{"agent":"p","url":"ws://%s:%s%s","options":{"version":18}}],"cases":["%s"],"exclude-cases":%s,"exclude-agent-cases":{}}' \
  "$host" "$port" "$path" "${cases//,/\",\"}" "$excl" > spec.json
timeout "${AUTOBAHN_TIMEOUT:-580}" "$WSTEST" -m fuzzingclient -s spec.json > log 2>&1 || tail -3 log
python3 - out/index.json <<'PY'
import json, sys
try: d = json.load(open(sys.argv[1])).get("p", {})
except Exception as e: print("no report:", e); print("0 passed, 1 failed"); sys.exit(1)
key = lambda c: [int(x) for x in c.split(".")]
ok = bad = skip = 0
for c in sorted(d, key=key):
    b, bc = d[c]["behavior"], d[c]["behaviorClose"]
    if b in ("UNIMPLEMENTED",): skip += 1
    elif b in ("OK", "NON-STRICT", "INFORMATIONAL") and bc in ("OK", "INFORMATIONAL", "UNIMPLEMENTED", "NON-STRICT"): ok += 1
    else: bad += 1; print("FAIL case %s: %s, close %s" % (c, b, bc))
print("%d passed, %d failed%s" % (ok, bad, ", %d skipped" % skip if skip else "")); sys.exit(bad > 0 or ok == 0)
PY
