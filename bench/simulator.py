"""The simulator compared with Ciw and SimPy on one M/G/1 queue, and its speed with whole handshakes.

The queue is simulated by the general engine, from the same kind of scenario as in `simulate`: a handshake of
one message over links that take no time, in the ten replications that `simulate` uses for any steady load.
Each simulator has the same single processor. All three must find the exact mean wait.
"""

import math
import random
import resource
import sys
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

from tools import ideal

from bench.harness import ROOT, Benchmark, Pair, UnavailableError, output
from bench.tls_servers import core
from shakedown.models.queueing import mg1_wait_s
from shakedown.native.processors import placed
from shakedown.prediction.spec import message_spec, work_spec

SERVICE_S, FIXED_S = 1.0, 0.5
"""Mean service; half of it is fixed and half exponential, as in a handshake with a rejection loop."""

UTILISATION = 0.7
CUSTOMERS, REPLICATIONS = 2_000_000, 10
RIVALS_CUSTOMERS = 40_000
RUNS = 7

OURS_WITHIN, RIVALS_WITHIN = 0.01, 0.1
"""Allowed differences of mean waits from Pollaczek and Khinchine's: the rivals have fewer customers."""

FLEET_CLIENTS = 200_000
FLEET_HANDSHAKES_PER_S, FLEET_EVENTS_PER_S = 1e5, 5e6
MANY_CLIENTS = 10_000_000
MANY_MIB = 300.0

STORM_SUITES = (
    "tls1.3/x25519/p256/server",
    "tls1.3/x25519/p256/server/resumed",
    "tls1.3/x25519mlkem768/mldsa65/server",
)
STORM_CLIENTS, STORMS_S = 100_000, 10.0
CELLS_CLIENTS, CELLS, CELLS_SERVERS, CELLS_S, CELLS_MIB = 1_000_000, 1000, 20, 60.0, 1024.0
STORM_RUNS = 3


def exact_wait_s() -> float:
    """Mean wait by Pollaczek and Khinchine."""
    second = SERVICE_S**2 + (SERVICE_S - FIXED_S) ** 2
    return float(mg1_wait_s(UTILISATION / SERVICE_S, SERVICE_S, second))


def ours(seed: int) -> tuple[float, float]:
    """Customers per second, in replications like those of `simulate`, and their mean wait."""
    work = work_spec(SERVICE_S, SERVICE_S - FIXED_S)
    spec = {
        "classes": [ideal.clients([message_spec("client", "ClientHello", 1, flight=1, process=work)])],
        "clients": CUSTOMERS // REPLICATIONS,
        "replications": REPLICATIONS,
        "arrivals": {"kind": "poisson", "per_s": UTILISATION / SERVICE_S},
        "seed": seed,
    }
    begun = perf_counter()
    report = _simulate(spec)
    return CUSTOMERS / (perf_counter() - begun), report["queue_wait_s"]["mean"]


def _simulate(spec: dict[str, Any]) -> dict[str, Any]:
    from shakedown.native import virtual_time

    return virtual_time.simulate(spec)


def with_ciw(seed: int) -> tuple[float, float]:
    import ciw

    class Work(ciw.dists.Distribution):  # type: ignore[misc]
        def sample(self, t: float | None = None, ind: object = None) -> float:
            return FIXED_S + float(ciw.random.expovariate(1.0 / (SERVICE_S - FIXED_S)))

    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Exponential(UTILISATION / SERVICE_S)],
        service_distributions=[Work()],
        number_of_servers=[1],
    )
    ciw.seed(seed)
    simulation = ciw.Simulation(network)
    begun = perf_counter()
    simulation.simulate_until_max_customers(RIVALS_CUSTOMERS)
    spent_s = perf_counter() - begun
    waits = [record.waiting_time for record in simulation.get_all_records()]
    return len(waits) / spent_s, math.fsum(waits) / len(waits)


def with_simpy(seed: int) -> tuple[float, float]:
    import simpy

    stream = random.Random(seed)
    environment = simpy.Environment()
    server = simpy.Resource(environment, capacity=1)
    waits: list[float] = []

    def customer() -> Any:  # noqa: ANN401 - a generator of SimPy's events
        came = environment.now
        with server.request() as turn:
            yield turn
            waits.append(environment.now - came)
            yield environment.timeout(FIXED_S + stream.expovariate(1.0 / (SERVICE_S - FIXED_S)))

    def source() -> Any:  # noqa: ANN401 - as above
        for _ in range(RIVALS_CUSTOMERS):
            yield environment.timeout(stream.expovariate(UTILISATION / SERVICE_S))
            environment.process(customer())

    environment.process(source())
    begun = perf_counter()
    environment.run()
    return len(waits) / (perf_counter() - begun), math.fsum(waits) / len(waits)


def against(rival: Callable[[int], tuple[float, float]]) -> Callable[[], Sequence[Pair]]:
    """Customers per second of both, alternating; a simulator counts only if it finds the exact mean wait."""

    def pairs() -> Sequence[Pair]:
        try:
            rival(0)
        except ImportError as error:
            raise UnavailableError(f"{error.name} is not installed") from None
        found, waits = [], ([], [])  # type: tuple[list[Pair], tuple[list[float], list[float]]]
        with placed(core(-1)):
            for seed in range(1, RUNS + 1):
                speeds = []
                for run, mine in ((ours, waits[0]), (rival, waits[1])):
                    per_s, wait_s = run(seed)
                    speeds.append(per_s)
                    mine.append(wait_s)
                found.append((speeds[0], speeds[1]))
        for mine, within in zip(waits, (OURS_WITHIN, RIVALS_WITHIN), strict=True):
            off = math.fsum(mine) / len(mine) / exact_wait_s() - 1.0
            if abs(off) > within:
                raise UnavailableError(f"mean wait off by {off:+.1%}; accepted: {within:.0%}")
        return found

    return pairs


def _spec(suite: str, device: str, bearer: str, workers: int = 1, **fleet: Any) -> dict[str, Any]:  # noqa: ANN401
    """A fleet of clients of one server; its rate may be given as a share of the sustained rate."""
    from shakedown.native.scenario import Fleet
    from shakedown.prediction.scenario import scenario
    from shakedown.simulation.fleet import settle
    from shakedown.simulation.simulate import Job

    estimate = scenario(suite, device, "server", bearer)
    if share := fleet.pop("utilisation", None):
        fleet |= {"arrivals": f"poisson:{share / estimate.service_s.mean:.6g}/s", "replications": 1}
    return Job(estimate, None, settle(Fleet(**fleet)), workers, 1).spec()


def _fleet(clients: int) -> dict[str, Any]:
    """Full TLS 1.3 handshakes over TCP, LTE and a server at 60 %."""
    return _spec("tls1.3/x25519/p256/server", "phone", "lte", utilisation=0.6, clients=clients)


def fleet_speed() -> Sequence[Pair]:
    """The smaller of handshakes and events per second, each as a share of its target."""
    spec = _fleet(FLEET_CLIENTS)
    found: list[Pair] = []
    for seed in range(1, RUNS + 1):
        begun = perf_counter()
        report = _simulate({**spec, "seed": seed})
        spent_s = perf_counter() - begun
        handshakes = spec["clients"] / spent_s / FLEET_HANDSHAKES_PER_S
        found.append((min(handshakes, report["events"] / spent_s / FLEET_EVENTS_PER_S), 1.0))
    return found


def fleet_memory() -> Sequence[Pair]:
    """Peak memory (MiB) of a separate process that simulates ten million handshakes, and the limit."""
    return [(_elsewhere("ten_million")[1], MANY_MIB)]


def ten_million() -> dict[str, Any]:
    return _fleet(MANY_CLIENTS)


def cells() -> Sequence[Pair]:
    """The larger of a million clients' seconds and memory, each as a share of its limit."""
    spent_s, most_mib = _elsewhere("storm_over_cells")
    return [(max(spent_s / CELLS_S, most_mib / CELLS_MIB), 1.0)]


def storm_over_cells() -> dict[str, Any]:
    """A storm over cells; the clients of a cell use one server."""
    many: dict[str, Any] = {
        "clients": CELLS_CLIENTS,
        "cells": CELLS,
        "servers": CELLS_SERVERS,
        "balance": "cell",
    }
    return _spec("tls1.3/x25519/p256/server", "phone", "lte", arrivals="storm:10s", **many)


def _elsewhere(name: str) -> tuple[float, float]:
    """Seconds and peak memory (MiB) of a separate process that simulates the scenario of a function here."""
    code = f"from bench import simulator; simulator.alone(simulator.{name})"
    spent_s, most_mib = map(float, output(sys.executable, "-c", code, cwd=ROOT).split())
    return spent_s, most_mib


def alone(made: Callable[[], dict[str, Any]]) -> None:
    """Simulate, and print the seconds and MiB used."""
    begun = perf_counter()
    report = _simulate(made())
    spent_s = perf_counter() - begun
    if report["completed"] < report["clients"]:
        raise SystemExit("not all handshakes were completed")
    print(spent_s, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)  # noqa: T201


def storms() -> Sequence[Pair]:
    """Seconds for three storms without cells, one after another, and the limit."""
    specs = [_storm(suite) for suite in STORM_SUITES]
    found: list[Pair] = []
    for seed in range(1, STORM_RUNS + 1):
        begun = perf_counter()
        for spec in specs:
            report = _simulate({**spec, "seed": seed})
            if report["completed"] + sum(report["failed"].values()) < STORM_CLIENTS:
                raise UnavailableError("a storm lost clients")
        found.append((perf_counter() - begun, STORMS_S))
    return found


def _storm(suite: str) -> dict[str, Any]:
    """Meters over NB-IoT, from idle, all within ten seconds."""
    meters: dict[str, Any] = {"arrivals": "storm:10s", "clients": STORM_CLIENTS, "from_idle": True}
    return _spec(suite, "cortex-m4", "nb-iot", workers=2, **meters)


BENCHMARKS = [
    Benchmark(
        "simulator-ciw",
        "customers a second through an M/G/1 queue at 70 %, on the same one processor, the mean wait within "
        "1 % of the exact one",
        "Ciw",
        "higher",
        100.0,
        against(with_ciw),
    ),
    Benchmark(
        "simulator-simpy",
        "customers a second through an M/G/1 queue at 70 %, on the same one processor, the mean wait within "
        "1 % of the exact one",
        "SimPy",
        "higher",
        50.0,
        against(with_simpy),
    ),
    Benchmark(
        "simulator-fleet",
        "full TLS 1.3 handshakes over TCP and LTE: the lesser of handshakes a second over 100,000 and "
        "events a "
        "second over 5 million, one core",
        "wanted",
        "higher",
        1.0,
        fleet_speed,
    ),
    Benchmark(
        "simulator-memory",
        "most memory (MiB) of a process that simulates 10 million handshakes, which may take 300",
        "wanted",
        "lower",
        1.0,
        fleet_memory,
    ),
    Benchmark(
        "simulator-storm",
        "seconds for three storms of 100,000 NB-IoT clients (full, resumed, post-quantum), which may take 10",
        "wanted",
        "lower",
        1.0,
        storms,
    ),
    Benchmark(
        "simulator-cells",
        "a storm of a million LTE clients over 1,000 cells at 20 servers: the greater of seconds over 60 and "
        "memory over 1 GiB",
        "wanted",
        "lower",
        1.0,
        cells,
    ),
]
