"""Failures other than wrong input: failed handshakes, Ctrl-C, full disks, broken pipes, defects."""

from __future__ import annotations

import errno
import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

import fakecore
from runs import written
from shakedown.cli import exit_status
from shakedown.files import write as writing
from shakedown.results.folder import load_results

SUITES = ["tls1.2/psk", "tls1.2/rsa/rsa2048/server", "tls1.3/x25519/p256/server"]


@pytest.fixture
def experiment(tmp_path):
    return str(written(tmp_path, f"suites = {json.dumps(SUITES)}\nrepeat = 3\n"))


def test_a_failed_handshake_names_alert_and_side(fake, capsys):
    line = "tls1.2/psk: server failed in state START (alert handshake_failure): no shared cipher"
    fake.raising["tls1.2/psk"] = fakecore.HandshakeFailed(line)
    assert exit_status(["measure", "tls1.2/psk", "--json"]) == 1
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"error: {line}\n")


def test_failed_handshake_keeps_the_other_suites_of_a_run(fake, capsys, experiment, tmp_path):
    line = f"{SUITES[1]}: client failed (alert bad_certificate)"
    fake.raising[SUITES[1]] = fakecore.HandshakeFailed(line)
    assert exit_status(["run", experiment, "--out", str(tmp_path / "r"), "--no-report"]) == 1
    assert f"error: {line}\n" in capsys.readouterr().err
    loaded = load_results(tmp_path / "r")
    assert loaded.handshakes["suite"].to_list() == [SUITES[0], SUITES[2]]
    [failure] = loaded.manifest.failures
    assert (failure.suite, failure.reason) == (SUITES[1], "client failed (alert bad_certificate)")
    assert loaded.is_whole


def test_an_unsupported_suite_is_wrong_input(fake, capsys):
    fake.raising["tls1.2/psk"] = fakecore.Unsupported("tls1.2/psk: this stack has no such cipher")
    assert exit_status(["measure", "tls1.2/psk"]) == 2
    assert capsys.readouterr().err == "error: tls1.2/psk: this stack has no such cipher\n"


def test_interrupted_measure_prints_the_completed_suites(fake, capsys):
    fake.raising[SUITES[1]] = KeyboardInterrupt()
    assert exit_status(["measure", *SUITES, "--json"]) == 130
    out, err = capsys.readouterr()
    assert [one["suite"] for one in json.loads(out)] == SUITES[:1]
    assert err == "error: interrupted: 1 of 3 suites measured\n"


def budget_of(folder, suites):
    path = folder / "budget.toml"
    path.write_text("".join(f'[[budget]]\nsuite = "{suite}"\nbytes = 100_000\n' for suite in suites))
    return str(path)


def test_interrupted_check_prints_the_checked_suites(fake, capsys, tmp_path):
    fake.raising[SUITES[1]] = KeyboardInterrupt()
    report = tmp_path / "j.xml"
    arguments = ["check", budget_of(tmp_path, SUITES), "--junit", str(report), "--json"]
    assert exit_status(arguments) == 130
    out, err = capsys.readouterr()
    assert [one["suite"] for one in json.loads(out)] == SUITES[:1]
    assert err == "error: interrupted: 1 of 3 limits checked\n"
    assert not report.exists(), "a report of some limits would look like one of all"


def test_interrupted_recording_prints_the_budgets_so_far(fake, capsys):
    fake.raising[SUITES[1]] = KeyboardInterrupt()
    assert exit_status(["check", "--record", *SUITES]) == 130
    out, err = capsys.readouterr()
    assert out.count("[[budget]]") == 1
    assert err == "error: interrupted\n"


def test_check_prints_its_limits_if_a_file_cannot_be_written(fake, capsys, tmp_path):
    budget = budget_of(tmp_path, SUITES[:1])
    assert exit_status(["check", budget, "--summary", "/dev/full", "--json"]) == 1
    out, err = capsys.readouterr()
    assert [one["suite"] for one in json.loads(out)] == SUITES[:1]
    assert err == "error: /dev/full: cannot be written: no space left on device\n"


def test_interrupted_run_keeps_the_completed_suites(fake, capsys, experiment, tmp_path):
    fake.raising[SUITES[2]] = KeyboardInterrupt()
    folder = tmp_path / "r"
    assert exit_status(["run", experiment, "--out", str(folder)]) == 130
    out, err = capsys.readouterr()
    assert SUITES[1].removeprefix("tls1.2/") in out
    assert err == f"error: interrupted: 2 of 3 suites kept in {folder}\n"
    loaded = load_results(folder)
    assert loaded.handshakes["suite"].to_list() == SUITES[:2]
    assert loaded.manifest.ended == "interrupted"
    assert [one.about for one in loaded.missing] == SUITES[2:]


def test_full_disk_keeps_the_completed_suites(fake, capsys, experiment, tmp_path, monkeypatch):
    written = []
    fsync = os.fsync

    def full(descriptor: int) -> None:
        written.append(descriptor)
        # The manifest needs two fsync calls (file and folder), the list of parts one, the first part three.
        if len(written) > 7:
            raise OSError(errno.ENOSPC, "No space left on device")
        fsync(descriptor)

    monkeypatch.setattr(writing.os, "fsync", full)
    folder = tmp_path / "r"
    assert exit_status(["run", experiment, "--out", str(folder)]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err == f"error: {folder}: results cannot be written: no space left on device; kept: 1 parts\n"
    monkeypatch.undo()
    assert load_results(folder).handshakes["suite"].to_list() == SUITES[:1]
    assert sorted(path.name for path in folder.iterdir()) == [
        "manifest.json",
        "part-0001.parquet",
        "parts.jsonl",
    ]


def test_internal_error_is_one_line_and_a_traceback_on_request(fake, capsys, monkeypatch):
    fake.raising["tls1.2/psk"] = ZeroDivisionError("division by zero")
    assert exit_status(["measure", "tls1.2/psk"]) == 1
    err = capsys.readouterr().err
    assert err.startswith("error: internal error: ZeroDivisionError: division by zero")
    assert "SHAKEDOWN_TRACEBACK=1" in err
    assert err.count("\n") == 1
    monkeypatch.setenv("SHAKEDOWN_TRACEBACK", "1")
    assert exit_status(["measure", "tls1.2/psk"]) == 1
    assert "Traceback (most recent call last)" in capsys.readouterr().err


def test_times_of_a_debug_build_are_refused(fake, capsys):
    fake.BUILD_PROFILE = "debug"
    assert exit_status(["measure", "tls1.2/psk"]) == 1
    assert "debug build" in capsys.readouterr().err
    assert fake.measured == []


@pytest.mark.parametrize("arguments", [["--help"], ["measure", "tls1.2/psk", "--repeat", "1"]])
def test_broken_pipe_prints_no_error(arguments):
    reader, writer = os.pipe()
    os.close(reader)
    process = subprocess.run(
        [sys.executable, "-m", "shakedown", *arguments],
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        timeout=300,
    )
    os.close(writer)
    assert (process.returncode, process.stderr) == (141, "")


def test_closed_standard_output_is_not_an_error():
    program = f"exec {sys.executable} -m shakedown --version >&-"
    process = subprocess.run(["sh", "-c", program], stderr=subprocess.PIPE, text=True, timeout=300)
    assert (process.returncode, process.stderr) == (0, "")


def test_full_disk_behind_standard_output_is_reported():
    with open("/dev/full", "w") as full:  # noqa: PTH123 - a device
        process = subprocess.run(
            [sys.executable, "-m", "shakedown", "--help"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=300,
        )
    assert (process.returncode, process.stderr) == (1, "error: no space left on device\n")


def test_short_write_of_unbuffered_output_is_an_error(tmp_path):
    """A limit of the process's file size stands in for a full disk."""
    with (tmp_path / "out").open("w") as out:
        process = subprocess.run(
            [sys.executable, "-m", "shakedown", "predict", "tls1.2/psk", "--json"],
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
            timeout=300,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)),
        )
    assert (process.returncode, process.stderr) == (1, "error: file too large\n")


def test_file_that_the_core_cannot_write_is_named(fake, capsys, monkeypatch):
    """The core's system errors have a `Path`, not a string, as the file name."""

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", Path("/disk/key.pem"))

    monkeypatch.setattr("shakedown.cli.app.invoke", full)
    assert exit_status(["suites"]) == 1
    assert capsys.readouterr() == ("", "error: /disk/key.pem: no space left on device\n")
