# SPDX-License-Identifier: Apache-2.0
"""Programs that others wrote: nginx, node and python as backends; curl and python's http.client as clients."""
import http.client
import os
import shutil
import subprocess
import sys

import pytest

from harness.ports import free_port
from harness.process import wait_until
from harness.stand import address_of
from harness.wire import connect

NODE = """
const http = require('http');
http.createServer((req, res) => {
  const parts = [];
  req.on('data', part => parts.push(part));
  req.on('end', () => {
    const body = Buffer.concat(parts);
    if (req.url === '/chunked') { res.write('one,'); setTimeout(() => res.end('two'), 20); return; }
    res.setHeader('X-Method', req.method);
    res.end(body.length ? body : 'node');
  });
}).listen(+process.argv[2], '127.0.0.1');
"""


def listens(port):
    try:
        connect(("127.0.0.1", port), 2).close()
        return True
    except OSError:
        return False


def start_nginx(stand, port):
    binary = shutil.which("nginx", path="/usr/sbin:" + os.environ["PATH"])
    if not binary:
        pytest.skip("nginx is not installed")
    folder = os.path.join(stand.folder, "nginx")
    os.mkdir(folder)
    with open(os.path.join(folder, "big"), "wb") as out:
        out.write(os.urandom(1 << 20) * 8)
    with open(os.path.join(folder, "conf"), "w", encoding="utf-8") as out:
        user = "user root;" if os.geteuid() == 0 else ""
        out.write(f"""{user} daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/err;
events {{ worker_connections 256; }}
http {{ access_log off; client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f;
  uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s; keepalive_requests 50;
  server {{ listen 127.0.0.1:{port}; root {folder}; location = /text {{ return 200 "nginx"; }} }} }}
""")
    stand.run([binary, "-p", folder, "-e", f"{folder}/err", "-c", f"{folder}/conf"])
    assert wait_until(lambda: listens(port))
    return folder


def start_node(stand, port):
    if not shutil.which("node"):
        pytest.skip("node is not installed")
    script = os.path.join(stand.folder, "backend.js")
    with open(script, "w", encoding="utf-8") as out:
        out.write(NODE)
    stand.run(["node", script, str(port)])
    assert wait_until(lambda: listens(port))


def curl(stand, *args):
    if not shutil.which("curl"):
        pytest.skip("curl is not installed")
    host, port = address_of(stand.proxies[0].config)
    *options, path = args
    return subprocess.run(["curl", "-sS", "--noproxy", "*", "--max-time", "30", *options, f"http://{host}:{port}{path}"],
                          capture_output=True, timeout=60)


def test_nginx_serves_files_ranges_and_conditions_through(stand):
    port = free_port()
    folder = start_nginx(stand, port)
    stand.proxy({"ip": "127.0.0.1", "port": port})
    with open(os.path.join(folder, "big"), "rb") as file:
        big = file.read()
    assert curl(stand, "/text").stdout == b"nginx"
    assert curl(stand, "/big").stdout == big
    assert curl(stand, "-r", "100-199", "/big").stdout == big[100:200]
    etag = curl(stand, "-I", "/big").stdout.decode().lower().split("etag: ")[1].split("\r\n")[0]
    assert curl(stand, "-o", "/dev/null", "-w", "%{http_code}", "-H", f"If-None-Match: {etag}", "/big").stdout == b"304"
    assert curl(stand, "-o", "/dev/null", "-w", "%{http_code}", "/absent").stdout == b"404"
    # nginx closes each connection after 50 requests: nobody notices.
    host, listen = address_of(stand.proxies[0].config)
    connection = http.client.HTTPConnection(host, listen, timeout=20)
    for _ in range(300):
        connection.request("GET", "/text")
        assert connection.getresponse().read() == b"nginx"
    connection.close()


def test_node_echoes_uploads_through(stand):
    port = free_port()
    start_node(stand, port)
    stand.proxy({"ip": "127.0.0.1", "port": port})
    upload = os.path.join(stand.folder, "upload")
    with open(upload, "wb") as out:
        out.write(os.urandom(3 << 20))
    with open(upload, "rb") as file:
        data = file.read()
    assert curl(stand, "--data-binary", f"@{upload}", "/").stdout == data
    assert curl(stand, "-H", "Transfer-Encoding: chunked", "--data-binary", f"@{upload}", "/").stdout == data
    assert curl(stand, "-H", "Expect: 100-continue", "--data-binary", f"@{upload}", "/").stdout == data
    assert curl(stand, "/chunked").stdout == b"one,two"
    assert curl(stand, "-0", "/chunked").stdout == b"one,two"
    assert b"X-Method: HEAD" in curl(stand, "-I", "/").stdout


def test_python_http_server_is_spread_over(stand):
    ports = []
    for name in ("one", "two"):
        folder = os.path.join(stand.folder, name)
        os.mkdir(folder)
        with open(os.path.join(folder, "name"), "w", encoding="utf-8") as out:
            out.write(name)
        ports.append(free_port())
        stand.run([sys.executable, "-m", "http.server", str(ports[-1]), "--bind", "127.0.0.1", "--directory", folder])
    assert all(wait_until(lambda port=port: listens(port)) for port in ports)
    stand.proxy([{"ip": "127.0.0.1", "port": port} for port in ports])
    bodies = [curl(stand, "/name").stdout for _ in range(10)]
    assert sorted(bodies) == [b"one"] * 5 + [b"two"] * 5


def test_curl_reuses_its_connection_over_many_requests(stand):
    backend = stand.backend()
    proxy = stand.proxy(backend)
    host, port = address_of(proxy.config)
    urls = [f"http://{host}:{port}/{n}" for n in range(30)]
    done = subprocess.run(["curl", "-sS", "--noproxy", "*", *urls], capture_output=True, timeout=60)
    assert done.stdout == b"backend" * 30
    assert proxy.metrics().total("listener_connections_total") == 1
