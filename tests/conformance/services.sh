#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Real services behind the proxy's TCP and UDP listeners, judged by their own clients.
#   services.sh HOST TCP_PORT UDP_PORT|- ORIGIN_TCP_PORT ORIGIN_UDP_PORT|-
# Each service in turn is started on the origin port (so nothing else may listen there; run the peer with --no-origin)
# and stopped again. Debian packages: redis-server redis-tools memcached postgresql mosquitto mosquitto-clients bind9
# bind9-dnsutils dnsmasq-base dnsperf iperf3 openssh-server; what is missing is skipped. As root, postgres runs as its own user.
. "$(dirname "$0")/lib.sh"
host=${1:?host} tp=${2:?tcp port} up=${3:?udp port} ot=${4:?origin tcp port} ou=${5:?origin udp port}; loopback_only "$host"
ok=0 bad=0 skip=0; tmp=$(mktemp -d); chmod 755 "$tmp"; pid=
trap '[ -n "$pid" ] && kill $pid 2>/dev/null; rm -rf "$tmp"' EXIT
stop() { [ -n "$pid" ] && { kill $pid 2> /dev/null; wait $pid 2> /dev/null; }; pid=; sleep 0.3; }
check() { local n=$1; shift; if "$@" > "$tmp/out" 2>&1; then ok=$((ok + 1)); else bad=$((bad + 1)); echo "FAIL $n: $(tail -1 "$tmp/out" | cut -c1-120)"; fi; }
missing() { for c in "$@"; do command -v "$c" > /dev/null || { echo "skipped, no $c"; skip=$((skip + 1)); return 0; }; done; return 1; }
export PATH=$PATH:/usr/sbin:/sbin

if ! missing redis-server redis-cli redis-benchmark; then
  redis-server --port "$ot" --bind 127.0.0.1 --save '' --dir "$tmp" > "$tmp/redis" 2>&1 & pid=$!; wait_port 127.0.0.1 "$ot"
  r() { redis-cli -h "$host" -p "$tp" "$@"; }
  check 'redis PING' bash -c "[ \"\$(redis-cli -h $host -p $tp PING)\" = PONG ]"
  head -c 3000000 /dev/urandom > "$tmp/blob"
  check 'redis 3 MB value comes back' bash -c "redis-cli -h $host -p $tp -x SET blob < '$tmp/blob' && redis-cli -h $host -p $tp --raw GET blob | head -c 3000000 | cmp - '$tmp/blob'"
  check 'redis pub/sub' bash -c "(timeout 3 redis-cli -h $host -p $tp SUBSCRIBE ch > '$tmp/sub' & sleep .5; redis-cli -h $host -p $tp PUBLISH ch msg1; sleep .5; wait); grep -q msg1 '$tmp/sub'"
  check 'redis-benchmark, 20000 requests, 50 connections, pipelined' redis-benchmark -h "$host" -p "$tp" -n 20000 -c 50 -P 8 -t set,get -q
  stop
fi
if ! missing memcached; then
  memcached -u "$(id -un)" -l 127.0.0.1 -p "$ot" -U 0 > "$tmp/mc" 2>&1 & pid=$!; wait_port 127.0.0.1 "$ot"
  check 'memcached set, get, 500 kB' python3 - "$host" "$tp" <<'PY'
import socket, sys
s = socket.create_connection((sys.argv[1], int(sys.argv[2])), 5); f = s.makefile("rb"); v = b"m" * 500000
s.sendall(b"set k 0 0 %d\r\n" % len(v) + v + b"\r\n"); assert f.readline() == b"STORED\r\n"
s.sendall(b"get k\r\n"); assert f.readline().startswith(b"VALUE k 0 500000"); assert f.read(500002)[:-2] == v; assert f.readline() == b"END\r\n"
s.sendall(b"quit\r\n"); assert f.read() == b""
PY
  stop
fi
pgbin=$(ls -d /usr/lib/postgresql/*/bin 2> /dev/null | tail -1)
if [ -n "$pgbin" ] && ! missing psql; then
  as=(); [ "$(id -u)" = 0 ] && as=(runuser -u postgres --)
  mkdir "$tmp/pg"; [ "$(id -u)" = 0 ] && chown postgres "$tmp/pg"
  "${as[@]}" "$pgbin/initdb" -D "$tmp/pg/d" -A trust -U pg > "$tmp/initdb" 2>&1
  "${as[@]}" "$pgbin/postgres" -D "$tmp/pg/d" -p "$ot" -c listen_addresses=127.0.0.1 -c unix_socket_directories= > "$tmp/pg.log" 2>&1 & pid=$!; wait_port 127.0.0.1 "$ot" 150
  for i in 1 2 3 4 5 6 7 8 9 10; do psql -h 127.0.0.1 -p "$ot" -U pg -d postgres -c 'select 1' > /dev/null 2>&1 && break; sleep 0.5; done
  q() { psql -h "$host" -p "$tp" -U pg -d postgres -Atqc "$1"; }
  check 'postgres query' bash -c "[ \"\$(psql -h $host -p $tp -U pg -d postgres -Atqc 'select 6*7')\" = 42 ]"
  check 'postgres 200000 rows' bash -c "[ \"\$(psql -h $host -p $tp -U pg -d postgres -Atqc 'select g, md5(g::text) from generate_series(1,200000) g' | wc -l)\" = 200000 ]"
  check 'postgres COPY in and out' bash -c "seq 1 100000 | psql -h $host -p $tp -U pg -d postgres -q -c 'create table t(i int)' -c '\\copy t from stdin' && [ \"\$(psql -h $host -p $tp -U pg -d postgres -Atqc 'select sum(i) from t')\" = 5000050000 ]"
  check 'postgres cancel reaches the server' bash -c "timeout -s INT 1 psql -h $host -p $tp -U pg -d postgres -c 'select pg_sleep(9)'; sleep .5; [ \"\$(psql -h $host -p $tp -U pg -d postgres -Atqc \"select count(*) from pg_stat_activity where query like 'select pg_sleep%' and state='active'\")\" = 0 ]"
  [ -x "$pgbin/pgbench" ] && check 'pgbench, 8 clients, 4 s' bash -c "'$pgbin/pgbench' -h $host -p $tp -U pg -i -q postgres && '$pgbin/pgbench' -h $host -p $tp -U pg -c 8 -T 4 postgres | tee /dev/stderr | grep -qE 'number of failed transactions: 0 '"
  stop
fi
if ! missing mosquitto mosquitto_pub mosquitto_sub; then
  printf 'listener %s 127.0.0.1\nallow_anonymous true\n' "$ot" > "$tmp/m.conf"; mosquitto -c "$tmp/m.conf" > "$tmp/mq" 2>&1 & pid=$!; wait_port 127.0.0.1 "$ot"
  for q in 0 1 2; do check "mqtt QoS $q" bash -c "(timeout 4 mosquitto_sub -h $host -p $tp -t a/b -q $q -C 1 > '$tmp/ms' & sleep .6; mosquitto_pub -h $host -p $tp -t a/b -q $q -m hello$q; wait); grep -q hello$q '$tmp/ms'"; done
  [ -d "$KIT/node_modules/mqtt" ] && check 'mqtt.js, 500 messages' node -e "const m=require('$KIT/node_modules/mqtt').connect('mqtt://$host:$tp');let n=0;m.on('connect',()=>m.subscribe('x/#',{qos:1},()=>{for(let i=0;i<500;i++)m.publish('x/'+i,String(i),{qos:1})}));m.on('message',()=>{if(++n===500)process.exit(0)});setTimeout(()=>{console.log(n+' of 500');process.exit(1)},8000)"
  stop
fi
if ! missing iperf3; then
  iperf3 -s -B 127.0.0.1 -p "$ot" > "$tmp/ip" 2>&1 & pid=$!; sleep 0.7
  check 'iperf3 up, 2 streams' iperf3 -c "$host" -p "$tp" -t 2 -P 2
  check 'iperf3 down' iperf3 -c "$host" -p "$tp" -t 2 -R
  stop
fi
if ! missing sshd ssh ssh-keygen; then
  ssh-keygen -q -t ed25519 -N '' -f "$tmp/hk"; ssh-keygen -q -t ed25519 -N '' -f "$tmp/uk"; cp "$tmp/uk.pub" "$tmp/ak"; mkdir -p /run/sshd 2> /dev/null
  "$(command -v sshd)" -D -p "$ot" -h "$tmp/hk" -o ListenAddress=127.0.0.1 -o AuthorizedKeysFile="$tmp/ak" -o StrictModes=no -o PidFile=none -o UsePAM=no > "$tmp/sshd" 2>&1 & pid=$!; wait_port 127.0.0.1 "$ot"
  check 'ssh, 5 MB through' bash -c "[ \"\$(ssh -p $tp -i '$tmp/uk' -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o BatchMode=yes $host head -c 5000000 /dev/zero 2>/dev/null | wc -c)\" = 5000000 ]"
  stop
fi
if [ "$up" != - ]; then
  if ! missing named dig; then
    printf 'options { directory "%s"; listen-on port %s { 127.0.0.1; }; listen-on-v6 { none; }; recursion no; pid-file none; session-keyfile "%s/k"; };\ncontrols { };\nzone "t.test" { type master; file "z"; };\n' "$tmp" "$ou" "$tmp" > "$tmp/n.conf"
    { printf '$TTL 60\n@ SOA ns.t.test. a.t.test. 1 60 60 60 60\n@ NS ns\nns A 127.0.0.1\nwww A 192.0.2.7\n'; for i in $(seq 60); do echo "big A 192.0.2.$i"; done; } > "$tmp/z"
    chmod -R a+rX "$tmp"; named -g -c "$tmp/n.conf" > "$tmp/named" 2>&1 & pid=$!; for i in $(seq 40); do dig +time=1 +tries=1 @127.0.0.1 -p "$ou" www.t.test > /dev/null 2>&1 && break; sleep 0.2; done
    check 'DNS over UDP (bind)' bash -c "[ \"\$(dig +short +time=2 +tries=1 @$host -p $up www.t.test)\" = 192.0.2.7 ]"
    check 'DNS answer of over 900 bytes over UDP' bash -c "[ \"\$(dig +short +time=2 +tries=1 +bufsize=4096 +ignore @$host -p $up big.t.test | wc -l)\" = 60 ]"
    if command -v dnsperf > /dev/null; then for i in $(seq 200); do echo 'www.t.test A'; done > "$tmp/q"; check 'dnsperf, 4 s, none lost' bash -c "dnsperf -s $host -p $up -d '$tmp/q' -l 4 -c 10 -q 20 -Q 2000 2>&1 | tee /dev/stderr | grep -E 'Queries lost: +0 '"; fi
    stop
  fi
  if ! missing dnsmasq dig; then
    dnsmasq -k --no-resolv --no-hosts --listen-address=127.0.0.1 --bind-interfaces --port="$ou" --address=/m.test/192.0.2.9 --conf-file=/dev/null --pid-file= --user="$(id -un)" > "$tmp/dm" 2>&1 & pid=$!; sleep 0.7
    check 'DNS over UDP (dnsmasq)' bash -c "[ \"\$(dig +short +time=2 +tries=1 @$host -p $up a.m.test)\" = 192.0.2.9 ]"
    stop
  fi
fi
total $ok $bad $skip
