"""Servers of suites and EAP-TLS peers on real sockets."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shakedown.native import eap
from shakedown.native.scenario import MeasureOptions
from shakedown.native.serving import Server, start
from shakedown.native.suite_names import listed
from shakedown.schema.arguments import checked
from shakedown.schema.eap import Authentications
from shakedown.schema.options import EapOptions, ServerOptions


@checked
def serve(
    suites: str | Sequence[str],
    listen: str = "127.0.0.1:0",
    *,
    stack: str | None = None,
    settings: ServerOptions = ServerOptions(),
    options: MeasureOptions = MeasureOptions(),
    replace: bool = False,
) -> Server:
    """Starts a server of `suites`. As a context manager it shuts down gracefully at the end of the block.

    Args:
        suites: the suites to serve, all at one address.
        listen: `HOST:PORT`; with port 0 a free port is chosen, see `Server.address`.
        stack: the stack that serves them.
        settings: workers, payload, time-outs, limits, metrics and samples.
        options: certificates, seed and tickets.
        replace: whether `settings.traces_out` may replace a file.

    Raises:
        InputError: for invalid arguments, if the address is in use, or if a suite cannot be served.
    """
    return start(listed(suites), listen, stack=stack, settings=settings, options=options, replace=replace)


@checked
def authenticate(
    server: str,
    secret: str,
    suite: str,
    options: EapOptions = EapOptions(),
    *,
    progress: Callable[[int], None] | None = None,
) -> Authentications:
    """Authenticates by EAP-TLS against a RADIUS server; failures are counted by cause.

    Args:
        server: `ADDRESS:PORT`.
        secret: shared by access point and server.
        suite: the suite to negotiate.
        options: number and rate of the authentications, identity, resumption, certificates and others.
        progress: called with the number of completed authentications.

    Raises:
        InputError: for an invalid suite, file or number.
    """
    found, _ = eap.peer(server, secret, suite, options, progress=progress)
    return found
