"""Clients that share one link: kernel and emulated bearer compared with the simulator.

    python -m tools.shared_link [--clients N] [--within S] [--up BITS] [--down BITS] [--half-duplex]
                                [--scheduler NAME] [SUITE …]

N clients start at equal intervals. Live, all connections of `load` cross one emulated bearer to `serve`, with
the kernel's TCP at both ends, and are read from a capture. In the simulator each client has a link with a
delay only, all share one cell with the bearer's rates, and servers issue no tickets. The output is the times
until clients are ready, and for each client the retransmitted segments of both sides and the bytes of the
link up and down. If the queue takes longer than TCP's timers, retransmitted data was not lost.

When a client is ready, its traffic has not ended: copies of flights are still in the queue, and servers send
more until they are acknowledged. Both programs therefore continue until the link has been silent for a while.
`load` closes each connection; in the simulator both sides send a message of as many bytes after the
handshake. The emulated bearer serves packets in the order of their arrival; another scheduler is simulated in
addition.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from shakedown.native import virtual_time
from shakedown.native.scenario import Fleet
from shakedown.simulation.deployment import Site
from shakedown.simulation.fleet import settle
from shakedown.simulation.simulate import Job
from tools import pages
from tools.bearer_handshakes import PORT, loaded, packets_of, write_profile

SUITES = ("tls1.3/psk", "tls1.3/x25519/p256/server")
DELAY_MS = 95
SILENT_S = 20
CONGESTION = "reno"
"""The congestion control that a network namespace of any Linux may use."""
TIMEOUT_S = 300
FAST_BPS = 10**9
END_BYTES = {"client": 24 + 2 * 52, "server": 2 * 52 - 52}
"""Bytes that a side sends at the end beyond the header of one segment: an alert, FIN and acknowledgement."""
SYN, RST = 2, 4


@dataclass(frozen=True)
class Storm:
    """The result of a storm: seconds until clients are ready; retransmitted segments and bytes up and down
    for each.
    """

    ready_p50_s: float
    ready_max_s: float
    again: float
    up_bytes: float
    down_bytes: float


@dataclass(frozen=True)
class Link:
    """The link that clients share, and the time within which they start."""

    up_bps: int
    down_bps: int
    half_duplex: bool
    within_s: float
    scheduler: str = "first-come"

    def apart_s(self, clients: int) -> float:
        """Time between the starts of two clients."""
        return self.within_s / clients

    def profile(self, folder: Path, own_bps: int | None = None) -> Path:
        """A bearer whose clients share the rates; `own_bps`: rate of each client's own link, if any."""
        ways = {
            way: {"rate_bps": own_bps or rate_bps, "delay_ms": DELAY_MS, "queue_bytes": 4194304}
            for way, rate_bps in (("up", self.up_bps), ("down", self.down_bps))
        }
        shared = {"half_duplex": self.half_duplex, "scheduler": self.scheduler}
        cell = {"medium": "shared", "up_bps": self.up_bps, "down_bps": self.down_bps, **shared}
        path = folder / f"{self.scheduler}-{own_bps or 'one'}.toml"
        return write_profile(path, {**ways, "cell": cell}, half_duplex=self.half_duplex and own_bps is None)


# Waits until the counters of the client's device have been constant for a while.
QUIET = f"""
last=; silent=0
while [ $silent -lt {SILENT_S} ]; do
  now=$(grep -v lo: /proc/net/dev)
  if [ "$now" = "$last" ]; then silent=$((silent + 1)); else silent=0; last=$now; fi
  sleep 1
done
"""


def live(suite: str, clients: int, link: Link, folder: Path) -> Storm:
    """The result with the kernel's TCP, for all connections over one bearer."""
    profile = link.profile(folder)
    capture = profile.with_suffix(f".{suite.replace('/', '-')}.{clients}.pcap")
    options = (
        f"--arrivals deterministic --rate {1.0 / link.apart_s(clients):g}/s "
        f"--duration {link.within_s + 10:g}s --clients {clients} --count {clients} --timeout {TIMEOUT_S}s"
    )
    run = loaded(
        suite,
        profile,
        options,
        serve=f"--handshake-timeout {TIMEOUT_S}s",
        bearer=("--congestion-control", CONGESTION, "--pcap", str(capture)),
        after=QUIET,
    )
    times = run["handshake_s"]
    counts = (count / clients for count in captured(capture))
    return Storm(times["p50"], times["max"], *counts)


def captured(capture: Path) -> tuple[int, int, int]:
    """Retransmitted segments, and bytes up and down, without resets and without the first connection with
    data, with which `load` detects the server's protocol.
    """
    again: Counter[frozenset[str]] = Counter()
    up_bytes: Counter[frozenset[str]] = Counter()
    down_bytes: Counter[frozenset[str]] = Counter()
    with_data: dict[frozenset[str], None] = {}
    seen = set()
    fields = ("tcp.srcport", "tcp.dstport", "tcp.seq_raw", "tcp.len", "tcp.flags", "ip.len")
    for source, destination, sequence, payload, named, size in packets_of(capture, *fields):
        flow, flags = frozenset((source, destination)), int(named, 16)
        if flags & RST:
            continue
        if payload != "0":
            with_data[flow] = None
        if payload != "0" or flags & SYN:
            key = (source, destination, sequence, flags & SYN)
            again[flow] += key in seen
            seen.add(key)
        (down_bytes if source == str(PORT) else up_bytes)[flow] += int(size)
    counted = list(with_data)[1:]
    up, down = (sum(count[flow] for flow in counted) for count in (up_bytes, down_bytes))
    return sum(again[flow] for flow in counted), up, down


def closed(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """A handshake without tickets, followed by the end of its connection."""
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
    """The result in virtual time, in one cell."""
    bearer = link.profile(folder, own_bps=FAST_BPS)
    times = bearer.with_suffix(f".{clients}.times")
    times.write_text("".join(f"{number * link.apart_s(clients):g}\n" for number in range(clients)))
    fleet = settle(Fleet(arrivals=f"file:{times}", cells=1, timeout_s=TIMEOUT_S))
    spec = Job(Site(device="server", bearer=str(bearer)).estimate(suite), None, fleet, 1, 1).spec()
    handshake = spec["classes"][0]["handshake"]
    spec["tcp"]["congestion"] = CONGESTION
    handshake["messages"] = closed(handshake["messages"])
    report = virtual_time.simulate(spec)
    ready, traffic = report["handshake_s"], report["traffic"]
    counts = (traffic[name] / clients for name in ("retransmissions", "up_bytes", "down_bytes"))
    return Storm(ready["p50"], ready["max"], *counts)


def main() -> int:
    """Run the tool; return the exit status."""
    parser = pages.options("shared_link", __doc__)
    parser.add_argument("suites", nargs="*", metavar="SUITE", default=list(SUITES))
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--within", type=float, default=0.02, metavar="S")
    parser.add_argument("--up", type=int, default=24_000, metavar="BITS")
    parser.add_argument("--down", type=int, default=24_000, metavar="BITS")
    parser.add_argument("--half-duplex", action="store_true")
    parser.add_argument("--scheduler", choices=("round-robin", "proportional"))
    given = parser.parse_args()
    link = Link(given.up, given.down, given.half_duplex, given.within)
    runs = [("live", live, link), ("simulated", simulated, link)]
    if given.scheduler is not None:
        runs.append((given.scheduler, simulated, replace(link, scheduler=given.scheduler)))
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
    return 0


if __name__ == "__main__":
    sys.exit(main())
