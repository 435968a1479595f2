"""How commands print: JSON, tables, progress."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console

    from shakedown.measurement import Measurement
    from shakedown.results.folder import Results

WIDTH_WHEN_NOT_A_TERMINAL = 200
"""Columns given to tables in pipes and files, so that nothing is folded for a screen that isn't there."""

REFRESH_EVERY_S = 0.1

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print only JSON on standard output: an array of objects."
)


def print_json(objects: Sequence[object]) -> None:
    """One JSON array on standard output; figures that are not numbers would be a defect, so they raise."""
    click.echo(json.dumps(list(objects), indent=2, ensure_ascii=False, allow_nan=False))


def console() -> Console:
    """The terminal for people; colours only where it has them and NO_COLOR does not forbid them.

    Text is printed as it is: files have brackets in their names, and addresses what elsewhere is an emoji.
    """
    from rich.console import Console

    width = None if sys.stdout.isatty() else WIDTH_WHEN_NOT_A_TERMINAL
    return Console(width=width, highlight=False, markup=False, emoji=False)


def show_measurements(
    measurements: Sequence[Measurement], predictions: Sequence[Mapping[str, Any]] = ()
) -> None:
    """The tables for people: what was measured, and what was predicted from it."""
    from shakedown.terminal.tables import measured_tables, predicted_tables

    screen = console()
    for table in measured_tables(measurements, screen.width):
        screen.print(table)
    for table in predicted_tables(predictions, screen.width):
        screen.print(table)


def show_results(results: Results) -> None:
    """All tables of an experiment: measured, predicted, captured."""
    from shakedown.terminal.captured_tables import captured_predictions_table, captures_tables

    show_measurements(results.measurements, results.predictions)
    screen = console()
    for table in captures_tables(results.captures):
        screen.print(table)
    if results.captured_predictions:
        screen.print(captured_predictions_table(results.captured_predictions))


def show_transfers(measurements: Sequence[Measurement]) -> None:
    """What bulk data cost, where it was asked for."""
    from shakedown.terminal.tables import transfer_table

    for measurement in measurements:
        if "transfers" in measurement:
            console().print(transfer_table(measurement))


def note(message: str) -> None:
    """A remark that is not data, on standard error."""
    click.echo(message, err=True)


@contextmanager
def progress_bar(total: int, what: str) -> Iterator[Callable[[int, str], None]]:
    """A progress bar on standard error where that is a terminal, else nothing.

    Yields `update(done, label)`, where `done` counts towards `total`.
    """
    if not sys.stderr.isatty():
        yield lambda done, label: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    label = TextColumn("{task.description}", markup=False)
    columns = (label, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    # No thread refreshes it: nothing else shall run while something is measured. Nor may it take over
    # standard output, to which data goes meanwhile.
    bars = Progress(
        *columns,
        console=Console(stderr=True),
        transient=True,
        auto_refresh=False,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    with bars:
        task = bars.add_task(what, total=total)
        drawn_s = 0.0

        def update(done: int, label: str) -> None:
            nonlocal drawn_s
            bars.update(task, completed=done, description=label)
            now_s = monotonic()
            if now_s - drawn_s >= REFRESH_EVERY_S:
                bars.refresh()
                drawn_s = now_s

        yield update
