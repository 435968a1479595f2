"""The report: its text is computed from the results, and a browser reports no errors."""

from __future__ import annotations

import csv
import io
import json
import re
import resource
import subprocess
import sys
import xml.etree.ElementTree as ET
import zlib
from itertools import pairwise
from typing import Any

import pytest
import vl_convert
from msgspec import structs

import real
from browser import Browser
from shakedown import native
from shakedown.experiments.figure_kinds import kind
from shakedown.experiments.figure_kinds.in_memory_results import results_of
from shakedown.native.scenario import HandshakeId, MeasureOptions, Scenario
from shakedown.reporting.charts.inherited import hoisted
from shakedown.reporting.charts.timeline import timeline
from shakedown.reporting.figures import time_us, times
from shakedown.reporting.html.measured import time_section
from shakedown.reporting.html.measured_findings import answer, findings
from shakedown.reporting.html.page import MAX_NAME_LENGTH, short_names
from shakedown.reporting.html.text import plain
from shakedown.reporting.html.write import write_report
from shakedown.results.folder import load_results
from shakedown.results.writer import ResultsWriter
from shakedown.schema.measured import Measurement
from shakedown.schema.saved import AboutExperiment, Manifest, Planned

TICKETS = MeasureOptions(repeat=2, tickets=2)
SUITES = (
    "tls1.2/dhe_rsa+dh2048/rsa2048/server",
    "tls1.2/dhe_rsa+dh2048/rsa2048/mutual",
    "tls1.2/dhe_rsa+dh2048/rsa2048/server/resumed",
    "tls1.2/psk",
    "tls1.3/x25519/p256/server",
    "tls1.3/x25519mlkem768/mldsa65/server",
)


def add(writer: ResultsWriter, one: Measurement) -> None:
    scenario = Scenario(kind="measured", handshake=real.identity(one))
    writer.add("measured", one.suite, kind("measured").table([(scenario, one)]))


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    manifest = Manifest(
        provenance="0123456789ab",
        created="2026-01-31T12:00:00+00:00",
        experiment=AboutExperiment(
            title="Six <handshakes> & more", question="What?", text="suites = []\n# \x1b[31m"
        ),
        machine=native.machine(),
        build=native.build(),
        command=("shakedown", "run"),
    )
    with ResultsWriter(tmp_path_factory.mktemp("r"), manifest) as writer:
        for suite in SUITES:
            add(writer, real.measurement(suite))
    return load_results(writer.folder)


@pytest.fixture(scope="module")
def page(results):
    return write_report(results, results.folder / "report.html")


def both_us(suite: str) -> float:
    one = real.measurement(suite).handshake
    return one.client_us.mean + one.server_us.mean


@pytest.fixture(scope="module")
def exact():
    """The same handshakes, their means known exactly."""
    return results_of(real.known(suite) for suite in SUITES)


def test_the_answer_is_computed_from_the_results(exact):
    ordered = sorted(SUITES, key=both_us)
    sizes = sorted(SUITES, key=lambda suite: real.measurement(suite).bytes.total)
    first, second = map(plain, answer(exact))
    assert first == (
        f"Of 6 handshakes, {ordered[0]} takes the least time, {time_us(both_us(ordered[0]))} of both sides "
        f"together, and {ordered[-1]} the most, {time_us(both_us(ordered[-1]))}: "
        f"{times(both_us(ordered[-1]) / both_us(ordered[0]))} as long."
    )
    assert sizes[0] in second
    assert f"{real.measurement(sizes[-1]).bytes.total:,} bytes ({sizes[-1]})" in second


def test_findings_compare_suites_that_differ_in_one_part(exact):
    resumption, mutual, quantum, parts = map(plain, findings(exact))
    assert resumption.startswith("Resuming tls1.2/dhe_rsa+dh2048/rsa2048/server saves ")
    assert "tls1.2/dhe_rsa+dh2048/rsa2048/mutual" in mutual
    ratio = times(real.measurement(SUITES[5]).bytes.total / real.measurement(SUITES[4]).bytes.total)
    assert f"{SUITES[5]} sends {ratio} the bytes of {SUITES[4]}" in quantum
    assert "public-key operations" in parts
    assert findings(results_of([real.measurement("tls1.2/psk")])) == []


def test_overlapping_intervals_give_no_ranking():
    """If means are known to ± 200 % only, no sentence compares times; bytes are still compared."""
    noisy = results_of(real.known(suite, off=2.0) for suite in SUITES[:3])
    first, _bytes, doubts = map(plain, answer(noisy))
    assert re.search(r"± \d+%: the intervals overlap\.$", first), first
    assert doubts.startswith("Uncertain: times of 3 of 3 handshakes are known to ± 20 % or worse (± 200%, ")
    resumption, mutual = map(plain, findings(noisy))
    assert resumption.startswith("Resuming tls1.2/dhe_rsa+dh2048/rsa2048/server takes ")
    assert mutual.startswith("When the client must authenticate too (tls1.2/dhe_rsa+dh2048/rsa2048/mutual), ")
    for line in (resumption, mutual):
        assert "bytes" in line
        assert "time" not in line


def test_implausible_findings_are_omitted():
    """A client that also signs does not work less, whatever was measured on a busy machine."""
    alone, mutual = real.known(SUITES[0]), real.known(SUITES[1])
    quick = structs.replace(mutual.handshake, client_us=alone.handshake.client_us)
    quick = structs.replace(
        quick, client_us=structs.replace(quick.client_us, mean=0.5 * quick.client_us.mean)
    )
    said = map(plain, findings(results_of([alone, structs.replace(mutual, handshake=quick)])))
    assert next(one for one in said if "authenticate" in one).endswith("more bytes are sent.")


def test_ratios_of_imprecise_means_are_rounded():
    rough = results_of(real.known(suite, off=0.15) for suite in SUITES)
    first, *_ = map(plain, answer(rough))
    assert re.search(r"the most, [\d.]+ \S+ ± \d+%: about [\d,]+ times as long\.$", first), first


def test_time_by_class_adds_up_to_the_mean():
    measurement = real.measurement()
    for side in ("client", "server"):
        split = measurement.time_by_class_us(side)
        assert sum(split.values()) == pytest.approx(measurement.handshake.of(side).mean)
        assert split["key"] > 0
        assert split["signature"] > 0


def test_timeline_has_every_message_twice_and_no_gap():
    measurement = real.measurement("tls1.3/x25519/p256/server")
    results = results_of([measurement])
    works, flights = timeline(results.messages.to_dicts(), results.operations.to_dicts())
    assert len(works) == 2 * len(measurement.messages)
    for before, after in pairwise(works):
        assert before.end_us == after.start_us
    spent = sum(m.generate_mean_us + m.process_mean_us for m in measurement.messages)
    assert works[-1].end_us == pytest.approx(spent)
    assert [(flight.number, flight.sender) for flight in flights] == [
        (1, "client"),
        (2, "server"),
        (3, "client"),
    ]
    assert sum(flight.size_bytes for flight in flights) == measurement.bytes.total
    inside = [operation for work in works for operation in work.operations]
    assert len(inside) == sum(one.message is not None for one in measurement.operations)


def test_tickets_after_the_handshake_are_a_separate_flight():
    ticketed = native.measure(HandshakeId(suite="tls1.3/x25519/p256/server"), TICKETS)
    results = results_of([ticketed])
    _, flights = timeline(results.messages.to_dicts(), results.operations.to_dicts())
    tickets = sum(one.bytes for one in ticketed.messages[-2:])
    assert [one.name for one in ticketed.messages[-2:]] == ["NewSessionTicket"] * 2
    assert (flights[-1].number, flights[-1].sender, flights[-1].size_bytes) == (None, "server", tickets)


def test_page_is_self_contained(page):
    text = page.read_text()
    assert not re.findall(r'(?:src|href)="(?!#|data:|figures/)[^"]*"', text)
    for name in re.findall(r'href="(figures/[^"]*)"', text):
        assert (page.parent / name).is_file()
    assert len(text) < 1_500_000
    assert "@import" not in text
    assert "Six &lt;handshakes&gt; &amp; more" in text
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    for suite in SUITES:
        assert suite in text.replace("<wbr>", "")


def test_every_figure_states_its_kind_and_can_be_downloaded(page):
    text = page.read_text()
    captions = re.findall(r"<figcaption>.*?</figcaption>", text, re.DOTALL)
    assert len(captions) == 2 + len(SUITES)
    for caption in captions:
        assert ">measured</span>" in caption
        assert [form for form in ("svg", "png", "csv") if f'.{form}" data-form="{form}"' not in caption] == []


def test_figures_are_also_written_as_files(page, results):
    figures = page.parent / "figures"
    names = {path.stem for path in figures.glob("*.svg")}
    assert {"time", "bytes", "waterfall-tls1.2-psk"} <= names
    for name in names:
        ET.fromstring((figures / f"{name}.svg").read_text())
        assert (figures / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    rows = list(csv.DictReader(io.StringIO((figures / "bytes.csv").read_text())))
    for suite in SUITES:
        total = sum(float(row["bytes"]) for row in rows if row["suite"] == suite)
        assert total == real.measurement(suite).bytes.total


def test_a_timeline_is_a_chrome_trace(page):
    """The Trace Event Format: slices of a thread nest, an arrow's ends share their id."""
    suite = "tls1.3/x25519/p256/server"
    [file] = (page.parent / "figures").glob("waterfall-tls1.3-x25519-p256-server.trace.json")
    events = json.loads(file.read_text())["traceEvents"]
    names = {one["tid"]: one["args"]["name"] for one in events if one["ph"] == "M"}
    assert sorted(names.values()) == ["client", "server"]
    measurement = real.measurement(suite)
    for tid, side in names.items():
        slices = [one for one in events if one["ph"] == "X" and one["tid"] == tid]
        messages = [one for one in slices if one["cat"] == "message"]
        assert sum(one["dur"] for one in messages) == pytest.approx(
            sum(
                one.generate_mean_us if one.sender == side else one.process_mean_us
                for one in measurement.messages
            ),
            abs=0.02,
        )
        # For a reader that truncates to nanoseconds slices follow each other, or one is inside the other.
        for before, after in pairwise(messages):
            assert end_ns(before) <= int(1000 * after["ts"])
        for inner in (one for one in slices if one["cat"] != "message"):
            assert any(
                int(1000 * outer["ts"]) <= int(1000 * inner["ts"]) and end_ns(inner) <= end_ns(outer)
                for outer in messages
            )
    # An arrow's ends share their number, and each is within a message of its thread.
    starts, ends = ({one["id"]: one for one in events if one["ph"] == ph} for ph in "sf")
    assert starts.keys() == ends.keys() != set()
    for one in [*starts.values(), *ends.values()]:
        at_ns = int(1000 * one["ts"])
        assert any(
            int(1000 * slice_["ts"]) <= at_ns < end_ns(slice_)
            for slice_ in events
            if slice_["ph"] == "X" and slice_["tid"] == one["tid"]
        )


def test_each_trace_has_what_the_format_requires(page):
    """Each event has the keys that Perfetto's JSON importer requires by phase; times are in µs from 0 on."""
    required = {
        "M": {"args": dict, "name": str, "pid": int, "tid": int},
        "X": {"cat": str, "dur": float, "name": str, "pid": int, "tid": int, "ts": float},
        "s": {"cat": str, "id": int, "name": str, "pid": int, "tid": int, "ts": float},
        "f": {"bp": str, "cat": str, "id": int, "name": str, "pid": int, "tid": int, "ts": float},
    }
    traces = list((page.parent / "figures").glob("*.trace.json"))
    assert traces
    for trace in traces:
        found = json.loads(trace.read_text())
        assert set(found) == {"traceEvents"}
        events = found["traceEvents"]
        threads = {one["tid"] for one in events if one["ph"] == "M" and one["name"] == "thread_name"}
        flows: dict[tuple[str, str, int], list[tuple[str, float]]] = {}
        for one in events:
            kinds = required[one["ph"]]
            assert one.keys() - {"ph", "args"} == kinds.keys() - {"args"}, one
            assert all(isinstance(one[key], (int, kind)) for key, kind in kinds.items()), one
            assert one["name"], one
            assert (one["pid"], one["tid"] in threads) == (1, True), one
            assert one["ph"] == "M" or (one["ts"] >= 0 and one.get("dur", 0) >= 0), one
            if one["ph"] in "sf":
                flows.setdefault((one["cat"], one["name"], one["id"]), []).append((one["ph"], one["ts"]))
        for ends in flows.values():
            (first, began), (last, ended) = ends
            assert (first, last) == ("s", "f")
            assert began <= ended
        assert all(one["bp"] == "e" for one in events if one["ph"] == "f")


def end_ns(slice_: dict[str, Any]) -> int:
    return int(1000 * slice_["ts"]) + int(1000 * slice_["dur"])


def test_pictures_are_smaller_and_keep_their_pixels(results):
    [section] = [time_section(results.handshakes.to_dicts())]
    figure = section.blocks[0].figure
    drawn = bytes(vl_convert.svg_to_png(figure.svg, scale=2))
    assert len(figure.png()) < len(drawn) / 2
    assert pixels(figure.png()) == pixels(drawn)


def pixels(png: bytes) -> bytes:
    """The filtered rows of a PNG."""
    found, place = b"", 8
    while place < len(png):
        size = int.from_bytes(png[place : place + 4])
        if png[place + 4 : place + 8] == b"IDAT":
            found += png[place + 8 : place + 8 + size]
        place += 12 + size
    return zlib.decompress(found)


def test_short_names_are_short_and_distinct():
    assert short_names(["tls1.3/x25519/p256/server", "tls1.3/x25519/rsa2048/server"]) == {
        "tls1.3/x25519/p256/server": "p256",
        "tls1.3/x25519/rsa2048/server": "rsa2048",
    }
    long = [f"tls1.0/dhe_dss+dh1024/dsa1024/{end}" for end in ("server", "mutual")] + ["tls1.2/psk"]
    cut = short_names(long)
    assert all(len(one) <= MAX_NAME_LENGTH for one in cut.values())
    assert len(set(cut.values())) == 3
    alike = [f"a/{'x' * 40}{number}{'y' * 40}/b" for number in range(3)] + ["other/c"]
    assert len(set(short_names(alike).values())) == 4


def test_meaning_does_not_depend_on_colour_alone(page):
    """Every fill of data is a pattern, and the patterns differ by their strokes."""
    text = page.read_text()
    patterns = dict(re.findall(r'<pattern id="fill-(\w+)".*?<rect[^>]*>(.*?)</pattern>', text))
    assert len({strokes for name, strokes in patterns.items() if name != "busy"}) == len(patterns) - 1


def test_timelines_of_many_suites_are_collapsed(tmp_path):
    results = results_of(real.named(f"tls1.2/psk/x{number}") for number in range(17))
    page = write_report(results, tmp_path / "report.html")
    assert page.read_text().count('<details class="fold">') == 17


def test_escapes_and_bidirectional_overrides_are_visible_in_the_page(tmp_path):
    """Escapes and bidirectional overrides are shown, in texts, attributes, drawings."""
    hostile = "tls1.2/psk \x1b]0;owned\x07\u202egnp.exe\x9b31m"
    about = AboutExperiment(title=f"T {hostile}", question=hostile, text=f"a\n\tb {hostile}")
    manifest = Manifest(provenance="p", created="", experiment=about, command=(hostile,))
    page = write_report(results_of([real.named(hostile)], manifest), tmp_path / "r.html")
    texts = [page.read_text(), *(one.read_text() for one in (tmp_path / "figures").glob("*.svg"))]
    for text in texts:
        assert [one for one in text if not one.isprintable() and one not in "\n\t"] == []
    assert "\\x1b]0;owned\\x07\\u202egnp.exe" in texts[0]
    for path in (tmp_path / "figures").iterdir():
        assert path.name.isprintable()


def test_page_of_an_unfinished_run_starts_with_a_warning(tmp_path):
    planned = tuple(Planned(kind="measured", about=suite) for suite in SUITES[:4])
    writer = ResultsWriter(tmp_path / "r", Manifest(provenance="p", created="", planned=planned))
    for suite in SUITES[:2]:
        add(writer, real.measurement(suite))
    page = write_report(load_results(writer.folder), tmp_path / "r" / "report.html").read_text()
    [warning] = re.findall(r'<p class="warning".*?>(.*?)</p>', page, re.DOTALL)
    assert warning == (
        "This run has not ended: it was killed, or still runs. Missing are 2 of 4 parts: "
        f"measured: {SUITES[2]}, {SUITES[3]}."
    )
    writer.close("interrupted")
    page = write_report(load_results(writer.folder), tmp_path / "r" / "report.html").read_text()
    assert "This run was interrupted. Missing are 2 of 4 parts" in page


def test_page_of_a_finished_run_has_no_warning(page):
    assert 'class="warning"' not in page.read_text()


@pytest.mark.browser
def test_page_renders_in_a_browser_without_errors(page, peer, tmp_path):
    peer("chromium")
    with Browser() as browser:
        for width in (390, 1280, 2560):
            for scheme in ("light", "dark"):
                browser.show(page, width, scheme=scheme)
                assert browser.complaints == []
                assert browser.requests == [page.resolve().as_uri()]
                assert browser.evaluate("document.documentElement.scrollWidth") <= width
                shown = ".narrow" if width == 390 else ".wide"
                assert (
                    browser.evaluate(f"document.querySelector('{shown} svg').getBoundingClientRect().width")
                    > 300
                )
                smallest = browser.evaluate(
                    f"Math.min(...[...document.querySelectorAll('{shown} text')]"
                    ".map(t => t.getBoundingClientRect().height).filter(h => h > 0))"
                )
                assert smallest >= 9
                paper, ink = (
                    browser.evaluate(f"getComputedStyle(document.body).{one}")
                    for one in ("backgroundColor", "color")
                )
                assert contrast(paper, ink) > 7
                browser.screenshot(tmp_path / f"{width}-{scheme}.png")
        browser.show(page, 1280, scheme="dark")
        browser.print(tmp_path / "page.pdf")
    peer("pdftotext")
    printed = subprocess.run(
        ["pdftotext", "-raw", tmp_path / "page.pdf", "-"], capture_output=True, text=True, check=True
    ).stdout
    for suite in SUITES:
        assert suite in re.sub(r"/\s+", "/", printed)


def contrast(first: str, second: str) -> float:
    """WCAG's contrast ratio of two CSS colours."""

    def luminance(colour: str) -> float:
        channels = [int(value) / 255 for value in re.findall(r"\d+", colour)[:3]]
        linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(first), luminance(second)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_common_svg_attributes_move_to_the_group_unchanged():
    marks = '<rect x="{}" width="9" height="9" fill="#345" stroke="#999"/>'
    text = '<text y="20" fill="#000">ab</text>'
    head = '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="30">'
    svg = f"{head}<g><g>{marks.format(2)}{marks.format(20)}</g>{text}</g></svg>"
    found = hoisted(svg)
    assert found.count("#345") == found.count("#999") == 1
    assert vl_convert.svg_to_png(found) == vl_convert.svg_to_png(svg)


def test_address_space_limit_is_reported(results, tmp_path):
    """The chart engine would end the process, with a stack trace of its own."""
    page = tmp_path / "page.html"
    done = subprocess.run(
        [sys.executable, "-m", "shakedown", "report", str(results.folder), "--out", str(page)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30)),
    )
    assert done.returncode == 1
    [line] = [one for one in done.stderr.splitlines() if one]
    assert line == (
        "error: charts cannot be drawn: the address space is limited to 8.0 GiB (ulimit -v), and the chart "
        "engine reserves 66; accepted: a larger limit"
    )
    assert not page.exists()
