"""`validate`: checks an experiment file, and compares its figures with real sockets."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from shakedown.cli._options import only_with
from shakedown.cli._output import (
    JsonArray,
    echo,
    note,
    note_all,
    print_rows,
    progress_bar,
    rows_options,
    write_page,
)
from shakedown.cli._types import RATE, Duration, OutputFolder
from shakedown.errors import InputError
from shakedown.reporting.columns import Column, Selection

if TYPE_CHECKING:
    from shakedown.experiments.file.experiment import Experiment

DEFAULT_LIVE_TIME = "20s"


def _columns(given: dict[str, Any]) -> Sequence[Column]:
    from shakedown.reporting.terminal.loads import compared_columns, compared_kinds

    return compared_columns(compared_kinds(endpoints=given["endpoints"]))


@click.command("validate", epilog="Example: shakedown validate examples/quickstart.toml")
@click.argument("experiment", type=click.Path(path_type=Path), metavar="EXPERIMENT.toml")
@click.option("--live", is_flag=True, help="Compare modelled, simulated and live figures.")
@click.option(
    "--endpoints",
    is_flag=True,
    help="With --live: also run the protocol stacks in virtual time.",
)
@click.option("--rate", type=RATE, metavar="R", help="With --live: new connections per second.")
@click.option(
    "--time",
    "time_s",
    type=Duration(),
    metavar="T",
    help=f"With --live: duration of all loads together.  [default: {DEFAULT_LIVE_TIME}]",
)
@click.option(
    "--out",
    type=OutputFolder(),
    metavar="FOLDER",
    help="With --live: save the results, and write their report.",
)
@rows_options(_columns)
def command(
    experiment: Path,
    live: bool,
    endpoints: bool,
    rate: float | None,
    time_s: float | None,
    out: Path | None,
    selection: Selection,
) -> None:
    """Check an experiment file without running it.

    With --live, compare models and simulation with real sockets: each suite is measured in memory, then a
    server is loaded over loopback, and the live figures are compared with modelled and simulated ones. With
    --endpoints they are also compared with protocol stacks in virtual time.
    """
    from shakedown.experiments.figure_kinds import load_experiment
    from shakedown.experiments.figure_kinds.live import compared
    from shakedown.schema.units import parse_duration_s

    only_with("--live", live, rate=rate, time=time_s, out=out, endpoints=endpoints, json=selection.json)
    if not live and selection != Selection():
        raise InputError("--csv, --sort, --columns and --wide require --live")
    found = load_experiment(experiment)
    if live:
        wanted_s = parse_duration_s(DEFAULT_LIVE_TIME) if time_s is None else time_s
        _compare(compared(found, rate, wanted_s, endpoints=endpoints), out, selection)
    else:
        _check(experiment, found)


def _check(path: Path, found: Experiment) -> None:
    from shakedown.experiments.figure_kinds import counted
    from shakedown.experiments.runner import chain_lines
    from shakedown.reporting.figures import count

    measured, places = found.of("measured"), found.places
    parts = (
        [count(len(measured), "suite"), count(measured[0].options.repeat, "repetition")] if measured else []
    )
    for many, what in (
        (len(places.devices), "device"),
        (len(places.bearers), "bearer"),
        (len(places.rates_per_s), "rate"),
        (len(found.of("captured")), "capture"),
        *counted(found),
    ):
        if many:
            parts.append(count(many, what))
    echo(f"{path}: valid: {', '.join(parts)}")
    for remark in (*chain_lines(found), *found.notes):
        note(remark)


def _compare(wanted: Experiment, out: Path | None, selection: Selection) -> None:
    """Measures, loads and compares; saves the results only if `out` is given."""
    from shakedown.experiments.runner import run_experiment
    from shakedown.reporting.terminal.loads import COMPARED_TITLE, compared_rows, comparison
    from shakedown.results.folder import load_results
    from shakedown.results.lock import FolderLock
    from shakedown.schema.live import LiveRun

    measured = wanted.of("measured")
    repeat = measured[0].options.repeat
    array = JsonArray() if selection.json else None
    with TemporaryDirectory() as room, FolderLock(out or Path(room) / "results") as lock:
        folder = lock.folder
        try:
            with progress_bar(len(measured) * repeat, "running") as update:
                outcome = run_experiment(
                    wanted,
                    folder,
                    lock=lock,
                    command=["shakedown", *sys.argv[1:]],
                    progress=lambda position, done, label: update(position * repeat + done, label),
                    printed=lambda one: (
                        array.add(one) if array is not None and isinstance(one, LiveRun) else None
                    ),
                )
        finally:
            if array is not None:
                array.close()
        results = load_results(folder)
        if not selection.json:
            print_rows(*comparison(compared_rows(results)), selection, title=COMPARED_TITLE)
        note_all(outcome.notes)
        if out is not None:
            note(f"results: {folder}")
            write_page(results, folder / "report.html", lock=lock)
    for suite, reason in outcome.failures:
        note(f"error: {suite}: {reason}")
    if outcome.failures:
        raise click.exceptions.Exit(1)
