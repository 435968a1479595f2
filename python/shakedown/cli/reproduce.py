"""`reproduce`: the five papers, computed from their inputs and measured on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shakedown.cli._output import (
    counted,
    echo,
    force_option,
    note,
    print_json,
    print_rows,
    results_so_far,
    rows_options,
)
from shakedown.cli._types import FILE, OutputFolder, Whole
from shakedown.reporting.columns import Column, Selection

if TYPE_CHECKING:
    from shakedown.papers.paper import Reproduction
    from shakedown.papers.replication import Replication


def _columns(given: dict[str, Any]) -> Sequence[Column]:
    from shakedown.papers.text import CLAIMS, SUMMARY

    return SUMMARY if given["paper"] == "all" else CLAIMS


@click.command("reproduce", epilog="Example: shakedown reproduce tls-psk --no-measure")
@click.argument("paper", metavar="PAPER")
@click.option(
    "--out",
    type=OutputFolder(),
    help="Write pages, figures (SVG, PNG, CSV) and rows into this folder.",
)
@click.option(
    "--repeat",
    metavar="N",
    type=Whole(min=1),
    help="Handshakes of each suite that is measured.  [default: 45]",
)
@click.option("--no-measure", is_flag=True, help="Compute from the papers' own inputs only.")
@click.option(
    "--measured",
    type=FILE,
    help="Read measured figures (measured.jsonl of an --out folder) instead of measuring.",
)
@force_option
@rows_options(_columns)
def command(
    paper: str,
    out: Path | None,
    repeat: int | None,
    no_measure: bool,
    measured: Path | None,
    force: bool,
    selection: Selection,
) -> None:
    """Reproduce a paper's tables, figures and claims, and rerun its handshakes on this machine.

    PAPER is wtls-nokia7650, wtls-palm, tls-psk, ssl-pda, aka-ssl or all. The exit status is 0 even if a
    claim differs.
    """
    from shakedown import papers
    from shakedown.api.papers import reproduce
    from shakedown.papers.replication import ROUNDS
    from shakedown.papers.write import check

    names = papers.names(paper)
    if sum((no_measure, measured is not None, repeat is not None)) > 1:
        raise click.UsageError("--repeat, --no-measure and --measured exclude each other")
    if out is not None:
        check(names, out, replace=force)
    rounds: list[Replication] = []

    def show_so_far() -> None:
        if rounds:
            _write_and_show(papers.reproduce(names, measured=rounds[-1]), out, force, selection)

    with (
        results_so_far(rounds, show_so_far, min(repeat or ROUNDS, ROUNDS), "rounds measured"),
        counted("measuring") as update,
    ):
        done = reproduce(
            paper,
            repeat=repeat,
            measured=measured,
            measure=not no_measure,
            progress=update,
            on_round=rounds.append,
        )
    _write_and_show(done, out, force, selection)


def _write_and_show(
    done: Sequence[Reproduction], out: Path | None, force: bool, selection: Selection
) -> None:
    """Writes the folder, and prints what it holds, even if it cannot be written."""
    from shakedown.papers.write import write

    try:
        if out is not None:
            with counted("drawing") as update:
                write(done, out, replace=force, progress=update)
    finally:
        _show(done, selection)
    if out is not None:
        note(f"pages, figures, rows: {out}")


def _show(done: Sequence[Reproduction], selection: Selection) -> None:
    if selection.json:
        print_json([row for one in done for row in one.rows])
        return
    from shakedown.papers.text import CLAIMS, SUMMARY, SUMMARY_TITLE, claim_rows, differences, summary_rows

    if len(done) == 1:
        print_rows(CLAIMS, claim_rows(done[0]), selection, title=f"{done[0].data.title}: claims")
        for line in () if selection.csv else differences(done[0]):
            echo(line)
    if len(done) > 1 or not selection.csv:
        which = Selection() if len(done) == 1 else selection
        print_rows(SUMMARY, summary_rows(done), which, title=SUMMARY_TITLE)
