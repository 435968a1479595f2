"""The explorer's page: its answers equal the commands' output, and only its owner has access."""

from __future__ import annotations

import ast
import html
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from types import SimpleNamespace
from urllib.parse import urlencode, urlsplit

import pytest

from browser import Browser
from shakedown import native
from shakedown.errors import InputError
from shakedown.explorer import answers
from shakedown.explorer.question import parse_question
from shakedown.explorer.server import Explorer
from shakedown.native import virtual_time
from shakedown.prediction import library, network, scenario, side_cost, trace
from shakedown.profiles import load_bearer

VIEW = {
    "suites": ["tls1.2/psk", "tls1.3/x25519/p256/server"],
    "device": "esp32",
    "bearer": "lte-m",
    "loss": "0.02",
    "congestion": "bbr",
    "rate_per_s": "100",
    "server_workers": "2",
    "clients": "200",
    "cells": "3",
    "server_software": "nginx",
    "resumption": "0.5",
    "seed": "7",
}


@pytest.fixture
def explorer(tmp_path):
    report = tmp_path / "report.html"
    report.write_text("<title>the report</title>")
    with Explorer(report=report) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def get(server: Explorer, path: str, query=(), **headers: str) -> tuple[int, str]:
    address = f"http://127.0.0.1:{server.server_port}{path}?{urlencode(query, doseq=True)}"
    request = urllib.request.Request(address, headers={"X-Token": server.secret, **headers})
    try:
        with urllib.request.urlopen(request, timeout=300) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, refused.read().decode()


def test_copied_commands_print_the_figures_of_the_page(explorer, shakedown):
    status, text = get(explorer, "/predict", VIEW)
    assert status == 200
    found = json.loads(text)
    fleets = json.loads(get(explorer, "/simulate", VIEW | {"replications": found["replications"]})[1])
    for name, page in (("predict", found), ("simulate", fleets)):
        command = shlex.split(found["commands"][name])
        assert command[0] == "shakedown"
        printed = json.loads(shakedown(*command[1:], "--json").stdout)
        for mine, theirs in zip(page["rows"], printed, strict=True):
            assert mine["ready_s"] == theirs["ready_s"]
            assert mine["suite"] == theirs["suite"]
        command = shakedown(*command[1:], "--columns", ",".join(answers.COLUMNS[name]))
        lines = [*command.stdout.splitlines(), *command.stderr.splitlines()]
        for suite, *cells in page["table"]["cells"]:
            (line,) = [one for one in lines if one.startswith(f"{suite} ")]
            assert re.split("  +", line.strip())[1:] == cells
        assert any("tls1.2/psk: nginx does not offer it" in note for note in page["table"]["notes"])
        for note in filter(None, page["table"]["notes"]):
            assert note in " ".join(lines)


def test_copied_python_returns_the_figures_of_the_page(explorer):
    found = json.loads(get(explorer, "/predict", VIEW)[1])
    names: dict[str, object] = {}
    exec(found["python"], names)
    assert [row.ready_s.mean for row in names["predicted"]] == [
        row["ready_s"]["mean"] for row in found["rows"]
    ]
    assert [row.clients for row in names["simulated"]] == [2000, 2000]


def test_copied_text_contains_the_whole_query_and_nothing_else():
    """Arrivals are checked only when simulated; the prediction's answer contains the unchecked text."""
    odd = parse_question(
        {"arrivals": ['x"); import os #'], "rate_per_s": ["1234567.25"], "resumption": ["0.1234567"]}
    )
    arrivals, fleet = ast.parse(odd.python()).body, shlex.split(odd.commands()["simulate"])
    calls = {
        call.func.attr: call for call in ast.walk(ast.Module(arrivals, [])) if isinstance(call, ast.Call)
    }
    assert set(calls) == {"ServerModel", "predict", "Fleet", "simulate"}
    values = {one.arg: ast.literal_eval(one.value) for one in calls["Fleet"].keywords}
    assert values == {
        "arrivals": odd.arrivals,
        "clients": 20_000,
        "replications": 10,
        "resumption": 0.1234567,
    }
    assert fleet[fleet.index("--arrivals") + 1] == odd.arrivals
    assert "--rate 1234567.25/s" in odd.commands()["predict"]


def test_changing_the_bearer_reuses_traces_and_message_costs(explorer, monkeypatch):
    """Both steps take a third of an answer's time, and depend on neither bearer nor loss."""
    # Threads of the very first answer may read one profile twice.
    for loss in ("0.02", "0.025"):
        assert get(explorer, "/predict", {**VIEW, "loss": loss})[0] == 200
    again: list[str] = []
    estimated, parsed = side_cost.side_cost, trace.parse_trace
    monkeypatch.setattr(scenario, "side_cost", lambda *given: again.append("side_cost") or estimated(*given))
    monkeypatch.setattr(library, "parse_trace", lambda *given: again.append("trace") or parsed(*given))
    monkeypatch.setattr(scenario, "load_bearer", lambda name: again.append(name) or load_bearer(name))
    status, _ = get(explorer, "/predict", {**VIEW, "loss": "0.03"})
    assert status == 200
    # Two suites, and the one by which sessions of the second are resumed.
    assert again == ["lte-m:loss=0.03,congestion=bbr"] * 3


def test_curve_has_the_percentiles_of_the_row(explorer):
    found = json.loads(get(explorer, "/predict", VIEW)[1])
    for row, curve in zip(found["rows"], found["curves"], strict=True):
        (p99,) = [time_s for time_s, share in curve if share == pytest.approx(0.99)]
        assert p99 == pytest.approx(row["ready_s"]["p99"], rel=0.01)
        assert [time_s for time_s, _ in curve] == sorted(time_s for time_s, _ in curve)


def test_the_work_of_messages_sums_to_the_sides(explorer):
    found = json.loads(get(explorer, "/predict", VIEW)[1])
    for row, messages in zip(found["rows"], found["messages"], strict=True):
        for side in ("client", "server"):
            # Work outside of messages is the rest.
            assert 0 < sum(one[f"{side}_s"] for one in messages) <= row[f"{side}_s"]["estimate"] * (1 + 1e-9)
        assert sum(one["bytes"] for one in messages) == pytest.approx(sum(row["handshake_bytes"].values()))


def test_density_matches_the_curve(explorer):
    found = json.loads(get(explorer, "/predict", VIEW)[1])
    edges = found["densities"]["edges_s"]
    for curve, shares in zip(found["curves"], found["densities"]["shares"], strict=True):
        # All but what is beyond the slowest suite's 99th percentile.
        assert 0.989 < sum(shares) < 1.0 + 1e-9
        median_s = next(time_s for time_s, share in curve if share >= 0.5)
        below = sum(share for share, end in zip(shares, edges[1:], strict=True) if end <= median_s)
        assert below <= 0.5 + 1e-9
        assert below + max(shares) >= 0.4


@pytest.mark.parametrize("changes", [{}, {"from_idle": "true"}])
def test_the_waterfall_is_in_the_order_of_a_handshake(explorer, changes):
    found = json.loads(get(explorer, "/predict", VIEW | changes)[1])
    for row, messages in zip(found["rows"], found["messages"], strict=True):
        begun = [one["message"] for one in messages if one["sender"] is None]
        assert begun == [*(["radio set-up"] if changes else []), "TCP connection"]
        free = {"client": 0.0, "server": 0.0}
        for one in messages:
            if one["sender"] is None:
                continue
            other = "server" if one["sender"] == "client" else "client"
            assert one[f"{one['sender']}_start_s"] >= free[one["sender"]]
            assert one["link_start_s"] >= one[f"{one['sender']}_end_s"]
            assert one["link_end_s"] > one["link_start_s"]
            assert one[f"{other}_start_s"] >= one["link_end_s"]
            free = {side: one[f"{side}_end_s"] for side in free}
        # The replay adds headers, acknowledgements and what the profile's delays do to each packet.
        assert 0.5 * row["done_s"]["mean"] < max(free.values()) < 1.1 * row["done_s"]["mean"]


def test_each_handshake_is_replayed_once_for_all_rates(explorer, monkeypatch):
    network._replayed.cache_clear()
    specs = []

    def replay(spec):
        specs.append(spec)
        return virtual_time.replay(spec)

    monkeypatch.setattr(network, "virtual_time", SimpleNamespace(replay=replay))
    for rate in ("0", "1", "2"):
        assert get(explorer, "/predict", VIEW | {"rate_per_s": rate})[0] == 200
    assert specs
    assert len(specs) == len(set(specs))


def test_coarse_answer_is_near_the_full_one_and_given_once(explorer):
    """A coarse answer uses few replays; once all replays are cached, the whole answer is given instead."""
    varying = VIEW | {"bearer": "nb-iot", "from_idle": "true", "congestion": "reno"}
    answers = []
    for coarse in ("true", "false", "true"):
        answers.append(json.loads(get(explorer, "/predict", varying | {"coarse": coarse})[1]))
    first, whole, again = answers
    assert [one["coarse"] for one in answers] == [True, False, False]
    # The first answer estimates no handshake that the page does not show.
    saves = [one["rows"][1]["resumption_saves_j"] for one in answers]
    assert [one is None for one in saves] == [True, False, False]
    assert again == whole
    assert first["commands"] == whole["commands"]
    for few, many in zip(first["rows"], whole["rows"], strict=True):
        assert few["ready_s"] != many["ready_s"]
        assert few["ready_s"]["mean"] == pytest.approx(many["ready_s"]["mean"], rel=0.1)
        low_s, high_s = few["p99_interval_s"]
        assert high_s - low_s > many["p99_interval_s"][1] - many["p99_interval_s"][0]
    other = json.loads(get(explorer, "/predict", varying | {"rate_per_s": "50", "coarse": "true"})[1])
    assert not other["coarse"]


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ({"device": "no-such"}, "unknown device"),
        ({"device": "./mine.toml"}, "a page reads no files"),
        ({"bearer": "/etc/passwd"}, "a page reads no files"),
        ({"arrivals": "file:/etc/passwd"}, "a page reads no files"),
        ({"arrivals": "log:/etc/passwd,keep-alive=1s"}, "a page reads no files"),
        ({"arrivals": " RATES:/etc/passwd"}, "a page reads no files"),
        ({"arrivals": "diurnal:20/s"}, "accepted: poisson, deterministic, bursts, storm"),
        ({"loss": "1"}, "loss"),
        ({"clients": "100000000"}, "clients"),
        ({"bogus": "1"}, "bogus"),
        ({"suites": ["tls9"]}, "unknown protocol"),
        ({"suites": ["tls1.3/*/*"]}, "accepted: at most 12"),
        ({"arrivals": "storm"}, "storm"),
    ],
)
def test_wrong_queries_are_reported_in_one_line(explorer, query, says):
    status, text = get(explorer, "/simulate", query)
    assert status == 400
    assert says in json.loads(text)["error"]
    assert "\n" not in json.loads(text)["error"]


def test_unstable_queue_has_no_curve(explorer):
    found = json.loads(get(explorer, "/predict", {"rate_per_s": "1e6"})[1])
    assert set(map(type, found["curves"])) == {type(None)}


def test_requests_without_the_token_are_refused(explorer):
    for path in ("/", "/choices", "/predict", "/simulate", "/report"):
        assert get(explorer, path, **{"X-Token": "guess"})[0] == 403
    assert get(explorer, "/choices", {"token": explorer.secret}, **{"X-Token": ""})[0] == 200


def test_requests_with_another_host_name_are_refused(explorer):
    """A foreign page whose name resolves to this address, or that has this page in a frame."""
    assert get(explorer, "/choices", Host="example.org")[0] == 403
    with urllib.request.urlopen(explorer.url, timeout=300) as page:
        assert "frame-ancestors 'none'" in page.headers["Content-Security-Policy"]


def test_no_other_file_is_served(explorer):
    for path in ("/../question.py", "/question.py", "/page/index.html", "//etc/passwd"):
        assert get(explorer, path)[0] == 404
    assert get(explorer, "/report")[1] == "<title>the report</title>"


def test_report_has_a_separate_origin_and_may_be_deleted(explorer):
    address = f"http://127.0.0.1:{explorer.server_port}/report?token={explorer.secret}"
    with urllib.request.urlopen(address, timeout=300) as answer:
        assert answer.headers["Content-Security-Policy"].startswith("sandbox ")
        assert "allow-same-origin" not in answer.headers["Content-Security-Policy"]
    explorer.report.unlink()
    status, text = get(explorer, "/report")
    assert status == 404
    assert text.endswith("report.html: no such file or directory")


def test_silent_connections_do_not_delay_other_requests(explorer):
    silent = [socket.create_connection(("127.0.0.1", explorer.server_port)) for _ in range(50)]
    assert get(explorer, "/choices")[0] == 200
    for one in silent:
        one.close()


def test_answers_of_closed_connections_are_not_computed(explorer, monkeypatch):
    """When a control moves, the page sends a new request and closes the previous one's connection."""
    asked_for, entered, may, left = [], threading.Event(), threading.Event(), threading.Event()

    class Turn:
        """The place that an answer waits for."""

        def __enter__(self):
            entered.set()
            assert may.wait(300)

        def __exit__(self, *_):
            left.set()

    explorer.free = Turn()
    monkeypatch.setattr(answers, "choices", lambda report: asked_for.append(report))
    address = ("127.0.0.1", explorer.server_port)
    with socket.create_connection(address) as stream:
        request = f"GET /choices?token={explorer.secret} HTTP/1.0\r\nHost: {address[0]}:{address[1]}\r\n\r\n"
        stream.sendall(request.encode())
        assert entered.wait(300)
    may.set()
    assert left.wait(300)
    assert asked_for == []
    assert get(explorer, "/choices")[0] == 200
    assert asked_for == [True]


@pytest.mark.parametrize(
    ("path", "status"),
    [("http://[", 403), ("/?%5b", 403), ("/simulate?token={}&clients=1&replications=" + "9" * 5000, 200)],
)
def test_malformed_url_gets_a_response_and_prints_nothing(explorer, capfd, path, status):
    host = f"127.0.0.1:{explorer.server_port}"
    with socket.create_connection(("127.0.0.1", explorer.server_port), timeout=300) as stream:
        stream.sendall(f"GET {path.format(explorer.secret)} HTTP/1.0\r\nHost: {host}\r\n\r\n".encode())
        assert stream.makefile("rb").readline().split()[1] == str(status).encode()
    assert capfd.readouterr() == ("", "")


def test_query_is_parsed_from_the_url():
    found = parse_question({"suites": ["a", "b"], "loss": ["0.5"], "from_idle": ["true"]})
    assert (found.suites, found.loss, found.from_idle) == (("a", "b"), 0.5, True)
    with pytest.raises(InputError):
        parse_question({"suites": [""]})


@pytest.mark.browser
def test_page_works_in_a_browser(explorer, peer):
    peer("chromium")

    class Address:
        """What `Browser.show` opens."""

        def resolve(self):
            return self

        def as_uri(self):
            return explorer.url

    with Browser() as browser:

        def until(expression: str) -> None:
            deadline = time.monotonic() + 120
            while not browser.evaluate(expression):
                assert time.monotonic() < deadline, (
                    browser.evaluate("document.body.innerText"),
                    browser.complaints,
                )
                time.sleep(0.05)

        for width in (390, 1280):
            browser.show(Address(), width)
            until("document.getElementById('state').textContent.startsWith('simulated 10 times')")
            until("document.querySelectorAll('figure svg.marks').length === 7")
            assert browser.evaluate("document.documentElement.scrollWidth") == width
            # The answer is on the first screen; on a narrow screen, the controls are folded.
            assert browser.evaluate(
                "document.getElementById('rows').getBoundingClientRect().bottom < innerHeight"
            )
            assert browser.evaluate("document.getElementById('scenario').open") == (width > 390)
            assert browser.evaluate("document.querySelectorAll('#rows tr').length") == 4
            until("document.querySelectorAll('figure summary[aria-label]').length === 7")
        assert browser.complaints == []
        before = browser.evaluate("document.querySelector('#rows').textContent")
        # Figures are as "predict" prints them, and the table needs no scrolling.
        assert "≈ 270 ms" in before
        scrolled = "f = document.getElementById('rows').parentElement; f.scrollWidth - f.clientWidth"
        assert browser.evaluate(scrolled) == 0
        browser.evaluate(
            "f = document.getElementById('controls'); f.elements.loss.value = 20;"
            "f.dispatchEvent(new Event('input', {bubbles: true}))"
        )
        until(f"document.querySelector('#rows').textContent !== {json.dumps(before)}")
        assert "loss=0.2" in browser.evaluate("location.search")
        until("document.getElementById('command').textContent.includes('nb-iot:loss=0.2')")
        assert browser.evaluate("document.getElementById('cells').offsetHeight") == 0
        browser.evaluate(
            "f.elements.cells.value = 2; f.elements.from_idle.checked = true;"
            "f.dispatchEvent(new Event('input', {bubbles: true}))"
        )
        until("document.querySelectorAll('#cells svg.marks').length === 2")
        assert browser.evaluate("document.getElementById('cells').offsetHeight") > 0
        browser.evaluate(
            "f.elements.from_idle.checked = false; f.dispatchEvent(new Event('input', {bubbles: true}))"
        )
        until("document.getElementById('access').offsetHeight === 0")
        assert browser.evaluate("document.getElementById('airtime').offsetHeight") > 0
        # Each client of GSM CSD has a channel of its own, so cells have no airtime.
        browser.evaluate(
            "f.elements.bearer.value = 'gsm-csd'; f.dispatchEvent(new Event('input', {bubbles: true}))"
        )
        until("document.getElementById('airtime').offsetHeight === 0")
        assert browser.evaluate("document.getElementById('storm').offsetHeight") > 0
        browser.evaluate(
            "f.elements.bearer.value = 'nb-iot'; f.elements.arrivals.value = 'poisson:9/s';"
            "f.elements.rate_per_s.value = 1e6; f.dispatchEvent(new Event('input', {bubbles: true}))"
        )
        # There is no chart of clients over time, and none of an unstable queue's distribution of times.
        until("[...document.querySelectorAll('figure')].filter((one) => one.offsetParent).length === 3")
        assert browser.complaints == []
        browser.evaluate(
            "f.elements.suites.value = 'nonsense'; f.dispatchEvent(new Event('input', {bubbles: true}))"
        )
        until("!document.getElementById('error').hidden")
        assert "nonsense" in browser.evaluate("document.getElementById('error').textContent")
        assert all(address.startswith(("http://127.0.0.1:", "data:")) for address in browser.requests)


def test_ctrl_c_ends_the_server_without_output(tmp_path):
    words = [sys.executable, "-m", "shakedown", "explore", "--no-open"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline().startswith("http://127.0.0.1:")
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=60) == ("", "")
    assert process.returncode == 0


def test_ctrl_c_does_not_wait_for_pending_answers():
    """Each of the connections asks for twelve suites; four are computed, the others wait for their turn."""
    suites = [("suites", one.suite) for one in native.suites() if one.suite.startswith("tls1.3/")][:12]
    words = [sys.executable, "-m", "shakedown", "explore", "--no-open"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        address = urlsplit(process.stdout.readline().strip())
        connections = [socket.create_connection((address.hostname, address.port)) for _ in range(8)]
        for number, stream in enumerate(connections):
            query = urlencode([*suites, ("loss", 0.1 * number)])
            request = f"GET /predict?{address.query}&{query} HTTP/1.0\r\nHost: {address.netloc}\r\n\r\n"
            stream.sendall(request.encode())
        answer = connections[0].makefile("rb").readline()
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=300) == ("", "")
        for stream in connections:
            stream.close()
    assert answer.split()[1] == b"200"
    assert process.returncode == 0


def test_token_is_not_passed_as_a_browser_argument(tmp_path):
    """All users can read a process's arguments; only the user can read the file with the token."""
    browser, opened = tmp_path / "browser", tmp_path / "opened"
    browser.write_text(
        '#!/bin/sh\nfile="${1#file://}"\n'
        f'{{ echo "$1"; stat -c %a "$file"; cat "$file"; }} > {opened}.part\nmv {opened}.part {opened}\n'
    )
    browser.chmod(0o755)
    words, environment = (
        [sys.executable, "-m", "shakedown", "explore"],
        os.environ | {"BROWSER": str(browser)},
    )
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment) as process:
        url = process.stdout.readline().strip()
        while not opened.exists() and process.poll() is None:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
    address, mode, page = opened.read_text().splitlines()
    assert address.startswith("file:///")
    assert mode == "600"
    assert html.unescape(page.partition("url=")[2].partition('"')[0]) == url
    assert "token=" in url
