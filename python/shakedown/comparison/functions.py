"""The functions `shakedown.compare` and `compare_pair`."""

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
    """Compares the figures of measured handshakes in two results folders.

    Args:
        before, after: results folders, or folders of several results folders, the runs of one experiment.
        margin: relative differences within it are equivalent, as a share.
        floor: the known relative difference between two runs of one build; it widens each interval.
        across: compare times even if machines, clocks or versions differ.

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
    on_block: Callable[[Comparison], None] | None = None,
) -> Comparison:
    """Measures two conditions in interleaved pairs, each by fresh processes, and compares them.

    Args:
        before, after: `[NAME=VALUE]… SUITE… [options of measure]`, as in a shell.
        program: the `shakedown` of another build, which runs the second condition.
        blocks: number of blocks, each with one process per condition, which measure in turn; 4 to 1,000,
            None: 24.
        margin, floor: as for `compare`.
        progress: called with the number of completed blocks, and a label of the current one.
        on_block: called after each block with the comparison of the blocks so far.

    Raises:
        InputError: for conditions that `measure` refuses, and for invalid numbers of blocks.
    """
    if blocks is None:
        blocks = pairs.DEFAULT_BLOCKS
    if not pairs.MIN_BLOCKS <= blocks <= pairs.MAX_BLOCKS:
        raise InputError(f"blocks is {blocks}; accepted: {pairs.MIN_BLOCKS} to {pairs.MAX_BLOCKS:,}")
    one, other = pairs.condition(before), pairs.condition(after, None if program is None else Path(program))
    rules = _rules(margin, floor)
    found: list[pairs.Block] = []
    for block in pairs.measured_blocks(one, other, blocks, progress or (lambda done, label: None)):
        found.append(block)
        if on_block is not None:
            on_block(pairs.compared(one.label, other.label, found, rules=rules))
    return pairs.compared(one.label, other.label, found, rules=rules)


def _rules(margin: float | None, floor: float | None) -> Method:
    given = {name: value for name, value in (("margin", margin), ("floor", floor)) if value is not None}
    for name, value in given.items():
        if not 0 <= value <= 1:
            raise InputError(f"{name} is {value}; accepted: a share, 0 to 1")
    return Method(**given)
