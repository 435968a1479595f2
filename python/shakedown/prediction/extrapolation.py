"""What a public-key call costs on a device: its own figure, else one scaled from its others, else unknown;
symmetric work is assumed by the clock before it is unknown.

How figures are scaled, and how often their ranges hold, is described in ``docs/reference/extrapolation.md``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from shakedown.models.ranges import Range, combined, within
from shakedown.prediction.clock import shipped_cycles
from shakedown.prediction.pairs import RELATION, shipped_pairs
from shakedown.prediction.ratios import LEVELS, WIDEST, Scaled, build_of, shipped
from shakedown.prediction.software import is_left_to_software, shipped_software
from shakedown.profiles.costs import Cost, Triple
from shakedown.profiles.device import Device
from shakedown.profiles.vocabulary import HYBRID_PARTS, SYMMETRIC_OPERATIONS

Basis = Literal["own", "scaled", "assumed", "unknown"]
"""What a figure stands on, strongest first."""

STRENGTH: dict[Basis, int] = {"own": 0, "scaled": 1, "assumed": 2, "unknown": 3}


REJECTION_SD = {"mldsa44": 0.72, "mldsa65": 0.70, "mldsa87": 0.66}
"""Deviation of an ML-DSA signature's time as a share of its mean, where a source gives the mean alone.

Of 3,000 signatures each by OpenSSL 3.6. FIPS 204 expects 4.25, 5.1 and 3.85 rounds, of which every one is
the last with the same probability; with the least time measured (0.36, 0.34 and 0.39 of the mean, one
round) that makes 0.73, 0.74 and 0.71.
"""


@dataclass(frozen=True, slots=True)
class Figure:
    """The time of one call (of a KiB, for symmetric work): mean with its 90 % range, and call-to-call
    deviation.

    Attributes:
        time: None where nothing prices the call.
        sd_s: standard deviation from call to call, not the figure's uncertainty.
        basis: what it stands on.
        method: how it was obtained; empty for the device's own figure.
        cause: names what makes it uncertain: figures of one cause are wrong together.
        energy_j: energy of one call, None where unknown.
    """

    time: Range | None
    sd_s: float = 0.0
    basis: Basis = "own"
    method: str = ""
    cause: str = ""
    energy_j: float | None = None

    @property
    def mean_s(self) -> float:
        """The mean; 0 where unknown."""
        return 0.0 if self.time is None else self.time.mean


def call_figure(device: Device, triple: Triple) -> Figure:
    """Return what one public-key call, or a KiB of symmetric work, costs on a device that has primitives.

    A range wider than ×/÷ `WIDEST` is given of symmetric work alone: a small part of most handshakes.
    """
    return _call_figure(_Key(device), triple)


class _Key:
    """A device as a cache key: profiles are loaded once and compared by identity."""

    __slots__ = ("device",)

    def __init__(self, device: Device) -> None:
        self.device = device

    def __hash__(self) -> int:
        return id(self.device)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and other.device is self.device


@lru_cache(maxsize=4096)
def _call_figure(key: _Key, triple: Triple) -> Figure:
    device = key.device
    own = _own(device, triple)
    if own is not None:
        return own
    if triple[1] == "hybrid":
        return _hybrid(device, triple)
    like = build_of(device)
    found = shipped().estimate(triple, like)
    if found is not None and found.half <= math.log(WIDEST):
        return _scaled(device, triple, found)
    pair = shipped_pairs().estimate(triple, like)
    if pair is not None:
        return _scaled(device, triple, pair)
    left = _in_software(device, triple)
    if left is not None:
        return left
    if triple[0] in SYMMETRIC_OPERATIONS:
        assumed = shipped_cycles().estimate(triple, like)
        if assumed is not None:
            return _assumed(device, triple, assumed)
    return _unknown(triple, found)


def _own(device: Device, triple: Triple) -> Figure | None:
    cost = device.costs.get(triple)
    return None if cost is None else own_figure(device, triple, cost)


def own_figure(device: Device, triple: Triple, cost: Cost) -> Figure:
    """A cost of the device's own as a figure; of symmetric work, of a KiB."""
    time_s = cost.per_kib_s if triple[0] in SYMMETRIC_OPERATIONS else cost.mean_s
    time, sd_s = within(time_s, device.spread), _deviation_s(triple, cost.mean_s, cost.sd_s)
    return Figure(time, sd_s, "own", "", f"{device.name}: own", cost.energy_j)


def _deviation_s(triple: Triple, mean_s: float, sd_s: float) -> float:
    """The deviation from call to call, that of a rejection loop where none is known."""
    if sd_s <= 0.0 and triple[:2] == ("sign", "mldsa"):
        return REJECTION_SD[triple[2]] * mean_s
    return sd_s


def _scaled(device: Device, triple: Triple, found: Scaled) -> Figure:
    cost = device.costs[found.base]
    middle_s = math.exp(found.log_s)
    # A device whose own figures are doubtful has doubtful ones scaled from them.
    half = math.hypot(found.half, max(0.0, math.log(device.spread / 1.1)))
    base = " ".join(found.base).strip()
    boards = f"{found.boards} boards" if found.boards != 1 else "1 board"
    where = f"{boards} alike in {LEVELS[found.level]}" if found.level < 3 else boards
    method = f"{found.relation}: {base} × {found.ratio:.3g}"
    method += f", as on {where}" if found.boards else ", by arithmetic"
    # All calls on one curve scaled from those on one other are wrong together.
    what = f"{triple[2]} by {found.base[2]}" if found.relation == RELATION else " ".join(triple).strip()
    sd_s = cost.sd_s * middle_s / cost.mean_s if cost.mean_s > 0.0 and found.base[0] == triple[0] else 0.0
    return Figure(
        Range(middle_s * math.exp(-half), middle_s, middle_s * math.exp(half)),
        _deviation_s(triple, middle_s, sd_s),
        "scaled",
        method,
        f"{device.name}: {what}",
    )


def _assumed(device: Device, triple: Triple, found: Scaled) -> Figure:
    """Symmetric work by the clock: all such figures of a device are wrong together."""
    middle_s = math.exp(found.log_s)
    where = f" alike in {LEVELS[found.level]}" if found.level < 3 else ""
    method = f"clock: {found.ratio:.3g} cycles a KiB, as on {found.boards} boards{where}"
    time = Range(middle_s * math.exp(-found.half), middle_s, middle_s * math.exp(found.half))
    return Figure(time, 0.0, "assumed", method, f"{device.name}: symmetric work by the clock")


def _in_software(device: Device, triple: Triple) -> Figure | None:
    """What the device's accelerator leaves to its library: as its build in C has it, else by the clock."""
    like = build_of(device)
    if not is_left_to_software(triple, like):
        return None
    for build in device.variants:
        if build.implementation.curves == "c" and build.lineage == device.lineage:
            there = call_figure(build, triple)
            if there.time is not None:
                how = f": {there.method}" if there.method else ""
                slower = build.clock_hz / device.clock_hz
                return Figure(
                    there.time.times(slower),
                    there.sd_s * slower,
                    "assumed",
                    f"in software, as {build.name} has it{how}",
                    f"{device.name}: {triple[2]} in software",
                )
    found = shipped_software().left(triple, like)
    if found is None:
        return None
    middle_s, apart = math.exp(found.log_s), math.exp(found.half)
    method = (
        f"in software: {found.ratio:.3g} cycles, as on {found.boards} boards alike in library and word size"
    )
    time = Range(middle_s / apart, middle_s, middle_s * apart)
    return Figure(time, 0.0, "assumed", method, f"{device.name}: curves in software")


def _unknown(triple: Triple, found: Scaled | None) -> Figure:
    why = "the device has no figure that it can be scaled from"
    if found is not None:
        base = " ".join(found.base).strip()
        why = f"the best ratio ({found.relation} {base}) is uncertain by ×/÷ {math.exp(found.half):.1f}"
    return Figure(None, basis="unknown", method=why, cause=" ".join(triple))


def _hybrid(device: Device, triple: Triple) -> Figure:
    """A hybrid is a classical key agreement and a KEM; the answering side also makes a key pair."""
    parts = hybrid_parts(triple)
    figures = [call_figure(device, part) for part in parts]
    names = " + ".join(f"{operation} {token}" for operation, _, token in parts)
    basis = weakest(figure.basis for figure in figures)
    missing = [part for part, figure in zip(parts, figures, strict=True) if figure.time is None]
    if missing:
        return Figure(
            None,
            basis="unknown",
            method=f"parts: {names}; no figure for {' '.join(missing[0])}",
            cause=" ".join(triple),
        )
    causes: dict[str, Range] = {}
    for figure in figures:
        assert figure.time is not None
        causes[figure.cause] = (
            causes[figure.cause].plus(figure.time) if figure.cause in causes else figure.time
        )
    how = [
        f"{' '.join(part)} by {figure.method}"
        for part, figure in zip(parts, figures, strict=True)
        if figure.method
    ]
    return Figure(
        combined(causes),
        math.sqrt(sum(figure.sd_s**2 for figure in figures)),
        weakest((basis, "scaled")),
        "; ".join([f"parts: {names}", *how]),
        f"{device.name}: {' '.join(triple)}" if basis != "own" else f"{device.name}: own",
    )


def hybrid_parts(triple: Triple) -> list[Triple]:
    """The operations that a hybrid's operation is made of."""
    classical, kem = HYBRID_PARTS[triple[2]]
    return {
        "keygen": [("keygen", "ecdh", classical), ("keygen", "mlkem", kem)],
        "encapsulate": [
            ("keygen", "ecdh", classical),
            ("derive", "ecdh", classical),
            ("encapsulate", "mlkem", kem),
        ],
        "decapsulate": [("derive", "ecdh", classical), ("decapsulate", "mlkem", kem)],
    }[triple[0]]


def weakest(bases: Iterable[Basis]) -> Basis:
    """The weakest of some bases; `own` of none."""
    return max(bases, key=STRENGTH.__getitem__, default="own")
