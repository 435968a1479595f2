"""`make openssl-check` repeats a size until the interval of its ratio is decisive."""

from __future__ import annotations

from contextlib import nullcontext
from itertools import cycle

import pytest
from tools import openssl_check
from tools.openssl_check import beyond, decides, measured, table, within

STEADY = [1.0, 1.02, 0.98]
SLOWER = [1.3, 1.32, 1.28]
SCATTERED = [0.7, 1.4, 1.0]


def test_interval_decides_only_if_entirely_on_one_side():
    assert within((0.95, 1.05))
    assert beyond((1.15, 1.2))
    assert beyond((0.8, 0.9))
    for straddling in ((0.95, 1.2), (0.8, 0.95)):
        assert not within(straddling)
        assert not beyond(straddling)


@pytest.mark.parametrize(
    ("ratios", "pairs"), [(STEADY, 6), (SLOWER, 6), (SCATTERED, 12), ([*SCATTERED, *[1.0] * 30], None)]
)
def test_pairs_are_repeated_until_they_decide(monkeypatch, ratios, pairs):
    """Also if they decide that the figures differ."""
    drawn = cycle(ratios)
    triple = ("sign", "rsa", "rsa2048")

    def pair(program, name, processor, *, ours_first):
        return {triple: 100.0 * next(drawn)}, {triple: 100.0}

    monkeypatch.setattr(openssl_check, "_pair", pair)
    monkeypatch.setattr(openssl_check, "SPEED", ("rsa2048",))
    monkeypatch.setattr(openssl_check, "RARE", ())
    monkeypatch.setattr(openssl_check, "busy_neighbours", nullcontext)
    found = measured("openssl", 6, 12 if pairs else 24)[triple]
    assert len(found) == pairs or (pairs is None and 6 < len(found) < 24 and decides(found))


def test_table_reports_how_many_ratios_are_decided():
    pairs = {
        ("sign", "rsa", f"rsa{number}"): [(100.0 * one, 100.0) for one in ratios * 5]
        for number, ratios in enumerate((STEADY, SLOWER, SCATTERED))
    }
    text = table(pairs)
    assert "2 of 3 ratios are within 10 %" in text
    assert "within 10 % for 1, beyond for 1; 1 remain undecided" in text
