"""The report: what it says is computed from the results, and a browser finds nothing to complain about."""

from __future__ import annotations

import csv
import io
import re
import subprocess
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest

import synthetic
from browser import Browser
from shakedown.measurement import time_by_class_us
from shakedown.report import write_report
from shakedown.report.waterfall import timeline
from shakedown.report.words import answer, duration, findings, times
from shakedown.results.folder import ResultsWriter, load_results

SUITES = (
    "tls1.2/dhe_rsa+dh2048/rsa2048/server",
    "tls1.2/dhe_rsa+dh2048/rsa2048/mutual",
    "tls1.2/dhe_rsa+dh2048/rsa2048/server/resumed",
    "tls1.2/psk",
    "tls1.3/x25519/p256/server",
    "tls1.3/x25519mlkem768/mldsa65/server",
)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    manifest = {
        "experiment": {"title": "Six <handshakes> & more", "question": "What?", "text": "suites = []"},
        "machine": synthetic.MACHINE,
        "build": {"shakedown": "0.0.0"},
        "command": ["shakedown", "run"],
    }
    writer = ResultsWriter(tmp_path_factory.mktemp("r"), manifest)
    for suite in SUITES:
        writer.add(synthetic.measurement(suite))
    writer.close(ended="complete")
    return load_results(writer.folder)


@pytest.fixture(scope="module")
def page(results):
    return write_report(results, results.folder / "report.html")


def plain(sentence) -> str:
    return "".join(piece.text for piece in sentence)


def test_the_answer_is_computed_from_the_results(results):
    def both(suite):
        one = results.by_suite[suite]["handshake"]
        return one["client_us"]["mean"] + one["server_us"]["mean"]

    ordered = sorted(SUITES, key=both)
    sizes = sorted(SUITES, key=lambda suite: results.by_suite[suite]["bytes"]["total"])
    first, second = map(plain, answer(results.by_suite))
    assert first == (
        f"Of 6 handshakes, {ordered[0]} takes the least time, {duration(both(ordered[0]))} of both sides "
        f"together, and {ordered[-1]} the most, {duration(both(ordered[-1]))}: "
        f"{times(both(ordered[-1]) / both(ordered[0]))} as long."
    )
    assert sizes[0] in second
    assert f"{results.by_suite[sizes[-1]]['bytes']['total']:,} bytes ({sizes[-1]})" in second


def test_what_stands_out_compares_suites_that_differ_in_one_part(results):
    resumption, mutual, quantum, parts = map(plain, findings(results.by_suite))
    assert resumption.startswith("Resuming tls1.2/dhe_rsa+dh2048/rsa2048/server saves ")
    assert "tls1.2/dhe_rsa+dh2048/rsa2048/mutual" in mutual
    assert (
        "tls1.3/x25519mlkem768/mldsa65/server sends 1.8 times the bytes of tls1.3/x25519/p256/server"
        in quantum
    )
    assert "public-key operations" in parts
    assert findings({"tls1.2/psk": results.by_suite["tls1.2/psk"]}) == []


def test_time_by_class_adds_up_to_the_mean():
    measurement = synthetic.measurement()
    for side in ("client", "server"):
        split = time_by_class_us(measurement, side)
        assert sum(split.values()) == pytest.approx(measurement["handshake"][f"{side}_us"]["mean"])
        assert split["key"] > 0
        assert split["signature"] > 0


def test_the_timeline_holds_every_message_twice_and_leaves_no_gap():
    measurement = synthetic.measurement("tls1.3/x25519/p256/server")
    works, flights = timeline(measurement)
    assert len(works) == 2 * len(measurement["messages"])
    for before, after in pairwise(works):
        assert before.end_us == after.start_us
    spent = sum(m["generate_mean_us"] + m["process_mean_us"] for m in measurement["messages"])
    assert works[-1].end_us == pytest.approx(spent)
    assert [(flight.number, flight.sender) for flight in flights] == [
        (1, "client"),
        (2, "server"),
        (3, "client"),
        (None, "server"),
    ]
    assert sum(flight.size_bytes for flight in flights) == measurement["bytes"]["total"]


def test_the_page_stands_alone(page):
    text = page.read_text()
    assert not re.findall(r'(?:src|href)="(?!#|data:)[^"]*"', text)
    assert "<script" not in text
    assert "@import" not in text
    assert "Six &lt;handshakes&gt; &amp; more" in text
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    for suite in SUITES:
        assert suite in text.replace("<wbr>", "")


def test_every_figure_says_its_kind_and_can_be_downloaded(page):
    text = page.read_text()
    captions = re.findall(r"<figcaption>.*?</figcaption>", text, re.DOTALL)
    assert len(captions) == 2 + len(SUITES)
    for caption in captions:
        assert ">measured</span>" in caption
        assert 'href="data:image/svg+xml;base64,' in caption
        assert 'href="data:text/csv;charset=utf-8;base64,' in caption


def test_figures_are_files_too(page, results):
    figures = page.parent / "figures"
    names = {path.stem for path in figures.iterdir()}
    assert {"time", "bytes", "waterfall-tls1.2-psk"} <= names
    for name in names:
        ET.fromstring((figures / f"{name}.svg").read_text())
        assert (figures / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    rows = list(csv.DictReader(io.StringIO((figures / "bytes.csv").read_text())))
    for suite in SUITES:
        total = sum(float(row["bytes"]) for row in rows if row["suite"] == suite)
        assert total == results.by_suite[suite]["bytes"]["total"]


def test_meaning_does_not_hang_on_colour_alone(page):
    """Every fill of data is a pattern, and the patterns differ by their strokes."""
    text = page.read_text()
    patterns = dict(re.findall(r'<pattern id="fill-(\w+)".*?<rect[^>]*>(.*?)</pattern>', text))
    assert len({strokes for name, strokes in patterns.items() if name != "busy"}) == len(patterns) - 1


def test_many_suites_are_folded(tmp_path):
    writer = ResultsWriter(tmp_path, {})
    for number in range(17):
        writer.add(synthetic.measurement(f"tls1.2/psk/x{number}"))
    page = write_report(load_results(tmp_path), tmp_path / "report.html")
    assert page.read_text().count('<details class="fold">') == 17


@pytest.mark.browser
def test_a_browser_is_content(page, peer, tmp_path):
    peer("chromium")
    with Browser() as browser:
        for width in (390, 1280):
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
