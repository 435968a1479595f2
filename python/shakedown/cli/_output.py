"""Prints JSON, tables, lines and progress. All output to a terminal passes through this module.
Names and notes may come from untrusted files, so control characters are escaped.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from shakedown.files.text import json_safe, visible, visible_lines
from shakedown.reporting.columns import Column, ObjectTable, Row, Selection, loaded, named

if TYPE_CHECKING:
    from pathlib import Path

    from shakedown.reporting.terminal.listing import Notes
    from shakedown.results.folder import Results

REFRESH_EVERY_S = 0.1
BAR = 20
MIN_FOLDED = 20
"""Minimum length of a line that is wrapped."""
CLEAR_LINE = "\r\x1b[K"
_progress_shown = False

Command = TypeVar("Command", bound=Callable[..., object])

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print only JSON on standard output: an array of objects."
)

force_option = click.option("--force", is_flag=True, help="Replace existing files.")


def rows_options(
    columns: str | Callable[[dict[str, Any]], Sequence[Column]],
) -> Callable[[Command], Command]:
    """Adds the options of commands that print rows, and `--json`; the command gets them as its `selection`.

    Names of columns are checked before anything is computed. `columns` is `MODULE.NAME` in
    `reporting.columns`, which is loaded when it is needed, or a function that returns the columns for the
    other options and the `selection`.
    """

    def known(given: dict[str, Any]) -> Sequence[Column]:
        found: Sequence[Column] = loaded(columns) if isinstance(columns, str) else columns(given)
        return found

    def completed(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
        typed = incomplete[: incomplete.rfind(",") + 1]
        keys = dict.fromkeys(one.key for one in known({**ctx.params, "selection": Selection()}))
        return [one for one in (typed + key for key in keys) if one.startswith(incomplete)]

    def decorated(command: Command) -> Command:
        from functools import wraps

        @wraps(command)
        def checked(
            *,
            wide: bool,
            shown: str | None,
            sort: str | None,
            as_csv: bool,
            as_json: bool,
            **given: Any,  # noqa: ANN401
        ) -> object:
            names = tuple(filter(None, (name.strip() for name in (shown or "").split(","))))
            if shown is not None and not names:
                raise click.UsageError(
                    '--columns names no column; accepted: names of columns such as "suite,bytes"'
                )
            selection = Selection(wide, names, sort or "", as_csv, as_json)
            if as_csv and as_json:
                raise click.UsageError("--csv and --json are both given; accepted: one of them")
            if names or sort:
                selection = selection.checked(known({**given, "selection": selection}))
            return command(selection=selection, **given)

        for option in (
            click.option("--csv", "as_csv", is_flag=True, help="Print CSV: all columns, exact values."),
            click.option(
                "--sort",
                metavar="COLUMN",
                help="Sort the rows by COLUMN; -COLUMN: descending.",
                shell_complete=completed,
            ),
            click.option(
                "--columns",
                "shown",
                metavar="A,B,…",
                help="Print only these columns, in this order.",
                shell_complete=completed,
            ),
            click.option("--wide", is_flag=True, help="Print all columns, however wide the table gets."),
            json_option,
        ):
            checked = option(checked)
        return cast("Command", checked)

    return decorated


def print_rows(
    columns: Sequence[Column],
    rows: Iterable[Row],
    selection: Selection,
    *,
    title: str = "",
    notes: Notes = (),
) -> None:
    if selection.csv:
        _print_csv(columns, rows, selection)
        return
    from shakedown.reporting.terminal.listing import listing, screen_width

    terminal = sys.stdout.isatty()
    bold = "\x1b[1m{}\x1b[0m" if terminal and not os.environ.get("NO_COLOR") else "{}"
    width = screen_width()
    for line in listing(
        columns, rows, selection, title=title, notes=notes, width=width, bold=bold, folded=_folded
    ):
        click.echo(line)


def print_objects(objects: Sequence[Any], selection: Selection, kind: str = "") -> None:
    """Prints objects of the schema, or dicts of one kind of them, as JSON or as a table."""
    if selection.json:
        print_json(objects)
        return
    from shakedown.reporting.columns.objects import object_table

    table = object_table(objects, kind)
    assert table is not None
    print_table(table, selection)


def print_table(table: ObjectTable, selection: Selection) -> None:
    every = table.shown is None or selection.columns or selection.csv
    columns = table.columns if every or table.shown is None else table.shown
    print_rows(columns, table.rows, selection, title=table.title, notes=table.notes)


def print_estimates(rows: Sequence[Mapping[str, Any]], selection: Selection, kind: str) -> None:
    """Prints dicts of one kind of objects as JSON, or as a table with a line per suite without figures."""
    if selection.json:
        print_json(rows)
        return
    good = [row for row in rows if "error" not in row]
    if good:
        print_objects(good, selection, kind)
    print_failures(rows, to_error=selection.csv)


def print_failures(rows: Iterable[Mapping[str, Any]], *, to_error: bool) -> None:
    """Prints a line with the reason for each suite without figures; `to_error`: on standard error."""
    for line in dict.fromkeys(f"{row['suite']}: {row['error']}" for row in rows if "error" in row):
        (note if to_error else echo)(line)


def _print_csv(columns: Sequence[Column], rows: Iterable[Row], selection: Selection) -> None:
    import csv

    shown = [named(columns, name) for name in selection.columns] or columns
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow([one.key for one in shown])
    for row in selection.ordered(columns, list(rows)):
        writer.writerow([_csv_value(row.get(one.key)) for one in shown])


def _csv_value(value: object) -> object:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return " ".join(map(str, value))
    return visible(value) if isinstance(value, str) else value


def print_json(objects: Sequence[object]) -> None:
    """Prints one JSON array on standard output; `nan` and infinity raise an error."""
    from shakedown.schema.base import encode_pretty

    click.echo(json_safe(encode_pretty(list(objects))))


class JsonArray:
    """A JSON array on standard output whose objects are printed one by one."""

    def __init__(self) -> None:
        self._separator = "["
        self.count = 0

    def add(self, one: object) -> None:
        from shakedown.schema.base import encode_pretty

        text = encode_pretty([one]).removeprefix("[").removesuffix("]").rstrip("\n")
        click.echo(self._separator + json_safe(text), nl=False)
        self._separator = ","
        self.count += 1

    def close(self) -> None:
        click.echo("\n]" if self.count else "[]")


def raw_json(text: str) -> None:
    sys.stdout.write(json_safe(text))


def echo(line: str) -> None:
    """Prints a line of data on standard output; on a terminal it is wrapped."""
    click.echo(_folded(visible(line)))


def _folded(line: str, *, err: bool = False) -> str:
    if len(line) < MIN_FOLDED or line.startswith("\x1b") or not (sys.stderr if err else sys.stdout).isatty():
        return line
    from textwrap import wrap

    from shakedown.reporting.terminal.listing import screen_width

    width = screen_width()
    if len(line) <= width:
        return line
    indent = line[: len(line) - len(line.lstrip())]
    lines = wrap(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines)


def echo_lines(text: str) -> None:
    click.echo(visible_lines(text), nl=not text.endswith("\n"))


def note(message: str) -> None:
    """Prints a note on standard error; on a terminal it is wrapped."""
    if _progress_shown:
        sys.stderr.write(CLEAR_LINE)
    click.echo(_folded(visible(message), err=True), err=True)


def note_all(remarks: Iterable[str]) -> None:
    """Prints notes; equal notes on several suites are combined."""
    suites: dict[tuple[str, bool], list[str]] = {}
    for remark in remarks:
        suite, _, about = remark.partition(": ")
        of_suite = bool(about) and "/" in suite and " " not in suite
        suites.setdefault((about if of_suite else remark, of_suite), []).append(suite)
    for (about, of_suite), names in suites.items():
        note(f"{', '.join(names)}: {about}" if of_suite else about)


class _StopError(Exception):
    """SIGTERM or Ctrl-C was received."""


@contextmanager
def until_stopped() -> Iterator[None]:
    """SIGTERM and Ctrl-C end the block normally. Further signals are ignored, because they would interrupt
    the block's summary.
    """
    import signal

    stopping = False

    def stop(_signal: int, _frame: object) -> None:
        nonlocal stopping
        clear_echo()
        if not stopping:
            stopping = True
            raise _StopError

    # A signal that is ignored, such as Ctrl-C in a background job, remains ignored.
    heard = [one for one in (signal.SIGTERM, signal.SIGINT) if signal.getsignal(one) is not signal.SIG_IGN]
    before = [signal.signal(one, stop) for one in heard]
    with suppress(_StopError, KeyboardInterrupt):
        try:
            yield
        finally:
            for one, handler in zip(heard, before, strict=True):
                signal.signal(one, handler)


def clear_echo() -> None:
    """Clears the "^C" that a terminal prints at the beginning of the next line. For signal handlers."""
    if sys.stderr.isatty():
        # Not by `sys.stderr`, because the signal may have interrupted a write to it.
        os.write(sys.stderr.fileno(), CLEAR_LINE.encode())


@contextmanager
def stopped_like_interrupted() -> Iterator[None]:
    """SIGTERM is handled like Ctrl-C: the block keeps its results so far."""
    import signal

    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def results_so_far(
    results: Sequence[object], show: Callable[[], None], total: int, what: str
) -> Iterator[None]:
    """If the block is interrupted or fails, the results so far are shown; SIGTERM interrupts it too.

    `what` are the results in words, as in "suites measured".
    """
    try:
        with stopped_like_interrupted():
            yield
    except KeyboardInterrupt:
        show()
        raise KeyboardInterrupt(f"interrupted: {len(results):,} of {total:,} {what}") from None
    except Exception:
        if results:
            show()
        raise


def announce(line: str) -> None:
    """Prints and flushes a line."""
    echo(line)
    sys.stdout.flush()


def show_results(results: Results) -> None:
    from shakedown.experiments.figure_kinds import KINDS, kind
    from shakedown.reporting.terminal.listing import screen_width

    # Captures are processed first and printed last, because most experiments are about measured figures.
    for name in sorted(KINDS, key=lambda name: name == "captured"):
        for line in kind(name).terminal(results, screen_width()):
            echo(line)


def write_page(results: Results, page: Path, **how: Any) -> None:  # noqa: ANN401 - as `write_report` takes it
    """Writes the report of an experiment's results, and prints its path."""
    from shakedown.reporting.html.write import write_report

    with doing("writing the report"):
        written = write_report(results, page, **how)
    note(f"report:  {written}")


@contextmanager
def progress_bar(total: int, what: str) -> Iterator[Callable[[int, str], None]]:
    """Shows progress in a line on standard error, if that is a terminal.

    Yields `update(done, label)`, where `done` counts towards `total`.
    """
    with live_line() as put:
        if put is None:
            yield lambda done, label: None
            return
        began_s = monotonic()
        drawn_s = 0.0

        def update(done: int, label: str) -> None:
            nonlocal drawn_s
            now_s = monotonic()
            if now_s - drawn_s < REFRESH_EVERY_S:
                return
            drawn_s = now_s
            if done >= total:
                # The remaining work is not counted.
                put(label or what)
                return
            left_s = (now_s - began_s) * (total - done) / done if done else None
            left = "" if left_s is None else f", {int(left_s) // 60}:{int(left_s) % 60:02} left"
            bar = "━" * (BAR * min(done, total) // max(total, 1))
            put(f"{bar:<{BAR}} {100 * done // max(total, 1):3}%{left}  {label or what}")

        put(f"{'':{BAR}}   0%  {what}")
        yield update


@contextmanager
def counted(what: str) -> Iterator[Callable[..., None]]:
    """A progress bar whose total may change: yields `update(done, total, label)`."""
    with progress_bar(1000, what) as update:
        yield lambda done, total, label="": update(1000 * done // max(total, 1), label)


@contextmanager
def doing(what: str) -> Iterator[None]:
    """Shows the name of a step on standard error during the block, if that is a terminal."""
    with live_line() as put:
        if put is not None:
            put(what)
        yield


@contextmanager
def live_line() -> Iterator[Callable[[str], None] | None]:
    """A line on standard error that is overwritten; None if that is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return

    from shutil import get_terminal_size

    def put(line: str) -> None:
        global _progress_shown
        # A line that the terminal wraps could not be overwritten.
        room, text = get_terminal_size().columns - 1, visible(line)
        sys.stderr.write(f"{CLEAR_LINE}{text if len(text) <= room else text[: room - 1] + '…'}")
        sys.stderr.flush()
        _progress_shown = bool(line)

    try:
        yield put
    finally:
        put("")
