"""EAP-TLS over RADIUS: the peer with its access point, and the server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from shakedown.native import complaints, extension, paths_as_text
from shakedown.schema import convert
from shakedown.schema.eap import Authentications, ServerTally


def peer(
    options: Mapping[str, object],
    *,
    identity: str,
    count: int,
    rate_per_s: float | None,
    in_flight: int | None,
    resume: bool,
    timeout_s: float,
    progress: Callable[[int], None] | None = None,
) -> tuple[Authentications, str | None]:
    """Authenticates against a RADIUS server; what came of it, and the first failure in a line.

    `options` holds address, secret and suite, and may hold chain, key, ca, password and fragment (bytes).
    Raises `InputError`.
    """
    core = extension()
    suite = str(options["suite"])
    with complaints(suite):
        found = core.eap_peer(
            paths_as_text(options),
            count=count,
            rate_per_s=rate_per_s,
            identity=identity,
            max_in_flight=in_flight,
            resume=resume,
            timeout_s=timeout_s,
            progress=progress,
        )
    failure = found.pop("first_failure")
    found |= {"kind": "live", "server": options["address"]}
    return convert(found, Authentications), failure


def serve(
    options: Mapping[str, object],
    *,
    resume: bool,
    sessions: object | None = None,
    listening: Callable[[str, str], None],
    stopped: Callable[[ServerTally], None],
) -> None:
    """Serves EAP-TLS until a signal's handler raises. `listening` is called with address and suite, `stopped`
    with the tally. `sessions` stores sessions, as `live.eap_sessions` does; default: memory.

    Raises `InputError`.
    """

    def tell(found: dict[str, Any]) -> None:
        stopped(convert(found, ServerTally))

    core = extension()
    with complaints(str(options["suite"])):
        core.eap_serve(
            paths_as_text(options), resume=resume, sessions=sessions, listening=listening, stopped=tell
        )
