"""`eap`: EAP-TLS over RADIUS, as a peer against any server, and as a server for any supplicant."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shakedown.cli._options import FILE, Group
from shakedown.cli._output import announce, echo, json_option, note, print_json, progress_bar, until_stopped
from shakedown.cli._scenario import Duration, Rate

if TYPE_CHECKING:
    from shakedown.schema.eap import Authentications, AuthenticationTimes, ServerTally

MAX_TIMEOUT_S = 3600.0
"""The longest wait for one answer; what is meant as a time-out is shorter."""

_file = click.Path(path_type=Path)


def _common(command: Callable[..., object]) -> Callable[..., object]:
    """Options of both ends."""
    for option in (
        click.option(
            "--fragment",
            type=int,
            metavar="BYTES",
            help="TLS bytes in an EAP packet.  [default: 1398]",
        ),
        click.option(
            "--password", envvar="SHAKEDOWN_PASSWORD", show_envvar=True, help="Password of archives and keys."
        ),
        click.option("--ca", type=_file, metavar="FILE", help="The root that this side trusts."),
        click.option(
            "--key", type=_file, metavar="FILE", help="Private key of --chain.  [default: in the same file]"
        ),
        click.option(
            "--chain", type=_file, metavar="FILE", help="Chain that this side presents, leaf first."
        ),
        click.option(
            "--suite", required=True, metavar="SUITE", help="Suite to negotiate; no other is accepted."
        ),
        click.option(
            "--secret",
            required=True,
            envvar="SHAKEDOWN_SECRET",
            show_envvar=True,
            help="Secret shared by access point and RADIUS server.",
        ),
    ):
        command = option(command)
    return command


@click.group("eap", cls=Group)
def command() -> None:
    """EAP-TLS over RADIUS: authenticate as a peer, or serve supplicants."""


@command.command(
    "peer",
    epilog="Example: shakedown eap peer --server 127.0.0.1:1812 --secret s3cret --suite tls1.3/x25519",
)
@click.option("--server", required=True, metavar="ADDR:PORT", help="The RADIUS server.")
@_common
@click.option(
    "--identity",
    default="anonymous@shakedown.test",
    show_default=True,
    help="Identity that is sent unencrypted.",
)
@click.option("--count", type=int, default=1, show_default=True, help="Number of authentications.")
@click.option(
    "--rate",
    "rate_per_s",
    type=Rate(),
    help="New authentications per second, in an open loop: 300/s.  [default: one after the other]",
)
@click.option(
    "--in-flight", type=int, help="Limit of authentications in progress.  [default: 1; with --rate 16384]"
)
@click.option("--resume", is_flag=True, help="Resume the session of a first, uncounted authentication.")
@click.option(
    "--timeout",
    "timeout_s",
    type=Duration(MAX_TIMEOUT_S),
    default="10s",
    show_default=True,
    help="Timeout of a request.",
)
@json_option
def peer(
    server: str,
    identity: str,
    count: int,
    rate_per_s: float | None,
    in_flight: int | None,
    resume: bool,
    timeout_s: float,
    as_json: bool,
    **common: Any,  # noqa: ANN401 - options of both ends
) -> None:
    """Authenticate against a RADIUS server, once or at a rate.

    Without --chain and --ca both sides' certificates are generated ones, as those of "eap serve" on this
    machine.
    """
    from shakedown import native
    from shakedown.errors import InputError
    from shakedown.native import eap

    if rate_per_s is not None and rate_per_s <= 0:
        raise InputError("a rate of 0 starts nothing; accepted: a rate above 0, as 300/s")
    with progress_bar(count, "authenticating") as update:
        found, failure = eap.peer(
            {"address": server, **common},
            identity=identity,
            count=count,
            rate_per_s=rate_per_s,
            in_flight=in_flight,
            resume=resume,
            timeout_s=timeout_s,
            progress=lambda done: update(done, "authenticating"),
        )
    for remark in native.take_notices():
        note(remark)
    if as_json:
        print_json([found])
    else:
        _show(found)
    if found.completed > found.resumed and (resume or found.suite.endswith(("/resumed", "/ticket"))):
        note(
            f"{found.completed - found.resumed} of {found.completed} authentications did not resume a session"
        )
    if failure is not None:
        failed = sum(found.failed.values())
        raise click.ClickException(f"{failed} of {count} authentications failed; the first: {failure}")


@command.command(
    "serve",
    epilog="Example: shakedown eap serve --listen 127.0.0.1:1812 --secret s3cret --suite tls1.3/x25519",
    short_help="Serve supplicants until SIGTERM or Ctrl-C.",
)
@click.option(
    "--listen", required=True, metavar="ADDR:PORT", help="Address to listen on; port 0: any free port."
)
@_common
@click.option("--no-resume", is_flag=True, help="Issue no session that a peer could resume.")
@click.option(
    "--state",
    type=FILE,
    help="File that keeps sessions across restarts (SQLite).  [default: memory]",
)
def serve(
    listen: str,
    no_resume: bool,
    state: Path | None,
    **common: Any,  # noqa: ANN401 - options of both ends
) -> None:
    """Serve supplicants by EAP-TLS behind any access point, until SIGTERM or Ctrl-C.

    With --ca peers must present a certificate under that root. Without --chain and --ca both sides'
    certificates are generated ones, as those of "eap peer" on this machine.
    """
    from shakedown.errors import InputError
    from shakedown.live.eap_sessions import EapSessions
    from shakedown.native import eap

    if no_resume and state is not None:
        raise InputError("--state goes without --no-resume: there would be nothing to keep")

    kept = None if state is None else EapSessions(state)
    try:
        with until_stopped():
            eap.serve(
                {"address": listen, **common},
                resume=not no_resume,
                sessions=kept,
                listening=lambda address, suite: announce(f"serving {suite} by EAP-TLS on {address}"),
                stopped=_show_tally,
            )
    finally:
        if kept is not None:
            kept.close()
            if kept.failure is not None:
                note(f"warning: {state}: {kept.failure}: sessions were not kept")


def _show_tally(found: ServerTally) -> None:
    """What a server did, in a line, and why it rejected whom in others."""
    rejected = sum(found.rejected.values())
    echo(
        f"{found.accepted:,} accepted ({found.resumed:,} resumed), {rejected:,} rejected, "
        f"{found.abandoned:,} abandoned, {found.turned_away:,} turned away; "
        f"{found.duplicates:,} duplicates, {found.discarded:,} discarded"
    )
    for cause, times in sorted(found.rejected.items()):
        echo(f"  rejected: {times:,} ({cause})")


def _took(times: AuthenticationTimes, completed: int) -> str:
    """`mean 5.31 ms, median 5.2, p95 9.1, max 9.4; p99 needs 100 authentications`; of one its time."""
    from shakedown.native import least_values

    if completed == 1:
        return f"{times.mean * 1e3:.3g} ms"
    named = {"median": times.p50, "p95": times.p95, "p99": times.p99, "max": times.max}
    said = [f"mean {times.mean * 1e3:.3g} ms"]
    said += [f"{name} {value * 1e3:.3g}" for name, value in named.items() if value is not None]
    needed = [f"{name} needs {least_values()[name]}" for name, value in named.items() if value is None]
    return ", ".join(said) + (f"; {', '.join(needed)} authentications" if needed else "")


def _show(found: Authentications) -> None:
    """The result in lines."""
    echo(f"{found.suite} against {found.server}: {found.completed} completed, {found.resumed} resumed")
    for cause, times in sorted(found.failed.items()):
        echo(f"  failed: {times} ({cause})")
    if found.authentication_s is not None:
        took = found.authentication_s
        echo(
            f"  {found.round_trips} round trips, {found.fragments} fragments, "
            f"{found.eap_bytes:,} bytes of EAP, {found.radius_bytes:,} of RADIUS"
        )
        echo(f"  authentication time: {_took(took, found.completed)}")
    if found.msk_sha256 is not None:
        echo(f"  SHA-256 of the MSK: {found.msk_sha256}")
