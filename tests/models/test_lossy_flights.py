"""Flights of many segments under loss: mean, median and 99th percentile against the simulator.

The simulator's TCP was written apart from the model, from the kernel's behaviour. Each end's clock has a
phase of its own, and every packet is lost by itself, in both directions alike. At 20 % the two differ in what
a sender believes of repairs that were acknowledged selectively; at a few per cent the 95th percentile lies
among handshakes whose SYN-ACK was repeated, after which they start with different windows. Both are held
against the other simulation (``test_network``).

The rule for percentiles: times are made of steps, of round trips and of timeouts, and where one lies at a
percentile either side of it will do. The simulated percentile is within 5 % of what the model has between the
shares so much below and above it: a tenth of what lies beyond, and at most 0.01.
"""

from __future__ import annotations

import pytest

from models.test_network import FINISHED, HELLO, fixed_path
from shakedown import core
from shakedown.models.network import Exchange, Step, Tcp, exchange

ONE_WAY_S, RATE_BITS_PER_S = 0.098, 1e9
CLIENTS = 40_000
SHARES = {"p50": 0.5, "p99": 0.99}


def flight_bytes(segments: int) -> int:
    """A server's flight that fills so many segments but for the last."""
    return 1448 * segments - 100


def simulated(segments: int, loss: float) -> dict[str, dict[str, float]]:
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
                    "traversal_s": ONE_WAY_S,
                    "loss": loss,
                },
            }
        ],
        "clients": CLIENTS,
        "arrivals": {"kind": "storm", "within_s": 1e5},
        "server": {"workers": 1},
        "seed": 1,
    }
    report = core.simulate(spec)["report"]
    return {"ready": report["handshake_s"], "done": report["done_s"]}


def modelled(segments: int, loss: float) -> Exchange:
    """The same by the model."""
    steps = [Step("client", HELLO), Step("server", flight_bytes(segments)), Step("client", FINISHED)]
    path = fixed_path(RATE_BITS_PER_S, RATE_BITS_PER_S, ONE_WAY_S, loss=loss)
    return exchange(steps, path, Tcp(write_bytes=0))


@pytest.mark.parametrize("loss", [0.01, 0.05, 0.1])
@pytest.mark.parametrize("segments", [1, 4, 9, 12])
def test_mean_median_and_tail_are_the_simulators(segments, loss):
    theirs, times = simulated(segments, loss), modelled(segments, loss)
    wrong = []
    for name, ours in (("ready", times.ready), ("done", times.done)):
        found = theirs[name]
        if abs(ours.mean / found["mean"] - 1.0) > 0.05:
            wrong.append(f"{name} mean {ours.mean:.3f} s, simulated {found['mean']:.3f}")
        for percentile, share in SHARES.items():
            slack = min(0.01, 0.1 * (1.0 - share))
            low, high = ours.quantile(share - slack), ours.quantile(share + slack)
            if not 0.95 * low <= found[percentile] <= 1.05 * high:
                wrong.append(
                    f"{name} {percentile} {low:.3f} to {high:.3f} s, simulated {found[percentile]:.3f}"
                )
    assert not wrong


@pytest.mark.parametrize(("loss", "within"), [(0.01, 0.05), (0.05, 0.1), (0.1, 0.15)])
def test_thirty_segments_take_two_windows(loss, within):
    """What the model knows to be short of: a repair of more than a window is one repair to it."""
    theirs, times = simulated(30, loss), modelled(30, loss)
    assert times.ready.mean == pytest.approx(theirs["ready"]["mean"], rel=within)
    assert times.done.mean == pytest.approx(theirs["done"]["mean"], rel=within)
