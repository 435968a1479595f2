"""Fits the cost model to the shipped device profiles; writes the package's data and the coverage page.

`make fit` runs it for a release: a device that is added later is estimated from the existing builds, and the
estimates for other devices do not change. After a correction of a reference profile it is needed at once; a
test fails until then.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from shakedown.prediction.cost_fit import LIBRARIES, Held, fitted, held_out, reference_builds
from shakedown.prediction.cost_model import DATA, CostModel, to_json
from shakedown.prediction.primitives import kind
from shakedown.profiles.registry import shipped_names
from tools import pages

PAGE = pages.VALIDATION / "cost-model.md"
ROWS = {
    "figure": "one figure hidden",
    "size": "a whole size hidden",
    "family": "a whole family hidden",
    "all": "all figures of a board hidden",
    "clock": "the same, symmetric work: by the clock",
    "element": "secure elements and TPMs, one figure hidden",
    **{name: f"library {name} hidden, all three" for name in LIBRARIES},
    **{
        f"{name}, {scenario}": f"library {name} hidden, and {words}"
        for name in LIBRARIES
        for scenario, words in (
            ("figure", "one figure"),
            ("size", "a size"),
            ("family", "a family"),
        )
    },
}
FAMILIES = {
    "prime-curve": "curves over prime fields (P-256 …)",
    "random-curve": "curves over random primes (Brainpool)",
    "binary-curve": "curves over binary fields",
    "montgomery-curve": "X25519, X448",
    "edwards-curve": "Ed25519, Ed448",
    "rsa": "RSA, e = 65537",
    "rsa-e3": "RSA, e = 3",
    "dsa": "DSA",
    "dh": "DH, exponents as long as the prime",
    "ffdhe": "DH, short exponents",
    "mlkem": "ML-KEM",
    "mldsa": "ML-DSA",
    "hybrid": "hybrids, as one operation",
    "symmetric": "ciphers, digests, MACs (bulk)",
}
Ends = tuple[float, float]
TARGET: Ends = (0.87, 0.93)
"""The target for the share of figures that ranges of 90 % contain."""
OUTSIDE = (
    "Chance does not explain these rows: their interval by boards contains no share from 87 to 93 %.",
    "Chance explains these rows only because the figures of a board are right or wrong together: a share "
    "from 87 to 93 % is in their interval by boards, not in that of independent figures.",
    "These rows have too few figures: both intervals contain a share from 87 to 93 %.",
)
_HEAD = (
    "| >figures | >boards | >given | >held | >95 % interval | >by boards | >median range | >median error "
    "| >held, whatever the range"
)


def data_text(model: CostModel) -> str:
    """The file of the package: one line per build."""
    document = to_json(model)
    builds = document.pop("builds")
    head = json.dumps(document, separators=(",", ":"))
    lines = [json.dumps(build, separators=(",", ":")) for build in builds]
    return f'{head[:-1]},"builds":[\n' + ",\n".join(lines) + "\n]}\n"


@dataclass(frozen=True)
class Row:
    """What was hidden, how many of its figures are given, and how many of those are in their range, by board.

    Symmetric work has ranges of any width, and counts only in `held_wide`, the share for ranges of any width.
    """

    words: str
    figures: int
    boards: int
    by_board: tuple[tuple[bool, ...], ...]
    halves: tuple[float, ...]
    errors: tuple[float, ...]
    held_wide: float

    @property
    def given(self) -> int:
        """The number of figures with a range that is narrow enough."""
        return len(self.halves)

    @property
    def held(self) -> int:
        """The number of those whose range contains the hidden figure."""
        return sum(map(sum, self.by_board))

    @property
    def share(self) -> float:
        """The share of `held` in `given`."""
        return self.held / self.given

    @property
    def of_figures(self) -> Ends:
        """The interval of the share if the figures were independent."""
        return interval(self.held, self.given)

    @property
    def of_boards(self) -> Ends:
        """The same for the number of independent figures that vary like the boards."""
        return interval(*independent(self.by_board))

    def cells(self) -> list[str]:
        """The row of the table."""
        found = ["–"] * 5
        if self.given:
            ends = map(_percent, (self.of_figures, self.of_boards))
            factors = (math.exp(statistics.median(some)) for some in (self.halves, self.errors))
            found = [f"{self.share:.1%}", *ends, *(f"×/÷ {factor:.2f}" for factor in factors)]
        counts = map(str, (self.figures, self.boards, self.given))
        return [self.words, *counts, *found, f"{self.held_wide:.0%}"]

    def sentence(self) -> str:
        """The item of a list of rows outside the target."""
        return (
            f"{self.words}: {self.held} of {self.given} held ({self.share:.1%}), 95 % interval "
            f"{_percent(self.of_figures)}, by boards {_percent(self.of_boards)}"
        )


def row(words: str, held: Held) -> Row:
    """A row of held-out figures."""
    given = [(trial, trial.half(fit)) for trial, fit in held if trial.given(fit)]
    by_board: dict[str, list[bool]] = {}
    for trial, half in given:
        by_board.setdefault(trial.build.board, []).append(abs(trial.error) <= half)
    return Row(
        words,
        len(held),
        len({trial.build.board for trial, _ in held}),
        tuple(map(tuple, by_board.values())),
        tuple(half for _, half in given),
        tuple(abs(trial.error) for trial, _ in given),
        sum(trial.held(fit) for trial, fit in held) / len(held),
    )


def coverage_tables(model: CostModel, held: dict[str, Held]) -> str:
    """The tables in Markdown, by what was hidden, and for single hidden figures by family; and the rows
    outside the target.
    """
    sets = dict(held)
    for name in LIBRARIES:
        for scenario in ("figure", "size", "family"):
            sets[f"{name}, {scenario}"] = [one for one in held[name] if one[0].scenario == scenario]
    rows = [row(words, sets[name]) for name, words in ROWS.items()]
    families = [
        row(words, [one for one in held["figure"] if kind(one[0].target) == name])
        for name, words in FAMILIES.items()
    ]
    boards = {build.board for build in model.builds}
    primitives = {triple for build in model.builds for triple in build.log_s}
    tables = "\n\nOne figure hidden, by family:\n\n".join(
        pages.table(_HEAD, (one.cells() for one in some)) for some in (rows, families)
    )
    return (
        f"{len(model.builds)} builds of {len(boards)} boards, {len(primitives)} primitives.\n\n"
        f"{tables}\n\n{outside([*rows, *families])}"
    )


def outside(rows: Sequence[Row]) -> str:
    """The rows whose share is outside the target, by whether chance could explain it."""
    rows = [one for one in rows if one.given and not TARGET[0] <= round(one.share, 3) <= TARGET[1]]
    kinds: dict[str, list[str]] = {words: [] for words in OUTSIDE}
    for one in rows:
        apart = [ends[1] < TARGET[0] or ends[0] > TARGET[1] for ends in (one.of_boards, one.of_figures)]
        kinds[OUTSIDE[0 if apart[0] else 1 if apart[1] else 2]].append(f"- {one.sentence()}")
    lists = "\n\n".join(f"{words}\n\n" + "\n".join(some) for words, some in kinds.items() if some)
    return f"{len(rows)} rows are outside {_percent(TARGET)}.\n\n{lists}".rstrip()


def _percent(ends: Ends) -> str:
    return f"{ends[0]:.0%} – {ends[1]:.0%}"


def interval(inside: int, count: int) -> Ends:
    """The exact 95 % interval of a share (Clopper and Pearson)."""
    from scipy.stats import binomtest

    found = binomtest(inside, count).proportion_ci(0.95)
    return float(found.low), float(found.high)


def independent(boards: Sequence[Sequence[bool]]) -> tuple[int, int]:
    """The number of independent figures that would vary like those of these boards: those held, and all.

    The figures of a board are correlated. The variance of the share between boards, divided by that of
    independent figures, divides their number (Kish's design effect), which is at least that of the boards. If
    all held, or there is one board, the variance is unknown, and each board is one figure.
    """
    count, held = sum(map(len, boards)), sum(map(sum, boards))
    share, more = held / count, len(boards) / max(len(boards) - 1, 1)
    variance = more * math.fsum((sum(one) - share * len(one)) ** 2 for one in boards)
    least = count * share * (1.0 - share)
    effect = max(1.0, variance / least) if least and len(boards) > 1 else math.inf
    figures = max(round(count / effect), len(boards))
    return round(share * figures), figures


def main() -> None:
    """Fit, write, and print how often the ranges hold."""
    devices = shipped_names("devices")
    builds = reference_builds(devices)
    model, found = fitted(builds, devices)
    DATA.write_text(data_text(model), encoding="utf-8")
    print(f"{DATA}: {len(model.builds)} builds, {len(found)} trials", flush=True)
    held = held_out(builds, found)
    tables = coverage_tables(model, held)
    pages.write(PAGE, "coverage: made by make fit", tables)
    print(tables)


if __name__ == "__main__":
    main()
