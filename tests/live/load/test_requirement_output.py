"""The output of `load` on requirements."""

from __future__ import annotations

import pytest

from shakedown.cli.load import _got
from shakedown.reporting.columns import Selection
from shakedown.reporting.columns.live import TIMES
from shakedown.reporting.columns.notes import missing_percentiles
from shakedown.reporting.terminal.listing import listing


@pytest.mark.parametrize(
    ("text", "value", "said"),
    [
        ("handshake.p99<1ms", 0.03793, "37.9 ms"),
        ("connect.mean<2s", 2.5, "2.50 s"),
        ("failed.share<1%", 0.25, "0.25"),
        ("failed.count<1", 3.0, "3"),
        ("rate>250", 123.456, "123.5/s"),
        ("handshake.p99<1ms", None, "no value"),
    ],
)
def test_required_figure_is_printed_with_its_unit(text, value, said):
    assert _got(text, value) == said


def test_missing_percentiles_are_dashes_with_a_legend():
    row = {"load": "load", "until": "end of handshake", "n": 30, "mean_s": 0.2, "p50_s": 0.1}
    row |= {"p90_s": 0.3, "p95_s": 0.4, "p99_s": None, "max_s": 0.6}

    def notes(shown):
        return missing_percentiles([row], shown, "connections")

    lines = list(listing(TIMES, [row], Selection(), notes=notes, width=80))
    assert lines[1].split()[-3:] == ["–", "600", "ms"]
    assert lines[-1] == "–: too few connections; p99 needs 100"
    assert list(notes({"p50_s", "p95_s"})) == []
    row["p99_s"] = 0.5
    assert list(notes({"p99_s"})) == []
