"""Fleets in an experiment's tables and report: lower bounds are marked, and missing figures are named."""

from __future__ import annotations

import re

import pytest

import runs
import shakedown
import supplied
from shakedown.reporting.html.modelled import sections as predicted_sections
from shakedown.reporting.html.simulated import sections as html_sections
from shakedown.reporting.terminal.fleets import fleet_tables as simulated_tables
from shakedown.reporting.terminal.fleets import mixture_tables
from shakedown.reporting.terminal.modelled import predicted_tables
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


def test_unknown_tail_leaves_the_energy_of_the_handshake_known(tmp_path, monkeypatch):
    """If only the tail has no figure, tables have the energy, and captions name wake and tail alone."""
    profile = tmp_path / "shakedown" / "bearers" / "tailless.toml"
    profile.parent.mkdir(parents=True)
    profile.write_text(runs.TAILLESS)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    results = runs.results(
        tmp_path,
        """
        suites = ["tls1.2/psk"]
        repeat = 2
        devices = ["cortex-m4"]
        bearers = ["tailless"]
        [simulated]
        arrivals = ["poisson:5/s"]
        clients = 60
        """,
    )
    tail = "the radio's inactivity tail over tailless"
    for row in (*results.fleets.to_dicts(), *results.predictions.to_dicts()):
        assert (row["energy_missing"], row["wake_tail_missing"]) == (None, tail)
    for found in (html_sections(results), predicted_sections(results)):
        tables = [block.table for section in found for block in section.blocks if block.table]
        [table] = [table for table in tables if "energy" in table.head]
        [cells] = [dict(zip(table.head, row, strict=True)) for row in table.rows]
        assert "J" in cells["energy"]
        assert cells.get("wake and tail", "unknown") == "unknown"
        if "no energy of" in cells:
            assert cells["no energy of"] == tail
        else:
            said = "Energy for wake and tail of tls1.2/psk on cortex-m4 over tailless is not estimated: no"
            assert said in table.caption
            assert "Energy of " not in table.caption
    [line] = [one for one in predicted_tables(results, 200) if "is not estimated" in one]
    assert line.startswith("energy for wake and tail of tls1.2/psk")
    assert line.endswith(tail)


def test_negligible_work_without_a_figure_is_named_for_the_energy_of_the_handshake(tmp_path):
    """The energy without it is saved, and energy for wake and tail is known."""
    results = runs.results(
        tmp_path,
        """
        suites = ["tls1.2/psk"]
        repeat = 2
        devices = ["lpc1114"]
        bearers = ["nb-iot"]
        [simulated]
        arrivals = ["poisson:5/s"]
        clients = 60
        """,
    )
    [row] = results.fleets.to_dicts()
    assert row["energy_mean_j"] > 0.0
    assert row["energy_missing"] == "a part of the processor's work"
    assert row["wake_tail_missing"] is None
    [section] = [section for section in html_sections(results) if section.anchor == "fleets"]
    caption = section.blocks[-1].table.caption
    assert "Energy of tls1.2/psk on lpc1114 over nb-iot is not estimated" in caption
    assert "Energy for wake and tail" not in caption


def test_counts_for_the_least_work_are_named_in_captions(results):
    [storms] = [section for section in html_sections(results) if section.anchor == "storms"]
    captions = [block.figure.caption for block in storms.blocks if block.figure]
    said = "Counts of tls1.0/dhe_dss+dh1024/dsa1024/server are those of the least work"
    assert sum(said in caption for caption in captions) == 2
    assert not any("psk are those" in caption for caption in captions)


def test_captions_state_why_times_are_marked_as_imprecise(results):
    """Fleets at a steady load are imprecise here, alone and in a mixture; storms have no precision."""
    for anchor in ("fleets", "mixtures", "storms"):
        [section] = [section for section in html_sections(results) if section.anchor == anchor]
        for table in (block.table for block in section.blocks if block.table):
            is_imprecise = anchor == "fleets" or "poisson:" in table.caption
            assert ("target ±" in table.caption) == is_imprecise, table.caption
            if anchor == "fleets":
                assert any(cell.startswith("! ") for row in table.rows for cell in row)
                assert all(f"! {row[0]}: " in table.caption for row in table.rows)


def test_captured_and_measured_fleets_of_a_suite_are_separate(tmp_path):
    for name in ("one", "two"):
        supplied.capture(tmp_path / name, "tls1.2/psk")
        for end in ("pcap", "keys"):
            (tmp_path / name / f"gateway.{end}").rename(tmp_path / f"{name}.{end}")
    results = runs.results(
        tmp_path,
        """
        suites = ["tls1.2/psk"]
        repeat = 2
        devices = ["cortex-m4"]
        bearers = ["nb-iot"]
        captures = [
            { file = "one.pcap", keylog = "one.keys" },
            { file = "two.pcap", keylog = "two.keys" },
        ]
        [simulated]
        arrivals = ["storm:2s", "poisson:5/s"]
        clients = 60
        replications = 2
        """,
    )
    labels = ["tls1.2/psk", "captured: tls1.2/psk · one.pcap", "captured: tls1.2/psk · two.pcap"]
    assert results.fleets["label"].unique(maintain_order=True).to_list() == labels
    predicted = results.predictions["label"].unique(maintain_order=True).to_list()
    assert predicted == [label.removeprefix("captured: ") for label in labels]
    lines = list(simulated_tables(results, 200))
    for arrivals in ("2 times 30 clients, storm:2s", "60 clients, poisson:5/s"):
        for which, named in (("", labels[:1]), (", captured handshakes", labels[1:])):
            title = f"simulated: {arrivals}{which}: cortex-m4 over nb-iot to server"
            [at] = [at for at, line in enumerate(lines) if line.startswith(title)]
            rows = lines[at + 2 : at + 2 + len(named)]
            # The common beginning of the names is in the title.
            assert all(label.endswith(row.split("  ")[0]) for label, row in zip(named, rows, strict=True))
            assert ("; captured: tls1.2/…" in lines[at]) == (len(named) > 1)
    found = {section.anchor: section for section in html_sections(results)}
    drawn = [block for block in found["storms"].blocks if block.table]
    assert [[row[0] for row in block.table.rows] for block in drawn] == [labels[:1], labels[1:]]
    assert [", captured handshakes" in block.figure.title for block in drawn] == [False, True]
    steady = next(block.table for block in found["fleets"].blocks if block.table)
    assert [row[0] for row in steady.rows] == labels
