"""Our server compared with nginx: full handshakes per second of one core's time."""

import re
import subprocess
from functools import partial

from bench import tls_servers
from bench.harness import Benchmark, Pair, UnavailableError, cpu_s
from live.serve.serving import serving

SUITE = "tls1.3/x25519/p256/server"
PAIRS = 15
CLIENTS = 4
SECONDS = 1


def rate_per_cpu_s(port: int, pid: int) -> float:
    """Full handshakes of `openssl s_time` clients per second of the server's CPU time."""
    before_s = cpu_s(pid)
    command = ["openssl", "s_time", "-connect", f"127.0.0.1:{port}", "-new", "-tls1_3", "-time", str(SECONDS)]
    clients = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for _ in range(CLIENTS)
    ]
    completed = 0
    for client in clients:
        said, _ = client.communicate()
        # The first line counts by CPU time, the last by real time.
        found = re.findall(r"(\d+) connections in", said)
        if not found:
            raise UnavailableError(f"s_time said: {said[-200:]}")
        completed += int(found[-1])
    return completed / (cpu_s(pid) - before_s)


def _pairs() -> list[Pair]:
    """Our server and nginx, with one worker each and certificates of the same kind."""
    settings = "ssl_session_cache off; ssl_session_tickets off;"
    with serving(SUITE) as ours, tls_servers.serving("nginx", [("p256", False)], settings=settings) as nginx:
        one, other = (
            partial(rate_per_cpu_s, ours.port, ours.process.pid),
            partial(rate_per_cpu_s, nginx.places["p256", False].port, nginx.pid),
        )
        one(), other()  # warm-up
        pairs = []
        for turn in range(PAIRS):
            # The order alternates, so that neither always has the quieter half of the time.
            if turn % 2 == 0:
                pairs.append((one(), other()))
            else:
                theirs = other()
                pairs.append((one(), theirs))
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
