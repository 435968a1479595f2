"""Fit of the cost model to the shipped profiles, and the coverage of its ranges for held-out figures.

`make fit` runs it, and writes `data/builds.json` and the page of coverage.
"""

from __future__ import annotations

import math
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from shakedown.prediction.cost_model import (
    BUILD_LEVELS,
    DATA,
    NOVELTIES,
    ROUNDING,
    WIDEST,
    Build,
    CostModel,
    Effect,
    Fit,
    build_of,
    conditional,
    group_keys,
    novelty,
    relation,
    shared_primitives,
    widened,
)
from shakedown.prediction.primitives import GROUPS, LEVELS, TWINS, group, kind
from shakedown.profiles.costs import Triple

LEVEL = 0.90
"""The share of figures that a range should contain."""
ELEMENTS = DATA.with_name("secure_elements.toml")
STEPS = 20
"""Steps of the variances' fit: after these the likelihood hardly changes."""
_FIRST_VARIANCE, _MIN_VARIANCE = 0.02, 1e-7
_MIN_BOARDS, _MIN_FAMILY_BOARDS = 20, 12
"""Minimum numbers of boards in a group: with fewer, one or two boards determine the quantile. Boards differ
less in one family of primitives.
"""


def _hides_figure(target: Triple, base: Triple) -> bool:
    """Whether a figure is the target itself, or RSA's or Diffie-Hellman's other name for the same work."""
    same = base[1:] == target[1:] and (
        TWINS.get(target[0]) == base[0] if target[1] == "rsa" else target[1] == "dh"
    )
    return base == target or same


SCENARIOS: dict[str, Callable[[Triple, Triple], bool]] = {
    "figure": _hides_figure,
    "size": lambda target, base: (
        _hides_figure(target, base) or (kind(base) == kind(target) and base[2] == target[2])
    ),
    "family": lambda target, base: _hides_figure(target, base) or kind(base) == kind(target),
    "group": lambda target, base: group(base) == group(target),
    "all": lambda target, base: True,
}
"""Which figures of a build are hidden before one of them is estimated."""

BOARD, LIBRARY = "board", "library"
"""What is excluded from the reference builds; the build's own board always is."""
LIBRARIES = ("openssl", "mbedtls", "wolfssl")


@dataclass(frozen=True, slots=True)
class Trial:
    """A held-out figure and its estimate: error and standard deviation as logarithms, and its groups."""

    hidden: str
    scenario: str
    build: Build
    target: Triple
    error: float
    sd: float
    keys: tuple[tuple[str, ...], ...]

    @property
    def score(self) -> float:
        """The error in standard deviations."""
        return abs(self.error) / self.sd

    def half(self, fit: Fit) -> float:
        return fit.half(self.sd, self.keys)

    def given(self, fit: Fit) -> bool:
        """Whether the range is narrow enough for the estimate to be given as a figure."""
        return self.half(fit) <= math.log(WIDEST)

    def held(self, fit: Fit) -> bool:
        return abs(self.error) <= self.half(fit)


def reference_builds(devices: Iterable[str]) -> list[Build]:
    """The reference builds of some shipped profiles, and secure elements."""
    from shakedown.profiles import load_device

    builds = []
    for name in devices:
        device = load_device(name)
        builds += [
            build_of(one) for one in (device, *device.variants) if one.has_primitives and one.reference
        ]
    return [*(build for build in builds if build.log_s), *secure_elements()]


def secure_elements() -> Iterator[Build]:
    """Secure elements and TPMs whose figures were published without those of a host."""
    for one in tomllib.loads(ELEMENTS.read_text(encoding="utf-8"))["element"]:
        log_s = {}
        for name, value in one["ms"].items():
            operation, algorithm, token = (*name.split(), "")[:3]
            log_s[operation, algorithm, token] = math.log(value / 1e3)
        ways = dict.fromkeys(GROUPS, "secure element")
        # No clock is published; the model's effects of builds allow for any.
        yield Build(one["name"], one["library"], 32, False, 1e8, ways, log_s)


def fit_variances(builds: list[Build], steps: int = STEPS) -> dict[Effect, float]:
    """The maximum-likelihood variances of the effects, by the MM algorithm.

    H. Zhou, L. Hu, J. Zhou, K. Lange: MM algorithms for variance components models, Journal of Computational
    and Graphical Statistics 28 (2019), equation 7.
    """
    model = CostModel(builds, Fit())
    rows = model.reference
    effects = list(model._effects)
    values = np.array([1.0 if effect[0] == 0 else _FIRST_VARIANCE for effect in effects])
    for number, (i, j, *_) in enumerate(effects):
        # Effects of a single primitive exist only for single builds.
        if j == len(LEVELS) - 1 and i != len(BUILD_LEVELS) - 1:
            values[number] = 0.0
    for _ in range(steps):
        model.fit.variances = dict(zip(effects, values.tolist(), strict=True))
        inner = model.covariance(rows, rows)
        inner[np.diag_indices_from(inner)] += ROUNDING
        inverse = np.linalg.inv(inner)
        weights = inverse @ rows.cycles
        squares, traces = np.zeros(len(effects)), np.zeros(len(effects))
        for j, at, _ in shared_primitives(rows, rows):
            part = inverse[np.ix_(at, at)]
            for i in range(len(BUILD_LEVELS)):
                of_row = rows.effects[at, i, j]
                if values[of_row].any():
                    shared = rows.builds[at, i][:, None] == rows.builds[at, i]
                    np.add.at(squares, of_row, weights[at] * (shared @ weights[at]))
                    np.add.at(traces, of_row, (part * shared).sum(axis=1))
        step = np.sqrt(np.divide(squares, traces, out=np.ones_like(values), where=traces > 0.0))
        values = np.where(values > _MIN_VARIANCE, values * step, 0.0)
    return {
        effect: float(f"{value:.4g}") for effect, value in zip(effects, values, strict=True) if value > 1e-6
    }


def trials(model: CostModel, like: Iterable[Build], hidden: str, only: str = "") -> Iterator[Trial]:
    """Estimate each figure of some builds from their remaining figures and the remaining reference.

    With `only`, figures of another novelty are skipped.
    """
    rows = model.reference
    for build in like:
        left = [one for one in model.builds if not _is_hidden(one, build, hidden)]
        new = {one: novelty(left, build, one) for one in build.log_s}
        targets = [one for one in build.log_s if not only or new[one] == only]
        if not targets:
            continue
        kept = {id(one) for one in left}
        use = [
            index
            for index, (one, triple) in enumerate(rows.figures)
            if id(one) in kept and triple in build.log_s
        ]
        have = list(build.log_s)
        wanted = model.rows((build, one) for one in have)
        used = rows.take(use)
        mean, covariance = model.prior(wanted, use, model.covariance(used, used))
        for target in targets:
            at = have.index(target)
            for name, hides in SCENARIOS.items():
                known = [index for index, base in enumerate(have) if not hides(target, base)]
                estimate, sd = conditional(mean, covariance, wanted.cycles, known, at)
                how = relation(target, [have[index] for index in known])
                how_new = new[target]
                keys = tuple(group_keys(target, build, how, how_new))
                error = float(wanted.cycles[at]) - estimate
                yield Trial(hidden, name, build, target, error, widened(sd, how, how_new), keys)


def _is_hidden(build: Build, like: Build, hidden: str) -> bool:
    of_library = hidden == LIBRARY and like.lineage and build.lineage == like.lineage
    return build.board == like.board or bool(of_library)


def fit_factors(found: Iterable[Trial], without: str = "") -> dict[tuple[str, ...], float]:
    """For each group of enough boards, the factor that covers 90 % of its trials (split conformal).

    A group's figures have the same weight in every scenario; those of the board `without` are excluded.
    """
    scores: dict[tuple[str, ...], list[float]] = defaultdict(list)
    boards: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for trial in found:
        if trial.build.board != without:
            for key in trial.keys:
                scores[key].append(trial.score)
                boards[key].add(trial.build.board)
    return {
        key: quantile(some)
        for key, some in scores.items()
        if not key or len(boards[key]) >= (_MIN_FAMILY_BOARDS if key[-1].startswith("of ") else _MIN_BOARDS)
    }


def quantile(scores: Iterable[float]) -> float:
    """The ⌈0.9 (N + 1)⌉-th smallest of N scores: a further score is below it in 90 % of cases."""
    ordered = sorted(scores)
    return ordered[min(len(ordered), math.ceil(LEVEL * (len(ordered) + 1))) - 1]


def fitted(builds: list[Build], devices: Iterable[str] = ()) -> tuple[CostModel, list[Trial]]:
    """The model of some builds, and the trials to which its ranges were fitted: every figure, held out with
    its board and with its library.
    """
    model = CostModel(builds, Fit(fit_variances(builds)), tuple(devices))
    found = [*trials(model, builds, BOARD), *trials(model, builds, LIBRARY, NOVELTIES[1])]
    model.fit.factors = fit_factors(found)
    return model, found


Held = list[tuple[Trial, Fit]]
"""Held-out figures, each with a fit that used neither it nor its board."""


def held_out(builds: list[Build], found: list[Trial]) -> dict[str, Held]:
    """Every figure held out with its board, and those of a library with all of it, refitted without these."""
    by_board = {board: Fit({}, fit_factors(found, board)) for board in {one.board for one in builds}}
    boards = [trial for trial in found if trial.hidden == BOARD]
    held: dict[str, Held] = {
        name: [(one, by_board[one.build.board]) for one in boards if one.scenario == name and _counts(one)]
        for name in ("figure", "size", "family", "all")
    }
    symmetric = [one for one in boards if one.scenario == "all" and group(one.target) == "symmetric"]
    held["clock"] = [(one, by_board[one.build.board]) for one in symmetric]
    held["element"] = [pair for pair in held["figure"] if "secure element" in pair[0].build.kinds.values()]
    for name in LIBRARIES:
        model, _ = fitted([one for one in builds if one.lineage != name])
        tried = trials(model, [one for one in builds if one.lineage == name], BOARD)
        held[name] = [
            (one, model.fit) for one in tried if _counts(one) and one.scenario in ("figure", "size", "family")
        ]
    return held


def _counts(trial: Trial) -> bool:
    """Symmetric work without any related figure is estimated from the clock alone; `clock` contains it."""
    return trial.scenario == "figure" or group(trial.target) != "symmetric"
