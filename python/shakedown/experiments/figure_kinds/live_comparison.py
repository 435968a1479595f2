"""A live load compared with the model and the simulation.

Both use the times of the handshake in memory on this machine, the cost of a TCP connection from this
machine's profile (if it has one), and the bearer `loopback`. Their only input from the live run is its
achieved rate. The simulations are a replay of the recording and, on request, the protocol engines in virtual
time with the same times.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec import UNSET
from msgspec.structs import replace

from shakedown import native
from shakedown.errors import InputError
from shakedown.native.scenario import Fleet, Live, Scenario, Stacks
from shakedown.schema import builtins
from shakedown.schema.base import Side
from shakedown.schema.live import ComparedFigure, Comparison, LoadRun, SampledHandshakes
from shakedown.schema.measured import Measurement
from shakedown.schema.serving import Serving
from shakedown.schema.simulated import Simulated

if TYPE_CHECKING:
    from shakedown.prediction.scenario import Scenario as Estimate
    from shakedown.prediction.work import SideCost

CLIENTS = 20_000
"""Simulated clients: enough for a mean wait within a few per cent at moderate utilisation."""

ENDPOINT_CLIENTS = 3_000
"""Clients of protocol engines, which perform real cryptography: a few seconds on this machine."""


@dataclass(frozen=True)
class Loaded:
    """The figures of a load and its server, whether they ran on separate cores, and the CPU time of the
    server's threads for one handshake (None if unknown).
    """

    load: LoadRun
    server: Serving
    own_core: bool
    server_cpu_s: float | None
    traces: SampledHandshakes


def compare(
    measured: Measurement, live: Live, loaded: Loaded, unloaded: LoadRun, scenario: Scenario
) -> Comparison:
    """The server's work per handshake, handshake time and wait by three methods, or four with engines.

    Raises `InputError` if engines are requested and cannot run.
    """
    from shakedown.simulation.deployment import seed_of
    from shakedown.simulation.fleet import settle
    from shakedown.simulation.simulate import Job, run

    load, server = loaded.load, loaded.server
    rate_per_s = load.rate_per_s.achieved
    fleet = Fleet(arrivals=f"{live.arrivals}:{rate_per_s:g}/s", clients=CLIENTS)
    # With a mixture of full and resumed handshakes there is no single handshake to compare.
    mixed = 0.0 < load.resumed.asked < load.completed
    row = engines = None
    connection_s = connection_cost_s(measured)
    if not mixed:
        found = measured_estimate(measured, connection_s)
        seed = seed_of(scenario.seed)
        row = run(Job(found, None, settle(fleet), live.workers, seed))
        if live.endpoints:
            fewer = settle(replace(fleet, clients=ENDPOINT_CLIENTS))
            engines = run(Job(found, None, fewer, live.workers, seed), engines_of(scenario))
    formula = None if row is None else row.modelled
    loaded_s, quiet_s = from_actual_start_s(load), from_actual_start_s(unloaded)
    wait_s = None if loaded_s is None or quiet_s is None else loaded_s - quiet_s

    def cpu_s(one: Simulated | None) -> float | None:
        used = None if one is None or one.unstable else one.utilisation.estimate
        return None if used is None else used * live.workers / rate_per_s

    simulated_cpu_s, engines_cpu_s = cpu_s(row), cpu_s(engines)
    server_s = None if mixed else measured.handshake.server_us.mean * 1e-6
    kernel_s = 0.0 if connection_s is None else connection_s["server"]
    return Comparison(
        connection_s=connection_s,
        unloaded_s=quiet_s,
        unloaded_n=unloaded.completed,
        endpoints=None if engines is None or engines.endpoints is UNSET else engines.endpoints,
        figures=(
            compared(
                "server-cpu",
                loaded.server_cpu_s,
                None if server_s is None else server_s + kernel_s,
                simulated_cpu_s,
                engines_cpu_s,
            ),
            compared(
                "server-busy",
                server.busy_s.mean,
                server_s,
                None if simulated_cpu_s is None else simulated_cpu_s - kernel_s,
                None if engines_cpu_s is None else engines_cpu_s - kernel_s,
            ),
            compared(
                "handshake",
                loaded_s,
                None if formula is None else formula.ready_s,
                None if row is None else row.ready_s.mean,
                None if engines is None else engines.ready_s.mean,
            ),
            compared(
                "wait",
                wait_s,
                None if formula is None else formula.queue_wait_s,
                None if row is None else row.queue_wait_s.mean,
                None if engines is None else engines.queue_wait_s.mean,
            ),
        ),
    )


def engines_of(scenario: Scenario) -> Stacks:
    """The stacks whose engines perform a handshake. Raises `InputError` if no engine can."""

    handshake = scenario.handshake
    assert handshake is not None
    if handshake.credentials != "generated":
        raise InputError(
            f"{handshake.suite}: protocol stacks in virtual time need generated certificates; "
            "these are user-supplied; "
            "accepted with endpoints: generated ones"
        )
    return Stacks(handshake.client_stack, handshake.server_stack)


def from_actual_start_s(load: LoadRun) -> float | None:
    """Mean handshake time without the generator's lateness, which the models do not include."""
    if load.handshake_s.mean is None or load.start_lateness_s.mean is None:
        return None
    return max(0.0, load.handshake_s.mean - load.start_lateness_s.mean)


def compared(
    figure: str,
    live_s: float | None,
    modelled_s: float | None,
    simulated_s: float | None,
    endpoints_s: float | None = None,
) -> ComparedFigure:
    """A figure by several methods, and the relative differences from the live figure."""

    def off(value_s: float | None) -> float | None:
        return value_s / live_s - 1.0 if value_s is not None and live_s is not None and live_s > 0.0 else None

    return ComparedFigure(
        figure=figure,  # type: ignore[arg-type]  # one of four, above
        live_s=live_s,
        modelled_s=modelled_s,
        simulated_s=simulated_s,
        endpoints_s=endpoints_s,
        modelled_off=off(modelled_s),
        simulated_off=off(simulated_s),
        endpoints_off=off(endpoints_s),
    )


def connection_cost_s(measured: Measurement) -> dict[Side, float] | None:
    """The kernel's time for a handshake's TCP connection, by side, from this machine's profile; None if the
    profile has none, and for datagrams.
    """
    from shakedown.profiles import THIS_MACHINE, load_device

    if native.describe(measured.suite).get("transport") == "datagram":
        return None
    try:
        cost = load_device(THIS_MACHINE).connection
    except InputError:
        return None
    kib = measured.bytes.total / 1024.0
    client_s = cost.of("client", kib, measured.handshake.client_us.median * 1e-6)
    server_s = cost.of("server", kib, measured.handshake.server_us.median * 1e-6)
    return None if client_s is None or server_s is None else {"client": client_s, "server": server_s}


def measured_estimate(measured: Measurement, connection_s: Mapping[Side, float] | None = None) -> Estimate:
    """The handshake over the loopback, with its times on this machine as costs."""
    from shakedown.prediction.scenario import Scenario as Estimate
    from shakedown.prediction.trace import parse_trace
    from shakedown.profiles import load_bearer, load_device

    # All costs are given, so only the device's name is used.
    here = dataclasses.replace(load_device("server"), name="this-machine")
    return Estimate(
        trace=parse_trace(builtins(measured), measured.suite),
        device=here,
        server_device=here,
        bearer=load_bearer("loopback"),
        client=measured_cost(measured, "client", connection_s),
        server=measured_cost(measured, "server", connection_s),
    )


def measured_cost(
    measured: Measurement, side: Side, connection_s: Mapping[Side, float] | None = None
) -> SideCost:
    """A side's mean times by message, its unattributed time before the first, and its standard deviation."""
    from shakedown.models.ranges import exactly
    from shakedown.prediction.work import SideCost

    whole = measured.handshake.of(side)
    message_s: dict[int | None, float] = {None: measured.unattributed_us.mean(side) * 1e-6}
    for message in measured.messages:
        own_us = message.generate_mean_us if message.sender == side else message.process_mean_us
        message_s[message.index] = own_us * 1e-6
    return SideCost(
        parts={"measured": exactly(whole.mean * 1e-6)},
        sd_s=whole.sd * 1e-6,
        message_s=message_s,
        bases={"own": exactly(whole.mean * 1e-6)},
        connection=None if connection_s is None else exactly(connection_s[side]),
    )
