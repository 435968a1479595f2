"""Costs of whole handshakes beyond the necessary work: those of the instrument, and of the WTLS engine."""

import json
from functools import partial

from bench.harness import Benchmark, Pair, rust_example

# The memory addresses of a process's keys and tables change an RSA operation by some tenths of a per cent, in
# all of its handshakes. This is as large as the strictest target, so each comparison of the instrument uses
# pairs of several processes.
PROCESSES = 5


def pairs(kind: str, suite: str, count: int, processes: int) -> list[Pair]:
    """CPU time in microseconds of ``count`` handshakes and of their counterparts, alternating, on one
    processor at a time.
    """
    found: list[Pair] = []
    for _ in range(processes):
        nanoseconds: list[list[int]] = json.loads(
            rust_example("shakedown-stacks", "handshake_pairs", kind, suite, str(count // processes))
        )
        found += [(ours / 1000, peer / 1000) for ours, peer in nanoseconds]
    return found


def instrument(name: str, suite: str, target: float, count: int) -> Benchmark:
    """Handshakes with the timing provider and a current recording, compared with bare ones."""
    return Benchmark(
        name=f"instrument-{name}",
        what=f"CPU time in us of a handshake of {suite}, both sides: with the instrument over without",
        peer_name="bare",
        better="lower",
        target=target,
        pairs=partial(pairs, "instrument", suite, count, PROCESSES),
    )


def engine(name: str, suite: str) -> Benchmark:
    """Bare handshakes of WTLS over the sum of the primitives in the recorded handshakes next to them."""
    return Benchmark(
        name=f"wtls-{name}",
        what=f"CPU time in us of a handshake of {suite}, both sides, over its public-key primitives",
        peer_name="the same OpenSSL's primitives",
        better="lower",
        target=1.06,
        pairs=partial(pairs, "primitives", suite, 3000, 1),
    )


BENCHMARKS = [
    instrument("cheap", "tls1.3/psk", 1.04, 8000),
    instrument("usual", "tls1.3/x25519/p256", 1.025, 6000),
    instrument("heavy", "tls1.2/rsa/rsa3072/mutual", 1.01, 3000),
    engine("rsa2048-mutual", "wtls/rsa/rsa2048/mutual"),
    engine("233k-mutual", "wtls/ecdh_ecdsa/233k/mutual"),
    engine("160p-server", "wtls/ecdh_ecdsa/160p/server"),
]
