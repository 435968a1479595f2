"""The time and memory to read a large capture, compared with tshark."""

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from bench import crowd
from bench.harness import Benchmark, Pair, Ran, UnavailableError, need, ran

SUITES = [
    "tls1.2/ecdhe_rsa+x25519/rsa2048/server",
    "tls1.3/x25519/p256/server",
    "tls1.2/rsa/rsa2048/server/resumed",
    "tls1.0/rsa/rsa2048/server",
    "tls1.2/ecdhe_ecdsa+p256/p256@p256@p256/mutual",
]
LARGE_BYTES = 1_000_000_000
DATA_BYTES = 16_384
"""Application data after each handshake of the large capture: the size of a web page."""
AT_A_TIME = 1000
CROWD = 100_000
GRANTED_MIB = 200
PAIRS = 5


@contextmanager
def capture(size_bytes: int, data_bytes: int, *, stay_open: bool) -> Iterator[tuple[Path, int]]:
    """A capture that exists during the block, and its number of connections.

    Raises `UnavailableError` if the disk has no room for it.
    """
    with TemporaryDirectory(prefix="shakedown-bench-") as folder:
        free = shutil.disk_usage(folder).free
        if free < size_bytes * 1.2:
            raise UnavailableError(f"{folder} has {free:,} bytes free; the capture takes {size_bytes:,}")
        path = Path(folder) / "large.pcap"
        made = crowd.templates(SUITES, data_bytes)
        yield path, crowd.write(path, made, size_bytes, AT_A_TIME, stay_open=stay_open)


def inspected(path: Path) -> Ran:
    """Our command, with its output discarded."""
    return ran(Path(sys.executable).with_name("shakedown"), "inspect", "--json", path, quiet=True)


def against_tshark() -> list[Pair]:
    """Seconds for the same capture of a gigabyte: all our handshakes as JSON, tshark's list of streams."""
    tshark = need("tshark")
    pairs: list[Pair] = []
    with capture(LARGE_BYTES, DATA_BYTES, stay_open=False) as (path, connections):
        peaks = []
        for _ in range(PAIRS):
            ours = inspected(path)
            theirs = ran(tshark, "-q", "-z", "conv,tcp", "-r", path, quiet=True)
            pairs.append((ours.elapsed_s, theirs.elapsed_s))
            peaks.append(ours.peak_mib)
    report = f"inspect-1gb: {connections:,} connections; our peak memory {max(peaks):.0f} MiB"
    print(report, file=sys.stderr)  # noqa: T201
    if max(peaks) > GRANTED_MIB:
        raise UnavailableError(f"{report}, over the {GRANTED_MIB} granted")
    return pairs


def memory_of_a_crowd() -> list[Pair]:
    """Peak MiB, and the limit, for a capture in which all connections are open at the same time."""
    made = crowd.templates(SUITES)
    size_bytes = sum(one.size_bytes for one in made) * CROWD // len(made)
    with capture(size_bytes, 0, stay_open=True) as (path, connections):
        if connections < CROWD * 0.99:
            raise UnavailableError(f"the capture has {connections:,} connections")
        return [(inspected(path).peak_mib, float(GRANTED_MIB)) for _ in range(PAIRS)]


BENCHMARKS = [
    Benchmark(
        name="inspect-1gb",
        what="seconds to read a capture of 1 GB, as whole programs: inspect --json and tshark -q -z conv,tcp",
        peer_name="tshark",
        better="lower",
        target=1.0,
        pairs=against_tshark,
    ),
    Benchmark(
        name="inspect-crowd",
        what=f"peak MiB of inspect --json, with {CROWD:,} connections open at the same time",
        peer_name="granted",
        better="lower",
        target=1.0,
        pairs=memory_of_a_crowd,
    ),
]
