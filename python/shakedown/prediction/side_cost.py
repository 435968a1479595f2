"""The cost of a recorded handshake on a device: its primitives, its stack's own work, and a TCP connection.

The basis of each part is the device's own figure, a figure scaled from its others, or an assumption. A part
without any of these is listed in `without_cost`, and the sum is a lower bound. Nothing unknown counts as
zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from shakedown.errors import InputError
from shakedown.models.ranges import NORMAL_90, Range, combined, exactly, merged, within
from shakedown.prediction.captured import of_stack
from shakedown.prediction.figures import call_figure, library_figure, own_figure, weakest
from shakedown.prediction.stack_work import StackWork, reference
from shakedown.prediction.symmetric import Part, symmetric_parts
from shakedown.prediction.trace import Message, Operation, Trace
from shakedown.profiles.costs import Cost, Triple
from shakedown.profiles.device import Device
from shakedown.profiles.overhead import is_public_key, message_key, message_kind
from shakedown.profiles.software import AS_OURS
from shakedown.profiles.vocabulary import SYMMETRIC_OPERATIONS
from shakedown.schema.base import Basis, Side
from shakedown.schema.predictions import NEGLIGIBLE_SHARE

CLOCK_SPREAD = 2.0
"""Uncertainty, ×/÷, of figures that were scaled by the ratio of two clock rates."""
WIDE_SHARE = 0.5
"""Figures with a range wider than ×/÷ 4 count if their upper ends are at most this share of the rest."""


@dataclass
class SideCost:
    """The cost of one side's work on a device.

    Attributes:
        parts: seconds with their range by cause; parts with the same cause share their error.
        sd_s: standard deviation of a single handshake, operations taken as independent.
        message_s: mean seconds by index of the message the work belongs to; None for work outside any.
        message_sd_s: standard deviations, by the same index; only of messages whose work varies.
        bases: seconds by basis.
        figures: rows naming every figure that is not the device's own.
        without_cost: rows for the work without a figure; if there are any, the total is a lower bound.
        without_cost_high_s: upper bound of that work, infinite if there is none.
        connection: seconds of a TCP connection, kernel included; not in the total.
        connection_cause: its cause, as for parts.
        connection_sd_s: its standard deviation from connection to connection.
        primitive_energy_j: the sum of the primitives' own energies, or None if any is missing.
    """

    parts: dict[str, Range] = field(default_factory=dict)
    sd_s: float = 0.0
    message_s: dict[int | None, float] = field(default_factory=dict)
    message_sd_s: dict[int | None, float] = field(default_factory=dict)
    bases: dict[Basis, Range] = field(default_factory=dict)
    figures: list[dict[str, Any]] = field(default_factory=list)
    without_cost: list[dict[str, Any]] = field(default_factory=list)
    without_cost_high_s: float = 0.0
    connection: Range | None = None
    connection_cause: str = "connection"
    connection_sd_s: float = 0.0
    primitive_energy_j: float | None = None

    @property
    def total(self) -> Range:
        """Seconds, with the 90 % range: causes combine as independent."""
        return combined(self.parts)

    @property
    def whole(self) -> Range:
        """The same; its upper end includes the work without a cost figure."""
        total = self.total
        return total._replace(high=total.high + self.without_cost_high_s)

    @property
    def parts_with_connection(self) -> dict[str, Range]:
        if self.connection is None:
            return self.parts
        return merged((self.parts, {self.connection_cause: self.connection}))

    @property
    def with_connection(self) -> Range:
        return combined(self.parts_with_connection)

    @property
    def connection_s(self) -> float:
        """Mean seconds of a TCP connection."""
        return 0.0 if self.connection is None else self.connection.mean

    @property
    def sd_with_connection_s(self) -> float:
        """Standard deviation of a single handshake with its TCP connection."""
        return self.sd_s if self.connection is None else math.hypot(self.sd_s, self.connection_sd_s)

    @property
    def basis(self) -> Basis:
        """The basis of the total: the weakest that matters, `unknown` if any cost is missing."""
        return basis_of([self])

    @property
    def missing(self) -> tuple[str, ...]:
        """The work without a cost figure, in words: `server verify ecdsa p256`."""
        return tuple(
            dict.fromkeys(
                " ".join(filter(None, (one["side"], one["operation"], one["algorithm"], one["parameters"])))
                for one in self.without_cost
            )
        )

    def at_low(self) -> SideCost:
        """The same work at the low end of its range, without a range."""
        whole = self.with_connection
        share = whole.low / whole.mean if whole.mean > 0.0 else 1.0
        return replace(
            self,
            parts={"least": exactly(self.total.mean * share)},
            **self._scaled(share),
            connection=None if self.connection is None else exactly(self.connection.mean * share),
            connection_sd_s=self.connection_sd_s * share,
        )

    def repeated(self, count: int) -> SideCost:
        """N times the same work; the parts without a cost figure stay the same."""
        return replace(
            self,
            parts={cause: part.times(count) for cause, part in self.parts.items()},
            bases={basis: part.times(count) for basis, part in self.bases.items()},
        )

    def measured(self, whole: Range) -> SideCost:
        """The same work with a measured total, connection included; the model only divides it into parts."""
        modelled_s = self.with_connection.mean
        share = self.connection_s / modelled_s if modelled_s > 0.0 else 0.0
        scale = whole.mean / modelled_s if modelled_s > 0.0 else 0.0
        cause = "calibration"
        return replace(
            self,
            parts={cause: whole.times(1.0 - share)},
            **self._scaled(scale),
            bases={"own": whole},
            figures=[],
            without_cost=[],
            without_cost_high_s=0.0,
            connection=whole.times(share),
            connection_cause=cause,
            connection_sd_s=self.connection_sd_s * scale,
        )

    def _scaled(self, times: float) -> dict[str, Any]:
        """Deviations, and the work of each message, multiplied by a factor."""
        return {
            "sd_s": self.sd_s * times,
            "message_s": {at: seconds * times for at, seconds in self.message_s.items()},
            "message_sd_s": {at: seconds * times for at, seconds in self.message_sd_s.items()},
        }

    def _add(self, part: Part, at: int | None) -> None:
        none = exactly(0.0)
        self.parts[part.cause] = self.parts.get(part.cause, none).plus(part.time)
        self.bases[part.basis] = self.bases.get(part.basis, none).plus(part.time)
        self.message_s[at] = self.message_s.get(at, 0.0) + part.time.mean


@dataclass(frozen=True)
class Work:
    """The costs of both sides' work; on one device a cause has the same error on both sides."""

    client: SideCost
    server: SideCost
    one_device: bool

    def __iter__(self) -> Iterator[SideCost]:
        return iter((self.client, self.server))

    @property
    def parts(self) -> dict[str, Range]:
        """Seconds by cause, without TCP connections."""
        return self._merged(self.client.parts, self.server.parts)

    @property
    def with_connection(self) -> Range:
        """Seconds, TCP connections included."""
        return combined(self._merged(*(side.parts_with_connection for side in self)))

    @property
    def missing(self) -> tuple[str, ...]:
        return (*self.client.missing, *self.server.missing)

    def at_low(self) -> Work:
        """Both sides at the low ends of their ranges, without a range."""
        return Work(self.client.at_low(), self.server.at_low(), self.one_device)

    def _merged(self, client: Mapping[str, Range], server: Mapping[str, Range]) -> dict[str, Range]:
        prefix = "" if self.one_device else "server "
        return merged((client, {f"{prefix}{cause}": part for cause, part in server.items()}))


def basis_of(costs: Sequence[SideCost]) -> Basis:
    """The basis of a sum of costs: the weakest that matters, `unknown` if any cost is missing."""
    return "unknown" if any(one.without_cost for one in costs) else known_basis(costs)


def known_basis(costs: Sequence[SideCost]) -> Basis:
    """The basis of the estimated part of a sum: the weakest that matters."""
    whole = math.fsum(part.mean for one in costs for part in one.bases.values())
    upper: dict[Basis, float] = {}
    for one in costs:
        for basis, part in one.bases.items():
            upper[basis] = upper.get(basis, 0.0) + part.high
    return weakest(basis for basis, seconds in upper.items() if seconds > NEGLIGIBLE_SHARE * whole)


def side_cost(trace: Trace, side: Side, device: Device, scale_from: Device | None = None) -> SideCost:
    """Estimate one side of a handshake on a device.

    For a device without primitives, the figures of ``scale_from`` are scaled by the ratio of the clock rates.
    Raises `InputError` if it is missing.
    """
    return on_device(lambda one: SideEstimator(trace, side, one), device, scale_from)


def on_device(
    estimator: Callable[[Device], SideEstimator], device: Device, scale_from: Device | None = None
) -> SideCost:
    """Work on a device, or on another one, scaled by the ratio of the clocks. Raises `InputError`."""
    if device.has_primitives:
        return estimator(device).run()
    if scale_from is None:
        raise InputError(
            f"device {device.name!r} has no primitives, only a description; "
            "accepted: a device with primitives, or --scale-from DEVICE to scale another's by the clock rate"
        )
    if not scale_from.has_primitives:
        raise InputError(f"device {scale_from.name!r} has no primitives to scale from")
    return _by_clock(estimator(scale_from).run(), device, scale_from)


class SideEstimator:
    """One side's work, estimated part by part."""

    def __init__(self, trace: Trace, side: Side, device: Device) -> None:
        self.trace, self.side, self.device = trace, side, device
        self.work = StackWork(device)
        self.cost = SideCost()
        self.rows: dict[Triple, dict[str, Any]] = {}
        self.variances: dict[int | None, float] = {}
        self.wide: list[tuple[Operation, list[Part]]] = []
        self.names = {message.index: message.name for message in trace.messages}
        self.software = trace.software if side == "server" else None
        self.public_keys = any(is_public_key(one.triple[0]) for one in trace.operations)
        cooling = device.overhead.cooling
        public_s = self._public_s() if cooling.messages or cooling.symmetric else 0.0
        self.slower_stack = cooling.of_messages(public_s)
        self.slower_symmetric = cooling.of_symmetric(public_s)

    def _public_s(self) -> float:
        """Known public-key work of both sides, which leaves caches cold."""
        found = 0.0
        for operation in self.trace.operations:
            if is_public_key(operation.triple[0]):
                own = self._own(operation)
                mean_s = own.mean_s if own else call_figure(self.device, operation.triple).mean_s
                found += operation.count * (mean_s or 0.0)
        return found

    def _own(self, operation: Operation) -> Cost | None:
        """This device's figure for an operation in this protocol and message."""
        name = "" if operation.message is None else self.names.get(operation.message, "")
        placed = self.device.overhead.primitive(self.trace.protocol, name, operation.triple)
        return placed or self.device.costs.get(operation.triple)

    def run(self) -> SideCost:
        with_energy = any(cost.energy_j is not None for cost in self.device.costs.values())
        energy_j: float | None = 0.0 if with_energy else None
        for operation in self.trace.operations:
            if operation.side != self.side:
                continue
            if operation.triple[0] in SYMMETRIC_OPERATIONS:
                self._symmetric(operation)
            elif operation.triple[0] == "import":
                self._import(operation)
            else:
                energy_j = self._call(operation, energy_j)
        if self.trace.partial:
            hidden = Operation(self.side, None, "symmetric work", "", "")
            self._missing(hidden, "a capture does not show it, and no handshake of the suite was measured")
        self._stack()
        self._settle_wide()
        self._connection()
        self.cost.primitive_energy_j = energy_j
        self.cost.sd_s = math.sqrt(math.fsum(self.variances.values()))
        self.cost.message_sd_s = {at: math.sqrt(one) for at, one in self.variances.items() if one > 0.0}
        self.cost.figures = list(self.rows.values())
        return self.cost

    def _call(self, operation: Operation, energy_j: float | None) -> float | None:
        figure = call_figure(self.device, operation.triple)
        own = self._own(operation)
        if own is not None and own is not self.device.costs.get(operation.triple):
            figure = own_figure(self.device, operation.triple, own)
        if self.software is not None and self.software.library is not None:
            figure = library_figure(self.device, operation.triple, figure, self.software.library)
        if figure.time is None:
            self._missing(operation, figure.method, figure.at_most_s * operation.count)
            return None
        time = figure.time.times(operation.count)
        self._vary(figure.sd_s**2 * operation.count, operation.message)
        self._add(operation, Part(figure.cause, time, figure.basis, figure.method))
        known = figure.energy_j
        return None if energy_j is None or known is None else energy_j + known * operation.count

    def _symmetric(self, operation: Operation) -> None:
        found = symmetric_parts(
            self.device, self.work, operation, own=self._own(operation), slower=self.slower_symmetric
        )
        if not isinstance(found, list):
            self._missing(operation, found.method)
        elif any(part.wide for part in found):
            self.wide.append((operation, found))
        else:
            self._add_all(operation, found)

    def _add_all(self, operation: Operation, parts: list[Part]) -> None:
        count = operation.count
        for part in parts:
            count = 0 if self._add(operation, part, count) else count

    def _settle_wide(self) -> None:
        """Include roughly known symmetric work if the total stays known; otherwise list it as unknown."""
        rest_s = self.cost.total.mean
        high_s = math.fsum(part.time.high for _, parts in self.wide for part in parts if part.wide)
        for operation, parts in self.wide:
            if high_s <= WIDE_SHARE * rest_s:
                self._add_all(operation, parts)
                continue
            wide = max(part.wide for part in parts)
            taken_s = math.fsum(part.time.high for part in parts)
            self._missing(operation, f"by the clock it is uncertain by ×/÷ {wide:.1f}", taken_s)

    def _import(self, operation: Operation) -> None:
        own = self._own(operation)
        if own is not None:
            self._add(operation, self._own_part(own.mean_s * operation.count * self.slower_symmetric))
            return
        shown = reference().imports
        _, algorithm, parameters = operation.triple
        seconds = shown.get((algorithm, parameters), shown.get((algorithm, "")))
        if seconds is None:
            self._missing(operation, "no measurement of decoding such a key")
            return
        method = f"decoding of a key: {self.work.stack.method}"
        time = self.work.stack.of(seconds * operation.count)
        self._add(operation, Part(self.work.cause, time, "assumed", method))

    def _stack(self) -> None:
        """The stack's own work, on every message and outside them."""
        own = self.device.overhead
        if own.known and not own.messages:
            self._plain_overhead()
            return
        protocol = self.trace.protocol
        public_keys = self.public_keys
        # Caches that public-key work leaves cold are those of large cores.
        cold = public_keys or self.device.core.word_bits != 64
        inside: dict[int | None, list[Triple]] = {}
        for operation in self.trace.operations:
            if operation.side == self.side:
                inside.setdefault(operation.message, []).append(operation.triple)
        for message in self.trace.messages:
            verb = "generate" if message.sender == self.side else "process"
            kind = message_kind(message.name, message.size_bytes)
            key = message_key(inside.get(message.index, ()))
            known = own.of(protocol, kind, verb, key, public_keys=public_keys)
            cost = known or reference().message(protocol, kind, verb, public_keys=cold)
            if cost is None:
                self._stack_without_cost(message, verb)
                continue
            seconds = cost.mean_s + cost.per_kib_s * message.size_bytes / 1024.0
            ratio = self.slower_stack if known else self.work.stack.factor
            self._vary((cost.sd_s * ratio) ** 2, message.index)
            part = self._own_part(seconds * ratio) if known else self._assumed(seconds)
            self._stack_part(part, message.index)
        known = own.outside(protocol, self.side, public_keys=public_keys)
        rest = known or reference().handshake(protocol, self.side, public_keys=cold)
        if rest is not None:
            part = self._own_part(rest.mean_s * self.slower_stack) if known else self._assumed(rest.mean_s)
            self._stack_part(part, None)

    def _own_part(self, seconds: float) -> Part:
        return Part(f"{self.device.name}: own", within(seconds, self.device.spread), "own", "")

    def _assumed(self, seconds: float) -> Part:
        return Part(self.work.cause, self.work.stack.of(seconds), "assumed", self.work.stack.method)

    def _plain_overhead(self) -> None:
        own = self.device.overhead
        self._stack_part(self._own_part(own.per_handshake_s), None)
        for message in self.trace.messages:
            seconds = own.per_message_s + own.per_byte_s * message.size_bytes
            self._stack_part(self._own_part(seconds), message.index)
        self._vary(own.sd_s**2, None)

    def _connection(self) -> None:
        if self.trace.datagrams:
            self.cost.connection = exactly(0.0)
            return
        kib = (self.trace.size_bytes("client") + self.trace.size_bytes("server")) / 1024.0
        factor = AS_OURS if self.software is None else self.software.connection
        own = self.device.connection.of(self.side, kib, self.cost.total.mean)
        if own is not None:
            variation = math.exp(NORMAL_90 * self.device.connection.sd_s / own) if own > 0.0 else 1.0
            self.cost.connection = within(own, self.device.spread).scaled(1.0, variation).scaled(*factor)
            self.cost.connection_sd_s = self.device.connection.sd_s * factor.times
            return
        shown = reference().connection
        seconds = shown[f"{self.side}_s"] + shown["per_kib_s"] * kib
        colder = self.cost.total.times(shown.get(f"{self.side}_cold", 0.0))
        self.cost.connection = self.work.network.of(seconds).plus(colder).scaled(*factor)

    def _of_software(self, part: Part) -> Part:
        """Work other than public-key operations, scaled by the server software's factor."""
        software = self.software
        factor = AS_OURS if software is None else software.work_of(public_keys=self.public_keys)
        if software is None or factor == AS_OURS:
            return part
        method = f"{software.name}'s work beside public-key operations: × {factor.times:g}"
        return replace(
            part,
            cause=f"{software.name}: work",
            time=part.time.scaled(*factor),
            basis=weakest((part.basis, "scaled")),
            method="; ".join(filter(None, (part.method, method))),
        )

    def _vary(self, variance_s2: float, at: int | None) -> None:
        self.variances[at] = self.variances.get(at, 0.0) + variance_s2

    def _stack_part(self, part: Part, at: int | None) -> None:
        if part.time.high <= 0.0:
            return
        part = self._of_software(part)
        self.cost._add(part, at)
        if part.method:
            self._note(("stack", "", ""), part, 1)

    def _stack_without_cost(self, message: Message, verb: str) -> None:
        self.cost.without_cost_high_s = math.inf
        work = _row(self.side, ("stack", "", f"{verb} {message.name}"), 1)
        self.cost.without_cost.append({**work, "reason": "no stack's work on such a message was measured"})

    def _add(self, operation: Operation, part: Part, count: int | None = None) -> bool:
        """Add a part; note it with its calls, and return True, if it is not the device's own figure."""
        if part.time.high <= 0.0 and part.basis != "own":
            return False
        if not is_public_key(operation.triple[0]):
            part = self._of_software(of_stack(part) if operation.borrowed else part)
        self.cost._add(part, operation.message)
        noted = bool(part.method) and part.time.high > 0.0
        if noted:
            self._note(operation.triple, part, operation.count if count is None else count)
        return noted

    def _note(self, key: Triple, part: Part, count: int) -> None:
        """Add a part to the row of its operation, whose basis is the weakest of its parts."""
        row = self.rows.setdefault(
            key,
            {
                **_row(self.side, key, 0),
                "basis": part.basis,
                "method": part.method,
                "source": self.device.name,
                "time_s": 0.0,
                "range_s": [0.0, 0.0],
            },
        )
        if f"; {part.method}; " not in f"; {row['method']}; ":
            row["method"] += f"; {part.method}"
        row["basis"] = weakest((row["basis"], part.basis))
        row["count"] += count
        row["time_s"] += part.time.mean
        row["range_s"] = [row["range_s"][0] + part.time.low, row["range_s"][1] + part.time.high]

    def _missing(self, operation: Operation, reason: str, high_s: float = math.inf) -> None:
        self.cost.without_cost_high_s += high_s
        for row in self.cost.without_cost:
            if (row["operation"], row["algorithm"], row["parameters"]) == operation.triple:
                row["count"] += operation.count
                return
        self.cost.without_cost.append(
            {**_row(self.side, operation.triple, operation.count), "reason": reason}
        )


def _row(side: str, work: Triple, count: int) -> dict[str, Any]:
    names = ("operation", "algorithm", "parameters")
    return {"side": side, **dict(zip(names, work, strict=True)), "count": count}


def _by_clock(found: SideCost, device: Device, scale_from: Device) -> SideCost:
    """Another device's cost, scaled by the ratio of the clock rates: all of its figures are assumed."""
    ratio = scale_from.clock_hz / device.clock_hz
    whole = found.total.times(ratio).widened(CLOCK_SPREAD)
    method = f"clock: {scale_from.name}'s figures × {ratio:.4g}"
    rows = [
        {
            **row,
            "basis": "assumed",
            "method": f"{method}, itself {row['method']}",
            "source": scale_from.name,
            "time_s": row["time_s"] * ratio,
            "range_s": [end * ratio * step for end, step in zip(row["range_s"], (0.5, 2.0), strict=True)],
        }
        for row in found.figures
    ]
    own_s = found.bases.get("own", exactly(0.0)).mean * ratio
    if own_s > 0.0:
        row = {
            **_row("", ("all", "", ""), 1),
            "basis": "assumed",
            "method": method,
            "source": scale_from.name,
            "time_s": own_s,
            "range_s": [own_s / CLOCK_SPREAD, own_s * CLOCK_SPREAD],
        }
        rows.insert(0, row)
    return SideCost(
        parts={f"{device.name}: clock of {scale_from.name}": whole},
        **found._scaled(ratio),
        bases={"assumed": whole},
        figures=rows,
        without_cost=found.without_cost,
        without_cost_high_s=found.without_cost_high_s * ratio * CLOCK_SPREAD,
        connection=None if found.connection is None else found.connection.times(ratio).widened(CLOCK_SPREAD),
        connection_sd_s=found.connection_sd_s * ratio,
    )
