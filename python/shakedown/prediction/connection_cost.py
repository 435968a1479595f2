"""The CPU time of a connection beyond the handshake in memory, for server and client, measured over loopback.

Shakedown's server runs on one processor and its load generator on another, with `CLIENTS` connections in
progress. Other processes keep the server's processor from sleeping: a server that has to be woken for every
message needs half as much CPU time again.

For each side, the CPU time of its threads per connection (by the kernel's scheduler) less the CPU time of
the same handshake in memory has two parts. A fixed part: accept, read, write and close, the kernel's TCP,
the TLS library's connection object, and the event loop. And a part proportional to the handshake, which is
slower than in memory because the kernel and other connections evict its code and data from the caches.
Handshakes of different lengths separate the two parts. On loopback the kernel accounts part of the
receiver's work to the sender, as for any server on the same machine as its clients.

The cost of a KiB (the kernel's copying) is measured separately, with sockets without TLS.
"""

from __future__ import annotations

import resource
import socket
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection as Pipe

from shakedown.native.processors import pin, placed, processors, ran_s, threads
from shakedown.prediction.cpu_contention import busy_neighbours, shared
from shakedown.schema.base import SIDES, Side


@dataclass(frozen=True, slots=True)
class Plan:
    """A suite to serve, its number of tickets, and the stack of its clients."""

    suite: str
    tickets: int = 0
    client_stack: str = "openssl"


PLANS = (
    Plan("tls1.2/ecdhe_ecdsa/p384/server/resumed", client_stack="rustls"),
    Plan("tls1.3/x25519/ed25519/server", client_stack="rustls"),
    Plan("tls1.3/x25519/ed25519/server", 2, client_stack="rustls"),
    Plan("tls1.3/x25519/rsa3072/server", 2, client_stack="rustls"),
)
"""Short handshakes, of which the connection is a large part, and a long one. Their clients use the faster
stack.
"""
CLIENTS = 16
"""Connections in progress."""
SECONDS = 0.3
BEGINNING_S = 0.02
ROUNDS = 8
REPEAT = 40
CONNECTIONS = 500
FLIGHTS = (250, 1200, 90, 250)
"""Bytes of a typical handshake's flights, from client and server alternately."""
LARGE_FLIGHTS = (1250, 65200, 90, 250)
"""The same with 64 KiB more of certificates, to measure the kernel's copying."""
MIN_RANGE = 1.5
"""The slope is computed from pairs of handshakes whose times differ by at least this factor."""


@dataclass(frozen=True, slots=True)
class Served:
    """Measured CPU times of a suite, in microseconds, by side.

    Attributes:
        kib: size of a handshake.
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
    """Measures the table ``[connection]`` of a profile: microseconds per connection, by side.

    Args:
        seconds: duration for each suite in each round.
        progress: called with the number of completed steps, and of all steps.
        plans: the suites to serve.
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
    """The table ``[connection]`` from the measured times, by suite and round, and from the cost of a KiB."""
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
    """The lower quartile: a shared machine is slower at times, and the minimum depends on chance."""
    ordered = sorted(times_us)
    return ordered[(len(ordered) + 1) // 4]


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
    """Serves a suite and measures the CPU time of each side, over loopback and in memory."""
    from shakedown import native
    from shakedown.native import load_generator, serving
    from shakedown.native.scenario import HandshakeId, Options

    name = native.canonical(plan.suite)
    options = Options(repeat=REPEAT, tickets=plan.tickets)
    # The other processor is busy while the handshake runs in memory, as it is with the client over loopback.
    with busy_neighbours():
        alone = native.measure(HandshakeId(suite=name, client_stack=plan.client_stack), options)
    others, there = threads(), processors()
    with (
        serving.start([name], "127.0.0.1:0", workers=1, options=options) as server,
        shared(there[0]),
        placed(there[-1:]),
    ):
        workers = threads() - others
        for worker in workers:
            pin(there[0], worker)

        def load(duration_s: float) -> tuple[int, float, float]:
            """Number of connections, and the server's and the client's CPU time for them, in microseconds."""
            before_s = ran_s(workers)
            outcome = load_generator.load(
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
            return outcome.completed, 1e6 * (ran_s(workers) - before_s), 1e6 * outcome.generator_cpu_s

        # Both runs include the work before the first counted connection, such as getting sessions to resume.
        first, whole = load(BEGINNING_S), load(BEGINNING_S + seconds)
    completed = max(whole[0] - first[0], 1)
    return Served(
        kib=alone.bytes.total / 1024.0,
        took_us={"server": (whole[1] - first[1]) / completed, "client": (whole[2] - first[2]) / completed},
        alone_us={"client": alone.handshake.client_us.median, "server": alone.handshake.server_us.median},
    )


def per_kib_us() -> float:
    """Microseconds per KiB of the server, from small and large flights over sockets."""
    small = min(_kernel_us(FLIGHTS, CONNECTIONS) for _ in range(ROUNDS))
    large = min(_kernel_us(LARGE_FLIGHTS, CONNECTIONS // 2) for _ in range(ROUNDS))
    kib = (sum(LARGE_FLIGHTS) - sum(FLIGHTS)) / 1024.0
    return max(0.0, (large - small) / kib)


def _kernel_us(flights: tuple[int, ...], connections: int) -> float:
    """The server's kernel time per connection in microseconds, without TLS."""
    context = get_context("fork")
    ours, theirs = context.Pipe()
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    there = processors()
    process = context.Process(
        target=_serve, args=(listener, theirs, flights, connections, there[0]), daemon=True
    )
    process.start()
    address = listener.getsockname()
    listener.close()
    try:
        with placed(there[-1:]):
            _connect(address, flights, connections)
        return float(ours.recv()) if ours.poll(60) else float("nan")
    finally:
        process.join(5)
        if process.is_alive():
            process.terminate()


def _serve(
    listener: socket.socket, pipe: Pipe, flights: tuple[int, ...], connections: int, processor: int
) -> None:
    pin(processor)
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
