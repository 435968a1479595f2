"""Fleets in an experiment's tables and report: lower bounds are marked, and missing figures are named."""

from __future__ import annotations

import re

import pytest

import runs
import shakedown
from shakedown.reporting.html.simulated import sections as html_sections
from shakedown.reporting.terminal.fleets import fleet_tables as simulated_tables
from shakedown.reporting.terminal.fleets import mixture_tables
from shakedown.results.folder import Results

EXPERIMENT = """
suites = ["tls1.0/dhe_dss+dh1024/dsa1024/server", "tls1.2/psk"]
repeat = 2
devices = ["esp32"]
bearers = ["nb-iot"]
[simulated]
arrivals = ["storm:2s", "poisson:5/s"]
clients = 60
replications = 2
mix = "kinds.toml"
"""
MIX = """
[[clients]]
suite = "tls1.0/dhe_dss+dh1024/dsa1024/server"
[[clients]]
suite = "tls1.2/psk"
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> Results:
    folder = tmp_path_factory.mktemp("fleets")
    (folder / "kinds.toml").write_text(MIX)
    return runs.results(folder, EXPERIMENT)


def test_lower_bounds_are_marked_wherever_they_are_shown(results):
    for row in results.fleets.to_dicts():
        lacks = row["missing"] is not None
        assert lacks == (row["mix"] is not None or "dsa1024" in row["suite"])
        if lacks:
            assert "client verify dsa dsa1024: an estimate by " in row["missing"]
            assert row["energy_missing"].startswith("a part of the processor's work")
            assert row["energy_mean_j"] is row["recovery_s"] is None
            assert row["utilisation"] is None
            assert row["wake_tail_j"] > 0.0
    alone, mixed = list(simulated_tables(results, 200)), list(mixture_tables(results, 200))
    for suite, least in (("dsa1024/server", True), ("tls1.2/psk", False)):
        # A mixture waits in one queue: a cost that one kind lacks makes all its times lower bounds.
        for lines, lacks in ((alone, least), (mixed, True)):
            shown = [line for line in lines if suite in line and not line.startswith("! ")]
            assert len(shown) == 2
            assert all(("≥" in line) == lacks for line in shown)
    lines = [*alone, *mixed]
    assert [line.split(":")[1] for line in alone if "storm:" in line] == [" 2 times 30 clients, storm"]
    assert [line.split(":")[1] for line in alone if line.startswith("simulated") and "poisson:" in line] == [
        " 60 clients, poisson"
    ]
    assert sum("≥ a lower bound" in line for line in lines) == 4


def test_report_names_missing_costs_of_energies_and_times(results, tmp_path):
    page = tmp_path / "report.html"
    shakedown.report(results, page)
    text = page.read_text()
    assert "≥ without a figure of client verify dsa dsa1024" in text
    assert re.search(
        "Energy of .*dsa1024/server on esp32 over nb-iot is not estimated: no figure for a part of", text
    )


def test_counts_for_the_least_work_are_named_in_captions(results):
    [storms] = [section for section in html_sections(results) if section.anchor == "storms"]
    captions = [block.figure.caption for block in storms.blocks if block.figure]
    said = "Counts of tls1.0/dhe_dss+dh1024/dsa1024/server are those of the least work"
    assert sum(said in caption for caption in captions) == 2
    assert not any("psk are those" in caption for caption in captions)
