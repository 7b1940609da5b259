#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# TLS hygiene with three scanners from Debian: testssl.sh, sslscan, nmap's ssl-enum-ciphers.
#   tls-scan.sh HOST PORT
# Passed and failed are testssl's own verdicts (OK, against LOW and worse), less what a throw-away certificate
# causes, and a handful of checks on what sslscan, nmap and openssl report.
. "$(dirname "$0")/lib.sh"
host=${1:?host} port=${2:?port}; loopback_only "$host"
need testssl testssl.sh; need sslscan sslscan; need nmap nmap; need openssl openssl
tmp=$(mktemp -d); trap 'rm -rf "$tmp"' EXIT
timeout 400 testssl --openssl "$(command -v openssl)" --quiet --color 0 --warnings off --nodns none -p -S -P -U -E --jsonfile "$tmp/t.json" "$host:$port" > "$tmp/t.txt" 2>&1
timeout 60 sslscan --no-colour --xml="$tmp/s.xml" "$host:$port" > "$tmp/s.txt" 2>&1
timeout 100 nmap -Pn -p "$port" --script ssl-enum-ciphers,ssl-cert -oX "$tmp/n.xml" "$host" > "$tmp/n.txt" 2>&1
# nmap's tls-alpn offers RSA key exchange alone, which modern defaults refuse before ALPN matters.
for p in h2 http/1.1; do
  openssl s_client -connect "$host:$port" -alpn "$p" < /dev/null 2> /dev/null | grep -a "^ALPN protocol: $p" >> "$tmp/alpn"
done
/usr/bin/python3 - "$tmp" <<'PY'
import json, re, sys, xml.etree.ElementTree as E
d = sys.argv[1]; ok = bad = 0
def check(what, good, why=""):
    global ok, bad
    if good: ok += 1
    else: bad += 1; print("FAIL %s %s" % (what, why))
try: t = json.load(open(d + "/t.json"))
except Exception as e: t = []; check("testssl ran", False, str(e))
ignore = re.compile(r"^(cert_|intermediate|DNS_CAA|OCSP|certificate_transparency|scan_?[tT]ime|engine_problem|service|optimal_proto|pre_128)")
for x in t:
    if ignore.match(x["id"]): continue
    if x["severity"] == "OK": ok += 1
    elif x["severity"] in ("LOW", "MEDIUM", "HIGH", "CRITICAL"): check("testssl " + x["id"], False, x["severity"] + " " + x["finding"][:90])
try:
    s = E.parse(d + "/s.xml").getroot().find("ssltest")
    on = {p.get("type") + p.get("version"): p.get("enabled") == "1" for p in s.iter("protocol")}
    for p in ("ssl2", "ssl3", "tls1.0", "tls1.1"): check("sslscan %s off" % p, not on.get(p))
    for p in ("tls1.2", "tls1.3"): check("sslscan %s on" % p, on.get(p))
    weak = [c.get("cipher") for c in s.iter("cipher") if int(c.get("bits") or 0) < 128 or re.search(r"RC4|DES|NULL|EXP|MD5|ADH|AECDH", c.get("cipher"))]
    check("sslscan no weak cipher", not weak, " ".join(weak))
    for h in s.iter("heartbleed"): check("sslscan heartbleed " + (h.get("sslversion") or ""), h.get("vulnerable") == "0")
    c = s.find("compression"); check("sslscan no TLS compression", c is None or c.get("supported") == "0")
    r = s.find("renegotiation"); check("sslscan renegotiation is secure or off", r is None or r.get("secure") == "1" or r.get("supported") == "0")
except Exception as e: check("sslscan report", False, repr(e))
n = open(d + "/n.txt").read()
m = re.search(r"least strength: (\w)", n); check("nmap least strength A", bool(m) and m.group(1) == "A", m.group(0) if m else "no answer")
alpn = open(d + "/alpn").read()
check("h2 and http/1.1 in ALPN", "h2" in alpn and "http/1.1" in alpn)
print("%d passed, %d failed" % (ok, bad)); sys.exit(bad > 0)
PY
