"""Keys and certificates of these tests, generated once."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the keys and certificates that `measure` and `capture` use."""
    return tmp_path_factory.mktemp("keys")
