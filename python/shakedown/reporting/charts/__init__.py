"""The chart library of report and papers: Vega-Lite definitions in common colours and patterns.

Categories differ in colour and pattern, lines in colour, dash and symbol, so that they can be distinguished
in print without colour. Vega-Lite lays out `columns`, `curves` and `ranges`, for a column of 16 cm; `sides`,
`timeline`, `ladder`, `map` and `queue` have pixel layouts, for wide and for narrow pages. All take rows and
return a definition; `figure` draws it.
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
"""The kinds of figures of the papers; the report imports the modules of its own kinds."""
