"""Reading ``measure --json``: what each primitive took inside the handshakes measured on a machine."""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from typing import Any

from shakedown.profiles.device import Triple
from shakedown.profiles.importers.common import Primitives
from shakedown.profiles.vocabulary import SYMMETRIC_OPERATIONS


def read_measurements(text: str) -> Primitives:
    """Take the median over the handshakes of each public-key call's mean, and fit symmetric work to calls
    and bytes.
    """
    try:
        entries = json.loads(text)
    except json.JSONDecodeError:
        return {}
    if not isinstance(entries, list):
        return {}
    calls: dict[Triple, list[float]] = defaultdict(list)
    bulk: dict[Triple, list[tuple[int, int, float]]] = defaultdict(list)
    for entry in entries:
        for operation in _operations(entry):
            triple = (operation["operation"], operation["algorithm"], operation["parameters"] or "")
            count = 1 if operation["count"] is None else int(operation["count"])
            if triple[0] in SYMMETRIC_OPERATIONS:
                bulk[triple].append((count, int(operation["bytes"] or 0), float(operation["mean_us"])))
            elif count:
                calls[triple].append(float(operation["mean_us"]) / count)
    found: Primitives = {triple: {"time_us": statistics.median(times)} for triple, times in calls.items()}
    for triple, rows in bulk.items():
        cost = _fit(rows)
        if any(cost.values()):
            found[triple] = cost
    return found


def _operations(entry: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - JSON has any type
    if not isinstance(entry, dict) or not isinstance(entry.get("operations"), list):
        return []
    keys = {"operation", "algorithm", "parameters", "count", "bytes", "mean_us"}
    return [operation for operation in entry["operations"] if keys <= operation.keys()]


def _fit(rows: list[tuple[int, int, float]]) -> dict[str, float]:
    """Least squares of time = calls · a + KiB · b, neither below zero."""
    cc = sum(calls * calls for calls, _, _ in rows)
    ck = sum(calls * size / 1024 for calls, size, _ in rows)
    kk = sum((size / 1024) ** 2 for _, size, _ in rows)
    ct = sum(calls * time for calls, _, time in rows)
    kt = sum(size / 1024 * time for _, size, time in rows)
    determinant = cc * kk - ck * ck
    per_call = (ct * kk - kt * ck) / determinant if determinant > 1e-9 * cc * kk else -1.0
    per_kib = (kt * cc - ct * ck) / determinant if determinant > 1e-9 * cc * kk else -1.0
    if per_kib < 0.0 and cc > 0.0:
        per_call, per_kib = ct / cc, 0.0
    elif per_call < 0.0 and kk > 0.0:
        per_call, per_kib = 0.0, kt / kk
    return {"per_call_us": max(per_call, 0.0), "per_kib_us": max(per_kib, 0.0)}
