"""What `load` prints of requirements."""

from __future__ import annotations

import pytest

from shakedown.cli.load import _got


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
def test_a_figure_that_was_required_has_its_unit(text, value, said):
    assert _got(text, value) == said
