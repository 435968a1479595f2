"""The cost of a recorded handshake on a device: primitives, the stack's own work, and a TCP connection."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from shakedown.errors import InputError
from shakedown.models.ranges import NORMAL_90, exactly, within
from shakedown.prediction.captured import of_stack
from shakedown.prediction.figures import call_figure, library_figure, own_figure, weakest
from shakedown.prediction.stack_work import StackWork, reference
from shakedown.prediction.symmetric import Part, symmetric_parts
from shakedown.prediction.trace import Message, Operation, Trace
from shakedown.prediction.work import SideCost
from shakedown.profiles.costs import Cost, Triple
from shakedown.profiles.device import Device
from shakedown.profiles.overhead import is_public_key, message_key, message_kind
from shakedown.profiles.software import AS_OURS
from shakedown.profiles.vocabulary import SYMMETRIC_OPERATIONS
from shakedown.schema.base import Side

CLOCK_SPREAD = 2.0
"""Uncertainty, ×/÷, of figures that were scaled by the ratio of two clock rates."""
WIDE_SHARE = 0.5
"""Figures with a range wider than ×/÷ 4 count if their upper ends are at most this share of the rest."""


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
