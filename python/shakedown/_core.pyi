"""The native core: protocol stacks, and measurements of them.

Only `shakedown.native` may import this module.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

class CoreError(Exception):
    """Base of the core's errors; `str()` is one clear line."""

class InvalidSuite(CoreError, ValueError):
    """A malformed or impossible suite name."""

class InvalidOption(CoreError, ValueError):
    """An invalid option, for example an unknown certificate profile."""

class Unsupported(CoreError, ValueError):
    """A valid suite that cannot run; `str()` is the reason."""

class HandshakeFailed(CoreError):
    """A handshake ended without a connection."""

    side: Literal["client", "server"]
    state: str
    alert: str | None

class CaptureError(CoreError):
    """A capture that cannot be read or written."""

__version__: str
BUILD_PROFILE: Literal["release", "debug"]
OPENSSL_VERSION: str
MIN_VALUES: dict[str, int]

def canonical(suite: str) -> str: ...
def describe(suite: str) -> dict[str, Any]: ...
def suites(all: bool = False) -> list[dict[str, Any]]: ...
def stacks() -> list[dict[str, Any]]: ...
def measure(
    suite: str,
    repeat: int,
    *,
    options: Mapping[str, Any] | None = None,
    progress: Callable[[int], None] | None = None,
) -> dict[str, Any]: ...
def capture(
    suites: Sequence[str],
    path: str,
    *,
    keylog: str | None = None,
    options: Mapping[str, Any] | None = None,
    tickets: Mapping[str, int] = ...,
) -> None: ...
def machine() -> dict[str, Any]: ...
def primitives(
    *,
    filter: Sequence[str] | None = None,
    seconds: float = 1.0,
    back_to_back: bool = False,
    cache: str | None = None,
    progress: Callable[[int, int, str], None] | None = None,
    timed: Callable[[list[dict[str, Any]]], None] | None = None,
) -> list[dict[str, Any]]: ...
def profile_suites() -> list[tuple[str, int]]: ...
def primitive_names(filter: Sequence[str] | None = None) -> list[tuple[str, str, str]]: ...
def device_profile(timed: Sequence[Mapping[str, Any]], *, name: str, title: str | None, date: str) -> str: ...
def transfers(
    suite: str,
    sizes_bytes: Sequence[int],
    *,
    link: Literal["open", "wep"] = "open",
    repeat: int = 30,
    options: Mapping[str, Any] | None = None,
) -> list[dict[str, Any]]: ...
def load(
    config: Mapping[str, Any],
    *,
    suite: str | None = None,
    options: Mapping[str, Any] | None = None,
    progress: Callable[[dict[str, Any]], None] | None = None,
) -> dict[str, Any]: ...
def merge_loads(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None: ...
def connection_plans() -> list[tuple[str, int, str]]: ...
def connection_served(
    suite: str, seconds: float, processors: Sequence[int], *, options: Mapping[str, Any] | None = None
) -> dict[str, float]: ...
def connection_per_kib_us(processors: Sequence[int]) -> float: ...
def connection_line(points: Sequence[tuple[float, float]]) -> tuple[float, float]: ...

class Inspected:
    """A connection of a capture; each property is computed on access."""

    @property
    def connection(self) -> dict[str, Any]: ...
    @property
    def json(self) -> str: ...
    @property
    def trace(self) -> dict[str, Any] | None: ...
    @property
    def refused(self) -> str | None: ...

class Inspection:
    """A capture being read: its connections in the order in which they end."""

    def __iter__(self) -> Inspection: ...
    def __next__(self) -> Inspected: ...
    @property
    def summary(self) -> dict[str, Any]: ...
    @property
    def problem(self) -> str | None: ...

class OtherLibssl:
    """Handshakes and key generation with another libssl than the built-in one."""

    def __init__(self, path: str) -> None: ...
    def keygen(self, kind: str, curve: str | None) -> float | None: ...
    def handshakes(self, count: int, plan: Mapping[str, Any]) -> tuple[float, float]: ...

class Server:
    """A running server, which is stopped when the object is deleted."""

    def __init__(
        self, suites: Sequence[str], request: Mapping[str, Any], *, options: Mapping[str, Any] | None = None
    ) -> None: ...
    @property
    def address(self) -> str: ...
    @property
    def metrics_address(self) -> str | None: ...
    @property
    def roots(self) -> list[bytes]: ...
    @property
    def stack(self) -> dict[str, Any]: ...
    def stop(self) -> None: ...
    def cut(self) -> None: ...
    def wait(self, timeout_s: float) -> bool: ...
    def take_queue_traces(self) -> bytes: ...
    def summary(self) -> dict[str, Any]: ...

def inspect(
    path: str, keylog: str | None = None, *, progress: Callable[[int], None] | None = None
) -> Inspection: ...
def certs(request: Mapping[str, Any] | None) -> list[dict[str, Any]] | dict[str, Any]: ...
def named_by_chain(suite: str, options: Mapping[str, Any]) -> tuple[str, list[str]]: ...
def aka_suites(suite: str) -> tuple[str, str]: ...
def aka_run(suite: str, plan: str, progress: Callable[[int], None] | None = None) -> dict[str, Any]: ...
def aka_provision(
    folder: str, suite: str, home: str, serving: str, nodes: Sequence[str], subscribers: int
) -> dict[str, Any]: ...
def aka_hss(
    listen: str,
    file: str,
    *,
    first_message_s: float,
    listening: Callable[[str], None],
    stopped: Callable[[dict[str, Any]], None],
) -> None: ...
def aka_sgsn(
    options: Mapping[str, object],
    *,
    store: object | None,
    listening: Callable[[str, str | None], None],
    stopped: Callable[[dict[str, Any]], None],
) -> None: ...
def aka_mobile(
    options: Mapping[str, object], *, progress: Callable[[int], None] | None = None
) -> dict[str, Any]: ...
def eap_peer(
    options: Mapping[str, object],
    *,
    count: int,
    rate_per_s: float | None = None,
    identity: str = "",
    max_in_flight: int | None = None,
    resume: bool = False,
    timeout_s: float,
    progress: Callable[[int], None] | None = None,
) -> dict[str, Any]: ...
def eap_serve(
    options: Mapping[str, object],
    *,
    resume: bool,
    sessions: object | None = None,
    listening: Callable[[str, str], None],
    stopped: Callable[[dict[str, Any]], None],
) -> None: ...
def take_notices() -> list[str]: ...
def bearer_run(plan: Mapping[str, Any]) -> dict[str, Any]: ...
def bearer_check(plan: Mapping[str, Any]) -> dict[str, Any]: ...
def simulate_piece(spec: str, replication: int, part: tuple[int, int] | None = None) -> str: ...
def simulate_pieces(spec: str, threads: int) -> tuple[int, int, int]: ...
def simulate_longer(spec: str, outcome: str, spent: int) -> str | None: ...
def simulate_merge(outcomes: Sequence[str]) -> str: ...
