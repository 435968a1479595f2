"""Scaling one device's figure to another primitive by the ratio that the nearest class of builds shows.

For a primitive that a device lacks, every figure that it has is a candidate to scale from. The ratio is
taken over the reference builds of the nearest class that has both: the same library, way of computing
(C, assembler, accelerator) and word size; then any library; then the word size alone; then all. A board
counts once, whatever the number of its builds; the arithmetic expectation of a relation, where there is
one, counts as one board more. The ratio is the geometric mean; its range is that of a Student's t
prediction whose variance is drawn towards the relation's own, times a factor fitted so that, with whole
boards left out, 90 % of the known figures lie in it (normalised conformal prediction). The candidate with
the narrowest range wins; where that is wider than ×/÷ `WIDEST`, there is no figure.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shakedown.prediction.relations import Relation, group, kind, relation
from shakedown.profiles.costs import Triple
from shakedown.profiles.vocabulary import SYMMETRIC_OPERATIONS

if TYPE_CHECKING:
    from shakedown.profiles.device import Device

DATA = Path(__file__).parent.parent / "data" / "builds.json"
WIDEST = 4.0
"""A figure whose 90 % range is wider than this factor either way is no figure."""
LAW_DEVIATION = 0.2
"""How far a family's growth with size may be off its law, as a share of the logarithm, where no build
shows it.
"""
PRIOR_BOARDS = 3.0
"""How many boards the relation's own variance counts for beside a class's."""
LEVELS = (
    "library, way of computing and word size",
    "way of computing and word size",
    "word size",
    "any build",
)
MIN_BOARDS = {"related family": 3, "other family": 5}
"""Between families a few boards' ratio is no method."""
HARDWARE = ("accelerator", "secure element")
_T90 = (6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812)
_T90_TENS = {15: 1.753, 20: 1.725, 30: 1.697}
_NORMAL90 = 1.645


@dataclass(frozen=True, slots=True)
class Build:
    """A reference build: what its class goes by, its clock, and its figures' logarithms (of seconds)."""

    board: str
    lineage: str
    word_bits: int
    vector: bool
    clock_hz: float
    kinds: Mapping[str, str]
    log_s: Mapping[Triple, float]


@dataclass(frozen=True, slots=True)
class Scaled:
    """A figure scaled from another: the logarithm of its seconds, ± `half`, and where it comes from."""

    log_s: float
    half: float
    base: Triple
    ratio: float
    relation: str
    level: int
    boards: int
    width: float
    """The range before the fitted factor: what calibration divides by."""


_Classes = list[dict[tuple[object, ...], dict[str, float]]]


@dataclass
class Fit:
    """What was fitted: the relations' own deviations by class level, and the ranges' factors, by relation and
    by the family of the figure that is wanted; of cycles the deviations by class level, and the ranges'
    factors by mode; and of curves in a library's C the deviation and the factor.
    """

    deviations: dict[str, float] = field(default_factory=dict)
    factors: dict[str, float] = field(default_factory=dict)
    families: dict[str, float] = field(default_factory=dict)
    cycles: dict[str, float] = field(default_factory=dict)
    cycle_factors: dict[str, float] = field(default_factory=dict)
    software: dict[str, float] = field(default_factory=dict)


def log_costs(device: Device) -> dict[Triple, float]:
    """A device's figures as logarithms of seconds: of a call, or of a KiB of symmetric work."""
    found = {}
    for triple, cost in device.costs.items():
        value = cost.per_kib_s if triple[0] in SYMMETRIC_OPERATIONS else cost.mean_s
        if value > 0.0 and triple[0] not in ("import", "prf"):
            found[triple] = math.log(value)
    return found


def build_of(device: Device) -> Build:
    """A device as a build to compare with."""
    kinds = {name: getattr(device.implementation, name) for name in ("curves", "integers", "lattices")}
    kinds["symmetric"] = device.implementation.symmetric
    return Build(
        device.board,
        device.lineage,
        device.core.word_bits,
        device.core.vector not in ("", "none"),
        device.clock_hz,
        kinds,
        log_costs(device),
    )


def class_key(build: Build, of: str, level: int) -> tuple[object, ...]:
    """What two builds of one class have in common, at a level of `LEVELS`."""
    way = build.kinds[of]
    # Post-quantum code comes from other libraries than the rest of a build; vector units matter instead.
    library: object = build.vector if of == "lattices" else build.lineage
    return ((library, way, build.word_bits), (way, build.word_bits), (build.word_bits,), ())[level]


def levels_of(target: Triple, like: Build) -> range:
    """The class levels that may speak for a build: one with an accelerator is no software build."""
    return range(2 if like.kinds[group(target)] in HARDWARE else len(LEVELS))


class Ratios:
    """Reference builds, and ratios between their figures; `devices` are the profiles that they come from."""

    def __init__(self, builds: Iterable[Build], fit: Fit, devices: Sequence[str] = ()) -> None:
        """Keep the builds; nothing is computed before it is asked for."""
        self.builds = list(builds)
        self.fit = fit
        self.devices = tuple(devices)
        self._tables: dict[tuple[Triple, Triple], _Classes] = {}

    @cached_property
    def _by_triple(self) -> dict[Triple, dict[int, float]]:
        found: dict[Triple, dict[int, float]] = {}
        for index, build in enumerate(self.builds):
            for triple, value in build.log_s.items():
                found.setdefault(triple, {})[index] = value
        return found

    def triples(self) -> list[Triple]:
        """Every primitive that some build has."""
        return sorted(self._by_triple)

    def log_ratios(self, target: Triple, base: Triple) -> list[tuple[int, float]]:
        """The logarithm of target over base for every build that has both, by the build's index."""
        one, other = self._by_triple.get(target, {}), self._by_triple.get(base, {})
        return [(index, one[index] - other[index]) for index in one if index in other]

    def classes(self, target: Triple, base: Triple) -> _Classes:
        """By class level and class: each board's mean log ratio."""
        key = (target, base)
        if key not in self._tables:
            of = group(target)
            found: list[dict[tuple[object, ...], dict[str, list[float]]]] = [{} for _ in LEVELS]
            for index, value in self.log_ratios(target, base):
                build = self.builds[index]
                for level, classes in enumerate(found):
                    boards = classes.setdefault(class_key(build, of, level), {})
                    boards.setdefault(build.board, []).append(value)
            self._tables[key] = [
                {
                    name: {board: sum(values) / len(values) for board, values in boards.items()}
                    for name, boards in classes.items()
                }
                for classes in found
            ]
        return self._tables[key]

    def by_board(self, target: Triple, base: Triple, like: Build, level: int) -> list[float]:
        """The log ratio of each board of one class, `like`'s own left out."""
        boards = self.classes(target, base)[level].get(class_key(like, group(target), level), {})
        return [value for board, value in boards.items() if board != like.board]

    def estimate(self, target: Triple, like: Build) -> Scaled | None:
        """The narrowest estimate of a figure from those of a build, or None where nothing gives one."""
        best: Scaled | None = None
        for base in like.log_s:
            if base == target:
                continue
            related = relation(target, base)
            if related is None:
                continue
            for level in levels_of(target, like):
                found = self._scale(target, base, like, level, related)
                if found and (best is None or (found.half, found.base) < (best.half, best.base)):
                    best = found
        return best

    def _scale(
        self, target: Triple, base: Triple, like: Build, level: int, related: Relation
    ) -> Scaled | None:
        own = self.fit.deviations.get(fit_key(target, related.name, level))
        factor = self.fit.factors.get(fit_key(target, related.name))
        if own is None or factor is None:
            return None
        ratios = self.by_board(target, base, like, level)
        boards = len(ratios)
        if boards < MIN_BOARDS.get(related.name.partition(",")[0], 0):
            return None
        if not boards and (related.expected is None or level < levels_of(target, like)[-1]):
            return None
        if not boards and related.name == "size":
            own = max(own, LAW_DEVIATION * abs(related.expected or 0.0))
        if related.expected is not None:
            ratios.append(related.expected)
        count = len(ratios)
        mean = sum(ratios) / count
        squares = sum((value - mean) ** 2 for value in ratios)
        freedom = PRIOR_BOARDS + count - 1
        variance = (PRIOR_BOARDS * own**2 + squares) / freedom
        width = student_90(freedom) * math.sqrt(variance * (1.0 + 1.0 / count))
        factor *= self.fit.families.get(kind(target), 1.0)
        return Scaled(
            like.log_s[base] + mean, width * factor, base, math.exp(mean), related.name, level, boards, width
        )


def fit_key(target: Triple, relation_name: str, level: int | None = None) -> str:
    """How the fitted constants are named: group, relation and, for deviations, class level."""
    name = f"{group(target)}/{relation_name}"
    return name if level is None else f"{name}/{level}"


def student_90(freedom: float) -> float:
    """The two-sided 90 % point of Student's t."""
    if freedom <= len(_T90):
        return _T90[max(1, int(freedom)) - 1]
    return (
        next((_T90_TENS[at] for at in sorted(_T90_TENS, reverse=True) if freedom >= at), _T90[-1])
        if (freedom < 60)
        else _NORMAL90
    )


def to_json(ratios: Ratios) -> dict[str, Any]:
    """The reference builds and the fit, as the package keeps them."""
    triples = ratios.triples()
    at = {triple: index for index, triple in enumerate(triples)}
    return {
        "devices": list(ratios.devices),
        "triples": [list(triple) for triple in triples],
        "fit": {
            name: {key: round(value, 4) for key, value in sorted(fitted.items())}
            for name, fitted in asdict(ratios.fit).items()
        },
        "builds": [
            {
                "board": build.board,
                "lineage": build.lineage,
                "word_bits": build.word_bits,
                "vector": build.vector,
                "clock_hz": build.clock_hz,
                "kinds": dict(build.kinds),
                "log_s": [[at[triple], round(value, 5)] for triple, value in sorted(build.log_s.items())],
            }
            for build in ratios.builds
        ],
    }


def from_json(document: Mapping[str, Any]) -> Ratios:
    """The inverse of `to_json`."""
    triples = [(one[0], one[1], one[2]) for one in document["triples"]]
    builds = [
        Build(
            one["board"],
            one["lineage"],
            one["word_bits"],
            one["vector"],
            one["clock_hz"],
            one["kinds"],
            {triples[index]: value for index, value in one["log_s"]},
        )
        for one in document["builds"]
    ]
    return Ratios(builds, Fit(**document["fit"]), document["devices"])


@lru_cache(maxsize=1)
def shipped() -> Ratios:
    """The reference builds and the fit that the package ships."""
    return from_json(json.loads(DATA.read_bytes()))
