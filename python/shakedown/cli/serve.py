"""`serve`: a server of any suite, on a socket."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from shakedown.cli._options import FILE, suites_argument
from shakedown.cli._output import echo, force_option, json_option, note, print_json
from shakedown.cli._scenario import Duration

if TYPE_CHECKING:
    from shakedown.schema.serving import Serving

LOOK_EVERY_S = 0.2
"""How often the main thread, which sees signals, looks after the server."""


class BoundedDuration(Duration):
    """A positive duration: 5s, 250ms."""

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Reads it, up to a day."""
        found = super().convert(value, param, ctx)
        if not 0 < found <= 86_400:
            self.fail(f'"{value}" is no duration here; accepted: above 0 and up to 24h', param, ctx)
        return found


@click.command("serve")
@suites_argument
@click.option("--listen", required=True, metavar="HOST:PORT", help="Where; port 0 is any that is free.")
@click.option(
    "--stack", metavar="NAME", help='Runs the suites; "stacks" lists them.  [default: the suite\'s]'
)
@click.option(
    "--server-workers",
    "workers",
    type=click.IntRange(1, 1024),
    default=1,
    show_default=True,
    help="Threads that serve.",
)
@click.option(
    "--payload",
    "payload_bytes",
    type=click.IntRange(0, 1 << 40),
    default=0,
    show_default=True,
    metavar="BYTES",
    help="Bytes of an answer.",
)
@click.option(
    "--payload-when",
    type=click.Choice(["request", "handshake"]),
    default="request",
    show_default=True,
    help="Answer requests, or send the payload as soon as the handshake is over.",
)
@click.option("--chain", type=FILE, help="The server's chain, leaf first.  [default: generated]")
@click.option("--key", type=FILE, help="Its private key, if not in the same file.")
@click.option("--ca", type=FILE, help="The root that clients trust, if not at the chain's end.")
@click.option(
    "--client-ca", type=FILE, help="The root of clients' certificates, in suites that ask for them."
)
@click.option("--ca-out", type=FILE, help="Write the roots that clients are to trust, as PEM.")
@click.option("--password", envvar="SHAKEDOWN_PASSWORD", show_envvar=True, help="Password of these files.")
@click.option(
    "--tickets", type=click.IntRange(0, 16), metavar="N", help="Tickets after a full handshake.  [default: 0]"
)
@click.option(
    "--handshake-timeout",
    "handshake_timeout_s",
    type=BoundedDuration(),
    default="10s",
    show_default=True,
    help="For one handshake.",
)
@click.option(
    "--idle-timeout",
    "idle_timeout_s",
    type=BoundedDuration(),
    default="60s",
    show_default=True,
    help="Between two requests.",
)
@click.option(
    "--drain-timeout",
    "drain_timeout_s",
    type=BoundedDuration(),
    default="5s",
    show_default=True,
    help="For connections at the end.",
)
@click.option(
    "--max-handshakes",
    type=click.IntRange(1, 1 << 20),
    default=4096,
    show_default=True,
    help="Handshakes in progress; beyond, the oldest is given up.",
)
@click.option(
    "--max-connections",
    type=click.IntRange(1, 1 << 20),
    default=65536,
    show_default=True,
    help="Connections; beyond, none is accepted until one ends.",
)
@click.option("--metrics", metavar="HOST:PORT", help="Serve Prometheus metrics at /metrics there.")
@click.option("--traces-out", type=FILE, help="Write sampled handshakes, as JSON lines, as they come.")
@click.option(
    "--sample",
    type=click.IntRange(1, 1 << 40),
    default=100,
    show_default=True,
    metavar="N",
    help="Sample one handshake in N, for --traces-out and --metrics.",
)
@click.option("--queue-times", is_flag=True, help="Time the queue of messages, by the kernel's time stamps.")
@force_option
@json_option
def command(
    suites: tuple[str, ...],
    listen: str,
    chain: Path | None,
    key: Path | None,
    ca: Path | None,
    client_ca: Path | None,
    ca_out: Path | None,
    password: str | None,
    tickets: int | None,
    traces_out: Path | None,
    queue_times: bool,
    force: bool,
    as_json: bool,
    **given: Any,  # noqa: ANN401 - as `serving.start` takes them
) -> None:
    """Serve suites on a socket: TLS over TCP, WTLS over UDP, until SIGTERM or Ctrl-C.

    Requests of HTTP/1 clients are answered with the payload; what else a client sends first, with the payload
    alone. A second signal cuts connections that are left.
    """
    from shakedown import native
    from shakedown.files.write import check_distinct, check_free, write
    from shakedown.native import serving
    from shakedown.native.scenario import options_of

    for file in (ca_out, traces_out):
        if file is not None:
            check_free(file, force)
    check_distinct([ca_out, traces_out], [chain, key, ca, client_ca])
    options = options_of({"chain": chain, "key": key, "ca": ca, "password": password, "tickets": tickets})
    server = serving.start(
        suites,
        listen,
        options=options,
        client_ca=client_ca,
        traces_out=traces_out,
        replace=force,
        queue_times=queue_times or None,
        **given,
    )
    for remark in native.take_notices():
        note(remark)
    if ca_out is not None:
        write(ca_out, server.roots_pem, replace=force)

    def end(_signal: int, _frame: FrameType | None) -> None:
        # The first signal asks, the second insists.
        server.cut() if asked else server.stop()
        asked.append(True)

    asked: list[bool] = []
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
    while not server.wait(LOOK_EVERY_S):
        pass
    summary = server.summary()
    if as_json:
        print_json([summary])
    else:
        echo(_stopped(summary))


def _stopped(summary: Serving) -> str:
    """What the server did, in a line."""
    done = summary.handshakes
    failed = sum(done.failed.values())
    causes = ", ".join(f"{cause} {count}" for cause, count in sorted(done.failed.items()))
    parts = [
        f"stopped: {done.full + done.resumed} handshakes ({done.resumed} resumed)",
        f"{failed} failed" + (f" ({causes})" if causes else ""),
        f"{summary.answers} answers",
    ]
    if summary.cut:
        parts.append(f"{summary.cut} connections cut")
    return ", ".join(parts)
