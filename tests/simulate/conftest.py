"""The command, in this process: most of these tests ask it for many small things."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from shakedown.cli import exit_status


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
