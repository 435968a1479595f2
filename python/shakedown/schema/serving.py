"""The output of `serve`: its counts when it stops, and the sampled handshakes that it writes."""

from __future__ import annotations

from typing import Literal

from shakedown.schema.base import Amount, Class, Count, Number, Object, Side, Text
from shakedown.schema.identity import StackId


class Times(Object, frozen=True, kw_only=True):
    """Times of one kind in seconds, null without times. Percentiles are exact to 0.1 %, and null for too few
    times: p90 for fewer than 10, p95 for fewer than 20, p99 for fewer than 100.
    """

    count: Count
    mean: Number | None
    p50: Number | None
    p90: Number | None
    p95: Number | None
    p99: Number | None
    max: Number | None
    second_moment_s2: Number | None


class Handshakes(Object, frozen=True, kw_only=True):
    """Handshakes by outcome; `failed` by cause: the name of an alert, or another event."""

    full: Count
    resumed: Count
    failed: dict[str, Count]


class Queue(Object, frozen=True, kw_only=True):
    """A server's queue of handshake messages; a message is the data that is received at once.

    A message waits from its arrival, by the kernel's time stamp, until a worker starts to process it. Its
    service consists of reading, the stack's work and the answer. `first_wait_s` is the wait of a handshake's
    first message; `handshake_wait_s` and `handshake_service_s` are sums over all messages of a handshake.
    `worked_s` is the busy time of all workers together.
    """

    message_wait_s: Times
    message_service_s: Times
    first_wait_s: Times
    handshake_wait_s: Times
    handshake_service_s: Times
    worked_s: Amount


class Serving(Object, frozen=True, kw_only=True):
    """A server's counts, over all workers.

    `handshake_s` is the time from accepting the connection to the end of the handshake, `busy_s` the stack's
    work for one handshake. `queue` is null unless it was timed. `received_bytes` and `sent_bytes` are those
    of the sockets.
    """

    kind: Literal["live"]
    side: Literal["server"]
    suites: tuple[Text, ...]
    stack: StackId
    address: Text
    workers: Count
    elapsed_s: Amount
    accepted: Count
    handshakes: Handshakes
    handshake_s: Times
    busy_s: Times
    queue: Queue | None
    answers: Count
    pauses: Count
    idle_closed: Count
    cut: Count
    received_bytes: Count
    sent_bytes: Count
    traces: Count
    traces_lost: Count


class HalfMessage(Object, frozen=True, kw_only=True, rename={"sender": "from"}):
    """A message as one side saw it: `us` is that side's work on it, `waited_us` the time outside its work
    until the message arrived (due to peer, path, system and other connections); 0 for its own messages.
    """

    index: Count
    sender: Side
    name: Text
    flight: Count | None
    unit: Count
    retransmissions: Count
    bytes: Count
    us: Amount
    waited_us: Amount


class HalfOperation(Object, frozen=True, kw_only=True, rename={"class_": "class"}):
    """One public-key call, or one kind of symmetric work in a message."""

    side: Side
    message: Count | None
    operation: Text
    algorithm: str
    parameters: str
    class_: Class
    us: Amount
    count: Count
    bytes: Count


class HalfTrace(Object, frozen=True, kw_only=True):
    """A line of the file that `serve --traces-out` or `load --traces-out` writes: one sampled handshake, as
    only that side saw it. `client_address` is the client's end of the connection; it is the same on both
    sides unless addresses are translated between them. `connect_us` is the client's time until the transport
    was connected.
    """

    kind: Literal["live"]
    side: Side
    suites: tuple[Text, ...]
    stack: StackId
    protocol: Text
    cipher_suite: Text
    group: Text | None
    resumed: bool
    client_address: Text | None
    ended_unix_s: Amount
    clock: Text
    counter: Text
    connect_us: Amount | None
    total_us: Amount
    unattributed_us: Amount
    messages: tuple[HalfMessage, ...]
    operations: tuple[HalfOperation, ...]


PRINTED = {
    "serving": (Serving, "The object of serve --json."),
    "half-trace": (HalfTrace, "An object of the file that serve --traces-out writes."),
}
