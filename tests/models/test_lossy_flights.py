"""Flights of many segments under loss: mean and median against the simulator.

The simulator's TCP was written apart from the model, from the kernel's behaviour. Each end's clock has a
phase of its own, and every packet is lost by itself, in both directions alike. Percentiles beyond the median
are held against the other simulation (``test_network``).

The rule for the median: times are made of steps, of round trips and of timeouts, and where one lies there
either side of it will do. The simulated median is within 5 % of what the model has between the shares 0.49
and 0.51.
"""

from __future__ import annotations

import pytest

from models.test_network import FINISHED, HELLO, fixed_path
from shakedown import core
from shakedown.models.network import Exchange, Step, Tcp, exchange

ONE_WAY_S, RATE_BITS_PER_S = 0.098, 1e9
CLIENTS = 40_000


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


@pytest.mark.parametrize("loss", [0.01, 0.05, 0.1, 0.2])
@pytest.mark.parametrize("segments", [1, 4, 9, 12])
def test_mean_and_median_are_the_simulators(segments, loss):
    theirs, times = simulated(segments, loss), modelled(segments, loss)
    wrong = []
    for name, ours in (("ready", times.ready), ("done", times.done)):
        found = theirs[name]
        if abs(ours.mean / found["mean"] - 1.0) > 0.05:
            wrong.append(f"{name} mean {ours.mean:.3f} s, simulated {found['mean']:.3f}")
        low, high = ours.quantile(0.49), ours.quantile(0.51)
        if not 0.95 * low <= found["p50"] <= 1.05 * high:
            wrong.append(f"{name} median {low:.3f} to {high:.3f} s, simulated {found['p50']:.3f}")
    assert not wrong


@pytest.mark.parametrize(("loss", "within"), [(0.01, 0.05), (0.05, 0.05), (0.1, 0.05), (0.2, 0.15)])
def test_thirty_segments_take_two_windows(loss, within):
    """What the model knows to be short of: a repair of more than a window is one repair to it."""
    theirs, times = simulated(30, loss), modelled(30, loss)
    assert times.ready.mean == pytest.approx(theirs["ready"]["mean"], rel=within)
    assert times.done.mean == pytest.approx(theirs["done"]["mean"], rel=within)
