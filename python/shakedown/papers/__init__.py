"""The five papers, reproduced: tables, figures and claims, from their own inputs and from measurements.

    from shakedown import papers
    (palm,) = papers.reproduce(["wtls-palm"])
    palm.claims()["wp-013"].verdict

``load`` reads the published figures, ``verdicts`` compares, ``replication`` measures. One package per paper
defines how each claim, cell and figure is computed; ``drawing`` and ``page`` present the results; ``write``
saves them in a folder.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from shakedown.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from shakedown.papers.paper import Paper, Reproduction
    from shakedown.papers.replication import Replication

MODULES = {
    "wtls-nokia7650": "thesis",
    "wtls-palm": "palm",
    "tls-psk": "psk",
    "ssl-pda": "pda",
    "aka-ssl": "aka",
}
"""The papers by their short names, with their packages."""

ALL = "all"

DEFAULT_REPEAT = 45


def names(name: str) -> list[str]:
    """The papers that a name refers to; raises `InputError` with the nearest name for an unknown one."""
    if name == ALL:
        return list(MODULES)
    if name not in MODULES:
        accepted = [*MODULES, ALL]
        raise InputError(
            f'"{name}" is not a paper{did_you_mean(name, accepted)}; accepted: {", ".join(accepted)}'
        )
    return [name]


def find(name: str) -> Paper:
    """One paper's definition; its package is imported on first use."""
    module = import_module(f"{__name__}.{MODULES[names(name)[0]]}")
    found: Paper = module.PAPER
    return found


def reproduce(
    wanted: Sequence[str],
    *,
    repeat: int = DEFAULT_REPEAT,
    measured: Replication | None = None,
    progress: Callable[[int, int, str], None] | None = None,
    on_round: Callable[[Replication], None] | None = None,
) -> list[Reproduction]:
    """Reproduce papers: compute from their own inputs, measure the modern rerun, and give verdicts.

    Args:
        wanted: short names of papers, or ``all``.
        repeat: handshakes of each suite.
        measured: figures measured earlier, which replace a measurement.
        progress: called with the work done, the total, and the next suite.
        on_round: called after each round of measurements with all complete rounds so far.
    """
    from shakedown.papers import replication as measuring
    from shakedown.papers.load import load
    from shakedown.papers.paper import reproduce as repeat_one
    from shakedown.papers.variants import variants

    chosen = [find(name) for one in wanted for name in names(one)]
    suites = list(dict.fromkeys(suite for one in chosen for suite in one.suites))

    def tell(done: int, suite: str) -> None:
        if progress:
            progress(done, measuring.ROUNDS * len(suites), suite)

    if measured is None:
        transfers = dict.fromkeys(transfer for one in chosen for transfer in one.transfers)
        measured = measuring.measure(suites, repeat, transfers, progress=tell, on_round=on_round)
    others = variants(measured)
    return [repeat_one(one, load(one.slug), measured, others) for one in chosen]
