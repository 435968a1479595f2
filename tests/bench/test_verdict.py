"""Verdicts of benchmarks: the median decides, and the text states the interval."""

from __future__ import annotations

import pytest
from bench.harness import Benchmark, is_met, verdict


def row(better, ratio, spread, target=100.0):
    """A benchmark's row with these figures."""
    benchmark = Benchmark("one", "what", "peer", better, target, list)
    return benchmark.evaluate([(ratio, 1.0)]) | {"spread": list(spread)}


@pytest.mark.parametrize(
    ("better", "ratio", "spread", "says"),
    [
        ("higher", 120.0, (101.0, 130.0), "met"),
        ("higher", 100.0, (100.0, 130.0), "met"),
        ("higher", 110.0, (99.0, 130.0), "met, but interval reaches below"),
        ("higher", 93.9, (79.5, 113.6), "missed"),
        ("lower", 90.0, (80.0, 100.0), "met"),
        ("lower", 90.0, (80.0, 101.0), "met, but interval reaches above"),
        ("lower", 101.0, (80.0, 110.0), "missed"),
    ],
)
def test_median_decides_the_verdict_and_the_interval_is_reported(better, ratio, spread, says):
    found = row(better, ratio, spread)
    assert verdict(found) == says
    assert is_met(found) is says.startswith("met")
