"""Runs experiments: each scenario's figures made, then written down before the next begins."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex
from typing import Any

from shakedown import core
from shakedown.experiment import Experiment
from shakedown.kinds import KINDS, Kind, Run, kind
from shakedown.results.writer import ResultsWriter
from shakedown.scenario import Scenario
from shakedown.schema.base import Object
from shakedown.schema.saved import Failure, Manifest, Planned


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


def run_experiment(
    experiment: Experiment,
    folder: str | Path,
    *,
    replace: bool = False,
    command: Sequence[str] = (),
    progress: Callable[[int, int, str], None] | None = None,
    printed: Callable[[Object], None] | None = None,
) -> Outcome:
    """Inspects the experiment's captures, measures its suites, prices both, and saves each as it comes.

    A suite whose handshake fails is noted and the others go on. Ctrl-C closes the folder, with what was
    found in it, and raises `KeyboardInterrupt`. `progress` is called with the number of suites done, the
    repetitions done of the next, and what is being done; `printed` with each object, as commands print it.

    Raises `InputError` where a capture cannot be read or the folder not be written, `ShakedownError` where it
    no longer can.
    """
    measured, notes = 0, list(chain_lines(experiment))

    def tell(done: int, label: str) -> None:
        if progress is not None:
            progress(measured, done, label)

    run = Run(experiment, tell)
    planned = [Planned(kind=one.kind, about=one.label) for one in experiment.scenarios]
    if experiment.places:
        planned += [Planned(kind="modelled", about=one.label) for one in experiment.of("measured")]
    # What cannot be read is found before anything is written.
    first: dict[Scenario, Any] = {one: kind("captured").run(one, run) for one in experiment.of("captured")}
    total = len(experiment.of("measured"))
    writer = ResultsWriter(folder, _manifest(experiment, planned, command), replace=replace)
    try:
        with writer:
            for name in KINDS:
                module = kind(name)
                for batch in module.scenarios(run):
                    made = _made(module, batch, run, writer, first)
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
    return Outcome(writer.folder, measured, failures, (*notes, *experiment.notes, *core.take_notices()))


def _made(
    module: Kind, batch: Sequence[Scenario], run: Run, writer: ResultsWriter, first: dict[Scenario, Any]
) -> list[tuple[Scenario, Any]]:
    """A batch's figures, written down as one part; of a handshake that failed, the reason."""
    import polars as pl

    made: list[tuple[Scenario, Any]] = []
    for scenario in batch:
        run.progress(0, scenario.label)
        try:
            made.append((scenario, first.pop(scenario, None) or module.run(scenario, run)))
        except Exception as error:
            if not core.is_failure(error):
                raise
            # The core's line begins with the suite's name, which stands beside the reason anyway.
            reason = str(error).removeprefix(f"{scenario.label}: ")
            writer.fail(Failure(suite=scenario.label, reason=reason, kind=scenario.kind))
    if made:
        table = pl.concat([module.rows(scenario, found) for scenario, found in made])
        writer.add(batch[0].kind, batch[0].label, table)
    return made


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
        machine=core.machine(),
        build=core.build(),
        python=sys.version.split()[0],
        planned=tuple(planned),
    )
