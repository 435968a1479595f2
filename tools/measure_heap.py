"""Compares `measure`'s memory with valgrind's massif: `python -m tools.measure_heap [SUITE…]`.

The connections of one side live in their own process (the example `hold_side`), twice, for two counts.
A connection holds the difference of the two plateaus divided by that of the counts. Its peak is that plus
the difference of massif's peak, in the last handshake, and the plateau. Exit status 1 where one
differs from `measure` by more than ``TOLERANCE``.
"""

import os
import re
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

from bench.harness import ROOT, UnavailableError, need, output

import shakedown

SUITES = ("tls1.2/rsa/rsa2048/mutual", "tls1.3/x25519/p256/mutual", "wtls/ecdh_ecdsa/160p/mutual")
COUNTS = (40, 60)
"""Connections held; enough for the last handshake to overtop whatever was needed before the first."""
MARK_BYTES = 8
"""Allocated by the example at the end of the plateau."""
SLOT_BYTES = 16
"""The example's own, for each connection that it keeps."""
TOLERANCE = 0.01
_SNAPSHOT = re.compile(
    r"time=(\d+)\nmem_heap_B=(\d+)\nmem_heap_extra_B=\d+\nmem_stacks_B=\d+\nheap_tree=(\w+)"
)


@dataclass(frozen=True)
class Heap:
    """Bytes of one side's heap by massif: the most there ever was, and after the last handshake."""

    peak_bytes: int
    plateau_bytes: int


def parse(text: str) -> Heap:
    """Reads massif's output; the plateau is the longest time between two snapshots.

    Raises:
        ValueError: where the output has no peak.
    """
    snapshots = [(int(time), int(size), tree) for time, size, tree in _SNAPSHOT.findall(text)]
    peaks = [size for _, size, tree in snapshots if tree == "peak"]
    if not peaks or len(snapshots) < 3:
        raise ValueError("massif saw no peak")
    gaps = [later[0] - earlier[0] for earlier, later in pairwise(snapshots)]
    after = snapshots[gaps.index(max(gaps)) + 1]
    return Heap(peaks[-1], after[1] - MARK_BYTES)


def measure(example: Path, suite: str, side: str, count: int) -> Heap:
    """Runs the example under massif."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "massif"
        options = ("--time-unit=i", "--depth=1", "--max-snapshots=1000", "--peak-inaccuracy=0.0")
        massif = ("valgrind", "--tool=massif", *options, f"--massif-out-file={out}")
        output(*massif, example, suite, side, str(count))
        return parse(out.read_text(encoding="utf-8"))


def build() -> Path:
    """Builds the example; returns where it stands."""
    output("cargo", "build", "--release", "--package", "shakedown-stacks", "--example", "hold_side", cwd=ROOT)
    return Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release" / "examples" / "hold_side"


def main(suites: Sequence[str]) -> int:
    """Prints both figures of each suite and side. 0: all within the tolerance."""
    need("valgrind")
    example = build()
    worst = 0.0
    print(f"{'suite':30} side    figure     ours  massif  difference")
    for suite in suites or SUITES:
        memory = shakedown.measure(suite, repeat=5).memory
        for side in ("client", "server"):
            with ThreadPoolExecutor() as pool:
                few, many = pool.map(partial(measure, example, suite, side), COUNTS)
            held = (many.plateau_bytes - few.plateau_bytes) / (COUNTS[1] - COUNTS[0]) - SLOT_BYTES
            peak = held + many.peak_bytes - many.plateau_bytes
            for figure, massif in (("held", held), ("peak", peak)):
                ours = getattr(memory, f"{side}_{figure}_bytes")
                difference = ours / massif - 1.0
                worst = max(worst, abs(difference))
                print(f"{suite:30} {side:7} {figure:6} {ours:8} {massif:7.0f}  {difference:+.2%}")
    return 0 if worst <= TOLERANCE else 1


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except UnavailableError as error:
        sys.exit(str(error))
