#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns corpora of other projects, named by environment variables, into JSON lines {name, hex} on stdout.
    corpora.py requests     for smuggle.mjs
    corpora.py responses    for responses.py: llhttp's, and the smuggler's mutations as fields of a response
SMUGGLER=checkout of defparam/smuggler   LLHTTP=checkout of nodejs/llhttp   HTTP_GARDEN=checkout of narfindustries/http-garden
Only texts are taken from them; SMUGGLER's configs are small Python files that fill a dict, and are run as such."""
import codecs, json, os, re, sys

def out(name, data): print(json.dumps({"name": name, "hex": data.hex()}))

def escaped(text):
    """The bytes of one of llhttp's examples."""
    b = re.sub(r"\\\n", "", text).replace("\n", "\r\n")
    return re.sub(r"\\(x[0-9a-fA-F]{2}|r|n|t|f|\\)", lambda k: codecs.decode(k.group(0), "unicode_escape"), b).encode("latin1", "replace")

def smuggler(root, configs=("default", "exhaustive", "doubles"), response=False):
    class Payload:
        header = body = ""; host = method = endpoint = None; cl = -1
    inner = "GET /smuggled HTTP/1.1\r\nHost: localhost\r\nX: "
    bodies = {  # how the three bodies behave where one side reads Transfer-Encoding and the other Content-Length
        "whole": (None, "5\r\nhello\r\n0\r\n\r\n"),
        "cl-te": (None, "0\r\n\r\n" + inner),
        "te-cl": (4, "%x\r\n%s\r\n0\r\n\r\n" % (len(inner), inner)),
    }
    for c in configs:
        path = os.path.join(root, "configs", c + ".py")
        if not os.path.exists(path): continue
        env = {"Payload": Payload, "mutations": {}, "RN": "\r\n"}
        exec(compile(open(path).read(), path, "exec"), env)
        for name, p in env["mutations"].items():
            for kind, (cl, body) in bodies.items():
                h = p.header.replace("__METHOD__", "POST").replace("__ENDPOINT__", "/").replace("__RANDOM__", "1").replace("__HOST__", "localhost")
                h = h.replace("__REPLACE_CL__", str(len(body) if cl is None else cl))
                if not h.endswith("\r\n"): h += "\r\n"
                if response: h = re.sub(r"^[^\r\n]*\r\n", "HTTP/1.1 200 OK\r\n", h, count=1).replace("\r\nHost: localhost", "", 1)
                out("smuggler/%s/%s/%s" % (c, name, kind), (h + "\r\n" + body).encode("latin1", "replace"))

def llhttp(root, kind="request"):
    d = os.path.join(root, "test", kind)
    for f in sorted(os.listdir(d)):
        if not f.endswith(".md"): continue
        text = open(os.path.join(d, f)).read()
        titles = [(m.start(), m.group(1)) for m in re.finditer(r"^#+ (.*)$", text, re.M)]
        for i, m in enumerate(re.finditer(r"```http\n(.*?)\n?```", text, re.S)):
            t = [x for p, x in titles if p < m.start()][-1:] or [""]
            out("llhttp/%s/%d %s" % (f[:-3], i, t[0]), escaped(m.group(1)))

def garden(root):
    text = open(os.path.join(root, "TROPHIES.md")).read()
    for i, m in enumerate(re.finditer(r"Payload: `(.*?)`\s*$", text, re.M)):
        s = m.group(1).encode("utf-8").decode("latin1")
        try: b = codecs.decode(s, "unicode_escape").encode("latin1")
        except Exception: continue
        if b"HTTP/1" in b or b"\r\n" in b: out("http-garden/trophy-%d" % i, b)

if __name__ == "__main__":
    responses = sys.argv[1:] == ["responses"]
    for var, f in (("SMUGGLER", lambda root: smuggler(root, response=responses)),
                   ("LLHTTP", lambda root: llhttp(root, "response" if responses else "request")),
                   ("HTTP_GARDEN", garden)):
        if f is garden and responses: continue
        if os.environ.get(var): f(os.environ[var])
        else: print(var + " is not set, left out", file=sys.stderr)
