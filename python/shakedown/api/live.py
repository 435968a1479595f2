"""Real sockets: servers of suites, and EAP-TLS peers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

from shakedown.native import eap
from shakedown.native.serving import Server, start
from shakedown.native.suite_names import listed
from shakedown.schema.arguments import checked
from shakedown.schema.eap import Authentications


@checked
def serve(
    suites: str | Sequence[str], listen: str = "127.0.0.1:0", *, stack: str | None = None, **settings: object
) -> Server:
    """Starts a server of `suites`. As a context manager it shuts down gracefully at the end of the block.

    Args:
        suites: what it serves at one address.
        listen: `HOST:PORT`; with port 0 a free port is chosen, see `Server.address`.
        stack: which implementation serves.
        settings: as `shakedown.native.serving.start` takes them.

    Raises:
        InputError: also where the address is taken, or a suite cannot be served.
    """
    return start(listed(suites), listen, stack=stack, **cast(Any, settings))


@checked
def authenticate(
    server: str,
    secret: str,
    suite: str,
    *,
    count: int = 1,
    rate_per_s: float | None = None,
    in_flight: int | None = None,
    identity: str = "anonymous@shakedown.test",
    resume: bool = False,
    timeout_s: float = 10.0,
    chain: str | Path | None = None,
    key: str | Path | None = None,
    ca: str | Path | None = None,
    password: str | None = None,
    fragment: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Authentications:
    """Authenticates by EAP-TLS against a RADIUS server; what failed is counted by its cause.

    Args:
        server: `ADDRESS:PORT`.
        secret: shared by access point and server.
        suite: the suite to negotiate.
        count: number of authentications.
        rate_per_s: new connections per second, in an open loop; None: one after the other.
        in_flight: limit of authentications at a time.
        identity: the identity that is sent unencrypted.
        resume: one full authentication first, uncounted; the others resume its session.
        timeout_s: timeout of a request.
        chain, key, password: of the peer; default: generated.
        ca: the root that the peer trusts.
        fragment: TLS bytes in an EAP packet.
        progress: called with the number done.

    Raises:
        InputError: for an invalid suite, file or number.
    """
    found, _ = eap.peer(
        {
            "address": server, "secret": secret, "suite": suite, "chain": chain, "key": key, "ca": ca,
            "password": password, "fragment": fragment,
        },
        identity=identity,
        count=count,
        rate_per_s=rate_per_s,
        in_flight=in_flight,
        resume=resume,
        timeout_s=timeout_s,
        progress=progress,
    )  # fmt: skip
    return found
