"""`run`: an experiment from a file, its results saved as they come."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from shakedown.results import Results

from shakedown.cli._output import json_option, note, print_json, progress_bar, show_measurements


@click.command("run")
@click.argument("experiment", type=click.Path(path_type=Path), metavar="EXPERIMENT.toml")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Folder for the results; left out, a new one: results/NAME.",
)
@click.option("--force", is_flag=True, help="Replace the results that the folder holds.")
@click.option("--no-report", is_flag=True, help="Leave the HTML report out.")
@json_option
def command(experiment: Path, out: Path | None, force: bool, no_report: bool, as_json: bool) -> None:
    """Run an experiment: measure its suites, save the results, write the report."""
    from shakedown.experiment import load_experiment
    from shakedown.results import load_results
    from shakedown.runner import run_experiment

    wanted = load_experiment(experiment)
    folder = out or _free_folder(wanted.name)
    try:
        with progress_bar(len(wanted.suites) * wanted.repeat, "running") as update:
            outcome = run_experiment(
                wanted,
                folder,
                replace=force,
                command=["shakedown", *sys.argv[1:]],
                progress=lambda position, done, suite: update(position * wanted.repeat + done, suite),
            )
    except KeyboardInterrupt:
        _show(load_results(folder), as_json)
        raise
    results = load_results(folder)
    _show(results, as_json)
    note(f"results: {folder}")
    if not no_report and results.measurements:
        from shakedown.report import write_report

        note(f"report:  {write_report(results, folder / 'report.html')}")
    for suite, reason in outcome.failures:
        note(f"error: {suite}: {reason}")
    if outcome.failures:
        raise click.exceptions.Exit(1)


def _free_folder(name: str) -> Path:
    """results/NAME, or the first of NAME-2, NAME-3 … that is free."""
    folder, number = Path("results") / name, 2
    while folder.exists():
        folder, number = Path("results") / f"{name}-{number}", number + 1
    return folder


def _show(results: Results, as_json: bool) -> None:
    if as_json:
        print_json([*results.measurements, *results.predictions])
    elif results.measurements:
        show_measurements(results.measurements, results.predictions)
