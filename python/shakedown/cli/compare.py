"""`compare`: whether two runs, or two conditions, differ."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.exceptions import Exit

from shakedown.cli._output import (
    echo_lines,
    note,
    print_json,
    print_rows,
    progress_bar,
    results_so_far,
    rows_options,
)
from shakedown.cli._types import SHARE, Whole
from shakedown.reporting.columns import Selection

if TYPE_CHECKING:
    from shakedown.schema.comparison import Comparison

FOLDER = click.Path(path_type=Path)


@click.command(
    "compare",
    epilog="Example: shakedown compare --pair tls1.2/psk tls1.3/psk --blocks 12",
)
@click.argument("folders", nargs=-1, type=FOLDER, metavar="[BEFORE AFTER]")
@click.option(
    "--pair",
    nargs=2,
    metavar='"SUITE …" "SUITE …"',
    help="Measure two conditions alternately: NAME=VALUE for the environment, then arguments of measure.",
)
@click.option(
    "--program",
    type=click.Path(dir_okay=False, path_type=Path),
    help="With --pair: another build, which runs the second condition.",
)
@click.option(
    "--blocks",
    metavar="N",
    type=Whole(4, 1000),
    help="With --pair: number of blocks. In a block one process per condition measures at least ten times.  "
    "[default: 24]",
)
@click.option(
    "--margin",
    type=SHARE,
    help="Differences within it are equivalent.  [default: 1%]",
)
@click.option(
    "--floor",
    type=SHARE,
    help="Known difference between two runs of one build; widens each interval.  [default: 0%]",
)
@click.option("--across", is_flag=True, help="Compare times although machines, clocks or versions differ.")
@click.option(
    "--fail-if",
    "fail_if",
    multiple=True,
    metavar="GATE",
    help="Exit with status 1 if a figure has increased by more: 'server > 2%', 'bytes > 0%', "
    "'server.instructions > 0.2%'; may be repeated.",
)
@click.option(
    "--all",
    "every",
    is_flag=True,
    help="Print all figures.  [default: figures that differ, and the times of each side]",
)
@click.option("--markdown", "as_markdown", is_flag=True, help="Print Markdown, for a pull request.")
@rows_options("comparison.COMPARED")
def command(
    folders: tuple[Path, ...],
    pair: tuple[str, str] | None,
    program: Path | None,
    blocks: int | None,
    margin: float | None,
    floor: float | None,
    across: bool,
    fail_if: tuple[str, ...],
    every: bool,
    as_markdown: bool,
    selection: Selection,
) -> None:
    """Compare two results folders, or two conditions measured alternately, figure by figure.

    Each figure of each handshake is different, equivalent, undecided or not comparable. A folder may hold
    several results folders, the runs of one experiment. Times of folders are compared only if each
    contains at least ten runs, or with --floor.
    """
    import msgspec

    from shakedown.comparison import functions
    from shakedown.comparison.gates import failures, gate
    from shakedown.comparison.pairs import DEFAULT_BLOCKS

    if (len(folders) == 2) == (pair is not None) or len(folders) not in (0, 2):
        raise click.UsageError("compare takes two results folders, or --pair and two conditions")
    if as_markdown and (selection.csv or selection.json):
        raise click.UsageError("--markdown is given with --csv or --json; accepted: one of them")
    for name, given in (("--program", program), ("--blocks", blocks)):
        if given is not None and pair is None:
            raise click.UsageError(f"{name} requires --pair")
    if across and pair is not None:
        raise click.UsageError("--across and --pair are both given; accepted: one of them")
    gates = [gate(text) for text in fail_if]
    if pair is None:
        found = functions.compare(*folders, across=across, margin=margin, floor=floor)
    else:
        blocks = blocks or DEFAULT_BLOCKS
        so_far: list[Comparison] = []

        def show() -> None:
            if so_far:
                _show(so_far[-1], every, selection, as_markdown=as_markdown)

        with (
            results_so_far(so_far, show, blocks, "blocks measured"),
            progress_bar(blocks, "measuring") as update,
        ):
            found = functions.compare_pair(
                *pair,
                program=program,
                blocks=blocks,
                margin=margin,
                floor=floor,
                progress=update,
                on_block=so_far.append,
            )
    found = msgspec.structs.replace(found, failed=tuple(failures(gates, found.rows)))
    _show(found, every, selection, as_markdown=as_markdown)
    for line in () if as_markdown else found.failed:
        note(f"failed: {line}")
    if found.failed:
        raise Exit(1)


def _show(found: Comparison, every: bool, selection: Selection, *, as_markdown: bool) -> None:
    from shakedown.comparison.text import decisive, lacking, markdown, method, summary
    from shakedown.reporting.columns.comparison import COMPARED, compared_row

    rows = list(found.rows) if every or selection.csv else decisive(found.rows)
    if selection.json:
        print_json(found.rows)
    elif as_markdown:
        echo_lines(markdown(found, rows))
    else:
        shown = [compared_row(row) for row in rows]
        for row in shown if not selection.csv else ():
            for key in ("suite", "stacks"):
                if row[f"after_{key}"] == row[key]:
                    del row[f"after_{key}"]
        print_rows(
            COMPARED,
            shown,
            selection,
            title=f"{found.before} → {found.after}",
            notes=(*lacking(found), summary(found), method(found)),
        )
