"""Flights over the kernel's own TCP and a bearer that loses packets, compared with the simulator.

    python -m tools.kernel_flights [--count N] [--parallel N] [--seed N] [--loss P …] [--trip-ms MS …]
        [--segments N …] [--keep-metrics] [--samples FILE]

Two network namespaces with TUN devices (`bearer run`), no rate to speak of and a fixed delay. A client
connects, sends a request and waits for a flight of so many segments, which its server writes at once; timed
is from `connect` until all of it is read. Beside the kernel's percentiles, with the interval that chance
leaves them (95 %), stand the simulator's. The exit status is 1 where the share of the
kernel's times up to one of the simulator's percentiles is further from its own than two points, or a quarter
of what lies beyond it, and what chance allows.
`--keep-metrics` lets the kernel remember the path from one connection to the next (`tcp_no_metrics_save` 0).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

GATEWAY, PORT = "198.18.0.2", 4433
REQUEST_BYTES, LAST_BYTES = 230, 80
SEGMENT_BYTES = 1448
SHARES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}
POINTS, DEVIATIONS = 0.02, 3.3
"""How far shares may lie apart, and how many standard errors beyond that: chance exceeds these alone once in
two thousand."""
NEAR, LATE_S = 0.02, 0.005
"""How far times may lie apart: of themselves, and what a busy machine adds beyond what the fastest have."""
PATIENCE_S = 90.0
"""What takes longer counts as longer than everything."""


@dataclass(frozen=True)
class Cell:
    """Flights of so many segments over a path."""

    trip_s: float
    loss: float
    segments: int
    keep_metrics: bool = False

    @property
    def flight_bytes(self) -> int:
        """Bytes of the flight, whose last segment is not quite full."""
        return SEGMENT_BYTES * self.segments - 100

    def profile(self) -> str:
        """The path as a bearer profile."""
        way = f"rate_bps = 1e9\ndelay_ms = {self.trip_s * 500.0}\nloss = {self.loss}\n"
        return (
            'schema = 2\nname = "kernel-flights"\ntitle = "kernel flights"\ndate = "2026-11-22"\n'
            f'[up]\n{way}[down]\n{way}[source]\nloss = "independent"\n'
            '[assumed]\nrate = "none"\ndelay = "fixed"\n'
        )


async def serve(flight_bytes: int) -> None:
    """Serves flights until the process is ended."""
    keep_metrics()
    flight, tasks = bytes(flight_bytes), set()

    async def one(end: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        with end:
            end.setblocking(False)
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 * flight_bytes + 65_536)
            try:
                await received(end, REQUEST_BYTES)
                await loop.sock_sendall(end, flight)
                await received(end, LAST_BYTES)
            except OSError:
                return

    with socket.create_server(("", PORT), backlog=4096) as listener:
        listener.setblocking(False)
        while True:
            end, _ = await asyncio.get_running_loop().sock_accept(listener)
            task = asyncio.create_task(one(end))
            tasks.add(task)
            task.add_done_callback(tasks.discard)


async def received(end: socket.socket, count: int) -> None:
    """So many bytes have been read."""
    while count > 0:
        data = await asyncio.get_running_loop().sock_recv(end, min(count, 65_536))
        if not data:
            raise ConnectionResetError
        count -= len(data)


def keep_metrics() -> None:
    """Lets the kernel of this namespace remember paths, where the environment asks for it."""
    if os.environ.get("KEEP_METRICS"):
        Path("/proc/sys/net/ipv4/tcp_no_metrics_save").write_text("0")


async def connect(flight_bytes: int, count: int, parallel: int) -> None:
    """Prints the times of so many flights in seconds, infinity for what took too long."""
    keep_metrics()
    loop, left = asyncio.get_running_loop(), iter(range(count))
    times: list[tuple[float, float]] = []

    async def one() -> None:
        connected_s = ready_s = math.inf
        with socket.socket() as end:
            end.setblocking(False)
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            begun_s = time.monotonic()
            try:
                async with asyncio.timeout(PATIENCE_S):
                    await loop.sock_connect(end, (GATEWAY, PORT))
                    connected_s = time.monotonic() - begun_s
                    await loop.sock_sendall(end, bytes(REQUEST_BYTES))
                    await received(end, flight_bytes)
                    ready_s = time.monotonic() - begun_s
                    await loop.sock_sendall(end, bytes(LAST_BYTES))
                    await loop.sock_recv(end, 1)
            except (TimeoutError, OSError):
                pass
        times.append((connected_s, ready_s))

    async def worker() -> None:
        await asyncio.sleep(random.random())
        for _ in left:
            await one()
            await asyncio.sleep(random.random() * 0.01)

    await asyncio.gather(*(worker() for _ in range(parallel)))
    json.dump(times, sys.stdout)


def measured(cell: Cell, count: int, parallel: int, seed: int) -> list[tuple[float, float]]:
    """Times until connected and until the flight is read, of so many connections."""
    me = f"{sys.executable} {Path(__file__).resolve()}"
    with tempfile.TemporaryDirectory() as home:
        profile = Path(home) / "kernel-flights.toml"
        profile.write_text(cell.profile())
        command = [
            *(sys.executable, "-m", "shakedown", "bearer", "run", "--linger", "0"),
            *("--seed", str(seed), "--pair", f"exec {me} serve {cell.flight_bytes}", str(profile), "--"),
            *(*me.split(), "connect", str(cell.flight_bytes), str(count), str(parallel)),
        ]
        environment = os.environ | ({"KEEP_METRICS": "1"} if cell.keep_metrics else {})
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise SystemExit(f"{cell}: {done.stderr.strip()}")
    return [(connected, ready) for connected, ready in json.loads(done.stdout)]


def replayed(cell: Cell) -> dict[str, float]:
    """Minimum, mean and percentiles in seconds of as many handshakes in virtual time as they need."""
    from shakedown.prediction import network
    from shakedown.prediction.spec import message_spec, stream_spec

    messages = [
        message_spec("client", "request", REQUEST_BYTES, flight=1),
        message_spec("server", "flight", cell.flight_bytes, flight=2),
        message_spec("client", "last", LAST_BYTES, flight=3),
    ]
    spec = {
        "handshake": stream_spec("flights", messages, write_bytes=None),
        "bearer": {
            "up_bits_per_s": 1e9,
            "down_bits_per_s": 1e9,
            "traversal_s": cell.trip_s / 2.0,
            "loss": cell.loss,
        },
        "tcp": {"congestion": "reno", "one_clock": True},
    }
    ready = network.replayed(spec, "kernel-flights").ready
    times = {name: ready.quantile(share) for name, share in SHARES.items()}
    return times | {"mean": ready.mean, "min": float(ready.values_s[0])}


def interval(ordered: Sequence[float], share: float) -> tuple[float, float, float]:
    """The times at a share, and between which chance leaves it at 95 %."""
    count = len(ordered)
    chance = 1.96 * math.sqrt(count * share * (1.0 - share))
    at, low, high = (
        ordered[min(max(int(place), 0), count - 1)]
        for place in (share * count, share * count - chance, share * count + chance)
    )
    return at, low, high


def disagreements(ordered: Sequence[float], theirs: dict[str, float]) -> list[str]:
    """Where the kernel's times do not lie at the simulator's percentiles."""
    count, wrong = len(ordered), []
    late_s = max(ordered[count // 100] - theirs["min"], 0.0) + LATE_S
    for name, share in SHARES.items():
        allowed = min(POINTS, (1.0 - share) / 4.0) + DEVIATIONS * math.sqrt(share * (1.0 - share) / count)
        most = bisect_right(ordered, (1.0 + NEAR) * theirs[name] + late_s) / count
        least = bisect_right(ordered, (1.0 - NEAR) * theirs[name]) / count
        if most < share - allowed or least > share + allowed:
            said = f"{least:.1%} to {most:.1%} of the kernel's times are up to {theirs[name]:.3f} s"
            wrong.append(f"{name}: {said}")
    return wrong


def row(cell: Cell, ordered: Sequence[float], theirs: dict[str, float]) -> str:
    """A line of the table."""
    finished = [took_s for took_s in ordered if took_s < math.inf]
    figures = [f"{sum(finished) / len(finished):.3f} / {theirs['mean']:.3f}"]
    for name, share in SHARES.items():
        at, low, high = interval(ordered, share)
        figures.append(f"{at:.3f} ({low:.3f}–{high:.3f}) / {theirs[name]:.3f}")
    head = f"{cell.trip_s * 1e3:.0f} ms | {cell.loss:.0%} | {cell.segments} | {len(ordered)}"
    return f"| {head} | {' | '.join(figures)} |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures each cell and prints it beside the simulator."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--parallel", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--loss", type=float, nargs="+", default=[0.05, 0.1, 0.2])
    parser.add_argument("--trip-ms", type=float, nargs="+", default=[79.0, 196.0])
    parser.add_argument("--segments", type=int, nargs="+", default=[4, 12, 30])
    parser.add_argument("--keep-metrics", action="store_true")
    parser.add_argument("--samples", type=Path, help="append all times to this file, a line of JSON a cell")
    options = parser.parse_args(arguments)
    titles = ["round trip", "loss", "segments", "n", "mean", *SHARES]
    print("each: kernel / simulator, s\n\n| " + " | ".join(titles) + " |")
    print("| --- " * len(titles) + "|", flush=True)
    wrong = []
    cells = [
        Cell(trip_ms / 1e3, loss, segments, options.keep_metrics)
        for trip_ms in options.trip_ms
        for loss in options.loss
        for segments in options.segments
    ]
    for cell in cells:
        times = measured(cell, options.count, options.parallel, options.seed)
        ordered = sorted(ready_s for _, ready_s in times)
        theirs = replayed(cell)
        print(row(cell, ordered, theirs), flush=True)
        wrong += [f"{cell}: {one}" for one in disagreements(ordered, theirs)]
        if options.samples:
            with options.samples.open("a") as out:
                out.write(json.dumps({"cell": asdict(cell), "times": times}) + "\n")
    print(
        "\n"
        + ("\n".join(wrong) or "every share of the kernel's is the simulator's within two points and chance")
    )
    return int(bool(wrong))


if __name__ == "__main__":
    match sys.argv[1:2]:
        case ["serve"]:
            asyncio.run(serve(int(sys.argv[2])))
        case ["connect"]:
            asyncio.run(connect(*(int(one) for one in sys.argv[2:5])))
        case _:
            raise SystemExit(main())
