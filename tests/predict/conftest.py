"""Fixtures of the tests of predictions."""

from __future__ import annotations

import pytest

from predict import handmade
from shakedown.prediction.library import TraceLibrary, write_library


@pytest.fixture(autouse=True)
def nobody_elses_profiles(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))


@pytest.fixture
def library_path(tmp_path):
    path = tmp_path / "traces.json"
    write_library(path, handmade.LIBRARY)
    return path


@pytest.fixture
def library(library_path):
    return TraceLibrary(library_path)
