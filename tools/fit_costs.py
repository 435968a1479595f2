"""Fits the cost model to the shipped device profiles; writes the package's data and the page of coverage.

`make fit`, for a release: a device that is added later is estimated from the builds that are there, and no
other device's answer changes. A correction of a profile that others are estimated from needs it at once; a
test fails until it is made.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Sequence
from pathlib import Path

from shakedown.prediction.cost_fit import LIBRARIES, Held, fitted, held_out, reference_builds
from shakedown.prediction.cost_model import DATA, CostModel, to_json
from shakedown.prediction.primitives import kind
from shakedown.profiles.registry import shipped_names

PAGE = Path(__file__).parent.parent / "docs" / "validation" / "cost-model.md"
BEGIN, END = "<!-- coverage: made by make fit -->", "<!-- end of coverage -->"
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
_HEAD = (
    "| | figures | boards | given | held | 95 % interval | by boards | median range | median error "
    "| held, whatever the range |\n"
    "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n"
)


def data_text(model: CostModel) -> str:
    """The file of the package: one line a build."""
    document = to_json(model)
    builds = document.pop("builds")
    head = json.dumps(document, separators=(",", ":"))
    lines = [json.dumps(build, separators=(",", ":")) for build in builds]
    return f'{head[:-1]},"builds":[\n' + ",\n".join(lines) + "\n]}\n"


def coverage_tables(model: CostModel, held: dict[str, Held]) -> str:
    """The tables in Markdown: what was hidden, and the families where one figure was."""
    sets = dict(held)
    for name in LIBRARIES:
        for scenario in ("figure", "size", "family"):
            sets[f"{name}, {scenario}"] = [one for one in held[name] if one[0].scenario == scenario]
    rows = [_row(words, sets[name]) for name, words in ROWS.items()]
    families = [
        _row(words, [one for one in held["figure"] if kind(one[0].target) == name])
        for name, words in FAMILIES.items()
    ]
    boards = {build.board for build in model.builds}
    primitives = {triple for build in model.builds for triple in build.log_s}
    return (
        f"{len(model.builds)} builds of {len(boards)} boards, {len(primitives)} primitives.\n\n"
        f"{_HEAD}" + "\n".join(rows) + "\n\nOne figure hidden, by family:\n\n" + _HEAD + "\n".join(families)
    )


def _row(words: str, held: Held) -> str:
    """All that is given as a figure; symmetric work has ranges of any width, and counts only here."""
    given = [(trial, trial.half(fit)) for trial, fit in held if trial.given(fit)]
    every = sum(trial.held(fit) for trial, fit in held) / len(held)
    boards = len({trial.build.board for trial, _ in held})
    if not given:
        return f"| {words} | {len(held)} | {boards} | 0 | – | – | – | – | – | {every:.0%} |"
    inside = sum(abs(trial.error) <= half for trial, half in given)
    by_board: dict[str, list[bool]] = {}
    for trial, half in given:
        by_board.setdefault(trial.build.board, []).append(abs(trial.error) <= half)
    figures, of_boards = interval(inside, len(given)), interval(*independent(list(by_board.values())))
    ends = " | ".join(f"{low:.0%} – {high:.0%}" for low, high in (figures, of_boards))
    width = math.exp(statistics.median(half for _, half in given))
    error = math.exp(statistics.median(abs(trial.error) for trial, _ in given))
    return (
        f"| {words} | {len(held)} | {boards} | {len(given)} | {inside / len(given):.1%} "
        f"| {ends} | ×/÷ {width:.2f} | ×/÷ {error:.2f} | {every:.0%} |"
    )


def interval(inside: int, count: int) -> tuple[float, float]:
    """The exact 95 % interval of a share (Clopper and Pearson)."""
    from scipy.stats import binomtest

    found = binomtest(inside, count).proportion_ci(0.95)
    return float(found.low), float(found.high)


def independent(boards: Sequence[Sequence[bool]]) -> tuple[int, int]:
    """How many independent figures would vary as those of these boards do: how many held, of how many.

    The figures of a board are right or wrong together: the variance of the share between boards, over that of
    independent figures, divides their number (Kish's design effect), which is never less than the boards'.
    Where all held, or all of one board, the variance is not known, and each board is one figure.
    """
    count, held = sum(map(len, boards)), sum(map(sum, boards))
    share, more = held / count, len(boards) / max(len(boards) - 1, 1)
    variance = more * math.fsum((sum(one) - share * len(one)) ** 2 for one in boards)
    least = count * share * (1.0 - share)
    effect = max(1.0, variance / least) if least and len(boards) > 1 else math.inf
    figures = max(round(count / effect), len(boards))
    return round(share * figures), figures


def page_text(page: str, tables: str) -> str:
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{tables}\n\n{END}{after}"


def main() -> None:
    """Fit, write, and say how often the ranges hold."""
    devices = shipped_names("devices")
    builds = reference_builds(devices)
    model, found = fitted(builds, devices)
    DATA.write_text(data_text(model), encoding="utf-8")
    print(f"{DATA}: {len(model.builds)} builds, {len(found)} trials", flush=True)
    held = held_out(builds, found)
    tables = coverage_tables(model, held)
    PAGE.write_text(page_text(PAGE.read_text(encoding="utf-8"), tables), encoding="utf-8")
    print(tables)


if __name__ == "__main__":
    main()
