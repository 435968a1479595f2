"""Measured figures: both sides' times per message and operation, and bytes, of real stacks in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from msgspec import UNSET, UnsetType

from shakedown.results.table import Row, fact, figure, identity_columns
from shakedown.schema.base import SIDES
from shakedown.schema.measured import CountedOperation, Measurement, Spread
from shakedown.schema.trace import Message, Operation, Trace, bare

if TYPE_CHECKING:
    from shakedown.experiments.figure_kinds import Run, Source
    from shakedown.native.scenario import Scenario
    from shakedown.results.folder import Results


STATISTICS = ("median", "mean", "sd", "min", "max")


def run(scenario: Scenario, run: Run) -> Measurement:
    """Measures a suite. Raises `InputError` and the core's errors."""
    from shakedown import native

    assert scenario.handshake is not None
    repeat = scenario.options.repeat
    return native.measure(
        scenario.handshake,
        scenario.options.issuing(scenario.handshake.suite),
        progress=lambda done: run.progress(min(done, repeat), scenario.label),
    )


def common(scenario: Scenario, found: Measurement) -> Row:
    return {**place_columns(scenario), **identity_columns(found)}


def rows(scenario: Scenario, one: Measurement) -> Iterator[Row]:
    repeat = one.handshake.client_us.n
    for side in SIDES:
        yield from _spread("handshake.time", one.handshake.of(side), side=side)
    for sender in (*SIDES, None):
        sent = one.bytes.total if sender is None else one.bytes.of(sender)
        yield figure("handshake.bytes", sent, side=sender, n=repeat)
    yield figure("handshake.flights", one.flights)
    yield figure("handshake.repeat", repeat)
    yield figure("handshake.preempted", one.preempted)
    yield fact("handshake.clock", one.clock)
    for side in scenario.options.user_supplied:
        yield fact("credentials.user-supplied", "yes", side=side)
    for item, message in enumerate(one.messages):
        place = {**message_columns(message), "item": item, "n": repeat}
        yield figure("message.bytes", message.bytes, **place)
        yield figure("message.retransmissions", message.retransmissions, **place)
        for verb, spender in (("generate", message.sender), ("process", message.receiver)):
            times = (getattr(message, f"{verb}_{name}us") for name in ("", "mean_", "samples_"))
            yield from _medians(f"message.{verb}", *times, side=spender, **place)
    places: dict[int | None, Row] = {message.index: message_columns(message) for message in one.messages}
    for item, operation in enumerate(one.operations):
        place = {
            **places.get(operation.message, {"message_index": operation.message}),
            **_operation_columns(operation),
            "item": item,
            "n": repeat,
        }
        yield from _medians("operation.time", operation.us, operation.mean_us, operation.samples_us, **place)
        yield figure("operation.count", operation.count, **place)
        yield figure("operation.bytes", operation.bytes, **place)
    for side in SIDES:
        times = (getattr(one.unattributed_us, f"{side}{name}") for name in ("", "_mean", "_samples"))
        yield from _medians("unattributed.time", *times, side=side)
    yield figure("accounting.coverage", one.accounting.coverage)
    yield from _instructions(one)
    yield from _memory(one)


def _instructions(one: Measurement) -> Iterator[Row]:
    counts = one.instructions
    if counts is UNSET:
        return
    if counts.seed is not None:
        yield figure("handshake.instructions_seed", counts.seed)
    for side in SIDES:
        for statistic in STATISTICS:
            value = getattr(counts.of(side), statistic)
            yield figure("handshake.instructions", value, side=side, statistic=statistic)
    places: dict[int | None, Row] = {}
    for item, (message, spent) in enumerate(zip(one.messages, counts.messages, strict=True)):
        places[message.index] = place = message_columns(message)
        for side, value in ((message.sender, spent.generate), (message.receiver, spent.process)):
            yield figure("message.instructions", value, side=side, item=item, **place)
    for item, operation in enumerate(counts.operations):
        yield figure(
            "operation.instructions",
            operation.instructions,
            **places.get(operation.message, {}),
            **_operation_columns(operation),
            item=item,
        )


def _memory(one: Measurement) -> Iterator[Row]:
    memory = one.memory
    if memory is None:
        return
    yield figure("memory.released", memory.released_bytes)
    for name in ("peak", "held"):
        for side in SIDES:
            yield figure(f"memory.{name}", getattr(memory, f"{side}_{name}_bytes"), side=side)
    for side in SIDES:
        yield figure("memory.context", getattr(memory.context_bytes, side), side=side)


def place_columns(scenario: Scenario) -> Row:
    """The columns that all rows of a scenario share, except its handshake's identity."""
    where = ("kind", "device", "server_device", "bearer", "connection")
    return {"scenario": scenario.key, **{name: getattr(scenario, name) for name in where}}


def message_columns(message: Message) -> Row:
    return {
        "message_index": message.index,
        "message": message.name,
        "sender": message.sender,
        "flight": message.flight,
        "message_unit": message.unit,
    }


def _operation_columns(operation: Operation | CountedOperation) -> Row:
    about = {name: getattr(operation, name) for name in ("side", "operation", "algorithm", "parameters")}
    return {**about, "class": operation.class_}


def _spread(quantity: str, spread: Spread, **columns: object) -> Iterator[Row]:
    for statistic in STATISTICS:
        samples = spread.samples if statistic == "median" else None
        value = getattr(spread, statistic)
        yield figure(quantity, value, statistic=statistic, n=spread.n, samples=_listed(samples), **columns)


def _medians(
    quantity: str, median: float, mean: float, samples: tuple[float, ...] | UnsetType, **columns: object
) -> Iterator[Row]:
    yield figure(quantity, median, statistic="median", samples=_listed(samples), **columns)
    yield figure(quantity, mean, statistic="mean", **columns)


def _listed(samples: tuple[float, ...] | UnsetType | None) -> list[float] | None:
    return None if samples is None or samples is UNSET else [float(one) for one in samples]


def printed(found: Measurement) -> Iterable[Measurement]:
    return (found.without_samples(),)


def traces(scenario: Scenario, found: Measurement) -> dict[Source, Trace]:
    assert scenario.handshake is not None
    return {(scenario.handshake, None, None): bare(found)}


def terminal(results: Results, width: int) -> Iterable[str]:
    from shakedown.reporting.columns import Selection
    from shakedown.reporting.columns.measured import HANDSHAKES, notes, title
    from shakedown.reporting.terminal.listing import listing

    rows = results.handshakes.to_dicts()
    if not rows:
        return ()
    return listing(HANDSHAKES, rows, Selection(), title=title(rows), notes=notes(rows), width=width)
