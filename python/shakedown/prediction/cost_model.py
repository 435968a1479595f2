"""One hierarchical model of the costs of cryptographic primitives, which estimates costs that a device lacks.

The logarithm of a figure's cycles is the value expected for its size, plus random effects: one for each level
of builds (all, kind of element, way of computing and word size, library, board, build) crossed with each
level of primitives (`primitives.LEVELS`). The effects' variances are fitted to the shipped profiles
(`cost_fit`); an estimate is the best linear prediction from the device's own figures and from other boards'
figures of the same primitives. Builds of the device's own board are used only for primitives that its
hardware lacks and that it computes in software.

A range is the prediction's standard deviation times a factor that covers 90 % of held-out figures of the
nearest group: library known or new, same relation to the nearest own figure, same kind of core, same group
of primitives. The method is described in ``docs/reference/extrapolation.md``.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from shakedown.models.ranges import NORMAL_90
from shakedown.prediction.primitives import LEVELS, expected, group, kind, levels
from shakedown.profiles.costs import Triple
from shakedown.profiles.vocabulary import SYMMETRIC_OPERATIONS

if TYPE_CHECKING:
    from shakedown.profiles.device import Device

DATA = Path(__file__).parent.parent / "data" / "builds.json"
WIDEST = 4.0
"""A public-key estimate whose 90 % range is wider than ×/÷ this factor is not given as a figure."""
HARDWARE = ("accelerator", "secure element")
BUILD_LEVELS = (
    "all builds",
    "kind of element",
    "way of computing and word size",
    "library",
    "board",
    "build",
)
RELATIONS = ("clock", "speed", "group", "family", "character", "operation", "size", "work", "primitive")
"""The relation of the nearest own figure: none (the clock), or the deepest of `LEVELS` that both share."""
NOVELTIES = ("known", "new library", "new element")
OWN_FIGURES, RELATIVES = 8, 2
"""Number of own figures, nearest first, and number of other primitives that an estimate uses."""
KEPT_BLOCKS = 2048
"""Cached blocks of the covariance of the reference figures: each for two primitives, about 30 kB."""
ROUNDING = 1e-4
"""Variance that no effect explains, in squared logarithms: a deviation of 1 %."""
NEW_SD = {"work": 0.25, "size": 0.25, "operation": 0.5}
"""Additional deviation of a new library, in logarithms, by the nearest relation; `NEW_SD_FAR` for all others.
Set by hand, because there are too few libraries to fit it.
"""
NEW_SD_FAR = 1.0
_IN_HARDWARE = re.compile(r"aes-|(hmac-)?(sha1|sha224|sha256)$")
_LIBRARY, _BOARD = 3, 4

Effect = tuple[int, int, str, str]
"""Level of builds, level of primitives, group (empty: all), kind of core (of boards and builds)."""
Array = NDArray[np.float64]
Indices = NDArray[np.int64]

DECIMALS = 6
"""Decimals of an estimate's logarithm."""


@dataclass(frozen=True, slots=True)
class Build:
    """A build: what determines its classes, its clock, and the logarithms of its figures (in s)."""

    board: str
    lineage: str
    word_bits: int
    vector: bool
    clock_hz: float
    kinds: Mapping[str, str]
    log_s: Mapping[Triple, float]


@dataclass(frozen=True, slots=True)
class Estimate:
    """The logarithm of a figure's seconds, ± `half`, and its origin.

    ``base`` is the nearest own figure, or None. ``boards`` is the number of boards that have the primitive in
    the nearest class of builds with any, at ``level`` of `BUILD_LEVELS`. ``siblings``: other builds of the
    same board also have it.
    """

    log_s: float
    half: float
    base: Triple | None
    relation: str
    novelty: str
    boards: int
    level: int
    siblings: bool = False


@dataclass
class Fit:
    """The fitted values: the effects' variances, and the ranges' factors by group of held-out figures."""

    variances: dict[Effect, float] = field(default_factory=dict)
    factors: dict[tuple[str, ...], float] = field(default_factory=dict)

    def half(self, sd: float, keys: Sequence[tuple[str, ...]]) -> float:
        """The half-width of a range: the deviation times the factor of the nearest group that has one.

        Infinite for a kind of element that no reference has.
        """
        if keys[0][0] == NOVELTIES[2]:
            return math.inf
        return sd * next((self.factors[key] for key in keys if key in self.factors), NORMAL_90)


def widened(sd: float, name: str, new: str) -> float:
    """A deviation, widened if the library is new."""
    return sd if new == NOVELTIES[0] else math.hypot(sd, NEW_SD.get(name, NEW_SD_FAR))


def build_of(device: Device) -> Build:
    log_s = {}
    for triple, cost in device.costs.items():
        value = cost.per_kib_s if triple[0] in SYMMETRIC_OPERATIONS else cost.mean_s
        if value > 0.0 and triple[0] not in ("import", "prf"):
            log_s[triple] = math.log(value)
    vector = device.core.vector not in ("", "none")
    kinds = structs.asdict(device.implementation)
    return Build(device.board, device.lineage, device.core.word_bits, vector, device.clock_hz, kinds, log_s)


def element(way: str) -> str:
    """The kind of element that computes: software, an accelerator, or a secure element."""
    return way if way in HARDWARE else "software"


def way(build: Build, triple: Triple) -> str:
    """How a build computes a primitive; instructions and accelerators apply to AES and the usual digests."""
    of = group(triple)
    usual = of != "symmetric" or _IN_HARDWARE.match(triple[1])
    return build.kinds[of] if usual or build.kinds[of] not in ("instructions", "accelerator") else "c"


def core(build: Build, triple: Triple) -> str:
    """The kind of core, by which boards and builds vary: hardware, or software by word size."""
    if element(way(build, triple)) != "software":
        return "hardware"
    return "64-bit" if build.word_bits == 64 else "32-bit"


def classes(build: Build, triple: Triple) -> tuple[tuple[object, ...], ...]:
    """A build's label at each of `BUILD_LEVELS`, for a primitive.

    Code for lattices rarely comes from a build's library, so the vector unit is used in place of the library
    there. An unknown library is unlike any other.
    """
    how = way(build, triple)
    library: object = build.vector if group(triple) == "lattices" else build.lineage or build.board
    like = (how, build.word_bits)
    return (
        (),
        (element(how),),
        like,
        (*like, library),
        (element(how), build.board),
        (element(how), id(build)),
    )


@dataclass
class Rows:
    """Figures with their labels as numbers, so that rows of equal numbers share an effect."""

    figures: list[tuple[Build, Triple]]
    cycles: Array
    builds: NDArray[np.int64]
    primitives: NDArray[np.int64]
    effects: NDArray[np.int64]

    def take(self, keep: Sequence[int] | NDArray[Any]) -> Rows:
        at = np.asarray(keep, dtype=np.int64)
        return Rows(
            [self.figures[index] for index in at],
            self.cycles[at],
            self.builds[at],
            self.primitives[at],
            self.effects[at],
        )


class CostModel:
    """Reference builds, the fit, and estimates by both; `devices` are the profiles of the builds."""

    def __init__(self, builds: Iterable[Build], fit: Fit, devices: Sequence[str] = ()) -> None:
        """Keep the builds; everything is computed on first use."""
        self.builds = list(builds)
        self.fit = fit
        self.devices = tuple(devices)
        self._numbers: dict[object, int] = {}
        self._effects: dict[Effect, int] = {}
        self._block = lru_cache(KEPT_BLOCKS)(self._between)

    @cached_property
    def reference(self) -> Rows:
        """All figures of the reference builds."""
        return self.rows((build, triple) for build in self.builds for triple in build.log_s)

    @cached_property
    def _rows_of(self) -> dict[Triple, list[int]]:
        """The reference rows of each primitive."""
        found: dict[Triple, list[int]] = {}
        for index, (_, triple) in enumerate(self.reference.figures):
            found.setdefault(triple, []).append(index)
        return found

    def rows(self, figures: Iterable[tuple[Build, Triple]]) -> Rows:
        """Figures with their labels; the cycles are NaN if the build lacks the figure."""
        listed = list(figures)
        cycles, builds, primitives, effects = [], [], [], []
        for one, what in listed:
            of = group(what)
            cycles.append(one.log_s.get(what, math.nan) + math.log(one.clock_hz) - expected(what))
            builds.append([self._number(("b", i, label)) for i, label in enumerate(classes(one, what))])
            primitives.append([self._number(("p", j, label)) for j, label in enumerate(levels(what))])
            effects.append(
                [
                    self._effects.setdefault(
                        (i, j, of if j else "", core(one, what) if i >= _BOARD else ""), len(self._effects)
                    )
                    for i in range(len(BUILD_LEVELS))
                    for j in range(len(LEVELS))
                ]
            )
        count = len(listed)
        shape = (count, len(BUILD_LEVELS), len(LEVELS))
        return Rows(
            listed,
            np.array(cycles),
            np.array(builds, dtype=np.int64).reshape(count, -1),
            np.array(primitives, dtype=np.int64).reshape(count, -1),
            np.array(effects, dtype=np.int64).reshape(shape),
        )

    def _number(self, label: object) -> int:
        return self._numbers.setdefault(label, len(self._numbers))

    @property
    def _variances(self) -> Array:
        """The effects' variances, by number."""
        return np.array([self.fit.variances.get(effect, 0.0) for effect in self._effects])

    def covariance(self, some: Rows, others: Rows) -> Array:
        variances = self._variances
        found = np.zeros((len(some.figures), len(others.figures)))
        for j, mine, theirs in shared_primitives(some, others):
            block = np.zeros((len(mine), len(theirs)))
            for i in range(len(BUILD_LEVELS)):
                of_row = variances[some.effects[mine, i, j]]
                if of_row.any():
                    block += of_row[:, None] * (some.builds[mine, i][:, None] == others.builds[theirs, i])
            found[np.ix_(mine, theirs)] += block
        return found

    def _between(self, one: Triple, other: Triple) -> Array:
        """The covariance of all reference figures of two primitives, as `covariance` computes it."""
        mine, theirs = self._rows_of[one], self._rows_of[other]
        rows = self.reference
        shared = rows.primitives[mine[0]] == rows.primitives[theirs[0]]
        variances = self._variances[rows.effects[mine][:, :, shared]].sum(axis=2)
        alike = rows.builds[mine][:, None, :] == rows.builds[theirs][None, :, :]
        found: Array = (variances[:, None, :] * alike).sum(axis=2)
        return found

    def from_blocks(self, use: Sequence[int]) -> Array:
        """The covariance of some reference figures of a few primitives, from blocks that estimates share."""
        at = np.asarray(use, dtype=np.int64)
        primitives: dict[Triple, list[int]] = {}
        for place, index in enumerate(use):
            primitives.setdefault(self.reference.figures[index][1], []).append(place)
        held = {
            one: (places, np.searchsorted(self._rows_of[one], at[places]))
            for one, places in primitives.items()
        }
        found = np.empty((len(use), len(use)))
        for one, (mine, my_rows) in held.items():
            for other, (theirs, their_rows) in held.items():
                found[np.ix_(mine, theirs)] = self._block(one, other)[np.ix_(my_rows, their_rows)]
        return found

    def prior(self, wanted: Rows, use: Sequence[int], inner: Array) -> tuple[Array, Array]:
        """Mean and covariance of figures before the build's own are used, from some reference rows.

        `inner` is the covariance of these rows; it is modified.
        """
        rows = self.reference.take(use)
        inner[np.diag_indices_from(inner)] += ROUNDING
        outer = self.covariance(rows, wanted)
        solved = np.linalg.solve(inner, np.column_stack([rows.cycles, outer]))
        covariance = self.covariance(wanted, wanted) - outer.T @ solved[:, 1:]
        covariance[np.diag_indices_from(covariance)] += ROUNDING
        return outer.T @ solved[:, 0], covariance

    def estimate(self, target: Triple, like: Build, siblings: Sequence[Build] = ()) -> Estimate:
        """Estimate a figure from the build's others, other boards' builds, and its own board's `siblings`."""
        own = sorted(
            (base for base in like.log_s if base != target), key=lambda base: (-depth(target, base), base)
        )[:OWN_FIGURES]
        known = {one for _, one in self.reference.figures if one not in own and one != target}
        relatives = sorted(known, key=lambda one: (-depth(target, one), one))[:RELATIVES]
        wanted = self.rows((like, one) for one in (target, *own))
        used = {target, *own, *relatives}
        use = [
            index
            for index, (build, triple) in enumerate(self.reference.figures)
            if triple in used and (build.board != like.board or build in siblings)
        ]
        mean, covariance = self.prior(wanted, use, self.from_blocks(use))
        mean_log, sd = conditional(mean, covariance, wanted.cycles, range(1, len(own) + 1), 0)
        log_s = mean_log + expected(target) - math.log(like.clock_hz)
        name = relation(target, own)
        new = novelty([one for one in self.builds if one.board != like.board], like, target)
        half = self.fit.half(widened(sd, name, new), group_keys(target, like, name, new))
        level, boards = self.nearest_boards(target, like)
        # The last digits depend on the processor's linear algebra; printed values must not.
        log_s, half = round(log_s, DECIMALS), round(half, DECIMALS)
        here = any(target in build.log_s for build in siblings)
        return Estimate(log_s, half, own[0] if own else None, name, new, boards, level, here)

    def nearest_boards(self, target: Triple, like: Build) -> tuple[int, int]:
        """The level of the nearest class in which other boards have a primitive, and their number."""
        mine = classes(like, target)
        others = [one for one in self.builds if one.board != like.board and target in one.log_s]
        for level in reversed(range(_BOARD)):
            boards = {one.board for one in others if classes(one, target)[level] == mine[level]}
            if boards:
                break
        return level, len(boards)


def novelty(builds: Sequence[Build], like: Build, triple: Triple) -> str:
    """Whether another build has the same library, or at least the same kind of element."""
    mine, of = classes(like, triple), group(triple)
    theirs = [classes(one, triple) for one in builds if any(group(figure) == of for figure in one.log_s)]
    if any(one[_LIBRARY] == mine[_LIBRARY] for one in theirs):
        return NOVELTIES[0]
    return NOVELTIES[1] if any(one[1] == mine[1] for one in theirs) else NOVELTIES[2]


def shared_primitives(some: Rows, others: Rows) -> Iterator[tuple[int, Indices, Indices]]:
    """For each level of primitives and each of its labels: the rows of either side that have it."""
    for j in range(len(LEVELS)):
        mine, theirs = some.primitives[:, j], others.primitives[:, j]
        # Python's sets, because numpy's set functions load masked arrays, which takes time.
        for label in sorted(set(mine.tolist()) & set(theirs.tolist())):
            yield j, np.flatnonzero(mine == label), np.flatnonzero(theirs == label)


def conditional(
    mean: Array, covariance: Array, truth: Array, known: Sequence[int], target: int
) -> tuple[float, float]:
    """The mean and the standard deviation of one figure, given the known ones."""
    at = list(known)
    weights = np.linalg.solve(covariance[np.ix_(at, at)], covariance[at, target]) if at else np.zeros(0)
    variance = covariance[target, target] - weights @ covariance[at, target]
    return float(mean[target] + weights @ (truth[at] - mean[at])), math.sqrt(max(variance, ROUNDING))


@lru_cache(maxsize=65536)
def depth(target: Triple, base: Triple) -> int:
    """The deepest level that two primitives share, from 1."""
    pairs = zip(levels(target), levels(base), strict=True)
    return max(level for level, (one, other) in enumerate(pairs, 1) if one == other)


def relation(target: Triple, own: Sequence[Triple]) -> str:
    """The relation of the nearest of a build's own figures."""
    return RELATIONS[max((depth(target, base) for base in own), default=0)]


def group_keys(target: Triple, build: Build, name: str, new: str) -> list[tuple[str, ...]]:
    """The groups of held-out figures whose factors may apply, nearest first.

    New libraries share one group, because one library predicts little about another. A family has groups of
    its own if the build has another figure of it.
    """
    if new != NOVELTIES[0]:
        return [(new,), ()]
    of, at = group(target), core(build, target)
    family = f"of {kind(target)}"
    near = [(new, name, at, family), (new, name, family), (new, family)]
    return [
        *(near if RELATIONS.index(name) >= RELATIONS.index("family") else ()),
        *((new, name, at, of), (new, name, of), (new, of), (new,), ()),
    ]


def to_json(model: CostModel) -> dict[str, Any]:
    """The reference builds and the fit in the shipped format: the parts of a key are joined by ``|``."""

    def joined(mapping: Mapping[Any, float]) -> dict[str, float]:
        return {"|".join(map(str, key)): float(f"{value:.5g}") for key, value in sorted(mapping.items())}

    fitted = {"variances": joined(model.fit.variances), "factors": joined(model.fit.factors)}
    builds = [{**asdict(build), "log_s": joined(build.log_s)} for build in model.builds]
    return {"devices": list(model.devices), **fitted, "builds": builds}


def from_json(document: Mapping[str, Any]) -> CostModel:
    def split(mapping: Mapping[str, float]) -> dict[Any, float]:
        return {tuple(key.split("|")): value for key, value in mapping.items()}

    variances: dict[Effect, float] = {
        (int(i), int(j), of, kind_of_core): value
        for (i, j, of, kind_of_core), value in split(document["variances"]).items()
    }
    factors = {key if any(key) else (): value for key, value in split(document["factors"]).items()}
    builds = [Build(**{**one, "log_s": split(one["log_s"])}) for one in document["builds"]]
    return CostModel(builds, Fit(variances, factors), document["devices"])


@lru_cache(maxsize=1)
def shipped() -> CostModel:
    """The reference builds and the fit that the package ships."""
    return from_json(json.loads(DATA.read_bytes()))
