#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plays an origin that answers with hostile responses and judges only what the proxy hands on to its client: one response
that a strict RFC 9112 recipient reads in one way, and behind it the answer to the next request or the end.
    responses.py HOST PORT ORIGIN_PORT CORPUS.jsonl...      (corpora.py responses writes a corpus)
The proxy at HOST:PORT forwards to 127.0.0.1:ORIGIN_PORT, where this starts the origin."""
import collections
import json
import re
import socket
import sys
import threading

HOST, PORT, ORIGIN = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
if not re.match(r"127\.|localhost$|::1$", HOST):
    sys.exit("loopback only")
CORPUS = [(item["name"], bytes.fromhex(item["hex"])) for path in sys.argv[4:] for item in map(json.loads, open(path))]
SECOND = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nX-Second: yes\r\n\r\nsecond"
TOKEN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")


def serve(sock):
    """/N/open and /N/close are answered with response N of the corpus, everything else with SECOND."""
    data = b""
    sock.settimeout(5)
    try:
        while True:
            while b"\r\n\r\n" not in data:
                more = sock.recv(65536)
                if not more:
                    return
                data += more
            head, _, data = data.partition(b"\r\n\r\n")
            match = re.match(rb"\S+ /(\d+)/(\w+) ", head)
            sock.sendall(CORPUS[int(match[1])][1] if match else SECOND)
            if match and match[2] == b"close":
                return
    except OSError:
        pass
    finally:
        sock.close()


def listen():
    listener = socket.create_server(("127.0.0.1", ORIGIN), backlog=500)
    while True:
        threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()


class Wrong(Exception):
    """Two recipients could read this differently, or no recipient can."""


class Cut(Exception):
    """The response has an end that did not come."""


def need(condition, what, text=b""):
    if not condition:
        raise Wrong(f"{what} {bytes(text[:60])!r}" if text else what)


def read_head(data, at):
    """(status, fields, where the body begins) of the final response at `at`."""
    while True:
        end = data.find(b"\r\n\r\n", at)
        need(end >= 0, "no head", data[at:])
        lines = data[at:end].split(b"\r\n")
        match = re.fullmatch(rb"HTTP/1\.1 ([1-5]\d\d) [\t\x20-\x7e\x80-\xff]*", lines[0])
        need(match, "status line", lines[0])
        fields = collections.defaultdict(list)
        for line in lines[1:]:
            name, colon, value = line.partition(b":")
            need(colon and TOKEN.fullmatch(name), "field line", line)
            need(not re.search(rb"[\x00-\x08\x0a-\x1f\x7f]", value), "control character in", line)
            fields[name.lower()].append(value.strip(b" \t"))
        at = end + 4
        if int(match[1]) >= 200 or int(match[1]) == 101:
            return int(match[1]), fields, at


def read_chunked(data, at):
    while True:
        end = data.find(b"\r\n", at)
        if end < 0:
            raise Cut
        need(re.fullmatch(rb"[0-9a-fA-F]{1,15}", data[at:end]), "chunk size", data[at:end])
        size, at = int(data[at:end], 16), end + 2
        if size == 0:
            break
        if len(data) < at + size + 2:
            raise Cut
        need(data[at + size:at + size + 2] == b"\r\n", "end of a chunk")
        at += size + 2
    while True:
        end = data.find(b"\r\n", at)
        if end < 0:
            raise Cut
        line, at = data[at:end], end + 2
        if not line:
            return at
        need(TOKEN.fullmatch(line.split(b":")[0]), "trailer", line)


def read_response(data, at, method):
    """(status, where it ends); the end is None when only the connection's end is it."""
    status, fields, at = read_head(data, at)
    coding, length = fields[b"transfer-encoding"], fields[b"content-length"]
    for name in fields:
        alike = re.fullmatch(rb"(transfer.encoding|content.length)", name)
        need(not alike or b"_" not in name and name.count(b"-") == 1, "look-alike field", name)
    need(not (coding and length), "both Transfer-Encoding and Content-Length")
    need(coding in ([], [b"chunked"]), "Transfer-Encoding", b", ".join(coding))
    need(len(length) < 2 and all(re.fullmatch(rb"\d+", value) for value in length), "Content-Length", b", ".join(length))
    if method == "HEAD" or status in (204, 304):
        return status, at
    if coding:
        return status, read_chunked(data, at)
    if length and len(data) < at + int(length[0]):
        raise Cut
    return status, at + int(length[0]) if length else None


def exchange(target, method):
    """Two requests in one segment; everything that comes back, and whether the proxy closed."""
    with socket.create_connection((HOST, PORT)) as sock:
        sock.settimeout(0.4)
        sock.sendall(f"{method} {target} HTTP/1.1\r\nHost: t\r\n\r\nGET /second HTTP/1.1\r\nHost: t\r\n\r\n".encode())
        data = b""
        try:
            while not (b"X-Second" in data and data.endswith(b"second")):
                more = sock.recv(65536)
                if not more:
                    return data, True
                data += more
        except socket.timeout:
            return data, False
        except OSError:
            return data, True
        return data, False


def judge(data, closed, method):
    """What became of the first response; Wrong when it is not sound."""
    if not data:
        return "none"
    try:
        status, end = read_response(data, 0, method)
    except Cut:
        # Closed, or more may come. What was cut must not be followed by anything, which is why the second is absent.
        need(b"X-Second" not in data, "an answer behind one that is not complete")
        return "cut short"
    if end is None:
        need(closed or b"X-Second" not in data, "an answer behind one that ends with the connection")
        return "until close"
    if end < len(data):
        try:
            _, second_end = read_response(data, end, "GET")
        except Cut:
            second_end = None
        need(data[end:].endswith(b"second") and b"X-Second" in data[end:] and second_end == len(data), "second answer", data[end:])
    return str(status)


threading.Thread(target=listen, daemon=True).start()
wrong, seen = collections.defaultdict(list), collections.Counter()
passed = 0
for number, (name, _) in enumerate(CORPUS):
    for method, how in (("GET", "close"), ("GET", "open"), ("HEAD", "close")):
        try:
            seen[judge(*exchange(f"/{number}/{how}", method), method)] += 1
            passed += 1
        except (Wrong, ConnectionRefusedError) as error:
            wrong[str(error)].append(f"{name} {method} {how}")
for what, names in wrong.items():
    print(f"FAIL {what}: {len(names)} exchanges, e.g. {', '.join(names[:3])}")
print(f"{len(CORPUS)} responses; answers {dict(seen)}")
print(f"{passed} passed, {sum(map(len, wrong.values()))} failed")
sys.exit(bool(wrong))
