"""The package's functions, as Python calls them: what `shakedown.compare` and `compare_pair` are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from shakedown.comparison import pairs
from shakedown.comparison.folders import compare_folders, load_runs
from shakedown.errors import InputError
from shakedown.schema.arguments import checked
from shakedown.schema.comparison import Comparison, Method


@checked
def compare(
    before: str | Path,
    after: str | Path,
    *,
    margin: float | None = None,
    floor: float | None = None,
    across: bool = False,
) -> Comparison:
    """Compares what two results folders hold of measured handshakes, figure by figure.

    Args:
        before, after: results folders, or folders of several: the runs of one experiment.
        margin: differences within it are equivalent, as a share.
        floor: by how much two runs of one build are known to differ: widens each interval.
        across: compare times although machines, clocks or versions differ.

    Raises:
        InputError: for folders without results, or without a handshake in common.
    """
    runs = (load_runs(Path(before)), load_runs(Path(after)))
    return compare_folders(*runs, rules=_rules(margin, floor), across=across)


@checked
def compare_pair(
    before: str,
    after: str,
    *,
    program: str | Path | None = None,
    blocks: int | None = None,
    margin: float | None = None,
    floor: float | None = None,
    progress: Callable[[int, str], None] | None = None,
) -> Comparison:
    """Measures two conditions in interleaved pairs, each by fresh processes, and compares them.

    Args:
        before, after: `[NAME=VALUE]… SUITE… [options of measure]`, as in a shell.
        program: another build's `shakedown`, which runs the second.
        blocks: of a process of each, which measure in turn; 4 to 1,000, None: 24.
        margin, floor: as for `compare`.
        progress: told how many blocks are done, and which runs.

    Raises:
        InputError: for conditions that `measure` refuses, and for other numbers of blocks.
    """
    if blocks is None:
        blocks = pairs.DEFAULT_BLOCKS
    if not pairs.MIN_BLOCKS <= blocks <= pairs.MAX_BLOCKS:
        raise InputError(f"blocks is {blocks}; accepted: {pairs.MIN_BLOCKS} to {pairs.MAX_BLOCKS:,}")
    one, other = pairs.condition(before), pairs.condition(after, None if program is None else Path(program))
    rules = _rules(margin, floor)
    found, reason = pairs.measured_blocks(one, other, blocks, progress or (lambda done, label: None))
    return pairs.compared(one.label, other.label, found, rules=rules, reason=reason)


def _rules(margin: float | None, floor: float | None) -> Method:
    given = {name: value for name, value in (("margin", margin), ("floor", floor)) if value is not None}
    for name, value in given.items():
        if not 0 <= value <= 1:
            raise InputError(f"{name} is {value}; accepted: a share, 0 to 1")
    return Method(**given)
