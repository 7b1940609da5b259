# SPDX-License-Identifier: Apache-2.0
"""The packet tier with real TCP and UDP across an ECMP router: client -> router -> XDP_TX -> decapsulation -> server ->
direct return. The network is built once; every test leaves it with both lbs and p1, p2 in service."""
import concurrent.futures
import http.client
import os
import signal
import socket
import sys
import threading
import time

import pytest
from harness.l4net import LBS, PORT, VIP4, VIP6, Flow, Net

pytestmark = pytest.mark.xdist_group("l4")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    net = Net(str(tmp_path_factory.mktemp("l4")))
    yield net
    net.close()


@pytest.fixture
def net(built):
    built.down, built.drained, built.absent = set(), set(), {"p3"}
    for lb in LBS:
        if lb in built.processes:
            built.reload_lb(lb)
        else:
            built.start_lb(lb)
    built.route(LBS)
    yield built


def flows(net, n, vip=VIP4):
    return [Flow(net, vip) for _ in range(n)]


def close(all_flows):
    for flow in all_flows:
        flow.close()


@pytest.mark.parametrize("vip", [VIP4, VIP6])
def test_transfers_arrive_whole_both_ways_I3(net, vip):
    some = flows(net, 8, vip)
    try:
        assert {flow.owner for flow in some} == {"p1", "p2"} or len({flow.owner for flow in some}) == 1
        assert some[0].upload(20_000_000)
        assert some[0].download(20_000_000)
    finally:
        close(some)


def test_both_lbs_and_both_proxies_are_used_and_agree_with_lookup_K3(net):
    before = {lb: net.counters(lb) for lb in LBS}
    some = flows(net, 60)
    try:
        after = {lb: net.counters(lb) for lb in LBS}
        for lb in LBS:
            assert sum(v - before[lb].get(k, 0) for k, v in after[lb].items() if k.startswith("10.3")) > 0
        assert {flow.owner for flow in some} == {"p1", "p2"}
        address = {"p1": "10.31.0.2", "p2": "10.32.0.2"}
        for flow in some[:10]:
            for lb in LBS:
                assert net.lookup(lb, *flow.address).strip() == address[flow.owner]
    finally:
        close(some)


@pytest.mark.parametrize("vip", [VIP4, VIP6])
def test_datagrams_are_answered_by_the_owner(net, vip):
    for _ in range(10):
        with net.inside("client"):
            client = socket.socket(socket.AF_INET6 if ":" in vip else socket.AF_INET, socket.SOCK_DGRAM)
        client.settimeout(5)
        client.connect((vip, PORT))
        owners = set()
        for n in range(5):
            client.send(b"n%d" % n)
            owner, text = client.recv(100).split(b" ", 1)
            assert text == b"n%d" % n
            owners.add(owner)
        assert len(owners) == 1
        client.close()


def test_flows_survive_the_withdrawal_of_a_packet_node_I5(net):
    some = flows(net, 200)
    try:
        net.route(["lb2"])
        assert sum(flow.still() for flow in some) == 200
        net.route(["lb1"])
        assert sum(flow.still() for flow in some) == 200
    finally:
        close(some)


@pytest.mark.parametrize("change", ["drained", "down"])
def test_flows_survive_the_removal_of_another_proxy_I5(net, change):
    net.absent = set()
    for lb in LBS:
        net.reload_lb(lb)
    some = flows(net, 200)
    try:
        assert {flow.owner for flow in some} == {"p1", "p2", "p3"}
        getattr(net, change).add("p3")
        for lb in LBS:
            net.reload_lb(lb)
        for flow in some:
            if flow.owner != "p3" or change == "drained":
                assert flow.still(), flow.owner
        later = flows(net, 40)
        assert {flow.owner for flow in later} == {"p1", "p2"}
        assert all(flow.still() for flow in later)
        close(later)
    finally:
        close(some)


def test_flows_survive_an_added_proxy_and_then_a_packet_node_that_leaves_I5_I8(net):
    some = flows(net, 200)
    try:
        net.absent = set()
        for lb in LBS:
            net.reload_lb(lb)
        assert sum(flow.still() for flow in some) == 200
        newer = flows(net, 60)
        assert "p3" in {flow.owner for flow in newer}
        net.route(["lb2"])
        assert sum(flow.still() for flow in some) == 200
        # Flows that began behind the move and whose lb then left look older than they are: their packets go to the
        # previous owner, which knows no such connection and hands them on.
        assert sum(flow.still() for flow in newer) == len(newer)
        assert sum(flow.still() for flow in newer) == len(newer)
        chances = sum(net.decap_counters(host)["second_chance"] for host in ("p1", "p2"))
        print(f"{chances} packets handed on")
        assert chances > 0
        close(newer)
    finally:
        close(some)


def test_both_changes_at_once_break_few_and_no_older_flows_I8(net):
    some = flows(net, 200)
    try:
        net.absent = set()
        with concurrent.futures.ThreadPoolExecutor() as pool:
            reloads = [pool.submit(net.reload_lb, lb) for lb in LBS]
            net.route(["lb1"])
        for reload in reloads:
            reload.result()
        broken = [(*flow.address, flow.owner) for flow in some if not flow.still()]
        print(f"a proxy added and a packet node withdrawn at once: {len(broken)} of 200 broken")
        assert broken == [], [(flow, net.lookup("lb1", *flow[:2])) for flow in broken]
    finally:
        close(some)


class Load:
    """Uploads in the background until told to stop; counts failures."""

    def __init__(self, net, n=4):
        self.net, self.failures, self.done, self.ending = net, [], 0, False
        self.threads = [threading.Thread(target=self.work) for _ in range(n)]
        for thread in self.threads:
            thread.start()

    def work(self):
        while not self.ending:
            try:
                flow = Flow(self.net)
                if not flow.upload(1_000_000):
                    self.failures.append("checksum")
                flow.close()
                self.done += 1
            except OSError as error:
                self.failures.append(str(error))

    def end(self):
        self.ending = True
        for thread in self.threads:
            thread.join()
        return self.failures


def test_replacing_the_program_under_load_loses_nothing(net):
    load = Load(net)
    # 100 of them take half a minute on an idle machine: ISOBAR_L4_REPLACEMENTS=100.
    for n in range(int(os.environ.get("ISOBAR_L4_REPLACEMENTS", "30")) // len(LBS)):
        for lb in LBS:
            # Another max_packet is another program: the link gets it in one step.
            net.reload_lb(lb, extra=f"  max_packet: {1500 + n % 2}\n")
    assert load.end() == []
    assert load.done > 10


def test_flows_go_on_when_the_daemon_dies_and_when_it_comes_back(net):
    some = flows(net, 50)
    try:
        for lb in LBS:
            net.processes[lb].kill()
            net.processes.pop(lb).wait()
        assert all(flow.still() for flow in some)
        newer = flows(net, 20)
        for lb in LBS:
            net.start_lb(lb)
            assert "taken over" in net.log(lb)
        assert all(flow.still() for flow in some + newer)
        close(newer)
    finally:
        close(some)


def test_a_syn_flood_costs_established_flows_nothing(net):
    net.absent = set()
    for lb in LBS:
        net.reload_lb(lb)  # slots moved: the flow table is in use
    some = flows(net, 100)
    try:
        with net.inside("client"):
            raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
        vip = socket.inet_aton(VIP4)
        until = time.monotonic() + 2
        n = 0
        while time.monotonic() < until:
            for _ in range(200):
                n += 1
                source = bytes([100, 64 + (n >> 16 & 63), n >> 8 & 255, n & 255])
                tcp = bytearray((1024 + n % 60000).to_bytes(2, "big") + PORT.to_bytes(2, "big") + bytes(8) +
                                b"\x50\x02\x20\x00" + bytes(4))
                ip = b"\x45\x00" + (40).to_bytes(2, "big") + bytes(4) + b"\x40\x06\x00\x00" + source + vip
                raw.sendto(ip + tcp, (VIP4, 0))
        raw.close()
        assert all(flow.still() for flow in some)
        print(f"{n} SYNs beside 100 flows")
    finally:
        close(some)


def test_nodes_that_stop_answering_are_taken_out_and_come_back_D1(net):
    check = f"  health_check: {{ port: {PORT}, interval_s: 0.1, timeout_ms: 3000 }}\n"
    for lb in LBS:
        net.reload_lb(lb, extra=check)
    some = flows(net, 40)
    mine = [flow for flow in some if flow.owner == "p1"]
    net.processes["p2"].kill()
    net.processes.pop("p2").wait()
    until = time.monotonic() + 30  # a killed server refuses at once; the long timeout keeps a busy machine from failing the other
    for lb in LBS:
        while "node p2 is down" not in net.log(lb):
            assert time.monotonic() < until
            time.sleep(0.02)
    time.sleep(0.1)
    later = flows(net, 30)
    assert {flow.owner for flow in later} == {"p1"}
    assert all(flow.still() for flow in mine)
    net.start_server("p2")
    net.wait_line("p2")
    for lb in LBS:
        while "node p2 is up" not in net.log(lb):
            assert time.monotonic() < until
            time.sleep(0.02)
    time.sleep(0.1)
    assert "p2" in {flow.owner for flow in flows(net, 40)}
    assert all(flow.still() for flow in mine + later)
    close(some + later)


def test_isobar_itself_serves_http_behind_the_packet_tier(net):
    """The whole system: L4 node, then `isobar proxy` on the VIP of each proxy, which answers the client directly."""
    vips = f"    - {{ address: [{VIP4}, '{VIP6}'], port: 8081 }}\n"
    for lb in LBS:
        net.reload_lb(lb, vips=vips)
    for host in ("p1", "p2"):
        backend = ("import http.server as h\n"
                   "class H(h.BaseHTTPRequestHandler):\n"
                   "    protocol_version = 'HTTP/1.1'\n"
                   "    def do_GET(self):\n"
                   f"        body = b'{host} ' + self.path.encode()\n"
                   "        self.send_response(200)\n"
                   "        self.send_header('Content-Length', str(len(body)))\n"
                   "        self.end_headers()\n"
                   "        self.wfile.write(body)\n"
                   "    def log_message(self, *args):\n"
                   "        pass\n"
                   "h.ThreadingHTTPServer(('127.0.0.1', 9000), H).serve_forever()\n")
        with open(f"{net.folder}/{host}-http.log", "ab") as log:
            net.processes[f"{host}-web"] = net.popen(host, [sys.executable, "-c", backend], stdout=log, stderr=log)
            net.processes[f"{host}-isobar"] = net.popen(
                host, [_isobar(), "proxy", "--listen", f"{VIP4}:8081", "--to", "127.0.0.1:9000"], stdout=log, stderr=log)
    seen = set()
    connections = []
    until = time.monotonic() + 20
    while len(connections) < 12:
        with net.inside("client"):
            connection = http.client.HTTPConnection(VIP4, 8081, timeout=5)
            try:
                connection.connect()
            except OSError:
                assert time.monotonic() < until
                time.sleep(0.1)
                continue
        connections.append(connection)
    for round_ in range(5):  # keep-alive: each connection stays with its proxy
        for n, connection in enumerate(connections):
            connection.request("GET", f"/{n}/{round_}")
            answer = connection.getresponse()
            body = answer.read().decode()
            while answer.status in (502, 503) and round_ == 0 and time.monotonic() < until:  # the backend still starts
                time.sleep(0.1)
                connection.request("GET", f"/{n}/{round_}")
                answer = connection.getresponse()
                body = answer.read().decode()
            assert answer.status == 200 and body.split()[1] == f"/{n}/{round_}", (answer.status, body)
            seen.add((n, body.split()[0]))
    assert len(seen) == len(connections)
    assert {host for _, host in seen} == {"p1", "p2"}
    for connection in connections:
        connection.close()


def fetch(vip, port, path="/"):
    connection = http.client.HTTPConnection(vip, port, timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    except OSError:
        return None
    finally:
        connection.close()


def test_serve_ends_the_tunnel_as_its_configuration_says_I3(net):
    """decap in the file of `isobar serve`: attached with it, changed and taken off by reloads, gone with the process."""
    pin = net.decap_pin("p3", "eth0")
    net.run("p3", f"{_isobar()} l4 detach --pin {pin}", check=False)
    path, extra = f"{net.folder}/p3.yaml", f"    - {{ address: [{VIP4}], port: 8082 }}\n"

    def write(decap):
        with open(path, "w") as file:
            file.write(f"admin: {{ listen: off }}\n{decap}load_balancers:\n"
                       f"  - {{ name: lb, vip: {VIP4}, listeners: [ {{ port: 8082, rules: [ "
                       "{ match: { path_prefix: / }, respond: { status: 200, body: ok } } ] } ] }\n")

    def reloaded(words):
        before = net.log("p3-serve").count(words)
        net.processes["p3-serve"].send_signal(signal.SIGHUP)
        net._await("p3-serve", lambda: net.log("p3-serve").count(words) > before)

    net.absent = {"p1", "p2"}
    write(f"decap: {{ interfaces: [eth0], pin: {pin} }}\n")
    with open(f"{net.folder}/p3-serve.log", "ab") as log:
        net.processes["p3-serve"] = net.popen("p3", [_isobar(), "serve", "--config", path], stdout=log, stderr=log)
    try:
        net._await("p3-serve", lambda: "ready" in net.log("p3-serve"))
        for lb in LBS:
            net.reload_lb(lb, vips=extra)
        with net.inside("client"):
            assert fetch(VIP4, 8082) == 200
        assert net.decap_counters("p3")
        write(f"decap: {{ interfaces: [eth0, nosuch], pin: {pin} }}\n")
        reloaded("/decap/interfaces: there is no interface nosuch")
        with net.inside("client"):
            assert fetch(VIP4, 8082) == 200
        write(f"decap: {{ interfaces: [eth0], vips: ['{VIP6}'], pin: {pin} }}\n")
        reloaded("is in force")
        with net.inside("client"):
            assert fetch(VIP4, 8082) is None
        write("")
        reloaded("is in force")
        assert not os.path.exists(pin)
        write(f"decap: {{ interfaces: [eth0], pin: {pin} }}\n")
        reloaded("is in force")
        with net.inside("client"):
            assert fetch(VIP4, 8082) == 200
        net.stop("p3-serve")
        assert not os.path.exists(pin)
    finally:
        if "p3-serve" in net.processes:
            net.stop("p3-serve")
        net.decap("p3", "eth0", [VIP4, VIP6], f"--config {net.folder}/everyone.yaml")


def test_configuration_that_cannot_be_taken_changes_nothing(net):
    some = flows(net, 40)
    path = net.config("lb1")
    with open(path) as file:
        right = file.read()
    for wrong in (right.replace("linger_s: 1", "table_size: 12"), right.replace("interfaces", "interfases"),
                  # Taken as a text, and refused by the kernel when everything was prepared.
                  right.replace("[eth0]", "[eth0, nosuch]").replace("state: up", "state: down")):
        assert wrong != right
        with open(path, "w") as file:
            file.write(wrong)
        before = net.log("lb1").count("stays as it was")
        net.processes["lb1"].send_signal(signal.SIGHUP)
        until = time.monotonic() + 10
        while net.log("lb1").count("stays as it was") == before:
            assert time.monotonic() < until
            time.sleep(0.02)
    time.sleep(0.2)
    net.route(["lb1"])
    assert all(flow.still() for flow in some)
    close(some)


def test_a_tcp_listener_spreads_its_vip_over_its_own_targets(net):
    """reals: targets needs no L7 node: the group's targets own the VIP; a disabled one gets no new flow."""
    balancers = """load_balancers:
  - {{ name: db, vip: %s, listeners: [ {{ port: %d, protocol: TCP, default_target_group: db }} ] }}
target_groups:
  - name: db
    protocol: TCP
    targets: [ {{ ip: 10.31.0.2, port: %d }}, {{ ip: 10.32.0.2, port: %d, enabled: {} }} ]
""" % (VIP4, PORT, PORT, PORT)
    net.tcp_vips = VIP6
    try:
        for lb in LBS:
            net.reload_lb(lb, "  reals: targets\n", balancers.format("true"))
        some = flows(net, 40)
        assert {flow.owner for flow in some} == {"p1", "p2"}
        for lb in LBS:
            net.reload_lb(lb, "  reals: targets\n", balancers.format("false"))
        assert all(flow.still() for flow in some)
        close(some)
        late = flows(net, 20)
        assert {flow.owner for flow in late} == {"p1"}
        close(late)
    finally:
        net.tcp_vips = f"{VIP4}, {VIP6}"


def test_leaving_detaches_and_removes_everything(net):
    net.route(["lb2"])
    net.stop("lb1")
    assert "nothing is pinned" in net.run("lb1", f"sh -c '{_isobar()} l4 status --pin {net.pin('lb1')} 2>&1'", check=False)
    assert "xdp" not in net.run("lb1", "ip -d link show eth0")


def _isobar():
    from harness.process import ISOBAR
    return ISOBAR


def test_path_mtu_errors_find_the_owner_I4(net):
    """The router's client link takes 1300 bytes only: its errors about downloads go to the VIP and through any lb."""
    net.run("router", "ip link set client mtu 1300")
    try:
        for _ in range(12):
            flow = Flow(net, timeout=6)
            assert flow.download(300_000)
            flow.close()
        assert sum(net.counters(lb)["icmp_steered"] for lb in LBS) > 0
    finally:
        net.run("router", "ip link set client mtu 1500")
        for host in ("p1", "p2"):
            net.run(host, "ip route flush cache")


def ping(net, address):
    """Whether an echo request is answered with its own bytes."""
    six = ":" in address
    with net.inside("client"):
        raw = socket.socket(socket.AF_INET6 if six else socket.AF_INET, socket.SOCK_RAW,
                            socket.IPPROTO_ICMPV6 if six else socket.IPPROTO_ICMP)
    raw.settimeout(3)
    text = b"\x12\x34\x00\x01isobar!!"
    echo = bytearray((b"\x80" if six else b"\x08") + b"\0\0\0" + text)
    total = sum(int.from_bytes(echo[i:i + 2], "big") for i in range(0, len(echo), 2))
    total = (total & 0xffff) + (total >> 16)
    echo[2:4] = (~total & 0xffff).to_bytes(2, "big")
    raw.sendto(echo, (address, 0))
    want = (b"\x81" if six else b"\x00") + b"\0"
    try:
        while True:
            got = raw.recv(2000)[0 if six else 20:]
            if got[:2] == want and got[4:] == text:
                return True
    except TimeoutError:
        return False
    finally:
        raw.close()


def test_vip_answers_ping_and_the_lb_its_own(net):
    for address in (VIP4, VIP6, "10.21.0.2", "fd21::2"):
        assert ping(net, address), address


def test_explain_says_why_K3(net):
    flow = Flow(net)
    text = net.lookup("lb1", *flow.address, command="explain")
    assert "why:" in text and "slot" in text and "current:" in text
    flow.close()


def test_samples_show_packets_on_demand(net):
    net.route(["lb1"])
    flow = Flow(net)
    done = threading.Event()

    def chat():
        while not done.is_set():
            flow.ask("who")

    thread = threading.Thread(target=chat)
    thread.start()
    try:
        text = net.run("lb1", f"timeout 20 {_isobar()} l4 sample --count 3 --pin {net.pin('lb1')}")
    finally:
        done.set()
        thread.join()
        flow.close()
    assert text.count("real 10.3") == 3
