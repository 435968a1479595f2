"""The one chart kit, of report and papers: Vega-Lite definitions in common colours and patterns.

Categories differ in colour and pattern, lines in colour, dash and symbol, so that print without colour tells
them apart. `columns`, `curves` and `ranges` are laid out by Vega-Lite, for a column of 16 cm; `sides`,
`timeline`, `ladder`, `map` and `queue` by the pixel, for wide and for narrow pages. All take rows and return
a definition; `figure` draws it.
"""

from __future__ import annotations

from shakedown.reporting.charts.columns import grouped_bars, stacked_bars
from shakedown.reporting.charts.curves import lines, regression
from shakedown.reporting.charts.figure import Definition, Figure
from shakedown.reporting.charts.parts import Values
from shakedown.reporting.charts.ranges import bands, spans

__all__ = [
    "Definition",
    "Figure",
    "Values",
    "bands",
    "grouped_bars",
    "lines",
    "regression",
    "spans",
    "stacked_bars",
]
"""The kinds of figures that papers have; the report's import their modules."""
