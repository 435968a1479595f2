"""Reproductions without measurements, and those whose figures are in the documentation."""

from __future__ import annotations

from pathlib import Path

import pytest

from shakedown import papers
from shakedown.papers import replication
from shakedown.papers.paper import Reproduction
from shakedown.papers.write import MEASURED

DOCUMENTED = Path(__file__).parents[2] / "docs" / "papers"


@pytest.fixture(scope="session")
def modelled() -> dict[str, Reproduction]:
    """All papers from their own inputs."""
    return {one.paper.slug: one for one in papers.reproduce([papers.ALL], measured=replication.Replication())}


@pytest.fixture(scope="session")
def documented() -> dict[str, Reproduction]:
    """All papers with the measured figures that the documentation shows."""
    known = replication.load(DOCUMENTED / MEASURED)
    return {one.paper.slug: one for one in papers.reproduce([papers.ALL], measured=known)}
