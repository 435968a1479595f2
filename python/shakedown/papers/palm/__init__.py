"""Daswani's report on Palm devices: sums of primitives, ratios, and the scaling by clock (figures 3 to 8)."""

from __future__ import annotations

from shakedown.papers.palm.claims import checks
from shakedown.papers.palm.figures import figures
from shakedown.papers.palm.inputs import SLUG, SUITES
from shakedown.papers.palm.rerun import modern_rerun
from shakedown.papers.palm.tables import cells, measured_cells
from shakedown.papers.paper import Paper

PAPER = Paper(SLUG, SUITES, checks, cells, modern_rerun, figures, measured_cells)
