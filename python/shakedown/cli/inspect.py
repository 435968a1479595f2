"""`inspect`: the handshakes in a capture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shakedown.cli._output import (
    echo,
    force_option,
    note,
    print_rows,
    progress_bar,
    raw_json,
    rows_options,
)
from shakedown.cli._types import FILE, Whole
from shakedown.reporting.columns import Column, Selection

if TYPE_CHECKING:
    from shakedown.native.captures import Inspected, Inspection

MAX_IN_FULL = 20
"""Limit of connections whose messages are printed; if there are more, each has one line."""

MAX_REFUSALS = 5
"""Limit of the notes on connections without a trace."""


def _columns(given: dict[str, Any]) -> Sequence[Column]:
    from shakedown.reporting.columns.captured import CONNECTIONS, MESSAGES

    return MESSAGES if given["numbers"] else CONNECTIONS


@click.command("inspect", epilog="Example: shakedown inspect handshake.pcap --summary")
@click.argument("capture", type=click.Path(path_type=Path), metavar="FILE.pcap")
@click.option("--keylog", type=click.Path(path_type=Path), help="Key log for decryption.")
@click.option(
    "--summary", is_flag=True, help=f"One line per connection.  [default: with more than {MAX_IN_FULL}]"
)
@click.option(
    "--connection",
    "numbers",
    type=Whole(min=0),
    multiple=True,
    metavar="N",
    help="Print connection N in full; may be repeated.",
)
@click.option(
    "--traces-out",
    type=FILE,
    help="Write traces for predict --traces, of completely visible connections.",
)
@force_option
@rows_options(_columns)
def command(
    capture: Path,
    keylog: Path | None,
    summary: bool,
    numbers: tuple[int, ...],
    traces_out: Path | None,
    force: bool,
    selection: Selection,
) -> None:
    """Read a capture: its connections, their handshake messages and bytes.

    Without a key log only the number of encrypted bytes is known. Connections are printed when they end,
    unfinished ones last. Their numbers follow the order of their first messages.
    """
    from shakedown.errors import InputError
    from shakedown.experiments.figure_kinds.captured import cut_short
    from shakedown.files.write import check_distinct
    from shakedown.native import captures

    check_distinct([traces_out], [capture, keylog])

    with ExitStack() as stack:
        size_mb = -(-capture.stat().st_size // 1_000_000) if capture.is_file() else 0
        bar = stack.enter_context(ExitStack())
        update = bar.enter_context(progress_bar(size_mb, "MB read"))
        found = captures.inspect(capture, keylog, progress=lambda read: update(read // 1_000_000, "MB read"))
        connections: Iterator[Inspected] = iter(found)
        if traces_out is not None:
            connections = stack.enter_context(_traces(traces_out, found, capture, force))
        if numbers:
            connections = _only(connections, found, capture, set(numbers), to_the_end=traces_out is not None)
        if selection.json:
            _print_json(connections)
        else:
            # Options for columns select one row per connection, unless connections are selected.
            listed = summary or (selection != Selection() and not numbers)
            _print_tables(connections, found, capture, bar, selection, summary=listed, in_full=bool(numbers))
    evicted = found.summary.evicted
    if evicted:
        note(
            f"{evicted:,} connections were emitted before their end: more were open at a time "
            "than memory is allowed for"
        )
    from shakedown.reporting.columns.captured import unread_line

    for line in (unread_line(found.summary), *found.summary.problems):
        if line and line != found.problem:
            note(line)
    if found.problem is not None:
        # The part that could be read has been printed; the exit status shows that it is incomplete.
        raise InputError(cut_short(capture, found.problem, found.summary.packets))


def _only(
    connections: Iterator[Inspected], found: Inspection, capture: Path, numbers: set[int], *, to_the_end: bool
) -> Iterator[Inspected]:
    """The connections with these numbers; stops reading after the last, unless `to_the_end`."""
    from shakedown.errors import InputError

    for one in connections:
        index = one.connection.index
        if index in numbers:
            numbers.remove(index)
            yield one
        if not numbers and not to_the_end:
            return
    if numbers:
        held = found.summary.connections
        there = f"from 0 to {held - 1}" if held else "none"
        line = f"{capture}: no connection {min(numbers)}; there are {held:,}: {there}"
        raise InputError(line + _unread(found.problem))


def _unread(problem: str | None) -> str:
    """The end of an error about missing connections, if the capture was not read completely."""
    return f"; the capture was not read completely: {problem}" if problem else ""


def _print_json(connections: Iterator[Inspected]) -> None:
    """Prints one array with one object per line; it is closed even if reading ends early."""
    raw_json("[")
    separator = "\n"
    try:
        for one in connections:
            raw_json(separator + one.json)
            separator = ",\n"
    finally:
        raw_json("\n]\n")


def _print_tables(
    connections: Iterator[Inspected],
    found: Inspection,
    capture: Path,
    bar: ExitStack,
    selection: Selection,
    *,
    summary: bool,
    in_full: bool,
) -> None:
    """Prints few connections in full, or many with one line each."""
    from shakedown.reporting.columns import captured as columns

    first = list(islice(connections, 0 if in_full else MAX_IN_FULL + 1))
    everyone = (one.connection for one in chain(first, connections))
    if summary or len(first) > MAX_IN_FULL:
        rows = [columns.connection_row(one) for one in everyone]
        bar.close()
        notes = [f"{capture}: {columns.summary_totals(found.summary)}"]
        print_rows(columns.CONNECTIONS, rows, selection, notes=notes)
        return
    bar.close()
    if selection.csv:
        print_rows(
            columns.MESSAGES, [row for one in everyone for row in columns.message_rows(one)], selection
        )
        return
    shown = False
    for one in everyone:
        if shown:
            echo("")
        print_rows(
            columns.MESSAGES,
            columns.message_rows(one),
            selection,
            title=columns.connection_title(one),
            notes=columns.remarks(one),
        )
        shown = True
    if not shown:
        held = found.summary
        others = f"{held.packets:,} packets, {held.other_flows:,} connections of other protocols"
        echo(f"{capture}: no handshake of TLS, DTLS or WTLS in it; {others}")


@contextmanager
def _traces(path: Path, found: Inspection, capture: Path, replace: bool) -> Iterator[Iterator[Inspected]]:
    """Yields the connections, and writes their traces as one JSON array, completely or not at all."""
    from shakedown.errors import InputError
    from shakedown.files.write import writing
    from shakedown.schema import encode

    refused: list[str] = []
    written = rejected = 0

    def passed() -> Iterator[Inspected]:
        nonlocal written, rejected
        for one in found:
            if one.trace is not None:
                file.write(",\n" if written else "[\n")
                file.write(encode(one.trace))
                written += 1
            elif one.refused is not None:
                rejected += 1
                if len(refused) < MAX_REFUSALS:
                    refused.append(one.refused)
            yield one

    with writing(path, replace=replace) as file:
        yield passed()
        if not written:
            reasons = "; ".join(refused[:3]) or "it has none"
            line = f"{capture}: no trace can be made from its connections: {reasons}"
            raise InputError(line + _unread(found.problem))
        file.write("\n]\n")
    for reason in refused:
        note(f"no trace: {reason}")
    if rejected > len(refused):
        note(f"no trace: {rejected - len(refused):,} more connections")
