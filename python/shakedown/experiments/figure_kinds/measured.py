"""Measured here: the real stacks ran in memory; time per message and operation, and bytes, on both sides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET, UnsetType

from shakedown.results.table import Quantity, Row, fact, figure, frame, identity_columns
from shakedown.schema.base import SIDES
from shakedown.schema.measured import Measurement, Spread
from shakedown.schema.saved import Planned
from shakedown.schema.trace import Message, Trace, bare

if TYPE_CHECKING:
    import polars as pl
    from rich.console import RenderableType

    from shakedown.experiments.figure_kinds import Run, Source
    from shakedown.experiments.file import Experiment
    from shakedown.native.scenario import Scenario
    from shakedown.reporting.html.section import Section
    from shakedown.reporting.html.text import Sentence
    from shakedown.results.folder import Results

QUANTITIES = (
    Quantity("handshake.time", "us", "CPU time of a side for a whole handshake, by statistic"),
    Quantity("handshake.bytes", "bytes", "what a side sent; without a side, both"),
    Quantity("handshake.flights", "1", "flights; two make a round trip"),
    Quantity("handshake.repeat", "1", "repetitions used"),
    Quantity("handshake.preempted", "1", "repetitions discarded because the kernel preempted them"),
    Quantity("handshake.clock", "", "text: by which clock"),
    Quantity("credentials.user-supplied", "", "a side that presented the user's certificates"),
    Quantity("message.bytes", "bytes", "one message on the wire"),
    Quantity("message.retransmissions", "1", "how often it was sent again"),
    Quantity("message.generate", "us", "time its sender took, by statistic"),
    Quantity("message.process", "us", "time its receiver took, by statistic"),
    Quantity("operation.time", "us", "one public-key call, or one kind of symmetric work in a message"),
    Quantity("operation.count", "1", "calls in it"),
    Quantity("operation.bytes", "bytes", "bytes worked on"),
    Quantity("unattributed.time", "us", "time of a side outside any message"),
    Quantity("accounting.coverage", "1", "attributed time over the CPU time of the thread"),
    Quantity("memory.peak", "bytes", "most that a side held for the connection"),
    Quantity("memory.held", "bytes", "what it holds after the handshake"),
    Quantity("memory.context", "bytes", "what its context holds for all connections"),
    Quantity("memory.released", "bytes", "what both still held for the connection after its release"),
)

STATISTICS = ("median", "mean", "sd", "min", "max")


def scenarios(run: Run) -> Iterator[Sequence[Scenario]]:
    """Each suite of the experiment by itself."""
    return ((one,) for one in run.experiment.of("measured"))


def planned(experiment: Experiment) -> Iterator[Planned]:
    """A part a suite."""
    return (Planned(kind=one.kind, about=one.label) for one in experiment.of("measured"))


def run(scenario: Scenario, run: Run) -> Measurement:
    """Measures a suite. Raises `InputError` and the core's errors."""
    from shakedown import native

    assert scenario.handshake is not None
    repeat = scenario.options.repeat
    return native.measure(
        scenario.handshake,
        scenario.options,
        progress=lambda done: run.progress(min(done, repeat), scenario.label),
    )


def rows(scenario: Scenario, found: Measurement) -> pl.DataFrame:
    """A measurement as rows of the table."""
    common = {"scenario": scenario.key, "kind": "measured", **identity_columns(found)}
    return frame(_rows(scenario, found), common)


def _rows(scenario: Scenario, one: Measurement) -> Iterator[Row]:
    repeat = one.repeat
    for side in SIDES:
        yield from _spread("handshake.time", "us", one.handshake.of(side), side=side)
    for sender in (*SIDES, None):
        sent = one.bytes.total if sender is None else one.bytes.of(sender)
        yield figure("handshake.bytes", "bytes", sent, side=sender, n=repeat)
    yield figure("handshake.flights", "1", one.flights)
    yield figure("handshake.repeat", "1", repeat)
    yield figure("handshake.preempted", "1", one.preempted)
    yield fact("handshake.clock", one.clock)
    for side in scenario.options.user_supplied:
        yield fact("credentials.user-supplied", "yes", side=side)
    for item, message in enumerate(one.messages):
        place = {**message_columns(message), "item": item, "n": repeat}
        yield figure("message.bytes", "bytes", message.bytes, **place)
        yield figure("message.retransmissions", "1", message.retransmissions, **place)
        for quantity, spender, median, mean, samples in (
            (
                "message.generate",
                message.sender,
                message.generate_us,
                message.generate_mean_us,
                message.generate_samples_us,
            ),
            (
                "message.process",
                message.receiver,
                message.process_us,
                message.process_mean_us,
                message.process_samples_us,
            ),
        ):
            yield from _medians(quantity, median, mean, samples, side=spender, **place)
    places: dict[int | None, Row] = {message.index: message_columns(message) for message in one.messages}
    for item, operation in enumerate(one.operations):
        place = {
            **places.get(operation.message, {"message_index": operation.message}),
            "item": item,
            "side": operation.side,
            "operation": operation.operation,
            "algorithm": operation.algorithm,
            "parameters": operation.parameters,
            "class": operation.class_,
            "n": repeat,
        }
        yield from _medians("operation.time", operation.us, operation.mean_us, operation.samples_us, **place)
        yield figure("operation.count", "1", operation.count, **place)
        yield figure("operation.bytes", "bytes", operation.bytes, **place)
    for side in SIDES:
        outside = one.unattributed_us
        median = outside.client if side == "client" else outside.server
        samples = outside.client_samples if side == "client" else outside.server_samples
        yield from _medians("unattributed.time", median, outside.mean(side), samples, side=side)
    yield figure("accounting.coverage", "1", one.accounting.coverage)
    yield from _memory(one)


def _memory(one: Measurement) -> Iterator[Row]:
    memory = one.memory
    if memory is None:
        return
    yield figure("memory.released", "bytes", memory.released_bytes)
    client, server, contexts = SIDES[0], SIDES[1], memory.context_bytes
    yield figure("memory.peak", "bytes", memory.client_peak_bytes, side=client)
    yield figure("memory.peak", "bytes", memory.server_peak_bytes, side=server)
    yield figure("memory.held", "bytes", memory.client_held_bytes, side=client)
    yield figure("memory.held", "bytes", memory.server_held_bytes, side=server)
    yield figure("memory.context", "bytes", contexts.client, side=client)
    yield figure("memory.context", "bytes", contexts.server, side=server)


def message_columns(message: Message) -> Row:
    """Which message a row is about."""
    return {
        "message_index": message.index,
        "message": message.name,
        "sender": message.sender,
        "flight": message.flight,
        "message_unit": message.unit,
    }


def _spread(quantity: str, unit: str, spread: Spread, **columns: object) -> Iterator[Row]:
    for statistic in STATISTICS:
        samples = spread.samples if statistic == "median" and spread.samples is not UNSET else None
        value = getattr(spread, statistic)
        yield figure(
            quantity, unit, value, statistic=statistic, n=spread.n, samples=_listed(samples), **columns
        )


def _medians(
    quantity: str, median: float, mean: float, samples: tuple[float, ...] | UnsetType, **columns: object
) -> Iterator[Row]:
    kept = None if samples is UNSET else _listed(samples)
    yield figure(quantity, "us", median, statistic="median", samples=kept, **columns)
    yield figure(quantity, "us", mean, statistic="mean", **columns)


def _listed(samples: tuple[float, ...] | UnsetType | None) -> list[float] | None:
    return None if samples is None or samples is UNSET else [float(one) for one in samples]


def printed(found: Measurement) -> Iterable[Measurement]:
    """What `measure --json` prints."""
    return (without_samples(found),)


def without_samples(found: Measurement) -> Measurement:
    """A measurement whose figures are medians and means, not every repetition's."""
    replace = msgspec.structs.replace
    handshake = {f"{side}_us": replace(found.handshake.of(side), samples=UNSET) for side in SIDES}
    transfers = found.transfers
    if transfers is not UNSET:
        transfers = tuple(
            replace(
                one,
                client_us=replace(one.client_us, samples=UNSET),
                server_us=replace(one.server_us, samples=UNSET),
            )
            for one in transfers
        )
    return replace(
        found,
        handshake=replace(found.handshake, **handshake),
        unattributed_us=replace(found.unattributed_us, client_samples=UNSET, server_samples=UNSET),
        messages=tuple(
            replace(one, generate_samples_us=UNSET, process_samples_us=UNSET) for one in found.messages
        ),
        operations=tuple(replace(one, samples_us=UNSET) for one in found.operations),
        transfers=transfers,
    )


def traces(scenario: Scenario, found: Measurement) -> dict[Source, Trace]:
    """Itself."""
    assert scenario.handshake is not None
    return {(scenario.handshake, None, None): bare(found)}


def terminal(results: Results, width: int) -> Iterable[RenderableType]:
    """What was measured, a line a handshake."""
    from shakedown.reporting.terminal.measured import measured_tables

    return measured_tables(results, width)


def sections(results: Results) -> Iterable[Section]:
    """Overview, cases, time, bytes, and each handshake from inside."""
    from shakedown.reporting.html.measured import sections

    return sections(results)


def answer(results: Results) -> tuple[list[Sentence], list[Sentence]]:
    """Which handshake costs least and most, and what stands out."""
    from shakedown.reporting.html.measured import answer, findings

    return answer(results), findings(results)
