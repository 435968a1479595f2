"""`predict` compared with `simulate`: a grid without failures, and random scenarios that must agree.

    python -m tools.network_check [--grid] [--random N] [--seed N] [--clients N]

The grid is nine suites over 24 bearers at five losses (1,080 predictions). Random scenarios have a random
suite, device, bearer, loss and state of the radio; each is predicted, and simulated with clients that arrive
one after another. Mean, median, 95th and 99th percentile of ready and done agree if they differ by at most
3 % beyond the sampling error: five standard errors of the mean, or of the percentile's share, of both.
The exit status is 1 if one does not agree, or a prediction fails without a reason.
"""

from __future__ import annotations

import random
import sys
import time
from dataclasses import dataclass
from itertools import product

import shakedown
from shakedown.errors import InputError
from shakedown.models.distribution import Distribution
from shakedown.prediction.scenario import scenario
from shakedown.profiles import bearer_names, load_bearer
from shakedown.profiles.registry import changed_bearer
from shakedown.schema.simulated import FailedSimulation
from tools import pages

SUITES = (
    "tls1.2/psk",
    "tls1.2/rsa/rsa2048/server",
    "tls1.3/x25519/p256/server",
    "tls1.3/x25519/p256/mutual",
    "tls1.3/x25519mlkem768/p256/server",
    "tls1.3/x25519mlkem768/mldsa65/server",
    "tls1.3/x25519mlkem768/mldsa65/mutual",
    "wtls/ecdh_ecdsa/160p/server",
    "wtls/rsa/rsa1024/server",
)
LOSSES = (0.0, 0.005, 0.02, 0.05, 0.1)
DEVICES = ("phone", "cortex-m4", "server")
RELATIVE_TOLERANCE, MAX_DEVIATIONS, PERCENTILE_CLIENTS = 0.03, 5.0, 1000
"""The rule, and the minimum of clients for percentiles of a replay."""


@dataclass(frozen=True)
class Case:
    """One scenario."""

    suite: str
    device: str
    bearer: str
    loss: float | None
    from_idle: bool = False

    @property
    def path(self) -> str:
        """Its bearer, with its loss instead of the profile's."""
        return changed_bearer(self.bearer, loss=None if self.loss is None else f"{self.loss:.3%}")


def bearers() -> list[str]:
    """The shipped bearers that are fast enough for TCP: 1,000 bit/s."""
    return [name for name in bearer_names() if load_bearer(name).up_bits_per_s >= 1000.0]


def grid() -> int:
    """Predict every point; return the number of failures."""
    names = bearers()[:24]
    failed, slowest_s = 0, 0.0
    for suite, name, loss in product(SUITES, names, LOSSES):
        began_s = time.perf_counter()
        try:
            shakedown.predict(suite, device="cortex-m4", bearer=Case(suite, "", name, loss).path)
        except InputError as error:
            print(f"refused: {suite} over {name}, loss {loss}: {error}")
        except Exception as error:  # the grid exists to find these
            failed += 1
            print(f"FAILED: {suite} over {name}, loss {loss}: {type(error).__name__}: {error}")
        slowest_s = max(slowest_s, time.perf_counter() - began_s)
    count = len(SUITES) * len(names) * len(LOSSES)
    print(f"grid: {count:,} predictions, {failed} failed, {slowest_s:.2f} s the slowest")
    return failed


def drawn(count: int, seed: int) -> list[Case]:
    """Random scenarios."""
    choice = random.Random(seed)
    names = bearers()
    return [
        Case(
            choice.choice(SUITES),
            choice.choice(DEVICES),
            choice.choice(names),
            choice.choice((None, None, *LOSSES)),
            choice.random() < 0.2,
        )
        for _ in range(count)
    ]


def disagreements(case: Case, clients: int) -> list[str]:
    """The figures of `predict` and `simulate` that differ by more than the rule allows."""
    estimate = scenario(case.suite, case.device, "server", case.path, from_idle=case.from_idle)
    unloaded: tuple[Distribution, Distribution] = estimate.unloaded()
    gap_s = 3.0 * unloaded[1].p99 + 200.0
    (fleet,) = shakedown.simulate(
        case.suite,
        shakedown.Fleet(
            arrivals=f"deterministic:{1.0 / gap_s}/s",
            clients=clients,
            replications=1,
            from_idle=case.from_idle,
        ),
        device=case.device,
        bearer=case.path,
    )
    if isinstance(fleet, FailedSimulation):
        raise InputError(fleet.error)
    wrong, sampling = [], 1.0 / clients + 1.0 / PERCENTILE_CLIENTS
    for what, ours, theirs in zip(("ready", "done"), unloaded, (fleet.ready_s, fleet.done_s), strict=True):
        if theirs.mean is None:
            continue
        error_s = MAX_DEVIATIONS * ours.sd * sampling**0.5
        if abs(ours.mean - theirs.mean) > RELATIVE_TOLERANCE * theirs.mean + error_s:
            wrong.append(f"{what} mean: {ours.mean:.4g} and {theirs.mean:.4g} s")
        for share, name in ((0.5, "p50"), (0.95, "p95"), (0.99, "p99")):
            other_s = getattr(theirs, name)
            chance = MAX_DEVIATIONS * (share * (1.0 - share) * sampling) ** 0.5
            low_s, high_s = ours.quantile(max(0.0, share - chance)), ours.quantile(min(1.0, share + chance))
            if not (1.0 - RELATIVE_TOLERANCE) * low_s <= other_s <= (1.0 + RELATIVE_TOLERANCE) * high_s:
                wrong.append(f"{what} {name}: {ours.quantile(share):.4g} and {other_s:.4g} s")
    return wrong


def agree(count: int, seed: int, clients: int) -> int:
    """Compare random scenarios; return the number that disagree."""
    bad = refused = 0
    for case in drawn(count, seed):
        try:
            wrong = disagreements(case, clients)
        except InputError:
            refused += 1
            continue
        bad += bool(wrong)
        for one in wrong:
            print(f"{case}: {one}")
    print(f"random: {count} scenarios, {refused} refused (no room, or nothing gets through), {bad} disagree")
    return bad


def main() -> int:
    """Run the selected checks, both by default; return the exit status."""
    parser = pages.options("network_check", __doc__)
    parser.add_argument("--grid", action="store_true")
    parser.add_argument("--random", type=int, default=0, metavar="N")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--clients", type=int, default=5000)
    given = parser.parse_args()
    both = not given.grid and not given.random
    wrong = grid() if given.grid or both else 0
    wrong += agree(given.random or 200, given.seed, given.clients) if given.random or both else 0
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
