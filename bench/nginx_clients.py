"""Programs that load nginx from the cores that it does not have: ours, `openssl s_time`, `wrk`, `ab`."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

from bench.harness import UnavailableError
from bench.nginx import Endpoint, Server, pin

SETTLE_S = 0.4
"""Before the window: clients that resume have their sessions by then, and nginx its queue."""
WINDOW_S = 1.0
CLIENTS = 16
"""Connections that ours, `wrk` and `ab` keep under way: with few nginx would sleep between flights."""
PROCESSES = 8
"""Of `openssl s_time`, each with one connection under way."""


@dataclass(frozen=True)
class Job:
    """What a generator is to do: where, as which suite, resumed or in full."""

    suite: str
    client_stack: str
    resumed: bool
    endpoint: Endpoint
    address: str

    @property
    def place(self) -> str:
        """Address and port."""
        return f"{self.address}:{self.endpoint.port}"


@dataclass(frozen=True)
class Window:
    """What nginx did in a window under load.

    Attributes:
        per_s: connections by second of wall clock.
        utilisation: its CPU time over the wall clock's.
        each_s: its CPU time by connection.
    """

    per_s: float
    utilisation: float
    each_s: float


def load_options(job: Job) -> dict[str, Any]:
    """How our generator is to behave: which stack, and the certificates that nginx shows."""
    folder = job.endpoint.folder
    return {
        "client_stack": job.client_stack,
        "now": int(time.time()),
        "chain": folder / "chain.pem",
        "key": folder / "key.pem",
        "ca": folder / "ca.pem",
    }


def load_config(job: Job, duration_s: float) -> dict[str, Any]:
    """Handshakes in a closed loop; each connection is closed at once."""
    return {
        "target": job.place,
        "arrivals": "closed",
        "clients": CLIENTS,
        "duration_s": duration_s,
        "check": False,
    }


@contextlib.contextmanager
def ours(job: Job) -> Iterator[None]:
    """Our generator: what `load --arrivals closed` runs, as a process of its own."""
    context = get_context("fork")
    near, far = context.Pipe()
    process = context.Process(target=_ours, args=(job, far), daemon=True)
    process.start()
    try:
        yield
        if not near.poll(30):
            raise UnavailableError("our generator does not end")
        failed, completed, resumed = near.recv()
    finally:
        process.join(5)
        if process.is_alive():
            process.terminate()
    if failed or not completed or resumed != (completed if job.resumed else 0):
        raise UnavailableError(f"{job.suite}: {completed} completed, {resumed} resumed, {failed} failed")


def _ours(job: Job, pipe: Connection) -> None:
    from shakedown import native

    pin(1)
    duration_s = SETTLE_S + WINDOW_S + 0.2
    outcome = native.load(load_config(job, duration_s), native.canonical(job.suite), load_options(job))
    pipe.send((outcome.failed, outcome.completed, outcome.resumed.confirmed))


@contextlib.contextmanager
def s_time(job: Job) -> Iterator[None]:
    """`openssl s_time`, several at once; it verifies no chain, and prints a letter for each connection."""
    kind = ["-reuse", "-tls1_2"] if job.resumed else ["-new", "-tls1_3"]
    command = ["openssl", "s_time", "-connect", job.place, *kind, "-time", "60"]
    with _running([command] * PROCESSES) as processes:
        yield
        alive = [one.poll() is None for one in processes]
    letters = "".join(one.stdout.read().rpartition("\n")[2] for one in processes if one.stdout)
    wanted = "r" if job.resumed else "*"
    if not all(alive) or set(letters) != {wanted}:
        raise UnavailableError(f"s_time: {sum(alive)} running, connections {sorted(set(letters))}")


@contextlib.contextmanager
def wrk(job: Job) -> Iterator[None]:
    """`wrk`, a connection for each request."""
    command = ["wrk", "-t", "1", "-c", str(CLIENTS), "-d", "60s", "-H", "Connection: close"]
    with _running([[*command, f"https://{job.place}/"]]) as (process,):
        yield
        if process.poll() is not None:
            raise UnavailableError("wrk ended early")


@contextlib.contextmanager
def ab(job: Job) -> Iterator[None]:
    """`ab`, a connection for each request."""
    command = ["ab", "-q", "-c", str(CLIENTS), "-t", "60", "-n", "10000000", "-f", "TLS1.3"]
    with _running([[*command, f"https://{job.place}/"]]) as (process,):
        yield
        if process.poll() is not None:
            raise UnavailableError("ab ended early")


Generator = Callable[[Job], contextlib.AbstractContextManager[None]]


@contextlib.contextmanager
def _running(commands: list[list[str]]) -> Iterator[list[subprocess.Popen[str]]]:
    """Programs on the other cores, ended at the end."""
    processes: list[subprocess.Popen[str]] = []
    try:
        for command in commands:
            processes.append(
                subprocess.Popen(
                    command,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    text=True,
                    preexec_fn=lambda: pin(1),
                )
            )
        yield processes
    except FileNotFoundError as error:
        raise UnavailableError(f"{error.filename} is not installed") from error
    finally:
        for one in processes:
            one.terminate()
        for one in processes:
            one.wait(10)


def window(server: Server, generator: Generator, job: Job) -> Window:
    """What nginx does in a second of a generator's load, with its core to itself."""
    allowed = os.sched_getaffinity(0)
    pin(1)
    try:
        with generator(job):
            time.sleep(SETTLE_S)
            first = server.reading()
            time.sleep(WINDOW_S)
            last = server.reading()
    finally:
        os.sched_setaffinity(0, allowed)
    took_s, ran_s, handled = last.at_s - first.at_s, last.ran_s - first.ran_s, last.handled - first.handled
    if handled < 2:
        raise UnavailableError(f"{job.suite}: {handled} connections in {took_s:.1f} s")
    return Window((handled - 1) / took_s, ran_s / took_s, ran_s / (handled - 1))
