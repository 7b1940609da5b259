#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A sample backend: a web server that says its name, so that one sees which of several answered.

    examples/backend.py NAME PORT
"""
import http.server
import json
import sys


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "sample"

    def do_GET(self):
        length = int(self.headers.get("Content-Length") or 0)
        received = self.rfile.read(length)
        answer = {"backend": NAME, "method": self.command, "path": self.path, "headers": dict(self.headers.items())}
        if received:
            answer["body"] = received.decode("utf-8", "replace")
        body = (json.dumps(answer, indent=2) + "\n").encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Backend", NAME)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = do_POST = do_PUT = do_DELETE = do_GET

    def log_message(self, format, *args):
        """Health checks would fill the terminal."""


if __name__ == "__main__":
    NAME, PORT = sys.argv[1], int(sys.argv[2])
    server = http.server.ThreadingHTTPServer(("127.0.0.1", PORT), Handler)
    server.daemon_threads = True
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
