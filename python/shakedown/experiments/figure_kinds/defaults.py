"""What a kind of figure has where its module says nothing else."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shakedown.experiments.figure_kinds import Need, Source
    from shakedown.experiments.file import Experiment
    from shakedown.experiments.file.table import Table
    from shakedown.native.scenario import Scenario
    from shakedown.results.folder import Results
    from shakedown.schema.base import Object
    from shakedown.schema.saved import Planned
    from shakedown.schema.trace import Trace

TABLE: Table | None = None


def planned(experiment: Experiment) -> Iterable[Planned]:
    """Nothing that could be missing."""
    return ()


def needs(experiment: Experiment) -> Collection[Need]:
    """Nothing of what earlier kinds found."""
    return ()


def profiles(experiment: Experiment) -> Iterable[str]:
    """None in addition to the experiment's places."""
    return ()


def printed(found: Object) -> Iterable[Object]:
    """What was found."""
    return (found,)


def traces(scenario: Scenario, found: Any) -> dict[Source, Trace]:  # noqa: ANN401 - what `run` returned
    """Nothing that could be estimated."""
    return {}


def notes(found: Any) -> list[str]:  # noqa: ANN401 - what `run` returned
    """Nothing to report."""
    return []


def terminal(results: Results, width: int) -> Iterable[str]:
    """No table."""
    return ()
