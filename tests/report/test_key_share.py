"""The unused key share of a bare PSK is named wherever its suite's figures are."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs

import runs
from shakedown.prediction.predict import predict_rows
from shakedown.prediction.scenario import scenario
from shakedown.reporting.columns.modelled import notes
from shakedown.reporting.html.write import write_report
from shakedown.reporting.terminal.fleets import fleet_tables
from shakedown.reporting.terminal.modelled import predicted_tables

TEXT = """
suites = ["tls1.3/psk", "tls1.2/psk"]
repeat = 2
devices = ["cortex-m4", "lpc1114"]
bearers = ["nb-iot"]
[simulated]
arrivals = ["storm:1s"]
clients = 5
"""
SAID = "without the key of the key share that libssl sends and the suite does not use"
KNOWN = f"tls1.3/psk on cortex-m4: {SAID}: it would take the client 32 ms; its bytes are counted"
UNKNOWN = f"tls1.3/psk on lpc1114: {SAID}: lpc1114 has no figure for it; its bytes are counted"


def test_prediction_reports_the_unused_key_share():
    rows = predict_rows(["tls1.3/psk", "tls1.2/psk"], device=["cortex-m4", "lpc1114"])
    found = {(row["suite"], row["device"]): row["unused_key_share_s"] for row in rows}
    assert found["tls1.2/psk", "cortex-m4"] is None
    assert found["tls1.3/psk", "cortex-m4"]["estimate"] == pytest.approx(0.032, rel=0.1)
    assert found["tls1.3/psk", "lpc1114"]["missing"] == ["client keygen ecdh x25519"]
    assert found["tls1.3/psk", "lpc1114"]["estimate"] is None
    assert {KNOWN, UNKNOWN} <= set(notes(rows, set()))


def test_unused_keys_of_several_groups_are_added():
    """Also if their figures are the device's own, which have the same error."""
    one = scenario("tls1.3/psk", "cortex-m4")
    keygen = one.trace.unused[0]
    curves = [structs.replace(keygen, parameters=name) for name in ("p256", "p384")]
    alone = [
        replace(one, trace=replace(one.trace, unused=(curve,))).unused_key_share_s["estimate"]
        for curve in curves
    ]
    both = replace(one, trace=replace(one.trace, unused=tuple(curves)))
    assert both.unused_key_share_s["estimate"] == pytest.approx(sum(alone))


def test_experiment_reports_the_unused_key_share(tmp_path):
    results = runs.results(tmp_path, TEXT)
    for tables in (predicted_tables, fleet_tables):
        lines = list(tables(results, 200))
        assert any(KNOWN.split(": ", 1)[1] in line for line in lines)
        assert any(UNKNOWN.split(": ", 1)[1] in line for line in lines)
        assert not any(SAID in line for line in lines if line.startswith("tls1.2"))
    page = write_report(results, tmp_path / "report.html").read_text().replace("<wbr>", "")
    for section in ("predictions", "storms"):
        text = page.split(f'<section id="{section}">')[1].split("</section>")[0]
        for line in (KNOWN, UNKNOWN):
            assert line.split(": ", 1)[1] in text
