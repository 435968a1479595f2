"""Shin, Gupta and Myers on SSL on a PDA and a laptop: step shares, resumption, RSA against DH."""

from __future__ import annotations

from shakedown.papers.paper import Paper
from shakedown.papers.pda.claims import checks
from shakedown.papers.pda.figures import figures, words
from shakedown.papers.pda.inputs import SLUG, SUITES, TRANSFERS
from shakedown.papers.pda.rerun import modern_rerun
from shakedown.papers.pda.tables import cells

PAPER = Paper(SLUG, SUITES, checks, cells, modern_rerun, figures, transfers=(TRANSFERS,), words=words)
