"""The command line with the real core: its JSON, and changes that a user may make to a run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

import shakedown
from runs import written
from shakedown.results.folder import load_results
from shakedown.schema import builtins, convert
from shakedown.schema.base import SIDES
from shakedown.schema.measured import Measurement

SCHEMA = json.loads((Path(__file__).parents[2] / "docs/reference/measurement.schema.json").read_text())
SUITES = (
    "ssl3/rsa/rsa1024/server",
    "tls1.0/dh_anon+dh1024",
    "tls1.2/psk",
    "tls1.2/rsa/rsa2048/server/resumed",
    "tls1.2/ecdhe_ecdsa+p256/p256/mutual",
    "tls1.3/x25519mlkem768/mldsa65/server",
)


@pytest.fixture(scope="module")
def measured():
    command = [sys.executable, "-m", "shakedown", "measure", *SUITES, "--repeat", "8", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    assert done.stderr == ""
    return json.loads(done.stdout)


def test_output_has_one_object_per_suite_in_order(measured):
    assert [one["suite"] for one in measured] == list(SUITES)


@pytest.mark.parametrize("suite", [*SUITES, "wtls/rsa/rsa1024/mutual", "wtls/ecdh_ecdsa/160p/mutual"])
def test_connection_releases_all_memory(suite):
    memory = shakedown.measure(suite, repeat=1).memory
    assert memory is not None
    assert memory.released_bytes == 0
    assert memory.client_peak_bytes > memory.client_held_bytes > 0
    assert memory.server_peak_bytes > memory.server_held_bytes > 0


@pytest.mark.parametrize("position", range(len(SUITES)), ids=SUITES)
def test_measurement_matches_the_schema_and_adds_up(measured, position):
    one = measured[position]
    jsonschema.validate(one, SCHEMA)
    assert [message["index"] for message in one["messages"]] == list(range(len(one["messages"])))
    assert sum(message["bytes"] for message in one["messages"]) == one["bytes"]["total"]
    sent = [sum(m["bytes"] for m in one["messages"] if m["from"] == side) for side in SIDES]
    assert sent == [one["bytes"]["client_to_server"], one["bytes"]["server_to_client"]]
    for side in SIDES:
        spent = sum(
            message["generate_mean_us" if message["from"] == side else "process_mean_us"]
            for message in one["messages"]
        )
        mean = one["handshake"][f"{side}_us"]["mean"]
        assert spent + one["unattributed_us"][f"{side}_mean"] == pytest.approx(mean, rel=1e-6)
        split = convert(one, Measurement).time_by_class_us(side)
        assert sum(split.values()) == pytest.approx(mean)
        assert split["common"] > 0


def test_python_returns_the_same_measurement(measured):
    import shakedown

    here = shakedown.measure("tls1.2/psk", repeat=8)
    plain = json.loads(json.dumps(builtins(here)))
    printed = measured[SUITES.index("tls1.2/psk")]
    jsonschema.validate(plain, SCHEMA)
    assert plain.keys() == printed.keys()
    assert plain["bytes"] == printed["bytes"]
    assert [m.name for m in here.messages] == [m["name"] for m in printed["messages"]]


@pytest.mark.parametrize(
    ("suite", "words"),
    [
        ("tls9/psk", ["tls9", "tls1.2"]),
        ("tls1.2", ["tls1.2"]),
        ("tls1.0/dh_anon+dh256", ["dh256"]),
        ("tls1.2/rsa/p256", ["p256"]),
        ("tls1.2/psk/mutual", ["mutual"]),
        ("tls1.2/psk/rsa2048", ["rsa2048"]),
        ("tls1.2/psk/resumed/resumed", ["resumed"]),
        ("tls1.3/psk/resumed", ["resumed"]),
        ("tls1.2/rsa/rsa2048/server/rot13", ["rot13"]),
        ("", []),
        ("tls1.2/rsa/rsa2048/server/resumed/aes128-gcm/x", ["x"]),
    ],
)
def test_impossible_suites_are_refused_in_one_line(shakedown, suite, words):
    done = shakedown("measure", suite)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    for word in words:
        assert word in done.stderr


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_stopped_run_keeps_the_measured_suites(tmp_path, sent):
    """The third suite would run for ever; the first two are kept after SIGINT or SIGTERM.

    On a busy machine its first repetition may come late, so the signal is sent only after that.
    """
    experiment = written(
        tmp_path,
        'suites = ["tls1.2/psk", "tls1.0/dh_anon+dh512", "tls1.0/dh_anon+dh3072"]\nrepeat = 1000000\n',
    )
    folder = tmp_path / "r"
    command = [sys.executable, "-c", ENDLESS, str(experiment), str(folder)]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "COLUMNS": "120"},
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "third\n", process.communicate()
        process.send_signal(sent)
        out, err = process.communicate(timeout=300)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130
    assert err == f"error: interrupted: 2 of 3 suites kept in {folder}\n"
    assert "tls1.0/dh_anon+dh512" in out
    loaded = load_results(folder)
    assert loaded.handshakes["suite"].to_list() == ["tls1.2/psk", "tls1.0/dh_anon+dh512"]
    assert loaded.manifest.ended == "interrupted"
    assert [one.about for one in loaded.missing] == ["tls1.0/dh_anon+dh3072"]


ENDLESS = """
import sys
from shakedown import cli, native

measure = native.measure

def bounded(handshake, options, progress=None):
    # The first two suites a few times only; the third as often as the experiment says: for ever.
    import msgspec
    if not handshake.suite.endswith("dh3072"):
        return measure(handshake, msgspec.structs.replace(options, repeat=3), progress)
    said = []
    def tell(done):
        # Not where `done` is 1: a busy machine tells of several at once, or interrupts each and keeps none.
        if not said:
            print("third", flush=True)
            said.append(done)
        progress(done)
    return measure(handshake, options, tell)

native.measure = bounded
cli.main(["run", sys.argv[1], "--out", sys.argv[2], "--no-report"])
"""


def test_saved_measurements_are_read_back_unchanged(shakedown, tmp_path):
    experiment = written(tmp_path, 'suites = ["tls1.2/psk", "tls1.3/x25519/p256/server"]\nrepeat = 5\n')
    done = shakedown("run", experiment, "--out", tmp_path / "r", "--json")
    assert done.returncode == 0, done.stderr
    loaded = load_results(tmp_path / "r")
    printed = json.loads(done.stdout)
    for one, row in zip(printed, loaded.handshakes.to_dicts(), strict=True):
        jsonschema.validate(one, SCHEMA)
        for side in SIDES:
            assert row[f"{side}_us"] == one["handshake"][f"{side}_us"]["mean"]
        assert (row["suite"], row["bytes"]) == (one["suite"], one["bytes"]["total"])
    # Every repetition is saved, though printed only on request.
    samples = loaded.table.filter(quantity="handshake.time", statistic="median")["samples"]
    assert "samples" not in printed[0]["handshake"]["client_us"]
    assert samples.len() == 4
    assert loaded.manifest.build.profile == "release"
    assert (tmp_path / "r/report.html").read_text().startswith("<!doctype html>")


def test_suites_are_canonical_and_can_be_described(shakedown):
    from shakedown import native

    entries = native.suites(all=True)
    names = [entry.suite for entry in entries]
    assert len(names) == len(set(names))
    for entry in entries:
        if entry.supported:
            assert native.canonical(entry.suite) == entry.suite
        assert entry.supported == (entry.reason is None)
    listed = shakedown("suites").stdout.split()
    assert listed == [entry.suite for entry in entries if entry.supported]
