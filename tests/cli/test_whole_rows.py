"""The tables of all commands at 80 columns, with long suites: each row is one line, except prose."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys

import pytest

from shakedown.cli import exit_status
from shakedown.reporting.figures import LEGEND
from shakedown.reporting.terminal import listing

WIDTH = 80
LONG = (
    "tls1.3/x25519mlkem768/mldsa65@mldsa65/mutual",
    "tls1.2/dhe_rsa+dh2048/rsa2048/requested/ticket",
    "tls1.2/ecdhe_ecdsa+x25519/p256/server/camellia256-sha256",
    "tls1.2/ecdhe_rsa+x25519/rsa2048/server/camellia128-sha256",
)
SUITES = (*LONG, "tls1.2/psk")
PLACES = ("--device", "cortex-m4", "--bearer", "nb-iot")
STORM = ("--arrivals", "storm:2s+backoff", "--clients", "60", *PLACES)
EXPERIMENT = f"""
suites = {json.dumps(SUITES)}
repeat = 5
devices = ["cortex-m4", "esp32"]
bearers = ["gprs", "nb-iot"]
rates = ["10/s", "300/s"]

[simulated]
clients = 50
"""
BUDGET = f"""
[[budget]]
suite = "{LONG[0]}"
bytes = 400
client_time_us = 10
server_memory_bytes = 1000000
ready_s = 5
energy_j = 0.5
capacity_per_s = 1000
within_s = 5
device = "cortex-m4"
bearer = "nb-iot"

[[budget]]
suite = "tls1.2/psk"
device = "lpc1114"
energy_j = 0.5
"""
COMMANDS = {
    "doctor": ("doctor",),
    "suites": ("suites", "--all"),
    "stacks": ("stacks",),
    "measure": ("measure", *SUITES, "--repeat", "3"),
    "measure one": ("measure", LONG[0], "--repeat", "3"),
    "primitives": ("primitives", "sign", "--seconds", "1ms"),
    "inspect": ("inspect", "handshake.pcap"),
    "inspect summary": ("inspect", "handshake.pcap", "--summary"),
    "predict": ("predict", *SUITES, *PLACES),
    "predict at a rate": ("predict", *SUITES, *PLACES, "--rate", "10"),
    "predict several": ("predict", *SUITES, "--device", "cortex-*", "--bearer", "{nb-iot,lte}"),
    "predict unknown": ("predict", *SUITES, "--device", "lpc1114"),
    "capacity": ("capacity", *SUITES, "--within", "5s", *PLACES),
    "capacity at a rate": ("capacity", *SUITES, "--within", "5s", "--percentile", "99", "--rate", "9000"),
    "simulate": ("simulate", *SUITES, *STORM),
    "simulate cells": ("simulate", *SUITES, *STORM, "--cells", "20"),
    "simulate a rate": ("simulate", *SUITES, "--arrivals", "poisson:5", "--clients", "60", *PLACES),
    "devices": ("devices",),
    "devices one": ("devices", "cortex-m4"),
    "bearers": ("bearers",),
    "bearers some": ("bearers", "gprs", "lte"),
    "run": ("run", "experiment.toml", "--out", "third", "--no-report"),
    "report": ("report", "results", "--force"),
    "compare": ("compare", "results", "results"),
    "compare times": ("compare", "results", "results", "--across", "--floor", "50%"),
    "check": ("check", "budget.toml"),
    "aka run": ("aka", "run", "--attaches", "5"),
    "certs profiles": ("certs", "profiles"),
    "reproduce": ("reproduce", "tls-psk", "--no-measure"),
}
STATUS = {"check": 1}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("rows")
    (found / "experiment.toml").write_text(EXPERIMENT)
    (found / "budget.toml").write_text(BUDGET)
    for words in (
        ("run", "experiment.toml", "--out", "results", "--no-report"),
        ("measure", *LONG, "--pcap", "handshake.pcap", "--repeat", "2"),
    ):
        subprocess.run(
            [sys.executable, "-m", "shakedown", *words], cwd=found, capture_output=True, check=True
        )
    return found


@pytest.fixture
def torn(monkeypatch):
    """Collects folded cells that are not prose, and lines that are too wide."""
    found = []
    drawn, headed = listing.Layout.lines, listing.Layout.heading

    def heading(layout):
        too_wide = [line for line in headed(layout) if len(line) > WIDTH]
        found.extend(too_wide)
        return headed(layout)

    def lines(layout, row):
        found.extend(line for line in drawn(layout, row) if len(line) > WIDTH)
        for column, width in zip(layout.columns, layout.widths, strict=True):
            text = column.cell(row)
            text = layout.names.short.get(text, text) if column.path else text
            if not column.prose and len(text) > width:
                found.append(f"{column.name}: {text}")
        return drawn(layout, row)

    monkeypatch.setattr(listing.Layout, "lines", lines)
    monkeypatch.setattr(listing.Layout, "heading", heading)
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    return found


@pytest.mark.parametrize("name", COMMANDS)
def test_a_row_is_one_line(name, folder, torn, monkeypatch, capfd):
    monkeypatch.chdir(folder)
    assert exit_status(COMMANDS[name]) == STATUS.get(name, 0), capfd.readouterr().err
    out = capfd.readouterr().out
    assert out
    assert not torn
    assert not re.search(r"\b(nan|inf|None|NaN|Infinity|e[+-]\d\d)\b", out)
    block = ""
    for line in out.splitlines():
        explained = [one for one in LEGEND.values() if one in line.split("; ")]
        assert all(one[0] in block for one in explained), f"{line}: no such mark above"
        block = "" if explained else f"{block}\n{line}"


def test_device_and_its_title_are_one_line(torn, capfd):
    assert exit_status(["devices", "--json"]) == 0
    names = [one["name"] for one in json.loads(capfd.readouterr().out)]
    assert exit_status(["devices"]) == 0
    heading, *rows, note = capfd.readouterr().out.splitlines()
    assert heading.split() == ["device", "title", "figures"]
    assert [line.split()[0] for line in rows] == names
    assert "other builds, as " in note


def test_a_check_prints_limits_and_figures_beside_its_verdicts(folder, torn, monkeypatch, capfd):
    monkeypatch.chdir(folder)
    assert exit_status(["check", "budget.toml"]) == 1
    out = capfd.readouterr().out
    assert out.split("\n")[0].split() == ["limit", "on", "limit", "found", "to", "limit", "verdict"]
    assert [line for line in out.splitlines() if line in SUITES] == [LONG[0], "tls1.2/psk"]
    assert "tls1.2/psk, energy (lpc1114): no estimate without" in out
    assert "not checked: limits of times" in out


def test_a_row_of_a_load_is_one_line(folder, torn, monkeypatch, capfd):
    serving = subprocess.Popen(
        [sys.executable, "-m", "shakedown", "serve", LONG[0], "--listen", "127.0.0.1:0"],
        cwd=folder, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        address = serving.stdout.readline().split()[2]
        words = ("load", address, LONG[0], "--rate", "50", "--duration", "1", "--trace-count", "5")
        assert exit_status(words) == 0, capfd.readouterr().err
        out = capfd.readouterr().out
        assert "where the time goes" in out
        assert "server other" not in out, "a column without a figure"
        assert not torn
    finally:
        serving.send_signal(signal.SIGTERM)
        serving.communicate(timeout=60)
