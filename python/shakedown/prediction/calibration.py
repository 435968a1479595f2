"""Fitting the ranges of scaled figures, and how often they hold: leave-one-board-out over the
reference builds.

`make fit` runs it, writes `data/builds.json` and the page of coverage.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from shakedown.prediction.clock import MIN_BOARDS as CLOCK_BOARDS
from shakedown.prediction.clock import Cycles, clock_family
from shakedown.prediction.pairs import Pairs, bases_of
from shakedown.prediction.ratios import (
    LEVELS,
    WIDEST,
    Build,
    Fit,
    Ratios,
    Scaled,
    build_of,
    class_key,
    fit_key,
)
from shakedown.prediction.relations import GROUPS, TWINS, group, kind, relation
from shakedown.prediction.software import Software
from shakedown.profiles.costs import Triple

LEVEL = 0.90
"""The share of figures that a range is to hold."""
_LEAST_BOARDS = 3
_LEAST_TRIALS = 15
_MANY_BOARDS = 10

Hide = Callable[[Triple, Triple], bool]


def _hides_figure(target: Triple, base: Triple) -> bool:
    """The figure itself, and RSA's and Diffie-Hellman's other name for the same work."""
    same = base[1:] == target[1:] and (
        TWINS.get(target[0]) == base[0] if target[1] == "rsa" else target[1] == "dh"
    )
    return base == target or same


SCENARIOS: dict[str, tuple[str, Hide]] = {
    "figure": ("one figure hidden", _hides_figure),
    "size": (
        "a whole size hidden",
        lambda target, base: (
            _hides_figure(target, base) or (kind(base) == kind(target) and base[2] == target[2])
        ),
    ),
    "family": (
        "a whole family hidden",
        lambda target, base: _hides_figure(target, base) or kind(base) == kind(target),
    ),
    "group": (
        "all curves, all integers or all lattices hidden",
        lambda target, base: _hides_figure(target, base) or group(base) == group(target),
    ),
}
"""What is hidden of a build before a figure of it is estimated."""
PAIR = "pair"
"""The scenario in which a curve is known from one of another family, by the ratio of all boards."""
SOFTWARE = "software"
"""The scenario in which a curve is known from its library's builds in C alone."""
CLOCK = "clock"
"""The scenario in which symmetric work is known from the clock alone."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A known figure and its estimate (None where there is none), all of its board's builds left out."""

    scenario: str
    board: str
    target: Triple
    truth: float
    estimate: Scaled | None

    @property
    def known(self) -> bool:
        """Whether the estimate is narrow enough to be given as a figure."""
        return self.estimate is not None and self.estimate.half <= math.log(WIDEST)

    @property
    def error(self) -> float:
        """The logarithm of truth over estimate."""
        assert self.estimate is not None
        return self.truth - self.estimate.log_s

    @property
    def held(self) -> bool:
        """Whether the range holds the truth."""
        return self.estimate is not None and abs(self.error) <= self.estimate.half


def reference_builds(devices: Iterable[str]) -> list[Build]:
    """The builds of some shipped profiles, as far as they may be scaled from."""
    from shakedown.profiles import load_device

    builds = []
    for name in devices:
        device = load_device(name)
        builds += [build_of(one) for one in (device, *device.variants) if one.priced and one.reference]
    return [build for build in builds if build.log_s]


def deviations(builds: list[Build]) -> dict[str, float]:
    """The pooled deviation of log ratios inside classes, by group, relation and class level.

    Every pair of primitives weighs the same, whatever the number of boards that have both.
    """
    ratios = Ratios(builds, Fit())
    triples = ratios.triples()
    found: dict[str, list[float]] = defaultdict(list)
    for target in triples:
        for base in triples:
            related = relation(target, base)
            if related is None or len(ratios.log_ratios(target, base)) < _LEAST_BOARDS:
                continue
            for level in range(len(LEVELS)):
                classes: dict[tuple[object, ...], dict[str, list[float]]] = defaultdict(
                    lambda: defaultdict(list)
                )
                for index, value in ratios.log_ratios(target, base):
                    build = builds[index]
                    classes[class_key(build, group(target), level)][build.board].append(value)
                for boards in classes.values():
                    means = [sum(values) / len(values) for values in boards.values()]
                    if len(means) >= _LEAST_BOARDS:
                        middle = sum(means) / len(means)
                        variance = sum((one - middle) ** 2 for one in means) / (len(means) - 1)
                        found[fit_key(target, related.name, level)].append(variance)
    pooled = {key: math.sqrt(sum(values) / len(values)) for key, values in found.items()}
    return _filled(pooled)


def _filled(pooled: dict[str, float]) -> dict[str, float]:
    """A relation that no class of three boards shows at a level takes the next level's deviation."""
    names = {key.rpartition("/")[0] for key in pooled}
    for name in names:
        for level in range(len(LEVELS)):
            key = f"{name}/{level}"
            if key not in pooled:
                others = [
                    pooled[f"{name}/{other}"] for other in range(len(LEVELS)) if f"{name}/{other}" in pooled
                ]
                pooled[key] = max(others)
    for name, value in (("integers/public exponent", 0.55), ("integers/exponent length", 0.15)):
        # The first is the range between its two ends; of the second too few builds have both.
        for level in range(len(LEVELS)):
            pooled.setdefault(f"{name}/{level}", value)
    return pooled


def trials(ratios: Ratios, scenarios: Iterable[str] = SCENARIOS) -> list[Trial]:
    """Estimate every known public-key figure from the rest of its build, its board left out of the
    reference.
    """
    found = []
    for name in scenarios:
        hides = SCENARIOS[name][1]
        for build in ratios.builds:
            for target, truth in build.log_s.items():
                if group(target) == "symmetric" and name in ("group", "family"):
                    continue
                left = {base: value for base, value in build.log_s.items() if not hides(target, base)}
                like = replace(build, log_s=left)
                found.append(Trial(name, build.board, target, truth, ratios.estimate(target, like)))
    return found


def pair_trials(ratios: Ratios) -> list[Trial]:
    """Estimate every figure that one ratio of two curves gives, its board left out."""
    pairs = Pairs(ratios)
    found = [
        Trial(PAIR, build.board, target, truth, pairs.estimate(target, build))
        for build in ratios.builds
        for target, truth in build.log_s.items()
        if bases_of(target, build.log_s)
    ]
    return [trial for trial in found if trial.estimate is not None]


def software_trials(ratios: Ratios) -> list[Trial]:
    """Estimate every curve's figure of a build in C from its library's other boards."""
    software = Software(ratios)
    return [
        Trial(SOFTWARE, build.board, target, truth, software.estimate(target, build))
        for build in ratios.builds
        for target, truth in build.log_s.items()
        if group(target) == "curves" and build.kinds["curves"] == "c"
    ]


def clock_trials(ratios: Ratios) -> list[Trial]:
    """Estimate every symmetric figure from its build's clock alone, its board left out of the reference."""
    cycles = Cycles(ratios)
    return [
        Trial(CLOCK, build.board, target, truth, cycles.estimate(target, build))
        for build in ratios.builds
        for target, truth in build.log_s.items()
        if group(target) == "symmetric"
    ]


def fitted(builds: list[Build]) -> Ratios:
    """Fit deviations, then each relation's factor, then one factor for all, so that 90 % hold in each
    scenario.
    """
    spreads = deviations(builds)
    names = {key.rpartition("/")[0] for key in spreads}
    ratios = Ratios(builds, Fit(spreads, dict.fromkeys(names, 1.0)))
    scores: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for trial in trials(ratios):
        if trial.estimate is not None:
            key = fit_key(trial.target, trial.estimate.relation)
            scores[key].append((abs(trial.error) / trial.estimate.width, trial.board))
    factors = dict.fromkeys(names, 1.0)
    for name, values in scores.items():
        if len({board for _, board in values}) >= _LEAST_BOARDS:
            factors[name] = max(_board_quantile(values), 0.3)
    ratios.fit.factors = factors
    ratios.fit.families = _families(trials(ratios))
    _fit_cycles(ratios)
    ratios.fit.software = {"deviation": Software(ratios).deviation()}
    found = [
        (abs(trial.error) / trial.estimate.width, trial.board)
        for trial in software_trials(ratios)
        if trial.estimate is not None
    ]
    ratios.fit.software["factor"] = max(_board_quantile(found), 0.3)
    levels = _families(software_trials(ratios))
    ratios.fit.software |= {f"family/{family}": level for family, level in levels.items()}
    return ratios


def _fit_cycles(ratios: Ratios) -> None:
    """Fit the pooled deviation of log cycles inside classes, then each family's factor so that 90 % hold, of
    the ranges that are narrow enough to be given as a figure and of all.
    """
    cycles = Cycles(ratios)
    variances: dict[str, list[float]] = defaultdict(list)
    for target in cycles.triples():
        for level in range(len(LEVELS)):
            for boards in cycles.classes(target, level).values():
                if len(boards) >= CLOCK_BOARDS:
                    variances[f"{group(target)}/{level}"].append(statistics.variance(boards.values()))
    ratios.fit.cycles = {key: math.sqrt(statistics.fmean(some)) for key, some in variances.items()}
    ratios.fit.cycle_factors = _families(clock_trials(ratios), clock_family, any_width=True)


def _families(
    found: list[Trial], family: Callable[[Triple], str] = kind, *, any_width: bool = False
) -> dict[str, float]:
    """By what factor a family's ranges may shrink, or must grow, to hold 90 % in every scenario.

    Leaving out what is too wide leaves the easier cases, so that the relations' own factors hold more. A
    family that few boards have is levelled with its group. With `any_width`, all ranges are to hold as often
    as those that are narrow enough.
    """
    estimated = [trial for trial in found if trial.estimate is not None]
    groups = {
        name: _level([one for one in estimated if group(one.target) == name], any_width) for name in GROUPS
    }
    families = {}
    for name in {family(trial.target) for trial in estimated}:
        of = [trial for trial in estimated if family(trial.target) == name]
        level, whole = _level(of, any_width), groups[group(of[0].target)]
        enough = len({trial.board for trial in of}) >= _MANY_BOARDS
        families[name] = level if enough else max(level, whole)
    return families


def _level(found: list[Trial], any_width: bool) -> float:
    steps = [percent / 100.0 for percent in range(60, 301, 2)]
    return next((factor for factor in steps if _holds(found, factor, any_width)), steps[-1])


def _holds(found: list[Trial], factor: float, any_width: bool) -> bool:
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for trial in found:
        assert trial.estimate is not None
        half = trial.estimate.half * factor
        for name, counted in ((trial.scenario, half <= math.log(WIDEST)), ("any width", any_width)):
            counts[name][0] += counted
            counts[name][1] += counted and abs(trial.error) <= half
    least = 1 if any_width else _LEAST_TRIALS
    return all(held >= LEVEL * known for known, held in counts.values() if known >= least)


def _board_quantile(values: list[tuple[float, str]]) -> float:
    """The 90 % quantile of scores, each board weighing the same, with conformal prediction's
    small-sample step.
    """
    weights: dict[str, int] = defaultdict(int)
    for _, board in values:
        weights[board] += 1
    boards = len(weights)
    wanted = min(1.0, LEVEL * (boards + 1) / boards)
    reached = 0.0
    for score, board in sorted(values):
        reached += 1.0 / (boards * weights[board])
        if reached >= wanted - 1e-12:
            return score
    return max(score for score, _ in values)
