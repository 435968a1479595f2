"""Fixtures of the tests of results."""

from __future__ import annotations

from pathlib import Path

import pytest

from results.folders import SUITES, write


@pytest.fixture
def folder(tmp_path) -> Path:
    with write(tmp_path / "r", *SUITES) as writer:
        pass
    return writer.folder
