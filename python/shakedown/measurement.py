"""The shape of one measured suite: what `measure --json` prints and `shakedown.measure` returns.

Times are microseconds of one thread's CPU time; bytes are bytes on the wire, record headers included.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

Side = Literal["client", "server"]
Class = Literal["key", "signature", "common"]

SIDES: tuple[Side, Side] = ("client", "server")
CLASSES: tuple[Class, Class, Class] = ("key", "signature", "common")


class Stack(TypedDict):
    """The implementation that ran the suite."""

    name: str
    version: str


class Spread(TypedDict):
    """Statistics over repetitions; `n` of them were not preempted."""

    median: float
    mean: float
    sd: float
    min: float
    max: float
    n: int


class Handshake(TypedDict):
    """What a whole handshake took each side."""

    client_us: Spread
    server_us: Spread


class Bytes(TypedDict):
    """What travelled."""

    client_to_server: float
    server_to_client: float
    total: float


Message = TypedDict(
    "Message",
    {
        "index": int,
        "from": Side,
        "name": str,
        "flight": int | None,
        "bytes": float,
        "generate_us": float,
        "process_us": float,
        "generate_mean_us": float,
        "process_mean_us": float,
    },
)
"""One handshake message; `flight` is None for messages that belong to none (TLS 1.3 tickets)."""

Operation = TypedDict(
    "Operation",
    {
        "side": Side,
        "message": int | None,
        "operation": str,
        "algorithm": str,
        "parameters": str | None,
        "class": Class,
        "us": float,
        "mean_us": float,
        "count": float,
        "bytes": float,
    },
)
"""One public-key call, or one kind of symmetric work in a message."""


class PerSide(TypedDict):
    """One figure for each side."""

    client: float
    server: float


class Unattributed(TypedDict):
    """Time of each side outside any message: medians, and means, which add up with those of messages."""

    client: float
    server: float
    client_mean: float
    server_mean: float


class Memory(TypedDict):
    """Bytes that the stack holds for one connection, and what is left when it is released; contexts apart."""

    client_peak_bytes: int
    client_held_bytes: int
    server_peak_bytes: int
    server_held_bytes: int
    context_bytes: PerSide
    released_bytes: int


class Measurement(TypedDict):
    """One suite, measured; `certificates` says whose each side that has any shows."""

    suite: str
    client_stack: Stack
    server_stack: Stack
    carrier: str
    credentials: str
    kind: str
    repeat: int
    preempted: int
    machine: dict[str, Any]
    clock: str
    handshake: Handshake
    bytes: Bytes
    flights: int
    messages: list[Message]
    operations: list[Operation]
    unattributed_us: Unattributed
    memory: NotRequired[Memory | None]
    certificates: NotRequired[dict[Side, Literal["own", "made"]]]
    transfers: NotRequired[list[dict[str, Any]]]


def time_by_class_us(measurement: Measurement, side: Side) -> dict[Class, float]:
    """Mean time of one side split by class, in µs; the three add up to the mean of the handshake.

    `key` and `signature` are the public-key operations of those classes; `common` is all the rest:
    symmetric work, parsing, bookkeeping, and what lies outside any message.
    """
    split: dict[Class, float] = dict.fromkeys(CLASSES, 0.0)
    for operation in measurement["operations"]:
        if operation["side"] == side and operation["class"] != "common":
            split[operation["class"]] += operation["mean_us"]
    total = measurement["handshake"]["client_us" if side == "client" else "server_us"]["mean"]
    split["common"] = total - split["key"] - split["signature"]
    return split
