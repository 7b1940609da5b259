#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# HTTP/1.1 server compliance with uNetworking's h1spec (33 cases), run by deno (DENO names it; npm has it as a package).
#   H1SPEC=path/to/http_test.ts h1spec.sh HOST PORT
# The origin behind the proxy echoes the body of any method (origin.cjs does).
. "$(dirname "$0")/lib.sh"
host=${1:?host} port=${2:?port}; loopback_only "$host"
: "${H1SPEC:?names the suite http_test.ts}"
deno=${DENO:-deno}; need "$deno" "npm install deno, then DENO=node_modules/.bin/deno"
out=$(mktemp); trap 'rm -f "$out"' EXIT
DENO_NO_UPDATE_CHECK=1 timeout 60 "$deno" run --no-check --no-remote --no-config --allow-net="$host:$port" "$H1SPEC" "$host" "$port" > "$out" 2>&1
grep -a '❌' "$out" | sed 's/^❌/FAIL/'
all=$(grep -aoE '[0-9]+ out of [0-9]+ tests passed' "$out") || { tail -5 "$out"; total 0 1; exit 1; }
ok=${all%% *}; n=$(echo "$all" | awk '{print $4}')
total "$ok" $((n - ok))
