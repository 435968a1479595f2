"""The rank tests, compared with published tables and on data with known shifts."""

from __future__ import annotations

import numpy as np
import pytest
from tools.compare_check import (
    HANDSHAKE,
    SIGN,
    SIMULATED_FIGURES,
    pair_rows,
    run_rows,
    simulated_pairs,
    simulated_runs,
    tally,
)

from shakedown.comparison.figures import Readings
from shakedown.comparison.pairs import Block
from shakedown.comparison.statistics import (
    _rank_sums,
    _signed_ranks,
    min_group,
    min_pairs,
    paired,
    unpaired,
)


# Critical values of Wilcoxon's signed ranks, two-sided 5 % (Wilcoxon and Wilcox 1964): the largest sum of the
# ranks of one sign that is significant.
@pytest.mark.parametrize(("n", "critical"), [(6, 0), (8, 3), (10, 8), (12, 13), (16, 29), (20, 52), (25, 89)])
def test_signed_rank_critical_values_match_the_tables(n, critical):
    def lower(negative_sum):
        """The lower bound for ranks 1 … n of which the fewest possible are negative with this sum."""
        signs = np.ones(n)
        for rank in range(n, 0, -1):
            if rank <= negative_sum:
                signs[rank - 1] = -1
                negative_sum -= rank
        return paired(signs * np.arange(1, n + 1), 0.95).lower

    assert lower(critical) > 0 > lower(critical + 1)


# Mann and Whitney's U, two-sided 5 % (Mann and Whitney 1947; Auble 1953).
@pytest.mark.parametrize(
    ("n", "m", "critical"), [(4, 4, 0), (5, 5, 2), (8, 8, 13), (8, 10, 17), (10, 10, 23)]
)
def test_rank_sum_critical_values_match_the_tables(n, m, critical):
    def lower(inversions):
        """The lower bound for two groups that are separate except for this many pairs in the wrong order."""
        after = np.arange(100.0, 100.0 + m)
        before = np.arange(float(n))
        place = n - 1
        while inversions > 0:
            above = min(inversions, m)
            before[place] = 100 + above - 0.5
            inversions -= above
            place -= 1
        return unpaired(before, after, 0.95).lower

    assert lower(critical) > 0 > lower(critical + 1)


@pytest.mark.parametrize(
    ("null", "each", "any_"), [(_signed_ranks(24), 0.109, 4.38), (_rank_sums(10, 10), 0.105, 4.22)]
)
def test_false_alarm_rates_of_41_times_match_the_documentation(null, each, any_):
    """docs/validation/compare-check.md: per cent of intervals, and of comparisons of independent times."""
    level = 1 - 0.05 / 41
    beyond = int(np.searchsorted(np.cumsum(null), (1 - level) / 2, side="right"))
    error = 2 * float(np.sum(null[:beyond]))
    assert 100 * error == pytest.approx(each, abs=0.0005)
    assert 100 * (1 - (1 - error) ** 41) == pytest.approx(any_, abs=0.01)


def test_interval_matches_the_textbook_example():
    """Hollander and Wolfe, example 3.1 (depression scores before and after tranquilizer): estimate −0.46,
    interval at 96.1 % from −0.786 to −0.010."""
    before = np.array([1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30])
    after = np.array([0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29])
    found = paired(after - before, 0.95)
    assert found.estimate == pytest.approx(-0.46, abs=0.001)
    assert (found.lower, found.upper) == pytest.approx((-0.786, -0.010), abs=0.001)


def test_too_few_readings_give_no_finite_bound():
    level = 1 - 0.05 / 50
    for n, shift in ((min_pairs(level), paired), (min_group(level), lambda x, at: unpaired(-x, x, at))):
        values = np.arange(1.0, n + 1)
        assert np.isfinite(shift(values, level).lower)
        assert not np.isfinite(shift(values[1:], level).lower)


@pytest.mark.parametrize("draw", [simulated_pairs, simulated_runs])
def test_a_build_compared_with_itself_raises_few_alarms(draw):
    """The documented rate is one alarm in 100 figures; all intervals hold in 95 of 100 comparisons."""
    random = np.random.default_rng(20_260_101)
    seen = tally([draw(random, noise=0.02) for _ in range(40)])
    assert seen.times > 1_500
    assert seen.alarms <= 0.01 * seen.times
    # At 5 %, 7 or more of 40 draws raise an alarm once in 300 such tests.
    assert seen.alarmed <= 6


def test_one_per_cent_change_of_a_primitive_is_found_and_named():
    random = np.random.default_rng(20_260_102)
    found = [simulated_pairs(random, noise=0.003, slower=1.01) for _ in range(20)]
    named = [
        [row.operation for row in one.rows if row.verdict == "different"] == [SIGN.operation] for one in found
    ]
    assert sum(named) >= 18
    changes = [row.change for one in found for row in one.rows if row.operation == SIGN.operation]
    assert np.mean(changes) == pytest.approx(0.01, abs=0.001)


def test_equal_builds_are_equivalent_only_at_low_noise():
    random = np.random.default_rng(20_260_103)
    quiet = [row.verdict for row in simulated_pairs(random, noise=0.003).rows]
    noisy = [row.verdict for row in simulated_pairs(random, noise=0.1).rows]
    assert quiet.count("equivalent") > 0.9 * len(quiet)
    assert set(noisy) == {"undecided"}


def test_verdict_change_and_interval_of_a_row_agree():
    """Also at the margin itself, where an estimate may be within it by chance but its interval is not."""
    random = np.random.default_rng(20_260_104)
    rows = [row for _ in range(20) for row in simulated_pairs(random, noise=0.003, slower=1.01).rows]
    for row in rows:
        assert row.lower <= row.change <= row.upper
        assert row.after / row.before - 1 == pytest.approx(row.change)
        assert (row.verdict == "equivalent") == (row.lower >= -0.01 / 1.01 and row.upper <= 0.01)
        if row.verdict == "different":
            assert row.lower > 0 or row.upper < 0
    wrong = [row for row in rows if row.operation == SIGN.operation and row.verdict == "equivalent"]
    assert len(wrong) <= 3


def test_slower_signature_is_found_in_measured_blocks():
    reading = {HANDSHAKE: {figure: Readings("us", 100.0) for figure in SIMULATED_FIGURES}}
    blocks = [Block([reading] * 2, [reading] * 2, frozenset({("cpu", "clock")}))] * 20
    same, *slower = pair_rows("tls1.2/psk", [blocks])
    assert same.endswith("| – |")
    assert all(row.endswith("| 1 of 1 |") for row in slower)
    assert any("one after the other" in row for row in run_rows({"tls1.2/psk": [blocks]}))
