"""Reading ``measure --json``: each primitive inside the handshakes of a machine, and its stack's own work."""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from shakedown.profiles.costs import Triple
from shakedown.profiles.importers.common import Imported, Primitives
from shakedown.profiles.overhead import handshake_kind, message_kind
from shakedown.profiles.vocabulary import SYMMETRIC_OPERATIONS, triple_fault

_NO_PUBLIC_KEY = {*SYMMETRIC_OPERATIONS, "import"}
MIN_SLOPE_KIB = 1.0
"""A cost per KiB is fitted where messages of one kind differ by more than this."""


def read_measurements(text: str) -> Imported:
    """Take the median over the handshakes of each public-key call, fit symmetric work to calls and bytes, and
    each kind of message's remaining time to a mean and a cost per KiB.
    """
    try:
        entries = json.loads(text)
    except json.JSONDecodeError:
        return Imported()
    if not isinstance(entries, list):
        return Imported()
    return summarise(entry for entry in entries if isinstance(entry, dict))


def summarise(entries: Iterable[dict[str, Any]]) -> Imported:
    """What measured handshakes say of a machine: primitives, and the stack's work by kind of message."""
    found = Imported()
    rows = list(entries)
    calls: dict[Triple, list[float]] = defaultdict(list)
    bulk: dict[Triple, list[tuple[float, float, float]]] = defaultdict(list)
    for entry in rows:
        for operation in _operations(entry):
            triple = (operation["operation"], operation["algorithm"], operation["parameters"] or "")
            fault = triple_fault(*triple)
            if fault:
                found.left_out.append(f"{' '.join(triple)}: {fault}")
                continue
            count = 1 if operation["count"] is None else float(operation["count"])
            time_us = float(operation["us"] if "us" in operation else operation["mean_us"])
            if triple[0] in SYMMETRIC_OPERATIONS:
                bulk[triple].append((count, float(operation["bytes"] or 0), time_us))
            elif count:
                calls[triple].append(time_us / count)
    found.primitives = {triple: {"time_us": statistics.median(times)} for triple, times in calls.items()}
    for triple, figures in bulk.items():
        cost = fit_symmetric(figures)
        if any(cost.values()):
            found.primitives[triple] = cost
    found.left_out = sorted(set(found.left_out))
    found.overhead = stack_rows(rows)
    stacks = [entry.get("client_stack") or entry.get("stack") for entry in rows]
    names = {f"{one['name']} {one.get('version', '')}".strip() for one in stacks if isinstance(one, dict)}
    found.stack = ", ".join(sorted(names))
    return found


def _operations(entry: dict[str, Any]) -> list[dict[str, Any]]:
    if not isinstance(entry.get("operations"), list | tuple):
        return []
    keys = {"operation", "algorithm", "parameters", "count", "bytes", "mean_us"}
    return [operation for operation in entry["operations"] if keys <= operation.keys()]


def fit_symmetric(rows: Sequence[tuple[float, float, float]]) -> dict[str, float]:
    """Least squares of time = calls · a + KiB · b, neither below zero, each row weighted by its time."""
    weights = [1.0 / max(time, 0.05) ** 2 for _, _, time in rows]
    weighted = [(w, calls, size / 1024.0, time) for w, (calls, size, time) in zip(weights, rows, strict=True)]
    cc = sum(w * calls * calls for w, calls, _, _ in weighted)
    ck = sum(w * calls * kib for w, calls, kib, _ in weighted)
    kk = sum(w * kib * kib for w, _, kib, _ in weighted)
    ct = sum(w * calls * time for w, calls, _, time in weighted)
    kt = sum(w * kib * time for w, _, kib, time in weighted)
    determinant = cc * kk - ck * ck
    per_call = (ct * kk - kt * ck) / determinant if determinant > 1e-9 * cc * kk else -1.0
    per_kib = (kt * cc - ct * ck) / determinant if determinant > 1e-9 * cc * kk else -1.0
    if per_kib < 0.0 and cc > 0.0:
        per_call, per_kib = ct / cc, 0.0
    elif per_call < 0.0 and kk > 0.0:
        per_call, per_kib = 0.0, kt / kk
    return {"per_call_us": max(per_call, 0.0), "per_kib_us": max(per_kib, 0.0)}


def stack_rows(entries: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Rows of ``[[overhead.message]]`` and ``[[overhead.handshake]]``: what is left of each message's time.

    The time of a message that no primitive took, by protocol, kind of message, and whether it was made or
    read: the median over the handshakes, with a cost per KiB where their sizes differ enough to show one.
    """
    samples: dict[tuple[str, str, str], list[tuple[float, float]]] = defaultdict(list)
    outside: dict[tuple[str, str], list[float]] = defaultdict(list)
    spreads: dict[tuple[str, str], list[float]] = defaultdict(list)
    for entry in entries:
        if not isinstance(entry.get("messages"), list | tuple) or "handshake" not in entry:
            continue
        public_keys = any(one["operation"] not in _NO_PUBLIC_KEY for one in _operations(entry))
        protocol = handshake_kind(str(entry["suite"]).split("/", 1)[0], public_keys=public_keys)
        taken: dict[tuple[str, object], float] = defaultdict(float)
        for operation in _operations(entry):
            taken[operation["side"], operation["message"]] += float(operation.get("us", operation["mean_us"]))
        for message in entry["messages"]:
            sender = message["from"]
            receiver = "server" if sender == "client" else "client"
            kind = message_kind(message["name"], message["bytes"])
            for side, work, key in ((sender, "generate", "generate_us"), (receiver, "process", "process_us")):
                rest = float(message[key]) - taken[side, message["index"]]
                samples[protocol, kind, work].append((float(message["bytes"]) / 1024.0, max(0.0, rest)))
        rest_us = entry.get("unattributed_us") or entry.get("remainder_us") or {}
        for side in ("client", "server"):
            outside[protocol, side].append(float(rest_us.get(side, 0.0)))
            times = entry["handshake"][f"{side}_us"]
            operations = sum(
                float(operation.get("us", operation["mean_us"]))
                for operation in _operations(entry)
                if operation["side"] == side and operation["operation"] not in SYMMETRIC_OPERATIONS
            )
            own = max(float(times["median"]) - operations, 0.0)
            spreads[protocol, side].append(min(float(times["sd"]), own))
    messages = [
        {"protocol": protocol, "name": kind, "work": work, **_fit_message(rows)}
        for (protocol, kind, work), rows in sorted(samples.items())
    ]
    handshakes = [
        {
            "protocol": protocol,
            "side": side,
            "mean_us": statistics.median(values),
            "sd_us": statistics.median(spreads[protocol, side]),
        }
        for (protocol, side), values in sorted(outside.items())
    ]
    return {"message": messages, "handshake": handshakes}


def _fit_message(rows: Sequence[tuple[float, float]]) -> dict[str, float]:
    sizes = [size for size, _ in rows]
    if len(rows) >= 4 and max(sizes) - min(sizes) > MIN_SLOPE_KIB:
        slope = _robust_slope(rows)
        if slope > 0.0:
            start = statistics.median(time - slope * size for size, time in rows)
            if start > 0.0:
                return {"mean_us": start, "per_kib_us": slope}
    return {"mean_us": statistics.median(time for _, time in rows)}


def _robust_slope(rows: Sequence[tuple[float, float]]) -> float:
    """The median of slopes between pairs whose sizes differ (Theil and Sen)."""
    slopes = [
        (time - other_time) / (size - other)
        for index, (size, time) in enumerate(rows)
        for other, other_time in rows[:index]
        if abs(size - other) > MIN_SLOPE_KIB / 2.0
    ]
    return statistics.median(slopes) if slopes else 0.0


def as_primitives(timed: Iterable[dict[str, Any]]) -> Primitives:
    """What ``primitives --json`` printed, as primitives of a profile."""
    found: Primitives = {}
    for entry in timed:
        triple = (entry["operation"], entry["algorithm"], entry["parameters"] or "")
        if triple_fault(*triple):
            continue
        if triple[0] in SYMMETRIC_OPERATIONS:
            found[triple] = {key: float(entry[key]) for key in ("per_call_us", "per_kib_us") if key in entry}
        else:
            found[triple] = {"time_us": float(entry["us"]["median"])}
    return {triple: cost for triple, cost in found.items() if any(cost.values())}


def read_primitives(text: str) -> Imported:
    """Read ``primitives --json``: medians of public-key calls, symmetric work by call and KiB."""
    try:
        entries = json.loads(text)
    except json.JSONDecodeError:
        return Imported()
    keys = {"operation", "algorithm", "parameters", "us"}
    if not isinstance(entries, list) or not all(
        isinstance(one, dict) and keys <= one.keys() for one in entries
    ):
        return Imported()
    return Imported(as_primitives(entries))
