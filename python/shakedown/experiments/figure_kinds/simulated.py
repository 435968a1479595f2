"""Simulated figures: recorded handshakes, estimated on devices, replayed by fleets in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from msgspec import UNSET
from msgspec.structs import replace

from shakedown.errors import InputError
from shakedown.experiments.figure_kinds.measured import place_columns
from shakedown.experiments.figure_kinds.modelled import key_share, recorded, recorded_on, source_of
from shakedown.experiments.file import fleets
from shakedown.native.scenario import (
    ClientKind,
    Fleet,
    Fleets,
    Load,
    MeasureOptions,
    Mix,
    Scenario,
    Stacks,
)
from shakedown.results.fleets import OF_CLIENTS, OF_FLEETS, OF_SERVERS, STATISTICS, dashed
from shakedown.results.table import Row, fact, figure, identity_columns, spread
from shakedown.schema import builtins
from shakedown.schema.base import Bounds
from shakedown.schema.identity import Identified
from shakedown.schema.saved import Planned
from shakedown.schema.simulated import Counted, Endpoints, MixedClients, Simulated, SimulatedMix, Spread
from shakedown.schema.trace import Trace

if TYPE_CHECKING:
    from shakedown.experiments.figure_kinds import Need, Run, Source
    from shakedown.experiments.file.experiment import Experiment
    from shakedown.prediction.trace import Trace as Recorded
    from shakedown.results.folder import Results
    from shakedown.simulation.fleet import Settled


_SPREADS = {
    "handshake": "ready_s",
    "done": "done_s",
    "connect": "connect_s",
    "wait": "queue_wait_s",
    "job-wait": "job_wait_s",
    "energy": "energy_j",
}
_FIELDS = {"busy": "busy_workers"}
"""Columns of a time series whose names differ in a row of `simulate`."""


@dataclass(frozen=True)
class Found:
    """A handshake's or mixture's fleet in one place, or the reason without one; mixtures have no identity."""

    identity: Identified | None = None
    row: Simulated | SimulatedMix | None = None
    without_cost: str | None = None


TABLE = fleets.TABLE


def planned(experiment: Experiment) -> Iterator[Planned]:
    wanted = _wanted(experiment)
    if wanted.fleets:
        for one in experiment.of("measured"):
            yield Planned(kind="simulated", about=one.label, after="measured")
    for mix in wanted.mixes:
        yield Planned(kind="simulated", about=mix.name)


def needs(experiment: Experiment) -> tuple[Need, ...]:
    return ("traces",) if _wanted(experiment).fleets else ()


def profiles(experiment: Experiment) -> Iterator[str]:
    for mix in _wanted(experiment).mixes:
        for one in mix.kinds:
            yield from (name for name in (one.device, one.bearer) if name is not None)


def _wanted(experiment: Experiment) -> Fleets:
    return cast(Fleets, experiment.kind_tables.get("simulated", Fleets()))


def _fleet(scenario: Scenario) -> Fleet:
    assert isinstance(scenario.asked, Fleet)
    return scenario.asked


def scenarios(run: Run) -> Iterator[Sequence[Scenario]]:
    """All recorded handshakes in all places with all fleets; one batch each, measured ones first."""
    places, wanted = run.experiment.places, _wanted(run.experiment)
    if not wanted.fleets:
        return
    for handshake, capture, connection in sorted(run.traces, key=lambda source: source[1] is not None):
        found = places.scenarios(handshake, capture=capture, connection=connection)
        # Captured handshakes cannot be performed by engines.
        chosen = [fleet for fleet in wanted.fleets if capture is None or not fleet.endpoints]
        yield tuple(_with_fleets(found, chosen, wanted.seed))
    for mix in wanted.mixes:
        # Devices and bearers vary only if a kind of client does not specify its own.
        devices = places.devices if any(kind.device is None for kind in mix.kinds) else ()
        bearers = places.bearers if any(kind.bearer is None for kind in mix.kinds) else ()
        found = replace(places, devices=devices, bearers=bearers).scenarios(None)
        mixed = [replace(fleet, mix=mix) for fleet in wanted.fleets if not fleet.endpoints]
        yield tuple(_with_fleets(found, mixed, wanted.seed))


def _with_fleets(places: Iterable[Scenario], fleets: Sequence[Fleet], seed: int | None) -> Iterator[Scenario]:
    for place in places:
        load, options = Load(workers=place.load.workers), MeasureOptions(seed=seed)
        for fleet in fleets:
            yield replace(place, kind="simulated", load=load, asked=fleet, options=options)


def run(scenario: Scenario, run: Run) -> Found:
    """Simulates a fleet. If it cannot be estimated, the result has the reason; this is not an error."""
    return job(scenario, run, progress=_progress(scenario, run))()


def _progress(scenario: Scenario, run: Run) -> Callable[[int, int], None]:
    return lambda done, total: run.progress(0, f"simulating {scenario.label}, {done:,} of {total:,} clients")


def job(
    scenario: Scenario, run: Run, *, progress: Callable[[int, int], None] | None = None
) -> Callable[[], Found]:
    """The simulation with all its inputs: a file of arrivals is read on this machine."""
    from shakedown.simulation.fleet import settle

    fleet = _fleet(scenario)
    if fleet.mix is not None:
        return _mixed_job(scenario, fleet.mix, run, progress)
    source = source_of(scenario)
    resumed, engines = None, None
    if fleet.endpoints:
        assert scenario.handshake is not None
        if scenario.handshake.credentials != "generated":
            why = "protocol stacks in virtual time need generated certificates; these are user-supplied"
            return partial(Found, run.traces[source], without_cost=why)
        engines = Stacks(scenario.handshake.client_stack, scenario.handshake.server_stack)
    settled = settle(fleet)
    if settled.fleet.resumption > 0.0:
        try:
            resumed = _resumed(run, source)
        except InputError as error:
            return partial(Found, run.traces[source], without_cost=str(error))
    return partial(_simulated, scenario, run.traces[source], resumed, settled, engines, progress)


def _mixed_job(
    scenario: Scenario, mix: Mix, run: Run, progress: Callable[[int, int], None] | None
) -> Callable[[], Found]:
    """The simulation of a mixture, with handshakes of the experiment, otherwise of the library."""
    from shakedown.prediction.library import open_library
    from shakedown.prediction.trace import parse_trace
    from shakedown.simulation.fleet import settle
    from shakedown.simulation.mix import recorded

    fleet = _fleet(scenario)
    own = {
        trace.suite: parse_trace(builtins(trace), trace.suite)
        for (_, capture, _), trace in run.traces.items()
        if capture is None
    }
    try:
        settled = settle(fleet)
        traces = recorded(mix.kinds, settled.fleet, open_library(), own)
    except InputError as error:
        return partial(Found, without_cost=str(error))
    return partial(_simulated_mix, scenario, mix, traces, settled, progress)


def _simulated_mix(
    scenario: Scenario,
    mix: Mix,
    traces: Mapping[str, Recorded],
    settled: Settled,
    progress: Callable[[int, int], None] | None,
) -> Found:
    from shakedown.prediction.library import resumed_of
    from shakedown.simulation.deployment import seed_of
    from shakedown.simulation.mix import run_mix
    from shakedown.simulation.spec import Client

    def client(kind: ClientKind) -> Client:
        place = replace(
            scenario, device=kind.device or scenario.device, bearer=kind.bearer or scenario.bearer
        )
        full = recorded_on(place, traces[kind.suite], from_idle=settled.fleet.from_idle)
        resumption = kind.share_resuming(settled.fleet)
        again = recorded_on(place, traces[resumed_of(full.trace.suite)]) if resumption > 0.0 else None
        return Client(full, again, kind.weight, kind.resumption)

    try:
        clients = list(map(client, mix.kinds))
        row = run_mix(
            clients,
            settled,
            name=mix.name,
            workers=scenario.load.workers,
            seed=seed_of(scenario.seed),
            progress=progress,
        )
    except InputError as error:
        return Found(without_cost=str(error))
    return Found(row=row)


def _resumed(run: Run, source: Source) -> Recorded:
    """The handshake by which a client resumes: that of the experiment, otherwise that of the library."""
    from shakedown.prediction.library import open_library, resumed_of

    name = resumed_of(run.traces[source].suite)
    for trace in run.traces.values():
        if trace.suite == name:
            return recorded(trace)
    return open_library()[name]


def _simulated(
    scenario: Scenario,
    trace: Trace,
    resumed: Recorded | None,
    settled: Settled,
    engines: Stacks | None,
    progress: Callable[[int, int], None] | None,
) -> Found:
    from shakedown.simulation.deployment import seed_of
    from shakedown.simulation.simulate import Job, run

    try:
        full = recorded_on(scenario, recorded(trace), from_idle=settled.fleet.from_idle)
        again = None if resumed is None else recorded_on(scenario, resumed)
        row = run(Job(full, again, settled, scenario.load.workers, seed_of(scenario.seed)), engines, progress)
    except InputError as error:
        return Found(trace, without_cost=str(error))
    return Found(trace, row)


def common(scenario: Scenario, found: Found) -> Row:
    return {
        **place_columns(scenario),
        **({"suite": scenario.label} if found.identity is None else identity_columns(found.identity)),
        "workers": scenario.load.workers,
        "capture": None if scenario.capture is None else Path(scenario.capture.file).name,
        "rate_per_s": None if found.row is None else found.row.rate_per_s,
    }


def rows(scenario: Scenario, found: Found) -> Iterator[Row]:
    from shakedown.reporting.columns.fleet_notes import imprecise, saturation

    fleet = _fleet(scenario)
    yield fact("simulated.arrivals", _named(fleet.arrivals))
    if fleet.mix is not None:
        yield fact("simulated.mix", fleet.mix.name)
    if found.without_cost is not None:
        yield fact("simulated.without_cost", found.without_cost)
    one = found.row
    if one is None:
        return
    yield figure("simulated.clients", one.clients)
    yield figure("simulated.replications", one.replications)
    if one.cells is not None:
        yield figure("simulated.cells", one.cells)
    if fleet.retry is not None:
        yield fact("simulated.retry", fleet.retry)
    if fleet.admission is not None and one.admission is not None:
        yield fact("simulated.admission", fleet.admission)
        yield figure("simulated.admitted", one.admission.admitted)
        yield figure("simulated.refused", one.admission.refused)
    if fleet.autoscale is not None and one.autoscaling is not None:
        yield fact("simulated.autoscale", fleet.autoscale)
        yield figure("simulated.servers.peak", one.autoscaling.peak)
        yield figure("simulated.servers.time", one.autoscaling.server_s)
    if fleet.sessions is not None:
        yield fact("simulated.sessions", fleet.sessions)
    if fleet.records is not None and one.records is not UNSET:
        sent = one.records
        yield fact("simulated.records", fleet.records)
        yield from _bounds("simulated.records.work", sent.work_s)
        yield from _bounds("simulated.records.utilisation", sent.utilisation)
        yield from spread("simulated.records.wait", sent.wait_s, STATISTICS, n=sent.wait_s.n)
        yield figure("simulated.records.open", sent.peak_open)
    yield figure("simulated.completed", one.completed)
    for cause, many in one.failed.items():
        yield {**figure("simulated.failed", many), "text": cause}
    yield figure("simulated.attempts", one.attempts)
    for name, field in _SPREADS.items():
        figures: Spread = getattr(one, field)
        yield from spread(f"simulated.{name}", figures, STATISTICS, n=figures.n)
    yield fact("simulated.basis", one.ready_s.basis)
    if one.queue_wait_s.missing:
        yield fact("simulated.wait.missing", ", ".join(one.queue_wait_s.missing))
    for name, energy in (("energy", one.energy_j), ("wake-tail", one.wake_tail_j)):
        if energy.missing:
            yield fact(f"simulated.{name}.missing", ", ".join(energy.missing))
    yield fact("simulated.energy.terms", "; ".join(one.energy_terms))
    yield fact("simulated.energy.basis", one.energy_j.basis)
    yield fact("simulated.wake-tail.basis", one.wake_tail_j.basis)
    yield from _bounds("simulated.wake-tail", one.wake_tail_j)
    yield from _missing(one.kinds if isinstance(one, SimulatedMix) else [one])
    if isinstance(one, Simulated):
        yield from key_share("simulated", builtins(one.unused_key_share_s))
    yield from _bounds("simulated.utilisation", one.utilisation)
    yield from _bounds("simulated.offered", one.offered)
    yield figure("simulated.unstable", None if one.unstable is None else float(one.unstable))
    if one.precision is not None:
        yield {**figure("simulated.precision", one.precision.reached), "text": one.precision.widest}
        if not one.precision.is_met:
            yield fact("simulated.imprecise", imprecise(one.precision, saturation(one)))
    if cells := saturation(one):
        yield fact("simulated.saturated", cells)
    yield from _bounds("simulated.recovery", one.recovery_s)
    yield from _bounds("simulated.last-ready", one.last_ready_s)
    yield figure("simulated.in-flight", one.peak_in_flight)
    yield figure("simulated.retransmissions", one.traffic.retransmissions)
    yield figure("simulated.seed", one.seed)
    if isinstance(one, SimulatedMix):
        yield from _kinds(one)
    elif one.modelled is not None:
        yield figure("simulated.modelled.handshake", one.modelled.ready_s)
        yield figure("simulated.modelled.wait", one.modelled.queue_wait_s)
        yield figure("simulated.modelled.flights-wait", one.modelled.flights_queue_wait_s)
    if isinstance(one, Simulated) and one.endpoints is not UNSET:
        yield from _engines(one.endpoints)
    yield from _series(one)


def _offered_load(one: Counted) -> float:
    """The offered load as a fraction of the workers' time, or its lower bound."""
    return 0.0 if one.offered is None else one.offered.estimate or one.offered.lower or 0.0


def _bounds(quantity: str, found: Bounds | None) -> Iterator[Row]:
    yield figure(quantity, None if found is None else found.estimate)
    for statistic, value in () if found is None else (("low", found.lower), ("high", found.upper)):
        if value is not None:
            yield figure(quantity, value, statistic=statistic)


def _missing(rows: Sequence[Simulated | MixedClients]) -> Iterator[Row]:
    from shakedown.reporting.figures import without_figure

    missing = dict.fromkeys(
        without_figure(part.side, part.operation, part.algorithm, part.parameters, part.reason)
        for row in rows
        for part in row.without_cost
    )
    if missing:
        yield fact("simulated.missing", "; ".join(missing))


def _kinds(row: SimulatedMix) -> Iterator[Row]:
    for item, one in enumerate(row.kinds):
        place: Row = {"item": item, "suite": one.suite, "device": one.device, "bearer": one.bearer}
        yield {**figure("simulated.share", one.share), **place}
        yield {**figure("simulated.resumption", one.resumption), **place}
        yield {**figure("simulated.clients", one.clients), **place}
        yield {**figure("simulated.failed", one.failed), **place}
        ready = spread("simulated.handshake", one.ready_s, STATISTICS, n=one.ready_s.n)
        # All kinds wait in one queue, so a missing cost of one kind makes all times lower bounds.
        share = key_share("simulated", builtins(one.unused_key_share_s))
        for made in (fact("simulated.basis", one.ready_s.basis), *_missing(row.kinds), *ready, *share):
            yield {**made, **place}


def _engines(found: Endpoints) -> Iterator[Row]:
    both = dict.fromkeys((found.client_stack, found.server_stack))
    yield fact("simulated.endpoints", " and ".join(both))
    yield figure("simulated.endpoints.mean-ratio", found.replayed.mean_ratio)
    yield figure("simulated.endpoints.distance", found.replayed.distance)
    yield figure("simulated.endpoints.critical", found.replayed.critical)


def _named(arrivals: str) -> str:
    """Removes the folder of a file: results contain no paths of the machine that wrote them."""
    kind, colon, rest = arrivals.partition(":")
    return f"{kind}{colon}{Path(rest).name}" if kind in ("file", "rates", "log") else arrivals


def _series(one: Counted) -> Iterator[Row]:
    if one.series is UNSET or one.series_s is UNSET:
        return
    yield figure("series.width", one.series_s)
    for item, interval in enumerate(one.series):
        for name in (*OF_FLEETS, *OF_SERVERS):
            if (value := getattr(interval, _FIELDS.get(name, name))) is not None:
                yield figure(f"series.{dashed(name)}", value, item=item)
    for number, kind in enumerate(one.kinds if isinstance(one, SimulatedMix) else ()):
        for item, clients in enumerate(() if kind.series is UNSET else kind.series):
            for name in OF_CLIENTS:
                row = figure(f"series.{dashed(name)}", getattr(clients, name), item=item)
                yield {**row, "class": str(number)}
    if one.access is None:
        return
    for item, cells in enumerate(one.access.series):
        up, down = cells.utilisation
        yield figure("series.sent", cells.transmissions, item=item)
        yield figure("series.collided", cells.collided, item=item)
        yield figure("series.up", up, item=item)
        yield figure("series.down", down, item=item)
        yield figure("series.bytes", sum(cells.bytes), item=item)


def printed(found: Found) -> Iterable[Simulated | SimulatedMix]:
    return () if found.row is None else (found.row,)


def notes(found: Found) -> list[str]:
    from shakedown.reporting.columns.fleet_notes import imprecise, saturation

    one = found.row
    if one is None:
        return []
    said = []
    if one.precision is not None and not one.precision.is_met:
        if one.precision.reached is not None:
            return [f"{_place(one)}: {one.arrivals}: {imprecise(one.precision, saturation(one))}"]
        # This note applies to all fleets of the load, and is printed once.
        said.append(f"{one.arrivals}: figures {imprecise(one.precision)}")
    if cells := saturation(one):
        said.append(f"{_place(one)}: {one.arrivals}: {cells}")
    elif one.unstable:
        offered = f"{_offered_load(one):.0%} of {one.server_device}'s workers"
        said.append(f"{_place(one)}: {one.arrivals} asks for {offered}: unstable")
    return said


def _place(one: Simulated | SimulatedMix) -> str:
    if isinstance(one, SimulatedMix):
        return one.mix
    return f"{one.suite}, {one.device} over {one.bearer}"


def terminal(results: Results, width: int) -> Iterable[str]:
    from shakedown.reporting.terminal.fleets import fleet_tables, mixture_tables

    yield from fleet_tables(results, width)
    yield from mixture_tables(results, width)
