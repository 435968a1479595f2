"""Our primitives against the system's `openssl speed`, in turns on one processor.

`openssl speed` calls a primitive in a loop of nothing else, with keys that have been used before.
`native.primitives(back_to_back=True)` loops likewise, but reads public keys afresh for each use, as
handshakes do: a verification then includes what OpenSSL prepares at the first use of a key. What
primitives cost between handshakes, with caches full of other things, is printed too. Prints a table;
exits 1 where a median ratio is off by more than the target. Not part of the tests: it compares times.

    python bench/primitives_vs_openssl_speed.py [--rounds 7] [--seconds 1]
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
from collections import defaultdict

import click

from shakedown import native

Triple = tuple[str, str, str]
ALGORITHMS: dict[str, tuple[Triple, ...]] = {
    "rsa2048": (("sign", "rsa", "rsa2048"), ("verify", "rsa", "rsa2048")),
    "ecdsap256": (("sign", "ecdsa", "p256"), ("verify", "ecdsa", "p256")),
    "ecdhp256": (("derive", "ecdh", "p256"),),
    "ecdhx25519": (("derive", "ecdh", "x25519"),),
}
FILTERS = (["rsa2048"], ["p256"], ["ecdh", "x25519"])
TARGET = 0.10


def main() -> int:
    """Runs the comparison."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=1, help="time for each figure of openssl speed")
    options = parser.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    theirs: dict[Triple, list[float]] = defaultdict(list)
    loops: dict[Triple, list[float]] = defaultdict(list)
    handshakes: dict[Triple, list[float]] = defaultdict(list)
    for _ in range(options.rounds):
        for name, triples in ALGORITHMS.items():
            for triple, figure in zip(triples, speed_us(name, options.seconds), strict=True):
                theirs[triple].append(figure)
        for target, back_to_back in ((loops, True), (handshakes, False)):
            for words in FILTERS:
                for one in native.primitives(filter=words, seconds=0.5, back_to_back=back_to_back):
                    triple = one.operation, one.algorithm, one.parameters
                    target[triple].append(one.us.median)
    version = subprocess.run(
        ["openssl", "version"], capture_output=True, text=True, check=True
    ).stdout.split()
    click.echo(f"ours: OpenSSL {native.extension().OPENSSL_VERSION}; openssl speed: OpenSSL {version[1]}")
    click.echo(
        f"{'us a call':22} {'speed':>8} {'in a loop':>10} {'ratio':>7} {'rounds':>14} {'in a handshake':>15}"
    )
    worst = 0.0
    for triple in (triple for triples in ALGORITHMS.values() for triple in triples):
        ratios = sorted(our / their for our, their in zip(loops[triple], theirs[triple], strict=True))
        ratio = statistics.median(ratios)
        worst = max(worst, abs(ratio - 1.0))
        click.echo(
            f"{triple[0] + ' ' + triple[2]:22} {statistics.median(theirs[triple]):8.2f}"
            f" {statistics.median(loops[triple]):10.2f} {ratio:7.3f} {ratios[0]:6.3f}..{ratios[-1]:5.3f}"
            f" {statistics.median(handshakes[triple]):15.2f}{'' if abs(ratio - 1) <= TARGET else '  off'}"
        )
    click.echo(f"worst: {100 * worst:.1f} % (target {100 * TARGET:.0f} %)")
    return 0 if worst <= TARGET else 1


def speed_us(algorithm: str, seconds: int) -> list[float]:
    """Time a call in microseconds of CPU time, as `openssl speed` finds it: sign and verify, or derive."""
    command = ["openssl", "speed", "-mr", "-seconds", str(seconds), algorithm]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    # "+F2:…" is RSA, "+F4:…" ECDSA, "+F5:…" ECDH: index, bits, then signatures and verifications, or
    # agreements, a second (in some versions seconds for one, of which there are less than one).
    for line in done.stdout.splitlines():
        if re.match(r"\+F[245]:", line):
            figures = [float(figure) for figure in line.split(":")[3:] if figure]
            times_us = [1e6 / figure if figure >= 1.0 else 1e6 * figure for figure in figures]
            return times_us[: len(ALGORITHMS[algorithm])]
    raise SystemExit(f"openssl speed {algorithm}: no figures; it printed: {done.stdout.strip()[-200:]}")


if __name__ == "__main__":
    sys.exit(main())
