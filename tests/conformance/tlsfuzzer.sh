#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# TLS 1.2 and 1.3 protocol behaviour with tlsfuzzer: the scripts that need no special server set-up.
#   TLSFUZZER=checkout TLSLITE=checkout-of-tlslite-ng tlsfuzzer.sh HOST PORT [NAME...]
# python3-ecdsa comes from Debian. The server has an RSA certificate and answers GET / with some body.
# Each script counts once; it passes when all its conversations do. TLSFUZZER_N bounds the random ones (default 8).
# TLSFUZZER_TIMEOUT: seconds a script, 300. tls13-dhe-shared-secret-padding makes 2,000 handshakes with big numbers in Python.
. "$(dirname "$0")/lib.sh"
host=${1:?host} port=${2:?port}; shift 2; loopback_only "$host"
: "${TLSFUZZER:?names a checkout}" "${TLSLITE:?names a checkout}"
py=${PYTHON3:-/usr/bin/python3}; export PYTHONPATH=$TLSFUZZER:$TLSLITE PYTHONDONTWRITEBYTECODE=1
plain='connection-abort cve-2004-0079 cve-2016-7054 ecdhe-rsa-key-exchange-with-bad-messages interleaved-CKE-with-CCS lucky13 no-mlkem-in-old-tls
sslv2-connection sslv2-force-cipher-3des sslv2-force-cipher-non3des sslv2-force-cipher sslv2-force-export-cipher
tls13-0rtt-garbage tls13-ccs tls13-connection-abort tls13-conversation tls13-dhe-shared-secret-padding tls13-ecdhe-curves tls13-empty-alert
tls13-ffdhe-sanity tls13-finished tls13-finished-plaintext tls13-hrr tls13-invalid-ciphers tls13-keyshare-omitted tls13-keyupdate tls13-nociphers
tls13-pkcs-signature tls13-record-padding tls13-rsa-signatures tls13-serverhello-random tls13-signature-algorithms tls13-unencrypted-alert
tls13-unrecognised-groups tls13-zero-content-type tls13-zero-length-data'
ecdhe='aes-gcm-nonces atypical-padding ccs conversation cve-2016-2107 cve-2016-6309 early-application-data encrypt-then-mac fuzzed-MAC
fuzzed-ciphertext fuzzed-padding fuzzed-plaintext hello-request-by-client invalid-client-hello-w-record-overflow invalid-content-type large-hello
large-number-of-extensions message-skipping no-heartbeat record-layer-fragmentation renegotiation-disabled resumption-with-wrong-ciphers
sessionID-resumption ssl-death-alert tls13-version-negotiation truncating-of-client-hello version-numbers zero-length-data client-hello-max-size'
tmp=$(mktemp -d); trap 'rm -rf "$tmp"' EXIT; cd "$tmp" || exit 2
ok=0 bad=0 skip=0
one() { # one NAME FLAG
  [ -e "$TLSFUZZER/scripts/test-$1.py" ] || { skip=$((skip + 1)); return; }
  local a=() src=$TLSFUZZER/tlsfuzzer/_apps/test_${1//-/_}.py; [ -e "$src" ] || src=$TLSFUZZER/scripts/test-$1.py
  [ -n "$2" ] && a+=("$2"); grep -qE "[\"']-n[\"']" "$src" && a+=(-n "${TLSFUZZER_N:-8}")
  if timeout "${TLSFUZZER_TIMEOUT:-300}" "$py" "$TLSFUZZER/scripts/test-$1.py" -h "$host" -p "$port" "${a[@]}" > out 2>&1 < /dev/null; then ok=$((ok + 1))
  else bad=$((bad + 1)); echo "FAIL $1: $(grep -aE '^(PASS|FAIL):' out | tr -s ' ' | tr '\n' ' ')$(grep -a 'AssertionError' out | sort | uniq -c | sort -rn | head -1 | cut -c1-130)"; fi
}
for n in $plain; do [ $# -eq 0 ] || [[ " $* " == *" $n "* ]] && one "$n" ''; done
for n in $ecdhe; do [ $# -eq 0 ] || [[ " $* " == *" $n "* ]] && one "$n" -d; done
total $ok $bad $skip
