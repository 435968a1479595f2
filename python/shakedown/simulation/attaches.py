"""`aka run`: attaches by SSL-based AKA in virtual time, with processing times of estimated handshakes."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import structs

from shakedown.errors import InputError
from shakedown.native import aka, least_values
from shakedown.prediction.scenario import Scenario as Estimate
from shakedown.prediction.spec import bearer_spec
from shakedown.prediction.work import SideCost
from shakedown.schema.aka import AttachRun, LiveAttaches
from shakedown.schema.base import Side, convert
from shakedown.schema.options import MobileOptions, OptionGroup
from shakedown.simulation.deployment import Site
from shakedown.simulation.spec import varying_handshake_spec

DEFAULT_SUITE = "tls1.2/ecdhe_ecdsa/p256/mutual"

_TIMES = ("nrt_s", "rpt_s", "tht_s", "tst_s", "scrt_s", "attach_s")


class Attaching(OptionGroup, frozen=True, kw_only=True):
    """Attaches of mobiles to two SGSNs, and the resumption policy (see `schema/options.csv`)."""

    attaches: int = 50
    workers: int = 1
    mobiles: int = 1
    gap_s: float = 60.0
    roaming: bool = True
    moves: float = 0.0
    background_per_s: float = 0.0
    max_age_s: float = 3600.0
    max_resumptions: int = 10
    core_round_trip_s: float = 0.04
    from_idle: bool = False
    preparation_s: float = 0.0
    timeout_s: float = 120.0
    seed: int = 1


def simulate_attaches(
    suite: str,
    attaching: Attaching,
    site: Site,
    *,
    samples: bool = False,
    progress: Callable[[int], None] | None = None,
) -> AttachRun:
    """Run attaches. The same arguments give the same result. Raises `InputError`.

    Args:
        suite: what is negotiated; always mutual and with chains of two levels, whatever its short name is.
        site: the devices of mobiles and SGSNs, and the network between them.
        samples: keep the times of each attach.
    """
    names = aka.suites(suite)
    full, resumed = map(site.estimate, names)
    given = structs.asdict(attaching)
    preparation = {"kind": "constant", "s": given.pop("preparation_s")}
    from_idle = given.pop("from_idle")
    plan = given | {
        "bearer": bearer_spec(full.bearer, from_idle=from_idle),
        "full": varying_handshake_spec(full),
        "resumed": varying_handshake_spec(resumed),
        "preparation": preparation,
    }
    found = aka.run(names[0], json.dumps(plan), progress)
    policy = ("max_resumptions", "max_age_s")
    good = [one for one in found["attaches"] if one["failure"] is None]
    return convert(
        {
            "kind": "simulated",
            "suite": names[0],
            "resumed_suite": names[1],
            "bearer": full.bearer.name,
            "device": full.device.name,
            "server_device": full.server_device.name,
            "mobile": _side_cost("client", full, resumed),
            "sgsn": _side_cost("server", full, resumed),
            **{name: value for name, value in given.items() if name not in (*policy, "timeout_s")},
            "background_served": found["background_served"],
            "policy": {name: given[name] for name in policy},
            "preparation_s": attaching.preparation_s,
            "from_idle": from_idle,
            "completed": len(good),
            "failed": failures(found["attaches"]),
            "full": group([one for one in good if not one["resumed"]], samples=samples),
            "resumed": group([one for one in good if one["resumed"]], samples=samples),
            "not_resumed": found["not_resumed"],
            "handed_over": found["handed_over"],
            "length_s": found["length_s"],
        },
        AttachRun,
    )


def attach_live(
    sgsns: Sequence[str],
    card: Path,
    options: MobileOptions,
    *,
    samples: bool = False,
    progress: Callable[[int], None] | None = None,
) -> tuple[LiveAttaches, str | None]:
    """Attach to SGSNs on sockets; return the result and the first failure (one line). Raises `InputError`."""
    if options.timeout_s <= 0.0:
        raise InputError("timeout: 0; accepted: a time above 0")
    given = {"sgsns": list(sgsns), "card": card, **structs.asdict(options)}
    found = aka.mobile(given, progress=progress)
    attaches = found["attaches"]
    good = [one for one in attaches if one["failure"] is None]
    row = {
        "kind": "live",
        "suite": found["suite"],
        "sgsns": list(sgsns),
        "attaches": len(attaches),
        "completed": len(good),
        "failed": failures(attaches),
        "full": group([one for one in good if not one["resumed"]], samples=samples),
        "resumed": group([one for one in good if one["resumed"]], samples=samples),
        "echoed": None if options.data is None else sum(bool(one["echoed"]) for one in good),
    }
    reason = next((one["reason"] for one in attaches if one["failure"] is not None), None)
    return convert(row, LiveAttaches), reason


def _side_cost(side: Side, full: Estimate, resumed: Estimate) -> dict[str, Any]:
    """The processing times of a side, their basis, and the work without a cost."""
    costs: list[SideCost] = [getattr(one.work, side) for one in (full, resumed)]
    without_cost: list[dict[str, Any]] = []
    for part in (part for cost in costs for part in cost.without_cost):
        if part not in without_cost:
            without_cost.append(part)
    means = [math.fsum(cost.message_s.values()) for cost in costs]
    return {
        "full_s": means[0],
        "resumed_s": means[1],
        "basis": "unknown" if without_cost else costs[0].basis,
        "without_cost": without_cost,
    }


def failures(attaches: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    return dict(Counter(one["failure"] for one in attaches if one["failure"] is not None))


def group(attaches: Sequence[Mapping[str, Any]], *, samples: bool) -> dict[str, Any] | None:
    """Statistics of attaches that succeeded; None if there are none."""
    if not attaches:
        return None
    found: dict[str, Any] = {"attaches": len(attaches)}
    for time in _TIMES:
        values = [one.get(time) for one in attaches]
        found[time] = None if None in values else spread(values, samples=samples)
    for bytes_each_way in ("handshake_bytes", "wire_bytes"):
        pairs = [one.get(bytes_each_way) for one in attaches]
        if None in pairs:
            found[bytes_each_way] = None
        else:
            up, down = np.mean(np.array(pairs, float), axis=0)
            found[bytes_each_way] = {"up": float(up), "down": float(down)}
    for mean in ("queries", "sending_s", "receiving_s"):
        values = [one.get(mean) for one in attaches]
        found[mean] = None if None in values else float(np.mean(np.array(values, float)))
    return found


def spread(values: Sequence[Any], *, samples: bool) -> dict[str, Any]:
    array = np.array(values, float)
    p50, p95, p99 = (float(one) for one in np.quantile(array, (0.5, 0.95, 0.99)))
    least = least_values()
    found: dict[str, Any] = {
        "n": len(array),
        "mean": float(array.mean()),
        "sd": float(array.std(ddof=1)) if len(array) > 1 else None,
        "min": float(array.min()),
        "p50": p50,
        "p95": p95 if len(array) >= least["p95"] else None,
        "p99": p99 if len(array) >= least["p99"] else None,
        "max": float(array.max()),
    }
    if samples:
        found["samples"] = [float(one) for one in array]
    return found
