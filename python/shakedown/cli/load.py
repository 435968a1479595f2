"""`load`: an open-loop or closed-loop load on a running server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shakedown.cli._options import Where, command_of, computed_where
from shakedown.cli._output import (
    echo,
    force_option,
    live_line,
    note,
    print_json,
    print_rows,
    rows_options,
    stopped_like_interrupted,
)
from shakedown.reporting.columns import Selection

if TYPE_CHECKING:
    from shakedown.schema.live import LoadProgress, LoadRun


@click.command(
    "load",
    cls=command_of("schema.options.LoadOptions", before="processes"),
    epilog="Example: shakedown load 127.0.0.1:8443 tls1.3/x25519/p256/server --rate 100/s --duration 5s",
)
@click.argument("target", metavar="TARGET")
@click.argument("suite", required=False, metavar="[SUITE]")
@computed_where
@force_option
@rows_options("live.TIMES")
def command(
    target: str,
    suite: str | None,
    cluster: Where,
    force: bool,
    selection: Selection,
    **given: Any,  # noqa: ANN401 - fields of `LoadOptions`
) -> None:
    """Load a TLS server or a WTLS gateway, and report the clients' times.

    TARGET is HOST:PORT, tls://HOST:PORT or wtls://HOST:PORT. Without SUITE the client offers the
    defaults of its library. Times are measured from the planned start of a connection, so they include the
    time in which a server does not respond.
    """
    from shakedown.errors import ShakedownError
    from shakedown.experiments.load_generators import Generators
    from shakedown.files.write import check_free
    from shakedown.live.load_test import UnwrittenTracesError, load
    from shakedown.schema.options import LoadOptions, options_of

    options = options_of(LoadOptions, given)
    if options.traces_out is not None:
        check_free(Path(options.traces_out), force)
    # Printed before the workers end, because that takes time, in which Ctrl-C could lose the figures.
    with stopped_like_interrupted(), cluster as client:
        generators = None if client is None else Generators(client)
        unwritten: UnwrittenTracesError | None = None
        with _live_view(options.duration_s) as update:
            try:
                run = load(target, suite, options, replace=force, generators=generators, progress=update)
            except UnwrittenTracesError as error:
                # The figures of the run are still printed.
                unwritten, run = error, error.run
        _show(run, selection)
        _warn(run, options.trace_count)
        if unwritten is not None:
            raise unwritten
        if run.interrupted:
            of = "" if generators is None else f", of {run.generators} of {generators.count()} workers"
            raise KeyboardInterrupt(f"interrupted: the figures are of the run so far{of}")
        failed = failures(run)
        if failed:
            raise ShakedownError("; ".join(failed))


def _warn(run: LoadRun, trace_count: int | None) -> None:
    for what, figures in (("generator", run), ("background generator", run.background)):
        if figures is not None and figures.saturated:
            note(
                f"warning: the {what} was the bottleneck ({', '.join(figures.saturated_by)}): "
                "its limits affect the figures"
            )
    if trace_count and run.time_spent is None:
        note("warning: all sampled handshakes were discarded, because the clients' thread was preempted")


def failures(run: LoadRun) -> list[str]:
    """The reasons why a complete run fails."""
    found = [
        f"not met: {one.text}: got {_got(one.text, one.value)}" for one in run.requirements if not one.met
    ]
    if not run.completed:
        found.append(f"none of {run.planned} handshakes was completed")
    resumed, required = run.resumed, any(one.text.startswith("resumed.") for one in run.requirements)
    if resumed.confirmed < resumed.asked and not required:
        found.append(
            f"the server resumed {resumed.confirmed} of the {resumed.asked} connections that should resume"
            + (f"; {resumed.without_session} had no session to offer" if resumed.without_session else "")
            + _tickets_instead(run)
        )
    return found


def _tickets_instead(run: LoadRun) -> str:
    """A hint if clients offered session IDs, and the server knew none of them."""
    parts = run.suite.split("/") if run.suite else []
    by_id = bool(parts) and parts[0] in ("tls1.0", "tls1.1", "tls1.2") and "ticket" not in parts
    authentication = next((part for part in parts if part in ("server", "requested", "mutual")), None)
    if run.resumed.confirmed or not by_id or authentication is None:
        return ""
    parts = [part for part in parts if part != "resumed"]
    parts.insert(parts.index(authentication) + 1, "ticket")
    return f"; if the server resumes only by ticket, name the suite {'/'.join(parts)}"


def _got(text: str, value: float | None) -> str:
    """A metric's value in the unit of its threshold."""
    if value is None:
        return "no value"
    metric = text.lstrip()
    if metric.startswith("rate"):
        return f"{value:.4g}/s"
    if metric.startswith("failed.count"):
        return f"{value:.0f}"
    if ".share" in metric:
        return f"{value:.4g}"
    from shakedown.reporting.figures import time

    return time(value)


def _show(run: LoadRun, selection: Selection) -> None:
    if selection.json:
        print_json([run])
        return
    from shakedown.reporting.columns.live import SPENT, TIMES, spent_rows, time_rows
    from shakedown.reporting.columns.notes import missing_percentiles
    from shakedown.reporting.terminal.live import background_lines, load_lines, time_spent_lines

    beside = [] if run.background is None else list(time_rows("background", run.background))
    if selection.csv:
        print_rows(TIMES, [*time_rows("load", run), *beside], selection)
        return
    for line in load_lines(run):
        echo(line)
    times = list(time_rows("load", run))
    print_rows(
        TIMES,
        times,
        selection,
        notes=lambda shown: missing_percentiles([*times, *beside], shown, "connections"),
    )
    if run.background is not None:
        for line in background_lines(run.background):
            echo(line)
        print_rows(TIMES, beside, selection)
    if run.time_spent is not None:
        for line in time_spent_lines(run.time_spent):
            echo(line)
        print_rows(SPENT, spent_rows(run.time_spent), Selection(wide=selection.wide))


@contextmanager
def _live_view(duration_s: float) -> Iterator[Callable[[LoadProgress], None] | None]:
    """Shows a run's progress in a line on standard error, if that is a terminal."""
    from shakedown.reporting.terminal.live import progress_line

    with live_line() as put:
        yield None if put is None else lambda now: put(progress_line(now, duration_s))
