"""`simulate`: recorded handshakes, estimated on devices, replayed by a fleet of clients in virtual time."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from msgspec.structs import replace

from shakedown.errors import InputError
from shakedown.models import queueing
from shakedown.native import virtual_time
from shakedown.native.scenario import Fleet, HandshakeId, MeasureOptions, Stacks
from shakedown.prediction.library import announce, resumed_of
from shakedown.prediction.predict import each
from shakedown.prediction.scenario import Scenario as Estimate
from shakedown.schema.base import convert
from shakedown.schema.simulated import ClosedForm, FailedSimulation, Simulated
from shakedown.simulation.arrivals import FROM_FILE, Arrivals
from shakedown.simulation.deployment import Site
from shakedown.simulation.figures import (
    cost_basis,
    figures,
    is_limited,
    spread,
)
from shakedown.simulation.fleet import Settled, settle
from shakedown.simulation.memory_limit import check_room
from shakedown.simulation.pieces import Pool, Work, in_pieces
from shakedown.simulation.spec import Client, simulation_spec, varying_handshake_spec, with_lowest_work

Progress = Callable[[int, int], None]


def simulate(
    suites: Sequence[str],
    fleet: Fleet,
    site: Site,
    *,
    endpoints: Stacks | None = None,
    pool: Pool | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> list[Simulated | FailedSimulation]:
    """Simulate a fleet of each suite, one row per suite. The same seed gives the same rows.

    A suite that cannot be simulated has a row with the reason. If no suite can be simulated, the first error
    is raised. Raises `InputError`.

    Args:
        endpoints: run the protocol engines of these stacks, with real cryptography, instead of a replay.
        pool: the processes that simulate pieces of the fleets, without `endpoints`; None: this process.
        progress: called with the number of completed clients, the number of all clients, and the suite.
    """
    settled = settle(fleet if endpoints is None else fleet_of_engines(fleet))
    works: list[Work[dict[str, Any]]] = []

    def one(suite: str) -> Job | Simulated | FailedSimulation:
        found = site.estimate(suite, from_idle=fleet.from_idle)
        resumed = site.estimate(resumed_of(found.trace.suite)) if settled.fleet.resumption > 0.0 else None
        labelled = None if progress is None else _labelled(progress, found.trace.suite)
        job = Job(found, resumed, settled, site.server_workers, site.draws)
        if pool is None:
            return run(job, endpoints, labelled)
        spec = job.spec()
        if pool.is_here():
            check_room([job.client], settled, site.server_workers, spec)
        works.append(in_pieces(spec, found.trace.suite, pool.threads()))
        return job

    announce(site.library, suites)
    made = each(suites, one, lambda row: convert(row, FailedSimulation), site.names)
    reports = iter(()) if pool is None else pool.results(works)
    rows: list[Simulated | FailedSimulation] = []
    for number, found in enumerate(made, start=1):
        if isinstance(found, Job):
            found = row(found, next(reports))
            if progress is not None:
                progress(number, number, found.suite)
        rows.append(found)
    return rows


def _labelled(progress: Callable[[int, int, str], None], label: str) -> Progress:
    return lambda done, total: progress(done, total, label)


ENDPOINT_CLIENTS = 1000
"""Default number of clients with protocol engines: their cryptography takes about a second."""


def fleet_of_engines(fleet: Fleet) -> Fleet:
    """The fleet for protocol engines; it has fewer clients by default.

    Raises `InputError` for options that only a replay supports.
    """
    for name, given, accepted in (
        ("resumption", fleet.resumption > 0.0, "0, or a suite that resumes"),
        ("sessions", fleet.sessions is not None, "none"),
        ("discipline", fleet.discipline != "fifo", "fifo"),
        ("servers", fleet.servers != 1, "1"),
        ("max handshakes", fleet.max_handshakes is not None, "none"),
        ("accept queue", fleet.accept_queue is not None, "none"),
        ("admission", fleet.admission is not None, "none"),
        ("records", fleet.records is not None, "none"),
        ("autoscale", fleet.autoscale is not None, "none"),
    ):
        if given:
            raise InputError(f"{name} is not supported with endpoints; accepted: {accepted}")
    kind = fleet.arrivals.strip().lower().partition(":")[0]
    if fleet.clients is None and kind not in (*FROM_FILE, "diurnal"):
        return replace(fleet, clients=ENDPOINT_CLIENTS)
    return fleet


@dataclass(frozen=True)
class Job:
    """A simulation as plain data, which can run in this process or in another one."""

    estimate: Estimate
    resumed: Estimate | None
    settled: Settled
    workers: int
    seed: int

    @cached_property
    def client(self) -> Client:
        """The one kind of client."""
        return with_lowest_work([Client(self.estimate, self.resumed)], self.settled)[0]

    def spec(self) -> dict[str, Any]:
        """The core's scenario."""
        return simulation_spec([self.client], self.settled, workers=self.workers, seed=self.seed)


def run(job: Job, endpoints: Stacks | None = None, progress: Progress | None = None) -> Simulated:
    """Simulate the fleet of one estimated handshake. Raises `InputError`."""
    spec = job.spec()
    check_room([job.client], job.settled, job.workers, spec, engines=endpoints is not None)
    if endpoints is None:
        return row(job, virtual_time.simulate(spec, progress=progress))
    handshake = HandshakeId(
        suite=job.estimate.trace.suite, client_stack=endpoints.client, server_stack=endpoints.server
    )
    # Messages without a flight are tickets.
    options = MeasureOptions(tickets=sum(one.flight is None for one in job.estimate.trace.messages) or None)
    found = virtual_time.with_endpoints(handshake, spec, options, progress)
    report = found["report"]
    if job.settled.precision is not None:
        # `found["replayed"]` has another seed and length.
        report["precision"] = virtual_time.simulate(spec)["precision"]
    return row(job, report, found)


NEGLIGIBLE_WAIT = 0.01
"""Times within 1 % count as equal in the comparison, so waits up to this share of the mean time until ready
do not matter.
"""


def are_independent(settled: Settled, report: Mapping[str, Any]) -> bool:
    """Whether the times of different clients are independent: each has its own link, and 95 % of them hardly
    wait for the server.
    """
    mean_s, wait_s = report["handshake_s"]["mean"], report["client_wait_s"]["p95"]
    if settled.fleet.cells is not None or mean_s is None or wait_s is None:
        return False
    return bool(wait_s <= NEGLIGIBLE_WAIT * mean_s)


def compared(found: Mapping[str, Any], settled: Settled) -> dict[str, Any]:
    """The part of a row that compares engines with a replay. Critical distances require independence."""
    engines, replayed = found["report"]["handshake_s"], found["replayed"]["handshake_s"]
    known = engines["mean"] and replayed["mean"]
    return {
        "client_stack": found["client_stack"],
        "server_stack": found["server_stack"],
        "replayed": {
            "clients": found["replayed"]["clients"],
            "ready_s": spread(replayed),
            "mean_ratio": replayed["mean"] / engines["mean"] if known else None,
            "distance": found["distance"],
            "critical": found["critical"] if are_independent(settled, found["replayed"]) else None,
        },
    }


def row(job: Job, report: Mapping[str, Any], engines: Mapping[str, Any] | None = None) -> Simulated:
    """The core's report as a row; `engines` is the core's report of protocol engines."""
    estimate, settled = job.estimate, job.settled
    found: dict[str, Any] = {
        **estimate.names,
        "kind": "simulated",
        **figures(report, settled, [job.client], workers=job.workers, seed=job.seed),
        "resumption": settled.fleet.resumption,
        "handshake_bytes": estimate.handshake_bytes._asdict(),
        "unused_key_share_s": estimate.unused_key_share_s,
        "modelled": closed_form(estimate, settled.arrivals, job),
        **cost_basis(job.client, settled),
    }
    if engines is not None:
        found["endpoints"] = compared(engines, settled)
    return convert(found, Simulated)


def closed_form(one: Estimate, arrivals: Arrivals, job: Job) -> ClosedForm | None:
    """The same figures by formulas, which ignore timeouts. None for arrivals that are not Poisson, servers
    that may refuse clients, autoscaling, retries, resumption, data after the handshake, processor sharing,
    several servers without `hash`, and work without a cost figure.
    """
    rate = arrivals.rate_per_s
    if arrivals.kind != "poisson" or rate is None or job.resumed is not None:
        return None
    fleet = job.settled.fleet
    if is_limited(job.settled) or fleet.autoscale is not None or fleet.records is not None:
        return None
    if job.settled.retries or fleet.discipline == "ps" or one.missing:
        return None
    if fleet.servers > 1 and fleet.balance != "hash":
        return None
    # A random split of Poisson arrivals is Poisson at each server.
    at_each = rate / fleet.servers
    wait_s = float(one.wait_s("default", np.array([at_each]), job.workers)[0])
    steady = math.isfinite(wait_s)
    ready, _ = one.unloaded()
    return ClosedForm(
        rate_per_s=rate,
        utilisation=min(1.0, float(queueing.utilisation(at_each, one.service_s.mean, job.workers))),
        queue_wait_s=wait_s if steady else None,
        flights_queue_wait_s=flights_wait_s(one, at_each) if steady and job.workers == 1 else None,
        ready_s=ready.mean + wait_s if steady else None,
    )


def jobs(one: Estimate) -> list[tuple[float, float]]:
    """The mean and second moment of the time of each of the server's jobs in a handshake.

    A job begins when a flight of the client arrives and ends with the server's answer.
    """
    found: list[list[float]] = []
    before = None
    for message in varying_handshake_spec(one)["messages"]:
        own = message["from"] == "server"
        mean_s, variance = moments(message["generate" if own else "process"])
        if not found or (before == "server" and not own):
            found.append([0.0, 0.0])
        found[-1][0] += mean_s
        found[-1][1] += variance
        before = message["from"]
    return [(mean_s, mean_s**2 + variance) for mean_s, variance in found]


def moments(work: Mapping[str, Any]) -> tuple[float, float]:
    """Mean and variance of a processing time in the form of `prediction.spec.work_spec`."""
    if work["kind"] == "constant":
        return work["s"], 0.0
    if work["kind"] == "exponential":
        return work["mean_s"], (work["mean_s"] - work["minimum_s"]) ** 2
    spread = math.exp(work["sigma"] ** 2)
    mean_s = work["median_s"] * math.sqrt(spread)
    return mean_s, mean_s**2 * (spread - 1.0)


def flights_wait_s(one: Estimate, rate_per_s: float) -> float | None:
    """Mean sum of the waits of a handshake whose jobs arrive independently: n λ Σ E[S²] / (2 (1 - ρ)).

    Exact in the limit of long round trips, compared with the correlation time of the queue.
    """
    work = [job for job in jobs(one) if job[0] > 0.0]
    busy = rate_per_s * math.fsum(mean_s for mean_s, _ in work)
    if busy >= 1.0:
        return None
    return len(work) * rate_per_s * math.fsum(second for _, second in work) / (2.0 * (1.0 - busy))
