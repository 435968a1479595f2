"""A full profile of the machine that this runs on: primitives, its stacks' own work, a TCP connection."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from shakedown import native
from shakedown.native.scenario import HandshakeId, MeasureOptions
from shakedown.prediction.other_openssl import OtherOpenssl, adjusted
from shakedown.prediction.processor_speed import Speed, Timed
from shakedown.profiles.costs import Triple
from shakedown.profiles.device import DEFAULT_SPREAD
from shakedown.profiles.importers.cooling import total_us
from shakedown.profiles.importers.joined import joined
from shakedown.profiles.importers.measured import REJECTION_LOOPS, as_primitives, summarise
from shakedown.profiles.profile_text import About, profile_toml
from shakedown.schema.base import builtins
from shakedown.schema.primitives import Timing

ROUNDS = 5
"""Rounds in which every suite is measured, in turn with all others, so that a busy minute affects all."""
REPEAT = 20
MAX_ROUND_FACTOR = 3
"""Maximum number of rounds, as a multiple, if the processor is often below full speed."""
PRIMITIVE_ROUNDS = 3
MIN_FULL_SPEED_SHARE = 0.95
ML_DSA_REPEAT_FACTOR = 20
"""Multiple of the repetitions for suites of ML-DSA: signing is a rejection loop."""

OTHER_SPREAD = 1.15
"""Uncertainty (×/÷) of predictions with another OpenSSL's figures, set by measurements of nginx: 13 of 15
cases lay within the resulting range (docs/validation/capacity-check.md).
"""


def measure_suites(
    names: Sequence[str],
    *,
    rounds: int = ROUNDS,
    repeat: int = REPEAT,
    minutes: float | None = None,
    speed: Speed | None = None,
    progress: Callable[[int, int, str], None] = lambda done, total, name: None,
    on_round: Callable[[list[dict[str, Any]]], None] = lambda measured: None,
) -> list[dict[str, Any]]:
    """Measure suites in turn, several rounds, and return each suite's median round at full speed.

    A suite without a round at full speed is measured again, up to `MAX_ROUND_FACTOR` times as often.

    Args:
        names: suites; one that cannot run is skipped.
        repeat: handshakes of each in a round.
        minutes: begin no round that would end later, judged by the longest so far; the first always runs.
        speed: collects the loop's times.
        on_round: called after each round with what is measured so far.
    """
    tickets = native.profile_suites()
    speed = speed or Speed.warmed_up()
    found: dict[str, list[Timed[dict[str, Any]]]] = {name: [] for name in names}
    begun, longest_s = perf_counter(), 0.0
    for number in range(MAX_ROUND_FACTOR * rounds):
        left = [name for name in found if number < rounds or not speed.has(1, found[name])]
        round_begun = perf_counter()
        late = minutes is not None and round_begun - begun + longest_s > 60.0 * minutes
        if not left or (number and late):
            break
        for index, name in enumerate(left):
            progress(min(number, rounds - 1) * len(names) + index, rounds * len(names), name)
            often = ML_DSA_REPEAT_FACTOR * repeat if "mldsa" in name else repeat
            run = partial(
                native.measure,
                HandshakeId(suite=name),
                MeasureOptions(repeat=often, tickets=tickets.get(name) or None),
            )
            try:
                timed = speed.flanked(run)
            except Exception as error:
                if not native.is_failure(error):
                    raise
                del found[name]
                continue
            found[name].append(Timed(builtins(timed.found), timed.loop_s))
        longest_s = max(longest_s, perf_counter() - round_begun)
        on_round(_middle_ones(found, speed, provisional=True))
    return _middle_ones(found, speed)


def _middle_ones(
    found: Mapping[str, Sequence[Timed[dict[str, Any]]]], speed: Speed, *, provisional: bool = False
) -> list[dict[str, Any]]:
    """The median round at full speed of each suite."""
    chosen = []
    for rounds in filter(None, found.values()):
        counted = sorted(speed.counted(rounds, provisional=provisional), key=_time_us)
        chosen.append(counted[(len(counted) - 1) // 2])
    return chosen


def measure_primitives(
    seconds: float,
    *,
    speed: Speed | None = None,
    progress: Callable[[int, int, str], None] = lambda done, total, name: None,
) -> list[Timing]:
    """Time primitives in rounds, each for a part of the seconds, and return each primitive's median time at
    full speed. Rounds are added until the share `MIN_FULL_SPEED_SHARE` of the primitives has such a time.
    """
    speed = speed or Speed.warmed_up()
    found: dict[Triple, list[Timed[Timing]]] = {}
    for number in range(MAX_ROUND_FACTOR * PRIMITIVE_ROUNDS):
        full = sum(speed.has(1, rounds) for rounds in found.values())
        if number >= PRIMITIVE_ROUNDS and full >= MIN_FULL_SPEED_SHARE * len(found):
            break
        loops_s: dict[str, list[float]] = {}
        before_s = speed.sample()

        def advance(done: int, total: int, name: str, at: int = number) -> None:
            """Called before the work on a key, group or algorithm, and several times during it."""
            nonlocal before_s
            progress(min(at, PRIMITIVE_ROUNDS - 1) * total + done, PRIMITIVE_ROUNDS * total, name)
            now_s = speed.sample()
            loops_s.setdefault(name.split()[-1], [before_s]).append(now_s)  # noqa: B023 - called in this round only
            before_s = now_s

        for one in native.primitives(seconds=seconds / PRIMITIVE_ROUNDS, progress=advance):
            # Primitives are timed by parameters: all operations with a curve's keys together.
            loops = loops_s.get(one.parameters or one.algorithm) or [before_s]
            key = (one.operation, one.algorithm, one.parameters)
            found.setdefault(key, []).append(Timed(one, max(loops)))
    middle = []
    for rounds in found.values():
        counted = sorted(speed.counted(rounds), key=lambda one: one.us.median)
        middle.append(counted[(len(counted) - 1) // 2])
    return middle


def _time_us(entry: dict[str, Any]) -> float:
    """Both sides' time without rejection loops, whose duration is random."""
    varying_us = sum(
        float(one["us"])
        for one in entry["operations"]
        if (one["operation"], one["algorithm"]) in REJECTION_LOOPS
    )
    return total_us(entry) - varying_us


def profile_of(
    name: str,
    timed: Sequence[Timing],
    measured: Sequence[dict[str, Any]],
    connection: dict[str, float] | None,
    *,
    other: OtherOpenssl | None = None,
    spread: float = 1.0,
) -> str:
    """The profile of this machine, as TOML; primitives are those timed in measured handshakes, if any.

    With `other`, it is that of another OpenSSL on this machine. `spread` is the factor by which
    figures may be off because the processor was slower than at full speed while they were measured.
    """
    machine = native.machine()
    alone = as_primitives(builtins(timed))
    found = summarise(measured, alone)
    primitives = joined(alone, found.primitives)
    overhead = found.overhead
    architecture = machine.architecture
    library = f"OpenSSL {native.build().openssl.removeprefix('OpenSSL ').split(' ')[0]}"
    build = f"vendored, {machine.build_profile} build, {architecture}"
    source = [
        "shakedown devices measure: medians of primitives inside handshakes and apart, what is left of every "
        "kind of message, a served connection over loopback"
    ]
    stack = found.stack or library
    if other is not None:
        primitives, overhead = adjusted(primitives, overhead, other)
        factors = ", ".join(
            f"{kind} {side} {ratio:.2f}" for (kind, side), ratio in sorted(other.work.items())
        )
        source.append(
            f"public-key operations: openssl speed and libcrypto of {other.version}; other work: that of "
            f"{library}, times the factor that handshakes in memory through its libssl tell: {factors}"
        )
        library = stack = other.version
        build = f"as installed, {architecture}"
    about = About(
        name=name,
        title=f"This machine: {machine.cpu}",
        chip=machine.cpu,
        clock_hz=float(machine.clock_hz or 1e9),
        library=library,
        build=build,
        date=datetime.now(tz=UTC).date().isoformat(),
        source=tuple(source),
        spread=max(max(OTHER_SPREAD, other.unsteady) if other else DEFAULT_SPREAD, spread),
        core=_core(architecture),
        implementation={
            "curves": "assembler",
            "integers": "assembler",
            "lattices": "c",
            "symmetric": "instructions",
        },
    )
    return profile_toml(about, primitives, overhead, connection, stack=stack, cooling=found.cooling)


def _core(architecture: str) -> dict[str, str | int]:
    flags = _cpu_flags()
    if architecture in ("x86_64", "amd64"):
        if "avx512ifma" in flags:
            return {"word_bits": 64, "multiplier": "52x52=104", "vector": "avx512-ifma"}
        vector = "avx512" if "avx512f" in flags else "avx2" if "avx2" in flags else "none"
        return {"word_bits": 64, "multiplier": "64x64=128", "vector": vector}
    if architecture in ("aarch64", "arm64"):
        return {"word_bits": 64, "multiplier": "64x64=128", "vector": "neon"}
    if architecture.startswith("arm"):
        return {"word_bits": 32, "multiplier": "32x32=64", "vector": "neon" if "neon" in flags else "none"}
    return {"word_bits": 64 if "64" in architecture else 32}


def _cpu_flags() -> set[str]:
    try:
        with Path("/proc/cpuinfo").open(encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.lower().startswith(("flags", "features")):
                    return set(line.partition(":")[2].split())
    except OSError:
        pass
    return set()
