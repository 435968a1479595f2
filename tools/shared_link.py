"""Clients that share one link: kernel and emulated bearer beside the simulator.

    python -m tools.shared_link [--clients N] [--rate BITS] [--half-duplex] [--json FILE] [SUITE …]

N clients start a millisecond apart. Live, all connections of `load` cross one emulated bearer to `serve`,
with the kernel's TCP at both ends; in the simulator each client has a link that takes no time beside its
delay, and all share one cell with the bearer's rates. Printed are the times until clients are ready, and the
bytes that the link carried down for each, in all and for one client alone: where the queue takes longer than
TCP's timers, the rest was sent again in vain.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from shakedown.native.scenario import Fleet
from shakedown.simulation.deployment import Site
from shakedown.simulation.simulate import simulate

GATEWAY, PORT = "198.18.0.2", 9204
OURS = f"{sys.executable} -m shakedown"
SUITES = ("tls1.3/psk", "tls1.3/x25519/p256/server")
APART_S = 0.001
DELAY_MS = 95
TIMEOUT_S = 300
FAST_BPS = 10**9


@dataclass(frozen=True)
class Storm:
    """What a storm came to: seconds until a client is ready, and bytes down for each."""

    ready_p50_s: float
    ready_max_s: float
    completed: int
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
    log = bearer.with_suffix(f".{clients}.log")
    server = f"exec {OURS} serve {suite} --listen {GATEWAY}:{PORT} > {log} 2>&1"
    options = (
        f"--arrivals deterministic --rate {1.0 / APART_S:g}/s --duration 10s "
        f"--clients {clients} --count {clients} --timeout {TIMEOUT_S}s "
        f"--authorized-target {GATEWAY} --no-rate-cap --json"
    )
    load = f"exec {OURS} load tls://{GATEWAY}:{PORT} {suite} {options}"
    client = f"until grep -q listening {log}; do sleep 0.1; done; {load}"
    command = [*OURS.split(), "bearer", "run", "--summary", "--linger", "60", "--pair", server, str(bearer)]
    done = subprocess.run([*command, "--", "sh", "-c", client], capture_output=True, text=True, check=False)
    delivered = re.search(r"^down: .* delivered \(([\d,]+) bytes\)", done.stderr, re.MULTILINE)
    if done.returncode != 0 or delivered is None:
        raise RuntimeError(done.stderr)
    (run,) = json.loads(done.stdout)
    times = run["handshake_s"]
    down_bytes = int(delivered[1].replace(",", "")) / clients
    return Storm(times["p50"], times["max"], run["completed"], down_bytes)


def simulated(suite: str, clients: int, bearer: Path) -> Storm:
    """The same in virtual time, in one cell."""
    times = bearer.with_suffix(f".{clients}.times")
    times.write_text("".join(f"{number * APART_S:g}\n" for number in range(clients)))
    fleet = Fleet(arrivals=f"file:{times}", cells=1, timeout_s=TIMEOUT_S)
    (row,) = simulate([suite], fleet, Site(device="server", bearer=str(bearer)))
    p50_s, max_s = row.ready_s.p50, row.ready_s.max
    assert p50_s is not None
    assert max_s is not None
    return Storm(p50_s, max_s, row.completed, row.traffic.down_bytes / clients)


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
    print(f"{'':40}{'ready':>10}{'last':>10}{'bytes':>10}{'alone':>10}{'ratio':>8}")
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
                    f"{all_of_them.down_bytes:10.0f}{alone.down_bytes:10.0f}{ratio:8.2f}",
                    flush=True,
                )
                found.append({"suite": suite, "who": who, "alone": asdict(alone), "all": asdict(all_of_them)})
    if given.json is not None:
        given.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
