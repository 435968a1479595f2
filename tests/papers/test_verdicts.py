"""Verdicts depend only on the figure and the tolerance."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from shakedown.papers import verdicts
from shakedown.papers.load import Claim
from shakedown.schema.replication import Row


def claim(value: str, tolerance: str = "", unit: str = "ms") -> Claim:
    return Claim("x-001", "1", "something", "number", value, unit, tolerance, "")


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("391.3", [(391.3, 391.3)]),
        ("150..160", [(150, 160)]),
        ("6..13; 6..57", [(6, 13), (6, 57)]),
        ("38.37 -> 871.41", [(38.37, 38.37), (871.41, 871.41)]),
        (">=8", [(8, 8)]),
        ("1e-5", [(1e-5, 1e-5)]),
        ("163r < 163k", []),
        ("376.1/391.3", []),
    ],
)
def test_published_values_are_parsed(text, values):
    assert verdicts.published_values(text) == values


@pytest.mark.parametrize(
    ("tolerance", "published", "text", "allowed"),
    [
        ("5 %", 200.0, "200", 10.0),
        ("0.05", 391.3, "391.3", 0.05),
        ("none", 8.0, "8", 0.0),
        ("exact", 38.4, "38.40", 0.005),
        ("", 9.6, "9.6", 0.05),
        ("exact", 20.0, "20", 0.5),
    ],
)
def test_tolerances_are_computed_from_the_claim(tolerance, published, text, allowed):
    assert verdicts.allowance(tolerance, published, text) == pytest.approx(allowed)


@given(replication=st.floats(0, 300), percent=st.integers(1, 50))
def test_a_number_agrees_exactly_within_its_tolerance(replication, percent):
    found = verdicts.number(replication, "why")(claim("100", f"{percent} %"))
    assert (found.verdict == "agrees") == (abs(replication - 100) <= percent + 1e-12)


@pytest.mark.parametrize(
    ("replication", "verdict", "difference"),
    [(155.0, "agrees", 0), (149.0, "agrees", -1), (170.0, "differs", 10), (140.0, "differs", -10)],
)
def test_a_figure_may_lie_anywhere_in_a_published_range(replication, verdict, difference):
    found = verdicts.number(replication, "why")(claim("150..160", "2"))
    assert (found.verdict, found.difference) == (verdict, difference)


def test_both_ends_of_a_range_must_agree():
    assert verdicts.spans([(65.3, 87.7)], "why")(claim("65..87", "1")).verdict == "agrees"
    assert verdicts.spans([(47.4, 91.7)], "why")(claim("64..92", "1")).verdict == "differs"


def test_within_agrees_if_the_interval_is_inside():
    assert verdicts.within(360, 380, "why")(claim("350..400", "2")).verdict == "agrees"
    found = verdicts.within(326, 367, "why")(claim("350..400", "2"))
    assert (found.verdict, found.difference) == ("differs", -24)


def test_wrong_number_of_figures_raises_value_error():
    with pytest.raises(ValueError, match="2 figures"):
        verdicts.numbers([1.0, 2.0], "why")(claim("1"))


def test_cell_that_is_an_input_cannot_be_tested():
    row = verdicts.cell_row("table 1", "q", "ms", "12.5", None, "", "an input")
    assert (row.verdict, row.replication, row.difference, row.published) == (
        "cannot be tested",
        None,
        None,
        12.5,
    )


def test_a_cell_agrees_to_its_last_printed_digit():
    assert verdicts.cell_row("t", "q", "ms", "2.47", 2.4716, "exact", "sum").verdict == "agrees"
    assert verdicts.cell_row("t", "q", "ms", "2.47", 2.4756, "exact", "sum").verdict == "differs"


def test_claim_row_has_either_words_or_numbers():
    number = verdicts.number(80.0, "why")(claim("72", "10 %"))
    assert (number.published, number.replication, number.difference, number.verdict) == (72, 80, 8, "differs")
    order = verdicts.holds(True, "a < b", "why")(claim("a < b"))
    assert (order.published, order.replication, order.difference, order.verdict) == (
        "a < b",
        "a < b",
        None,
        "agrees",
    )


def measured(*figures: float) -> Row:
    """The row of a measured figure whose variants gave these figures, for a claim of 100 within 10 %."""
    about = claim("100", "10 %")
    rounds = [verdicts.measured(verdicts.number(figure, "why"))(about) for figure in figures]
    return verdicts.combined(verdicts.measured(verdicts.number(min(figures), "why"))(about), rounds)


def test_a_measured_figure_agrees_or_differs_only_if_every_variant_does():
    assert measured(95, 100, 108).verdict == "agrees"
    assert measured(95, 100, 112).verdict == "undecided"
    assert measured(112, 115, 140).verdict == "differs"
    assert measured(95, 100, 112).interval == (95, 112)


def test_one_deviating_variant_leaves_the_verdict_undecided():
    assert measured(*[100] * 30).verdict == "agrees"
    assert measured(*[100] * 30, 112).verdict == "undecided"
    assert measured(*[112] * 30, 100).verdict == "undecided"
    assert measured(*[100] * 30, 112).interval == (100, 112)


def test_a_cell_of_another_machine_keeps_its_interval_and_has_no_verdict():
    rows = [
        replace(
            verdicts.beside(verdicts.cell_row("t", "q", "%", "12.5", figure, "5", "why")), kind="measured"
        )
        for figure in (12.0, 11.0, 14.0)
    ]
    found = verdicts.combined(rows[0], rows[1:])
    assert (found.verdict, found.tolerance) == ("cannot be tested", None)
    assert (found.replication, found.difference, found.interval) == (12, -0.5, (11, 14))
    assert verdicts.OTHER_MACHINES in found.reason
    missing = verdicts.cell_row("t", "q", "%", "12.5", None, "5", "not measured")
    assert verdicts.beside(missing) == missing


def test_variants_on_both_sides_leave_the_verdict_undecided():
    assert measured(80, 120).verdict == "undecided"


def test_measured_figure_without_variants_is_undecided():
    about = claim("100", "10 %")
    assert (
        verdicts.combined(verdicts.measured(verdicts.number(100.0, "why"))(about), []).verdict == "undecided"
    )


def test_computed_figure_needs_no_variants():
    about = claim("100", "10 %")
    assert verdicts.combined(verdicts.number(100.0, "why")(about), []).verdict == "agrees"


def test_an_order_holds_only_if_it_holds_in_every_variant():
    about = claim("a < b")
    good, bad = (verdicts.measured(verdicts.holds(held, "a, b", "why"))(about) for held in (True, False))
    assert verdicts.combined(good, [good, good]).verdict == "agrees"
    assert verdicts.combined(good, [good, bad]).verdict == "undecided"
    assert verdicts.combined(bad, [bad, bad]).verdict == "differs"
