"""Attaches over an emulated bearer, alone and while others attach too: `python -m tools.aka_live [OPTIONS]`.

The fourth paper's fifty live accesses, and those under background load (its process A2): an HSS and SGSNs run
as processes on this host. A mobile behind a bearer always attaches fully (or resumes, `--kind resumed`);
other mobiles, on the loopback, attach fully after exponential gaps. Results in virtual time are printed next
to them.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.harness import output

import shakedown
from aka.nodes import Process
from shakedown.native import aka
from tools import pages

SUITE = "tls1.2/ecdhe_ecdsa/p256/mutual"
HOST = "198.18.0.2"
"""This host's address, seen from behind an emulated bearer."""

TIMES = ("nrt", "rpt", "tht", "tst", "scrt", "attach")
VIRTUAL = 1000
OTHERS = 8
"""Cards of other mobiles, which limit the number of simultaneous attaches."""


def measured(bearer: str, sgsn: str, card: Path, attaches: int) -> dict[str, Any]:
    """Attaches behind a bearer, after one that waits for the cross-certificate."""
    mobile = [*pages.SHAKEDOWN, "aka", "mobile", "--samples", "--json", "--attaches", str(attaches + 1)]
    mobile += ["--sgsn", sgsn.replace("127.0.0.1", HOST), "--card", str(card)]
    run = output(*pages.SHAKEDOWN, "bearer", "run", "--seed", "1", bearer, "--", *mobile)
    found: dict[str, Any] = json.loads(run)[0]
    return found


def alone(
    bearer: str, serving: tuple[str, ...], card: Path, attaches: int, kind: str
) -> dict[str, list[float]]:
    """Times of attaches of a kind behind a bearer at a separate SGSN, in s; SCRT is measured by the SGSN."""
    grants = "0" if kind == "full" else "4294967295"
    with Process("sgsn", *serving, "--max-resumptions", grants, "--max-age", "24h", "--json") as sgsn:
        found = measured(bearer, sgsn.addresses[0], card, attaches)
        (did,) = json.loads(sgsn.stop())
    # The first of the full attaches waits for the cross-certificate; the first of the others is a full one.
    return {**times(found[kind], attaches), "scrt": did[f"scrt_{kind}_s"][-attaches:]}


def times(found: Mapping[str, Any], count: int) -> dict[str, list[float]]:
    """The last `count` values of each time that a mobile knows, in s."""
    return {name: found[f"{name}_s"]["samples"][-count:] for name in TIMES if name != "scrt"}


@contextmanager
def others(sgsn: str, cards: list[Path], rate_per_s: float) -> Iterator[list[Future[bool]]]:
    """Full attaches of other mobiles at exponential gaps, until the block ends: whether each succeeded."""
    stop, draw = threading.Event(), random.Random(1)
    attaches: list[Future[bool]] = []

    def attach(card: Path) -> bool:
        options = {"sgsns": [sgsn], "serving": "20801", "card": card, "attaches": 1}
        found = aka.mobile({**options, "gap_s": 0.0, "timeout_s": 30.0, "data": None})
        return all(one["failure"] is None and not one["resumed"] for one in found["attaches"])

    def run() -> None:
        # An open loop: gaps count from start to start, independently of the duration of attaches.
        start = time.monotonic()
        with ThreadPoolExecutor(len(cards)) as pool:
            while not stop.wait(max(0.0, start - time.monotonic())):
                attaches.append(pool.submit(attach, cards[len(attaches) % len(cards)]))
                start += draw.expovariate(rate_per_s)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield attaches
    finally:
        stop.set()
        thread.join()


def virtually(options: argparse.Namespace, kind: str, rate_per_s: float) -> dict[str, list[float]]:
    """The same attaches in virtual time."""
    found = shakedown.attach(
        SUITE,
        bearer=options.bearer,
        device=options.device,
        server_device=options.device,
        samples=True,
        attaching=shakedown.Attaching(
            attaches=VIRTUAL + 1,
            max_resumptions=0 if kind == "full" else 2**32 - 1,
            max_age_s=86_400.0 * 365,
            core_round_trip_s=0.0,
            background_per_s=rate_per_s,
        ),
    )
    return {name: list(getattr(getattr(found, kind), f"{name}_s").samples)[-VIRTUAL:] for name in TIMES}


def main() -> None:
    """Print a table: each time live and in virtual time, without and with other mobiles."""
    parser = pages.options("aka_live", __doc__)
    parser.add_argument("bearer", nargs="?", default="wifi-11b")
    parser.add_argument("--attaches", type=int, default=50)
    parser.add_argument("--kind", choices=("full", "resumed"), default="full")
    parser.add_argument("--alone", action="store_true", help="without others' attaches")
    parser.add_argument("--rate", type=float, default=100.0, help="others' attaches per second")
    parser.add_argument("--device", default="epyc-turin", help="what both sides are in virtual time")
    options = parser.parse_args()
    if options.kind == "resumed" and not options.alone:
        parser.error("--kind resumed goes with --alone; accepted: full attaches among others")
    with tempfile.TemporaryDirectory() as room:
        site, mobiles = Path(room) / "site", OTHERS + 1
        aka.provision(site, SUITE, home="20201", serving="20801", nodes=["sgsn-1"], subscribers=mobiles)
        cards = [site / f"card-{number}.json" for number in range(mobiles)]
        nodes = ("--listen", "127.0.0.1:0")
        with Process("hss", *nodes, "--register", str(site / "hss-20201.json")) as hss:
            serving = (*nodes, "--node", str(site / "sgsn-1.json"), "--hss", f"20201={hss.addresses[0]}")
            columns = {
                "live, alone": alone(options.bearer, serving, cards[0], options.attaches, options.kind)
            }
            if not options.alone:
                with (
                    Process("sgsn", *serving, "--max-resumptions", "0") as sgsn,
                    others(sgsn.addresses[0], cards[1:], options.rate) as attaches,
                ):
                    loaded = measured(options.bearer, sgsn.addresses[0], cards[0], options.attaches)
                # The SGSN does not distinguish SCRT of the mobile's own attaches from that of the others.
                columns["live, others too"] = times(loaded["full"], options.attaches)
                failed = sum(not one.result() for one in attaches)
                print(f"{len(attaches):,} attaches of others, {failed} failed, at {options.rate:g}/s")
    columns["virtual time, alone"] = virtually(options, options.kind, 0.0)
    if not options.alone:
        columns["virtual time, others too"] = virtually(options, options.kind, options.rate)
    print(
        f"{options.bearer}: medians in s, sample standard deviations in brackets, of {options.attaches} "
        f"{options.kind} attaches live and {VIRTUAL:,} in virtual time"
    )
    rows = (
        (name if name == "attach" else name.upper(), *(cell(column.get(name)) for column in columns.values()))
        for name in TIMES
    )
    print(pages.table(" | >".join(["time", *columns]), rows))


def cell(values: list[float] | None) -> str:
    """Median and sample standard deviation, in s."""
    if values is None:
        return "–"
    return f"{statistics.median(values):.3f} ({statistics.stdev(values):.3f})"


if __name__ == "__main__":
    main()
