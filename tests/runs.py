"""Commands, programs and experiments that tests run."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from shakedown.experiments.figure_kinds import load_experiment
from shakedown.experiments.file.experiment import Experiment
from shakedown.experiments.runner import run_experiment
from shakedown.results.folder import Results, load_results
from shakedown.schema import decode

COMMAND = (sys.executable, "-m", "shakedown")

TAILLESS = """
schema = 2
name = "tailless"
title = "T"
date = "2024"
up = {rate_bps = 1e6, delay_ms = 10}
down = {rate_bps = 1e6, delay_ms = 10}
energy = {send_w = 1, receive_w = 1, idle_w = 0.5, spread = 1.2}
source = {rate = "x", delay = "x", energy = "x"}
"""
"""A bearer whose inactivity tail has no figure; its energies for connected radios have."""


def printed(done: subprocess.CompletedProcess[str], kind: Any = None) -> list[dict[str, Any]]:
    """The objects that a successful command printed with --json, checked against a type."""
    assert done.returncode == 0, done.stderr
    if kind is not None:
        decode(done.stdout, list[kind])
    return json.loads(done.stdout)


def python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs Python code in a new process, to its end."""
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


@contextmanager
def running(command: Any, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """Runs a program, and kills it at the end of the block if it still runs."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def of_group(group: int) -> list[int]:
    """Processes of a group that still run."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, its_group = stat.read_text().rpartition(")")[2].split()[:3]
            if int(its_group) == group and state != "Z":
                found.append(int(stat.parent.name))
    return found


def written(folder: Path, text: str) -> Path:
    """An experiment's file, e.toml."""
    path = folder / "e.toml"
    path.write_text(text, encoding="utf-8")
    return path


def experiment(folder: Path, text: str) -> Experiment:
    """An experiment, read from its file."""
    return load_experiment(written(folder, text))


def results(folder: Path, text: str) -> Results:
    """The results of an experiment without failures."""
    outcome = run_experiment(experiment(folder, text), folder / "results")
    assert not outcome.failures
    return load_results(folder / "results")
