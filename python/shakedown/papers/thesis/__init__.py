"""Bayoglu's thesis on WTLS handshakes between a Nokia 7650 and a WAP gateway, reproduced."""

from __future__ import annotations

from collections.abc import Mapping

from shakedown.papers.load import PaperData, load
from shakedown.papers.paper import Paper
from shakedown.papers.replication import Replication
from shakedown.papers.thesis import network_claims, processing_claims, queue_claims
from shakedown.papers.thesis.figures import figures
from shakedown.papers.thesis.inputs import SLUG, Thesis
from shakedown.papers.thesis.rerun import measured_cells, modern_rerun
from shakedown.papers.thesis.sizes import words
from shakedown.papers.thesis.tables import cells
from shakedown.papers.verdicts import Check


def checks(data: PaperData, replication: Replication) -> Mapping[str, Check]:
    thesis = Thesis(data)
    return {
        **processing_claims.checks(thesis),
        **queue_claims.checks(thesis),
        **network_claims.checks(thesis),
    }


SUITES = tuple(case.suite(how) for case, how in Thesis(load(SLUG)).all())
PAPER = Paper(SLUG, SUITES, checks, cells, modern_rerun, figures, measured_cells, words=words)
