"""The kernel's TCP over a grid of paths (`kernel_tcp.py grid`), compared with the simulator."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import pytest

from shakedown.prediction.network import Exchange, replayed
from shakedown.prediction.spec import message_spec, stream_spec

GRID = json.loads((Path(__file__).parent / "kernel_grid.json").read_text())["rows"]
SHARES = {"p50_s": 0.5, "p90_s": 0.9, "p95_s": 0.95, "p99_s": 0.99}

NEAR, LATE_S = 0.03, 0.005
"""Allowed differences of times: relative, and absolute for what a busy machine adds."""
POINTS, DEVIATIONS = 0.02, 3.3
"""Allowed deviation of a percentile's share, and the number of standard errors beyond it."""


HOST_KEYS = {"reordering": ("client_reordering", "server_reordering")}


def exchange(row: dict[str, Any]) -> Exchange:
    """The flight of a row in virtual time; it is read when the client is ready."""
    messages = [
        message_spec("client", "request", 230, flight=1),
        message_spec("server", "flight", row["flight_bytes"], flight=2),
        message_spec("client", "last", 80, flight=3),
    ]
    rate = row["rate_bits_per_s"]
    bearer = {
        "up_bits_per_s": rate,
        "down_bits_per_s": rate,
        "traversal_s": row["round_trip_s"] / 2.0,
        "packet_overhead_bytes": 0,
        "loss": row["loss"],
    }
    handshake = stream_spec("flight", messages, write_bytes=None)
    tcp: dict[str, Any] = {"congestion": row["congestion"], "one_clock": True}
    for name, value in row["host"].items():
        tcp |= dict.fromkeys(HOST_KEYS.get(name, (name,)), bool(value) if name == "quick_ack" else value)
    return replayed({"handshake": handshake, "bearer": bearer, "tcp": tcp}, "grid")


def name_of(row: dict[str, Any]) -> str:
    """A row's place in the grid."""
    path = f"{row['round_trip_s'] * 1e3:.0f} ms, {row['rate_bits_per_s'] / 1e3:g} kbit/s, {row['loss']:.0%}"
    host = "".join(f", {name} {value}" for name, value in row["host"].items())
    return f"{path}, {row['segments']} segments, {row['congestion']}{host}"


def differences(row: dict[str, Any]) -> list[str]:
    """The differences between the kernel's times and the engine's."""
    found, wrong = exchange(row), []
    ours, completed = found.ready, 1.0 - found.failed
    if any(name.endswith("_retries") for name in row["host"]):
        # Here all connections end within the time limit; a failed one has no time.
        expected, chance = found.failed, math.sqrt(found.failed * completed / row["handshakes"])
        if abs(row["late"] / row["handshakes"] - expected) > DEVIATIONS * chance + 0.1 * expected:
            wrong.append(f"failed: {row['late']} of {row['handshakes']}, ours {expected:.4f}")
    if not row["loss"]:
        off_s = row["p50_s"] - ours.p50
        return [] if -0.001 <= off_s <= NEAR * ours.p50 + LATE_S else [f"{off_s:+.4f} of {ours.p50:.4f} s"]
    for name, share in SHARES.items():
        if name not in row:
            continue
        chance = DEVIATIONS * math.sqrt(share * (1.0 - share) / row["handshakes"])
        allowed = min(POINTS, (1.0 - share) / 4.0) + chance
        shares = (min(max((share + way * allowed) / completed, 0.0), 1.0) for way in (-1.0, 1.0))
        low_s, high_s = map(ours.quantile, shares)
        if not (1.0 - NEAR) * low_s <= row[name] <= (1.0 + NEAR) * high_s + LATE_S:
            wrong.append(f"{name}: {row[name]:.3f} s, ours {low_s:.3f} to {high_s:.3f}")
    return wrong


@pytest.mark.parametrize("row", GRID, ids=name_of)
def test_kernel_flights_take_the_time_of_the_engine(row):
    assert differences(row) == []


def apart(row: dict[str, Any]) -> dict[str, float]:
    """How far the kernel is from the engine: means in per cent, percentiles in points of their shares."""
    engine = exchange(row)
    ours, completed = engine.ready, 1.0 - engine.failed
    # Without the slowest handshakes there is no valid mean.
    found = {} if row["late"] else {"mean_s": 100.0 * abs(row["mean_s"] / ours.mean - 1.0)}
    for name in SHARES.keys() & row.keys() if row["loss"] else ["p50_s"]:
        below = completed * ours.probability_within((1.0 - NEAR) * row[name] - LATE_S)
        within = completed * ours.probability_within((1.0 + NEAR) * row[name])
        found[name] = 100.0 * max(below - SHARES[name], SHARES[name] - within, 0.0)
    return found


def level_of(row: dict[str, Any], factor: str) -> Any:
    """A row's level of a factor; settings of hosts as one text."""
    if factor != "host":
        return row[factor]
    return ", ".join(f"`{name}` {value}" for name, value in row["host"].items()) or "Linux's defaults"


def table() -> str:
    """The median and, in brackets, the largest difference of the cells at each level of each factor."""
    factors = {
        "segments": "{} segments",
        "round_trip_s": "round trip {} s",
        "rate_bits_per_s": "{:,.0f} bit/s",
        "loss": "loss {:.0%}",
        "congestion": "{}",
        "host": "{}",
    }
    figures, off = ("mean_s", *SHARES), [apart(row) for row in GRID]
    lines = ["| factor | cases | mean, % | p50, points | p90 | p95 | p99 |", "| --- |" + " ---: |" * 6]
    for factor, title in factors.items():
        for level in sorted({level_of(row, factor) for row in GRID}):
            some = [one for one, row in zip(off, GRID, strict=True) if level_of(row, factor) == level]
            values = [sorted(one[name] for one in some if name in one) for name in figures]
            cells = " | ".join(f"{one[len(one) // 2]:.1f} ({one[-1]:.1f})" if one else "–" for one in values)
            lines.append(f"| {title.format(level)} | {len(some)} | {cells} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(f"{table()}\n")
