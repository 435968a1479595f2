"""`run`: runs an experiment from a file, and saves each result when it is known."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from shakedown.cli._options import Where, computed_where
from shakedown.cli._output import (
    JsonArray,
    json_option,
    note,
    note_all,
    progress_bar,
    show_results,
    stopped_like_interrupted,
    write_page,
)
from shakedown.cli._types import OutputFolder

if TYPE_CHECKING:
    from shakedown.results.folder import Results


@click.command("run", epilog="Example: shakedown run examples/quickstart.toml")
@click.argument("experiment", type=click.Path(path_type=Path), metavar="EXPERIMENT.toml")
@click.option(
    "--out",
    type=OutputFolder(),
    help="Folder for the results, new or empty.  [default: a new one, results/NAME]",
)
@click.option("--force", is_flag=True, help="Replace existing results in the folder.")
@click.option("--no-report", is_flag=True, help="Write no HTML report.")
@computed_where
@json_option
def command(
    experiment: Path,
    out: Path | None,
    force: bool,
    no_report: bool,
    as_json: bool,
    cluster: Where,
) -> None:
    """Run an experiment: measure suites, read captures, save the results, write the report.

    --processes and --scheduler compute predictions and simulations in several processes or machines. The
    figures do not change; the work of a lost worker is repeated.
    """
    from shakedown.experiments.figure_kinds import load_experiment
    from shakedown.experiments.runner import free_folder, run_experiment
    from shakedown.files.owned import ACCEPTED_OF_RUN, made_for, refuse_foreign, refuse_special
    from shakedown.results.folder import load_results
    from shakedown.results.lock import FolderLock

    wanted = load_experiment(experiment)
    folder = out or free_folder(wanted.name)
    measured = wanted.of("measured")
    repeat = measured[0].options.repeat if measured else 1
    array = JsonArray() if as_json else None

    def show() -> Results:
        results = load_results(folder)
        if array is not None:
            array.close()
        else:
            show_results(results)
        return results

    # Held until the report is written, so that no other run replaces the results before.
    with stopped_like_interrupted(), FolderLock(folder) as lock:
        page = folder / "report.html"
        if force and not no_report:
            # Checked before results are replaced; otherwise the new results would have no report.
            refuse_special(folder, [page.name])
            refuse_foreign(folder, [page.name], made_for(page), {}, ACCEPTED_OF_RUN)
        try:
            with (
                cluster as client,
                progress_bar(len(measured) * repeat, "running") as update,
            ):
                outcome = run_experiment(
                    wanted,
                    folder,
                    client=client,
                    replace=force,
                    lock=lock,
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
        results = show()
        note_all(outcome.notes)
        note(f"results: {folder}")
        if not no_report and results.height:
            write_page(results, page, lock=lock, accepted=ACCEPTED_OF_RUN)
        for suite, reason in outcome.failures:
            note(f"error: {suite}: {reason}")
        if outcome.failures:
            raise click.exceptions.Exit(1)
