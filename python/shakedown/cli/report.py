"""`report`: saved results, or a file of traces, as a page, a table, CSV or JSON."""

from __future__ import annotations

from pathlib import Path

import click

from shakedown.cli._output import JsonArray, json_option, note, show_results, write_page
from shakedown.cli._types import FILE


@click.command("report", epilog="Example: shakedown report results/quickstart")
@click.argument("results", type=click.Path(path_type=Path), metavar="RESULTS|TRACES.json")
@click.option(
    "--out",
    type=FILE,
    help="File of the page.  [default: RESULTS/report.html or TRACES.html]",
)
@click.option("--force", is_flag=True, help="Replace existing files; RESULTS/report.html is always replaced.")
@click.option("--csv", "csv_path", type=FILE, help="Write the tidy table as CSV.")
@json_option
def command(results: Path, out: Path | None, force: bool, csv_path: Path | None, as_json: bool) -> None:
    """Write saved results as one self-contained HTML page, and its figures as files.

    RESULTS is a folder that "run" wrote. The output of "measure --json" and files of
    "inspect --traces-out" are also accepted.
    --json prints the table instead of a page: an object for each scenario, with all of its figures.
    """
    from shakedown.api.reports import load_any
    from shakedown.files.owned import ACCEPTED, refuse_special
    from shakedown.files.write import check_distinct, check_free, writing
    from shakedown.results.reader import damage_reported
    from shakedown.results.writer import own_files

    its_own = results / "report.html"
    page = out or (results.with_suffix(".html") if results.is_file() else its_own)
    if not as_json and page != its_own and not force:
        check_free(page, accepted=ACCEPTED)
    if not as_json:
        refuse_special(page.parent, [page.name])
    if csv_path:
        check_free(csv_path, force)
    check_distinct([None if as_json else page, csv_path], own_files(results))
    loaded = load_any(results)
    if csv_path:
        with writing(csv_path, replace=force) as file:
            for part in loaded.csv_parts():
                file.write(part)
        note(f"table:   {csv_path}")
    if as_json:
        array = JsonArray()
        for one in loaded.figures():
            array.add(one)
        array.close()
        return
    if not loaded.is_whole:
        from shakedown.reporting.html.provenance import warning

        note(warning(loaded))
    if not loaded.height:
        note(f"{results}: it holds no figures; there is nothing to report")
        return
    with damage_reported(loaded.folder):
        show_results(loaded)
    write_page(loaded, page, replace=force)
