"""The page's script: sorting, filtering, hovering, themes, selection of suites, downloads."""

from __future__ import annotations

import json
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

import real
from browser import Browser
from shakedown.experiments.figure_kinds.in_memory_results import results_of
from shakedown.reporting.html.write import write_report

SUITES = (
    "tls1.2/psk",
    "tls1.2/dhe_rsa+dh2048/rsa2048/server",
    "tls1.2/dhe_rsa+dh2048/rsa2048/mutual",
    "tls1.3/x25519/p256/server",
    "tls1.3/x25519/p256/server/resumed",
    "tls1.3/x25519mlkem768/mldsa65/server",
)
ROWS = "[...document.querySelectorAll('#overview tbody tr')].filter(row => row.offsetParent)"
NAMES = f"{ROWS}.map(row => row.dataset.suite)"

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Path:
    results = results_of(real.measurement(suite) for suite in SUITES)
    return write_report(results, tmp_path_factory.mktemp("r") / "report.html")


@pytest.fixture
def browser(written, tmp_path, peer):
    """The page by itself: no file that was written with it is beside it."""
    peer("chromium")
    alone = tmp_path / "page" / "alone.html"
    alone.parent.mkdir()
    shutil.copy(written, alone)
    with Browser() as one:
        one.show(alone, 1280)
        yield one
        assert one.complaints == []


def head(browser: Browser, name: str) -> str:
    """A script that finds the button of a column."""
    return (
        "[...document.querySelectorAll('#overview thead button')]"
        f".find(button => button.textContent === {json.dumps(name)})"
    )


def test_a_heading_sorts_its_column_both_ways(browser):
    sizes = {suite: real.measurement(suite).bytes.total for suite in SUITES}
    browser.evaluate(f"{head(browser, 'bytes')}.click()")
    assert browser.evaluate(NAMES) == sorted(SUITES, key=sizes.__getitem__)
    assert browser.evaluate(f"{head(browser, 'bytes')}.parentElement.ariaSort") == "ascending"
    browser.evaluate(f"{head(browser, 'bytes')}.click()")
    assert browser.evaluate(NAMES) == sorted(SUITES, key=sizes.__getitem__, reverse=True)
    # Sorted by value, although the text has two digits and its own unit.
    browser.evaluate(f"{head(browser, 'client ms')}.click()")
    means = {suite: real.measurement(suite).handshake.client_us.mean for suite in SUITES}
    assert browser.evaluate(NAMES) == sorted(SUITES, key=means.__getitem__)


def test_rows_without_a_figure_stay_last_when_sorted(browser):
    find = head(browser, "client signatures")
    for _ in range(2):
        browser.evaluate(f"{find}.click()")
        assert browser.evaluate(f"{ROWS}.at(-1).dataset.suite") in {"tls1.2/psk", SUITES[4]}


def type_in(browser: Browser, selector: str, text: str) -> None:
    browser.evaluate(
        f"var field = document.querySelector({json.dumps(selector)}); field.value = {json.dumps(text)};"
        "field.dispatchEvent(new Event('input', {bubbles: true}))"
    )


def test_a_table_is_filtered_by_words(browser):
    type_in(browser, "#overview .filter input", "p256 RESUMED")
    assert browser.evaluate(NAMES) == ["tls1.3/x25519/p256/server/resumed"]
    assert browser.evaluate("document.querySelector('#overview .filter output').textContent") == "1 of 6"
    type_in(browser, "#overview .filter input", "")
    assert browser.evaluate(NAMES) == list(SUITES)


def test_suite_selection_applies_to_the_whole_page(browser):
    type_in(browser, "#suites input[type=search]", "x25519 server")
    browser.evaluate("document.querySelector('[data-choose=only]').click()")
    chosen = [suite for suite in SUITES if suite.startswith("tls1.3")]
    assert browser.evaluate("document.getElementById('chosen').textContent") == "3 of 6"
    assert browser.evaluate(NAMES) == chosen
    waterfalls = "[...document.querySelectorAll('#waterfalls .block')].filter(one => one.offsetParent)"
    assert browser.evaluate(f"{waterfalls}.map(one => one.dataset.suite)") == chosen
    for dimmed, suites in ((".dim", set(SUITES) - set(chosen)), (":not(.dim)", set(chosen))):
        for figure in ("time", "bytes"):
            marks = f"document.querySelectorAll('#figure-{figure} .wide [data-suite]{dimmed}')"
            assert set(browser.evaluate(f"[...{marks}].map(one => one.dataset.suite)")) == suites
    browser.evaluate("document.querySelector('[data-choose=all]').click()")
    assert browser.evaluate(NAMES) == list(SUITES)
    assert browser.evaluate("document.querySelectorAll('.dim, .out').length") == 0


@pytest.mark.parametrize("width", [390, 1280])
def test_suite_list_opens_in_the_viewport_at_any_scroll_position(browser, written, width):
    browser.show(written, width)
    box = browser.evaluate(
        "document.querySelector('#waterfalls').scrollIntoView();"
        "document.getElementById('suites').open = true;"
        "box = document.querySelector('.panel').getBoundingClientRect();"
        "[box.left, box.right - innerWidth, box.top, box.bottom - innerHeight]"
    )
    assert [edge > 0 for edge in box] == [True, False, True, False]


def test_tooltips_show_exact_figures(browser):
    browser.point("#figure-time .wide path[data-suite='tls1.3/x25519/p256/server'][data-tip*='server sign']")
    tip = browser.evaluate("document.getElementById('tip').textContent")
    mean_us = real.measurement("tls1.3/x25519/p256/server").time_by_class_us("server")["signature"]
    assert tip.startswith("tls1.3/x25519/p256/server\nserver signatures: ")
    assert f"{mean_us / 1000:,.6g} ms" in tip
    assert "95 % interval" in tip
    browser.point("#overview td[data-r]")
    tip = browser.evaluate("document.getElementById('tip').textContent")
    mean_us = real.measurement(SUITES[0]).handshake.client_us.mean
    assert tip.startswith(f"client ms\n{mean_us:.6g} us (± ")
    browser.point("h1")
    assert browser.evaluate("document.getElementById('tip').hidden") is True


def test_shortened_name_has_the_full_name_as_tooltip(browser):
    short = "document.querySelector('#overview .short')"
    full = browser.evaluate(f"{short}.title")
    assert full in SUITES
    assert "…" in browser.evaluate(f"{short}.textContent")


def test_theme_switch_overrides_the_system_setting(browser, written):
    paper = "getComputedStyle(document.body).backgroundColor"
    light = browser.evaluate(paper)
    browser.evaluate("document.getElementById('theme').click()")
    dark = browser.evaluate(paper)
    assert dark != light
    browser.show(written, 1280, scheme="dark")
    assert browser.evaluate(paper) == dark
    browser.evaluate("document.getElementById('theme').click()")
    assert browser.evaluate(paper) == light


def test_each_figure_is_downloaded_from_the_page_itself(browser, written, tmp_path):
    figures = written.parent / "figures"
    for name in ("time", "waterfall-tls1.2-psk"):
        for form in ("svg", "png", "csv", *(["trace.json"] if name != "time" else [])):
            find = f"document.querySelector('#figure-' + CSS.escape('{name}') + ' [data-form=\"{form}\"]')"
            saved = browser.download(f"{find}.click()", tmp_path, f"{name}.{form}")
            if form in ("csv", "trace.json"):
                assert saved == (figures / f"{name}.{form}").read_bytes()
            elif form == "png":
                assert saved.startswith(b"\x89PNG")
                width, height = (int.from_bytes(saved[at : at + 4]) for at in (16, 20))
                drawn = (figures / f"{name}.png").read_bytes()
                assert (width, height) == tuple(int.from_bytes(drawn[at : at + 4]) for at in (16, 20))
            else:
                root = ET.fromstring(saved)
                assert b"var(--" not in saved
                used = {one.get("id") for one in root.iter("{http://www.w3.org/2000/svg}pattern")}
                assert "fill-key" in used
                told = root.findall(".//{http://www.w3.org/2000/svg}title")
                assert any("client" in (one.text or "") for one in told)


@pytest.mark.parametrize("width", [390, 1280, 2560])
def test_page_fits_the_window_width(browser, written, width):
    browser.show(written, width)
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    shown = ".narrow" if width == 390 else ".wide"
    boxes = browser.evaluate(
        f"[...document.querySelectorAll('{shown} svg')].map(one => one.getBoundingClientRect())"
        ".map(box => [box.left, box.right])"
    )
    assert min(left for left, _ in boxes) < 0.05 * width
    assert max(right for _, right in boxes) > 0.95 * width


def test_page_is_readable_without_javascript(browser, written):
    browser.ask("Emulation.setScriptExecutionDisabled", value=True)
    browser.show(written, 1280)
    assert browser.evaluate("document.getElementById('tools').offsetParent") is None
    assert browser.evaluate(NAMES) == list(SUITES)
