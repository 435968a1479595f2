"""Live figures: a load on a server that is started for it on this machine's loopback."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import msgspec

from shakedown import native
from shakedown.errors import InputError
from shakedown.experiments.figure_kinds.live_comparison import Loaded, compare
from shakedown.experiments.figure_kinds.measured import place_columns
from shakedown.experiments.file import loads
from shakedown.live.load_test import load_run
from shakedown.native import load_generator, serving
from shakedown.native.processors import placed, processors, ran_s, threads
from shakedown.native.scenario import Live, Load, MeasureOptions, Places, Scenario
from shakedown.results.loads import STATISTICS
from shakedown.results.table import Row, fact, figure, identity_columns, spread
from shakedown.schema.identity import Identified
from shakedown.schema.live import LiveRun, LoadProgress, TimeSpent
from shakedown.schema.options import ServerOptions
from shakedown.schema.serving import Serving

if TYPE_CHECKING:
    from shakedown.experiments.figure_kinds import Need, Run
    from shakedown.experiments.file.experiment import Experiment
    from shakedown.results.folder import Results


_TIMES = {"connect": "connect_s", "handshake": "handshake_s", "lateness": "start_lateness_s"}
UNLOADED_RATE_PER_S = 25.0
"""New connections per second of the load without a queue, or a tenth of the saturation rate if less."""
SLOW_TIMEOUT_S = 120.0
"""Timeout of a slowed client's handshake."""
UNLOADED_SHARE = 0.25
"""Duration of the load without a queue, as a fraction of the load's."""
MIN_LIVE_S = 0.4
"""The shortest load of a suite that is compared; a shorter one is too imprecise."""


@dataclass(frozen=True)
class Found:
    """One load, and the identity of its handshake."""

    identity: Identified
    row: LiveRun


TABLE = loads.TABLE


def needs(experiment: Experiment) -> tuple[Need, ...]:
    """The measured handshakes, from which the saturation rate is computed."""
    return ("measurements",) if experiment.kind_tables.get("live") else ()


def compared(found: Experiment, rate_per_s: float | None, time_s: float, *, endpoints: bool) -> Experiment:
    """Changes an experiment: each suite runs live, with the file's loads or one, and the kinds are compared.

    All loads have the same share of the time. Raises `InputError`.
    """
    suites = len(found.of("measured"))
    if found.options.carrier == "eap":
        raise InputError(
            f'{found.name}: live loads do not support EAP; accepted with --live: carrier = "bare"'
        )
    if not suites:
        raise InputError(f"{found.name}: has no suites to be run live; accepted with --live: suites")
    wanted: tuple[Live, ...] = found.kind_tables.get("live") or (Live(workers=found.places.workers),)
    if rate_per_s is not None:
        if rate_per_s <= 0.0:
            raise InputError("--rate is 0; accepted: a rate above 0")
        given = (msgspec.structs.replace(one, rate_per_s=rate_per_s) for one in wanted)
        wanted = tuple(dict.fromkeys(given))
    if any(one.arrivals == "closed" for one in wanted):
        raise InputError(
            f"{found.name}: a closed loop has no queue to model; accepted with --live: poisson or "
            "deterministic arrivals"
        )
    each_s = time_s / (suites * len(wanted)) / (1.0 + UNLOADED_SHARE)
    if each_s < MIN_LIVE_S:
        least_s = MIN_LIVE_S * suites * len(wanted) * (1.0 + UNLOADED_SHARE)
        raise InputError(
            f"--time leaves {each_s:.2g} s to each of {suites * len(wanted)} loads; "
            f"accepted: {least_s:.3g} s or more"
        )
    every = tuple(
        msgspec.structs.replace(one, duration_s=each_s, compare=True, endpoints=endpoints or one.endpoints)
        for one in wanted
    )
    return replace(found, scenarios=found.of("measured"), places=Places(), kind_tables={"live": every})


def scenarios(run: Run) -> Iterator[Sequence[Scenario]]:
    """All measured handshakes with each load; one batch per handshake."""
    loads = run.experiment.kind_tables.get("live", ())
    for one in run.experiment.of("measured") if loads else ():
        if one.handshake in run.measurements:
            yield tuple(
                msgspec.structs.replace(
                    one, kind="live", bearer="loopback", load=Load(workers=live.workers), asked=live
                )
                for live in loads
            )


def run(scenario: Scenario, run: Run) -> Found:
    """Starts, loads and stops a server. Raises `InputError`, and the core's errors."""
    live, handshake = scenario.asked, scenario.handshake
    assert isinstance(live, Live)
    assert handshake is not None
    measured = run.measurements[handshake]
    saturation_per_s = live.workers / (measured.handshake.server_us.mean * 1e-6)
    if live.rate_per_s is None and live.arrivals != "closed":
        live = msgspec.structs.replace(live, rate_per_s=_rounded(live.utilisation * saturation_per_s))

    def progress(now: LoadProgress) -> None:
        run.progress(0, f"loading {scenario.label}, {now.completed:,} handshakes")

    one = loaded(scenario, live, progress)
    load, server = one.load, one.server
    comparison = None
    if live.compare and live.arrivals != "closed":
        quiet = _quiet(live, saturation_per_s, duration_s=UNLOADED_SHARE * live.duration_s)
        comparison = compare(measured, live, one, loaded(scenario, quiet, progress).load, scenario)
    rate_per_s = load.rate_per_s.achieved
    busy = server.busy_s
    utilisation = None if busy.mean is None else rate_per_s * busy.mean / live.workers
    return Found(
        measured,
        LiveRun(
            suite=measured.suite,
            rate_per_s=live.rate_per_s,
            workers=live.workers,
            own_core=one.own_core,
            server_cpu_s=one.server_cpu_s,
            utilisation=utilisation,
            formula_wait_s=_formula_wait_s(live, rate_per_s, server),
            load=load,
            server=server,
            comparison=comparison,
            time_spent=tuple(_time_spent(scenario, live, progress, saturation_per_s))
            if live.trace_count
            else (),
        ),
    )


def _time_spent(
    scenario: Scenario, live: Live, progress: Callable[[LoadProgress], None], saturation_per_s: float
) -> Iterator[TimeSpent]:
    """Handshakes sampled on both sides without a queue, of this machine's client and of emulated devices."""
    from shakedown.live.load_test.time_spent import read_halves, time_spent
    from shakedown.prediction.slowdown import slowed

    handshake, options = scenario.handshake, scenario.options
    assert handshake is not None
    timeout_s = max(live.timeout_s, SLOW_TIMEOUT_S)
    quiet = _quiet(live, saturation_per_s, count=live.trace_count, timeout_s=timeout_s)
    assert quiet.rate_per_s is not None
    quiet = msgspec.structs.replace(quiet, duration_s=(live.trace_count + 1) / quiet.rate_per_s)
    for device in (None, *live.emulate_device):
        slow: dict[str, float] = {}
        if device is not None:
            given = {"client_chain": options.client_chain, "client_key": options.client_key}
            slow = slowed(device, handshake.suite, client_stack=handshake.client_stack, **given)
        with TemporaryDirectory() as room:
            file = Path(room) / "server.jsonl"
            one = loaded(
                scenario,
                quiet,
                progress,
                server={"traces_out": file, "sample": 1, "handshake_timeout_s": quiet.timeout_s},
                generator={"trace_count": live.trace_count, **slow},
            )
            found = time_spent(
                one.traces, read_halves(file), emulate_device=device, slowdown=one.load.slowdown
            )
        if found is not None:
            yield found


def _quiet(live: Live, saturation_per_s: float, **more: float) -> Live:
    """The load at a rate without a queue."""
    rate_per_s = min(UNLOADED_RATE_PER_S, 0.1 * saturation_per_s)
    return msgspec.structs.replace(live, arrivals="deterministic", rate_per_s=rate_per_s, **more)


def _rounded(rate_per_s: float) -> float:
    """Rounds a rate to two digits."""
    return float(f"{max(rate_per_s, 0.1):.2g}")


def _formula_wait_s(live: Live, rate_per_s: float, server: Serving) -> float | None:
    """The Pollaczek–Khinchine wait; every worker has separate connections and a separate queue."""
    from shakedown.models.queueing import mg1_wait_s

    busy = server.busy_s
    if live.arrivals != "poisson" or busy.mean is None or busy.second_moment_s2 is None:
        return None
    wait_s = float(mg1_wait_s(rate_per_s / live.workers, busy.mean, busy.second_moment_s2))
    return wait_s if math.isfinite(wait_s) else None


def loaded(
    scenario: Scenario,
    live: Live,
    progress: Callable[[LoadProgress], None] | None = None,
    *,
    server: Mapping[str, Any] | None = None,
    generator: Mapping[str, object] | None = None,
) -> Loaded:
    """Runs one server and one load on it. Raises `InputError` if no handshake was completed.

    `server` and `generator` are options in addition to those of the scenario.
    """
    handshake, options = scenario.handshake, scenario.options
    assert handshake is not None
    suite = handshake.suite
    served = suite
    if live.resumption > 0.0 and not native.describe(suite).get("is_resumption"):
        from shakedown.prediction.library import resumed_of

        served = resumed_of(suite)
    server_cores, generator_cores = _cores(live.workers)
    others = threads()
    with placed(server_cores):
        running = serving.start(
            [served],
            "127.0.0.1:0",
            stack=handshake.server_stack,
            options=_server_options(options.issuing(handshake.suite)),
            settings=ServerOptions(
                client_ca=options.client_ca or options.client_chain, workers=live.workers, **(server or {})
            ),
        )
    with running:
        datagrams = native.describe(suite).get("transport") == "datagram"
        protocol = suite.split("/", 1)[0]
        scheme = (protocol if protocol == "wtls" else "dtls") if datagrams else "tls"
        target = f"{scheme}://{running.address}"
        config: dict[str, object] = {
            "target": target,
            "arrivals": live.arrivals,
            "rate_per_s": live.rate_per_s,
            "duration_s": live.duration_s,
            "max_starts": live.count,
            "clients": live.clients,
            "resumption": live.resumption,
            "seed": 1 if scenario.seed is None else scenario.seed,
            "timeout_s": live.timeout_s,
            "ca": options.ca,
            # User-supplied certificates are not checked: this process started the server.
            "check": not options.user_supplied,
            **(generator or {}),
        }
        chosen = {
            "client_stack": handshake.client_stack,
            "client_chain": options.client_chain,
            "client_key": options.client_key,
        }
        with placed(generator_cores):
            outcome = load_generator.load(config, served, chosen, progress)
        cpu_s = _cpu_s(threads() - others)
    if outcome.interrupted:
        raise KeyboardInterrupt
    if not outcome.completed:
        causes = ", ".join(f"{many:,} × {cause}" for cause, many in outcome.failed.items())
        raise InputError(f"{suite}: no live handshake was completed ({causes or 'none was started'})")
    counted = running.summary()
    many = counted.busy_s.count
    return Loaded(
        load=load_run(outcome, served, config),
        server=counted,
        own_core=bool(server_cores),
        server_cpu_s=None if cpu_s is None or not many else cpu_s / many,
        traces=outcome.traces,
    )


def _cpu_s(some: set[int]) -> float | None:
    """CPU time of running threads; None if unknown."""
    with suppress(OSError):
        return ran_s(some) or None
    return None


def _server_options(options: MeasureOptions) -> MeasureOptions:
    return msgspec.structs.replace(
        options,
        repeat=MeasureOptions().repeat,
        client_chain=None,
        client_key=None,
        client_ca=None,
        client_password=None,
    )


def _cores(workers: int) -> tuple[list[int], list[int]]:
    """The cores of the server and of the generator, if there are at least two; empty: any core."""
    there = processors()
    own = min(workers, len(there) - 1)
    return (there[:own], there[own:]) if len(there) > 1 else ([], [])


def common(scenario: Scenario, found: Found) -> Row:
    return {
        **place_columns(scenario),
        **identity_columns(found.identity),
        "workers": found.row.workers,
        "rate_per_s": found.row.rate_per_s,
    }


def rows(scenario: Scenario, found: Found) -> Iterator[Row]:
    one = found.row
    load, busy = one.load, one.server.busy_s
    yield fact("live.arrivals", load.arrivals)
    yield figure("live.planned", load.planned)
    yield figure("live.completed", load.completed)
    for cause, many in load.failed.items():
        yield {**figure("live.failed", many), "text": cause}
    yield figure("live.rate", load.rate_per_s.achieved)
    for name, field in _TIMES.items():
        times = getattr(load, field)
        yield from spread(f"live.{name}", times, STATISTICS, side="client", n=times.n)
    yield figure("live.resumed.asked", load.resumed.asked)
    yield figure("live.resumed.confirmed", load.resumed.confirmed)
    yield figure("live.generator-cpu", load.generator_cpu_s)
    if load.saturated:
        yield fact("live.saturated", ", ".join(load.saturated_by))
    yield figure("live.own-core", one.own_core)
    yield figure("live.server-cpu", one.server_cpu_s, side="server", statistic="mean", n=busy.count)
    yield from spread("live.busy", busy, STATISTICS, side="server", n=busy.count)
    yield figure("live.busy.second-moment", busy.second_moment_s2, side="server", n=busy.count)
    yield figure("live.utilisation", one.utilisation)
    yield figure("live.wait.formula", one.formula_wait_s)
    if one.comparison is not None:
        yield figure("live.unloaded", one.comparison.unloaded_s, n=one.comparison.unloaded_n)
        for side, cost_s in (one.comparison.connection_s or {}).items():
            yield figure("live.modelled.connection", cost_s, side=side)
        for compared in one.comparison.figures:
            if compared.figure == "wait":
                yield figure("live.wait", compared.live_s)
            yield figure(f"live.modelled.{compared.figure}", compared.modelled_s)
            yield figure(f"live.simulated.{compared.figure}", compared.simulated_s)
        engines = one.comparison.endpoints
        if engines is not None:
            both = dict.fromkeys((engines.client_stack, engines.server_stack))
            yield fact("live.endpoints", " and ".join(both))
            for compared in one.comparison.figures:
                yield figure(f"live.endpoints.{compared.figure}", compared.endpoints_s)
            yield figure("live.endpoints.distance", engines.replayed.distance)
            yield figure("live.endpoints.critical", engines.replayed.critical)
    for spent in one.time_spent:
        yield from _steps(spent)


def _steps(spent: TimeSpent) -> Iterator[Row]:
    common: Row = {"device": spent.emulate_device, "n": spent.handshakes, "statistic": "mean"}
    yield figure("live.sampled", spent.handshakes, device=spent.emulate_device)
    yield figure("live.slowdown", spent.slowdown, device=spent.emulate_device)
    yield figure("live.step.waited", spent.connect_us, side="client", **common)
    yield figure("live.step.other", spent.client_unattributed_us, side="client", **common)
    if spent.server_unattributed_us is not None:
        yield figure("live.step.other", spent.server_unattributed_us, side="server", **common)
    for step in spent.steps:
        place: Row = {
            "message_index": step.index,
            "message": step.name,
            "sender": step.sender,
            "item": step.index,
        }
        for side, share in (("client", step.client), ("server", step.server)):
            if share is not None:
                for name in ("cryptography", "other", "waited"):
                    us = getattr(share, f"{name}_us")
                    yield figure(f"live.step.{name}", us, side=side, **place, **common)


def printed(found: Found) -> Iterable[LiveRun]:
    return (found.row,)


def notes(found: Found) -> list[str]:
    one, load = found.row, found.row.load
    said = []
    if load.saturated:
        said.append(
            f"{one.suite}: the generator was the bottleneck ({', '.join(load.saturated_by)}): live figures "
            "are its own as much as the server's"
        )
    if load.resumed.confirmed < load.resumed.asked:
        said.append(
            f"{one.suite}: the server resumed {load.resumed.confirmed:,} of {load.resumed.asked:,} sessions"
        )
    compared = one.comparison
    if compared is not None and compared.connection_s is None and load.target.startswith("tls://"):
        said.append(
            f"{one.suite}: modelled and simulated end at the stack: what a connection costs beyond it here "
            'is not known; "shakedown devices measure" finds it out'
        )
    return said


def terminal(results: Results, width: int) -> Iterable[str]:
    from shakedown.reporting.terminal.loads import comparison_tables, load_tables

    yield from load_tables(results, width)
    yield from comparison_tables(results, width)
