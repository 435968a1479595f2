"""Attaches over an emulated bearer while others attach too: `python -m tools.aka_live [OPTIONS]`.

The fourth paper's fifty live accesses under background load (its process A2): an HSS and an SGSN as processes
on this host, a mobile behind a bearer that attaches fully each time, and others, on the loopback, whose full
attaches begin after exponential gaps. The same attaches without the others go before, and the same in
virtual time, with and without, stand beside both.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

import shakedown
from shakedown import core

COMMAND = [sys.executable, "-m", "shakedown"]
SUITE = "tls1.2/ecdhe_ecdsa/p256/mutual"
HOST = "198.18.0.2"
"""This host, from behind an emulated bearer."""

VIRTUAL = 1000
OTHERS = 8
"""Cards of other mobiles; as many attach at a time at most."""


@contextmanager
def node(*arguments: str) -> Iterator[int]:
    """A node as a process; gives the port of its line."""
    process = subprocess.Popen([*COMMAND, "aka", *arguments], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        found = re.search(r"127\.0\.0\.1:(\d+)", process.stdout.readline())
        if found is None:
            raise RuntimeError(f"{arguments[0]} does not say where it listens")
        yield int(found[1])
    finally:
        process.terminate()
        process.wait()


def measured(bearer: str, port: int, card: Path, attaches: int) -> dict[str, Any]:
    """Full attaches behind a bearer, without the first, which waits for the cross-certificate."""
    command = ["bearer", "run", "--seed", "1", bearer, "--", *COMMAND, "aka", "mobile", "--samples", "--json"]
    command += ["--sgsn", f"{HOST}:{port}", "--card", str(card), "--attaches", str(attaches + 1)]
    done = subprocess.run([*COMMAND, *command], stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)[0]
    return found


class Others:
    """Full attaches of other mobiles at exponential gaps, until they are stopped."""

    def __init__(self, port: int, cards: list[Path], rate_per_s: float, seed: int) -> None:
        self.begun = self.failed = 0
        self._stop = threading.Event()
        self._draw = random.Random(seed)
        self._port, self._cards, self._rate_per_s = port, cards, rate_per_s
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Others:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        # Gaps count from start to start, whatever an attach takes: an open loop.
        start = time.monotonic()
        attaches: list[Future[bool]] = []
        with ThreadPoolExecutor(len(self._cards)) as pool:
            while not self._stop.wait(max(0.0, start - time.monotonic())):
                attaches.append(pool.submit(self._attach, self._cards[self.begun % len(self._cards)]))
                self.begun += 1
                start += self._draw.expovariate(self._rate_per_s)
        self.failed = sum(not attach.result() for attach in attaches)

    def _attach(self, card: Path) -> bool:
        options = {"sgsns": [f"127.0.0.1:{self._port}"], "serving": "20801", "card": card, "attaches": 1}
        found = core.aka_mobile({**options, "gap_s": 0.0, "timeout_s": 30.0, "data": None})
        return all(one["failure"] is None and not one["resumed"] for one in found["attaches"])


def main() -> None:
    """Prints a table: each time live and in virtual time, without and with others."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bearer", nargs="?", default="wifi-11b")
    parser.add_argument("--attaches", type=int, default=50)
    parser.add_argument("--rate", type=float, default=100.0, help="others' attaches per second")
    parser.add_argument("--device", default="epyc-turin", help="what both sides are in virtual time")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as room:
        site, mobiles = Path(room) / "site", OTHERS + 1
        core.aka_provision(site, SUITE, home="20201", serving="20801", nodes=["sgsn-1"], subscribers=mobiles)
        cards = [site / f"card-{number}.json" for number in range(OTHERS + 1)]
        nodes = ["--listen", "127.0.0.1:0"]
        with node("hss", *nodes, "--register", str(site / "hss-20201.json")) as hss:
            served = ["--node", str(site / "sgsn-1.json"), "--hss", f"20201=127.0.0.1:{hss}"]
            with node("sgsn", *nodes, *served, "--max-resumptions", "0") as sgsn:
                alone = measured(asked.bearer, sgsn, cards[0], asked.attaches)
                with Others(sgsn, cards[1:], asked.rate, seed=1) as others:
                    loaded = measured(asked.bearer, sgsn, cards[0], asked.attaches)
    runs = [
        shakedown.attach(
            SUITE,
            bearer=asked.bearer,
            device=asked.device,
            server_device=asked.device,
            samples=True,
            attaches=VIRTUAL + 1,
            max_resumptions=0,
            core_round_trip_s=0.0,
            background_per_s=rate,
        )
        for rate in (0.0, asked.rate)
    ]
    virtual = [json.loads(msgspec.json.encode(one)) for one in runs]
    print(
        f"{asked.bearer}: medians in s of {asked.attaches} full attaches live, {VIRTUAL:,} in virtual time; "
        f"{others.begun:,} of others, {others.failed} failed, at {asked.rate:g}/s"
    )
    print(f"{'':7}{'live alone':>16}{'live, others':>16}{'virtual alone':>16}{'virtual, others':>16}")
    for name in ("nrt", "tht", "attach"):
        cells = (f"{middle(one, name):.3f} ({spread(one, name):.3f})" for one in (alone, loaded, *virtual))
        print(f"{name.upper():7}" + "".join(f"{cell:>16}" for cell in cells))


def times(found: dict[str, Any], name: str) -> list[float]:
    """A time of all full attaches but the first."""
    return list(found["full"][f"{name}_s"]["samples"])[1:]


def middle(found: dict[str, Any], name: str) -> float:
    """Its median, in s."""
    return statistics.median(times(found, name))


def spread(found: dict[str, Any], name: str) -> float:
    """Its sample standard deviation, in s."""
    return statistics.stdev(times(found, name))


if __name__ == "__main__":
    main()
