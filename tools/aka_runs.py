"""The accesses of the fourth paper, repeated in virtual time: `python -m tools.aka_runs`.

Writes python/shakedown/papers/aka/runs.json, from which the paper's page has its densities. Messages,
handshakes and TCP are ours, over the paper's networks. The processing times of its devices were published for
whole handshakes only. They are derived from one set-up and used in another: the sum for iPAQ and server is
the time of the WLAN's handshake minus the network's. The laptop's is assumed to be zero, as in the paper.
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from shakedown import _core, native
from shakedown.models.arrays import Floats, floats
from shakedown.native import aka
from shakedown.native.scenario import HandshakeId, MeasureOptions
from shakedown.papers.aka.inputs import FULL, GPRS, LAPTOP, SETUPS, TIMES, WLAN, Study
from shakedown.papers.aka.runs import FILE
from shakedown.papers.load import load
from shakedown.prediction.library import open_library
from shakedown.prediction.scenario import Scenario, scenario
from shakedown.prediction.spec import bearer_spec, work_spec
from shakedown.simulation.spec import varying_handshake_spec

RUNS = 1000
SEED = 1
POINTS = 80
BEARERS = {GPRS: "gprs-cs1", LAPTOP: "gprs-cs1", WLAN: "wifi-11b"}
CORE_S = 0.04
WORK_S = 0.2
"""The server's time for a full handshake in the sweep of its load: assumed, more than enough for 600 MHz."""
WORKERS = 2
LOADS = (0.0, 0.25, 0.5, 0.75)


def handshake(estimate: Scenario, client: dict[str, Any], server_s: float = 0.0) -> dict[str, Any]:
    """A recorded handshake in which the client computes once, at the server's flight; the server twice."""
    spec = varying_handshake_spec(estimate)
    for message in spec["messages"]:
        message["generate"] = message["process"] = work_spec(0.0)
    flights = [next(flight) for _, flight in groupby(spec["messages"], itemgetter("from"))]
    flights[1]["process"] = client
    flights[0]["process"] = flights[2]["process"] = work_spec(server_s / 2)
    return spec


def attaches(
    setup: str,
    client: dict[str, Any],
    *,
    resumed: bool = False,
    server_s: float = 0.0,
    rate_per_s: float = 0.0,
) -> list[dict[str, Any]]:
    """Accesses without the first, which establishes the session and waits for the cross-certificate."""
    library = open_library(None, say=lambda line: print(line, file=sys.stderr))
    full, short = (scenario(name, bearer=BEARERS[setup], traces=library) for name in aka.suites(FULL))
    plan = {
        "bearer": bearer_spec(full.bearer, from_idle=False),
        "full": handshake(full, client, server_s),
        "resumed": handshake(short, work_spec(0.0)),
        "attaches": RUNS + 1,
        "mobiles": 1,
        "gap_s": 5.0,
        "roaming": True,
        "moves": 0.0,
        "background_per_s": rate_per_s,
        "workers": WORKERS,
        "max_resumptions": 2**31 if resumed else 0,
        "max_age_s": 1e9,
        "core_round_trip_s": CORE_S,
        "preparation": work_spec(0.0),
        "timeout_s": 300.0,
        "seed": SEED,
    }
    found = aka.run(FULL, json.dumps(plan))["attaches"]
    good = [one for one in found[1:] if one["failure"] is None and one["resumed"] == resumed]
    if len(good) != RUNS:
        raise RuntimeError(f"{setup}: {len(good)} of {RUNS} accesses")
    return good


def column(rows: list[dict[str, Any]], time: str) -> Floats:
    """One time of all accesses, in ms."""
    return floats([1e3 * row[f"{time}_s"] for row in rows])


def spread(values: Floats) -> dict[str, float]:
    """Mean and sample standard deviation, in ms."""
    return {"mean_ms": round(float(values.mean()), 3), "sd_ms": round(float(values.std(ddof=1)), 3)}


def density(values: Floats) -> list[list[float]]:
    """A Gaussian kernel density (per s) at points of time (s), with a width by Silverman's rule."""
    width = 0.9 * min(values.std(ddof=1), np.subtract(*np.quantile(values, [0.75, 0.25])) / 1.34)
    width = max(width * len(values) ** -0.2, 1e-3 * values.mean())
    at = np.linspace(max(0.0, values.min() - 2 * width), values.max() + 2 * width, POINTS)
    heights = np.exp(-0.5 * ((at[:, None] - values[None, :]) / width) ** 2).mean(axis=1)
    heights /= width * math.sqrt(2 * math.pi)
    return [[round(float(x) / 1e3, 5), round(1e3 * float(y), 6)] for x, y in zip(at, heights, strict=True)]


def sizes() -> dict[str, int]:
    """Bytes stored by each side (the paper's Table 2): certificates as PEM; the program, which contains its
    libraries; the memory of a side at the peak of its handshake, and of its connection afterwards.
    """
    memory = native.measure(HandshakeId(suite=aka.suites(FULL)[0]), MeasureOptions(repeat=5)).memory
    if memory is None:
        raise RuntimeError("this build does not count the memory of connections")
    with tempfile.TemporaryDirectory() as folder:
        aka.provision(Path(folder), FULL, home="20201", serving="20801", nodes=["sgsn-1"], subscribers=1)
        card = json.loads((Path(folder) / "card-0.json").read_text())
    (authority,) = card["authorities"].values()
    return {
        "leaf_pem_bytes": len(card["leaf"]),
        "authority_pem_bytes": len(authority),
        "key_pem_bytes": len(card["key"]),
        "root_pem_bytes": len(card["root"]),
        "program_bytes": Path(_core.__file__).stat().st_size,
        "client_peak_bytes": memory.client_peak_bytes,
        "client_held_bytes": memory.client_held_bytes,
        "server_peak_bytes": memory.server_peak_bytes,
        "server_held_bytes": memory.server_held_bytes,
        "server_context_bytes": memory.context_bytes.server,
    }


def accesses() -> dict[str, Any]:
    """Times, densities and bytes of all set-ups, without the sizes."""
    study = Study(load("aka-ssl"))
    nothing = work_spec(0.0)
    network_s = float(column(attaches(WLAN, nothing), "tht").mean()) / 1e3
    computing_s = study.ms(WLAN, "tht") / 1e3 - network_s
    sd_s = study.ms(WLAN, "tht", "sd") / 1e3
    handheld = {"kind": "normal", "mean_s": computing_s, "sd_s": sd_s, "minimum_s": 0.0}
    found: dict[str, Any] = {
        "runs": RUNS,
        "seed": SEED,
        "suite": aka.suites(FULL)[0],
        "computing_s": {"mean": round(computing_s, 6), "sd": sd_s, "network_on_wlan": round(network_s, 6)},
        "setups": {},
    }
    for setup in SETUPS:
        rows = attaches(setup, nothing if setup == LAPTOP else handheld)
        found["setups"][setup] = {
            "bearer": BEARERS[setup],
            "times": {time: spread(column(rows, time)) for time in TIMES},
            "densities": {time: density(column(rows, time)) for time in TIMES},
            "sending_s": round(float(np.mean([row["sending_s"] for row in rows])), 6),
            "receiving_s": round(float(np.mean([row["receiving_s"] for row in rows])), 6),
            "handshake_bytes": [
                round(float(one), 1) for one in np.mean([row["handshake_bytes"] for row in rows], axis=0)
            ],
        }
    resumed = attaches(GPRS, nothing, resumed=True)
    found["resumed"] = {
        "bearer": BEARERS[GPRS],
        "times": {time: spread(column(resumed, time)) for time in TIMES},
        "densities": {"tht": density(column(resumed, "tht"))},
    }
    found["load"] = []
    for share in LOADS:
        rate = share * WORKERS / WORK_S
        rows = attaches(GPRS, handheld, server_s=WORK_S, rate_per_s=rate)
        load_of = {"utilisation": share, "rate_per_s": rate, "work_s": WORK_S, "workers": WORKERS}
        found["load"].append(load_of | spread(column(rows, "tht")))
    return found


def main() -> None:
    """Run all set-ups and write the file; with `sizes`, only the sizes are measured again."""
    found = json.loads(FILE.read_text(encoding="utf-8")) if sys.argv[1:] == ["sizes"] else accesses()
    found["sizes"] = sizes()
    FILE.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(f"written: {FILE}")


if __name__ == "__main__":
    main()
