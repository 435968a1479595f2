"""The load generator compared with public tools, with one nginx worker on a separate core.

Tools run on the other core, one after another. Their other work besides handshakes is part of their cost:
`s_time` has none, the HTTP tools send a request on each connection and close it.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple

from bench.harness import ROOT, Benchmark, Pair, Ran, UnavailableError, need, output, ran
from bench.tls_servers import serving

SECONDS = 3
PAIRS = 7
CLIENTS = 32
"""Simultaneous connections, for all tools that support them: with few, both cores wait for each other."""
SUITE = "tls1.3/x25519/p256/server"
RESUMING_SUITE = "tls1.2/ecdhe_ecdsa+x25519/p256/server"
"""A session of TLS 1.2 is resumed without public-key operations; TLS 1.3 repeats the key exchange."""

SERVER_CORE, CLIENT_CORE = 0, 1


class Reading(NamedTuple):
    """The result of a tool: handshakes per second, and its CPU time for each, kernel included."""

    per_s: float
    cpu_us: float


CIPHER = "ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256;"
RESUMES = f"{CIPHER} ssl_session_cache shared:sessions:1m;"
RESUMES_NOT = f"{CIPHER} ssl_session_cache off; ssl_session_tickets off;"
"""Without this, `wrk` resumes all but its first connections, and cannot be compared in full handshakes."""


@contextmanager
def nginx(settings: str = RESUMES) -> Iterator[int]:
    """A web server with one worker on a separate core; yields its port."""
    cores = os.sched_getaffinity(0)
    if not {SERVER_CORE, CLIENT_CORE} <= cores:
        raise UnavailableError(f"needs the cores {SERVER_CORE} and {CLIENT_CORE}, may use {sorted(cores)}")
    with serving("nginx", [("p256", False)], settings=settings) as server:
        yield server.places["p256", False].port


def timed(*command: str) -> Ran:
    """Run a tool on its core."""
    return ran(need("taskset"), "-c", str(CLIENT_CORE), *command)


def ours(port: int, *options: str, suite: str = SUITE) -> Reading:
    """The load generator in a closed loop, with handshakes only."""
    run = loaded(port, "--arrivals", "closed", *options, suite=suite)
    if run["failed"]:
        raise UnavailableError(f"handshakes failed: {run['failed']}")
    return Reading(run["completed"] / run["elapsed_s"], 1e6 * run["generator_cpu_s"] / run["completed"])


def loaded(port: int, *options: str, suite: str = SUITE) -> dict[str, Any]:
    """The result of the load generator."""
    command = [need("taskset"), "-c", str(CLIENT_CORE), sys.executable, "-m", "shakedown", "load"]
    command += [f"127.0.0.1:{port}", suite, "--clients", str(CLIENTS), "--duration", f"{SECONDS}s"]
    found: list[dict[str, Any]] = json.loads(output(*command, "--no-check", "--json", *options, cwd=ROOT))
    return found[0]


def s_time(port: int) -> Reading:
    """OpenSSL's own tool: one connection after another."""
    command = [need("openssl"), "s_time", "-connect", f"127.0.0.1:{port}", "-new", "-time", str(SECONDS)]
    done = timed(*command, "-tls1_3", "-ciphersuites", "TLS_AES_128_GCM_SHA256")
    count = int(_found(r"(\d+) connections in [\d.]+s;", done.text))
    return Reading(count / done.elapsed_s, 1e6 * done.cpu_s / count)


def ab(port: int) -> Reading:
    """Apache's tool, which closes connections by default."""
    count = 1500 * SECONDS
    options = ["-q", "-n", str(count), "-c", str(CLIENTS), "-f", "TLS1.3", f"https://127.0.0.1:{port}/"]
    done = timed(need("ab"), *options)
    return Reading(float(_found(r"Requests per second:\s+([\d.]+)", done.text)), 1e6 * done.cpu_s / count)


def wrk(port: int) -> Reading:
    """Wrk, with a request to close the connection."""
    options = ["-t", "1", "-c", str(CLIENTS), "-d", f"{SECONDS}s", "-H", "Connection: close"]
    done = timed(need("wrk"), *options, f"https://127.0.0.1:{port}/")
    count = int(_found(r"(\d+) requests in", done.text))
    return Reading(float(_found(r"Requests/sec:\s+([\d.]+)", done.text)), 1e6 * done.cpu_s / count)


def h2load(port: int) -> Reading:
    """The HTTP/2 tool with one request per connection; it opens all connections at once."""
    count = 500 * SECONDS
    options = ["--h1", "-n", str(count), "-c", str(count), "-t", "1", f"https://127.0.0.1:{port}/"]
    done = timed(need("h2load"), *options)
    return Reading(float(_found(r"([\d.]+) req/s", done.text)), 1e6 * done.cpu_s / count)


def _found(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    if found is None:
        raise UnavailableError(f"printed no {pattern}: {text.strip()[-300:]}")
    return found[1]


TOOLS: dict[str, Callable[[int], Reading]] = {"s_time": s_time, "ab": ab, "wrk": wrk, "h2load": h2load}


def against_tools(figure: Callable[[Reading], float], best: Callable[..., str]) -> list[Pair]:
    """Our readings and those of the best tool, alternating."""
    with nginx(RESUMES_NOT) as port:
        first = {name: figure(tool(port)) for name, tool in TOOLS.items()}
        tool = TOOLS[best(first, key=first.__getitem__)]
        return [(figure(ours(port)), figure(tool(port))) for _ in range(PAIRS)]


def resumed_against_full() -> list[Pair]:
    """Resumed handshakes per second, all confirmed by the server (else the command fails), and full ones."""
    with nginx() as port:
        resumed, full = (
            partial(ours, port, "--resumption", share, suite=RESUMING_SUITE) for share in ("1", "0")
        )
        return [(resumed().per_s, full().per_s) for _ in range(PAIRS)]


SLEEPER = """
import sys, time
rate, seconds = float(sys.argv[1]), float(sys.argv[2])
late, due = [], time.monotonic() + 0.1
until = due + seconds
while due < until:
    time.sleep(max(0.0, due - time.monotonic()))
    late.append(time.monotonic() - due)
    due += 1.0 / rate
late.sort()
print(late[int(0.99 * len(late))])
"""
"""Sleeps until its next start is due, and prints the 99th percentile of its lateness."""

OPEN_SHARE = 0.7
ALLOWED_LATE_S = 0.001


def lateness() -> list[Pair]:
    """Start lateness (ms, p99) of an open loop at 70 % of capacity, and the target: that of a sleeper at the
    same time plus an allowance.
    """
    with nginx() as port:
        rate = OPEN_SHARE * ours(port).per_s
        options = ("--arrivals", "deterministic", "--rate", f"{rate:.1f}/s")
        pairs = []
        for _ in range(PAIRS):
            # The scheduler chooses the sleeper's core: the generator has one core, the server the other.
            command = [sys.executable, "-c", SLEEPER, f"{rate:.1f}", str(SECONDS)]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as sleeper:
                run = loaded(port, *options)
                said, _ = sleeper.communicate()
            pairs.append((run["start_lateness_s"]["p99"] * 1e3, (float(said) + ALLOWED_LATE_S) * 1e3))
        return pairs


BENCHMARKS = [
    Benchmark(
        name="load-full",
        what=f"full {SUITE} handshakes a second with one nginx worker, closed loop of {CLIENTS}",
        peer_name="fastest of s_time, ab, wrk, h2load",
        better="higher",
        target=1.0,
        pairs=partial(against_tools, attrgetter("per_s"), max),
    ),
    Benchmark(
        name="load-full-cpu",
        what=f"client CPU time in us of a full {SUITE} handshake, kernel included",
        peer_name="thriftiest of s_time, ab, wrk, h2load",
        better="lower",
        target=1.0,
        pairs=partial(against_tools, attrgetter("cpu_us"), min),
    ),
    Benchmark(
        name="load-resumed",
        what=f"resumed handshakes a second, every one confirmed, over full ones; {RESUMING_SUITE}",
        peer_name="its own full handshakes",
        better="higher",
        target=2.0,
        pairs=resumed_against_full,
    ),
    Benchmark(
        name="load-lateness",
        what=f"start lateness in ms, 99 %, of an open loop at {OPEN_SHARE:.0%} of capacity",
        peer_name="a thread that only sleeps, in the same seconds, plus 1 ms",
        better="lower",
        target=1.0,
        pairs=lateness,
    ),
]
