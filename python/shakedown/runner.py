"""Runs experiments: each suite measured, then written down before the next begins."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shakedown import core
from shakedown.credentials import OwnMaterial
from shakedown.errors import ShakedownError
from shakedown.experiment import Experiment
from shakedown.measurement import Measurement
from shakedown.pricing.experiment_predictions import forecast
from shakedown.results.captures import Capture, cut_short, keep
from shakedown.results.folder import ResultsWriter


@dataclass(frozen=True)
class Outcome:
    """How a run ended; `failures` pairs each suite that was not measured with the reason.

    `notes` are what a user should know besides, one line each.
    """

    folder: Path
    measured: int
    failures: tuple[tuple[str, str], ...]
    notes: tuple[str, ...] = ()


def run_experiment(
    experiment: Experiment,
    folder: str | Path,
    *,
    replace: bool = False,
    command: Sequence[str] = (),
    progress: Callable[[int, int, str], None] | None = None,
) -> Outcome:
    """Inspects the experiment's captures, then measures its suites, and saves each as it comes.

    A suite whose handshake fails is noted and the others go on. Ctrl-C closes the folder, with what was
    measured in it, and raises `KeyboardInterrupt`. `progress` is called with the position of the suite, the
    repetitions done of it, and its name; before that, with zeros and what is being read.

    Raises `InputError` where a capture cannot be read or the folder not be written, `ShakedownError` where it
    no longer can.
    """
    captures: list[Capture] = []
    for one in experiment.captures:
        if progress is not None:
            progress(0, 0, f"reading {one.file.name}")
        captures.append(read_capture(one.file, one.keylog))
    writer = ResultsWriter(folder, _manifest(experiment, command), replace=replace)
    failures: list[tuple[str, str]] = []
    measured: list[Measurement] = []

    def close(ended: str) -> None:
        notes = [{"suite": suite, "reason": reason} for suite, reason in failures]
        writer.close(ended=ended, failures=notes)

    try:
        if captures:
            writer.add_captures(captures)
        for position, suite in enumerate(experiment.suites):

            def tell(done: int, position: int = position, suite: str = suite) -> None:
                if progress is not None:
                    progress(position, min(done, experiment.repeat), suite)

            tell(0)
            try:
                result = core.measure(suite, experiment.repeat, progress=tell, **experiment.options(suite))  # type: ignore[arg-type]  # each option has been checked by the experiment's reader
            except Exception as error:
                if not core.is_failure(error):
                    raise
                # The core's line begins with the suite's name, which stands beside the reason anyway.
                failures.append((suite, str(error).removeprefix(f"{suite}: ")))
                continue
            writer.add(result)
            measured.append(result)
        foreseen = forecast(experiment, measured, captures)
        if foreseen.predictions or foreseen.unpriced:
            writer.add_models(foreseen.predictions, foreseen.queues, foreseen.unpriced)
    except KeyboardInterrupt:
        close("interrupted")
        raise KeyboardInterrupt(
            f"interrupted: {writer.parts} of {len(experiment.suites)} suites kept in {writer.folder}"
        ) from None
    except BaseException:
        # The folder stays readable without this last note; the first error is the one to tell.
        with suppress(ShakedownError):
            close("failed")
        raise
    close("complete")
    notes = (*own_lines(experiment.own), *experiment.own.notes, *_remarks(captures), *core.take_notices())
    return Outcome(writer.folder, writer.parts, tuple(failures), notes)


def read_capture(file: Path, keylog: Path | None = None) -> Capture:
    """Inspects a capture; what is kept of it is bounded. Raises `InputError` where it cannot be read."""
    return keep(file, keylog, core.inspect(file, keylog))


def own_lines(own: OwnMaterial) -> list[str]:
    """Which suites show whose own certificates, a line a side."""
    lines = []
    for side in own.files:
        shown = [suite for suite, sides in own.used.items() if side in sides]
        lines.append(f"the {side}'s own certificates: {', '.join(shown)}")
    return lines


def _remarks(captures: Sequence[Capture]) -> list[str]:
    """What of the captures was not read, or not kept."""
    remarks = []
    for one in captures:
        if one["problem"]:
            remarks.append(cut_short(one["capture"], one["problem"]))
        if not one["kinds"]:
            remarks.append(f"{one['capture']}: no handshake in it")
    return remarks


def _manifest(experiment: Experiment, command: Sequence[str]) -> dict[str, Any]:
    return {
        "experiment": {
            "name": experiment.name,
            "title": experiment.title,
            "question": experiment.question,
            "suites": list(experiment.suites),
            "repeat": experiment.repeat,
            "devices": list(experiment.devices),
            "server_device": experiment.server_device,
            "bearers": list(experiment.bearers),
            "rates_per_s": list(experiment.rates_per_s),
            "captures": [one.file.name for one in experiment.captures],
            "text": experiment.text,
        },
        "certificates": _certificates(experiment.own),
        "seed": experiment.seed,
        "now": experiment.now,
        "command": list(command),
        "machine": core.machine(),
        "build": core.build(),
        "python": sys.version.split()[0],
    }


def _certificates(own: OwnMaterial) -> dict[str, Any]:
    """By side, what the user's own certificates are and which suites show them: names of files, no keys."""
    return {
        side: {
            "suites": [suite for suite, sides in own.used.items() if side in sides],
            **files.about(own.now),
        }
        for side, files in own.files.items()
    }
