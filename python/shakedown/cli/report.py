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
@click.option("--force", is_flag=True, help="Replace a page that exists; RESULTS/report.html always is.")
@click.option(
    "--csv", "csv_path", type=click.Path(dir_okay=False, path_type=Path), help="Write the tidy table as CSV."
)
@json_option
def command(results: Path, out: Path | None, force: bool, csv_path: Path | None, as_json: bool) -> None:
    """Write saved results as one self-contained HTML page, with its figures beside it.

    RESULTS is a folder that "run" wrote. What "measure --json" or "inspect --traces" wrote will do too.
    """
    from shakedown import core
    from shakedown.errors import InputError
    from shakedown.results.folder import load_results, results_of_json

    its_own = results / "report.html"
    page = out or (results.with_suffix(".html") if results.is_file() else its_own)
    if page.exists() and not (force or as_json) and page.resolve() != its_own.resolve():
        raise InputError(f"{page}: exists already; accepted: another --out, or --force")
    loaded = results_of_json(results, core.canonical) if results.is_file() else load_results(results)
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
    note(f"report:  {write_report(loaded, page)}")
