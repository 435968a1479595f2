"""Clients that share one link: kernel and emulated bearer beside the simulator.

    python -m tools.shared_link [--clients N] [--within S] [--up BITS] [--down BITS] [--half-duplex]
                                [--scheduler NAME] [--json FILE] [SUITE …]

N clients start at equal intervals. Live, all connections of `load` cross one emulated bearer to `serve`, with
the kernel's TCP at both ends, and are read from a capture; in the simulator each client has a link that takes
no time beside its delay, all share one cell with the bearer's rates, and servers issue no tickets. Printed
are the times until clients are ready; segments that both sides sent again, for each client; bytes that the
link carried up and down for each. Where the queue takes longer than TCP's timers, what is sent again was not
lost.

A client that is ready is not at the end of what it causes: copies of flights are still in the queue, and
servers send more until they are acknowledged. So both programs go on until the link has been silent for a
while. `load` closes each connection; in the simulator both sides send a message of as many bytes after the
handshake. The emulated bearer serves packets in the order in which they come; another scheduler is simulated
beside it.
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
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from shakedown.native import virtual_time
from shakedown.native.scenario import Fleet
from shakedown.simulation.deployment import Site
from shakedown.simulation.fleet import settle
from shakedown.simulation.simulate import Job

GATEWAY, PORT = "198.18.0.2", 9204
OURS = f"{sys.executable} -m shakedown"
SUITES = ("tls1.3/psk", "tls1.3/x25519/p256/server")
DELAY_MS = 95
SILENT_S = 20
CONGESTION = "reno"
"""What a network namespace of any Linux may use."""
TIMEOUT_S = 300
FAST_BPS = 10**9
END_BYTES = {"client": 24 + 2 * 52, "server": 2 * 52 - 52}
"""What a side sends at the end beyond the header of one segment: an alert, FIN and acknowledgement."""
SYN, RST = 2, 4


@dataclass(frozen=True)
class Storm:
    """What a storm came to: seconds until clients are ready; segments sent again and bytes up and down for
    each.
    """

    ready_p50_s: float
    ready_max_s: float
    completed: int
    again: float
    up_bytes: float
    down_bytes: float


@dataclass(frozen=True)
class Link:
    """What clients share, and the time within which they start."""

    up_bps: int
    down_bps: int
    half_duplex: bool
    within_s: float
    scheduler: str = "first-come"

    def apart_s(self, clients: int) -> float:
        """Between the starts of two clients."""
        return self.within_s / clients

    def profile(self, folder: Path, own_bps: int | None = None) -> Path:
        """A bearer whose clients share the rates; `own_bps` is that of a client's link, else the same."""
        shared = str(self.half_duplex).lower()
        path = folder / f"{self.scheduler}-{own_bps or 'one'}.toml"
        path.write_text(
            "schema = 2\nname = 'shared'\ntitle = 'one link'\ndate = '2026'\nsource = ['a test']\n"
            + f"half_duplex = {shared if own_bps is None else 'false'}\n"
            + "".join(
                f"[{way}]\nrate_bps = {own_bps or rate_bps}\ndelay_ms = {DELAY_MS}\nqueue_bytes = 4194304\n"
                for way, rate_bps in (("up", self.up_bps), ("down", self.down_bps))
            )
            + f"[cell]\nmedium = 'shared'\nup_bps = {self.up_bps}\ndown_bps = {self.down_bps}\n"
            + f"half_duplex = {shared}\nscheduler = '{self.scheduler}'\n"
        )
        return path


# Counters of the client's device, until they have not changed for a while.
QUIET = f"""
last=; silent=0
while [ $silent -lt {SILENT_S} ]; do
  now=$(grep -v lo: /proc/net/dev)
  if [ "$now" = "$last" ]; then silent=$((silent + 1)); else silent=0; last=$now; fi
  sleep 1
done
"""


def live(suite: str, clients: int, link: Link, folder: Path) -> Storm:
    """The kernel's TCP, all connections over one bearer."""
    bearer = link.profile(folder)
    log, capture = (
        bearer.with_suffix(f".{suite.replace('/', '-')}.{clients}.{end}") for end in ("log", "pcap")
    )
    server = (
        f"exec {OURS} serve {suite} --listen {GATEWAY}:{PORT} --handshake-timeout {TIMEOUT_S}s > {log} 2>&1"
    )
    options = (
        f"--arrivals deterministic --rate {1.0 / link.apart_s(clients):g}/s "
        f"--duration {link.within_s + 10:g}s "
        f"--clients {clients} --count {clients} --timeout {TIMEOUT_S}s "
        f"--authorized-target {GATEWAY} --no-rate-cap --json"
    )
    load = f"{OURS} load tls://{GATEWAY}:{PORT} {suite} {options}"
    # The server ends with the client's command, and what its connections would still send with it.
    client = f"until grep -q listening {log}; do sleep 0.1; done; {load}; status=$?; {QUIET} exit $status"
    command = [*OURS.split(), "bearer", "run", "--congestion-control", CONGESTION, "--pcap", str(capture)]
    command += ["--pair", server, str(bearer), "--", "sh", "-c", client]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    (run,) = json.loads(done.stdout)
    times = run["handshake_s"]
    again, up_bytes, down_bytes = captured(capture.read_bytes())
    return Storm(
        times["p50"],
        times["max"],
        run["completed"],
        again / clients,
        up_bytes / clients,
        down_bytes / clients,
    )


def captured(pcap: bytes) -> tuple[int, int, int]:
    """Segments that were sent again, and bytes up and down, without resets and the first connection with
    data, by which `load` learns what the server speaks.
    """
    again: Counter[tuple[int, int]] = Counter()
    up_bytes: Counter[tuple[int, int]] = Counter()
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
        if flags & RST:
            continue
        if payload > 0:
            with_data[flow] = None
        if payload > 0 or flags & SYN:
            key = (from_port, to_port, sequence, bool(flags & SYN))
            again[flow] += key in seen
            seen.add(key)
        (down_bytes if from_port == PORT else up_bytes)[flow] += len(ip)
    counted = list(with_data)[1:]
    up, down = (sum(count[flow] for flow in counted) for count in (up_bytes, down_bytes))
    return sum(again[flow] for flow in counted), up, down


def closed(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """A handshake without tickets, and with the end of its connection."""
    handshake = [one for one in messages if one["name"] != "NewSessionTicket"]
    last = handshake[-1]
    nothing = {"kind": "constant", "s": 0.0}
    flight = last["flight"] + (last["from"] == "server")
    alert = {**last, "name": "Alert", "generate": nothing, "process": nothing}
    return [
        *handshake,
        {**alert, "from": "client", "bytes": END_BYTES["client"], "flight": flight},
        {**alert, "from": "server", "bytes": END_BYTES["server"], "flight": flight + 1},
    ]


def simulated(suite: str, clients: int, link: Link, folder: Path) -> Storm:
    """The same in virtual time, in one cell."""
    bearer = link.profile(folder, own_bps=FAST_BPS)
    times = bearer.with_suffix(f".{clients}.times")
    times.write_text("".join(f"{number * link.apart_s(clients):g}\n" for number in range(clients)))
    fleet = settle(Fleet(arrivals=f"file:{times}", cells=1, timeout_s=TIMEOUT_S))
    spec = Job(Site(device="server", bearer=str(bearer)).priced(suite), None, fleet, 1, 1).spec()
    handshake = spec["classes"][0]["handshake"]
    spec["tcp"]["congestion"] = CONGESTION
    handshake["messages"] = closed(handshake["messages"])
    report = virtual_time.simulate(spec)
    ready, traffic = report["handshake_s"], report["traffic"]
    again, up_bytes, down_bytes = (
        traffic[name] / clients for name in ("retransmissions", "up_bytes", "down_bytes")
    )
    return Storm(ready["p50"], ready["max"], report["completed"], again, up_bytes, down_bytes)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs it; the exit status."""
    parser = argparse.ArgumentParser(
        prog="tools.shared_link",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("suites", nargs="*", metavar="SUITE", default=list(SUITES))
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--within", type=float, default=0.02, metavar="S")
    parser.add_argument("--up", type=int, default=24_000, metavar="BITS")
    parser.add_argument("--down", type=int, default=24_000, metavar="BITS")
    parser.add_argument("--half-duplex", action="store_true")
    parser.add_argument("--scheduler", choices=("round-robin", "proportional"))
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(arguments)
    link = Link(given.up, given.down, given.half_duplex, given.within)
    runs = [("live", live, link), ("simulated", simulated, link)]
    if given.scheduler is not None:
        runs.append((given.scheduler, simulated, replace(link, scheduler=given.scheduler)))
    found = []
    print(f"{'':44}{'median':>10}{'last':>10}{'again':>8}{'up':>8}{'down':>8}")
    with tempfile.TemporaryDirectory() as name:
        for suite in given.suites:
            for who, run, shared in runs:
                for clients in (1, given.clients):
                    storm = run(suite, clients, shared, Path(name))
                    print(
                        f"{f'{suite}, {clients} {who}':44}{storm.ready_p50_s:10.3f}{storm.ready_max_s:10.3f}"
                        f"{storm.again:8.2f}{storm.up_bytes:8.0f}{storm.down_bytes:8.0f}",
                        flush=True,
                    )
                    found.append({"suite": suite, "who": who, "clients": clients, **asdict(storm)})
    if given.json is not None:
        given.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
