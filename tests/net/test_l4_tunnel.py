# SPDX-License-Identifier: Apache-2.0
"""Tunnels and packet sizes: GUE, and links that have no room for the tunnel header (I4)."""
import pytest
from harness.l4net import LBS, PROXIES, VIP4, VIP6, Flow, Net


def fragments(net):
    """IP fragments that the router made of tunnel packets."""
    for line in net.run("router", "nstat -az IpFragCreates").splitlines():
        if line.startswith("IpFragCreates"):
            return int(line.split()[1])
    return 0


def test_gue_carries_tcp_of_both_families(tmp_path):
    net = Net(str(tmp_path))
    try:
        for host in PROXIES:
            net.run(host, f"{_isobar()} l4 detach --pin {_pin(net, host)}")
            net.decap(host, "eth0", [VIP4, VIP6], "--gue-port 6080")
        for i, lb in enumerate(LBS):
            net.start_lb(lb, f"  encapsulation: gue\n  gue_source_v4: 10.{21 + i}.0.2\n  gue_source_v6: fd{21 + i}::2\n")
        for vip in (VIP4, VIP6):
            flow = Flow(net, vip)
            assert flow.upload(5_000_000)
            assert flow.download(5_000_000)
            flow.close()
    finally:
        net.close()


@pytest.mark.parametrize("vip", [VIP4, VIP6])
def test_uploads_over_links_of_1500_bytes_learn_the_smaller_size_C_154(tmp_path, vip):
    """No MTU is raised and no MSS is set: full-size packets of the client do not fit, it is told so, and goes on."""
    net = Net(str(tmp_path), mtu=1500)
    try:
        for lb in LBS:
            net.start_lb(lb)
        flow = Flow(net, vip)
        assert flow.upload(3_000_000)
        assert flow.download(3_000_000)
        flow.close()
        assert sum(net.counters(lb)["too_big_reply"] for lb in LBS) > 0
        assert fragments(net) == 0
    finally:
        net.close()


def test_smaller_mss_of_the_servers_needs_no_errors(tmp_path):
    net = Net(str(tmp_path), mtu=1500)
    try:
        for host in PROXIES:
            number = 31 + PROXIES.index(host)
            net.run(host, f"ip route replace default via 10.{number}.0.1 advmss 1440")
        for lb in LBS:
            net.start_lb(lb)
        flow = Flow(net)
        assert flow.upload(3_000_000)
        flow.close()
        assert sum(net.counters(lb)["too_big_reply"] for lb in LBS) == 0
        assert fragments(net) == 0
    finally:
        net.close()


def _pin(net, host):
    return [pin for pin in net.pins if f"-{host}-eth0" in pin][0]


def _isobar():
    from harness.process import ISOBAR
    return ISOBAR
