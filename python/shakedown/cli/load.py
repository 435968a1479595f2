"""`load`: an open-loop load on a server that is there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from shakedown.cli._options import FILE, Share, cluster_of, computed_where
from shakedown.cli._output import (
    echo,
    force_option,
    json_option,
    live_line,
    note,
    print_json,
    show,
    stopped_like_interrupted,
)
from shakedown.cli._scenario import Duration, Rate

if TYPE_CHECKING:
    from distributed import Client

    from shakedown.experiments.cluster import Generators
    from shakedown.schema.live import Arrivals, LoadProgress, LoadRun

ARRIVALS = ("poisson", "deterministic", "closed")


@click.command("load")
@click.argument("target", metavar="TARGET")
@click.argument("suite", required=False, metavar="[SUITE]")
@click.option("--rate", "rate_per_s", type=Rate(), metavar="R", help="Starts a second: 300/s, 20/min.")
@click.option(
    "--arrivals",
    type=click.Choice(ARRIVALS),
    help="Gaps between starts: exponential, equal, or a client's next when its last is over.  "
    "[default: poisson; closed with --background and without --rate]",
)
@click.option(
    "--background",
    "background_per_s",
    type=Rate(),
    metavar="R",
    help="Starts a second, at exponential gaps, of another load beside this one.",
)
@click.option(
    "--duration",
    "duration_s",
    type=Duration(),
    default="10s",
    show_default=True,
    metavar="T",
    help="How long connections are started.",
)
@click.option("--count", "max_starts", type=click.IntRange(1, 10**9), metavar="N", help="The most starts.")
@click.option(
    "--clients",
    type=click.IntRange(1, 100_000),
    metavar="N",
    help="Clients, each with a session of its own; in a closed loop, connections at a time.  "
    "[default: 16; 1 with --background]",
)
@click.option(
    "--resumption",
    type=Share(),
    default=0.0,
    show_default=True,
    metavar="SHARE",
    help="Share of connections that resume a session.",
)
@click.option("--seed", type=click.IntRange(0, 2**53), default=1, show_default=True, metavar="N")
@click.option(
    "--timeout",
    "timeout_s",
    type=Duration(),
    default="10s",
    show_default=True,
    metavar="T",
    help="The longest that a connection may take from its start.",
)
@click.option("--max-open", type=click.IntRange(1, 100_000), metavar="N", help="The most open connections.")
@click.option("--http", metavar="PATH", help="Send an HTTP request for PATH and await the answer.")
@click.option("--await-first-byte", is_flag=True, help="Await the first byte of a server that speaks first.")
@click.option("--ca", type=FILE, metavar="FILE", help="Certificates to trust: the target's is checked.")
@click.option("--server-name", metavar="NAME", help="Name to ask for and to check.  [default: the host]")
@click.option("--no-check", is_flag=True, help="Do not check generated certificates either.")
@click.option("--client-stack", metavar="NAME", help='Runs the client; "stacks" lists them.')
@click.option("--client-chain", type=FILE, metavar="FILE", help="What clients present in mutual suites.")
@click.option("--client-key", type=FILE, metavar="FILE", help="Its key, where the chain's file has none.")
@click.option(
    "--require",
    "requirements",
    multiple=True,
    metavar="WHAT",
    help="A threshold that sets the exit status: handshake.p99<2s, failed.share<1%; may be repeated.",
)
@click.option(
    "--trace-count", type=click.IntRange(1, 10_000), metavar="N", help="Sample N handshakes: where time goes."
)
@click.option("--traces-out", type=FILE, metavar="FILE", help="Write the clients' halves of them.")
@click.option(
    "--server-traces", type=FILE, metavar="FILE", help='Join them with what "serve --traces-out" wrote.'
)
@click.option(
    "--emulate-device", metavar="DEVICE", help="Let clients take the time of this device, by waiting."
)
@computed_where
@click.option(
    "--authorized-target", "authorized_target", metavar="HOST", help="HOST is not this machine, and you may."
)
@click.option("--no-rate-cap", is_flag=True, help="Load another machine with more than 50/s.")
@force_option
@json_option
def command(
    target: str,
    suite: str | None,
    rate_per_s: float | None,
    arrivals: str | None,
    background_per_s: float | None,
    duration_s: float,
    clients: int | None,
    trace_count: int | None,
    traces_out: Path | None,
    processes: int | None,
    scheduler: str | None,
    scheduler_ca: Path | None,
    scheduler_cert: Path | None,
    scheduler_key: Path | None,
    no_check: bool,
    no_rate_cap: bool,
    force: bool,
    as_json: bool,
    **given: Any,  # noqa: ANN401 - as `loading.load` takes them
) -> None:
    """Load a TLS server or a WTLS gateway, and say what its clients saw.

    TARGET is HOST:PORT, tls://HOST:PORT or wtls://HOST:PORT. Without SUITE the client negotiates what its
    library offers. Times count from the planned start of a connection: a server that stalls cannot hide it.
    """
    from shakedown.errors import ShakedownError
    from shakedown.files.write import check_free
    from shakedown.live.load_test import UnwrittenTracesError, load

    cluster = cluster_of(processes, scheduler, scheduler_ca, scheduler_cert, scheduler_key)
    if traces_out is not None:
        check_free(traces_out, force)
    if arrivals is None:
        arrivals = "closed" if background_per_s is not None and rate_per_s is None else "poisson"
    # Told while workers are still there: their end takes a moment, in which Ctrl-C costs no figures.
    with stopped_like_interrupted(), _generators(cluster) as generators:
        unwritten: UnwrittenTracesError | None = None
        with _live_view(duration_s) as update:
            try:
                run = load(
                    target,
                    suite,
                    rate_per_s=rate_per_s,
                    arrivals=cast("Arrivals", arrivals),
                    background_per_s=background_per_s,
                    duration_s=duration_s,
                    clients=clients if clients is not None else 16 if background_per_s is None else 1,
                    trace_count=trace_count or 0,
                    traces_out=traces_out,
                    replace=force,
                    generators=generators,
                    check=not no_check,
                    rate_cap=not no_rate_cap,
                    progress=update,
                    **given,
                )
            except UnwrittenTracesError as error:
                # The run is not lost with them.
                unwritten, run = error, error.run
        _show(run, as_json)
        _warn(run, trace_count)
        if unwritten is not None:
            raise unwritten
        if run.interrupted:
            of = "" if generators is None else f", of {run.generators} of {generators.count()} workers"
            raise KeyboardInterrupt(f"interrupted: the figures are of the run so far{of}")
        failed = failures(run)
        if failed:
            raise ShakedownError("; ".join(failed))


def _warn(run: LoadRun, trace_count: int | None) -> None:
    for what, figures in (("generator", run), ("generator of the background", run.background)):
        if figures is not None and figures.saturated:
            note(
                f"warning: the {what} was the bottleneck ({', '.join(figures.saturated_by)}): "
                "figures are its own as much as the server's"
            )
    if trace_count and run.time_spent is None:
        note("warning: no sampled handshake came to its end without the clients' thread losing its processor")


@contextmanager
def _generators(cluster: AbstractContextManager[Client | None]) -> Iterator[Generators | None]:
    """Who loads: None for this process."""
    from shakedown.experiments.cluster import Generators

    with cluster as client:
        yield None if client is None else Generators(client)


def failures(run: LoadRun) -> list[str]:
    """Why a run that came to its end is a failure nevertheless."""
    found = [
        f"required {one.text}, got {_got(one.text, one.value)}" for one in run.requirements if not one.met
    ]
    if not run.completed:
        found.append(f"no handshake of {run.planned} was completed")
    resumed, required = run.resumed, any(one.text.startswith("resumed.") for one in run.requirements)
    if resumed.confirmed < resumed.asked and not required:
        found.append(
            f"the server resumed {resumed.confirmed} of {resumed.asked} connections that asked"
            + (f"; {resumed.without_session} had no session to offer" if resumed.without_session else "")
            + _tickets_instead(run)
        )
    return found


def _tickets_instead(run: LoadRun) -> str:
    """What to try where clients offered session IDs, and the server knew none of them."""
    parts = run.suite.split("/") if run.suite else []
    by_id = bool(parts) and parts[0] in ("tls1.0", "tls1.1", "tls1.2") and "ticket" not in parts
    authentication = next((part for part in parts if part in ("server", "requested", "mutual")), None)
    if run.resumed.confirmed or not by_id or authentication is None:
        return ""
    parts = [part for part in parts if part != "resumed"]
    parts.insert(parts.index(authentication) + 1, "ticket")
    return f"; for a server that resumes by tickets alone name the suite {'/'.join(parts)}"


def _got(text: str, value: float | None) -> str:
    """A metric's value, in the unit of its threshold."""
    if value is None:
        return "no value"
    metric = text.lstrip()
    if metric.startswith("rate"):
        return f"{value:.4g}/s"
    if metric.startswith("failed.count"):
        return f"{value:.0f}"
    return f"{value:.4g}" if ".share" in metric else f"{value:.4g} s"


def _show(run: LoadRun, as_json: bool) -> None:
    if as_json:
        print_json([run])
        return
    from shakedown.reporting.terminal.live import (
        background_lines,
        load_lines,
        load_table,
        time_spent_lines,
        time_spent_table,
    )

    for line in load_lines(run):
        echo(line)
    show([load_table(run)])
    if run.background is not None:
        for line in background_lines(run.background):
            echo(line)
        show([load_table(run.background)])
    if run.time_spent is not None:
        for line in time_spent_lines(run.time_spent):
            echo(line)
        show([time_spent_table(run.time_spent)])


@contextmanager
def _live_view(duration_s: float) -> Iterator[Callable[[LoadProgress], None] | None]:
    """A line on standard error that says how far a run is, where that is a terminal."""
    from shakedown.reporting.terminal.live import progress_line

    with live_line() as put:
        yield None if put is None else lambda now: put(progress_line(now, duration_s))
