"""Pricing a recorded handshake on a device: each operation at its own figure, else extrapolated, and said so.

Symmetric work and imports without a figure count as 0; they are named like every other figure that is not the
device's own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from shakedown.errors import InputError
from shakedown.models.ranges import Range, exactly
from shakedown.pricing.extrapolation import Figure, call_figure
from shakedown.pricing.trace import Operation, Trace
from shakedown.profiles.device import Device, Triple
from shakedown.profiles.vocabulary import SYMMETRIC_OPERATIONS
from shakedown.schema.base import Side

CLOCK_SPREAD = 2.0
"""Range, ×/÷, of figures that were scaled by the ratio of two clocks."""


@dataclass
class Price:
    """What one side's work costs on a device.

    Attributes:
        total: seconds, with the range that the figures allow.
        sd_s: standard deviation of a single handshake, operations taken as independent.
        message_s: mean seconds by index of the message the work belongs to; None for work outside any.
        extrapolated: rows naming every figure that is not the device's own.
        primitive_energy_j: the sum of the primitives' own energies, or None if any is missing.
    """

    total: Range = field(default_factory=lambda: exactly(0.0))
    sd_s: float = 0.0
    message_s: dict[int | None, float] = field(default_factory=dict)
    extrapolated: list[dict[str, Any]] = field(default_factory=list)
    primitive_energy_j: float | None = None


def price(trace: Trace, side: Side, device: Device, scale_from: Device | None = None) -> Price:
    """Price one side of a handshake on a device.

    Args:
        trace: the recorded handshake.
        side: ``client`` or ``server``.
        device: whose figures to use.
        scale_from: for a device without primitives, the one whose figures are scaled by the clocks' ratio.

    Raises:
        InputError: for a device without primitives and no ``scale_from``, or an operation that nothing can
            price.
    """
    basis = _basis(device, scale_from)
    with_energy = any(cost.energy_j is not None for cost in basis.costs.values())
    result = Price(primitive_energy_j=0.0 if with_energy else None)
    variance = 0.0
    rows: dict[Triple, dict[str, Any]] = {}
    for operation in trace.operations:
        if operation.side != side:
            continue
        figure = _figure(basis, operation, scale_from, device)
        result.total = result.total.plus(figure.time)
        variance += figure.sd_s**2
        at = operation.message
        result.message_s[at] = result.message_s.get(at, 0.0) + figure.time.mean
        if result.primitive_energy_j is not None:
            known = figure.energy_j
            result.primitive_energy_j = None if known is None else result.primitive_energy_j + known
        if figure.method:
            _note(rows, side, operation, figure)
    overhead = basis.overhead
    extra_s = overhead.per_handshake_s + overhead.per_message_s * len(trace.messages)
    extra_s += overhead.per_byte_s * (trace.size_bytes("client") + trace.size_bytes("server"))
    if scale_from is not None and basis is scale_from:
        extra_s *= scale_from.clock_hz / device.clock_hz
    result.total = result.total.plus(exactly(extra_s))
    result.sd_s = math.sqrt(variance)
    result.extrapolated = list(rows.values())
    return result


def _basis(device: Device, scale_from: Device | None) -> Device:
    if device.priced:
        return device
    if scale_from is None:
        raise InputError(
            f"device {device.name!r} has no primitives, only a description; "
            "accepted: a device with primitives, or --scale-from DEVICE to scale another's by the clock"
        )
    if not scale_from.priced:
        raise InputError(f"device {scale_from.name!r} has no primitives to scale from")
    return scale_from


def _figure(basis: Device, operation: Operation, scale_from: Device | None, device: Device) -> Figure:
    if operation.triple[0] in SYMMETRIC_OPERATIONS:
        figure = _symmetric(basis, operation)
    else:
        one = call_figure(basis, operation.triple)
        times = operation.count
        energy = None if one.energy_j is None else one.energy_j * times
        figure = Figure(one.time.times(times), one.sd_s * math.sqrt(times), one.method, one.source, energy)
    if basis is device or scale_from is None:
        return figure
    if figure.time.high == 0.0:
        return figure
    ratio = scale_from.clock_hz / device.clock_hz
    method = f"clock: {scale_from.name}'s figure × {ratio:.4g}"
    if figure.method:
        method += f", itself {figure.method}"
    return Figure(
        figure.time.times(ratio).widened(CLOCK_SPREAD), figure.sd_s * ratio, method, scale_from.name, None
    )


def _symmetric(device: Device, operation: Operation) -> Figure:
    cost = device.costs.get(operation.triple)
    if cost is None:
        return Figure(exactly(0.0), method="none: counts as 0", energy_j=0.0)
    energy = None if cost.energy_j is None else cost.energy_j * operation.count
    return Figure(exactly(cost.time_s(operation.count, operation.size_bytes)), energy_j=energy)


def _note(rows: dict[Triple, dict[str, Any]], side: Side, operation: Operation, figure: Figure) -> None:
    name, algorithm, parameters = operation.triple
    row = rows.setdefault(
        operation.triple,
        {
            "side": side,
            "operation": name,
            "algorithm": algorithm,
            "parameters": parameters,
            "count": 0,
            "method": figure.method,
            "source": figure.source,
            "time_s": 0.0,
            "range_s": [0.0, 0.0],
        },
    )
    row["count"] += operation.count
    row["time_s"] += figure.time.mean
    row["range_s"] = [row["range_s"][0] + figure.time.low, row["range_s"][1] + figure.time.high]


def priced_messages(priced: Price, indexes: Iterable[int]) -> list[float]:
    """Return the mean seconds of some messages, 0 for those without priced work."""
    return [priced.message_s.get(index, 0.0) for index in indexes]
