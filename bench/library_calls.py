"""Go's public-key operations as multiples of OpenSSL's X25519: the factors of `--server-software go`.

`python -m bench.library_calls` times each operation of the profile (library_calls.go) and `openssl speed` of
X25519, alternately on one processor beside a loop, and prints the multiple with the middle half of its
rounds. Rounds count by the rule of `shakedown.prediction.processor_speed`; the slower of both loops decides.
No server is measured: the factors are not fitted to what the benchmark "capacity" predicts with them.

`--out FILE` writes the profile with the multiples of this machine.
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from bench.harness import UnavailableError, need
from shakedown import profiles
from shakedown.native.processors import placed, processors
from shakedown.prediction.cpu_contention import shared
from shakedown.prediction.other_openssl import openssl_speed
from shakedown.prediction.processor_speed import Speed, Timed
from shakedown.profiles import load_software
from shakedown.profiles.software import UNIT, ServerSoftware

SOURCE = Path(__file__).with_suffix(".go")
PROFILE = Path(profiles.__file__).parent / "server_software" / "go.toml"
ROUNDS, MAX_ROUNDS = 5, 15
"""Rounds that count, and those that are measured at most."""
SPREAD = 1.1
"""Range of a multiple that was measured on the machine at hand, as a profile's own figures have it."""


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


def measured(software: ServerSoftware) -> dict[str, list[float]]:
    """Multiples of all that a profile has of its library. Raises `UnavailableError`."""
    for tool in ("go", "openssl"):
        need(tool)
    if software.library is None:
        raise UnavailableError(f"the profile of {software.name} has no library")
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "calls"
        subprocess.run(["go", "build", "-o", str(program), str(SOURCE)], check=True)
        return multiples(program, list(software.library.primitives))


def of_this_machine(profile: str, found: Mapping[str, Sequence[float]]) -> str:
    """A profile's text with the multiples of this machine."""
    for name, some in found.items():
        line = f'"{name}" = [{statistics.median(some):.4g}, {SPREAD:g}]'
        profile, count = re.subn(rf'^"{name}" = .*$', line, profile, flags=re.MULTILINE)
        assert count == 1, name
    return profile


def table(software: ServerSoftware, found: Mapping[str, Sequence[float]]) -> str:
    """Of a page: multiples of this machine next to those of the profile."""
    assert software.library is not None
    lines = [
        "| operation | multiple | middle half | n | profile | range |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name, some in found.items():
        low, middle, high = statistics.quantiles(some, n=4)
        times, spread = software.library.primitives[name]
        lines.append(
            f"| {name} | {middle:.3g} | {low:.3g} – {high:.3g} | {len(some)} | {times:g} | ×/÷ {spread:g} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Measure, print a table of a page, and write a profile where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, help="write the profile of this machine to this file")
    given = parser.parse_args()
    software = load_software("go")
    found = measured(software)
    sys.stdout.write(f"{table(software, found)}\n")
    if given.out:
        text = of_this_machine(PROFILE.read_text(encoding="utf-8"), found)
        given.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
