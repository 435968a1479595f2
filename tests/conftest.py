"""Fixtures for all tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

import fakecore

ROOT = Path(__file__).parent.parent

TIMEOUT_S = 600.0
"""A command that runs longer hangs; a busy machine makes commands many times slower."""

HOME = tempfile.TemporaryDirectory(prefix="shakedown-tests-")
"""An empty data folder, set before tests are collected, so that a user's own profiles are not found."""
os.environ["XDG_DATA_HOME"] = HOME.name

# As on the command line: on a busy machine the threads of numpy's linear algebra wait for each other and
# take several times as long as one thread.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Examples have no time limit, because a busy machine would exceed any. In CI the examples depend on the
# commit alone; elsewhere each run draws new ones.
settings.register_profile("shakedown", deadline=None, derandomize=os.environ.get("CI") == "true")
settings.load_profile("shakedown")


@pytest.fixture(scope="session")
def cargo() -> None:
    """For tests that build a Rust program. They run last, when the Rust tests no longer hold Cargo's lock."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Move the tests that need `cargo` to the end."""
    items.sort(key=lambda item: "cargo" in getattr(item, "fixturenames", ()))


@pytest.fixture
def peer() -> Callable[[str], str]:
    """`peer("tshark")`: an independent implementation; without it, the test is skipped, or fails in CI."""

    def find(program: str) -> str:
        path = shutil.which(program)
        if path is None:
            message = f"{program} is not installed (make peers installs it)"
            if os.environ.get("CI") == "true":
                pytest.fail(message)
            pytest.skip(message)
        return path

    return find


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[fakecore.FakeCore]:
    """A native core that measures nothing and fails on demand."""
    import shakedown

    core = fakecore.FakeCore()
    monkeypatch.setitem(sys.modules, "shakedown._core", core)
    monkeypatch.setattr(shakedown, "_core", core, raising=False)
    from shakedown.native import suite_names

    # Lists of suites are cached per process: the fake core's list must not outlive the test.
    kept = (suite_names._names, suite_names._places)
    for one in kept:
        one.cache_clear()
    yield core
    for one in kept:
        one.cache_clear()


@pytest.fixture
def shakedown() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the real command: `shakedown("measure", "tls1.2/psk", cwd=…)`."""

    def run(*arguments: str | Path, **options) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "COLUMNS": "120", **options.pop("env", {})}
        return subprocess.run(
            [sys.executable, "-m", "shakedown", *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            env=environment,
            **options,
        )

    return run
