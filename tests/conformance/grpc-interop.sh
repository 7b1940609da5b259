#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The official gRPC interop cases with grpc-node's own interop client and server, through the proxy (h2c both sides).
#   GRPC_NODE=checkout of grpc/grpc-node grpc-interop.sh HOST PORT ORIGIN_PORT
# The proxy at HOST:PORT forwards gRPC to 127.0.0.1:ORIGIN_PORT, where this starts the interop server.
. "$(dirname "$0")/lib.sh"
host=${1:?host} port=${2:?port} oport=${3:?origin port}; loopback_only "$host"
: "${GRPC_NODE:?names a checkout}"
tmp=$(mktemp -d); trap 'kill $pid 2>/dev/null; rm -rf "$tmp"' EXIT
node --require "$KIT/grpc-shim.cjs" "$GRPC_NODE/test/interop/interop_server.js" --port="$oport" --use_tls=false > "$tmp/server" 2>&1 & pid=$!
wait_port 127.0.0.1 "$oport" || { cat "$tmp/server"; exit 2; }
ok=0 bad=0
for c in empty_unary large_unary client_streaming server_streaming ping_pong empty_stream cancel_after_begin cancel_after_first_response \
  timeout_on_sleeping_server custom_metadata status_code_and_message special_status_message unimplemented_service unimplemented_method; do
  if timeout 15 node --require "$KIT/grpc-shim.cjs" "$GRPC_NODE/test/interop/interop_client.js" --server_host="$host" --server_port="$port" --test_case=$c --use_tls=false > "$tmp/out" 2>&1
  then ok=$((ok + 1)); else bad=$((bad + 1)); echo "FAIL $c: $(grep -aE 'Error|assert' "$tmp/out" | head -1 | cut -c1-120)"; fi
done
total $ok $bad
