"""Peers and the command for the tests of `load`."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from live.load import servers
from shakedown.schema.base import decode
from shakedown.schema.live import LoadRun

Load = Callable[..., tuple[int, dict[str, Any], str]]


@pytest.fixture
def load(shakedown: Callable[..., subprocess.CompletedProcess[str]]) -> Load:
    """`load(target, …)`: exit status, the object printed (empty where there is none), standard error."""

    def run(*arguments: str | Path) -> tuple[int, dict[str, Any], str]:
        done = shakedown("load", *arguments, "--json")
        found = json.loads(done.stdout) if done.stdout else [{}]
        assert len(found) == 1
        if done.stdout:
            decode(done.stdout, list[LoadRun])
        return done.returncode, found[0], done.stderr

    return run


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate of localhost and its key."""
    return servers.make_certificate("openssl", tmp_path_factory.mktemp("certificate"))


@pytest.fixture
def start() -> Iterator[Callable[[servers.Server], servers.Server]]:
    """`start(server)`: runs it until the test ends."""
    with ExitStack() as stack:
        yield lambda server: stack.enter_context(servers.running(server))
