"""The kinds of figures that the papers have, as Vega-Lite definitions in the house's colours and patterns.

Categories differ in colour and pattern, lines in colour, dash and symbol, so that print without colour tells
them apart. Sizes are for a column of 16 cm, where the smallest letters come to about 8 points.
"""

from __future__ import annotations

from shakedown.papers.draw.bars import grouped_bars, stacked_bars
from shakedown.papers.draw.curves import lines, regression
from shakedown.papers.draw.drawing import Drawing, waiting
from shakedown.papers.draw.parts import Values
from shakedown.papers.draw.ranges import bands, spans

__all__ = [
    "Drawing",
    "Values",
    "bands",
    "grouped_bars",
    "lines",
    "regression",
    "spans",
    "stacked_bars",
    "waiting",
]
