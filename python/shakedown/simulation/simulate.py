"""`simulate`: recorded handshakes, priced on devices, replayed by a fleet of clients in virtual time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from msgspec.structs import replace

from shakedown import native
from shakedown.errors import InputError
from shakedown.models import queueing
from shakedown.native.scenario import Fleet, HandshakeId, Options
from shakedown.prediction.energy import UNPRICED_WORK
from shakedown.prediction.predict import each
from shakedown.prediction.scenario import Scenario as Priced
from shakedown.schema.base import convert
from shakedown.schema.simulated import ClosedForm, FailedSimulation, Simulated
from shakedown.simulation.arrivals import Arrivals
from shakedown.simulation.deployment import Site
from shakedown.simulation.fleet import Settled, settle
from shakedown.simulation.memory_limit import check_room
from shakedown.simulation.spec import Client, priced_spec, series_width_s, simulation_spec

Progress = Callable[[int, int], None]

_SPREAD = ("n", "mean", "min", "p50", "p90", "p95", "p99", "max")


def simulate(
    suites: Sequence[str],
    fleet: Fleet,
    site: Site,
    *,
    endpoints: Stacks | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> list[Simulated | FailedSimulation]:
    """Simulate a fleet of each suite: one row a suite. The same seed gives the same rows.

    A suite that cannot be simulated has a row that says why, where others can; alone, it is an error.

    Args:
        suites: suite names.
        fleet: when clients arrive, how many, how patient, how they are served.
        site: where they are, and the server.
        endpoints: run protocol engines of these stacks, with real cryptography, instead of replaying.
        progress: called with the clients done, of how many, and of which suite.

    Raises:
        InputError: naming what was wrong and what is accepted.
    """
    settled = settle(fleet if endpoints is None else endpoints.fleet(fleet))

    def one(suite: str) -> tuple[Priced, dict[str, Any]]:
        found = site.priced(suite, from_idle=fleet.from_idle)
        resumed = site.priced(resumed_of(found.trace.suite)) if fleet.resumption > 0.0 else None
        labelled = None if progress is None else _labelled(progress, found.trace.suite)
        job = Job(found, resumed, settled, site.server_workers, site.draws)
        return found, {"row": run(job, endpoints, labelled)}

    rows: list[Simulated | FailedSimulation] = []
    for _, found in each(suites, one, site.names):
        rows.append(found["row"] if "row" in found else convert(found, FailedSimulation))
    return rows


def _labelled(progress: Callable[[int, int, str], None], label: str) -> Progress:
    return lambda done, total: progress(done, total, label)


def resumed_of(suite: str) -> str:
    """The suite by which a client of this one resumes. Raises `InputError` where there is none."""
    about = native.describe(suite)
    if about.get("is_resumption"):
        raise InputError(f"{suite}: resumes already; accepted with a share of resumption: a full handshake")
    head, _, last = suite.rpartition("/")
    for name in (f"{suite}/resumed", f"{head}/resumed/{last}"):
        try:
            return native.canonical(name)
        except InputError:
            continue
    raise InputError(f"{suite}: its sessions are not resumed; accepted with it: a share of resumption of 0")


ENDPOINT_CLIENTS = 1000
"""As many as a second or so of real cryptography serves."""


@dataclass(frozen=True)
class Stacks:
    """Whose protocol engines run in virtual time; None: the suite's usual ones."""

    client: str | None = None
    server: str | None = None

    def fleet(self, fleet: Fleet) -> Fleet:
        """A fleet that engines can be asked to be: a smaller one, unless its size was given.

        Raises `InputError` for what only a replay has.
        """
        for name, given, accepted in (
            ("resumption", fleet.resumption > 0.0, "0, or a suite that resumes"),
            ("discipline", fleet.discipline != "fifo", "fifo"),
            ("max handshakes", fleet.max_handshakes is not None, "none"),
            ("accept queue", fleet.accept_queue is not None, "none"),
        ):
            if given:
                raise InputError(f"{name} goes with replayed handshakes; accepted with endpoints: {accepted}")
        if fleet.clients is None and not fleet.arrivals.strip().lower().startswith("file:"):
            return replace(fleet, clients=ENDPOINT_CLIENTS)
        return fleet


@dataclass(frozen=True)
class Job:
    """A simulation, ready to be run here or elsewhere: plain data in, a row out."""

    priced: Priced
    resumed: Priced | None
    settled: Settled
    workers: int
    seed: int

    def spec(self) -> dict[str, Any]:
        """What the core reads."""
        clients = [Client(self.priced, self.resumed)]
        width_s = series_width_s(clients, self.settled, self.workers)
        return simulation_spec(clients, self.settled, workers=self.workers, seed=self.seed, series_s=width_s)


def run(job: Job, endpoints: Stacks | None = None, progress: Progress | None = None) -> Simulated:
    """Simulates one priced handshake's fleet. Raises `InputError`."""
    check_room([Client(job.priced, job.resumed)], job.settled, job.workers, engines=endpoints is not None)
    if endpoints is None:
        return row(job, native.simulated_report(job.spec(), progress=progress))
    handshake = HandshakeId(
        suite=job.priced.trace.suite, client_stack=endpoints.client, server_stack=endpoints.server
    )
    found = native.simulate_endpoints(handshake, job.spec(), Options(), progress)
    return row(job, found["report"], found)


def compared(found: Mapping[str, Any]) -> dict[str, Any]:
    """Engines and replay side by side, as a row has them."""
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
            "critical": found["critical"],
        },
    }


def row(job: Job, report: Mapping[str, Any], engines: Mapping[str, Any] | None = None) -> Simulated:
    """The core's report as a row; `engines` is what the core says of endpoints."""
    priced, settled = job.priced, job.settled
    found: dict[str, Any] = {
        "suite": priced.trace.suite,
        "kind": "simulated",
        "device": priced.device.name,
        "server_device": priced.server_device.name,
        "bearer": priced.bearer.name,
        **figures(report, settled, [priced], workers=job.workers, seed=job.seed),
        "resumption": settled.fleet.resumption,
        "modelled": closed_form(priced, settled.arrivals, job),
        "basis": priced.basis,
        "unpriced": [*priced.client.unpriced, *priced.server.unpriced],
        "extrapolated": [*priced.client.figures, *priced.server.figures],
    }
    if engines is not None:
        found["endpoints"] = compared(engines)
    return convert(found, Simulated)


def figures(
    report: Mapping[str, Any], settled: Settled, clients: Iterable[Priced], *, workers: int, seed: int
) -> dict[str, Any]:
    """What is said of any fleet, of one kind of clients or of several."""
    missing = list(report["energy_missing"])
    if "processor" not in missing and any(one.client.unpriced for one in clients):
        missing.append(UNPRICED_WORK)
    fleet, arrivals = settled.fleet, settled.arrivals
    job_wait, client_wait = report["queue_wait_s"], dict(report["client_wait_s"])
    client_wait["mean_margin"] = _scaled_margin(job_wait, client_wait)
    found: dict[str, Any] = {
        "arrivals": arrivals.text,
        "rate_per_s": arrivals.rate_per_s,
        "clients": report["clients"],
        "completed": report["completed"],
        "failed": report["failed"],
        "attempts": report["attempts"],
        "ready_s": spread(report["handshake_s"]),
        "done_s": spread(report["done_s"]),
        "connect_s": spread(report["connect_s"]),
        "queue_wait_s": spread(client_wait),
        "job_wait_s": spread(job_wait),
        "utilisation": report["utilisation"],
        "offered": report["offered"],
        "unstable": report["unstable"],
        "workers": workers,
        "discipline": fleet.discipline,
        "energy_j": spread(report["energy_j"]),
        "energy_missing": missing,
        "virtual_s": report["virtual_s"],
        "recovery_s": report["last_ready_s"],
        "peak_in_flight": report["peak_in_flight"],
        "traffic": report["traffic"],
        "from_idle": fleet.from_idle,
        "timeout_s": settled.timeout_s,
        "retries": settled.retries,
        "replications": report["replications"],
        "warmup_clients": settled.warmup,
        "seed": seed,
    }
    if report["series_s"] > 0.0:
        found["series_s"] = report["series_s"]
        found["series"] = [
            {"start_s": number * report["series_s"], **interval}
            for number, interval in enumerate(report["series"])
        ]
    return found


def spread(found: Mapping[str, Any]) -> dict[str, Any]:
    """A distribution of the core's report as a row has it."""
    return {name: found[name] for name in _SPREAD} | {"margin": found["mean_margin"]}


def _scaled_margin(job: Mapping[str, Any], client: Mapping[str, Any]) -> float | None:
    """A client's waiting is that of its jobs, of which all clients have as many: margins are as the means."""
    if job["mean_margin"] is None or not job["mean"] or client["mean"] is None:
        return None
    return float(job["mean_margin"] * client["mean"] / job["mean"])


def closed_form(one: Priced, arrivals: Arrivals, job: Job) -> ClosedForm | None:
    """The same by formulas; None where they say nothing: for arrivals that are not Poisson, or mixtures."""
    rate = arrivals.rate_per_s
    if arrivals.kind != "poisson" or rate is None or job.resumed is not None:
        return None
    if job.settled.retries or job.settled.fleet.discipline == "ps":
        return None
    wait_s = float(one.wait_s("default", np.array([rate]), job.workers)[0])
    steady = math.isfinite(wait_s)
    ready, _ = one.unloaded()
    return ClosedForm(
        rate_per_s=rate,
        utilisation=float(queueing.utilisation(rate, one.service_s.mean, job.workers)),
        queue_wait_s=wait_s if steady else None,
        flights_queue_wait_s=flights_wait_s(one, rate) if steady and job.workers == 1 else None,
        ready_s=ready.mean + wait_s if steady else None,
    )


def jobs(one: Priced) -> list[tuple[float, float]]:
    """The server's jobs in a handshake, as mean and second moment of the time that each takes.

    A job begins with a flight of the client's, and ends with the answer.
    """
    found: list[list[float]] = []
    before = None
    for message in priced_spec(one)["messages"]:
        own = message["from"] == "server"
        mean_s, variance = moments(message["generate" if own else "process"])
        if not found or (before == "server" and not own):
            found.append([0.0, 0.0])
        found[-1][0] += mean_s
        found[-1][1] += variance
        before = message["from"]
    return [(mean_s, mean_s**2 + variance) for mean_s, variance in found]


def moments(work: Mapping[str, Any]) -> tuple[float, float]:
    """Mean and variance of a time of work, as `prediction.spec.work_spec` writes it."""
    if work["kind"] == "constant":
        return work["s"], 0.0
    if work["kind"] == "exponential":
        return work["mean_s"], (work["mean_s"] - work["minimum_s"]) ** 2
    spread = math.exp(work["sigma"] ** 2)
    mean_s = work["median_s"] * math.sqrt(spread)
    return mean_s, mean_s**2 * (spread - 1.0)


def flights_wait_s(one: Priced, rate_per_s: float) -> float | None:
    """Mean of all waits of a handshake where its jobs arrive independently: n λ Σ E[S²] / (2 (1 - ρ)).

    Exact in the limit of round trips that are long beside the queue's memory.
    """
    work = [job for job in jobs(one) if job[0] > 0.0]
    busy = rate_per_s * math.fsum(mean_s for mean_s, _ in work)
    if busy >= 1.0:
        return None
    return len(work) * rate_per_s * math.fsum(second for _, second in work) / (2.0 * (1.0 - busy))
