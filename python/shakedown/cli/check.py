"""`check`: whether handshakes meet their budgets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.exceptions import Exit

from shakedown.cli._output import (
    echo,
    echo_lines,
    force_option,
    note,
    print_objects,
    progress_bar,
    results_so_far,
    rows_options,
    stopped_like_interrupted,
)
from shakedown.cli._types import FILE
from shakedown.reporting.columns import Selection

if TYPE_CHECKING:
    from shakedown.schema.budget import CheckedLimit


@click.command("check", epilog="Example: shakedown check --record tls1.2/psk")
@click.argument("budget", nargs=-1, required=True, metavar="BUDGET.toml|SUITE…")
@click.option("--record", is_flag=True, help="Print a budget with the present figures of each SUITE.")
@click.option("--times", is_flag=True, help="Also check limits on times; use it on a dedicated machine only.")
@click.option("--junit", type=FILE, help="Write the result as JUnit XML.")
@click.option("--summary", type=FILE, help="Append the result as Markdown to FILE: $GITHUB_STEP_SUMMARY.")
@click.option("--markdown", "as_markdown", is_flag=True, help="Print Markdown.")
@force_option
@rows_options("comparison.CHECKED")
def command(
    budget: tuple[str, ...],
    record: bool,
    times: bool,
    junit: Path | None,
    summary: Path | None,
    as_markdown: bool,
    force: bool,
    selection: Selection,
) -> None:
    """Check suites against a budget of bytes, instructions, memory, energy and capacity.

    The exit status is 1 if a limit is exceeded. Instructions are counted by valgrind; runs of one build
    differ by less than 0.1 %. Energy and capacity are predicted. Limits on times are checked only
    with --times.
    """
    from shakedown.comparison import budgets, reports
    from shakedown.files.write import check_distinct, check_free, check_writable, is_special, write

    if record:
        if times or junit or summary or as_markdown or selection.json or selection.csv:
            raise click.UsageError("--record prints a budget; accepted: --record with suites alone")
        with stopped_like_interrupted():
            for number, suite in enumerate(budget):
                if number:
                    echo("")
                echo_lines(budgets.recorded([suite]))
        return
    if len(budget) != 1:
        raise click.UsageError(f"{len(budget)} files; accepted: one budget")
    if as_markdown and (selection.csv or selection.json):
        raise click.UsageError("--markdown is given with --csv or --json; accepted: one of them")
    if junit is not None:
        check_writable(junit, force)
    if summary is not None:
        check_free(summary, replace=True)
    check_distinct([junit, summary], [Path(budget[0])])
    tables = budgets.read_budgets(budget[0])
    if summary is not None and not is_special(summary):
        # Refused before anything is measured. A pipe's reader would read that it ends.
        _append(summary, "")
    checked: list[CheckedLimit] = []

    def show() -> None:
        if as_markdown:
            echo_lines(reports.markdown(checked))
        else:
            print_objects(checked, selection, "CheckedLimit")

    def show_so_far() -> None:
        # Markdown states how many limits are met, as if these were all.
        if not as_markdown and (checked or selection.json):
            show()

    with (
        results_so_far(
            checked, show_so_far, sum(len(list(budgets.limits(one))) for one in tables), "limits checked"
        ),
        progress_bar(len(tables), "checking") as update,
    ):
        for number, one in enumerate(tables):
            update(number, one.suite)
            checked += budgets.check_budgets([one], times=times)
    try:
        # Files are written first, because printing may fail with a broken pipe.
        if junit is not None:
            write(junit, reports.junit(checked), replace=force)
        if summary is not None:
            _append(summary, reports.markdown(checked))
    finally:
        show()
    if failed := reports.verdict(checked):
        if not as_markdown:
            note(failed)
        raise Exit(1)


def _append(path: Path, text: str) -> None:
    """Appends to a file. Raises a one-line error."""
    from shakedown.errors import os_failure, os_reason

    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise os_failure(f"{path}: cannot be written: {os_reason(error)}", error) from error
