"""The measurements of this machine for the reproductions: handshakes by suite, reduced to the figures that
the papers compare.

All times are µs of one thread's CPU time. The figure of each part of a handshake (a message, an operation,
the time outside messages) is its minimum: other work of the machine only adds time, and a part is so short
that some repetitions are undisturbed. A round's figure is the minimum over its repetitions, the total's the
minimum over the rounds; a side's time is the sum of its parts. A primitive has the same cost in all suites of
a protocol that use it in the same message, so the minimum over these suites is used. Each round is kept too.
Ratios are formed from figures of one run on one machine.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from itertools import groupby
from pathlib import Path
from time import perf_counter
from typing import Any

from shakedown import native
from shakedown.errors import InputError
from shakedown.files.limits import MAX_TRACES_BYTES, parse_json, read_text
from shakedown.files.write import write
from shakedown.native.scenario import HandshakeId, MeasureOptions
from shakedown.schema.base import SIDES, Side, opposite
from shakedown.schema.measured import Machine, Measurement, Samples

ROUNDS = 15
"""Rounds of measurement: all suites in turn, so that other work of the machine affects one round of each."""

MIN_ROUNDS = 6
"""With fewer rounds, halves of a run are too short for a verdict."""

MAX_ROUNDS = 10_000
FORMAT = "shakedown papers, measured in rounds"


@dataclass(frozen=True)
class MessageCost:
    """One message, and its bytes."""

    sender: Side
    name: str
    size_bytes: float


@dataclass(frozen=True)
class Part:
    """Work of one side in a message, or outside any (None).

    Without an `operation` it is all work except public-key operations; the operation `prf` is part of that.
    """

    side: Side
    message: int | None
    operation: str
    algorithm: str
    parameters: str
    kind: str
    us: float

    @property
    def is_public(self) -> bool:
        return self.kind in ("key", "signature")


@dataclass(frozen=True)
class Cost:
    """The cost of a suite's handshake on this machine: `parts` are operations, then all other work."""

    suite: str
    size_bytes: float
    flights: int
    messages: tuple[MessageCost, ...]
    parts: tuple[Part, ...]

    @cached_property
    def client_us(self) -> float:
        return self._sum("client", lambda one: True)

    @cached_property
    def server_us(self) -> float:
        return self._sum("server", lambda one: True)

    def _sum(self, side: Side, counted: Callable[[Part], bool]) -> float:
        return sum(
            one.us for one in self.parts if one.side == side and one.operation != "prf" and counted(one)
        )

    @property
    def operations(self) -> list[Part]:
        return [one for one in self.parts if one.operation]

    def us(self, side: Side) -> float:
        return self.client_us if side == "client" else self.server_us

    def message_us(self, side: Side, number: int) -> float:
        return self._sum(side, lambda one: one.message == number)

    def at(self, side: Side, name: str, sender: Side | None = None) -> float:
        """One side's time in messages of a name, in µs; only those of `sender` if given."""
        return sum(
            self.message_us(side, number)
            for number, message in enumerate(self.messages)
            if message.name == name and sender in (None, message.sender)
        )

    def operation_us(self, side: Side, operation: str, messages: Iterable[str] | None = None) -> float:
        """One side's time in an operation, in µs: all, or that in messages of these names."""
        names = None if messages is None else set(messages)
        return sum(
            one.us
            for one in self.parts
            if one.side == side
            and one.operation == operation
            and (names is None or (one.message is not None and self.messages[one.message].name in names))
        )

    def class_us(self, side: Side, kind: str) -> float:
        """One side's time in public-key operations of a class, or for ``common`` in all other work."""
        return self._sum(side, lambda one: one.kind == kind)

    def master_secret_us(self, side: Side) -> float:
        """The PRF's work in the messages that complete this side's key exchange."""
        homes = {
            one.message
            for one in self.parts
            if one.side == side and one.kind == "key" and one.operation != "keygen"
        }
        homes |= {index for index, one in enumerate(self.messages) if one.name == "ClientKeyExchange"}
        return sum(
            one.us
            for one in self.parts
            if one.side == side and one.operation == "prf" and one.message in homes
        )

    def flight_bytes(self) -> list[tuple[Side, float]]:
        """The bytes of each run of messages of one sender."""
        runs = groupby(self.messages, key=lambda message: message.sender)
        return [(sender, sum(message.size_bytes for message in run)) for sender, run in runs]


@dataclass(frozen=True)
class Bulk:
    """A transfer after a handshake, from server to client: its bytes, and each side's time."""

    suite: str
    link: str
    data_bytes: int
    wire_bytes: float
    client_us: float
    server_us: float


@dataclass
class Replication:
    """All measurements of this machine, and the reasons for missing ones."""

    machine: str = ""
    date: str = ""
    costs: dict[str, Cost] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    bulks: dict[tuple[str, str, int], Bulk] = field(default_factory=dict)
    rounds: list[Replication] = field(default_factory=list)
    seconds: float = 0.0

    def all(self, suites: Sequence[str]) -> list[Cost] | None:
        """The costs of these suites, in their order; None if one is missing."""
        found = [self.costs[suite] for suite in suites if suite in self.costs]
        return found if len(found) == len(suites) else None

    def why_not(self, suites: Sequence[str]) -> str:
        """The reason why one of these suites is missing, for a row."""
        for suite in suites:
            if suite not in self.costs:
                reason = self.missing.get(suite, "it was not measured in this run")
                prefix = "" if suite in reason else f"{suite}: "
                return f"cannot be tested yet: {prefix}{reason}"
        return ""

    def transfers(self, suite: str, link: str, sizes_bytes: Sequence[int]) -> list[Bulk] | None:
        """The transfers of these sizes; None if one is missing."""
        found = [self.bulks[key] for size in sizes_bytes if (key := (suite, link, size)) in self.bulks]
        return found if len(found) == len(sizes_bytes) else None


def summary(rounds: Sequence[Replication], missing: dict[str, str]) -> Replication:
    """The summary of several rounds: the minimum of each part."""
    whole = Replication(rounds[0].machine, rounds[0].date, missing=missing, rounds=list(rounds))
    costs = [_minimum([one.costs[suite] for one in rounds]) for suite in rounds[0].costs]
    whole.costs = {cost.suite: cost for cost in _pooled(costs)}
    for key, first in rounds[0].bulks.items():
        same = [one.bulks[key] for one in rounds]
        whole.bulks[key] = replace(
            first, client_us=min(one.client_us for one in same), server_us=min(one.server_us for one in same)
        )
    return whole


def _minimum(costs: Sequence[Cost]) -> Cost:
    """The minimum of each part."""
    parts = []
    for same in zip(*(cost.parts for cost in costs), strict=True):
        us = min(one.us for one in same)
        # The rest of a message's time without its operations can be below 0, because both are rounded.
        parts.append(replace(same[0], us=us if same[0].message is None else max(0.0, us)))
    return replace(costs[0], parts=tuple(parts))


def _pooled(costs: Sequence[Cost]) -> list[Cost]:
    """The costs, with each public-key operation at its minimum over the same message of all suites of the
    protocol.
    """

    def use(cost: Cost, one: Part) -> tuple[str, ...]:
        message = "" if one.message is None else cost.messages[one.message].name
        return cost.suite.split("/")[0], one.side, message, one.operation, one.algorithm, one.parameters

    least: dict[tuple[str, ...], float] = {}
    for cost in costs:
        for one in cost.parts:
            if one.is_public:
                least[use(cost, one)] = min(one.us, least.get(use(cost, one), one.us))
    return [
        replace(
            cost,
            parts=tuple(
                replace(one, us=least[use(cost, one)]) if one.is_public else one for one in cost.parts
            ),
        )
        for cost in costs
    ]


def summarise(measured: Measurement) -> Cost:
    """Reduce a measurement to the minimum of each part over its repetitions."""
    repetitions = len(measured.handshake.client_us.samples or ())
    least = _minimum([_repetition(measured, number) for number in range(repetitions)])
    return replace(least, parts=tuple(replace(one, us=round(one.us, 3)) for one in least.parts))


def _repetition(measured: Measurement, number: int) -> Cost:
    operations = [
        Part(
            operation.side,
            operation.message,
            operation.operation,
            operation.algorithm,
            operation.parameters or "",
            operation.class_,
            _figure(operation.samples_us, number),
        )
        for operation in measured.operations
        if operation.class_ != "common" or operation.operation == "prf"
    ]
    times = measured.handshake
    return _cost(
        measured.suite,
        measured.bytes.total,
        measured.flights,
        [MessageCost(message.sender, message.name, message.bytes) for message in measured.messages],
        [
            (_figure(message.generate_samples_us, number), _figure(message.process_samples_us, number))
            for message in measured.messages
        ],
        {side: _figure(times.of(side).samples, number) for side in SIDES},
        operations,
    )


def _cost(
    suite: str,
    size_bytes: float,
    flights: int,
    messages: Sequence[MessageCost],
    messages_us: Sequence[tuple[float, float]],
    sides_us: Mapping[Side, float],
    operations: Sequence[Part],
) -> Cost:
    """A cost from total times: of generating and processing each message, and of each side."""
    rest_us: dict[tuple[Side, int | None], float] = {(side, None): sides_us[side] for side in SIDES}
    for number, (message, (generate_us, process_us)) in enumerate(zip(messages, messages_us, strict=True)):
        for side, us in ((message.sender, generate_us), (opposite(message.sender), process_us)):
            rest_us[side, number] = us
            rest_us[side, None] -= us
    for one in operations:
        if one.is_public:
            rest_us[one.side, one.message] -= one.us
    rest = (Part(side, number, "", "", "", "common", us) for (side, number), us in rest_us.items())
    return Cost(suite, size_bytes, flights, tuple(messages), (*operations, *rest))


def _figure(samples_us: Samples, number: int) -> float:
    assert samples_us, "`native.measure` returns every repetition's figures"
    return round(samples_us[number], 3)


@dataclass(frozen=True)
class Transfers:
    """Transfers to measure: each suite over each link, in each size."""

    suites: tuple[str, ...]
    links: tuple[str, ...]
    sizes_bytes: tuple[int, ...]


def measure(
    suites: Iterable[str],
    repeat: int,
    transfers: Iterable[Transfers] = (),
    *,
    rounds: int = ROUNDS,
    minutes: float | None = None,
    progress: Callable[[int, str], None] | None = None,
    on_round: Callable[[Replication], None] | None = None,
) -> Replication:
    """Measure suites on this machine; a suite that cannot run is listed as missing, with the reason.

    Args:
        suites: names of suites; each is measured once, even if it is named several times.
        repeat: handshakes of each suite, divided among the rounds; the number of rounds is at most this.
        transfers: bulk data to measure after handshakes.
        rounds: number of times that every suite is measured, all suites in turn.
        minutes: begin no round that would end later, judged by the longest so far; the first always runs.
        progress: called with the number of ``rounds`` × suites done, and the suite's name.
        on_round: called after each round with all complete rounds so far.
    """
    begun = perf_counter()
    wanted = list(dict.fromkeys(suites))
    bulk = list(transfers)
    machine = _machine_words(native.machine(), native.build().openssl)
    date = datetime.now(UTC).date().isoformat()
    missing: dict[str, str] = {}
    done: list[Replication] = []
    longest_s = 0.0
    rounds = min(rounds, repeat)
    for number in range(rounds):
        round_begun = perf_counter()
        if done and minutes is not None and round_begun - begun + longest_s > 60.0 * minutes:
            break
        replication = Replication(machine, date)
        for position, suite in enumerate(wanted):
            if suite in missing:
                continue
            if progress:
                progress(number * len(wanted) + position, suite)
            with _failure_noted(missing, suite):
                measured = native.measure(HandshakeId(suite=suite), MeasureOptions(repeat=repeat // rounds))
                replication.costs[suite] = summarise(measured)
        for wanted_transfers in bulk:
            for suite in wanted_transfers.suites:
                _measure_transfers(replication, missing, suite, wanted_transfers)
        done.append(replication)
        longest_s = max(longest_s, perf_counter() - round_begun)
        whole = _whole(done, missing)
        whole.seconds = perf_counter() - begun
        if on_round:
            on_round(whole)
    return whole


def _whole(rounds: Sequence[Replication], missing: dict[str, str]) -> Replication:
    """Rounds as one, without suites that are missing from any of them."""
    for one in rounds:
        one.missing = missing
        for suite in missing:
            one.costs.pop(suite, None)
            one.bulks = {key: bulk for key, bulk in one.bulks.items() if key[0] != suite}
    return summary(rounds, missing)


def _machine_words(machine: Machine, openssl: str) -> str:
    clock = f"{machine.clock_hz / 1e9:.2f} GHz" if machine.clock_hz else ""
    return ", ".join(part for part in (machine.cpu, clock, f"OpenSSL {openssl}") if part)


TRANSFERS_EACH = 5


def _measure_transfers(
    replication: Replication, missing: dict[str, str], suite: str, wanted: Transfers
) -> None:
    """Measure open and protected links in turn, so that other work of the machine affects both."""
    for link in wanted.links:
        if suite in missing:
            return
        with _failure_noted(missing, suite):
            found = native.transfers(
                HandshakeId(suite=suite),
                wanted.sizes_bytes,
                link=link,
                options=MeasureOptions(repeat=TRANSFERS_EACH),
            )
            for one in found:
                key = (suite, link, one.data_bytes)
                client, server = float(one.client_us.min), float(one.server_us.min)
                replication.bulks[key] = Bulk(
                    suite, link, one.data_bytes, one.wire_bytes, round(client, 3), round(server, 3)
                )


@contextmanager
def _failure_noted(missing: dict[str, str], suite: str) -> Iterator[None]:
    """Record why a suite cannot run; all other errors are raised."""
    try:
        yield
    except Exception as error:
        if not (native.is_failure(error) or isinstance(error, InputError)):
            raise
        missing[suite] = str(error)


def save(replication: Replication, path: Path) -> None:
    """Write measured figures; an existing file is replaced. Raises `InputError`."""
    write(path, saved(replication), replace=True)


def saved(replication: Replication) -> str:
    """Measured figures as JSON, one suite and round per line."""
    lines = [
        json.dumps({"suite": suite, "missing": why}) for suite, why in sorted(replication.missing.items())
    ]
    for suite in sorted(replication.costs):
        first = replication.rounds[0].costs[suite]
        packed = {
            "suite": suite,
            "bytes": first.size_bytes,
            "flights": first.flights,
            "messages": [[one.sender, one.name, one.size_bytes] for one in first.messages],
            "operations": [list(vars(one).values())[:-1] for one in first.operations],
            "rounds": [
                {
                    "client_us": round(cost.client_us, 3),
                    "server_us": round(cost.server_us, 3),
                    "messages_us": [
                        [
                            round(cost.message_us(side, number), 3)
                            for side in (one.sender, opposite(one.sender))
                        ]
                        for number, one in enumerate(cost.messages)
                    ],
                    "operations_us": [one.us for one in cost.operations],
                }
                for cost in (one.costs[suite] for one in replication.rounds)
            ],
        }
        lines.append(json.dumps(packed, separators=(",", ":")))
    for key, bulk in sorted(replication.bulks.items()):
        times = [[one.bulks[key].client_us, one.bulks[key].server_us] for one in replication.rounds]
        lines.append(json.dumps({"transfer": [*key, bulk.wire_bytes], "rounds": times}))
    about = {
        "format": FORMAT,
        "machine": replication.machine,
        "date": replication.date,
        "rounds": len(replication.rounds),
    }
    return "\n".join([json.dumps(about), *lines]) + "\n"


def load(path: Path) -> Replication:
    """Read a file of `save`. Raises `InputError` with one line for any other file."""
    text = read_text(path, MAX_TRACES_BYTES, "file of measured figures")
    try:
        head, *lines = text.splitlines() or [""]
        about = parse_json(head, "line 1")
        if about.get("format") != FORMAT:
            raise ValueError(f'its format is not "{FORMAT}"')
        if not 1 <= int(about["rounds"]) <= MAX_ROUNDS:
            raise ValueError(f"it has {about['rounds']} rounds; accepted: 1 to {MAX_ROUNDS:,}")
        rounds = [Replication(about["machine"], about["date"]) for _ in range(int(about["rounds"]))]
        missing: dict[str, str] = {}
        for number, line in enumerate(lines, start=2):
            packed = parse_json(line, f"line {number}")
            if "missing" in packed:
                missing[packed["suite"]] = packed["missing"]
                continue
            for one, times in zip(rounds, packed["rounds"], strict=True):
                if "transfer" in packed:
                    suite, link, data_bytes, wire_bytes = packed["transfer"]
                    one.bulks[suite, link, data_bytes] = Bulk(suite, link, data_bytes, wire_bytes, *times)
                else:
                    one.costs[packed["suite"]] = _unpacked(packed, times)
    except (InputError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise InputError(f"{path}: not a file of measured figures: {error}") from error
    for one in rounds:
        one.missing = missing
    return summary(rounds, missing)


def _unpacked(packed: dict[str, Any], times: dict[str, Any]) -> Cost:
    return _cost(
        packed["suite"],
        packed["bytes"],
        packed["flights"],
        [MessageCost(*one) for one in packed["messages"]],
        times["messages_us"],
        {side: times[f"{side}_us"] for side in SIDES},
        [Part(*(*one, us)) for one, us in zip(packed["operations"], times["operations_us"], strict=True)],
    )
