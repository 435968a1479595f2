"""A site, its HSS, and whatever processes a test starts."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from aka.nodes import Process


@pytest.fixture
def site(shakedown, tmp_path) -> Path:
    done = shakedown("aka", "provision", tmp_path / "site", "--subscribers", "2")
    assert done.returncode == 0, done.stderr
    return tmp_path / "site"


@pytest.fixture
def processes() -> Iterator[list[Process]]:
    running: list[Process] = []
    yield running
    for one in running:
        with contextlib.suppress(ProcessLookupError):
            one.kill()


@pytest.fixture
def hss(site, processes) -> str:
    processes.append(Process("hss", "--listen", "127.0.0.1:0", "--register", str(site / "hss-20201.json")))
    return processes[-1].addresses[0]
