"""EAP-TLS over RADIUS: the peer with its access point, and the server."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from shakedown.errors import InputError
from shakedown.native import check_text, name_errors_as_input, paths_as_text
from shakedown.native.core import extension
from shakedown.schema import convert
from shakedown.schema.eap import Authentications, ServerTally
from shakedown.schema.options import EapOptions


def peer(
    server: str,
    secret: str,
    suite: str,
    options: EapOptions,
    *,
    progress: Callable[[int], None] | None = None,
) -> tuple[Authentications, str | None]:
    """Authenticates against a RADIUS server; returns the results, and the first failure as one line.

    Raises `InputError`.
    """
    if options.rate_per_s is not None and options.rate_per_s <= 0:
        raise InputError("a rate of 0 starts nothing; accepted: a rate above 0 such as 300/s")
    side = {name: getattr(options, name) for name in ("chain", "key", "ca", "password", "fragment")}
    check_text("identity", options.identity)
    with name_errors_as_input(suite):
        found = extension().eap_peer(
            paths_as_text({"address": server, "secret": secret, "suite": suite, **side}),
            count=options.count,
            rate_per_s=options.rate_per_s,
            identity=options.identity,
            max_in_flight=options.in_flight,
            resume=options.resume,
            timeout_s=options.timeout_s,
            progress=progress,
        )
    failure = found.pop("first_failure")
    found |= {"kind": "live", "server": server}
    return convert(found, Authentications), failure


def serve(
    options: Mapping[str, object],
    *,
    resume: bool,
    sessions: object | None = None,
    listening: Callable[[str, str], None],
    stopped: Callable[[ServerTally], None],
) -> None:
    """Serves EAP-TLS until a signal handler raises. `listening` is called with address and suite, `stopped`
    with the tally. `sessions` stores sessions, as `live.eap_sessions` does; default: memory.

    Raises `InputError`.
    """

    with name_errors_as_input(str(options["suite"])):
        extension().eap_serve(
            paths_as_text(options),
            resume=resume,
            sessions=sessions,
            listening=listening,
            stopped=lambda found: stopped(convert(found, ServerTally)),
        )
