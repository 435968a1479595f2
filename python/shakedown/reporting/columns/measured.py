"""Columns of measured handshakes and of their messages."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from shakedown.reporting.columns import ALWAYS, ROOM, USUAL, WIDE, Column, ObjectTable, Row, label
from shakedown.reporting.figures import (
    NOTHING,
    milliseconds,
    number,
    round_trips,
    share,
    time_us,
    whole,
)
from shakedown.schema.base import CLASSES, SIDES, builtins, opposite

if TYPE_CHECKING:
    from shakedown.schema.measured import CountedOperation, MeasuredOperation, Measurement

NOISY = 0.05
"""If half of the 95 % interval is at least this share of the mean, it is printed after the mean."""
THREE_DIGITS = 0.02
AIM = 0.04
"""The target for half of the interval. It is below `NOISY`, because the estimated number of repetitions is
uncertain.
"""
MAX_REPEAT = 2_000
MAX_SPENT_S = 2.0
"""Limit of the time for additional repetitions of a suite."""

CLASS_WORDS = {"key": "key exchange", "signature": "signatures", "common": "other"}


def uncertainty(row: Row, side: str) -> float:
    """Half of the 95 % interval of a side's mean, as a share of it."""
    mean, sd, used = row[f"{side}_us"], row[f"{side}_sd_us"], row["repeat"]
    if not mean or not sd or not used:
        return 0.0
    return student(int(used) - 1) * float(sd) / math.sqrt(used) / float(mean)


def student(degrees: int) -> float:
    """The 97.5th percentile of Student's t distribution, for means whose standard deviation is estimated
    from few repetitions. From three degrees of freedom on by Abramowitz and Stegun 26.7.5, with an error
    below 0.2 %.
    """
    if degrees < 3:
        return (math.inf, 12.706, 4.303)[degrees]
    z = 1.959964
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return math.fsum(term / degrees**power for power, term in enumerate(terms))


def mean_digits(row: Row, side: str) -> int:
    """Significant digits that the interval of a side's mean supports."""
    share_of_it = uncertainty(row, side)
    return 3 if share_of_it < THREE_DIGITS else 2 if share_of_it < 1.0 else 1


def _mean(side: str) -> Column:
    def text(row: Row) -> str:
        share_of_it = uncertainty(row, side)
        shown = milliseconds(row[f"{side}_us"], mean_digits(row, side))
        return (
            shown if share_of_it < NOISY else f"{number(row[f'{side}_us'] / 1000, 2)} ± {share(share_of_it)}"
        )

    meaning = f"mean CPU time of the {side} for one handshake; ± is the 95 % interval, where above 5 %"
    return Column(
        key=f"{side}_us",
        name=f"{side} ms",
        unit="us",
        rank=ALWAYS,
        text=text,
        meaning=meaning,
        interval=lambda row: f"± {share(uncertainty(row, side), 1)}",
        min_width=len("0.012 ± 12%"),
    )


def _class(side: str, kind: str) -> Column:
    return Column(
        key=f"{side}_{kind}_us",
        name=f"{side} {CLASS_WORDS[kind]}",
        unit="us",
        rank=ROOM,
        group="classes",
        show=lambda value: milliseconds(value) if value else NOTHING,
        min_width=len("0.012"),
        meaning=f"of the {side}'s mean: {_CLASS_MEANING[kind]}",
    )


_CLASS_MEANING = {
    "key": "public-key operations of the key exchange",
    "signature": "signing and verifying",
    "common": "everything except public-key operations",
}


def _wide(key: str, name: str, meaning: str, unit: str = "us", **more: Any) -> Column:  # noqa: ANN401
    return Column(key=key, name=name, unit=unit, rank=WIDE, meaning=meaning, **more)


def _instructions(meaning: str) -> Iterator[Column]:
    """Each side's count, in tables of handshakes whose instructions were counted."""
    for side in SIDES:
        yield Column(key=f"{side}_instructions", name=f"{side} 1000 instr.", unit="1", rank=ALWAYS,
                     show=_thousands, meaning=meaning)  # fmt: skip


def _count(value: float | None) -> str:
    return "" if value is None else whole(value)


def _thousands(value: float | None) -> str:
    return _us(None if value is None else value / 1000)


HANDSHAKES = (
    label("suite", "suite", "the suite, and what else tells handshakes apart", path=True,
          text=lambda row: row["label"]),
    label("client_stack", "client stack", rank=WIDE),
    label("server_stack", "server stack", rank=WIDE),
    label("carrier", "carrier", rank=WIDE),
    label("user_supplied", "yours", "which sides presented your certificates", rank=USUAL),
    Column(key="bytes", name="bytes", unit="bytes", rank=ALWAYS, meaning="on the wire, both ways"),
    Column(
        key="flights", name="round trips", unit="1", show=round_trips, meaning="two flights make a round trip"
    ),
    *(
        column
        for side in SIDES
        for column in (
            _mean(side),
            *(_class(side, kind) for kind in CLASSES),
            _wide(f"{side}_median_us", f"{side} median", f"median of the {side}'s CPU time",
                  show=milliseconds),
            _wide(f"{side}_sd_us", f"{side} sd", "standard deviation over repetitions", show=milliseconds),
        )
    ),
    *_instructions("of one handshake, median; counted by valgrind"),
    *(
        Column(key=f"{side}_peak_bytes", name=f"{side} memory KiB", unit="bytes", rank=ROOM, group="memory",
               meaning="the most that the side holds for one connection",
               show=lambda value: whole(None if value is None else value / 1024))
        for side in SIDES
    ),
    _wide("repeat", "repetitions", "repetitions used", "1"),
    _wide("preempted", "preempted", "repetitions discarded because the kernel preempted them", "1"),
)  # fmt: skip


def table(measured: Sequence[Measurement]) -> ObjectTable:
    rows = handshake_rows(measured)
    return ObjectTable(HANDSHAKES, rows, title(rows), lambda shown: notes(rows))


def handshake_rows(measured: Sequence[Measurement]) -> list[dict[str, Any]]:
    return [
        {"label": label} | _handshake_row(one) for label, one in zip(_labels(measured), measured, strict=True)
    ]


def _labels(measured: Sequence[Measurement]) -> list[str]:
    """The names of the suites, with the other parts of their identities that differ among them."""
    stacks = {one.stacks for one in measured if not one.suite.startswith("wtls/")}
    carriers = {one.carrier for one in measured}
    whose: dict[tuple[str, str], set[str]] = {}
    for one in measured:
        whose.setdefault((one.suite, one.stacks), set()).add(one.credentials or "")
    owners = any(len(some) > 1 for some in whose.values())
    return [
        " · ".join(
            [one.suite]
            + [one.stacks] * (len(stacks) > 1)
            + [one.carrier] * (len(carriers) > 1)
            + [one.credentials or ""] * owners
        )
        for one in measured
    ]


def _handshake_row(one: Measurement) -> dict[str, Any]:
    row: dict[str, Any] = {
        "suite": one.suite,
        "client_stack": one.client_stack.name,
        "server_stack": one.server_stack.name,
        "carrier": one.carrier,
        "bytes": one.bytes.total,
        "flights": one.flights,
        "repeat": one.handshake.client_us.n,
        "preempted": one.preempted,
        "server_software_note": one.server_software_note or None,
    }
    for side in SIDES:
        spread = one.handshake.of(side)
        row |= {
            f"{side}_us": spread.mean,
            f"{side}_sd_us": spread.sd,
            f"{side}_median_us": spread.median,
            **{f"{side}_{kind}_us": spent for kind, spent in one.time_by_class_us(side).items()},
            f"{side}_unattributed_us": one.unattributed_us.mean(side),
            f"{side}_peak_bytes": one.memory and getattr(one.memory, f"{side}_peak_bytes"),
        }
        if one.instructions is not UNSET:
            row[f"{side}_instructions"] = one.instructions.of(side).median
    return row


def message_table(one: Measurement) -> ObjectTable:
    """A measurement as the sequence of its messages."""
    [row] = handshake_rows([one])
    messages = [
        {
            "message_index": message.index,
            "message": message.name,
            "sender": message.sender,
            "flight": message.flight,
            "message_unit": message.unit,
            "bytes": message.bytes,
            "generate_us": message.generate_mean_us,
            "process_us": message.process_mean_us,
        }
        for message in one.messages
    ]
    if one.instructions is not UNSET:
        for message, counts in zip(messages, one.instructions.messages, strict=True):
            message |= {"generate_instructions": counts.generate, "process_instructions": counts.process}
        counted = {_place(call): call.instructions for call in one.instructions.operations}
    else:
        counted = {}
    operations = [
        {
            **builtins(operation),
            "message_index": operation.message,
            "us": operation.mean_us,
            "instructions": counted.get(_place(operation)),
        }
        for operation in one.operations
    ]
    rows = message_rows(row, messages, operations)
    shown = None if one.instructions is UNSET else COUNTED_MESSAGES
    return ObjectTable(MESSAGES, rows, message_title(row), lambda _: notes([row]), shown)


def _place(operation: MeasuredOperation | CountedOperation) -> tuple[str, int | None, str, str, str | None]:
    """The key of an operation within its handshake."""
    return (
        operation.side,
        operation.message,
        operation.operation,
        operation.algorithm,
        operation.parameters,
    )


def title(rows: Sequence[Row]) -> str:
    many = sorted({int(row["repeat"]) for row in rows})
    used = whole(many[0]) if len(many) == 1 else f"{whole(many[0])} to {whole(many[-1])}"
    return f"measured here: means of {used} handshakes, ms of CPU time"


def repetitions(found: Measurement) -> int:
    """The number of repetitions after which the intervals of both means should be narrow enough, limited by
    `MAX_REPEAT` and `MAX_SPENT_S`.
    """
    spreads = [found.handshake.of(side) for side in SIDES]
    both_s = sum(one.mean for one in spreads) * 1e-6
    wanted = max((1.96 * one.sd / (AIM * one.mean)) ** 2 if one.mean else 0.0 for one in spreads)
    return int(min(wanted, MAX_REPEAT, MAX_SPENT_S / max(both_s, 1e-6)))


def notes(rows: Sequence[Row]) -> Iterator[str]:
    """The reason why an interval is still wide."""
    noisy = [row for row in rows if max(uncertainty(row, side) for side in SIDES) >= NOISY]
    if noisy:
        yield "±: 95 % interval of the mean; more repetitions or a quieter machine make it smaller"


def _flight(row: Row) -> str:
    """The number of the flight, at its first message, and the direction."""
    number = whole(row["flight"]) if row["first"] else " "
    return f"{number} {'→' if row['sender'] == 'client' else '←'}" if row["sender"] else ""


def _us(value: float | None) -> str:
    return "" if value is None else f"{value:,.1f}" if value < 1000 else number(value)


MESSAGES = (
    label("suite", "suite", identity=True, path=True),
    label("flight", "flight", "which one it belongs to; → from the client, ← from the server", text=_flight),
    label("sender", "sender", rank=WIDE),
    label("message", "message"),
    Column(key="bytes", name="bytes", unit="bytes", rank=ALWAYS, show=_count),
    Column(key="client_us", name="client µs", unit="us", rank=ALWAYS, show=_us, meaning="its mean CPU time"),
    Column(key="server_us", name="server µs", unit="us", rank=ALWAYS, show=_us, meaning="its mean CPU time"),
    *_instructions("its count, median; by valgrind"),
    label("operations", "operations (µs)", "public-key operations in it, their mean CPU time", rank=USUAL,
          prose=True, show=lambda value: value or ""),
    Column(key="unit", name="unit", rank=WIDE, meaning="which write or datagram carried the message"),
)  # fmt: skip


def _above_operations(column: Column) -> Column:
    """The column with a line for each public-key operation below its message."""

    def text(row: Row) -> str:
        below = (
            f"  {one['words']}" if column.key == "message" else column.show(one.get(column.key))
            for one in row["calls"]
        )
        return "\n".join([column.show(row.get(column.key)), *below])

    return replace(column, text=text)


COUNTED_MESSAGES = tuple(
    _above_operations(one) if one.key == "message" or one.key.endswith(("_us", "_instructions")) else one
    for one in MESSAGES
    if one.key != "operations"
)
"""Columns for handshakes whose instructions were counted: each operation has its own line, because its two
figures do not fit into one cell.
"""


def message_rows(row: Row, messages: Sequence[Row], operations: Sequence[Row]) -> list[dict[str, Any]]:
    """Rows for the messages of a handshake, the time outside messages, and the sum."""
    public: dict[int | None, list[str]] = {}
    calls: dict[int | None, list[dict[str, Any]]] = {}
    for one in operations:
        if one["class"] != "common":
            words, side = operation_words(one), one["side"]
            done = f"{words} {number(one['us'])}"
            public.setdefault(one["message_index"], []).append(
                done if _of_sender(one, messages) else f"{side} {done}"
            )
            calls.setdefault(one["message_index"], []).append(
                {"words": words, f"{side}_us": one["us"], f"{side}_instructions": one.get("instructions")}
            )
    found = []
    last = None
    for one in messages:
        parts = {one["sender"]: "generate", opposite(one["sender"]): "process"}
        found.append(
            {
                "suite": row["label"],
                "flight": one["flight"],
                "first": one["flight"] is not None and one["flight"] != last,
                "sender": one["sender"],
                "message": one["message"],
                "bytes": one["bytes"],
                "operations": "\n".join(public.get(one["message_index"], ())),
                "calls": calls.get(one["message_index"], ()),
                "unit": one["message_unit"],
                **{
                    f"{side}_{unit}": one[f"{parts[side]}_{unit}"]
                    for side in SIDES
                    for unit in ("us", "instructions")
                    if f"{parts[side]}_{unit}" in one
                },
            }
        )
        last = one["flight"]
    empty = {"suite": row["label"], "first": False, "sender": None}
    outside = {f"{side}_us": row[f"{side}_unattributed_us"] for side in SIDES}
    found.append(
        {
            **empty,
            "message": "(no message)",
            "operations": "\n".join(public.get(None, ())),
            "calls": calls.get(None, ()),
            **outside,
        }
    )
    keys = [f"{side}_{unit}" for side in SIDES for unit in ("us", "instructions")]
    total = {key: row[key] for key in keys if key in row}
    return [
        *found,
        {**empty, "message": "all", "bytes": row["bytes"], "operations": "", "calls": (), **total},
    ]


def _of_sender(operation: Row, messages: Sequence[Row]) -> bool:
    """Whether the message's sender performs the operation. Operations of the receiver name their side."""
    return any(
        one["message_index"] == operation["message_index"] and one["sender"] == operation["side"]
        for one in messages
    )


def operation_words(operation: Row) -> str:
    """`sign rsa2048`, `derive p256`: the algorithm is named only if there are no parameters."""
    return f"{operation['operation']} {operation['parameters'] or operation['algorithm']}"


def count_round_trips(flights: float) -> str:
    """Flights as round trips: `2 round trips`, `1.5 round trips`."""
    return f"{round_trips(flights)} round trip{'' if flights == 2 else 's'}"


def message_title(row: Row) -> str:
    """A handshake in one line."""
    client, server = (
        time_us(row[f"{side}_us"])
        + (f" ± {share(spread)}" if (spread := uncertainty(row, side)) >= NOISY else "")
        for side in SIDES
    )
    return (
        f"{row['label']}: client {client}, server {server}, "
        f"{whole(row['bytes'])} bytes, {count_round_trips(row['flights'])}, means of {whole(row['repeat'])}"
    )


def by_scenario(view: Any) -> dict[str, list[Mapping[str, Any]]]:  # noqa: ANN401 - polars is imported late
    """The rows of a view, by scenario."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for row in view.to_dicts():
        found.setdefault(row["scenario"], []).append(row)
    return found


TRANSFERS = (
    label("suite", "suite", identity=True, path=True),
    Column(key="data_bytes", name="KiB", unit="bytes", rank=ALWAYS, show=lambda value: whole(value / 1024)),
    label("link", "link"),
    Column(key="wire_bytes", name="bytes on the link", unit="bytes", rank=ALWAYS),
    Column(key="frames", name="frames", unit="1", rank=ALWAYS),
    Column(key="client_us", name="client ms", unit="us", rank=ALWAYS, show=milliseconds, meaning="median"),
    Column(key="server_us", name="server ms", unit="us", rank=ALWAYS, show=milliseconds, meaning="median"),
)  # fmt: skip
