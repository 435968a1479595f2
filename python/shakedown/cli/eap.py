"""`eap`: EAP-TLS over RADIUS, as a peer against any server, and as a server for any supplicant."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shakedown.cli._options import Group, command_of
from shakedown.cli._output import announce, echo, json_option, note, print_json, progress_bar, until_stopped
from shakedown.cli._types import FILE

if TYPE_CHECKING:
    from shakedown.schema.eap import Authentications, AuthenticationTimes, ServerTally


_suite = click.option(
    "--suite", required=True, metavar="SUITE", help="Suite to negotiate; no other is accepted."
)
_secret = click.option(
    "--secret",
    required=True,
    envvar="SHAKEDOWN_SECRET",
    show_envvar=True,
    help="Secret shared by access point and RADIUS server.",
)


@click.group("eap", cls=Group)
def command() -> None:
    """EAP-TLS over RADIUS: authenticate as a peer, or serve supplicants."""


@command.command(
    "peer",
    cls=command_of("schema.options.EapOptions", before="as_json"),
    epilog="Example: shakedown eap peer --server 127.0.0.1:1812 --secret s3cret --suite tls1.3/x25519",
)
@click.option("--server", required=True, metavar="ADDR:PORT", help="The RADIUS server.")
@_secret
@_suite
@json_option
def peer(
    server: str,
    secret: str,
    suite: str,
    as_json: bool,
    **given: Any,  # noqa: ANN401 - fields of `EapOptions`
) -> None:
    """Authenticate against a RADIUS server, once or at a rate.

    Without --chain and --ca both sides use generated certificates, the same as "eap serve" on this machine.
    """
    from shakedown import native
    from shakedown.native import eap
    from shakedown.schema.options import EapOptions, options_of

    options = options_of(EapOptions, given)
    with progress_bar(options.count, "authenticating") as update:
        found, failure = eap.peer(
            server, secret, suite, options, progress=lambda done: update(done, "authenticating")
        )
    for remark in native.take_notices():
        note(remark)
    if as_json:
        print_json([found])
    else:
        _show(found)
    if found.completed > found.resumed and (options.resume or found.suite.endswith(("/resumed", "/ticket"))):
        note(
            f"{found.completed - found.resumed} of {found.completed} authentications did not resume a session"
        )
    if failure is not None:
        failed = sum(found.failed.values())
        # A RADIUS server does not respond to a client with a wrong secret.
        hint = "; check the address and the secret" if failure.startswith("no response") else ""
        raise click.ClickException(
            f"{failed} of {options.count} authentications failed; the first: {failure}{hint}"
        )


@command.command(
    "serve",
    cls=command_of(
        "schema.options.EapOptions", before="no_resume", only=("chain", "key", "ca", "password", "fragment")
    ),
    epilog="Example: shakedown eap serve --listen 127.0.0.1:1812 --secret s3cret --suite tls1.3/x25519",
    short_help="Serve supplicants until SIGTERM or Ctrl-C.",
)
@click.option(
    "--listen", required=True, metavar="ADDR:PORT", help="Address to listen on; port 0: any free port."
)
@_secret
@_suite
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

    With --ca peers must present a certificate under that root. Without --chain and --ca both sides use
    generated certificates, the same as "eap peer" on this machine.
    """
    from shakedown.errors import InputError
    from shakedown.live.eap_sessions import EapSessions
    from shakedown.native import eap

    if no_resume and state is not None:
        raise InputError("--state and --no-resume are both given; accepted: one of them")

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
                note(f"warning: {state}: {kept.failure}: sessions were not saved")


def _show_tally(found: ServerTally) -> None:
    """Prints a server's counts in one line, and its rejections by cause."""
    rejected = sum(found.rejected.values())
    echo(
        f"{found.accepted:,} accepted ({found.resumed:,} resumed), {rejected:,} rejected, "
        f"{found.abandoned:,} abandoned, {found.turned_away:,} turned away; "
        f"{found.duplicates:,} duplicates, {found.discarded:,} discarded"
    )
    for cause, times in sorted(found.rejected.items()):
        echo(f"  rejected: {times:,} ({cause})")


def _took(times: AuthenticationTimes, completed: int) -> str:
    """`mean 5.31 ms, median 5.20 ms, max 9.40 ms; p95 needs 20 authentications`; for one, only its time."""
    from shakedown.native import least_values
    from shakedown.reporting.figures import time

    if completed == 1:
        return time(times.mean)
    named = {"median": times.p50, "p95": times.p95, "p99": times.p99, "max": times.max}
    said = [f"mean {time(times.mean)}"]
    said += [f"{name} {time(value)}" for name, value in named.items() if value is not None]
    needed = [f"{name} needs {least_values()[name]}" for name, value in named.items() if value is None]
    return ", ".join(said) + (f"; {', '.join(needed)} authentications" if needed else "")


def _show(found: Authentications) -> None:
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
