"""Compares `measure`'s memory with valgrind's massif: `python -m tools.measure_heap [SUITE…]`.

The connections of one side run in a separate process (the example `hold_side`), twice, with two counts. The
memory of a connection is the difference of the two plateaus divided by that of the counts. Its peak is that
plus the difference between massif's peak, in the last handshake, and the plateau. The exit status is 1 if a
figure differs from `measure` by more than ``TOLERANCE``. Without suites it writes the page's table.
"""

import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

from bench.harness import UnavailableError, checked_example, need, output

import shakedown
from shakedown.native.scenario import MeasureOptions
from tools import pages

PAGE = pages.VALIDATION / "memory.md"
SUITES = (
    "tls1.2/rsa/rsa2048/mutual",
    "tls1.3/x25519/p256/mutual",
    "wtls/ecdh_ecdsa/160p/mutual",
    "wtls/rsa/rsa1024/mutual",
)
COUNTS = (40, 60)
"""Connections held; enough for the last handshake to exceed any peak before the first."""
MARK_BYTES = 8
"""Bytes that the example allocates at the end of the plateau."""
SLOT_BYTES = 16
"""Bytes of the example itself for each connection that it keeps."""
TOLERANCE = 0.01
_SNAPSHOT = re.compile(
    r"time=(\d+)\nmem_heap_B=(\d+)\nmem_heap_extra_B=\d+\nmem_stacks_B=\d+\nheap_tree=(\w+)"
)


@dataclass(frozen=True)
class Heap:
    """Bytes of one side's heap by massif: the peak, and the size after the last handshake."""

    peak_bytes: int
    plateau_bytes: int


def parse(text: str) -> Heap:
    """Read massif's output; the plateau is the longest time between two snapshots.

    Raises:
        ValueError: if the output has no peak.
    """
    snapshots = [(int(time), int(size), tree) for time, size, tree in _SNAPSHOT.findall(text)]
    peaks = [size for _, size, tree in snapshots if tree == "peak"]
    if not peaks or len(snapshots) < 3:
        raise ValueError("massif saw no peak")
    gaps = [later[0] - earlier[0] for earlier, later in pairwise(snapshots)]
    after = snapshots[gaps.index(max(gaps)) + 1]
    return Heap(peaks[-1], after[1] - MARK_BYTES)


def measure(example: Path, suite: str, side: str, tickets: int, count: int) -> Heap:
    """Run the example under massif."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "massif"
        options = ("--time-unit=i", "--depth=1", "--max-snapshots=1000", "--peak-inaccuracy=0.0")
        massif = ("valgrind", "--tool=massif", *options, f"--massif-out-file={out}")
        output(*massif, example, suite, side, str(count), str(tickets))
        return parse(out.read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Compared:
    """One side of a suite: bytes held and peak bytes, by `measure` and by massif."""

    suite: str
    side: str
    ours: tuple[int, int]
    massif: tuple[float, float]

    @property
    def difference(self) -> float:
        """The larger of the two relative differences."""
        return max(abs(ours / massif - 1.0) for ours, massif in zip(self.ours, self.massif, strict=True))

    def cells(self) -> list[str]:
        """The row of the table."""
        figures = (f"{one:,.0f}" for pair in zip(self.ours, self.massif, strict=True) for one in pair)
        return [f"`{self.suite}`" if self.side == "client" else "", self.side, *figures]


def compare(example: Path, suite: str) -> Iterator[Compared]:
    """Compare both sides. Both tools count the same handshake, including its tickets."""
    options = MeasureOptions().issuing(suite)
    memory = shakedown.measure(suite, repeat=5, options=options).memory
    for side in ("client", "server"):
        with ThreadPoolExecutor() as pool:
            few, many = pool.map(partial(measure, example, suite, side, options.tickets or 0), COUNTS)
        held = (many.plateau_bytes - few.plateau_bytes) / (COUNTS[1] - COUNTS[0]) - SLOT_BYTES
        peak = held + many.peak_bytes - many.plateau_bytes
        ours = (getattr(memory, f"{side}_held_bytes"), getattr(memory, f"{side}_peak_bytes"))
        yield Compared(suite, side, ours, (held, peak))


def main(suites: Sequence[str]) -> int:
    """Print both figures of each suite and side, and write the page if no suites are named. 0: all are within
    the tolerance.
    """
    need("valgrind")
    example = checked_example("hold_side")
    found: list[Compared] = []
    for suite in suites or SUITES:
        for one in compare(example, suite):
            print(" | ".join(one.cells()), f"{one.difference:.2%}", flush=True)
            found.append(one)
    if not suites:
        head = "suite | side | held | held, by massif | peak | peak, by massif"
        pages.write(PAGE, "heap", pages.table(head, (one.cells() for one in found)))
    return 0 if max(one.difference for one in found) <= TOLERANCE else 1


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except UnavailableError as error:
        sys.exit(str(error))
