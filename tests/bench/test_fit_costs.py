"""The page of coverage lists its rows outside the target, and whether chance explains them."""

from __future__ import annotations

import pytest
from scipy.stats import beta
from tools.fit_costs import OUTSIDE, Row, independent, interval, outside


def row(words: str, *by_board: tuple[int, int]) -> Row:
    """A row from a pair (figures held, figures given) per board."""
    boards = tuple((True,) * held + (False,) * (given - held) for held, given in by_board)
    halves = (1.0,) * sum(map(len, boards))
    return Row(words, len(halves), len(boards), boards, halves, halves, 0.9)


def test_interval_matches_clopper_pearson():
    low, high = interval(18, 26)
    assert low == pytest.approx(beta.ppf(0.025, 18, 9))
    assert high == pytest.approx(beta.ppf(0.975, 19, 8))


def test_correlated_figures_reduce_the_effective_sample_size():
    alike = [(True,) * 9 + (False,)] * 10
    assert independent(alike) == (90, 100)
    apart = [(True,) * 10] * 9 + [(False,) * 10]
    assert independent(apart) == (9, 10)


def test_rows_outside_the_target_are_listed_by_cause():
    text = outside(
        [
            row("inside", *[(9, 10)] * 20),
            row("never by chance", *[(5, 10)] * 20),
            row("by boards alone", *[(10, 10)] * 8, *[(1, 10)] * 4),
            row("few", (2, 3), (2, 2)),
        ]
    )
    kinds = [text.index(words) for words in OUTSIDE]
    assert kinds == sorted(kinds)
    assert text.startswith("3 rows are outside 87% – 93%.")
    assert "inside:" not in text
    for number, words in enumerate(("never by chance", "by boards alone", "few")):
        assert kinds[number] < text.index(f"- {words}:") < [*kinds, len(text)][number + 1]
    assert "few: 4 of 5 held (80.0%), 95 % interval 28% – 99%" in text


def test_rows_within_the_target_are_not_listed():
    assert outside([row("inside", *[(9, 10)] * 20)]) == "0 rows are outside 87% – 93%."
