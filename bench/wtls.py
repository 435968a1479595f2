"""What the WTLS engine adds: CPU of a whole handshake over the sum of its own public-key primitives."""

import json
from functools import partial

from bench.harness import Benchmark, Pair, rust_example


def pairs(suite: str, count: int) -> list[Pair]:
    """Microseconds of ``count`` bare handshakes, and of the primitives in their recorded neighbours."""
    nanoseconds: list[list[int]] = json.loads(
        rust_example("shakedown-stacks", "primitive_share", suite, str(count))
    )
    return [(handshake / 1000, primitives / 1000) for handshake, primitives in nanoseconds]


def benchmark(name: str, suite: str, target: float, count: int) -> Benchmark:
    """A benchmark of the engine on a suite."""
    return Benchmark(
        name=f"wtls-{name}",
        what=f"CPU time in us of a handshake of {suite}, both sides, over its public-key primitives",
        peer_name="the same OpenSSL's primitives",
        better="lower",
        target=target,
        pairs=partial(pairs, suite, count),
    )


BENCHMARKS = [
    benchmark("rsa2048-mutual", "wtls/rsa/rsa2048/mutual", 1.06, 3000),
    benchmark("233k-mutual", "wtls/ecdh_ecdsa/233k/mutual", 1.06, 3000),
    benchmark("160p-server", "wtls/ecdh_ecdsa/160p/server", 1.06, 3000),
]
