"""The cost of one call on a device: the device's own figure, else an estimate of the cost model, else
unknown.

How figures are estimated, and how often their ranges hold, is described in
``docs/reference/extrapolation.md``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Generic, TypeVar

from shakedown.models.ranges import Range, combined, exactly, within
from shakedown.prediction.cost_model import (
    BUILD_LEVELS,
    HARDWARE,
    NOVELTIES,
    WIDEST,
    Build,
    Estimate,
    build_of,
    shipped,
)
from shakedown.prediction.primitives import group, kind
from shakedown.profiles.costs import Cost, Triple
from shakedown.profiles.device import DEFAULT_SPREAD, Device
from shakedown.profiles.software import UNIT, Library
from shakedown.profiles.vocabulary import HYBRID_PARTS, SYMMETRIC_OPERATIONS
from shakedown.schema.base import Basis

Thing = TypeVar("Thing", covariant=True)

_OFFERED_APART = frozenset({"montgomery-curve", "edwards-curve"})
"""Families of curves that an accelerator may lack: figures of P-256 do not predict them."""
_SYMMETRIC_WORDS = {
    "character": "kind",
    "operation": "mode",
    "size": "algorithm",
    "work": "algorithm and mode",
}
STRENGTH: dict[Basis, int] = {"own": 0, "measured": 1, "scaled": 2, "assumed": 3, "unknown": 4}
"""The basis of a figure, strongest first."""


REJECTION_SD = {"mldsa44": 0.72, "mldsa65": 0.70, "mldsa87": 0.66}
"""Relative standard deviation of an ML-DSA signature's time, for sources that give only the mean.

Measured on 3,000 signatures each by OpenSSL 3.6. FIPS 204 expects 4.25, 5.1 and 3.85 rounds, geometrically
distributed; with the least time measured (0.36, 0.34 and 0.39 of the mean, one round) this gives 0.73, 0.74
and 0.71.
"""


@dataclass(frozen=True, slots=True)
class Figure:
    """The time of one call (of a KiB, for symmetric work): mean with its 90 % range, and call-to-call
    deviation.

    Attributes:
        time: None if the call has no cost figure.
        sd_s: standard deviation from call to call, not the figure's uncertainty.
        method: how it was obtained; empty for the device's own figure.
        cause: the name of the source of uncertainty; figures with the same cause share their error.
        energy_j: energy of one call, None where unknown.
        at_most_s: upper bound of a call without a cost figure; infinite if there is none.
    """

    time: Range | None
    sd_s: float = 0.0
    basis: Basis = "own"
    method: str = ""
    cause: str = ""
    energy_j: float | None = None
    at_most_s: float = math.inf

    @property
    def high_s(self) -> float:
        """The upper end of the 90 % range of one call."""
        return self.at_most_s if self.time is None else self.time.high

    @property
    def mean_s(self) -> float:
        """The mean; 0 where unknown."""
        return 0.0 if self.time is None else self.time.mean


def call_figure(device: Device, triple: Triple) -> Figure:
    """Return the cost of one public-key call, or of a KiB of symmetric work, on a device that has primitives.

    Only symmetric work, a small part of most handshakes, may have a range wider than ×/÷ `WIDEST`.
    """
    return _call_figure(Same(device), triple)


def library_figure(device: Device, triple: Triple, figure: Figure, library: Library) -> Figure:
    """The cost of a call in a server's own library; `figure` is that in OpenSSL."""
    name = " ".join(triple)
    factor = library.primitives.get(name)
    base, what = (figure, "OpenSSL's") if factor is None else (call_figure(device, UNIT), " ".join(UNIT))
    times, spread = factor or library.other
    if base.time is None:
        return replace(base, at_most_s=base.at_most_s * times * spread)
    # Figures expressed in one unit share their error, because a processor may favour one library.
    cause = library.name if factor else f"{library.name}: {name}"
    return Figure(
        base.time.scaled(times, spread),
        figure.sd_s,
        weakest((base.basis, "scaled")),
        "; ".join(filter(None, (base.method, f"{library.name}: {what} × {times:g}"))),
        cause,
    )


@dataclass(frozen=True, eq=False, slots=True)
class Same(Generic[Thing]):
    """An object as a cache key, compared by identity, because profiles and traces are large."""

    thing: Thing

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.thing is other.thing

    def __hash__(self) -> int:
        return id(self.thing)


@lru_cache(maxsize=4096)
def _call_figure(key: Same[Device], triple: Triple) -> Figure:
    device = key.thing
    own = device.costs.get(triple)
    # A profile may have the time of a call only, which is not that of a KiB.
    if own is not None and (triple[0] not in SYMMETRIC_OPERATIONS or own.per_kib_s > 0.0):
        return own_figure(device, triple, own)
    if triple[1] == "hybrid":
        return _hybrid(device, triple)
    like, left = _computed_by(device, triple)
    if left is not None:
        return left
    found = shipped().estimate(triple, like, _in_software(device, like))
    widest = math.inf if triple[0] in SYMMETRIC_OPERATIONS else math.log(WIDEST) * (1.0 + 1e-12)
    if found.half >= widest:
        return _unknown(triple, found)
    return _estimated(device, triple, found)


def own_figure(device: Device, triple: Triple, cost: Cost) -> Figure:
    """A device's own cost as a figure; of a KiB for symmetric work."""
    time_s = cost.per_kib_s if triple[0] in SYMMETRIC_OPERATIONS else cost.mean_s
    time, sd_s = within(time_s, device.spread), _deviation_s(triple, cost.mean_s, cost.sd_s)
    return Figure(time, sd_s, "own", "", f"{device.name}: own", cost.energy_j)


def _deviation_s(triple: Triple, mean_s: float, sd_s: float) -> float:
    """The deviation from call to call; if none is known for ML-DSA signing, that of its rejection loop."""
    if sd_s <= 0.0 and triple[:2] == ("sign", "mldsa"):
        return REJECTION_SD[triple[2]] * mean_s
    return sd_s


def _estimated(device: Device, triple: Triple, found: Estimate) -> Figure:
    """An estimate as a figure: scaled if based on the device's own figures of the group, else assumed."""
    middle_s = math.exp(found.log_s)
    # Estimates from doubtful figures are doubtful, too.
    half = math.hypot(found.half, max(0.0, math.log(device.spread / DEFAULT_SPREAD)))
    base = found.base
    near = base is not None and group(base) == group(triple) and half <= math.log(WIDEST)
    if base is not None and near:
        cost = device.costs[base]
        own_s = cost.per_kib_s or cost.mean_s
        shared = _SYMMETRIC_WORDS.get(found.relation) if group(triple) == "symmetric" else None
        method = f"same {shared or found.relation}: {' '.join(base).strip()} × {middle_s / own_s:.3g}"
        sd_s = cost.sd_s * middle_s / cost.mean_s if cost.mean_s > 0.0 and base[0] == triple[0] else 0.0
    else:
        method, sd_s = f"clock: {middle_s * device.clock_hz:.3g} cycles", 0.0
    method += f", as on {_boards(found)}"
    if found.novelty != NOVELTIES[0]:
        method += f" ({found.novelty})"
    # Without an own figure of the group, errors have one common cause: the class of the build.
    what = " ".join(triple).strip() if near else f"{group(triple)} by the clock"
    time = Range(middle_s * math.exp(-half), middle_s, middle_s * math.exp(half))
    basis: Basis = "scaled" if near else "assumed"
    return Figure(time, _deviation_s(triple, middle_s, sd_s), basis, method, f"{device.name}: {what}")


def _boards(found: Estimate) -> str:
    if not found.boards:
        return "related primitives"
    boards = f"{found.boards} board" + ("s" if found.boards != 1 else "")
    alike = f"{boards} alike in {BUILD_LEVELS[found.level]}" if found.level else boards
    return f"{alike} and in another library on this one" if found.siblings else alike


def _in_software(device: Device, like: Build) -> list[Build]:
    """The board's builds in C, if a device computes in C what its hardware lacks."""
    if like.kinds["curves"] == device.implementation.curves:
        return []
    return [one for one in shipped().builds if one.board == like.board and one.kinds["curves"] == "c"]


def _computed_by(device: Device, triple: Triple) -> tuple[Build, Figure | None]:
    """The build with which a device computes a primitive, or the figure of its build in C.

    A device that computes curves in hardware, and has no figure of a Montgomery or Edwards curve, is assumed
    to compute these by its library in C.
    """
    like, family = build_of(device), kind(triple)
    if (
        family not in _OFFERED_APART
        or like.kinds["curves"] not in HARDWARE
        or any(kind(base) == family for base in like.log_s)
    ):
        return like, None
    for build in device.variants:
        if build.implementation.curves == "c" and build.lineage == device.lineage:
            there = call_figure(build, triple)
            if there.time is not None:
                how = f": {there.method}" if there.method else ""
                slower = build.clock_hz / device.clock_hz
                return like, Figure(
                    there.time.times(slower),
                    there.sd_s * slower,
                    "assumed",
                    f"in software, as {build.name} has it{how}",
                    f"{device.name}: {triple[2]} in software",
                )
    software = {base: value for base, value in like.log_s.items() if group(base) != "curves"}
    return replace(like, kinds={**like.kinds, "curves": "c"}, log_s=software), None


def _unknown(triple: Triple, found: Estimate) -> Figure:
    why = "by the clock" if found.base is None else f"by {' '.join(found.base).strip()} and others"
    how = "is not known" if math.isinf(found.half) else f"is uncertain by ×/÷ {math.exp(found.half):.1f}"
    why = f"an estimate {why} {how}"
    at_most_s = math.exp(found.log_s + found.half) if math.isfinite(found.half) else math.inf
    return Figure(None, basis="unknown", method=why, cause=" ".join(triple), at_most_s=at_most_s)


def _hybrid(device: Device, triple: Triple) -> Figure:
    """A hybrid is a classical key agreement and a KEM; the answering side also generates a key pair."""
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
            at_most_s=math.fsum(figure.high_s for figure in figures),
        )
    causes: dict[str, Range] = {}
    for figure in figures:
        assert figure.time is not None
        causes[figure.cause] = causes.get(figure.cause, exactly(0.0)).plus(figure.time)
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
    """The weakest of some bases; `own` if there are none."""
    return max(bases, key=STRENGTH.__getitem__, default="own")
