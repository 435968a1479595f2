"""`run`: an experiment from a file, its results saved as they come."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from shakedown.cli._output import JsonArray, json_option, note, progress_bar, show_results


@click.command("run")
@click.argument("experiment", type=click.Path(path_type=Path), metavar="EXPERIMENT.toml")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Folder for the results: a new or an empty one.  [default: a new one, results/NAME]",
)
@click.option("--force", is_flag=True, help="Replace the results that the folder holds.")
@click.option("--no-report", is_flag=True, help="Write no HTML report.")
@json_option
def command(experiment: Path, out: Path | None, force: bool, no_report: bool, as_json: bool) -> None:
    """Run an experiment: measure suites, read captures, save the results, write the report."""
    from shakedown.experiment import load_experiment
    from shakedown.results.folder import load_results
    from shakedown.runner import run_experiment

    wanted = load_experiment(experiment)
    folder = out or _free_folder(wanted.name)
    measured = wanted.of("measured")
    repeat = measured[0].options.repeat if measured else 1
    array = JsonArray() if as_json else None

    def show() -> None:
        if array is not None:
            array.close()
        else:
            show_results(load_results(folder))

    try:
        with progress_bar(len(measured) * repeat, "running") as update:
            outcome = run_experiment(
                wanted,
                folder,
                replace=force,
                command=["shakedown", *sys.argv[1:]],
                progress=lambda position, done, label: update(position * repeat + done, label),
                printed=None if array is None else array.add,
            )
    except KeyboardInterrupt as error:
        if str(error):
            show()
        raise
    except Exception:
        if array is not None and array.count:
            array.close()
        raise
    show()
    for remark in outcome.notes:
        note(remark)
    note(f"results: {folder}")
    results = load_results(folder)
    if not no_report and results.table.height:
        from shakedown.kinds import reported
        from shakedown.reporting import write_report

        note(f"report:  {write_report(results, folder / 'report.html', reported())}")
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
