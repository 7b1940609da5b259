# SPDX-License-Identifier: Apache-2.0
"""VIPs announced through BIRD: both packet nodes, one that leaves under load, one that dies, no nodes, dead BIRD (I6, E4)."""
import os
import shutil
import signal
import time

import pytest
from harness.l4net import LBS, VIP4, VIP6, Flow, Net

BIRD = shutil.which("bird") or "/usr/sbin/bird"
BFD = 'protocol bfd { interface "*" { interval 50 ms; multiplier 3; }; }\n'
SESSION = "bfd on; connect delay time 1; connect retry time 1; error wait time 1, 2; hold time 9;"


class Birds:
    """A BIRD on each lb, which includes what isobar writes, and one on the router, which has the kernel's ECMP route."""

    def __init__(self, net, from_kernel=False):
        self.net = net
        self.from_kernel = from_kernel
        self.processes = {}
        neighbours = ""
        for i, lb in enumerate(LBS):
            with open(self.include(lb), "w"):
                pass
            learnt = "protocol kernel { learn; ipv4 { import where krt_source = 73; export none; }; }"
            vips = learnt if from_kernel else f'include "{self.include(lb)}";'
            which = "source = RTS_INHERIT" if from_kernel else 'proto = "isobar4"'
            self.start(lb, f"""router id 10.{21 + i}.0.2;
protocol device {{}}
{BFD}{vips}
protocol bgp uplink {{ local 10.{21 + i}.0.2 as {65001 + i}; neighbor 10.{21 + i}.0.1 as 65000; {SESSION}
    ipv4 {{ import none; export where {which}; next hop self; }}; }}
""")
            neighbours += f"""protocol bgp {lb} {{ local 10.{21 + i}.0.1 as 65000; neighbor 10.{21 + i}.0.2 as {65001 + i}; {SESSION}
    ipv4 {{ import all; export none; }}; }}
"""
        self.start("router", f"""router id 10.0.0.1;
protocol device {{}}
protocol kernel {{ merge paths on; ipv4 {{ import none; export where source = RTS_BGP; }}; }}
{BFD}{neighbours}""")

    def include(self, lb):
        return os.path.join(self.net.folder, f"{lb}-vips.conf")

    def socket(self, host):
        return os.path.join(self.net.folder, f"{host}.ctl")

    def start(self, host, text):
        path = os.path.join(self.net.folder, f"{host}-bird.conf")
        with open(path, "w") as file:
            file.write(text)
        with open(os.path.join(self.net.folder, f"{host}-bird.log"), "w") as log:
            self.processes[host] = self.net.popen(
                host, [BIRD, "-f", "-c", path, "-s", self.socket(host), "-P", path + ".pid"], stdout=log, stderr=log)

    def extra(self, lb):
        if self.from_kernel:
            return "  announce: { kernel_table: 254 }\n"
        return f"  announce: {{ bird: {self.socket(lb)}, file: {self.include(lb)} }}\n"

    def hops(self):
        """The lbs that the router's kernel sends the VIP to."""
        text = self.net.run("router", f"ip route show {VIP4}")
        return {lb for i, lb in enumerate(LBS) if f"10.{21 + i}.0.2" in text}

    def wait(self, lbs, seconds=30.0):
        """How long it took until the route was over exactly these."""
        start = time.monotonic()
        while self.hops() != set(lbs):
            assert time.monotonic() < start + seconds, (self.hops(), lbs)
            time.sleep(0.005)
        return time.monotonic() - start

    def close(self):
        for process in self.processes.values():
            process.kill()
            process.wait()


@pytest.fixture
def announced(tmp_path, request):
    if not os.access(BIRD, os.X_OK):
        pytest.skip("skipped, because bird is not installed")
    net = Net(str(tmp_path))
    birds = None
    try:
        net.route([])
        birds = Birds(net, getattr(request, "param", False))
        time.sleep(0.2)
        for lb in LBS:
            net.start_lb(lb, birds.extra(lb))
        print(f"both announced after {birds.wait(LBS):.1f} s")
        yield net, birds
    finally:
        if birds:
            birds.close()
        net.close()


def test_vips_are_announced_withdrawn_and_kept_as_documented_I6_E4(announced):
    net, birds = announced
    flows = [Flow(net) for _ in range(100)]

    # A node that leaves: withdrawn at once, and it forwards until the routers have followed.
    leaving = net.processes.pop("lb1")
    leaving.send_signal(signal.SIGTERM)
    print(f"withdrawn {birds.wait(['lb2']) * 1000:.0f} ms after SIGTERM")
    assert leaving.poll() is None, "forwards for linger_s"
    assert all(flow.still() for flow in flows)
    assert leaving.wait(10) == 0
    assert all(flow.still() for flow in flows)
    net.start_lb("lb1", birds.extra("lb1"))
    birds.wait(LBS)
    assert all(flow.still() for flow in flows)

    # A process that dies takes nothing with it: the program forwards, BIRD announces.
    net.processes["lb1"].kill()
    net.processes.pop("lb1").wait()
    time.sleep(1)
    assert birds.hops() == set(LBS)
    assert all(flow.still() for flow in flows)
    net.start_lb("lb1", birds.extra("lb1"))
    assert all(flow.still() for flow in flows)

    # No node that takes flows: nobody should come here.
    net.down = {"p1", "p2"}
    net.reload_lb("lb2", birds.extra("lb2"))
    birds.wait(["lb1"])
    net.down = set()
    net.reload_lb("lb2", birds.extra("lb2"))
    birds.wait(LBS)
    assert all(flow.still() for flow in flows)

    # A machine that falls silent: BFD notices.
    birds.processes["lb2"].send_signal(signal.SIGSTOP)
    print(f"withdrawn {birds.wait(['lb1'], 5) * 1000:.0f} ms after BIRD fell silent (BFD 50 ms x 3)")
    assert all(flow.still() for flow in flows)
    birds.processes["lb2"].send_signal(signal.SIGCONT)
    birds.wait(LBS)
    assert all(flow.still() for flow in flows)
    for flow in flows:
        flow.close()


@pytest.mark.parametrize("announced", [True], indirect=True)
def test_vips_are_routes_of_the_kernel_for_other_routing_daemons_I6_E4(announced):
    net, birds = announced
    ours = lambda lb: net.run(lb, "ip route show proto 73").split("\n")[0].split()
    assert ours("lb1")[:2] == ["blackhole", VIP4]
    assert VIP6 in net.run("lb1", "ip -6 route show proto 73")

    # A process that dies leaves its routes; the next one goes on with them.
    net.processes["lb1"].kill()
    net.processes.pop("lb1").wait()
    assert birds.hops() == set(LBS)
    net.start_lb("lb1", birds.extra("lb1"))
    assert birds.hops() == set(LBS)

    # Withdrawn without a node that takes flows, and from a table that is named no more.
    net.down = {"p1", "p2"}
    net.reload_lb("lb2", birds.extra("lb2"))
    birds.wait(["lb1"])
    net.down = set()
    net.reload_lb("lb2", "  announce: { kernel_table: 999 }\n")
    assert VIP4 in net.run("lb2", "ip route show table 999 proto 73")
    assert ours("lb2") == []
    net.reload_lb("lb2", birds.extra("lb2"))
    birds.wait(LBS)
    assert net.run("lb2", "ip route show table 999 proto 73", check=False).strip() == ""

    # And by a node that leaves, before it stops to forward.
    leaving = net.processes.pop("lb1")
    leaving.send_signal(signal.SIGTERM)
    birds.wait(["lb2"])
    assert leaving.wait(10) == 0 and ours("lb1") == []
