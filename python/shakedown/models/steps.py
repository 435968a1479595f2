"""The handshake as the network model sees it: who sends how many bytes after how much work."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Literal

Side = Literal["client", "server"]
RECORD_BYTES = 16_384  # the longest record of TLS


@dataclass(frozen=True, slots=True)
class Step:
    """One message of a handshake.

    Attributes:
        sender: who sends it.
        size_bytes: its bytes, record headers included.
        work_s: the sender's time between what it did before and handing this message to the network.
        unit: datagram or write that carried it, counted per direction; None where nobody knows.
        taken_s: the receiver's time on it, from when all of it is there and those before are done with.
    """

    sender: Side
    size_bytes: float
    work_s: float = 0.0
    unit: int | None = None
    taken_s: float = 0.0


@dataclass(slots=True)
class Flight:
    """A run of messages of one sender: what is handed over when, counted from the flight's start.

    Attributes:
        sender: who sends it.
        writes: bytes handed over at once, with the sender's time since the flight's start.
        taken: how many of its bytes must be there for its receiver to begin what takes how many seconds.
    """

    sender: Side
    writes: list[tuple[float, float]] = field(default_factory=list)
    taken: list[tuple[float, float]] = field(default_factory=list)

    @property
    def taken_s(self) -> float:
        """The receiver's time on all of it."""
        return sum(work_s for _, work_s in self.taken)

    @property
    def size_bytes(self) -> float:
        """Bytes of the whole flight."""
        return sum(size for _, size in self.writes)


def runs(steps: Iterable[Step]) -> list[list[Step]]:
    """Steps of one sender after another, together."""
    flights: list[list[Step]] = []
    for step in steps:
        if flights and flights[-1][-1].sender == step.sender:
            flights[-1].append(step)
        else:
            flights.append([step])
    return flights


def written(steps: Sequence[Step], buffer_bytes: int) -> list[Flight]:
    """Flights as a TLS library with a buffer writes them to a stream.

    A full buffer is written; the rest of a record that is longer than the buffer is written at once, as
    libssl's buffering BIO does it; the end of the flight writes what is left.
    """
    flights = []
    for run in runs(steps):
        flight, clock_s, held = Flight(run[0].sender, taken=_taken(run)), 0.0, 0.0
        for step in run:
            clock_s += step.work_s
            left = step.size_bytes
            while left > 0.0:
                record = min(left, RECORD_BYTES)
                left -= record
                if not buffer_bytes or held + record <= buffer_bytes:
                    held += record
                    continue
                if held:
                    record -= buffer_bytes - held
                    flight.writes.append((clock_s, float(buffer_bytes)))
                    held = 0.0
                if record >= buffer_bytes:
                    flight.writes.append((clock_s, record))
                else:
                    held = record
        if held or not flight.writes:
            flight.writes.append((clock_s, held))
        elif clock_s > flight.writes[-1][0]:
            last_s, size = flight.writes[-1]
            flight.writes[-1] = (max(last_s, clock_s), size)
        flights.append(flight)
    return flights


def _taken(run: Sequence[Step]) -> list[tuple[float, float]]:
    """What a flight's receiver does, and when it can."""
    there = accumulate(step.size_bytes for step in run)
    return [(size, step.taken_s) for size, step in zip(there, run, strict=True) if step.taken_s > 0.0]


def packed(steps: Sequence[Step], datagram_bytes: float) -> list[Flight]:
    """Flights in datagrams: as their units say, else as few as hold their bytes. What a side does with a
    flight comes before it makes its own.
    """
    flights: list[Flight] = []
    for run in runs(steps):
        flight = Flight(run[0].sender, taken=_taken(run))
        clock_s = flights[-1].taken_s if flights else 0.0
        unit: int | None = None
        for step in run:
            clock_s += step.work_s
            left = step.size_bytes
            together = bool(flight.writes) and (step.unit is None or step.unit == unit)
            if together:
                _, held = flight.writes[-1]
                taken = min(left, datagram_bytes - held)
                flight.writes[-1] = (clock_s, held + taken)
                left -= taken
            while left > 0.0:
                flight.writes.append((clock_s, min(left, datagram_bytes)))
                left -= flight.writes[-1][1]
            unit = step.unit
        flights.append(flight)
    return flights
