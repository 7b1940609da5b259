# SPDX-License-Identifier: Apache-2.0
"""A real browser (Debian's chromium, not installed by ./test; `make conformance` does) in front of isobar: pages over HTTP/1.1
and over HTTP/2, and what only browsers do. The protocol is the one that the browser itself reports."""
import copy
import hashlib
import signal

import pytest

from harness.browser import Browser, BrowserError, find_browser
from harness.origin import PATTERN, Origin
from harness.ports import free_port
from harness.process import wait_until
from harness.tls import Authority

HOST = "app.example"
PLAIN, SECURE = 0, 1  # the listeners


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("ca")).issue("site", HOST, "*." + HOST)


@pytest.fixture(scope="module")
def browser(tmp_path_factory, certificate):
    if not find_browser():
        pytest.skip("no chromium here (tools/install-packages conformance)")
    started = Browser(tmp_path_factory.mktemp("browser"), certificate["cert_file"])
    yield started
    started.stop()


class Site:
    """isobar with a plain and a TLS listener in front of backends, and pages of it."""

    def __init__(self, stand, browser, certificate):
        self.stand, self.browser, self.certificate = stand, browser, certificate
        self.pages, self.proxy = [], None

    def serve(self, *names, plain=None, secure=None, group=None, **top):
        self.backends = [self.stand.backend(name=name) for name in names or ("one",)]
        for backend in self.backends:
            backend.script = Origin(backend)
        config = self.stand.config(self.backends, group=group, certificates=[self.certificate], **top)
        listeners = config["load_balancers"][0]["listeners"]
        listeners[0].update(plain or {})
        listeners.append({"port": free_port(), "protocol": "HTTPS", "certificates": ["site"], "default_target_group": "web",
                          **(secure or {})})
        self.ports = [listener["port"] for listener in listeners]
        self.proxy = self.stand.serve(config)
        return self.proxy

    def url(self, listener, path="/", scheme=None):
        return f"{scheme or ('http', 'https')[listener]}://{HOST}:{self.ports[listener]}{path}"

    def page(self, listener=None):
        """A page of its own; opened, when a listener is named."""
        page = self.browser.page()
        self.pages.append(page)
        if listener is not None:
            page.open(self.url(listener))
        return page

    def connections(self, listener):
        return self.proxy.metrics().total("listener_connections_total", listener=f"lb/{self.ports[listener]}")


@pytest.fixture
def site(stand, browser, certificate):
    here = Site(stand, browser, certificate)
    yield here
    for page in here.pages:
        page.close()


PROTOCOLS = """
    const entries = performance.getEntriesByType('navigation').concat(performance.getEntriesByType('resource'))
    return [...new Set(entries.map(entry => entry.nextHopProtocol))]
"""
EXPECTED = pytest.mark.parametrize("listener, protocol", [(PLAIN, "http/1.1"), (SECURE, "h2")])


@EXPECTED
def test_pages_and_two_hundred_requests_at_once(site, listener, protocol):
    proxy = site.serve("one", "two", "three")
    page = site.page(listener)
    names = page.run("""
        performance.setResourceTimingBufferSize(1000)
        return await Promise.all([...Array(200).keys()].map(n => fetch('/who/' + n).then(answer => answer.text())))
    """)
    assert len(names) == 200 and all(names.count(name) >= 66 for name in ("one", "two", "three"))
    assert page.run(PROTOCOLS) == [protocol]
    # The browser opens six connections a host in HTTP/1.1 and one in HTTP/2, besides one that it may open in advance.
    assert site.connections(listener) <= (8 if listener == PLAIN else 2)
    assert proxy.metrics().total("listener_requests_total", listener=f"lb/{site.ports[listener]}") >= 201


def test_http1_over_tls_where_nothing_else_is_offered(site):
    site.serve(secure={"tls": {"alpn": ["http/1.1"]}})
    page = site.page(SECURE)
    assert page.run("return (await fetch('/who')).text()") == "one"
    assert page.run(PROTOCOLS) == ["http/1.1"]


@EXPECTED
def test_websockets_echo_and_end_with_their_own_code(site, listener, protocol):
    proxy = site.serve()
    page = site.page(listener)
    before = site.connections(listener)
    result = page.run("""
        const socket = new WebSocket(location.origin.replace('http', 'ws') + '/ws')
        socket.binaryType = 'arraybuffer'
        const next = () => new Promise((good, bad) => { socket.onmessage = good; socket.onerror = () => bad('socket failed') })
        await new Promise((good, bad) => { socket.onopen = good; socket.onerror = () => bad('no socket') })
        const texts = []
        for (const text of ['a', 'é'.repeat(100), 'x'.repeat(70000)]) {
            const answer = next(); socket.send(text); texts.push((await answer).data === text)
        }
        const big = new Uint8Array(3000000).map((_, n) => n * 7)
        const answer = next(); socket.send(big)
        const back = new Uint8Array((await answer).data)
        const closed = new Promise(good => { socket.onclose = good })
        socket.close(4321, 'enough')
        const end = await closed
        return { texts, same: back.length === big.length && back.every((byte, n) => byte === big[n]),
                 code: end.code, reason: end.reason, clean: end.wasClean }
    """)
    assert result == {"texts": [True] * 3, "same": True, "code": 4321, "reason": "enough", "clean": True}
    if protocol == "h2":  # extended CONNECT: the socket is a stream of the page's own connection
        assert site.connections(listener) == before
    assert wait_until(lambda: proxy.metrics().total("listener_active_tunnels") == 0)


@EXPECTED
def test_an_event_source_gets_each_event_and_comes_back_where_it_was(site, listener, protocol):
    site.serve()
    page = site.page(listener)
    events = page.run("""
        const source = new EventSource('/events'), seen = []
        await new Promise((good, bad) => {
            source.onmessage = event => { seen.push([event.data, event.lastEventId]); if (seen.length === 7) good() }
            source.onerror = () => { if (source.readyState === EventSource.CLOSED) bad('source closed') }
        })
        source.close()
        return seen
    """)
    assert events == [[f"one {n}", str(n)] for n in range(1, 8)]
    assert site.backends[0].script.last_event_ids == [None, "3", "6"]


@EXPECTED
def test_an_upload_arrives_whole(site, listener, protocol):
    site.serve()
    page = site.page(listener)
    size = 20_000_000
    data = (PATTERN * (size // len(PATTERN) + 1))[:size]
    for _ in range(2):
        told = page.run(f"""
            const body = new Uint8Array({size}).map((_, n) => n % 251)
            return (await fetch('/upload', {{ method: 'POST', body }})).json()
        """)
        assert told == {"length": size, "sha256": hashlib.sha256(data).hexdigest(), "chunked": False}


def test_a_streamed_upload_reaches_the_target_while_it_is_made(site):
    site.serve()
    page = site.page(SECURE)  # browsers stream over HTTP/2 only
    text = page.run("""
        const sizes = [], encoder = new TextEncoder()
        let part = 0
        const body = new ReadableStream({ async pull (to) {
            if (part === 3) return to.close()
            to.enqueue(encoder.encode('part' + part++))
            while ((sizes[part - 1] = +await (await fetch('/arrived')).text()) < 5 * part) await new Promise(go => setTimeout(go, 10))
        } }, { highWaterMark: 0 })
        return (await (await fetch('/trickle', { method: 'POST', body, duplex: 'half' })).text()) + ' ' + sizes
    """)
    assert text == "part0part1part2 5,10,15"
    assert page.run(PROTOCOLS) == ["h2"]


@EXPECTED
def test_a_body_that_is_too_large_is_refused_with_413_not_with_a_broken_connection(site, listener, protocol):
    limits = {"limits": {"body_bytes": 1000000}}
    site.serve(plain=limits, secure=limits)
    page = site.page(listener)
    statuses = page.run("""
        const statuses = []
        for (const size of [900000, 1100000, 30000000, 10])
            statuses.push((await fetch('/upload', { method: 'POST', body: new Uint8Array(size) })).status)
        return statuses
    """)
    assert statuses == [200, 413, 413, 200]


@EXPECTED
def test_a_large_download_is_whole_and_one_that_is_broken_off_ends_at_the_target(site, listener, protocol):
    proxy = site.serve()
    page = site.page(listener)
    size = 200_000_000
    told = page.run(f"""
        const reader = (await fetch('/bytes/{size}')).body.getReader()
        let length = 0, wrong = 0
        for (;;) {{
            const {{ done, value }} = await reader.read()
            if (done) break
            for (const at of [0, value.length >> 1, value.length - 1]) wrong += value[at] !== (length + at) % 251
            length += value.length
        }}
        const stop = new AbortController()
        const cut = (await fetch('/bytes/{size}', {{ signal: stop.signal }})).body.getReader()
        await cut.read()
        stop.abort()
        return {{ length, wrong, next: await (await fetch('/who')).text() }}
    """, timeout_s=300)
    assert told == {"length": size, "wrong": 0, "next": "one"}
    assert site.backends[0].script.cancelled.wait(20)
    assert wait_until(lambda: proxy.metrics().total("target_in_flight") == 0)


@EXPECTED
def test_cookies_keep_each_browser_with_its_target(site, listener, protocol):
    site.serve("one", "two", "three", group={"affinity": {"type": "cookie"}})
    homes = []
    for _ in range(3):
        page = site.page(listener)
        names = page.run("""
            const first = await (await fetch('/who')).text()
            document.cookie = 'a=1'; document.cookie = 'b=2'
            return [first, ...await Promise.all([...Array(30).keys()].map(() => fetch('/who').then(answer => answer.text())))]
        """)
        assert len(set(names)) == 1
        homes.append(names[0])
        cookies = [value for name, value in page.run("return (await fetch('/fields')).json()") if name.lower() == "cookie"]
        assert len(cookies) == 1 and {"a=1", "b=2"} <= set(cookies[0].split("; "))
    assert sorted(homes) == ["one", "three", "two"]


def test_a_redirect_leads_from_http_to_https(site):
    port = free_port()
    rule = {"name": "to-https", "redirect": {"scheme": "https", "port": port}}
    proxy = site.serve(plain={"rules": [rule]}, secure={"port": port})
    page = site.page()
    page.open(site.url(PLAIN, "/deep/path?a=b"))
    assert page.run("return location.href") == site.url(SECURE, "/deep/path?a=b")
    assert page.run("return document.title") == "one"
    assert proxy.metrics().total("listener_requests_total", listener=f"lb/{site.ports[PLAIN]}") == 1


def test_hsts_makes_the_browser_itself_use_https_and_taking_it_back_ends_that(site):
    proxy = site.serve(secure={"hsts": {"max_age_s": 3600}})
    page = site.page()
    # Not yet known: the browser speaks plainly to the TLS port, and is told so.
    page.open(site.url(SECURE, scheme="http"))
    assert page.run("return [performance.getEntriesByType('navigation')[0].responseStatus, location.protocol]") == [400, "http:"]
    page.open(site.url(SECURE))
    page.open(site.url(SECURE, "/again", scheme="http"))
    assert page.run("return location.href") == site.url(SECURE, "/again")
    config = copy.deepcopy(proxy.config)
    config["load_balancers"][0]["listeners"][SECURE]["hsts"] = {"max_age_s": 0}
    proxy.reload(config)
    page.open(site.url(SECURE))
    page.open(site.url(SECURE, scheme="http"))
    assert page.run("return location.protocol") == "http:"


def test_plain_pages_are_told_nothing_of_hsts(site):
    site.serve()
    page = site.page(SECURE)
    assert page.run("return (await fetch('/')).headers.get('strict-transport-security')") is None


POLL = """
    globalThis.polls = { good: 0, names: {}, bad: [], stop: false, running: 4 }
    const poll = async n => {
        while (!polls.stop) {
            try {
                const answer = await fetch('/who/' + n, n % 2 ? { method: 'POST', body: 'x' } : {})
                const text = await answer.text()
                if (answer.status === 200) { polls.good++; polls.names[text] = (polls.names[text] ?? 0) + 1 } else polls.bad.push(answer.status + text)
            } catch (error) { polls.bad.push(String(error)) }
            await new Promise(go => setTimeout(go, 2))
        }
        polls.running--
    }
    for (let n = 0; n < 4; n++) poll(n)
"""


@EXPECTED
def test_no_poll_fails_while_the_configuration_changes_and_targets_leave(site, listener, protocol):
    proxy = site.serve("one", "two", "three", group={"deregistration_delay_s": 20})
    page = site.page(listener)
    page.run(POLL)
    count = lambda: page.run("return polls.good")
    full = copy.deepcopy(proxy.config)
    for turn in range(10):
        before = count()
        config = copy.deepcopy(full)
        config["target_groups"][0]["targets"].pop(turn % 3)
        proxy.reload(config)
        assert wait_until(lambda before=before: count() >= before + 20)
        proxy.reload(full)
    # Disabled, a target serves what it has and gets nothing new.
    config = copy.deepcopy(full)
    config["target_groups"][0]["targets"][0]["enabled"] = False
    proxy.reload(config)
    before = count()
    assert wait_until(lambda: count() >= before + 100)
    page.run("polls.names = {}")
    before = count()
    assert wait_until(lambda: count() >= before + 100)
    polls = page.run("polls.stop = true; while (polls.running) await new Promise(go => setTimeout(go, 5)); return polls")
    assert polls["bad"] == [] and polls["good"] > 400
    assert set(polls["names"]) == {"two", "three"}
    assert page.run(PROTOCOLS) == [protocol]


@EXPECTED
def test_a_process_that_ends_answers_what_the_page_has_asked_for_and_closes_its_websocket(site, listener, protocol):
    proxy = site.serve(shutdown_s=4)
    page = site.page(listener)
    page.run("""
        globalThis.socket = new WebSocket(location.origin.replace('http', 'ws') + '/ws')
        globalThis.gone = new Promise(good => { socket.onclose = event => good([event.code, event.wasClean]) })
        await new Promise((good, bad) => { socket.onopen = good; socket.onerror = () => bad('no socket') })
        globalThis.answers = Promise.allSettled([1, 2, 3, 4].map(n => fetch('/late/' + n).then(answer => answer.text())))
    """)
    assert wait_until(lambda: len(site.backends[0].script.late) == 4)
    proxy.signal(signal.SIGTERM)
    site.backends[0].script.go.set()
    assert [end.get("value") for end in page.run("return await answers")] == ["1", "2", "3", "4"]
    assert page.run("return await gone") == [1001, True]


def test_what_cannot_be_reached_is_an_error_page_of_ours(site, tmp_path):
    site.serve()
    site.backends[0].stop()
    page = site.page(SECURE)
    assert page.run("return [performance.getEntriesByType('navigation')[0].responseStatus, document.body.innerText.length > 0]") == [502, True]
    page.screenshot(tmp_path / "error.png")
    site.proxy.stop()
    with pytest.raises(BrowserError, match="ERR_CONNECTION"):
        page.open(site.url(SECURE))
