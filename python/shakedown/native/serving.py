"""Starts, observes and stops a server in this process; its threads belong to the core."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast

from msgspec import structs

from shakedown.errors import InputError
from shakedown.files.limits import check_readable
from shakedown.files.write import Destination
from shakedown.native import canonical, paths_as_text
from shakedown.native.core import extension
from shakedown.native.scenario import MeasureOptions
from shakedown.schema.arguments import checked
from shakedown.schema.base import convert
from shakedown.schema.options import ServerOptions
from shakedown.schema.serving import Serving

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

MAX_PORT = 65_535
POLL_INTERVAL_S = 0.2
"""How often a wait for a server checks for Ctrl-C."""


def parse_address(text: str) -> str:
    """Converts `HOST:PORT`, `[IPv6]:PORT`, or a port of this machine, to an IP address and a port.

    Raises `InputError`, also if the host has no address.
    """
    host, colon, port_text = text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    host = host[1:-1] if bracketed else host
    port = int(port_text) if port_text.isascii() and port_text.isdigit() and len(port_text) < 6 else -1
    if not 0 <= port <= MAX_PORT or (colon and not host) or (":" in host and not bracketed):
        raise InputError(
            f'"{text[:80]}" is not an address; accepted: HOST:PORT such as 127.0.0.1:4433 or [::1]:4433, or '
            "a PORT of this machine; port 0: any free port"
        )
    try:
        found = socket.getaddrinfo(host or "127.0.0.1", port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise InputError(f'the host "{host[:80]}" has no address: {_reason(error)}') from error
    address = found[0][4][0]
    return f"[{address}]:{port}" if found[0][0] == socket.AF_INET6 else f"{address}:{port}"


def _reason(error: Exception) -> str:
    """The description of an error, without its number."""
    text = getattr(error, "strerror", None) or str(error)
    return text[:1].lower() + text[1:]


@dataclass(frozen=True)
class QueueTraces:
    """Handshake messages in a server's queue, in the order in which workers started to process them.

    Attributes:
        arrived_s, taken_up_s, done_s: arrival, start and end of processing, since the server's start; each of
            shape (messages,).
        worked_s: the worker's total busy time when it started to process the message.
        handshake: the number of the message's handshake at its worker.
        is_first: whether the message is the first of its handshake.
    """

    arrived_s: npt.NDArray[np.float64]
    taken_up_s: npt.NDArray[np.float64]
    done_s: npt.NDArray[np.float64]
    worked_s: npt.NDArray[np.float64]
    handshake: npt.NDArray[np.int64]
    is_first: npt.NDArray[np.bool_]


class Server:
    """A running server. As a context manager it shuts down gracefully at the end of the block."""

    def __init__(self, inner: Any) -> None:  # noqa: ANN401 - the core's object
        self._inner = inner

    def __repr__(self) -> str:
        return f"Server({self.stack}, at {self.address})"

    @property
    def address(self) -> str:
        """The address of the listening socket, as IP:PORT."""
        return cast(str, self._inner.address)

    @property
    def metrics_address(self) -> str | None:
        """The address of its metrics, as IP:PORT; None if they are disabled."""
        return cast("str | None", self._inner.metrics_address)

    @property
    def roots_pem(self) -> str:
        """The root certificates for clients to trust; empty if no suite uses X.509 certificates."""
        return "".join(map(ssl.DER_cert_to_PEM_cert, self._inner.roots))

    @property
    def stack(self) -> str:
        """Name and version of the stack."""
        stack = self._inner.stack
        return f"{stack['name']} {stack['version']}"

    def stop(self) -> None:
        """Accepts no new connections and closes idle ones; the others have the drain time to finish."""
        self._inner.stop()

    def cut(self) -> None:
        self._inner.cut()

    def wait(self, timeout_s: float) -> bool:
        """Waits until the server has stopped, at most `timeout_s`; returns whether it has stopped."""
        return cast(bool, self._inner.wait(timeout_s))

    def take_queue_traces(self) -> QueueTraces:
        """The queue traces that were recorded since the last call."""
        import numpy as np

        rows = np.frombuffer(self._inner.take_queue_traces(), dtype="<u8").reshape(-1, 6).astype(np.int64)
        arrived_s, taken_up_s, done_s, worked_s = rows[:, :4].T * 1e-9
        return QueueTraces(arrived_s, taken_up_s, done_s, worked_s, rows[:, 4], rows[:, 5] == 1)

    def summary(self) -> Serving:
        return convert(self._inner.summary(), Serving)

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop() if error is None else self.cut()
        try:
            while not self.wait(POLL_INTERVAL_S):
                pass
        except KeyboardInterrupt:
            self.cut()
            raise


@checked
def start(
    suites: Sequence[str],
    listen: str,
    *,
    stack: str | None = None,
    settings: ServerOptions = ServerOptions(),
    options: MeasureOptions = MeasureOptions(),
    replace: bool = False,
) -> Server:
    """Starts a server of `suites` at `listen` (HOST:PORT).

    Of `options`, certificates, seed and tickets are used. The file `settings.traces_out` is a log of sampled
    handshakes, which other programs may read while it grows: it has its name as soon as the server listens.
    With `replace`, an existing file is replaced at that time; nothing is appended to it. Raises `InputError`,
    also if the address is in use or a suite cannot be served.
    """
    sides = options.checked()
    if sides.now is None:
        # A server on a network uses the present time, not the fixed day of handshakes in memory.
        sides = structs.replace(sides, now=int(time.time()))
    chosen = paths_as_text({**sides.given(), "stack": stack})
    chosen.pop("repeat", None)
    for file in (sides.chain, sides.key, sides.ca):
        if file is not None:
            check_readable(file)
    request = paths_as_text(
        {name: value for name, value in structs.asdict(settings).items() if value not in (None, False)}
    )
    request["listen"] = parse_address(listen)
    client_ca, traces_out = settings.client_ca, settings.traces_out
    if settings.metrics is not None:
        request["metrics"] = parse_address(settings.metrics)
    names = [canonical(suite) for suite in suites]
    core = extension()
    log = None if traces_out is None else Destination(Path(traces_out), replace=replace)
    if log is not None:
        request["traces_out"] = str(log.temp_path)
    try:
        # A server to which nothing refers is stopped immediately.
        server = Server(core.Server(names, request, options=chosen))
        if log is not None:
            log.commit()
    except (core.InvalidOption, core.Unsupported, core.InvalidSuite) as error:
        if client_ca is not None and str(client_ca) in str(error):
            check_readable(client_ca)
        raise InputError(str(error)) from error
    finally:
        # Has no effect after the commit.
        if log is not None:
            log.abandon()
    return server
