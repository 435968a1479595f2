"""The report of user-supplied certificates and captures, in a browser and in print."""

from __future__ import annotations

from pathlib import Path

import pytest

import supplied
from browser import Browser
from runs import written
from shakedown.experiments.figure_kinds import load_experiment
from shakedown.experiments.runner import run_experiment
from shakedown.reporting.figures import marked, time
from shakedown.reporting.html.write import write_report
from shakedown.results.folder import Results, load_results

TEXT = """
title = "Ours"
repeat = 2
suites = ["tls1.3/x25519/mutual", "tls1.3/x25519/p256/server", "tls1.2/psk"]
devices = ["cortex-m4", "phone"]
bearers = ["nb-iot", "lte"]
captures = [{ file = "gateway.pcap", keylog = "gateway.keys" }]
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> Results:
    home = tmp_path_factory.mktemp("home")
    supplied.chain(home / "gw", "rsa2048@rsa2048@rsa4096", profile="style-large-root", name="gateway.example")
    # A key that today's peers refuse, though handshakes in memory do not.
    supplied.chain(home / "device", "rsa1024", side="client", name="device-7")
    supplied.capture(home, "tls1.3/x25519/p256/server", "tls1.2/ecdhe_rsa/rsa2048@rsa2048@rsa4096")
    text = TEXT + supplied.table("server", "gw") + supplied.table("client", "device")
    return load_results(run_experiment(load_experiment(written(home, text)), home / "r").folder)


@pytest.fixture(scope="module")
def page(results) -> Path:
    return write_report(results, results.folder / "report.html")


def section(page: Path, name: str) -> str:
    text = page.read_text().split(f'<section id="{name}">')[1].split("</section>")[0]
    return text.replace("<wbr>", "")


def test_certificates_are_listed_by_side_with_validation_errors(page, results):
    text = section(page, "certificates")
    about = results.manifest.certificates
    assert f"{about['server'].bytes_sent:,} bytes of certificates are sent" in text
    assert f"{about['client'].bytes_sent:,} bytes of certificates are sent" in text
    for certificate in [*about["server"].certificates, *about["client"].certificates]:
        assert certificate.subject in text
        assert certificate.fingerprint[:16] in text
    assert "a server would reject" in text
    assert any(one.detail in text for one in about["client"].violations)
    assert "what a client would reject" in text
    parts = (page.parent / "figures" / "certificates-server.csv").read_text().splitlines()[1:]
    sizes = sum(int(line.rsplit(",", 1)[1]) for line in parts)
    assert sizes == sum(one.bytes for one in about["server"].certificates)


def test_answer_mentions_the_capture(page):
    answer = page.read_text().split('<div class="answer">')[1].split("</div>")[0]
    assert "In gateway.pcap, " in answer


def test_answer_compares_the_capture_with_the_fastest_other_suite(page, results):
    answer = page.read_text().split('<div class="answer">')[1].split("</div>")[0].replace("<wbr>", "")
    [slow] = [
        row
        for row in results.predictions.to_dicts()
        if row["capture"] and (row["connection"], row["device"], row["bearer"]) == (0, "cortex-m4", "nb-iot")
    ]
    quick = min(
        (row["ready_mean_s"], row["basis"])
        for row in results.predictions.to_dicts()
        if row["capture"] is None
        and (row["device"], row["bearer"]) == ("cortex-m4", "nb-iot")
        and row["suite"] != slow["suite"]
    )
    assert f"On cortex-m4 over nb-iot the captured <code>{slow['suite']}</code>" in answer
    assert f"<b>{marked(time(slow['ready_mean_s'], 2), slow['basis'])}</b>" in answer
    assert f"<b>{marked(time(quick[0], 2), quick[1])}</b>" in answer


def test_captured_handshakes_are_above_measured_ones_in_the_map(page):
    table = section(page, "captures").split('id="figure-captured-predictions"')[1]
    assert "captured: tls1.3/x25519/p256/server" in table
    assert table.index("captured: tls1.3/x25519/p256/server") < table.index(">tls1.2/psk")


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1280])
def test_page_renders_in_a_browser_without_errors(page, peer, width):
    peer("chromium")
    with Browser() as browser:
        for scheme in ("light", "dark"):
            browser.show(page, width, scheme=scheme)
            assert browser.complaints == []
            assert browser.requests == [page.resolve().as_uri()]
            assert browser.evaluate("document.documentElement.scrollWidth") <= width
            # No text of a figure stands outside of it.
            shown = ".narrow" if width == 390 else ".wide"
            outside = browser.evaluate(
                f"[...document.querySelectorAll('section:is(#captures,#certificates) {shown} svg')]"
                ".flatMap(svg =>"
                "[...svg.querySelectorAll('text')].filter(t => {"
                "const a = t.getBoundingClientRect(), b = svg.getBoundingClientRect();"
                "return a.width > 0 && (a.right > b.right + 1 || a.left < b.left - 1)})"
                ".map(t => t.textContent))"
            )
            assert outside == []
