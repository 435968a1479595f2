"""What recording costs: handshakes with the timing provider and a current recording, beside bare ones."""

import json
from functools import partial

from bench.harness import Benchmark, Pair, rust_example

# Where a process's keys and tables lie in memory moves an RSA operation by some tenths of a per cent, for all
# of its handshakes alike: as much as the heavy target asks about. So each benchmark is several processes'
# pairs.
PROCESSES = 5


def pairs(suite: str, count: int) -> list[Pair]:
    """CPU time in microseconds of ``count`` handshakes of both kinds, in turn, on one processor at a time."""
    share = str(count // PROCESSES)
    found: list[Pair] = []
    for _ in range(PROCESSES):
        nanoseconds: list[list[int]] = json.loads(
            rust_example("shakedown-stacks", "handshake_pairs", suite, share)
        )
        found += [(instrumented / 1000, bare / 1000) for instrumented, bare in nanoseconds]
    return found


def benchmark(name: str, suite: str, target: float, count: int) -> Benchmark:
    """A benchmark of the instrument on a suite."""
    return Benchmark(
        name=f"instrument-{name}",
        what=f"CPU time in us of a handshake of {suite}, both sides: with the instrument over without",
        peer_name="bare",
        better="lower",
        target=target,
        pairs=partial(pairs, suite, count),
    )


BENCHMARKS = [
    benchmark("cheap", "tls1.3/psk", 1.04, 8000),
    benchmark("usual", "tls1.3/x25519/p256", 1.025, 6000),
    benchmark("heavy", "tls1.2/rsa/rsa3072/mutual", 1.01, 3000),
]
