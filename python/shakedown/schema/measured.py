"""The output of `measure --json` and `shakedown.measure`: one suite, measured on this machine.

Times are microseconds of one thread's CPU time; bytes are bytes on the wire, with record headers. The means
of the messages and of the unattributed time add up to the side's mean; medians need not add up.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from shakedown.schema.base import CLASSES, Amount, Class, Count, Number, Object, Side, Text
from shakedown.schema.identity import StackId
from shakedown.schema.trace import Message, Operation, Trace

Samples = tuple[Number, ...] | UnsetType
"""Every repetition's figure, in the order of the repetitions; omitted unless requested."""


class Spread(Object, frozen=True, kw_only=True):
    """Statistics over repetitions; `n` of them were not preempted."""

    median: Number
    mean: Number
    sd: Number
    min: Number
    max: Number
    n: Count
    samples: Samples = UNSET


class HandshakeTimes(Object, frozen=True, kw_only=True):
    """Each side's time for the whole handshake."""

    client_us: Spread
    server_us: Spread

    def of(self, side: Side) -> Spread:
        return self.client_us if side == "client" else self.server_us


class MeasuredMessage(Message, frozen=True, kw_only=True):
    """A message with the time of its sender (generate) and of its receiver (process)."""

    generate_us: Number
    process_us: Number
    generate_mean_us: Number
    process_mean_us: Number
    generate_samples_us: Samples = UNSET
    process_samples_us: Samples = UNSET


class MeasuredOperation(Operation, frozen=True, kw_only=True):
    """An operation with its time: median and mean."""

    us: Number
    mean_us: Number
    count: Amount
    bytes: Amount
    samples_us: Samples = UNSET


class UnattributedTime(Object, frozen=True, kw_only=True):
    """Time of each side outside any message: medians, and means."""

    client: Number
    server: Number
    client_mean: Number
    server_mean: Number
    client_samples: Samples = UNSET
    server_samples: Samples = UNSET

    def mean(self, side: Side) -> int | float:
        return self.client_mean if side == "client" else self.server_mean


class Accounting(Object, frozen=True, kw_only=True):
    """Attributed time of both sides over all repetitions used, the thread's CPU time, and their ratio."""

    attributed_us: Number
    cpu_us: Number
    coverage: Number


class PerSideBytes(Object, frozen=True, kw_only=True):
    """Bytes of each side."""

    client: Count
    server: Count


class Memory(Object, frozen=True, kw_only=True):
    """Heap bytes of a side for one connection: at the peak, and after the handshake.

    These exclude contexts. `released_bytes` are the bytes still allocated after the connection's release.
    """

    client_peak_bytes: Count
    client_held_bytes: Count
    server_peak_bytes: Count
    server_held_bytes: Count
    context_bytes: PerSideBytes
    released_bytes: Count


class Transfer(Object, frozen=True, kw_only=True):
    """Bulk data after the handshake: its bytes, the bytes on the link, and each side's time."""

    data_bytes: Count
    link: Text
    wire_bytes: Amount
    frames: Amount
    client_us: Spread
    server_us: Spread


class Machine(Object, frozen=True, kw_only=True):
    """The machine and the build that measured; null is unknown."""

    cpu: str
    cores: Count
    clock_hz: Count | None
    architecture: str
    os: str
    memory_bytes: Count | None
    build_profile: str
    version: str


class EapExchange(Object, frozen=True, kw_only=True):
    """The EAP packets of a handshake inside EAP-TLS, in the median repetition by bytes.

    `round_trips` counts the peer's responses, including the identity; RADIUS needs one Access-Request for
    each. `fragments` counts EAP packets with TLS data; it and `eap_bytes` are for both directions.
    """

    fragment_bytes: Count
    round_trips: Count
    fragments: Count
    eap_bytes: Count


class CountedMessage(Object, frozen=True, kw_only=True):
    """Instructions of a message's sender (generate) and receiver (process): medians."""

    generate: Count
    process: Count


class CountedOperation(Object, frozen=True, kw_only=True, rename={"class_": "class"}):
    """Instructions of an operation: the median."""

    side: Side
    message: Count | None
    operation: Text
    algorithm: str
    parameters: str | None
    class_: Class
    instructions: Count


class InstructionCounts(Object, frozen=True, kw_only=True):
    """Instructions of a handshake as counted by callgrind, on a processor with the features that it emulates.

    `messages` are those of the measurement, in order. `coverage` is the ratio of the instructions attributed
    to the two sides to those that the thread executed. `seed` is the seed of all random numbers; null if a
    stack supports none, so that counts vary from run to run.
    """

    client: Spread
    server: Spread
    messages: tuple[CountedMessage, ...]
    operations: tuple[CountedOperation, ...]
    coverage: Number
    seed: Count | None

    def of(self, side: Side) -> Spread:
        return self.client if side == "client" else self.server


class Measurement(Trace, frozen=True, kw_only=True):
    """One suite, measured.

    `server_software_note` states that the server's software does not offer the suite, or does not resume its
    sessions.
    """

    kind: Literal["measured"]
    client_stack: StackId
    server_stack: StackId
    repeat: Count
    preempted: Count
    machine: Machine
    clock: str
    counter: str
    handshake: HandshakeTimes
    messages: Annotated[tuple[MeasuredMessage, ...], msgspec.Meta(min_length=1)]
    operations: tuple[MeasuredOperation, ...]
    unattributed_us: UnattributedTime
    memory: Memory | None
    accounting: Accounting
    bytes_vary: bool
    seed: Count | None
    instructions: InstructionCounts | UnsetType = UNSET
    transfers: tuple[Transfer, ...] | UnsetType = UNSET
    eap: EapExchange | UnsetType = UNSET
    server_software_note: Text | UnsetType = UNSET

    def __repr__(self) -> str:
        client, server = (self.handshake.of(side).mean for side in ("client", "server"))
        return (
            f"Measurement({self.suite}, {self.stacks}: client {client:,.0f} µs, server {server:,.0f} µs, "
            f"{self.bytes.total:,} bytes, {self.flights} flights)"
        )

    def time_by_class_us(self, side: Side) -> dict[Class, float]:
        """Mean time of one side split by class, in µs; the three add up to the mean of the handshake.

        `key` and `signature` are the public-key operations of those classes; `common` is everything else:
        symmetric work, parsing, bookkeeping, and time outside any message.
        """
        split: dict[Class, float] = dict.fromkeys(CLASSES, 0.0)
        for operation in self.operations:
            if operation.side == side and operation.class_ != "common":
                split[operation.class_] += operation.mean_us
        split["common"] = self.handshake.of(side).mean - split["key"] - split["signature"]
        return split

    def without_samples(self) -> Measurement:
        """The measurement without the figures of each repetition."""
        found: Measurement = _without_samples(self)
        return found


def _without_samples(value: Any) -> Any:  # noqa: ANN401 - an object or a field of one
    if isinstance(value, tuple):
        return tuple(map(_without_samples, value))
    if not isinstance(value, Object):
        return value
    fields = {name: getattr(value, name) for name in value.__struct_fields__}
    return msgspec.structs.replace(
        value,
        **{name: UNSET if "samples" in name else _without_samples(one) for name, one in fields.items()},
    )


PRINTED = {
    "measurement": (Measurement, "An object of measure --json."),
}
