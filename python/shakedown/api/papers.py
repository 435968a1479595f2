"""Reproduces the founding papers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from shakedown import papers
from shakedown.papers import replication
from shakedown.papers.paper import Reproduction
from shakedown.schema.arguments import checked


@checked
def reproduce(
    paper: str = "all",
    *,
    repeat: int | None = None,
    measured: str | Path | None = None,
    measure: bool = True,
    progress: Callable[[int, int, str], None] | None = None,
    on_round: Callable[[replication.Replication], None] | None = None,
) -> list[Reproduction]:
    """Reproduces papers: their tables, figures and claims, and the same handshakes on this machine.

    `measured` is a file of figures from an earlier run (`measured.jsonl`). With `measure=False`, all figures
    are computed from the papers' inputs. `on_round` is called after each round of measurements with all
    rounds so far. Raises `InputError`.
    """
    known = None if measure else replication.Replication()
    if measured is not None:
        known = replication.load(Path(measured))
    repeat = papers.DEFAULT_REPEAT if repeat is None else repeat
    return papers.reproduce(
        papers.names(paper), repeat=repeat, measured=known, progress=progress, on_round=on_round
    )
