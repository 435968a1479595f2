"""`serve`: a server of any suite, on a socket."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from shakedown.cli._options import command_of, only_with, suites_argument
from shakedown.cli._output import clear_echo, echo, force_option, json_option, note, print_json
from shakedown.cli._types import FILE, Whole

if TYPE_CHECKING:
    from shakedown.schema.serving import Serving

POLL_INTERVAL_S = 0.2
"""Interval at which the main thread, which handles signals, checks the server."""


@click.command(
    "serve",
    cls=command_of("schema.options.ServerOptions", before="chain", without=("max_queue_traces",)),
    epilog="Example: shakedown serve tls1.3/x25519/p256/server --listen 127.0.0.1:8443",
)
@suites_argument
@click.option(
    "--listen", required=True, metavar="HOST:PORT", help="Address to listen on; port 0: any free port."
)
@click.option(
    "--stack", metavar="NAME", help='Stack of the server; "stacks" lists them.  [default: the suite\'s]'
)
@click.option("--chain", type=FILE, help="The server's chain, leaf first.  [default: generated]")
@click.option("--key", type=FILE, help="The server's private key.  [default: in the file of --chain]")
@click.option("--ca", type=FILE, help="The root that clients trust, if not at the chain's end.")
@click.option("--ca-out", type=FILE, help="Write the roots for clients to trust, as PEM.")
@click.option("--password", envvar="SHAKEDOWN_PASSWORD", show_envvar=True, help="Password of these files.")
@click.option("--tickets", type=Whole(), metavar="N", help="Tickets after a full handshake.  [default: 0]")
@force_option
@json_option
def command(
    suites: tuple[str, ...],
    listen: str,
    stack: str | None,
    chain: Path | None,
    key: Path | None,
    ca: Path | None,
    client_ca: Path | None,
    ca_out: Path | None,
    password: str | None,
    tickets: int | None,
    traces_out: Path | None,
    force: bool,
    as_json: bool,
    **given: Any,  # noqa: ANN401 - fields of `ServerOptions`
) -> None:
    """Serve suites on a socket: TLS over TCP, WTLS over UDP, until SIGTERM or Ctrl-C.

    The response to each HTTP/1 request is the payload; other data gets the payload once. A second signal
    closes all connections immediately.
    """
    from shakedown import native
    from shakedown.files.write import check_distinct, check_free, write
    from shakedown.native import serving
    from shakedown.native.scenario import MeasureOptions
    from shakedown.schema.options import ServerOptions, options_of

    only_with("--chain", chain is not None, key=key, ca=ca)
    for file in (ca_out, traces_out):
        if file is not None:
            check_free(file, force)
    check_distinct([ca_out, traces_out], [chain, key, ca, client_ca])
    options = options_of(
        MeasureOptions, {"chain": chain, "key": key, "ca": ca, "password": password, "tickets": tickets}
    )
    settings = options_of(ServerOptions, {"client_ca": client_ca, "traces_out": traces_out, **given})
    server = serving.start(
        suites,
        listen,
        stack=stack,
        settings=settings,
        options=options,
        replace=force,
    )
    for remark in native.take_notices():
        note(remark)
    if ca_out is not None:
        write(ca_out, server.roots_pem, replace=force)

    def end(_signal: int, _frame: FrameType | None) -> None:
        # The first signal shuts down gracefully, the second one immediately.
        clear_echo()
        server.cut() if signalled else server.stop()
        signalled.append(True)

    signalled: list[bool] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    line = f"listening on {server.address} ({', '.join(map(native.canonical, suites))}; {server.stack})"
    if server.metrics_address is not None:
        line += f", metrics at http://{server.metrics_address}/metrics"
    if as_json:
        note(line)
    else:
        echo(line)
    sys.stdout.flush()
    while not server.wait(POLL_INTERVAL_S):
        pass
    summary = server.summary()
    if as_json:
        print_json([summary])
    else:
        echo(_stopped(summary))


def _stopped(summary: Serving) -> str:
    from shakedown.reporting.figures import count

    done = summary.handshakes
    failed = sum(done.failed.values())
    causes = ", ".join(f"{cause} {times:,}" for cause, times in sorted(done.failed.items()))
    parts = [
        f"stopped: {count(done.full + done.resumed, 'handshake')} ({done.resumed:,} resumed)",
        f"{failed:,} failed" + (f" ({causes})" if causes else ""),
        count(summary.answers, "response"),
    ]
    if summary.cut:
        parts.append(f"{count(summary.cut, 'connection')} cut")
    return ", ".join(parts)
