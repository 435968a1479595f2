"""Verdicts of `compare`, computed independently by SciPy's exact tests, from the Parquet files of the runs.

No code of the comparison is used. A verdict follows from tests: *different* if the two-sided test rejects
that nothing changed, *equivalent* if two one-sided tests reject a change beyond the margin. The interval
contains the shifts that the test does not reject.
"""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
import pytest
from scipy import stats

import shakedown
from results.folders import manifest, planned, table_of
from shakedown.comparison.statistics import paired
from shakedown.results.writer import ResultsWriter

SUITE = "tls1.2/ecdhe_rsa+x25519/rsa2048/server"
RUNS, ALPHA, MARGIN = 12, 0.05, 0.01
TIMES = ["handshake.time", "message.generate", "message.process", "operation.time"]
KEY = ["side", "sender", "message", "operation", "algorithm", "parameters"]
AT_LEAST_US = 1.0
NOISE = {"client": 0.03, "server": 0.002}
"""Noise of the runs' medians: a margin of 1 % is undecided where the noise is 3 %."""
STEP = 1e-9


def runs(folder: Path, random: np.random.Generator, slower: float) -> Path:
    """Writes runs whose signatures take `slower` times as long; medians have the noise of their side."""
    table = table_of(SUITE)
    is_time = pl.col("quantity").is_in(TIMES) & (pl.col("statistic") == "median")
    for number in range(RUNS):
        noise = np.exp(random.standard_normal(table.height))
        scale = pl.when(pl.col("side") == "client").then(NOISE["client"]).otherwise(NOISE["server"])
        factor = pl.Series("factor", noise).log() * scale
        slow = pl.when(pl.col("operation") == "sign").then(slower).otherwise(1.0)
        changed = pl.when(is_time).then(pl.col("value") * factor.exp() * slow).otherwise(pl.col("value"))
        about = manifest(planned=planned(SUITE), provenance=f"run {number}")
        with ResultsWriter(folder / f"run-{number}", about) as writer:
            writer.add("measured", SUITE, table.with_columns(changed.alias("value")))
    return folder


class Verdict(NamedTuple):
    """The verdict on a time, and the logarithms of both conditions' runs."""

    verdict: str
    before: np.ndarray
    after: np.ndarray
    error: float


def medians(folder: Path) -> dict[tuple[object, ...], list[float]]:
    """The medians of each time, one per run; times of the same name are distinguished by position."""
    found: dict[tuple[object, ...], list[float]] = {}
    for run in sorted(folder.iterdir()):
        table = pl.concat([pl.read_parquet(file) for file in sorted(run.rglob("*.parquet"))])
        times = table.filter(pl.col("quantity").is_in(TIMES), pl.col("statistic") == "median")
        seen: Counter[tuple[object, ...]] = Counter()
        for *key, value in times.select(*KEY, "value").iter_rows():
            seen[tuple(key)] += 1
            found.setdefault((*key, seen[tuple(key)]), []).append(value)
    return found


def verdicts(before: Path, after: Path, margin: float) -> dict[tuple[object, ...], Verdict]:
    """The verdict on each time."""
    one, other = medians(before), medians(after)
    keys = [key for key in one if max(np.median(one[key]), np.median(other[key])) >= AT_LEAST_US]
    error, found = ALPHA / len(keys), {}
    for key in keys:
        x, y = np.log(one[key]), np.log(other[key])
        above = stats.mannwhitneyu(y + math.log1p(margin), x, alternative="greater", method="exact").pvalue
        below = stats.mannwhitneyu(y - math.log1p(margin), x, alternative="less", method="exact").pvalue
        changed = stats.mannwhitneyu(y, x, method="exact").pvalue
        is_near = max(above, below) <= error / 2
        verdict = "equivalent" if is_near else "different" if changed <= error else "undecided"
        found[key] = Verdict(verdict, x, y, error)
    return found


def name(key: tuple[object, ...]) -> tuple[object, ...]:
    """Side, message and operation, as a row of `compare` names them, without the position."""
    side, sender, message, *operation, _ = key
    return side, sender, message, " ".join(str(one) for one in operation if one)


def test_every_verdict_and_interval_matches_scipy(tmp_path):
    random = np.random.default_rng(20_261_127)
    before, after = runs(tmp_path / "a", random, 1.0), runs(tmp_path / "b", random, 1.03)
    ours = [row for row in shakedown.compare(before, after, margin=MARGIN).rows if row.quantity == "time"]
    theirs = verdicts(before, after, MARGIN)
    assert {one.verdict for one in theirs.values()} == {"different", "equivalent", "undecided"}
    assert [name(key)[-1] for key, one in theirs.items() if one.verdict == "different"] == [
        "sign rsa rsa2048"
    ]
    left = dict(theirs)
    for row in ours:
        label = (row.side, row.sender, row.message, (row.operation or "").partition(" #")[0])
        key = next(
            key
            for key, one in left.items()
            if name(key) == label
            and np.median(np.subtract.outer(one.after, one.before))
            == pytest.approx(math.log1p(row.change), abs=1e-12)
        )
        one = left.pop(key)
        assert row.verdict == one.verdict, label
        for end, outside in ((row.lower, -STEP), (row.upper, STEP)):
            shift = math.log1p(end)
            kept, rejected = (
                stats.mannwhitneyu(one.after - shift - step, one.before, method="exact").pvalue
                for step in (-outside, outside)
            )
            assert rejected <= one.error < kept, label
    assert not left


@pytest.mark.parametrize("n", [8, 13, 24])
def test_intervals_of_pairs_match_scipy_signed_ranks(n):
    random = np.random.default_rng(n)
    for level in (0.95, 0.98):
        differences = 0.02 + 0.01 * random.standard_normal(n)
        found = paired(differences, level)
        for end, outside in ((found.lower, -STEP), (found.upper, STEP)):
            kept, rejected = (
                stats.wilcoxon(differences - end - step, method="exact").pvalue
                for step in (-outside, outside)
            )
            assert rejected <= 1 - level < kept
