"""Kinds of figures: one module each, and this registry. A new kind is a module here, and its line in `KINDS`.

A module says what its figures are (`QUANTITIES`), how they are made (`run` turns a scenario into the object
that is printed, `rows` that object into rows of the table), how they look on a terminal (`terminal`) and in
the report (`sections`, `answer`). Terminal and report query the table, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast, runtime_checkable

if TYPE_CHECKING:
    import polars as pl
    from rich.console import RenderableType

    from shakedown.experiment import Experiment
    from shakedown.reporting.section import Section
    from shakedown.reporting.text import Sentence
    from shakedown.results.folder import Results
    from shakedown.results.table import Quantity
    from shakedown.scenario import CaptureFile, HandshakeId, Scenario
    from shakedown.schema.base import Object
    from shakedown.schema.measured import Measurement
    from shakedown.schema.trace import Trace

KINDS = (
    "captured",
    "measured",
    "modelled",
    "simulated",
    "live",
)
"""In the order in which an experiment runs them; a later kind sees what the earlier ones found."""


Source = tuple["HandshakeId", "CaptureFile | None", "int | None"]
"""Where a trace comes from: a measured handshake, or a connection of a capture."""


@dataclass
class Run:
    """What a run knows while it goes on: its experiment, and the traces that were found so far.

    `progress` is told how many repetitions are done of what is being done, and what that is.
    """

    experiment: Experiment
    progress: Callable[[int, str], None] = lambda done, label: None
    traces: dict[Source, Trace] = field(default_factory=dict)
    measurements: dict[HandshakeId, Measurement] = field(default_factory=dict)
    queued: set[Source] = field(default_factory=set)

    def keep(self, scenario: Scenario, found: Any) -> list[str]:  # noqa: ANN401 - an object of the schema
        """Keeps what later kinds need; returns what a user should know of it."""
        module = kind(scenario.kind)
        if self.experiment.places or self.experiment.fleets.fleets:
            self.traces.update(module.traces(scenario, found))
        if self.experiment.live and scenario.kind == "measured" and scenario.handshake is not None:
            self.measurements[scenario.handshake] = found
        return module.notes(found)


class Kind(Protocol):
    """What each module here has."""

    QUANTITIES: tuple[Quantity, ...]

    def scenarios(self, run: Run) -> Iterable[Sequence[Scenario]]:
        """The scenarios of an experiment, a batch for each part of the table."""

    def run(self, scenario: Scenario, run: Run) -> Any:  # noqa: ANN401 - an object of the schema
        """Makes a scenario's figures: the object that is printed. Raises `ShakedownError` and the core's
        errors.
        """

    def rows(self, scenario: Scenario, found: Any) -> pl.DataFrame:  # noqa: ANN401 - what `run` returned
        """The object as rows of the table."""

    def printed(self, found: Any) -> Iterable[Object]:  # noqa: ANN401 - what `run` returned
        """What `run --json` prints of it."""

    def traces(self, scenario: Scenario, found: Any) -> dict[Source, Trace]:  # noqa: ANN401 - as above
        """What of it can be priced."""

    def notes(self, found: Any) -> list[str]:  # noqa: ANN401 - as above
        """What a user should know of it, one line each."""

    def terminal(self, results: Results, width: int) -> Iterable[RenderableType]:
        """Tables for people."""

    def sections(self, results: Results) -> Iterable[Section]:
        """Parts of the report; none where the results have no such figures."""

    def answer(self, results: Results) -> tuple[list[Sentence], list[Sentence]]:
        """What the report says first: the answer, and findings beside it."""


@runtime_checkable
class Spreading(Kind, Protocol):
    """A kind whose figures are the same on whatever machine they are made."""

    def job(self, scenario: Scenario, run: Run) -> Callable[[], Any]:
        """What makes a scenario's figures, as something that can be pickled and called elsewhere."""

    def take(self, scenario: Scenario, found: Any, run: Run) -> Any:  # noqa: ANN401 - what the job returned
        """What of a job's figures goes into the results; called in the order of the scenarios."""


def kind(name: str) -> Kind:
    """A kind's module."""
    return cast(Kind, import_module(f"{__name__}.{name}"))


def reported() -> list[Kind]:
    """All kinds, as the report has them: the measured handshakes answer first, whatever else there is."""
    return [kind(name) for name in sorted(KINDS, key=lambda name: name != "measured")]


def quantities() -> list[tuple[str, Quantity]]:
    """Every quantity of the table, with its kind."""
    return [(name, one) for name in KINDS for one in kind(name).QUANTITIES]
