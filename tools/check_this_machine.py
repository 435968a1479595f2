"""Predictions for this machine from a profile without the predicted handshakes, compared with measurements.

    .venv/bin/python -m tools.check_this_machine                measures, then writes the page's section
    .venv/bin/python -m tools.check_this_machine --minutes 8    the same, with no round that would end later
    .venv/bin/python -m tools.check_this_machine --json         prints rows and leaves the page

`CHECKED` names 40 suites of all protocols. The profile (primitives timed separately and inside handshakes,
the stacks' work by kind of message) is made from other suites only, measured in turn with these. Client and
server of each checked suite are then estimated with it, from the recorded trace, and compared with the
medians of the suite's median round at the processor's full speed, or with means if signing is a rejection
loop.
"""

from __future__ import annotations

import json
import statistics
import sys
import tomllib
from dataclasses import asdict, dataclass
from typing import Any

from shakedown import native
from shakedown.prediction.side_cost import side_cost
from shakedown.prediction.this_machine import measure_suites, profile_of
from shakedown.prediction.trace import parse_trace
from shakedown.profiles.device import parse_device
from shakedown.profiles.importers.measured import REJECTION_LOOPS
from shakedown.schema.base import SIDES
from shakedown.schema.primitives import Timing
from tools import pages

PAGE = pages.VALIDATION / "prediction-check.md"

WORST_TARGET = 0.15
ROUNDS, REPEAT = 20, 5
"""Rounds, and handshakes of each suite in one: of many short rounds some are not slowed by other programs."""

CHECKED = (
    *(f"tls1.3/{rest}" for rest in (
        "x25519/p256/server", "x25519/rsa2048/mutual", "p256/p384/server", "x25519mlkem768/p256/server",
        "x25519/mldsa65/server", "psk_dhe+x25519", "psk", "x25519/rsa2048/server/resumed",
        "x25519/ed25519/server", "p384/p256/requested",
    )),
    *(f"tls1.2/{rest}" for rest in (
        "rsa/rsa2048/server", "rsa/rsa3072/mutual", "dhe_rsa+ffdhe2048/rsa2048/server",
        "ecdhe_rsa+x25519/rsa2048/server", "ecdhe_ecdsa+p256/p256/mutual", "psk", "dhe_psk+ffdhe2048",
        "ecdhe_psk+p256", "rsa/rsa2048/server/resumed", "ecdhe_ecdsa+x25519/p256/server/ticket",
        "rsa_psk/rsa2048",
    )),
    *(f"tls1.1/{rest}" for rest in (
        "rsa/rsa2048/server", "ecdhe_rsa+p256/rsa2048/mutual", "ecdhe_ecdsa+p256/p256/server", "psk",
    )),
    *(f"tls1.0/{rest}" for rest in (
        "rsa/rsa1024/server", "dhe_rsa+dh1024/rsa1024/server", "dhe_dss+dh1024/dsa1024/mutual",
        "rsa/rsa2048/server/resumed", "dh_anon+dh1024",
    )),
    *(f"ssl3/{rest}" for rest in (
        "rsa/rsa2048/server", "dhe_rsa+ffdhe2048/rsa2048/mutual", "rsa/rsa2048/server/resumed",
    )),
    *(f"wtls/{rest}" for rest in (
        "rsa/rsa1024/mutual", "ecdh_ecdsa/163k/mutual", "ecdh_ecdsa/233k/requested", "rsa/rsa2048/server",
        "ecdh_ecdsa/163k/server/resumed", "shared_secret",
        "rsa/rsa1024@rsa3072/requested",
    )),
)  # fmt: skip


@dataclass(frozen=True)
class Check:
    """One side of a suite: predicted and measured seconds."""

    suite: str
    side: str
    predicted_s: float
    measured_s: float
    basis: str

    @property
    def error(self) -> float:
        """The ratio of predicted and measured time, minus 1."""
        return self.predicted_s / self.measured_s - 1.0


def check(timed: list[Timing], fitted: list[dict[str, Any]], checked: list[dict[str, Any]]) -> list[Check]:
    """Estimate the checked suites with a profile from the fitted ones only."""
    if {one["suite"] for one in fitted} & {one["suite"] for one in checked}:
        raise ValueError("a checked suite is among the fitted ones")
    text = profile_of("this-machine", timed, fitted, None)
    device = parse_device(tomllib.loads(text), "this machine")
    found = []
    for entry in checked:
        trace = parse_trace(entry, entry["suite"])
        for side in SIDES:
            cost = side_cost(trace, side, device)
            if cost.without_cost:
                print(f"{entry['suite']}, {side}: no figure for {cost.without_cost}", file=sys.stderr)
                continue
            times = entry["handshake"][f"{side}_us"]
            # If almost all repetitions were preempted, the median contains other programs' time.
            which = "min" if entry["preempted"] > entry["repeat"] else "median"
            mine = [one for one in entry["operations"] if one["side"] == side]
            if any((one["operation"], one["algorithm"]) in REJECTION_LOOPS for one in mine):
                which = "mean"  # the prediction is also a mean
            measured_s = float(times[which]) * 1e-6
            found.append(Check(entry["suite"], side, cost.total.mean, measured_s, cost.basis))
    return found


def measured(minutes: float | None, rounds: int, seconds: float) -> list[Check]:
    """Measure fitted and checked suites in turn, and compare."""
    wanted = [native.runnable(name) for name in CHECKED]
    others = [name for name in native.profile_suites() if name not in set(wanted)]
    timed = native.primitives(seconds=seconds)

    def say(done: int, total: int, name: str) -> None:
        if done % len(others) == 0:
            print(f"{done}/{total} {name}", file=sys.stderr)

    together = measure_suites([*wanted, *others], rounds=rounds, repeat=REPEAT, minutes=minutes, progress=say)
    chosen = set(wanted)
    return check(
        timed,
        [one for one in together if one["suite"] not in chosen],
        [one for one in together if one["suite"] in chosen],
    )


def section(checks: list[Check]) -> str:
    """The page's section."""
    errors = [abs(one.error) for one in checks]
    machine, build = native.machine(), native.build()
    suites = {one.suite for one in checks}
    beyond = sum(error > WORST_TARGET for error in errors)
    rows = []
    for one in checks:
        times = (f"{time_s * 1e6:.0f} µs" for time_s in (one.measured_s, one.predicted_s))
        rows.append((one.suite, one.side, *times, f"{100 * one.error:+.1f} %".replace("-", "−")))
    return (
        f"Measured on {machine.cpu}, OpenSSL {build.openssl}: {len(checks)} times of {len(suites)} suites, "
        f"to none of which the profile was fitted. Median error {statistics.median(errors):.1%}, "
        f"worst {max(errors):.1%}, {beyond} beyond {WORST_TARGET:.0%}.\n\n"
        + pages.table("suite | side | >measured | >predicted | >error", rows)
    )


def main() -> None:
    """Measure, compare, and write or print."""
    parser = pages.options("check_this_machine", __doc__)
    parser.add_argument("--minutes", type=float, help="begin no round that would end later")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="how often each suite is measured")
    parser.add_argument("--seconds", type=float, default=0.3, help="longest time for each primitive")
    parser.add_argument("--json", action="store_true", help="print rows and leave the page as it is")
    chosen = parser.parse_args()
    checks = measured(chosen.minutes, chosen.rounds, chosen.seconds)
    if chosen.json:
        print(json.dumps([{**asdict(one), "error": one.error} for one in checks], indent=1))
    else:
        pages.write(PAGE, "this machine: made by tools/check_this_machine.py", section(checks))
    errors = sorted((abs(one.error), one.suite, one.side) for one in checks)
    print(f"median {statistics.median(error for error, _, _ in errors):.1%}; worst:", file=sys.stderr)
    for error, suite, side in errors[-5:]:
        print(f"  {error:.1%} {suite} {side}", file=sys.stderr)


if __name__ == "__main__":
    main()
