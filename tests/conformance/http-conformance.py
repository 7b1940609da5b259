#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""CISPA's HTTP response conformance rules (106 rules mined from the RFCs), run without its databases and its crawler.
   HTTP_CONFORMANCE=checkout http-conformance.py HOST PORT [PATH...]
Debian packages: mitmproxy (only its message classes are used), python3-dpkt, python3-peewee, python3-httpx.
A rule passes where no response breaks it; rules that no response touches are skipped. Rules are of several levels:
only Requirement and ABNF rules count as failures, the others are printed as notes."""
import enum, inspect, os, re, socket, sys, types

host, port, paths = sys.argv[1], int(sys.argv[2]), sys.argv[3:] or ["/reflect", "/bytes/1000", "/chunked/3000/100", "/status/404", "/status/304", "/status/204", "/status/302", "/gzip", "/cookies/3"]
if not re.match(r"127\.|localhost$|::1$", host): sys.exit("loopback only")
root = os.environ["HTTP_CONFORMANCE"]; sys.path.insert(0, root); sys.dont_write_bytecode = True
def fake(name, **kw): m = types.ModuleType(name); m.__dict__.update(kw); sys.modules[name] = m
fake("strenum", StrEnum=enum.StrEnum); fake("psycopg2", connect=None); fake("tranco", Tranco=None); fake("tld", get_fld=None); fake("pandas")
try: import dpkt, peewee, mitmproxy, httpx
except ModuleNotFoundError as e: print("missing:", e.name, "(install: mitmproxy python3-dpkt python3-peewee python3-httpx)"); sys.exit(77)
if getattr(peewee, "psycopg2", None) is None: peewee.psycopg2 = types.SimpleNamespace(Binary=bytes)
from helpers import db_util
models = [m for m in vars(db_util).values() if inspect.isclass(m) and issubclass(m, peewee.Model) and m is not db_util.BaseModel and m.__module__ == "helpers.db_util"]
db = peewee.SqliteDatabase(":memory:"); db.bind(models); db.create_tables(models)
from helpers import direct_util
def parse(raw, head_response=False):
    out = []
    for r in re.split(rb"(?<=\r\n\r\n)(?=HTTP/)", raw):
        try:
            if head_response:
                h = dpkt.http.Response(); first, _, rest = r.partition(b"\r\n"); w = first.decode("latin1").split(" ", 2)
                h.version, h.status, h.reason = w[0][5:], w[1], w[2] if len(w) > 2 else ""
                fields, _, h.data = rest.partition(b"\r\n\r\n"); h.body = b""
                h.headers = {k.strip().lower(): v.strip() for k, _, v in (l.partition(":") for l in fields.decode("latin1").split("\r\n") if l)}
            else: h = dpkt.http.Response(r)
        except Exception as e: h = e
        out.append((h, r))
    return out
direct_util.parse_response = parse
import testcases
from mitmproxy import http

def fetch(method, path, fields):
    s = socket.create_connection((host, port), 5); s.settimeout(3)
    s.sendall(("%s %s HTTP/1.1\r\nHost: %s:%d\r\nConnection: close\r\n%s\r\n" % (method, path, host, port, "".join("%s: %s\r\n" % f for f in fields))).encode())
    raw = b""
    try:
        while True:
            d = s.recv(65536)
            if not d: break
            raw += d
    except OSError: pass
    s.close()
    head, _, body = raw.partition(b"\r\n\r\n")
    while head.startswith(b"HTTP/1.1 1"): head, _, body = body.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n"); w = lines[0].split(b" ", 2)
    if len(w) < 2: return None
    hs = [(k, v.strip()) for k, _, v in (l.partition(b":") for l in lines[1:])]
    if any(k.lower() == b"transfer-encoding" for k, v in hs):
        out, rest = b"", body
        while rest:
            n, _, rest = rest.partition(b"\r\n"); n = int(n.split(b";")[0] or b"0", 16)
            if not n: break
            out += rest[:n]; rest = rest[n + 2:]
        body = out
    req = http.Request.make(method, "http://%s:%d%s" % (host, port, path), headers=[(k.encode(), v.encode()) for k, v in fields])
    resp = http.Response(w[0], int(w[1]), w[2] if len(w) > 2 else b"", http.Headers(hs), body, None, 0, 0)
    return types.SimpleNamespace(request=req, response=resp, id="")
V, A, L = db_util.Violation, db_util.Activity, db_util.Level
site = db_util.Site.create(site_type="local", description="", rank=-1, bucket=-1, origin="o", site="s")
flows = []
for p in paths:
    for m in ("GET", "HEAD", "OPTIONS", "POST", "DELETE", "PUT") if p != "/status/304" else ("GET", "HEAD"):
        for f in ([], [("Accept-Encoding", "gzip, br")], [("Range", "bytes=0-9")], [("If-None-Match", "*")], [("Upgrade", "foo"), ("Accept", "text/none")]) if m == "GET" else ([],):
            x = fetch(m, p, list(f) + ([("Content-Length", "0")] if m in ("POST", "PUT") else []))
            if x: flows.append(x)
result = {}
def note(t, v, extra): result.setdefault(t.name if hasattr(t, "name") else type(t).__name__, (t, []))[1].append((v, extra))
for name, c in inspect.getmembers(testcases, inspect.isclass):
    if c.__module__ != "testcases" or not hasattr(c, "activity"): continue
    t = c(); t.name = name
    if c.activity == A.PROXY:
        for f in flows:
            try: r = t.test(f)
            except Exception as e: continue
            if r is not None and r.violation: note(t, r.violation, "%s %s %s %s" % (f.request.method, f.request.path, f.response.status_code, r.extra))
    elif c.activity in (A.DIRECT, A.DIRECT_BASE):
        for p in paths[:1] if c.activity == A.DIRECT_BASE else paths[:3]:
            u = db_util.Url.create(site=site, full_url="http://%s:%d%s" % (host, port, p), scheme="http", host=host, port=port, path=p, description="")
            try: r = t.test(u); note(t, r.violation, p + " " + str(r.extra))
            except Exception as e: note(t, V.FAILED, repr(e))
ok = bad = skip = 0
for name, (t, rs) in sorted(result.items()):
    broken = [x for v, x in rs if v == V.INVALID]; valid = [x for v, x in rs if v == V.VALID]
    if broken and t.type in (L.REQUIREMENT, L.ABNF): bad += 1; print("FAIL %s: %d of %d, e.g. %s" % (name, len(broken), len(rs), broken[0][:100]))
    elif broken: skip += 1; print("note %s (%s): %d responses, e.g. %s" % (name, t.type, len(broken), broken[0][:80]))
    elif valid: ok += 1
    else: skip += 1
print("%d passed, %d failed, %d skipped" % (ok, bad, skip)); sys.exit(bad > 0)
