"""A site, its HSS, and the processes that a test starts."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from aka.nodes import TIMEOUT_S, Process


@pytest.fixture(scope="session")
def made_site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("aka") / "site"
    command = (sys.executable, "-m", "shakedown", "aka", "provision", str(folder), "--subscribers", "2")
    subprocess.run(command, check=True, capture_output=True, timeout=TIMEOUT_S)
    return folder


@pytest.fixture
def site(made_site, tmp_path) -> Path:
    """A copy of the site for one test."""
    return Path(shutil.copytree(made_site, tmp_path / "site"))


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
