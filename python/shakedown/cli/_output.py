"""How commands print: JSON, tables, lines, progress. All that reaches a terminal goes through here.

Names and notes come from files that others wrote: whatever is printed is made visible first.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

import click

from shakedown.files.text import json_safe, visible, visible_lines

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from shakedown.results.folder import Results

WIDTH_WHEN_NOT_A_TERMINAL = 200
"""Columns given to tables in pipes and files, so that nothing is folded for a screen that isn't there."""

REFRESH_EVERY_S = 0.1

Command = TypeVar("Command", bound=Callable[..., object])

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print only JSON on standard output: an array of objects."
)

force_option = click.option("--force", is_flag=True, help="Replace files that exist.")


def print_json(objects: Sequence[object]) -> None:
    """One JSON array on standard output; figures that are not numbers would be a defect, so they raise."""
    from shakedown.schema.base import encode_pretty

    click.echo(json_safe(encode_pretty(list(objects))))


class JsonArray:
    """A JSON array on standard output whose objects are printed as they come."""

    def __init__(self) -> None:
        """Opens it."""
        self._separator = "["
        self.count = 0

    def add(self, one: object) -> None:
        """Prints an object."""
        from shakedown.schema.base import encode_pretty

        text = encode_pretty([one]).removeprefix("[").removesuffix("]").rstrip("\n")
        click.echo(self._separator + json_safe(text), nl=False)
        self._separator = ","
        self.count += 1

    def close(self) -> None:
        """Closes it."""
        click.echo("\n]" if self.count else "[]")


def raw_json(text: str) -> None:
    """JSON that is ready, as it is."""
    sys.stdout.write(json_safe(text))


def echo(line: str) -> None:
    """A line of data on standard output."""
    click.echo(visible(line))


def echo_folded(line: str) -> None:
    """A long line of data: folded between words where it goes to a terminal."""
    console().print(visible(line), soft_wrap=not sys.stdout.isatty())


def echo_lines(text: str) -> None:
    """A text of several lines on standard output."""
    click.echo(visible_lines(text), nl=not text.endswith("\n"))


def note(message: str) -> None:
    """A remark that is not data, on standard error."""
    click.echo(visible(message), err=True)


def console() -> Console:
    """The terminal for people; colours only where it has them and NO_COLOR does not forbid them.

    Text is printed as it is: files have brackets in their names, and addresses what elsewhere is an emoji.
    Nothing in it can move the cursor.
    """
    from rich.console import Console
    from rich.segment import Segment

    class SafeConsole(Console):
        """A console whose texts are visible, whatever they hold."""

        def render(self, *arguments: Any, **options: Any) -> Iterable[Segment]:  # noqa: ANN401 - rich's own
            for segment in super().render(*arguments, **options):
                text = segment.text
                if segment.control or text.replace("\n", "").isprintable():
                    yield segment
                else:
                    yield Segment(visible_lines(text).replace("\t", "\\t"), segment.style)

        def on_broken_pipe(self) -> None:
            """As for every other line, in place of rich's own exit status."""
            raise BrokenPipeError

    width = None if sys.stdout.isatty() else WIDTH_WHEN_NOT_A_TERMINAL
    return SafeConsole(width=width, highlight=False, markup=False, emoji=False)


class _StopError(Exception):
    """SIGTERM has come."""


@contextmanager
def until_stopped() -> Iterator[None]:
    """SIGTERM and Ctrl-C end what is inside, as they are meant to."""
    import signal

    def stop(_signal: int, _frame: object) -> None:
        raise _StopError

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    except (_StopError, KeyboardInterrupt):
        pass
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def stopped_like_interrupted() -> Iterator[None]:
    """SIGTERM does as Ctrl-C does: what is inside keeps what it has found so far."""
    import signal

    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def announce(line: str) -> None:
    """A line that is flushed at once."""
    echo(line)
    sys.stdout.flush()


def show(tables: Iterable[RenderableType]) -> None:
    """Tables, and lines between them."""
    screen = console()
    for table in tables:
        screen.print(table)


def show_results(results: Results) -> None:
    """All tables of an experiment: measured, modelled, captured."""
    from shakedown.experiments.figure_kinds import KINDS, kind

    screen = console()
    # Captures are run first, and shown last: measured figures are what most experiments are for.
    for name in sorted(KINDS, key=lambda name: name == "captured"):
        for table in kind(name).terminal(results, screen.width):
            screen.print(table)


@contextmanager
def progress_bar(total: int, what: str) -> Iterator[Callable[[int, str], None]]:
    """A progress bar on standard error where that is a terminal, else nothing.

    Yields `update(done, label)`, where `done` counts towards `total`.
    """
    if not sys.stderr.isatty():
        yield lambda done, label: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    label = TextColumn("{task.description}", markup=False)
    columns = (label, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    # No thread refreshes it: nothing else shall run while something is measured. Nor may it take over
    # standard output, to which data goes meanwhile.
    bars = Progress(
        *columns,
        console=Console(stderr=True),
        transient=True,
        auto_refresh=False,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    with bars:
        task = bars.add_task(visible(what), total=total)
        drawn_s = 0.0

        def update(done: int, label: str) -> None:
            nonlocal drawn_s
            bars.update(task, completed=done, description=visible(label))
            now_s = monotonic()
            if now_s - drawn_s >= REFRESH_EVERY_S:
                bars.refresh()
                drawn_s = now_s

        yield update


@contextmanager
def live_line() -> Iterator[Callable[[str], None] | None]:
    """A line on standard error that is written over, where that is a terminal; else None."""
    if not sys.stderr.isatty():
        yield None
        return

    def put(line: str) -> None:
        sys.stderr.write(f"\r\x1b[K{visible(line)}")
        sys.stderr.flush()

    try:
        yield put
    finally:
        put("")
