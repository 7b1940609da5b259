#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Correctness under load with real load generators: every request answered, none failed. Short and bounded; not a benchmark.
#   load.sh HOST HTTP_PORT [H2C_PORT] [TLS_PORT]
. "$(dirname "$0")/lib.sh"
host=${1:?host} p=${2:?http port} h2=${3:-} tls=${4:-}; loopback_only "$host"
ok=0 bad=0
say() { if [ "$2" = yes ]; then ok=$((ok + 1)); echo "ok   $1 ($3)"; else bad=$((bad + 1)); echo "FAIL $1 ($3)"; fi; }
u=http://$host:$p
if command -v ab > /dev/null; then
  o=$(ab -q -n 5000 -c 50 -k "$u/bytes/1000" 2>&1); f=$(echo "$o" | awk '/Failed requests/{print $3}'); c=$(echo "$o" | awk '/Complete requests/{print $3}'); e=$(echo "$o" | awk '/Non-2xx/{print $3}')
  say 'ab keep-alive' "$([ "$f" = 0 ] && [ "$c" = 5000 ] && [ -z "$e" ] && echo yes)" "complete $c failed $f non-2xx ${e:-0} $(echo "$o" | awk '/Requests per second/{print $4}')/s"
  o=$(ab -q -n 2000 -c 20 "$u/bytes/1000" 2>&1); f=$(echo "$o" | awk '/Failed requests/{print $3}'); c=$(echo "$o" | awk '/Complete requests/{print $3}')
  say 'ab one request a connection' "$([ "$f" = 0 ] && [ "$c" = 2000 ] && echo yes)" "complete $c failed $f"
fi
if command -v wrk > /dev/null; then
  o=$(wrk -t1 -c40 -d4s "$u/bytes/1000" 2>&1); bado=$(echo "$o" | grep -E 'Socket errors|Non-2xx'); say 'wrk 40 connections' "$([ -z "$bado" ] && echo yes)" "$(echo "$o" | awk '/Requests\/sec/{print $2}')/s $bado"
  o=$(wrk -t1 -c40 -d4s "$u/chunked/20000/1000" 2>&1); bado=$(echo "$o" | grep -E 'Socket errors|Non-2xx'); say 'wrk chunked answers' "$([ -z "$bado" ] && echo yes)" "$(echo "$o" | awk '/Requests\/sec/{print $2}')/s $bado"
fi
if command -v h2load > /dev/null; then
  h2l() { local o; o=$(timeout 60 h2load -n 5000 -c 10 "${@:2}" 2>&1); local l; l=$(echo "$o" | grep '^requests:'); say "h2load $1" "$(echo "$l" | grep -q ' 5000 succeeded, 0 failed, 0 errored' && echo yes)" "$(echo "$l" | sed 's/^requests: //') $(echo "$o" | awk '/^finished/{print $4, $5}')"; }
  h2l 'HTTP/1.1' --h1 "$u/bytes/1000"
  [ -n "$h2" ] && { h2l 'h2c, 32 streams' -m 32 "http://$host:$h2/bytes/1000"; h2l 'h2c, 100 kB answers, small windows' -m 8 -w 14 -W 16 "http://$host:$h2/bytes/100000"; dd if=/dev/zero bs=1000 count=64 of=/dev/shm/h2load.$$ 2>/dev/null; h2l 'h2c, 64 kB uploads' -m 8 -d /dev/shm/h2load.$$ "http://$host:$h2/reflect"; rm -f /dev/shm/h2load.$$; }
  [ -n "$tls" ] && h2l 'TLS h2, 32 streams' -m 32 "https://$host:$tls/bytes/1000"
fi
if [ -x "$KIT/node_modules/.bin/autocannon" ]; then
  o=$("$KIT/node_modules/.bin/autocannon" -j -c 20 -p 4 -d 4 "$u/bytes/1000" 2> /dev/null); r=$(echo "$o" | /usr/bin/python3 -c 'import json,sys; d=json.load(sys.stdin); print(d["errors"]+d["timeouts"]+d["non2xx"], d["requests"]["total"], round(d["requests"]["average"]))' 2> /dev/null)
  say 'autocannon, 4 pipelined' "$([ "${r%% *}" = 0 ] && echo yes)" "errors, requests, a second: $r"
fi
if command -v siege > /dev/null; then
  o=$(cd /; HOME=${TMPDIR:-/tmp} siege -q -b -c 10 -r 100 -j "$u/gzip" 2>&1); f=$(echo "$o" | grep -oE '"failed_transactions":[^0-9]*[0-9]+' | grep -oE '[0-9]+$'); say 'siege, gzip answers' "$([ "$f" = 0 ] && echo yes)" "failed ${f:-?}"
fi
total $ok $bad
