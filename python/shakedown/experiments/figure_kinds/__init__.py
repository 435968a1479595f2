"""The registry of kinds of figures. Each kind is a module here and a line in `KINDS`.

A module defines how its figures are computed: `run` converts a scenario to the object that is printed, and
`rows` converts that object to rows of the table, which share the columns of `common`. It may also replace any
other method of `Kind`, such as its table of an experiment's file, its scenarios, and its tables on a
terminal. Its quantities are in `results/quantities.csv`.

The module of the same name in `reporting/html`, which `page.py` there lists, defines its part of the report
(`sections`; `answer` and `findings` are optional). Terminal and report read only the table. Runner, command
line and reference use this registry.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from shakedown.schema.arguments import checked
from shakedown.schema.measured import Measurement
from shakedown.schema.saved import Planned

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

    from shakedown.experiments.file.experiment import Experiment
    from shakedown.experiments.file.table import Table
    from shakedown.native.scenario import CaptureFile, HandshakeId, Scenario
    from shakedown.results.folder import Results
    from shakedown.results.table import Row
    from shakedown.schema.base import Object
    from shakedown.schema.trace import Trace

KINDS = (
    "captured",
    "measured",
    "modelled",
    "simulated",
    "live",
)
"""In the order in which an experiment runs them; a later kind can use the results of earlier ones."""


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
    """The number of the next place, and of all places of a handshake, for progress."""

    def keep(self, scenario: Scenario, found: Any) -> list[str]:  # noqa: ANN401 - an object of the schema
        """Keeps the results that later kinds need; returns notes for the user."""
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
    """A kind's module, with defaults for the methods that it does not define."""

    TABLE: Table | None = None
    """The kind's table of an experiment's file; None if it has none."""

    run: Callable[[Scenario, Run], Any]
    """Computes a scenario's figures: the object that is printed. Raises `ShakedownError`, and the core's
    errors.
    """

    rows: Callable[[Scenario, Any], Iterable[Row]]
    """Converts the result of `run` to rows of the table."""

    common: Callable[[Scenario, Any], Row]
    """The columns that all these rows share."""

    job: Callable[[Scenario, Run], Callable[[], Any]] | None = None
    """Returns a picklable function that computes a scenario's figures, possibly in another process; None:
    they depend on the machine that computes them.
    """

    def __init__(self, name: str) -> None:
        """Raises `ImportError` if there is no such kind."""
        vars(self).update(vars(import_module(f"{__name__}.{name}")))
        self.name = name

    def planned(self, experiment: Experiment) -> Iterable[Planned]:
        """The parts of the table that a run will write, as far as they are known in advance: one for each
        scenario, or for each measured one whose results it uses.
        """
        after = "measured" if self.needs(experiment) else None
        return (
            Planned(kind=self.name, about=one.label, after=after) for one in experiment.of(after or self.name)
        )

    def needs(self, experiment: Experiment) -> Collection[Need]:
        """The results of earlier kinds that it uses; results that no kind uses are not kept."""
        return ()

    def profiles(self, experiment: Experiment) -> Iterable[str]:
        """Other devices and bearers on which its figures depend, besides the experiment's places."""
        return ()

    def scenarios(self, run: Run) -> Iterable[Sequence[Scenario]]:
        """The scenarios of an experiment, a batch for each part of the table."""
        return ((one,) for one in run.experiment.of(self.name))

    def take(self, scenario: Scenario, found: Any, run: Run) -> Any:  # noqa: ANN401 - what the job returned
        """Converts a job's result to the result of `run`; called in the order of the scenarios."""
        return found

    def table(self, made: Sequence[tuple[Scenario, Any]]) -> pl.DataFrame:
        """The rows of scenarios, in their order."""
        import polars as pl

        from shakedown.results.table import frame

        return pl.concat([frame(self.rows(*one), self.common(*one)) for one in made])

    def printed(self, found: Any) -> Iterable[Object]:  # noqa: ANN401 - what `run` returned
        """The objects that `run --json` prints."""
        return (found,)

    def traces(self, scenario: Scenario, found: Any) -> dict[Source, Trace]:  # noqa: ANN401 - as above
        """The traces that can be estimated."""
        return {}

    def notes(self, found: Any) -> list[str]:  # noqa: ANN401 - as above
        """Notes for the user, one line each."""
        return []

    def terminal(self, results: Results, width: int) -> Iterable[str]:
        """Tables for people."""
        return ()


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
    """The counts of what the kinds' tables request, each with its name."""
    return [
        one
        for name, table in tables().items()
        if name in experiment.kind_tables
        for one in table.counted(experiment.kind_tables[name])
    ]
