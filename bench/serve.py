"""Our server beside nginx: full handshakes for a second of one core's time."""

import contextlib
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.harness import Benchmark, Pair, UnavailableError

SUITE = "tls1.3/x25519/p256/server"
PAIRS = 15
CLIENTS = 4
SECONDS = 1

NGINX = """
daemon off;
worker_processes 1;
error_log stderr crit;
pid {folder}/nginx.pid;
events {{ worker_connections 1024; }}
http {{
  access_log off;
  client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};
  uwsgi_temp_path {folder}; scgi_temp_path {folder};
  server {{
    listen 127.0.0.1:{port} ssl;
    ssl_certificate {chain};
    ssl_certificate_key {key};
    ssl_protocols TLSv1.3;
    ssl_ecdh_curve X25519;
    ssl_session_cache off;
    ssl_session_tickets off;
    location / {{ return 200; }}
  }}
}}
"""


@dataclass
class Served:
    """A running server: where, and in which process the work is done."""

    port: int
    pid: int

    def cpu_s(self) -> float:
        """What its threads have run so far, in seconds, to the nanosecond."""
        threads = Path(f"/proc/{self.pid}/task").iterdir()
        return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) * 1e-9


def rate_per_cpu_s(served: Served) -> float:
    """Full handshakes of `openssl s_time` clients for a second of the server's CPU time."""
    before_s = served.cpu_s()
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
    return completed / (served.cpu_s() - before_s)


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
    program = shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin")
    if program is None:
        raise UnavailableError("nginx is not installed (make peers installs it)")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        chain, key = folder / "chain.pem", folder / "key.pem"
        make = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=localhost -days 30"
        subprocess.run(
            ["openssl", *make.split(), "-out", str(chain), "-keyout", str(key)],
            check=True,
            capture_output=True,
        )
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        settings = folder / "nginx.conf"
        settings.write_text(NGINX.format(folder=folder, port=port, chain=chain, key=key))
        with subprocess.Popen(
            [program, "-p", name, "-c", str(settings)], stderr=subprocess.DEVNULL
        ) as process:
            yield Served(port, _worker_of(process.pid, port))
            process.terminate()


def _worker_of(master: int, port: int) -> int:
    """The worker's process, once it listens."""
    for _ in range(100):
        time.sleep(0.05)
        children = Path(f"/proc/{master}/task/{master}/children").read_text().split()
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            if children:
                return int(children[0])
    raise UnavailableError("nginx did not start")


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
