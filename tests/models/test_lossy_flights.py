"""Flights of many segments under loss: mean and percentiles against the simulator.

The simulator's TCP was written apart from the model, from the kernel's behaviour. Each end's clock has a
phase of its own, and every packet is lost by itself, in both directions alike.

The rule for percentiles: times are made of steps, of round trips and of timeouts, and where a percentile lies
on one either side of it will do. The model's percentile is within 5 % of what the simulator has between half
a point below and half a point above; at the 99th, a tenth of a point.
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Any

import pytest

from models.test_network import FINISHED, HELLO, fixed_path
from shakedown import native
from shakedown.models.distribution import Distribution
from shakedown.models.network import Exchange, Step, Tcp, exchange

RATE_BITS_PER_S = 1e9
WITHIN = 0.05
BANDS = {0.5: 0.005, 0.9: 0.005, 0.95: 0.005, 0.99: 0.001}


def flight_bytes(segments: int) -> int:
    """A server's flight that fills so many segments but for the last."""
    return 1448 * segments - 100


@dataclass(frozen=True)
class Times:
    """Simulated times: their mean, the middles of their histogram's buckets, and the shares up to each."""

    mean_s: float
    values_s: list[float]
    shares: list[float]

    @staticmethod
    def of(histogram: dict[str, Any]) -> Times:
        """Of a histogram as an outcome has it."""
        assert histogram["layout"] == "hdr-ns-1024-48"
        counts = [count for _, count in histogram["counts"]]
        total = sum(counts)
        values_s = []
        for bucket, _ in histogram["counts"]:
            shift = max(0, bucket // 1024 - 1)
            values_s.append((((bucket - 1024 * shift) << shift) + (1 << shift) / 2) / 1e9)
        shares = [count / total for count in accumulate(counts)]
        return Times(int(histogram["sum"]) / total / 1e9, values_s, shares)

    def quantile(self, share: float) -> float:
        """The value that a share of all does not exceed."""
        return self.values_s[bisect.bisect_left(self.shares, share)]


@lru_cache
def simulated(segments: int, loss: float, round_trip_s: float, clients: int) -> dict[str, Times]:
    """When so many clients are ready and done, each alone, nothing computed."""
    nothing = {"kind": "constant", "s": 0.0}
    messages = [("client", HELLO), ("server", flight_bytes(segments)), ("client", FINISHED)]
    spec = {
        "classes": [
            {
                "handshake": {
                    "name": "three flights",
                    "transport": "stream",
                    "write_bytes": None,
                    "messages": [
                        {
                            "from": sender,
                            "name": f"flight {number}",
                            "bytes": size,
                            "flight": number,
                            "generate": nothing,
                            "process": nothing,
                        }
                        for number, (sender, size) in enumerate(messages, start=1)
                    ],
                },
                "bearer": {
                    "up_bits_per_s": RATE_BITS_PER_S,
                    "down_bits_per_s": RATE_BITS_PER_S,
                    "traversal_s": round_trip_s / 2.0,
                    "loss": loss,
                },
            }
        ],
        "clients": clients,
        "arrivals": {"kind": "storm", "within_s": 1e5},
        "server": {"workers": 1},
        "seed": 1,
    }
    outcome = native.simulate(spec)["outcome"]
    return {name: Times.of(outcome[name]) for name in ("ready", "done")}


@lru_cache
def modelled(segments: int, loss: float, round_trip_s: float) -> Exchange:
    """The same by the model."""
    steps = [Step("client", HELLO), Step("server", flight_bytes(segments)), Step("client", FINISHED)]
    path = fixed_path(RATE_BITS_PER_S, RATE_BITS_PER_S, round_trip_s / 2.0, loss=loss)
    return exchange(steps, path, Tcp(write_bytes=0))


def differences(
    segments: int, loss: float, round_trip_s: float, clients: int, bands: dict[float, float]
) -> list[str]:
    """What the model has otherwise than the simulator, by the rule."""
    theirs, times = simulated(segments, loss, round_trip_s, clients), modelled(segments, loss, round_trip_s)
    both: list[tuple[str, Distribution, Times]] = [
        ("ready", times.ready, theirs["ready"]),
        ("done", times.done, theirs["done"]),
    ]
    wrong = []
    for name, ours, found in both:
        if abs(ours.mean / found.mean_s - 1.0) > WITHIN:
            wrong.append(f"{name} mean {ours.mean:.3f} s, simulated {found.mean_s:.3f}")
        for share, band in bands.items():
            value = ours.quantile(share)
            low, high = found.quantile(share - band), found.quantile(share + band)
            if not (1.0 - WITHIN) * low <= value <= (1.0 + WITHIN) * high:
                wrong.append(f"{name} {share:g}: {value:.3f} s, simulated {low:.3f} to {high:.3f}")
    return wrong


@pytest.mark.parametrize("loss", [0.01, 0.05, 0.1])
@pytest.mark.parametrize("segments", [1, 4, 9, 12, 30])
def test_mean_and_percentiles_are_the_simulators(segments, loss):
    assert not differences(segments, loss, 0.196, 100_000, BANDS)


@pytest.mark.parametrize("segments", [1, 2, 4, 9, 12, 20, 30])
def test_percentiles_at_a_fifth_lost_are_the_simulators(segments):
    assert not differences(segments, 0.2, 0.196, 100_000, BANDS)


@pytest.mark.parametrize(("round_trip_s", "loss"), [(0.031, 0.1), (0.031, 0.2), (0.079, 0.2), (0.6, 0.2)])
@pytest.mark.parametrize("segments", [4, 12])
def test_percentiles_over_shorter_and_longer_paths_are_the_simulators(segments, round_trip_s, loss):
    assert not differences(segments, loss, round_trip_s, 100_000, BANDS)
