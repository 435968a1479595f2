"""Kuo et al. on pre-shared keys against public keys: the report's bytes, and processing measured here.

The report prints no processing times, so claims about processing use handshakes measured on this machine. Its
orders of whole handshakes depend on the speed of the machine; for these, the slowdown is computed at which
the printed order holds.
"""

from __future__ import annotations

from shakedown.papers.paper import Paper
from shakedown.papers.psk.claims import checks
from shakedown.papers.psk.figures import figures
from shakedown.papers.psk.inputs import SLUG, SUITES, TRANSFERS
from shakedown.papers.psk.messages import words
from shakedown.papers.psk.rerun import modern_rerun
from shakedown.papers.psk.tables import cells, measured_cells

PAPER = Paper(SLUG, SUITES, checks, cells, modern_rerun, figures, measured_cells, (TRANSFERS,), words)
