"""Go's public-key operations as multiples of OpenSSL's X25519: the factors of `--server-software go`.

`python -m bench.library_calls` times each operation of the profile (library_calls.go) and `openssl speed` of
X25519, alternately on one processor beside a loop, and prints the multiple with the middle half of its
rounds. Rounds count by the rule of `shakedown.prediction.processor_speed`; the slower of both loops decides.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from bench.harness import UnavailableError, need
from shakedown.native.processors import placed, processors
from shakedown.prediction.cpu_contention import shared
from shakedown.prediction.other_openssl import openssl_speed
from shakedown.prediction.processor_speed import Speed, Timed
from shakedown.profiles import load_software
from shakedown.profiles.software import UNIT

SOURCE = Path(__file__).with_suffix(".go")
ROUNDS, MAX_ROUNDS = 5, 15
"""Rounds that count, and those that are measured at most."""


def called(program: Path, operation: str) -> float:
    """Microseconds of Go's."""
    done = subprocess.run([str(program), operation], capture_output=True, text=True, check=False)
    if done.returncode:
        raise UnavailableError(f"{operation}: {done.stderr.strip()[:200]}")
    return float(done.stdout)


def multiples(program: Path, operations: list[str]) -> dict[str, list[float]]:
    """Of each operation the multiples of rounds that count."""
    there = processors()[:1]
    speed = Speed()
    rounds: dict[str, list[Timed[float]]] = {one: [] for one in operations}
    with placed(there), shared(there[0], 1) as meter:
        for _ in range(MAX_ROUNDS):
            for operation, found in rounds.items():
                if speed.has(ROUNDS, found):
                    continue
                ours = meter.timed(partial(called, program, operation), speed)
                unit = meter.timed(partial(openssl_speed, "openssl", "ecdhx25519"), speed)
                found.append(Timed(ours.found / unit.found[UNIT], max(ours.loop_s, unit.loop_s)))
    return {one: speed.counted(found, ROUNDS) for one, found in rounds.items()}


def main() -> None:
    """Measure, and print a table of a page."""
    for tool in ("go", "openssl"):
        need(tool)
    library = load_software("go").library
    if library is None:
        raise UnavailableError("the profile of go has no library")
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "calls"
        subprocess.run(["go", "build", "-o", str(program), str(SOURCE)], check=True)
        found = multiples(program, list(library.primitives))
    head = "| operation | multiple | middle half | n | profile | range |"
    sys.stdout.write(f"{head}\n| --- | ---: | ---: | ---: | ---: | ---: |\n")
    for operation, some in found.items():
        low, middle, high = statistics.quantiles(some, n=4)
        times, spread = library.primitives[operation]
        sys.stdout.write(
            f"| {operation} | {middle:.3g} | {low:.3g} – {high:.3g} | {len(some)} | {times:g} "
            f"| ×/÷ {spread:g} |\n"
        )


if __name__ == "__main__":
    main()
