"""Fleets of clients in virtual time: what `shakedown.simulate` and `simulate_mix` are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, overload

from shakedown.api.rows import rows_of
from shakedown.errors import InputError
from shakedown.experiments.cluster import Cluster
from shakedown.native.scenario import DEFAULT_BEARER, DEFAULT_DEVICE, DEFAULT_SERVER_DEVICE, Fleet
from shakedown.native.suite_names import listed
from shakedown.prediction.library import opened
from shakedown.profiles.registry import Names, places
from shakedown.reporting.rows import Rows
from shakedown.schema.arguments import check, check_fields, checked, profile_name, several
from shakedown.schema.base import convert
from shakedown.schema.options import options_of
from shakedown.schema.simulated import FailedSimulation, Simulated, SimulatedMix
from shakedown.simulation.deployment import Site
from shakedown.simulation.mix import Kind, read_mix
from shakedown.simulation.mix import simulate_mix as run_mix
from shakedown.simulation.simulate import Stacks
from shakedown.simulation.simulate import simulate as run

if TYPE_CHECKING:
    from distributed import Client


@rows_of(Simulated, FailedSimulation)
@checked
def simulate(
    suites: str | Sequence[str],
    /,
    arrivals: str | Sequence[str] = "poisson:10/s",
    *,
    device: Names = DEFAULT_DEVICE,
    server_device: Names = DEFAULT_SERVER_DEVICE,
    bearer: Names = DEFAULT_BEARER,
    server_workers: int = 1,
    seed: int | None = None,
    traces: str | Path | None = None,
    server_software: str | Path | None = None,
    scale_from: str | Path | None = None,
    endpoints: bool = False,
    client_stack: str | None = None,
    server_stack: str | None = None,
    client: Client | None = None,
    progress: Callable[[int, int, str], None] | None = None,
    **fleet: object,
) -> list[Simulated | FailedSimulation]:
    """A fleet of clients in virtual time: a row a suite, place and arrivals, the same for the same seed.

    Suites, devices and bearers are a name each, or a list of names and patterns. `arrivals` is, or lists,
    `poisson:50/s`, `deterministic:50/s`, `bursts:100@2/min`, `storm:10s`, `storm:10s+backoff` or
    `file:PATH`; `fleet` are fields of `shakedown.native.scenario.Fleet`, as `clients`, `timeout_s`,
    `resumption`; the others are the options of the command `simulate`. With `endpoints` protocol engines of
    these stacks shake hands instead of a replay. With a Dask `client` each fleet is simulated in pieces on
    its cluster. Raises `InputError`.
    """
    if client is not None and endpoints:
        raise InputError("client with endpoints; accepted with a client: replayed handshakes")
    pool = None if client is None else Cluster(client)
    fleets = [options_of(Fleet, fleet, arrivals=one) for one in several(arrivals)]
    library, stand_in = opened(traces, server_software), profile_name(scale_from)
    sites = [
        Site(*place, server_workers, seed, library, stand_in)
        for place in places(device, server_device, bearer)
    ]
    engines = Stacks(client_stack, server_stack) if endpoints else None
    names = listed(suites)
    return [
        row
        for site in sites
        for wanted in fleets
        for row in run(names, wanted, site, endpoints=engines, pool=pool, progress=progress)
    ]


@overload
def simulate_mix(
    mix: str | Path | Sequence[Kind],
    arrivals: str = "poisson:10/s",
    *,
    progress: Callable[[int, int], None] | None = None,
    **options: object,
) -> SimulatedMix: ...
@overload
def simulate_mix(
    mix: list[str] | list[Path],
    arrivals: str = "poisson:10/s",
    *,
    progress: Callable[[int, int], None] | None = None,
    **options: object,
) -> Rows[SimulatedMix]: ...
@checked
def simulate_mix(
    mix: str | Path | Sequence[Kind] | Sequence[str | Path],
    arrivals: str = "poisson:10/s",
    *,
    progress: Callable[[int, int], None] | None = None,
    **options: object,
) -> SimulatedMix | Rows[SimulatedMix]:
    """A fleet of several kinds of clients at one server, in virtual time; the same for the same seed.

    `mix` is a file of tables `[[clients]]`, or kinds of clients (`shakedown.simulation.mix.Kind`); a list of
    files returns `Rows`. The others are as in `simulate`, but for endpoints and their stacks: device, bearer
    and resumption hold for kinds that name none. Raises `InputError`.
    """
    given = dict(options)
    software = options.pop("server_software", None)
    of_site = {name: options.pop(name) for name in Site.__dataclass_fields__ if name in options}
    of_fleet = set(Fleet.__struct_fields__) - {"arrivals", "endpoints", "mix"}
    for name in options:
        if name not in of_fleet:
            accepted = ", ".join(sorted(of_fleet | set(Site.__dataclass_fields__)))
            raise InputError(f"there is no option {name}; accepted: {accepted}")
    traces = of_site.pop("traces", None)
    check("traces", traces, "str | Path | None")
    check("server_software", software, "str | Path | None")
    for name in ("device", "server_device", "bearer", "scale_from"):
        if isinstance(of_site.get(name), Path):
            of_site[name] = profile_name(cast(Path, of_site[name]))
    check_fields(of_site, Site)
    of_site["traces"] = opened(cast("str | None", traces), cast("str | None", software))
    fleet, site = convert({"arrivals": arrivals, **options}, Fleet), Site(**cast(Any, of_site))
    if isinstance(mix, str | Path):
        return run_mix(read_mix(mix), fleet, site, name=Path(mix).stem, progress=progress)
    if mix and all(isinstance(one, str | Path) for one in mix):
        return Rows(
            simulate_mix(one, arrivals, progress=progress, **given)
            for one in cast("Sequence[str | Path]", mix)
        )
    return run_mix(cast("Sequence[Kind]", mix), fleet, site, progress=progress)
