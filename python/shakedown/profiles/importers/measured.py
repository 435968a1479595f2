"""Reading ``measure --json``: the primitives in handshakes on a machine, and the stack's own work."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from shakedown.errors import InputError
from shakedown.files.limits import parse_json
from shakedown.profiles.costs import Triple
from shakedown.profiles.importers import cooling
from shakedown.profiles.importers.common import Figures, Imported, Primitives
from shakedown.profiles.importers.joined import joined
from shakedown.profiles.overhead import handshake_kind, is_public_key, message_key, message_kind
from shakedown.profiles.vocabulary import SYMMETRIC_OPERATIONS, triple_fault
from shakedown.schema.profiles import Cooling

REJECTION_LOOPS = {("sign", "mldsa")}
"""Calls whose mean differs from their median."""
CONNECTION = ("server_us", "client_us", "server_cold", "client_cold", "sd_us", "per_kib_us")
"""Figures of a measured connection."""
_TRIPLE = ("operation", "algorithm", "parameters")
MIN_SLOPE_KIB = 1.0
"""A cost per KiB is fitted if the sizes of messages of one kind differ by more than this."""


def read_ours(text: str) -> Imported:
    """Read ``measure --json``, ``primitives --json``, or the output of ``shakedown-probe --handshakes``:
    primitives measured alone, handshakes and a connection of a device. Other text yields no figures.
    """
    try:
        document = parse_json(text, "")
    except InputError:
        return Imported()
    if isinstance(document, list):
        if _are_timings(document):
            return Imported(as_primitives(document))
        return summarise(entry for entry in document if isinstance(entry, dict))
    if not isinstance(document, dict):
        return Imported()
    timed, handshakes = document.get("primitives"), document.get("handshakes")
    if not isinstance(timed, list) or not isinstance(handshakes, list) or not _are_timings(timed):
        return Imported()
    alone = as_primitives(timed)
    found = summarise((entry for entry in handshakes if isinstance(entry, dict)), alone)
    found.primitives = joined(alone, found.primitives)
    connection = document.get("connection")
    if isinstance(connection, dict):
        found.connection = {key: float(connection[key]) for key in CONNECTION}
    return found


def summarise(entries: Iterable[dict[str, Any]], alone: Primitives | None = None) -> Imported:
    """Summarises measured handshakes: the median of each public-key call, symmetric work fitted to calls and
    bytes, and the remaining time of each kind of message as a mean and a cost per KiB. Where handshakes do
    not determine a primitive's cost of a KiB, it is that of primitives measured `alone`.
    """
    found = Imported()
    rows = list(entries)
    whole = _undisturbed([entry for entry in rows if _is_whole(entry)])
    fitted = cooling.fit(whole, _rests(whole))
    stack_names = list(map(cooling.stack_name, rows))
    usual_stack = max(sorted(set(stack_names)), key=stack_names.count, default="")
    places: dict[tuple[str, str], _Figures] = defaultdict(_Figures)
    for entry in rows:
        factor = fitted.of_symmetric(cooling.public_us(entry) * 1e-6) if _is_whole(entry) else 1.0
        names = {message["index"]: message["name"] for message in entry.get("messages") or ()}
        protocol = "" if cooling.stack_name(entry) == usual_stack else str(entry["suite"]).split("/", 1)[0]
        for operation in _operations(entry):
            triple = (operation["operation"], operation["algorithm"], operation["parameters"] or "")
            fault = triple_fault(*triple)
            if fault:
                found.omitted.append(f"{' '.join(triple)}: {fault}")
                continue
            # In Certificate messages, keys are decoded from certificates, and issuers' keys are reused.
            inside = not protocol and triple[0] not in SYMMETRIC_OPERATIONS
            certificate = inside and names.get(operation["message"]) == "Certificate"
            place = (protocol, "Certificate" if certificate else "")
            places[place].add(triple, operation, factor)
    found.primitives = places["", ""].costs(alone or {}) if ("", "") in places else {}
    elsewhere: list[dict[str, Any]] = []
    for (protocol, message), figures in sorted(places.items()):
        if (protocol, message) == ("", ""):
            continue
        for triple, cost in sorted(figures.costs(alone or {}).items()):
            where = dict(zip(("protocol", "message", *_TRIPLE), (protocol, message, *triple), strict=True))
            elsewhere.append({**{key: value for key, value in where.items() if value}, **cost})
    found.omitted = sorted(set(found.omitted))
    found.overhead = {**stack_rows(whole, fitted), "primitive": elsewhere}
    if fitted.messages or fitted.symmetric:
        found.cooling = cooling.row(fitted)
    stacks = [entry.get("client_stack") or entry.get("stack") for entry in rows]
    names_of = {f"{one['name']} {one.get('version', '')}".strip() for one in stacks if isinstance(one, dict)}
    found.stack = ", ".join(sorted(names_of))
    return found


class _Figures:
    """Times of operations in one protocol and message."""

    def __init__(self) -> None:
        self.calls: dict[Triple, list[tuple[float, float]]] = defaultdict(list)
        self.bulk: dict[Triple, list[tuple[float, float, float]]] = defaultdict(list)

    def add(self, triple: Triple, operation: dict[str, Any], factor: float) -> None:
        """Add an operation's time; ``factor`` is the slowdown of symmetric work in this handshake."""
        count = 1 if operation["count"] is None else float(operation["count"])
        time_us = float(operation["us"] if "us" in operation else operation["mean_us"])
        if triple[0] in SYMMETRIC_OPERATIONS:
            self.bulk[triple].append((count, float(operation["bytes"] or 0), time_us / factor))
        elif count:
            slower = factor if triple[0] == "import" else 1.0
            self.calls[triple].append((time_us / count / slower, float(operation["mean_us"]) / count))

    def costs(self, alone: Primitives) -> Primitives:
        """The cost of each operation: the median over handshakes, or the mean for rejection loops."""
        found: Primitives = {}
        for triple, times in self.calls.items():
            if triple[:2] in REJECTION_LOOPS:
                found[triple] = {"mean_us": statistics.fmean(mean for _, mean in times)}
            else:
                found[triple] = {"time_us": statistics.median(middle for middle, _ in times)}
        for triple, figures in self.bulk.items():
            cost = fit_symmetric(figures, alone.get(triple, {}).get("per_kib_us", 0.0))
            if any(cost.values()):
                found[triple] = cost
        return found


def _is_whole(entry: dict[str, Any]) -> bool:
    return (
        isinstance(entry.get("messages"), list | tuple)
        and "handshake" in entry
        and len(_operations(entry)) == len(entry.get("operations") or ())
    )


def _undisturbed(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Removes suites of which more repetitions were preempted than used, because other programs left their
    caches cold; not if these are more than half of a protocol's suites.
    """
    protocols: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for one in entries:
        protocols[str(one["suite"]).split("/", 1)[0]].append(one)
    found: list[dict[str, Any]] = []
    for alike in protocols.values():
        kept = [one for one in alike if one.get("preempted", 0) <= one.get("repeat", 1)]
        found += kept if 2 * len(kept) >= len(alike) else alike
    return found


def _operations(entry: dict[str, Any]) -> list[dict[str, Any]]:
    if not isinstance(entry.get("operations"), list | tuple):
        return []
    keys = {*_TRIPLE, "count", "bytes", "mean_us"}
    return [operation for operation in entry["operations"] if keys <= operation.keys()]


def fit_symmetric(rows: Sequence[tuple[float, float, float]], kib_us: float = 0.0) -> dict[str, float]:
    """Least squares of time = calls · a + KiB · b, each row weighted by its time. If the rows leave b
    undetermined or below zero, b is `kib_us`. Costs of zero are omitted.
    """
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
        per_call, per_kib = (ct - kib_us * ck) / cc, kib_us
    elif per_call < 0.0 and kk > 0.0:
        per_call, per_kib = 0.0, kt / kk
    return {key: us for key, us in (("per_call_us", per_call), ("per_kib_us", per_kib)) if us > 0.0}


_Kind = tuple[str, str, str, str]
"""Protocol (from `handshake_kind`), message, work, and the public-key work in the message."""


def _rests(entries: Sequence[dict[str, Any]]) -> dict[_Kind, list[tuple[int, float]]]:
    """By kind of message: the entry's index, and the message's time without primitives."""
    found: dict[_Kind, list[tuple[int, float]]] = defaultdict(list)
    for index, entry in enumerate(entries):
        for kind, _, rest_us in _left(entry):
            found[kind].append((index, rest_us))
    return found


def _left(entry: dict[str, Any]) -> Iterable[tuple[_Kind, float, float]]:
    """Each message's kind, KiB, and time without primitives in microseconds."""
    operations = _operations(entry)
    public_keys = any(is_public_key(one["operation"]) for one in operations)
    protocol = handshake_kind(str(entry["suite"]).split("/", 1)[0], public_keys=public_keys)
    taken: dict[tuple[str, object], float] = defaultdict(float)
    inside: dict[tuple[str, object], list[Triple]] = defaultdict(list)
    for one in operations:
        where = (one["side"], one["message"])
        taken[where] += float(one.get("us", one["mean_us"]))
        inside[where].append((one["operation"], one["algorithm"], one["parameters"] or ""))
    for message in entry["messages"]:
        sender = message["from"]
        receiver = "server" if sender == "client" else "client"
        name = message_kind(message["name"], message["bytes"])
        kib = float(message["bytes"]) / 1024.0
        for side, work in ((sender, "generate"), (receiver, "process")):
            where = (side, message["index"])
            rest_us = max(0.0, float(message[f"{work}_us"]) - taken[where])
            yield (protocol, name, work, message_key(inside[where])), kib, rest_us


def stack_rows(entries: Sequence[dict[str, Any]], fitted: Cooling) -> dict[str, list[dict[str, Any]]]:
    """Rows of ``[[overhead.message]]`` and ``[[overhead.handshake]]``: messages' times without primitives.

    The times are medians over the handshakes, by protocol, kind of message, generation or processing, and
    public-key work in the message, with a cost per KiB if the sizes differ enough. A row without a key is the
    same over all messages of a kind, for other public-key work.
    """
    samples: dict[_Kind, list[tuple[float, float]]] = defaultdict(list)
    outside: dict[tuple[str, str], list[float]] = defaultdict(list)
    spreads: dict[tuple[str, str], list[float]] = defaultdict(list)
    for entry in entries:
        factor = fitted.of_messages(cooling.public_us(entry) * 1e-6)
        protocol = ""
        for (protocol, name, work, key), kib, rest_us in _left(entry):
            for one in {key, ""}:
                samples[protocol, name, work, one].append((kib, rest_us / factor))
        rest = entry.get("unattributed_us") or entry.get("remainder_us") or {}
        for side in ("client", "server"):
            outside[protocol, side].append(float(rest.get(side, 0.0)) / factor)
            times = entry["handshake"][f"{side}_us"]
            operations = sum(
                float(operation.get("us", operation["mean_us"]))
                for operation in _operations(entry)
                if operation["side"] == side and operation["operation"] not in SYMMETRIC_OPERATIONS
            )
            own = max(float(times["median"]) - operations, 0.0)
            spreads[protocol, side].append(min(float(times["sd"]), own))
    messages = [
        {
            "protocol": protocol,
            "name": kind,
            "work": work,
            **({"key": key} if key else {}),
            **_fit_message(rows),
        }
        for (protocol, kind, work, key), rows in sorted(samples.items())
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
    """The median of slopes between pairs whose sizes differ (Theil–Sen estimator)."""
    slopes = [
        (time - other_time) / (size - other)
        for index, (size, time) in enumerate(rows)
        for other, other_time in rows[:index]
        if abs(size - other) > MIN_SLOPE_KIB / 2.0
    ]
    return statistics.median(slopes) if slopes else 0.0


def as_primitives(timed: Iterable[dict[str, Any]]) -> Primitives:
    """Converts the output of ``primitives --json`` to primitives of a profile."""
    found = Figures("entries")
    for found.line, entry in enumerate(timed, start=1):
        triple = (entry["operation"], entry["algorithm"], entry["parameters"] or "")
        if triple_fault(*triple):
            continue
        if triple[0] in SYMMETRIC_OPERATIONS:
            found[triple] = {key: float(entry[key]) for key in ("per_call_us", "per_kib_us") if key in entry}
        else:
            spread = entry["us"]
            if triple[:2] in REJECTION_LOOPS:
                found[triple] = {"mean_us": float(spread["mean"]), "sd_us": float(spread["sd"])}
            else:
                found[triple] = {"time_us": float(spread["median"])}
    return {triple: cost for triple, cost in found.items() if any(cost.values())}


def _are_timings(entries: list[Any]) -> bool:
    keys = {*_TRIPLE, "us"}
    return all(isinstance(one, dict) and keys <= one.keys() for one in entries)
