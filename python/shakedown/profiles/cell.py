"""The table `[cell]` of a bearer profile: the shared medium of a cell, and the access to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, ClassVar

from shakedown.profiles.tables import MAX_MS, Table

SCHEDULERS = ("first-come", "round-robin", "proportional")
"""Which packet a base station serves next."""

RATE_LIMITS = {"above": 1e-3, "maximum": 1e15}
"""Of rates in bit/s."""


def _within(minimum: float, maximum: float = MAX_MS) -> dict[str, float]:
    """Limits of a key; without them, times are from 0 and counts from 1 to 10,000."""
    return {"minimum": minimum, "maximum": maximum}


@dataclass(frozen=True, slots=True)
class RandomAccess:
    """Preambles at opportunities, as in LTE, LTE-M and NB-IoT; each coverage class has its own.

    Attributes:
        opportunity_s: time from one opportunity to the next.
        preambles: of an opportunity.
        attempts: preambles that a client sends at most.
        response_s, connect_s: from an opportunity until a client without a response knows so, and until one
            with a response is connected.
        backoff_s: the longest pause before another attempt.
        grants: preambles that are answered at an opportunity; None: all.
        detection: ``certain``, or ``ramping``: the i-th preamble is found with probability 1 - e^-i.
        repetition, repetition_s, transmissions: probability and time of repeating one of the two messages
            after the response, and how often each is sent at most.
    """

    kind: ClassVar[str] = "random-access"

    opportunity_s: float = field(metadata=_within(1e-3))
    preambles: int
    attempts: int
    response_s: float
    connect_s: float
    backoff_s: float
    grants: int | None = None
    detection: str = "certain"
    repetition: float = field(default=0.0, metadata=_within(0, 1))
    repetition_s: float = 0.0
    transmissions: int = 1


@dataclass(frozen=True, slots=True)
class Circuits:
    """A channel for each client while it is there; without a free one it is refused."""

    kind: ClassVar[str] = "circuits"

    channels: int


@dataclass(frozen=True, slots=True)
class Csma:
    """CSMA/CA as in IEEE 802.11.

    Attributes:
        slot_s: an idle slot.
        window, max_window: slots that a first pause is drawn from, and any is at most.
        attempts: how often a frame is sent at most.
        frame_s: what a frame takes beside its bytes.
        acknowledgement_s: what follows a frame that was received.
        idle_s: how long the channel is idle before slots count.
    """

    kind: ClassVar[str] = "csma"

    slot_s: float = field(metadata=_within(1e-6))
    window: int = field(metadata=_within(1, 1_000_000))
    max_window: int = field(metadata=_within(1, 1_000_000))
    attempts: int
    frame_s: float
    acknowledgement_s: float
    idle_s: float


@dataclass(frozen=True, slots=True)
class Sense:
    """Unslotted carrier sense as in IEEE 802.15.4: its unit of waiting, exponents, how often the channel may
    be found busy, and the time from listening to sending.
    """

    unit_s: float
    min_exponent: int = field(metadata=_within(0, 20))
    max_exponent: int = field(metadata=_within(0, 20))
    busy: int
    turnaround_s: float


@dataclass(frozen=True, slots=True)
class Aloha:
    """Frames whenever there are any, after listening where there is `sense`.

    Attributes:
        channels: one of which is drawn for each frame.
        slot_s: frames begin at multiples of it; 0: at any time.
        attempts: how often a frame is sent at most.
        backoff_s: the longest pause before it is sent again.
        frame_s: what a frame takes beside its bytes.
    """

    kind: ClassVar[str] = "aloha"

    channels: int = 1
    slot_s: float = 0.0
    attempts: int = 1
    backoff_s: float = 0.0
    frame_s: float = 0.0
    sense: Sense | None = None


Entry = RandomAccess | Circuits
Contention = Csma | Aloha


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a bearer.

    Attributes:
        medium: what is shared; clients of bearers with the same one are in the same cells.
        up_bits_per_s, down_bits_per_s: its rates for clients of this bearer; None: as one client's.
        half_duplex: both directions share its time.
        scheduler: one of `SCHEDULERS`, where there is no contention.
        entry: how a client whose radio is idle gets in; None: at once.
        contention: how packets share the air; None: as the scheduler says.
    """

    medium: str
    up_bits_per_s: float | None
    down_bits_per_s: float | None
    half_duplex: bool
    scheduler: str
    entry: Entry | None
    contention: Contention | None


def parse_cell(table: Table) -> Cell:
    """Validate the table. Raises `InputError`."""
    shared = not any(name in table for name in ("circuits", "csma", "aloha"))
    entry, contention = (_one_of(names, table) for names in (_ENTRIES, _CONTENTIONS))
    rate = table.number if shared else table.maybe
    cell = Cell(
        medium=table.text("medium"),
        up_bits_per_s=rate("up_bps", **RATE_LIMITS),
        down_bits_per_s=rate("down_bps", **RATE_LIMITS),
        half_duplex=table.flag("half_duplex", default=False),
        scheduler=table.text("scheduler", "round-robin", SCHEDULERS),
        entry=entry,
        contention=contention,
    )
    table.finish()
    return cell


def _one_of(names: Mapping[str, type[Any]], table: Table) -> Any:  # noqa: ANN401 - an instance of one
    """The value of the given one of several sub-tables; None if none is given."""
    found = [name for name in names if name in table]
    if len(found) > 1:
        raise table.fail(f"[cell.{'] and [cell.'.join(found)}] at once; accepted: one of them")
    return _read(names[found[0]], table.table(found[0])) if found else None


_ENTRIES: dict[str, type[Entry]] = {"random_access": RandomAccess, "circuits": Circuits}
_CONTENTIONS: dict[str, type[Contention]] = {"csma": Csma, "aloha": Aloha}


def _read(cls: type[Any], table: Table) -> Any:  # noqa: ANN401 - an instance of `cls`
    """A table whose keys are the class's fields, times in milliseconds."""
    found: dict[str, Any] = {}
    for one in fields(cls):
        in_seconds = one.name.endswith("_s")
        key = f"{one.name[:-2]}_ms" if in_seconds else one.name
        default = None if one.default is MISSING else one.default
        counts = {"minimum": 1, "maximum": 10_000, **one.metadata}
        value: object
        if one.name == "sense":
            inner = table.maybe_table(key)
            value = None if inner is None else _read(Sense, inner)
        elif one.name == "detection":
            value = table.text(key, default, ("certain", "ramping"))
        elif one.name == "repetition":
            value = table.number(key, default, **one.metadata)
        elif in_seconds:
            value = table.seconds(key, default, **one.metadata)
        elif one.name == "grants":
            value = table.maybe_whole(key, **counts)
        else:
            value = table.whole(key, default, **counts)
        found[one.name] = value
    for least, most in (("window", "max_window"), ("min_exponent", "max_exponent")):
        if least in found and found[most] < found[least]:
            raise table.fail(f"{most} is {found[most]}; accepted: {least} or more")
    table.finish()
    return cls(**found)
