#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Slow clients with Debian's slowhttptest: slow headers, slow body, range header, slow read. Bounded: 300 connections, 20 s each.
#   slow.sh HOST PORT [SECONDS]     SECONDS: a slow request must have been ended by the proxy after that long (0: not asked)
# Passed: the proxy answers a normal client all through, and (where asked) ends the slow ones.
. "$(dirname "$0")/lib.sh"
host=${1:?host} port=${2:?port} within=${3:-0}; loopback_only "$host"; need slowhttptest slowhttptest; need curl curl
ok=0 bad=0; tmp=$(mktemp -d); trap 'rm -rf "$tmp"' EXIT
mark() { if "${@:2}"; then ok=$((ok + 1)); else bad=$((bad + 1)); echo "FAIL $1"; fi; }
len=20; [ "$within" -gt 0 ] && len=$((within + 5))
url=http://$host:$port
# How many connections the kernel has at the proxy's port that are not closed: what a slow reader sees itself comes too late,
# since it first reads what its own kernel holds, 32 bytes every 5 seconds, and meets the reset behind that.
held() { awk -v port=":$(printf %04X "$port")$" '$2 ~ port && $4 ~ /^(01|04|05|08)$/' /proc/net/tcp | wc -l; }
run() { # run NAME PATH ARGS...
  local name=$1 path=$2; shift 2
  (cd "$tmp" && timeout $((len + 15)) slowhttptest -c 300 -r 150 -l $len -p 3 -g -o "$name" "$@" -u "$url$path" > "$name.log" 2>&1) &
  local pid=$! n=0 late=0
  for ((i = 0; i < len - 3; i++)); do
    sleep 1; n=$((n + 1))
    [ "$(curl -s -o /dev/null -m 2 -w '%{http_code}' "$url/bytes/100")" = 200 ] || late=$((late + 1))
  done
  local left=0
  [ "$within" -gt 0 ] && { sleep 2; left=$(held); }
  wait $pid
  mark "$name: $late of $n normal requests were not answered in 2 s" [ $late -eq 0 ]
  if [ "$within" -gt 0 ] && [ "$name" = read ]; then
    mark "read: $left slow connections were still held after $((len - 1)) s" [ "$left" -lt 10 ]
  elif [ "$within" -gt 0 ] && [ "$name" != range ]; then
    mark "$name: slow connections were still open after ${len} s" grep -qa 'No open connections left' "$tmp/$name.log"
  fi
}
run headers / -H -i 4 -t GET -x 24
run body /reflect -B -i 4 -s 8192 -t POST -x 10
run range /bytes/10000 -R -t HEAD -a 10 -b 3000
run read /bytes/3000000 -X -w 512 -y 1024 -n 5 -z 32 -k 3
total $ok $bad
