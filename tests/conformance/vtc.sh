#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Our own black-box specifications in the varnishtest language (vtc/*.vtc): they play both the client and the origin.
#   vtc.sh HOST PORT ORIGIN_PORT [FILE.vtc...]
# The proxy at HOST:PORT forwards to 127.0.0.1:ORIGIN_PORT, where nothing else listens. VTEST names another runner
# (a vtest binary); Debian's varnishtest (package varnish) is the default.
. "$(dirname "$0")/lib.sh"
host=${1:?host} port=${2:?port} oport=${3:?origin port}; shift 3; loopback_only "$host"
run=${VTEST:-varnishtest}; need "$run" varnish
tmp=$(mktemp -d); trap 'rm -rf "$tmp"' EXIT; export TMPDIR=$tmp
[ $# -gt 0 ] || set -- "$KIT"/vtc/*.vtc
ok=0 bad=0 skip=0
for f in "$@"; do
  { "$run" -t 25 -D "proxy=$host:$port" -D "phost=$host" -D "pport=$port" -D "origin=127.0.0.1:$oport" "$f" > "$tmp/log" 2>&1; rc=$?; } 2> /dev/null
  case $rc in 0) ok=$((ok + 1)) ;; 77) skip=$((skip + 1)) ;; *) bad=$((bad + 1)); echo "FAIL $(basename "$f" .vtc): $(grep -aE '^----' "$tmp/log" | head -1 | cut -c1-110)" ;; esac
  sleep 0.1
done
total $ok $bad $skip
