"""Are primitives what they cost inside a handshake? Predicts handshakes' public-key time from `primitives`.

For each suite, in turns: its primitives are timed, then its handshake is measured, on one processor. What the
handshake's public-key operations should take in sum (each operation's median, ML-DSA's signing: mean) is
compared with what they took. Prints a table; exits 1 where a suite's median ratio is off by more than the
target. Not part of the tests: it compares times.

    python bench/primitives_vs_handshake.py [--rounds 7] [--repeat 200] [SUITE…]
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys

import click

from shakedown import api, native
from shakedown.schema.primitives import Timing
from shakedown.schema.trace import Operation

SUITES = (
    "tls1.2/rsa/rsa2048/server",
    "tls1.2/rsa/rsa2048/mutual",
    "tls1.0/dhe_dss+dh1024/dsa1024/mutual",
    "tls1.2/dhe_rsa+dh2048/rsa2048/server",
    "tls1.2/dhe_psk+dh2048",
    "tls1.2/ecdhe_rsa+p256/rsa2048/mutual",
    "tls1.2/ecdhe_ecdsa+p256/p256/mutual",
    "tls1.2/ecdhe_ecdsa+sect233k1/sect233k1/server",
    "tls1.3/x25519/p256/server",
    "tls1.3/x25519/ed25519/mutual",
    "tls1.3/x25519mlkem768/mldsa65/server",
    "wtls/ecdh_ecdsa/163k/mutual",
    "wtls/rsa/rsa1024/mutual",
)
TARGET = 0.05
SYMMETRIC = ("digest", "mac", "cipher", "prf")
Triple = tuple[str, str, str]


def main() -> int:
    """Runs the comparison."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("suites", nargs="*", default=SUITES, metavar="SUITE")
    parser.add_argument("--rounds", type=int, default=7, help="how often each suite is compared")
    parser.add_argument("--repeat", type=int, default=200, help="handshakes a round")
    parser.add_argument("--seconds", type=float, default=0.5, help="longest time for each key or group")
    options = parser.parse_args()
    # One processor, so that both halves of a comparison see the same one.
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    click.echo(f"OpenSSL {native.extension().OPENSSL_VERSION}; medians over {options.rounds} rounds")
    click.echo(f"{'suite':48} {'measured':>10} {'predicted':>10} {'ratio':>7}  rounds")
    worst = 0.0
    for suite in options.suites:
        pairs = [compare(suite, options.repeat, options.seconds) for _ in range(options.rounds)]
        ratios = sorted(predicted / measured for measured, predicted in pairs)
        ratio = statistics.median(ratios)
        worst = max(worst, abs(ratio - 1.0))
        measured_us, predicted_us = (statistics.median(column) for column in zip(*pairs, strict=True))
        verdict = "" if abs(ratio - 1.0) <= TARGET else "  off"
        click.echo(
            f"{suite:48} {measured_us:8.1f}us {predicted_us:8.1f}us {ratio:7.3f}"
            f"  {ratios[0]:.3f}..{ratios[-1]:.3f}{verdict}",
        )
    click.echo(f"worst: {100 * worst:.1f} % (target {100 * TARGET:.0f} %)")
    return 0 if worst <= TARGET else 1


def compare(suite: str, repeat: int, seconds: float) -> tuple[float, float]:
    """Measured and predicted public-key time of both sides, in microseconds."""
    measured_here = api.measure(suite, repeat=repeat)
    operations = [one for one in measured_here.operations if one.operation not in SYMMETRIC]
    prices: dict[Triple, float] = {}
    for parameters in sorted({one.parameters or "" for one in operations}):
        for timed in native.primitives(filter=[parameters], seconds=seconds):
            prices[_triple(timed)] = _middle(timed, timed.us.median, timed.us.mean)
    measured = sum(_middle(one, one.us, one.mean_us) for one in operations)
    predicted = sum(prices[_triple(one)] * one.count for one in operations)
    return measured, predicted


def _triple(one: Operation | Timing) -> Triple:
    return one.operation, one.algorithm, one.parameters or ""


def _middle(one: Operation | Timing, median: float, mean: float) -> float:
    """Signing with ML-DSA is a distribution, of which only the mean adds up."""
    return mean if (one.operation, one.algorithm) == ("sign", "mldsa") else median


if __name__ == "__main__":
    sys.exit(main())
