"""Runs experiments: each scenario's figures made, then written down before the next begins."""

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
from shakedown.experiments.cluster import Cluster, InProcess
from shakedown.experiments.figure_kinds import KINDS, Kind, Run, Spreading, Together, kind, load_experiment
from shakedown.experiments.file import Experiment
from shakedown.native.scenario import DEFAULT_BEARER, DEFAULT_DEVICE, DEFAULT_SERVER_DEVICE, Scenario
from shakedown.results.lock import FolderLock
from shakedown.results.writer import ResultsWriter
from shakedown.schema.arguments import checked
from shakedown.schema.base import Object
from shakedown.schema.saved import Failure, Manifest, Planned

if TYPE_CHECKING:
    from distributed import Client


@dataclass(frozen=True)
class Outcome:
    """How a run ended; `failures` pairs each suite that was not measured with the reason.

    `notes` are what a user should know besides, one line each.
    """

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
    """Inspects the experiment's captures, measures its suites, prices and simulates both, and saves each as
    it comes, in `folder` or a new one, results/NAME. The experiment is read already, or its file.

    With a Dask `client`, what is priced and simulated is made on its cluster: the same figures in the same
    order, and a worker that is lost loses nothing. Measured is here, for its times are this machine's. A
    suite whose handshake fails is noted and the others go on. Ctrl-C closes the folder with what was found,
    and raises `KeyboardInterrupt`. A `lock` of the folder that the caller holds stays the caller's, so that a
    report can be written before another run takes the folder. `progress` is called with the number of suites
    done, the repetitions done of the next, and what is being done; `printed` with each object, as commands
    print it.

    Raises `InputError` where the experiment or a capture cannot be read or the folder not be written,
    `ShakedownError` where it no longer can.
    """
    if not isinstance(experiment, Experiment):
        experiment = load_experiment(experiment)
    measured, notes = 0, list(chain_lines(experiment))
    pool = InProcess() if client is None else Cluster(client, _profiles(experiment))

    def tell(done: int, label: str) -> None:
        if progress is not None:
            progress(measured, done, label)

    run = Run(experiment, tell)
    planned = [one for name in KINDS for one in kind(name).planned(experiment)]
    # What cannot be read is found before anything is written.
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
    return Outcome(writer.folder, measured, failures, (*notes, *experiment.notes, *native.take_notices()))


def _found(
    module: Kind, run: Run, pool: InProcess | Cluster
) -> Iterator[tuple[Sequence[Scenario], Iterator[Any] | None]]:
    """The batches of a kind; where the pool makes its figures, with those, in order."""
    if not isinstance(pool, Cluster) or not isinstance(module, Spreading):
        for batch in module.scenarios(run):
            yield batch, None
        return
    batches: deque[Sequence[Scenario]] = deque()

    def jobs() -> Iterator[Callable[[], Any]]:
        for batch in module.scenarios(run):
            batches.append(batch)
            for scenario in batch:
                yield module.job(scenario, run)

    found = pool.results(jobs())
    while (first := next(found, None)) is not None:
        batch = batches.popleft()
        yield batch, chain([first], islice(found, len(batch) - 1))


FIGURES_A_PART = 4_000
"""Rates of all places together that stand in one part at most, so that what a run holds is bounded."""


def _made(
    module: Kind,
    batch: Sequence[Scenario],
    elsewhere: Iterator[Any] | None,
    run: Run,
    writer: ResultsWriter,
    first: dict[Scenario, Any],
) -> Iterator[list[tuple[Scenario, Any]]]:
    """A batch's figures, written down as one part, or as several where it is large; of a handshake that
    failed, the reason.
    """
    import polars as pl

    size = max(1, FIGURES_A_PART // len(batch[0].load.rates_per_s))
    for begin in range(0, len(batch), size):
        made: list[tuple[Scenario, Any]] = []
        for number, scenario in enumerate(batch[begin : begin + size], start=begin + 1):
            run.place = f", place {number:,} of {len(batch):,}" if len(batch) > 1 else ""
            run.progress(0, f"{scenario.label}{run.place}")
            if elsewhere is not None:
                assert isinstance(module, Spreading)
                made.append((scenario, module.take(scenario, next(elsewhere), run)))
                continue
            try:
                made.append((scenario, first.pop(scenario, None) or module.run(scenario, run)))
            except Exception as error:
                if not native.is_failure(error):
                    raise
                # The core's line begins with the suite's name, which stands beside the reason anyway.
                reason = without_name(str(error), scenario.label)
                writer.fail(Failure(suite=scenario.label, reason=reason, kind=scenario.kind))
        if made:
            if isinstance(module, Together):
                table = module.table(made)
            else:
                table = pl.concat([module.rows(scenario, found) for scenario, found in made])
            # Only the last part has the label: until it is there, the batch is not.
            more = "" if begin + size >= len(batch) else f", places {begin + 1} to {begin + len(made)}"
            writer.add(batch[0].kind, f"{batch[0].label}{more}", table)
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
    """Which suites present whose certificates, a line a side."""
    return [
        f"the {side}'s certificates are yours in: {', '.join(experiment.presented(side))}"
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
