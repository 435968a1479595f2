"""`report`: saved results, or a file of traces, as a page, a table, CSV or JSON."""

from __future__ import annotations

from pathlib import Path

import click

from shakedown.cli._output import json_option, note, print_json, show_results


@click.command("report")
@click.argument("results", type=click.Path(path_type=Path), metavar="RESULTS|TRACES.json")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The page; left out, RESULTS/report.html or TRACES.html.",
)
@click.option(
    "--csv", "csv_path", type=click.Path(dir_okay=False, path_type=Path), help="Write the tidy table as CSV."
)
@json_option
def command(results: Path, out: Path | None, csv_path: Path | None, as_json: bool) -> None:
    """Write saved results as one self-contained HTML page, with its figures beside it.

    RESULTS is a folder that "run" wrote. What "measure --json" or "inspect --traces" wrote will do too.
    """
    from shakedown.results import load_results, results_of_json

    loaded = results_of_json(results) if results.is_file() else load_results(results)
    if csv_path:
        loaded.write_csv(csv_path)
        note(f"table:   {csv_path}")
    if as_json:
        print_json([*loaded.measurements, *loaded.predictions, *loaded.captured_predictions])
        return
    if not loaded.measurements and not loaded.captures:
        note(f"{results}: no suite was measured; there is nothing to report")
        return
    from shakedown.report import write_report

    show_results(loaded)
    page = results.with_suffix(".html") if results.is_file() else results / "report.html"
    note(f"report:  {write_report(loaded, out or page)}")
