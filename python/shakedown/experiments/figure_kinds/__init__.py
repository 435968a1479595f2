"""Kinds of figures: one module each, and this registry. A new kind is a module here, and its line in `KINDS`.

A module defines how its figures are computed (`run` converts a scenario to the object that is printed, `rows`
that object to rows of the table), and whatever else of `Kind` is not as that has it: the experiment's table
that it reads, its scenarios of an experiment, how they look on a terminal. Its quantities are in
`results/quantities.csv`. In the report they look as the module of its name in `reporting/html` has it
(`sections`, and `answer` and `findings` where there are any). Terminal and report query the table, and
nothing else; runner, command line and reference ask this registry.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast, runtime_checkable

from shakedown.schema.arguments import checked
from shakedown.schema.saved import Planned

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

    from shakedown.experiments.file import Experiment
    from shakedown.experiments.file.table import Table
    from shakedown.native.scenario import CaptureFile, HandshakeId, Scenario
    from shakedown.reporting.html.section import Section
    from shakedown.reporting.html.text import Sentence
    from shakedown.results.folder import Results
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

Need = Literal["traces", "measurements"]
"""The results of earlier kinds that a kind may use."""


@dataclass
class Run:
    """The state of a run: its experiment, and the traces found so far.

    `progress` is called with the number of repetitions done, and a label.
    """

    experiment: Experiment
    progress: Callable[[int, str], None] = lambda done, label: None
    traces: dict[Source, Trace] = field(default_factory=dict)
    measurements: dict[HandshakeId, Measurement] = field(default_factory=dict)
    queued: set[Source] = field(default_factory=set)
    place: str = ""
    """Which of how many places of a handshake is next, for progress."""

    def keep(self, scenario: Scenario, found: Any) -> list[str]:  # noqa: ANN401 - an object of the schema
        """Keeps what later kinds need; returns what a user should know of it."""
        from shakedown.schema.measured import Measurement

        module = kind(scenario.kind)
        if "traces" in self.needed:
            self.traces.update(module.traces(scenario, found))
        if "measurements" in self.needed and isinstance(found, Measurement):
            assert scenario.handshake is not None
            self.measurements[scenario.handshake] = found
        return module.notes(found)

    @cached_property
    def needed(self) -> frozenset[Need]:
        """The results that are kept because a kind uses them."""
        return frozenset(one for name in KINDS for one in kind(name).needs(self.experiment))


class Kind:
    """A kind's module, with what it leaves out."""

    TABLE: Table | None = None
    """The experiment's table of this name; None where it has none."""

    run: Callable[[Scenario, Run], Any]
    """Makes a scenario's figures: the object that is printed. Raises `ShakedownError`, and the core's errors.
    """

    rows: Callable[[Scenario, Any], pl.DataFrame]
    """What `run` returned as rows of the table."""

    def __init__(self, name: str) -> None:
        """Raises `ImportError` where there is no such kind."""
        vars(self).update(vars(import_module(f"{__name__}.{name}")))
        self.name = name

    def planned(self, experiment: Experiment) -> Iterable[Planned]:
        """The parts of the table that a run means to write, as far as that is known beforehand."""
        return (Planned(kind=self.name, about=one.label) for one in experiment.of(self.name))

    def needs(self, experiment: Experiment) -> Collection[Need]:
        """What it looks at of what earlier kinds found; of what no kind needs nothing is kept."""
        return ()

    def profiles(self, experiment: Experiment) -> Iterable[str]:
        """Further devices and bearers on which its figures depend, besides the experiment's places."""
        return ()

    def scenarios(self, run: Run) -> Iterable[Sequence[Scenario]]:
        """The scenarios of an experiment, a batch for each part of the table."""
        return ((one,) for one in run.experiment.of(self.name))

    def printed(self, found: Any) -> Iterable[Object]:  # noqa: ANN401 - what `run` returned
        """What `run --json` prints of it."""
        return (found,)

    def traces(self, scenario: Scenario, found: Any) -> dict[Source, Trace]:  # noqa: ANN401 - as above
        """What of it can be estimated."""
        return {}

    def notes(self, found: Any) -> list[str]:  # noqa: ANN401 - as above
        """What a user should know of it, one line each."""
        return []

    def terminal(self, results: Results, width: int) -> Iterable[str]:
        """Tables for people."""
        return ()

    @property
    def _page(self) -> Any:  # noqa: ANN401 - a module
        return import_module(f"shakedown.reporting.html.{self.name}")

    def sections(self, results: Results) -> Iterable[Section]:
        """Parts of the report; none where the results have no such figures."""
        return cast("Iterable[Section]", self._page.sections(results))

    def answer(self, results: Results) -> tuple[list[Sentence], list[Sentence]]:
        """The beginning of the report: the answer and the findings."""
        made = (getattr(self._page, part, None) for part in ("answer", "findings"))
        first, beside = ([] if one is None else one(results) for one in made)
        return first, beside


@runtime_checkable
class Spreading(Protocol):
    """A kind whose figures do not depend on the machine that computes them."""

    def job(self, scenario: Scenario, run: Run) -> Callable[[], Any]:
        """What makes a scenario's figures, as something that can be pickled and called elsewhere."""

    def take(self, scenario: Scenario, found: Any, run: Run) -> Any:  # noqa: ANN401 - what the job returned
        """What of a job's figures goes into the results; called in the order of the scenarios."""


@runtime_checkable
class Together(Protocol):
    """A kind that has very many scenarios, whose rows are made together."""

    def table(self, made: Sequence[tuple[Scenario, Any]]) -> pl.DataFrame:
        """Their rows, one scenario's after the other's."""


def kind(name: str) -> Kind:
    return Kind(name)


@checked
def load_experiment(path: str | Path) -> Experiment:
    """Reads and checks an experiment's file; raises `InputError`."""
    from shakedown.experiments.file import read_experiment

    return read_experiment(path, tables())


def tables() -> dict[str, Table]:
    """The tables of an experiment that kinds read, by kind."""
    found = {name: kind(name).TABLE for name in KINDS}
    return {name: table for name, table in found.items() if table is not None}


def counted(experiment: Experiment) -> list[tuple[int, str]]:
    """How many of what the kinds' own tables ask for."""
    return [
        one
        for name, table in tables().items()
        if name in experiment.asked
        for one in table.counted(experiment.asked[name])
    ]


def reported() -> list[Kind]:
    """All kinds in the order of the report; measured handshakes come first."""
    return [kind(name) for name in sorted(KINDS, key=lambda name: name != "measured")]
