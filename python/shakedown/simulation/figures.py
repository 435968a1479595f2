"""The core's report of a fleet as figures with ranges, bases and bounds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import reduce
from typing import Any

from shakedown.models.ranges import Range
from shakedown.prediction.bounds import bounds, simulated
from shakedown.prediction.energy import terms
from shakedown.prediction.figures import weakest
from shakedown.prediction.work import SideCost, basis_of, known_basis
from shakedown.schema.base import Basis
from shakedown.simulation.fleet import PRECISION, Settled
from shakedown.simulation.records import Records
from shakedown.simulation.spec import Client

_MARGINS = ("p50_margin", "p90_margin", "p95_margin", "p99_margin")
_SPREAD = ("n", "mean", "min", "p50", "p90", "p95", "p99", "max", *_MARGINS)


def cost_basis(client: Client, settled: Settled) -> dict[str, Any]:
    """The basis of the costs of a kind of client, and its work without a cost figure."""
    sides = [*client.sides(), *after_handshake(client, settled)]
    without_cost = {tuple(one.items()): one for side in sides for one in side.without_cost}
    return {
        "basis": basis_of(sides),
        "without_cost": list(without_cost.values()),
        "extrapolated": [*client.full.client.figures, *client.full.server.figures],
    }


def after_handshake(client: Client, settled: Settled) -> list[SideCost]:
    """The server's work on all data that a client sends after its handshake."""
    cost = client.record(settled)
    return [] if cost is None or settled.records is None else [cost.repeated(settled.records.count)]


def is_limited(settled: Settled) -> bool:
    """Whether servers may refuse clients."""
    fleet = settled.fleet
    limits = (fleet.max_handshakes, fleet.accept_queue, fleet.admission)
    return any(one is not None for one in limits)


def may_shorten_times(settled: Settled, report: Mapping[str, Any]) -> bool:
    """Whether work without a cost figure may shorten times, so that the computed ones are no lower bounds. It
    may change the load, or separate the messages of a cell's clients, which then compete less.
    """
    return settled.fleet.cells is not None or may_change_load(settled, report)


def may_change_load(settled: Settled, report: Mapping[str, Any]) -> bool:
    """Whether more work may end attempts early (they may be repeated), or make autoscaling start servers."""
    ends_early = is_limited(settled) or settled.timeout_s is not None or bool(report["attempt_failures"])
    return ends_early or settled.autoscaling is not None


SATURATED = 0.99
"""From this utilisation on, workers are considered to have no idle time."""


def is_unstable(
    settled: Settled, report: Mapping[str, Any], missing: Sequence[str], carries: float | None
) -> bool | None:
    """Whether more work arrives than the workers can do; None without a steady rate, or if it is unknown.

    An attempt that ends early leaves work undone, and a client that tries again adds work. If attempts
    failed, the answer is therefore known only if the workers' idle time agrees with the computed load. Work
    without a figure may make attempts end early. `carries` is the result of `carried`.
    """
    if report["offered"] is None:
        return None
    unstable = bool(report["unstable"])
    if missing:
        return True if unstable and not may_change_load(settled, report) else None
    if not unstable and settled.fleet.max_handshakes is not None:
        # Clients that wait to be accepted cause no work yet.
        precision = report["precision"]
        if carries is not None or not (precision and precision["is_settled"]):
            return None
    saturated = report["utilisation"] >= SATURATED
    return unstable if unstable == saturated or not report["attempt_failures"] else None


def carried(settled: Settled, report: Mapping[str, Any], missing: Sequence[str]) -> float | None:
    """The share of the arriving clients whose handshakes the servers complete in the same time, if
    `max_handshakes` does not permit all; else None. None also without a steady rate, and if anything else may
    reduce the work done.
    """
    elsewhere = report["access"] is not None and report["access"]["saturated"]
    if settled.fleet.max_handshakes is None or settled.autoscaling is not None or missing or elsewhere:
        return None
    if not report["offered"] or report["unstable"] or report["attempt_failures"]:
        return None
    done = float(report["utilisation"] / report["offered"])
    return done if done < 1.0 - max(PRECISION, 3.0 / math.sqrt(report["clients"])) else None


def figures(
    report: Mapping[str, Any], settled: Settled, clients: Sequence[Client], *, workers: int, seed: int
) -> dict[str, Any]:
    """The figures of any fleet, with one kind of client or several."""
    fleet, arrivals = settled.fleet, settled.arrivals
    records = [cost for one in clients for cost in after_handshake(one, settled)]
    handshakes = missing_of(side for one in clients for side in one.sides("server"))
    servers = list(dict.fromkeys([*handshakes, *missing_of(records)]))
    everything = missing_of([*(side for one in clients for side in one.sides()), *records])
    # The arrival of a client's next flight depends on the client's work. If a flight arrives later, its
    # wait may become longer or shorter.
    clients_missing = len(everything) > len(servers)
    limited = is_limited(settled)
    bounded_times = not everything or not may_shorten_times(settled, report)
    bounded_waits = bounded_times and not clients_missing
    # If clients are slower, the run is longer, and the same work is a smaller share of it.
    depends_on_length = clients_missing and report["offered"] is None
    bounded_load = bounded_times and not depends_on_length
    basis = known_basis([*(side for one in clients for side in one.sides()), *records])
    energy, energy_basis, bounded, wake_tail = _energies(clients, settled)
    last_s = report["last_ready_s"] if bounded_times and report["completed"] else None
    carries = carried(settled, report, everything)

    def times(name: str, *, bounded: bool = bounded_times) -> dict[str, Any]:
        return spread(report[name], everything, bounded=bounded, basis=basis)

    def load(found: float, *, bounded: bool = bounded_load) -> dict[str, Any]:
        return simulated(found if bounded or not everything else None, basis, everything)

    found: dict[str, Any] = {
        "arrivals": arrivals.text,
        "rate_per_s": arrivals.rate_per_s,
        "clients": report["clients"],
        "completed": report["completed"],
        "failed": report["failed"],
        "attempts": report["attempts"],
        "ready_s": times("handshake_s"),
        "done_s": times("done_s"),
        "connect_s": times("connect_s")
        if fleet.cells is not None
        else spread(report["connect_s"], servers if limited else (), basis=basis if limited else None),
        "queue_wait_s": times("client_wait_s", bounded=bounded_waits),
        "job_wait_s": times("queue_wait_s", bounded=bounded_waits),
        # If any cost is missing, the server's costs are also at their lower bounds (`spec.with_lowest_work`).
        "utilisation": load(report["utilisation"]),
        "offered": None if report["offered"] is None else simulated(report["offered"], basis, everything),
        "unstable": is_unstable(settled, report, everything, carries),
        "carried": carries,
        "workers": workers,
        "servers": fleet.servers,
        "balance": fleet.balance,
        "discipline": fleet.discipline,
        "admission": _admission(settled, report["admissions"]),
        "autoscaling": report["scaling"],
        "energy_j": spread(report["energy_j"], energy, bounded=bounded, basis=energy_basis),
        "wake_tail_j": wake_tail,
        "energy_terms": list(
            dict.fromkeys(terms(one.full.bearer, from_idle=one.full.from_idle) for one in clients)
        ),
        "missing": everything,
        "virtual_s": report["virtual_s"],
        "recovery_s": simulated(None if any(report["failed"].values()) else last_s, basis, everything),
        "last_ready_s": simulated(last_s, basis, everything),
        "peak_in_flight": report["peak_in_flight"],
        "traffic": report["traffic"],
        "from_idle": fleet.from_idle,
        "cells": fleet.cells,
        "access": _access(report["access"]),
        "own_links": _own_links(settled, clients),
        "timeout_s": settled.timeout_s,
        "retries": settled.retries,
        "pauses": asdict(settled.backoff) if settled.retries else None,
        "tcp": clients[0].full.bearer.tcp if not all(one.full.trace.datagrams for one in clients) else None,
        "replications": report["replications"],
        "warmup_clients": report["warmup_clients"] // report["replications"],
        "cooldown_clients": report["cooldown_clients"] // report["replications"],
        "precision": report["precision"],
        "seed": seed,
    }
    if settled.records is not None:
        sent = report["records"]
        found["records"] = {
            **_sent(settled.records, clients, settled),
            # More work on handshakes leaves a saturated server less time for data.
            "utilisation": load(
                sent["utilisation"],
                bounded=bounded_load and not handshakes and report["offered"] is not None,
            ),
            "wait_s": spread(sent["wait_s"], everything, bounded=bounded_waits, basis=basis),
            "peak_open": sent["peak_open"],
            "not_simulated": _due_later(settled, report),
        }
    if report["series_s"] > 0.0:
        found["series_s"] = report["series_s"]
        found["series"] = [
            {"start_s": number * report["series_s"], **interval}
            for number, interval in enumerate(report["series"])
        ]
    return found


def _admission(settled: Settled, found: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The token bucket of each server, and the counts of connections; None without one."""
    one = settled.admission
    if one is None or found is None:
        return None
    return {"rate_per_s": one.rate_per_s, "burst": one.burst, "refuse": one.refuse, **found}


def _sent(one: Records, clients: Sequence[Client], settled: Settled) -> dict[str, Any]:
    """The data that clients send after their handshakes, and the work on it."""
    costs = [(client.weight, cost) for client in clients if (cost := client.record(settled)) is not None]
    parts = [cost for _, cost in costs]
    whole = math.fsum(weight for weight, _ in costs)
    work = reduce(Range.plus, [cost.whole.times(weight / whole) for weight, cost in costs])
    basis, unknown = known_basis(parts), missing_of(parts)
    return {
        "bytes_per_s": one.bytes_per_s,
        "size_bytes": one.size_bytes,
        "interval_s": one.interval_s,
        "count": one.count,
        "work_s": bounds(work, basis, unknown),
        "extrapolated": [row for cost in parts for row in cost.figures],
    }


def _due_later(settled: Settled, report: Mapping[str, Any]) -> int | None:
    """How often clients of a storm or of a file would send after the last handshake, where the run ends. None
    at a rate.
    """
    if settled.records is None or settled.arrivals.steady or settled.arrivals.kind == "curve":
        return None
    return max(0, int(report["completed"]) * settled.records.count - int(report["records"]["wait_s"]["n"]))


def _access(found: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The accesses to cells; None without cells."""
    if found is None:
        return None
    return {**found, "attempts": spread(found["attempts"]), "delay_s": spread(found["delay_s"])}


def _own_links(settled: Settled, clients: Sequence[Client]) -> bool:
    """Whether clients of a storm have their own links, although their bearer is a shared medium."""
    return (
        settled.fleet.cells is None
        and not settled.arrivals.steady
        and any(one.full.bearer.cell is not None for one in clients)
    )


def missing_of(sides: Iterable[SideCost]) -> list[str]:
    """The work of all sides without a cost figure."""
    return list(dict.fromkeys(one for side in sides for one in side.missing))


def _energies(clients: Sequence[Client], settled: Settled) -> tuple[list[str], Basis, bool, dict[str, Any]]:
    """Names of the unknown parts of the handshake's energy; basis of the known parts; whether the unknown
    ones are negligible; mean energy of waking and tail over all kinds of clients.
    """
    whole = math.fsum(one.weight for one in clients)
    found = [(one.weight / whole, one.full.energy(one.full.unloaded()[1].mean)) for one in clients]
    lacking = dict.fromkeys(part for _, energy in found for part in energy.missing)
    around = list(dict.fromkeys(part for _, energy in found for part in energy.wake_tail_missing))
    parts = [energy.wake_tail.times(share) for share, energy in found]
    mean = reduce(Range.plus, parts)
    bounded = all(energy.known for _, energy in found)
    if settled.retries and settled.fleet.from_idle:
        # A client that tries again may set up its radio again.
        lacking |= dict.fromkeys(around)
        bounded = bounded and not around
    return (
        list(lacking),
        weakest(energy.basis for _, energy in found),
        bounded,
        bounds(mean, weakest(energy.wake_tail_basis for _, energy in found), around),
    )


def spread(
    found: Mapping[str, Any],
    missing: Sequence[str] = (),
    *,
    bounded: bool = True,
    basis: Basis | None = None,
) -> dict[str, Any]:
    """Convert a distribution of the core's report to that of a row. If a cost is missing, the figures are
    lower bounds if `bounded`, else unknown.
    """
    known = bounded or not missing
    row = {name: found[name] if known or name == "n" else None for name in _SPREAD}
    margin = found["mean_margin"] if known else None
    if missing:
        # The lower bound of a statistic is the lower end of its interval, but at least the lower bound of any
        # smaller percentile.
        margins = {"mean": margin, **{name: row[f"{name}_margin"] for name in ("p50", "p90", "p95", "p99")}}
        least = row["min"] or 0.0
        for name, off in margins.items():
            value = row[name]
            row[name] = None if value is None else max(least, value - (off or 0.0))
            least = row[name] if row[name] and name != "mean" else least
    return {**row, "margin": margin, "basis": basis, "missing": list(missing)}
