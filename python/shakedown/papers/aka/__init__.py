"""Kambourakis et al. on SSL-based access to 3G networks: NRT, RPT, THT, TST, SCRT, resumption, battery."""

from __future__ import annotations

from shakedown.papers.aka.claims import checks
from shakedown.papers.aka.figures import figures
from shakedown.papers.aka.inputs import SLUG, SUITES
from shakedown.papers.aka.rerun import modern_rerun
from shakedown.papers.aka.tables import cells, words
from shakedown.papers.paper import Paper

PAPER = Paper(SLUG, SUITES, checks, cells, modern_rerun, figures, words=words)
