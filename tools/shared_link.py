"""Clients that share one link: kernel and emulated bearer beside the simulator.

    python -m tools.shared_link [--clients N] [--rate BITS] [--half-duplex] [--json FILE] [SUITE …]

N clients start a millisecond apart. Live, all connections of `load` cross one emulated bearer to `serve`,
with the kernel's TCP at both ends, and are read from a capture; in the simulator each client has a link that
takes no time beside its delay, all share one cell with the bearer's rates, and servers issue no tickets.
Printed are the times until clients are ready; segments that both sides sent again, for each client; bytes
that the link carried down to each, and how many times those of a client alone these are. Where the queue
takes longer than TCP's timers, what is sent again was not lost. The ends of connections, which the simulator
does not have, do not count.
"""

from __future__ import annotations

import argparse
import json
import struct
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from shakedown.native import virtual_time
from shakedown.native.scenario import Fleet
from shakedown.simulation.deployment import Site
from shakedown.simulation.fleet import settle
from shakedown.simulation.simulate import Job

GATEWAY, PORT = "198.18.0.2", 9204
OURS = f"{sys.executable} -m shakedown"
SUITES = ("tls1.3/psk", "tls1.3/x25519/p256/server")
APART_S = 0.001
DELAY_MS = 95
TIMEOUT_S = 300
FAST_BPS = 10**9
FIN, SYN, RST = 1, 2, 4


@dataclass(frozen=True)
class Storm:
    """What a storm came to: seconds until clients are ready; segments sent again and bytes down for each."""

    ready_p50_s: float
    ready_max_s: float
    completed: int
    again: float
    down_bytes: float


def profile(folder: Path, rate_bps: int, *, half_duplex: bool, own_bps: int) -> Path:
    """A bearer whose clients share a rate; `own_bps` is that of a client's link."""
    shared = str(half_duplex).lower()
    path = folder / f"shared-{own_bps}.toml"
    path.write_text(
        "schema = 2\nname = 'shared'\ntitle = 'one link'\ndate = '2026'\nsource = ['a test']\n"
        + f"half_duplex = {shared if own_bps == rate_bps else 'false'}\n"
        + "".join(
            f"[{way}]\nrate_bps = {own_bps}\ndelay_ms = {DELAY_MS}\nqueue_bytes = 4194304\n"
            for way in ("up", "down")
        )
        + f"[cell]\nmedium = 'shared'\nup_bps = {rate_bps}\ndown_bps = {rate_bps}\n"
        + f"half_duplex = {shared}\nscheduler = 'first-come'\n"
    )
    return path


def live(suite: str, clients: int, bearer: Path) -> Storm:
    """The kernel's TCP, all connections over one bearer."""
    log, capture = (
        bearer.with_suffix(f".{suite.replace('/', '-')}.{clients}.{end}") for end in ("log", "pcap")
    )
    server = f"exec {OURS} serve {suite} --listen {GATEWAY}:{PORT} > {log} 2>&1"
    options = (
        f"--arrivals deterministic --rate {1.0 / APART_S:g}/s --duration 10s "
        f"--clients {clients} --count {clients} --timeout {TIMEOUT_S}s "
        f"--authorized-target {GATEWAY} --no-rate-cap --json"
    )
    load = f"exec {OURS} load tls://{GATEWAY}:{PORT} {suite} {options}"
    client = f"until grep -q listening {log}; do sleep 0.1; done; {load}"
    command = [*OURS.split(), "bearer", "run", "--pcap", capture, "--linger", "60", "--pair", server, bearer]
    done = subprocess.run([*command, "--", "sh", "-c", client], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    (run,) = json.loads(done.stdout)
    times = run["handshake_s"]
    again, down_bytes = captured(capture.read_bytes())
    return Storm(times["p50"], times["max"], run["completed"], again / clients, down_bytes / clients)


def captured(pcap: bytes) -> tuple[int, int]:
    """Segments that were sent again, and bytes down, but for ends of connections and the first with data, by
    which `load` learns what the server speaks.
    """
    again: Counter[tuple[int, int]] = Counter()
    down_bytes: Counter[tuple[int, int]] = Counter()
    with_data: dict[tuple[int, int], None] = {}
    seen, place = set(), 24
    while place < len(pcap):
        length = struct.unpack_from("<I", pcap, place + 8)[0]
        ip, place = pcap[place + 16 : place + 16 + length], place + 16 + length
        tcp = ip[4 * (ip[0] & 15) :]
        from_port, to_port, sequence = struct.unpack_from(">HHI", tcp)
        flow, flags = (min(from_port, to_port), max(from_port, to_port)), tcp[13]
        payload = len(ip) - 4 * (ip[0] & 15) - 4 * (tcp[12] >> 4)
        if flags & RST or (flags & FIN and payload == 0):
            continue
        if payload > 0:
            with_data[flow] = None
        if payload > 0 or flags & SYN:
            key = (from_port, to_port, sequence, bool(flags & SYN))
            again[flow] += key in seen
            seen.add(key)
        if from_port == PORT:
            down_bytes[flow] += len(ip)
    counted = list(with_data)[1:]
    return sum(again[flow] for flow in counted), sum(down_bytes[flow] for flow in counted)


def simulated(suite: str, clients: int, bearer: Path) -> Storm:
    """The same in virtual time, in one cell."""
    times = bearer.with_suffix(f".{clients}.times")
    times.write_text("".join(f"{number * APART_S:g}\n" for number in range(clients)))
    fleet = settle(Fleet(arrivals=f"file:{times}", cells=1, timeout_s=TIMEOUT_S))
    spec = Job(Site(device="server", bearer=str(bearer)).priced(suite), None, fleet, 1, 1).spec()
    handshake = spec["classes"][0]["handshake"]
    handshake["messages"] = [one for one in handshake["messages"] if one["name"] != "NewSessionTicket"]
    report = virtual_time.simulate(spec)
    ready, traffic = report["handshake_s"], report["traffic"]
    again, down_bytes = traffic["retransmissions"] / clients, traffic["down_bytes"] / clients
    return Storm(ready["p50"], ready["max"], report["completed"], again, down_bytes)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs it; the exit status."""
    parser = argparse.ArgumentParser(prog="tools.shared_link", description=__doc__)
    parser.add_argument("suites", nargs="*", metavar="SUITE", default=list(SUITES))
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--rate", type=int, default=24_000)
    parser.add_argument("--half-duplex", action="store_true")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(arguments)
    found = []
    print(f"{'':40}{'ready':>10}{'last':>10}{'again':>8}{'bytes':>8}{'times':>8}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ways = {"half_duplex": given.half_duplex}
        one_link = profile(folder, given.rate, own_bps=given.rate, **ways)
        one_cell = profile(folder, given.rate, own_bps=FAST_BPS, **ways)
        for suite in given.suites:
            for who, run, bearer in (("live", live, one_link), ("simulated", simulated, one_cell)):
                alone, all_of_them = (run(suite, count, bearer) for count in (1, given.clients))
                ratio = all_of_them.down_bytes / alone.down_bytes
                print(
                    f"{f'{suite}, {who}':40}{all_of_them.ready_p50_s:10.3f}{all_of_them.ready_max_s:10.3f}"
                    f"{all_of_them.again:8.2f}{all_of_them.down_bytes:8.0f}{ratio:8.2f}",
                    flush=True,
                )
                found.append({"suite": suite, "who": who, "alone": asdict(alone), "all": asdict(all_of_them)})
    if given.json is not None:
        given.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
