"""Runs experiments: computes each scenario's figures and saves them before the next scenario begins."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain, islice
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from shakedown import native
from shakedown.errors import without_name
from shakedown.experiments.cluster import Cluster, alone
from shakedown.experiments.figure_kinds import KINDS, Kind, Run, kind, load_experiment
from shakedown.experiments.file.experiment import Experiment
from shakedown.native.scenario import DEFAULT_BEARER, DEFAULT_DEVICE, DEFAULT_SERVER_DEVICE, Scenario
from shakedown.results.lock import FolderLock
from shakedown.results.writer import ResultsWriter
from shakedown.schema.arguments import checked
from shakedown.schema.base import Object
from shakedown.schema.saved import Failure, Manifest, Planned

if TYPE_CHECKING:
    from distributed import Client

    from shakedown.simulation.pieces import Work


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run. `failures` has each failed suite with the reason, `notes` lines for the user."""

    folder: Path
    measured: int
    failures: tuple[tuple[str, str], ...]
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        failed = f", {len(self.failures)} failed" if self.failures else ""
        return f"Outcome({self.measured} measured{failed}, in {self.folder})"


def free_folder(name: str) -> Path:
    """results/NAME, or the first of NAME-2, NAME-3 … that is free."""
    folder, number = Path("results") / name, 2
    while folder.exists():
        folder, number = Path("results") / f"{name}-{number}", number + 1
    return folder


@checked
def run_experiment(
    experiment: Experiment | str | Path,
    folder: str | Path | None = None,
    *,
    client: Client | None = None,
    replace: bool = False,
    lock: FolderLock | None = None,
    command: Sequence[str] = (),
    progress: Callable[[int, int, str], None] | None = None,
    printed: Callable[[Object], None] | None = None,
) -> Outcome:
    """Runs an experiment: inspects its captures, measures its suites, then predicts and simulates both.

    Each figure is saved when it is known. If a suite's handshake fails, the reason is noted and the run
    continues. Ctrl-C closes the folder with the figures so far and raises `KeyboardInterrupt`.

    Args:
        experiment: an experiment, or the path of its file.
        folder: the results folder; None: a new one, results/NAME.
        client: a Dask client. Its cluster computes the estimated and simulated figures; measurements always
            run on this machine. The figures and their order are the same, even if a worker is lost.
        replace: whether existing results may be replaced.
        lock: a lock of the folder that the caller holds and keeps, so that it can write a report before
            another run uses the folder.
        command: the command line, for the manifest.
        progress: called with the number of measured suites, the repetitions of the current suite, and a
            label.
        printed: called with each object that a command would print.

    Raises:
        InputError: if the experiment or a capture cannot be read, or the folder cannot be created.
        ShakedownError: if the folder can no longer be written.
    """
    if not isinstance(experiment, Experiment):
        experiment = load_experiment(experiment)
    measured, notes = 0, list(chain_lines(experiment))
    pool = None if client is None else Cluster(client, _profiles(experiment))

    def tell(done: int, label: str) -> None:
        if progress is not None:
            progress(measured, done, label)

    run = Run(experiment, tell)
    planned = [one for name in KINDS for one in kind(name).planned(experiment)]
    # Captures are read first, so that an unreadable one is reported before anything is written.
    first: dict[Scenario, Any] = {one: kind("captured").run(one, run) for one in experiment.of("captured")}
    total = len(experiment.of("measured"))
    writer = ResultsWriter(
        folder or free_folder(experiment.name),
        _manifest(experiment, planned, command),
        replace=replace,
        lock=lock,
    )
    try:
        with writer:
            for name in KINDS:
                module = kind(name)
                for batch, elsewhere in _found(module, run, pool):
                    for made in _made(module, batch, elsewhere, run, writer, first):
                        measured += len(made) if name == "measured" else 0
                        for scenario, found in made:
                            notes += run.keep(scenario, found)
                            if printed is not None:
                                for one in module.printed(found):
                                    printed(one)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"interrupted: {measured} of {total} suites kept in {writer.folder}"
        ) from None
    failures = tuple((one.suite, one.reason) for one in writer.failures)
    once = tuple(dict.fromkeys((*notes, *experiment.notes, *native.take_notices())))
    return Outcome(writer.folder, measured, failures, once)


def _found(
    module: Kind, run: Run, pool: Cluster | None
) -> Iterator[tuple[Sequence[Scenario], Iterator[Any] | None]]:
    """The batches of a kind; if the pool computes its figures, with these figures, in order."""
    job = module.job
    if pool is None or job is None:
        for batch in module.scenarios(run):
            yield batch, None
        return
    batches: deque[Sequence[Scenario]] = deque()

    def works() -> Iterator[Work[Any]]:
        for batch in module.scenarios(run):
            batches.append(batch)
            for scenario in batch:
                yield alone(job(scenario, run))

    found = pool.results(works())
    while (first := next(found, None)) is not None:
        batch = batches.popleft()
        yield batch, chain([first], islice(found, len(batch) - 1))


FIGURES_A_PART = 4_000
"""Limit of figures (rates × places) in one part, so that the run's memory is bounded."""


def _made(
    module: Kind,
    batch: Sequence[Scenario],
    elsewhere: Iterator[Any] | None,
    run: Run,
    writer: ResultsWriter,
    first: dict[Scenario, Any],
) -> Iterator[list[tuple[Scenario, Any]]]:
    """Computes and saves a batch's figures (a large batch as several parts), and reasons of failures."""
    size = max(1, FIGURES_A_PART // len(batch[0].load.rates_per_s))
    for begin in range(0, len(batch), size):
        made: list[tuple[Scenario, Any]] = []
        for number, scenario in enumerate(batch[begin : begin + size], start=begin + 1):
            run.place = f", place {number:,} of {len(batch):,}" if len(batch) > 1 else ""
            run.progress(0, f"{scenario.label}{run.place}")
            if elsewhere is not None:
                made.append((scenario, module.take(scenario, next(elsewhere), run)))
                continue
            try:
                made.append((scenario, first.pop(scenario, None) or module.run(scenario, run)))
            except Exception as error:
                if not native.is_failure(error):
                    raise
                # The core's message begins with the suite's name, which is a field of its own here.
                reason = without_name(str(error), scenario.label)
                writer.fail(Failure(suite=scenario.label, reason=reason, kind=scenario.kind))
        if made:
            # Only the last part has the bare label, so the batch counts as done when that part is written.
            more = "" if begin + size >= len(batch) else f", places {begin + 1} to {begin + len(made)}"
            writer.add(batch[0].kind, f"{batch[0].label}{more}", module.table(made))
            yield made


def _profiles(experiment: Experiment) -> list[str]:
    """The devices and bearers on which figures depend."""
    places = experiment.places
    return list(
        dict.fromkeys(
            (
                *(places.devices or (DEFAULT_DEVICE,)),
                places.server_device or DEFAULT_SERVER_DEVICE,
                *(places.bearers or (DEFAULT_BEARER,)),
                *(one for name in KINDS for one in kind(name).profiles(experiment)),
            )
        )
    )


def chain_lines(experiment: Experiment) -> list[str]:
    """For each side, a line with the suites that use the user's certificates."""
    return [
        f"suites with your {side} certificates: {', '.join(experiment.presented(side))}"
        for side in experiment.chains
    ]


def _manifest(experiment: Experiment, planned: Sequence[Planned], command: Sequence[str]) -> Manifest:
    options = [one.options for one in experiment.of("measured")]
    validated = next((one.now for one in options if one.user_supplied), None)
    return Manifest(
        provenance=token_hex(6),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        experiment=experiment.about,
        certificates={
            side: files.about(validated or 0, experiment.presented(side))
            for side, files in experiment.chains.items()
        },
        seed=next((one.seed for one in options), None),
        now=next((one.now for one in options if not one.user_supplied), None),
        command=tuple(command),
        machine=native.machine(),
        build=native.build(),
        python=sys.version.split()[0],
        planned=tuple(planned),
    )
