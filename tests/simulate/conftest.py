"""The command in this process, because most of these tests run it many times."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from shakedown.cli import exit_status
from shakedown.experiments import cluster


@pytest.fixture
def shakedown(capsys: pytest.CaptureFixture[str]) -> Callable[..., SimpleNamespace]:
    """Runs the command: `shakedown("simulate", "tls1.2/psk", cwd=…)`."""

    def run(*arguments: str | Path, cwd: Path | None = None) -> SimpleNamespace:
        before = Path.cwd()
        capsys.readouterr()
        os.chdir(cwd or before)
        try:
            status = exit_status([*map(str, arguments)])
        finally:
            os.chdir(before)
        out, err = capsys.readouterr()
        return SimpleNamespace(returncode=status, stdout=out, stderr=err)

    return run


@pytest.fixture
def interruptible():
    """Ctrl-C interrupts, as at a terminal; background processes of a shell ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="module")
def client():
    with cluster.local(2) as found:
        yield found


@pytest.fixture
def quick(monkeypatch):
    """Limits that make searches for a capacity short."""
    found = {"MAX_EVENTS": 4_000_000, "MAX_EVENTS_TRIED": 2_000_000, "STEP": 1.2, "FIRST_RUN_CLIENTS": 4_000}
    found["CONFIRMING_CLIENTS"] = (10_000, 20_000)
    for name, value in found.items():
        monkeypatch.setattr(f"shakedown.simulation.capacity.{name}", value)
