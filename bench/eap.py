"""Our EAP-TLS server compared with FreeRADIUS, and our peer as the load on both."""

import contextlib
import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import supplied
from bench.harness import Benchmark, Pair, cpu_s, need, output
from eap.freeradius import SECRET, FreeRadius, freeradius

SUITE = "tls1.3/x25519/p256"
PAIRS = 7
COUNT = 600
IN_FLIGHT = 32
PEER_RATE_PER_S = 300
"""The target for our peer …"""
ASKED_RATE_PER_S = 330
"""… and its requested rate, which an open loop does not exceed."""
PEER_SECONDS = 5


def _command(name: str, folder: Path, ca: Path, *options: str) -> list[str]:
    """`eap serve` or `eap peer` with the certificates of a folder."""
    command = [sys.executable, "-m", "shakedown", "eap", name, "--secret", SECRET, "--suite", SUITE]
    files = ["--chain", folder / "chain.pem", "--key", folder / "key.pem", "--ca", ca]
    return [*command, *map(str, files), *options]


def _authenticate(port: int, client: Path, ca: Path, *options: str) -> dict[str, float]:
    """The result of `eap peer --json`."""
    command = _command("peer", client, ca, "--server", f"127.0.0.1:{port}", "--json", *options)
    found: list[dict[str, float]] = json.loads(output(*command))
    return found[0]


@contextlib.contextmanager
def _ours(server: Path, ca: Path) -> Iterator[tuple[int, int]]:
    """Our server: port and process."""
    command = _command("serve", server, ca, "--listen", "127.0.0.1:0")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline().rsplit(":", 1)[1]), process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()
        process.stdout.close()


def _per_cpu_s(port: int, pid: int, client: Path, ca: Path) -> float:
    """Full authentications per second of the server's CPU time."""
    before_s = cpu_s(pid)
    found = _authenticate(port, client, ca, "--count", str(COUNT), "--in-flight", str(IN_FLIGHT))
    return found["completed"] / (cpu_s(pid) - before_s)


@contextlib.contextmanager
def _radius() -> Iterator[tuple[FreeRadius, Path, Path]]:
    """FreeRADIUS, and the folders with its certificates and with a client's."""
    need("freeradius")
    with tempfile.TemporaryDirectory(prefix="shakedown-bench-eap-") as name:
        folder = Path(name)
        server = supplied.chain(folder / "server", "p256")
        client = supplied.chain(folder / "client", "p256", "client")
        with freeradius(folder / "radius", server, client / "ca.pem", fragment=1398, cache=False) as radius:
            yield radius, server, client


def server_pairs() -> list[Pair]:
    """Authentications per second of one core: ours, and FreeRADIUS with the same certificates."""
    with _radius() as (radius, server, client), _ours(server, client / "ca.pem") as (port, pid):
        one = partial(_per_cpu_s, port, pid, client, server / "ca.pem")
        other = partial(_per_cpu_s, radius.port, radius.pid, client, server / "ca.pem")
        one(), other()  # warm-up
        return [(one(), other()) for _ in range(PAIRS)]


def peer_pairs() -> list[Pair]:
    """Full authentications per second of our peer with FreeRADIUS: reached, and the target."""
    rate = ("--rate", f"{ASKED_RATE_PER_S}/s", "--count", str(ASKED_RATE_PER_S * PEER_SECONDS))
    with _radius() as (radius, server, client):
        found = [_authenticate(radius.port, client, server / "ca.pem", *rate) for _ in range(PAIRS)]
    return [(one["rate_per_s"], float(PEER_RATE_PER_S)) for one in found]


BENCHMARKS = [
    Benchmark(
        name="eap-freeradius",
        what=f"full EAP-TLS authentications of {SUITE} for a second of the server's CPU time",
        peer_name="FreeRADIUS",
        better="higher",
        target=1.0,
        pairs=server_pairs,
    ),
    Benchmark(
        name="eap-peer-rate",
        what=f"full EAP-TLS authentications a second of our peer, {ASKED_RATE_PER_S}/s asked for",
        peer_name=f"{PEER_RATE_PER_S}/s",
        better="higher",
        target=1.0,
        pairs=peer_pairs,
    ),
]
