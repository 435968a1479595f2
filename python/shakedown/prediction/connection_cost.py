"""What a connection costs a server and a client here beyond the handshake in memory, measured over loopback.

A server of ours serves real handshakes on one processor to a client of ours on another, which always has
some under way. The server shares its processor with processes that do nothing, so that its clients are never
too slow for it: a server that has to be woken for every message takes half as long again. What the kernel
says that each side's thread ran, by connection, less what the same handshake takes that side in memory, is
the connection: accept, reads, writes and close with the kernel's TCP behind them, the TLS library's object,
and the event loop. And the handshake itself takes longer than in memory, where nothing comes between: the
kernel and other connections leave code and data cold. Long and short handshakes tell the two apart. On
loopback the kernel does part of the receiver's work in the sender's name, as it does for any server on one
machine with its clients.

What each KiB adds, the kernel's copying, is measured apart, with sockets that carry no TLS.
"""

from __future__ import annotations

import contextlib
import os
import resource
import socket
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection as Pipe
from pathlib import Path

from shakedown.prediction.cpu_contention import busy_neighbours, shared
from shakedown.schema.base import SIDES, Side


@dataclass(frozen=True, slots=True)
class Plan:
    """A suite to serve, how many tickets with it, and whose client it is: one that keeps the server busy."""

    suite: str
    tickets: int = 0
    client_stack: str = "openssl"


PLANS = (
    Plan("tls1.2/ecdhe_ecdsa/p384/server/resumed", client_stack="rustls"),
    Plan("tls1.3/x25519/ed25519/server", client_stack="rustls"),
    Plan("tls1.3/x25519/ed25519/server", 2, client_stack="rustls"),
    Plan("tls1.3/x25519/rsa3072/server", 2, client_stack="rustls"),
)
"""Cheap handshakes, next to which the connection shows, and one that takes long. Their client is of the
stack that takes less.
"""
CLIENTS = 16
"""Connections that the client keeps under way."""
SECONDS = 0.3
BEGINNING_S = 0.02
ROUNDS = 8
REPEAT = 40
CONNECTIONS = 500
FLIGHTS = (250, 1200, 90, 250)
"""Bytes of a usual handshake's flights, from client and server in turn."""
LARGE_FLIGHTS = (1250, 65200, 90, 250)
"""The same with a chain of 64 KiB more: what the kernel's copying adds."""
MIN_RANGE = 1.5
"""By what share a handshake takes longer is told by those whose times differ by this factor."""


@dataclass(frozen=True, slots=True)
class Served:
    """A suite that was served; times in microseconds, by side.

    Attributes:
        kib: moved by a handshake.
        took_us: a connection with its handshake.
        alone_us: the handshake in memory.
    """

    kib: float
    took_us: dict[Side, float]
    alone_us: dict[Side, float]


def connection_cost(
    seconds: float = SECONDS,
    progress: Callable[[int, int], None] = lambda done, total: None,
    *,
    plans: Sequence[Plan] = PLANS,
) -> dict[str, float]:
    """Microseconds a connection, by side, as the table ``[connection]`` of a profile.

    Args:
        seconds: for how long each suite is served in each of the rounds.
        progress: told how much is done, of how much.
        plans: what is served.
    """
    total = ROUNDS * len(plans) + 1
    progress(0, total)
    copying_us = per_kib_us()
    found: list[list[Served]] = [[] for _ in plans]
    for number, plan in enumerate(list(plans) * ROUNDS):
        progress(1 + number, total)
        found[number % len(plans)].append(served(plan, seconds))
    return fitted(found, copying_us)


def fitted(found: Sequence[Sequence[Served]], copying_us: float) -> dict[str, float]:
    """The table ``[connection]`` of what was served, by suite and round, and of what a KiB adds."""
    cost = {"per_kib_us": copying_us}
    for side in SIDES:
        points = []
        for rounds in found:
            alone_us = _usual(one.alone_us[side] for one in rounds)
            took_us = _usual(one.took_us[side] for one in rounds)
            kib = statistics.median(one.kib for one in rounds)
            points.append((alone_us, took_us - alone_us - copying_us * kib))
        fixed_us, cold = _line(points)
        cost |= {f"{side}_us": fixed_us, f"{side}_cold": cold}
    servers = [
        one.took_us["server"] - (1.0 + cost["server_cold"]) * one.alone_us["server"] - copying_us * one.kib
        for rounds in found
        for one in rounds
    ]
    return {**cost, "sd_us": statistics.pstdev(servers)}


def _usual(times_us: Iterable[float]) -> float:
    """The lower quartile: a machine that others share is slower at times, and the least is luck."""
    ordered = sorted(times_us)
    return ordered[len(ordered) // 4]


def _line(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Intercept and slope, neither below zero, as medians over pairs of points (Theil and Sen)."""
    slopes = [
        (more - other_more) / (alone - other)
        for index, (alone, more) in enumerate(points)
        for other, other_more in points[:index]
        if max(alone, other) > MIN_RANGE * min(alone, other)
    ]
    slope = max(statistics.median(slopes), 0.0) if slopes else 0.0
    return max(statistics.median(more - slope * alone for alone, more in points), 0.0), slope


def served(plan: Plan, seconds: float) -> Served:
    """Serve a suite: what a connection takes each side beyond the handshake in memory."""
    from shakedown import native
    from shakedown.native import serving
    from shakedown.native.scenario import HandshakeId, Options

    name = native.canonical(plan.suite)
    options = Options(repeat=REPEAT, tickets=plan.tickets)
    # The client is a neighbour who works: so is somebody while the handshake is measured in memory.
    with busy_neighbours():
        alone = native.measure(HandshakeId(suite=name, client_stack=plan.client_stack), options)
    others = _threads()
    processors = _processors()
    with (
        serving.start([name], "127.0.0.1:0", workers=1, options=options) as server,
        shared(processors[0]),
        _placed(processors[-1]),
    ):
        workers = _threads() - others
        for worker in workers:
            _pin(processors[0], worker)

        def load(duration_s: float) -> tuple[int, float, float]:
            """Connections, and both sides' CPU time for them, in microseconds."""
            before_us = sum(map(_ran_us, workers))
            outcome = native.load(
                {
                    "target": server.address,
                    "arrivals": "closed",
                    "clients": CLIENTS,
                    "duration_s": duration_s,
                    "check": True,
                },
                name,
                {"client_stack": plan.client_stack},
            )
            ran_us = sum(map(_ran_us, workers)) - before_us
            return outcome.completed, ran_us, 1e6 * outcome.generator_cpu_s

        # What comes before the first connection that is counted, as sessions to resume, is in both.
        first, whole = load(BEGINNING_S), load(BEGINNING_S + seconds)
    completed = max(whole[0] - first[0], 1)
    return Served(
        kib=alone.bytes.total / 1024.0,
        took_us={"server": (whole[1] - first[1]) / completed, "client": (whole[2] - first[2]) / completed},
        alone_us={"client": alone.handshake.client_us.median, "server": alone.handshake.server_us.median},
    )


def _threads() -> set[int]:
    """This process's threads."""
    with contextlib.suppress(OSError):
        return {int(one.name) for one in Path("/proc/self/task").iterdir()}
    return set()


def _ran_us(thread: int) -> float:
    """CPU time of a thread of this process as the scheduler counts it."""
    return int(Path(f"/proc/self/task/{thread}/schedstat").read_text().split()[0]) * 1e-3


@contextlib.contextmanager
def _placed(processor: int) -> Iterator[None]:
    """This thread, and those that it starts, on one processor."""
    before = os.sched_getaffinity(0)
    _pin(processor)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def per_kib_us() -> float:
    """Microseconds that a KiB adds to a server, by sockets that carry small and large flights."""
    small = min(_kernel_us(FLIGHTS, CONNECTIONS) for _ in range(ROUNDS))
    large = min(_kernel_us(LARGE_FLIGHTS, CONNECTIONS // 2) for _ in range(ROUNDS))
    kib = (sum(LARGE_FLIGHTS) - sum(FLIGHTS)) / 1024.0
    return max(0.0, (large - small) / kib)


def _kernel_us(flights: tuple[int, ...], connections: int) -> float:
    """The server's kernel microseconds a connection, without TLS."""
    context = get_context("fork")
    ours, theirs = context.Pipe()
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    processors = _processors()
    process = context.Process(
        target=_serve, args=(listener, theirs, flights, connections, processors[0]), daemon=True
    )
    process.start()
    address = listener.getsockname()
    listener.close()
    try:
        with _placed(processors[-1]):
            _connect(address, flights, connections)
        return float(ours.recv()) if ours.poll(60) else float("nan")
    finally:
        process.join(5)
        if process.is_alive():
            process.terminate()


def _serve(
    listener: socket.socket, pipe: Pipe, flights: tuple[int, ...], connections: int, processor: int
) -> None:
    _pin(processor)
    request, reply, confirmation, answer = flights
    chunk, last = bytes(reply), bytes(answer)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_stime
    for _ in range(connections):
        peer, _ = listener.accept()
        with peer:
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            _take(peer, request)
            peer.sendall(chunk)
            _take(peer, confirmation)
            peer.sendall(last)
    pipe.send((resource.getrusage(resource.RUSAGE_SELF).ru_stime - before) / connections * 1e6)


def _connect(address: tuple[str, int], flights: tuple[int, ...], connections: int) -> None:
    request, reply, confirmation, answer = flights
    first, second = bytes(request), bytes(confirmation)
    for _ in range(connections):
        with socket.create_connection(address) as peer:
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            peer.sendall(first)
            _take(peer, reply)
            peer.sendall(second)
            _take(peer, answer)


def _take(peer: socket.socket, size: int) -> None:
    left = size
    while left > 0:
        left -= len(peer.recv(left)) or left


def _pin(processor: int, thread: int = 0) -> None:
    """A thread on one processor, where that is allowed."""
    with contextlib.suppress(OSError):
        os.sched_setaffinity(thread, {processor})


def _processors() -> list[int]:
    """Those that this thread may use."""
    return sorted(os.sched_getaffinity(0))
