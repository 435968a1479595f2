"""Our server beside nginx: full handshakes for a second of one core's time."""

import contextlib
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from bench.harness import Benchmark, Pair, UnavailableError, cpu_s
from bench.tls_servers import serving

SUITE = "tls1.3/x25519/p256/server"
PAIRS = 15
CLIENTS = 4
SECONDS = 1


@dataclass
class Served:
    """A running server: where, and in which process the work is done."""

    port: int
    pid: int


def rate_per_cpu_s(served: Served) -> float:
    """Full handshakes of `openssl s_time` clients for a second of the server's CPU time."""
    before_s = cpu_s(served.pid)
    command = [
        "openssl",
        "s_time",
        "-connect",
        f"127.0.0.1:{served.port}",
        "-new",
        "-tls1_3",
        "-time",
        f"{SECONDS}",
    ]
    clients = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for _ in range(CLIENTS)
    ]
    completed = 0
    for client in clients:
        said, _ = client.communicate()
        found = re.search(r"(\d+) connections in [\d.]+ real", said) or re.search(
            r"(\d+) connections in", said
        )
        if found is None:
            raise UnavailableError(f"s_time said: {said[-200:]}")
        completed += int(found[1])
    return completed / (cpu_s(served.pid) - before_s)


@contextlib.contextmanager
def ours() -> Iterator[Served]:
    """Our server, one worker."""
    command = [sys.executable, "-m", "shakedown", "serve", SUITE, "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found = re.search(r"listening on [\d.]+:(\d+)", process.stdout.readline())
        if found is None:
            raise UnavailableError("the server did not start")
        yield Served(int(found[1]), process.pid)
        process.terminate()


@contextlib.contextmanager
def nginx() -> Iterator[Served]:
    """nginx, one worker, with a certificate of the same kind."""
    settings = "ssl_session_cache off; ssl_session_tickets off;"
    with serving("nginx", [("p256", False)], settings=settings) as server:
        yield Served(server.places["p256", False].port, server.pid)


def _pairs() -> list[Pair]:
    with ours() as one, nginx() as other:
        rate_per_cpu_s(one), rate_per_cpu_s(other)  # warm-up
        pairs = []
        for turn in range(PAIRS):
            # Who is first changes: neither has the quieter half of the time.
            first, second = (one, other) if turn % 2 == 0 else (other, one)
            figures = {id(first): rate_per_cpu_s(first), id(second): rate_per_cpu_s(second)}
            pairs.append((figures[id(one)], figures[id(other)]))
        return pairs


BENCHMARKS = [
    Benchmark(
        name="serve-nginx",
        what="full TLS 1.3 handshakes (x25519, P-256) for a second of the server's CPU time, one worker",
        peer_name="nginx",
        better="higher",
        target=1.0,
        pairs=_pairs,
    )
]
