"""The functions `shakedown.simulate` and `simulate_mix`: fleets of clients in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast, overload

from shakedown.api.rows import rows_of
from shakedown.errors import InputError
from shakedown.experiments.cluster import Cluster
from shakedown.native.scenario import DEFAULT_ARRIVALS, DEFAULT_BEARER, DEFAULT_DEVICE, Fleet, Stacks
from shakedown.native.suite_names import listed
from shakedown.prediction.inputs import Costs, ServerModel
from shakedown.profiles.registry import Names, places
from shakedown.reporting.rows import Rows
from shakedown.schema.arguments import checked
from shakedown.schema.simulated import FailedSimulation, Simulated, SimulatedMix
from shakedown.simulation.deployment import Site
from shakedown.simulation.mix import Kind, read_mix
from shakedown.simulation.mix import simulate_mix as run_mix
from shakedown.simulation.simulate import simulate as run

if TYPE_CHECKING:
    from distributed import Client


@rows_of(Simulated, FailedSimulation)
@checked
def simulate(
    suites: str | Sequence[str],
    /,
    fleet: Fleet | str | Sequence[Fleet | str] = DEFAULT_ARRIVALS,
    *,
    device: Names = DEFAULT_DEVICE,
    bearer: Names = DEFAULT_BEARER,
    server: ServerModel = ServerModel(),
    costs: Costs = Costs(),
    endpoints: bool | Stacks = False,
    seed: int | None = None,
    client: Client | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> list[Simulated | FailedSimulation]:
    """Simulates fleets of clients in virtual time: one row per suite, place and fleet. The same seed gives
    the same rows.

    Args:
        suites: a suite's name, or a list of names and patterns.
        fleet: a `Fleet`, or only its arrivals, such as `"storm:10s"`; or a list of both.
        device, bearer: a profile's name or path, or a list of them and of patterns.
        server: the device, workers and software of each server.
        costs: the recorded handshakes, and a device whose figures are scaled.
        endpoints: protocol engines perform the handshakes, instead of a replay of recordings: those of the
            suite's default stacks, or of these `Stacks`.
        seed: random seed; default: 1.
        client: a Dask client: each fleet is simulated in pieces on its cluster.
        progress: called with the number of completed clients, the number of all clients, and the suite.

    Raises:
        InputError: for invalid arguments.
    """
    if client is not None and endpoints:
        raise InputError("client with endpoints; accepted with a client: replayed handshakes")
    pool = None if client is None else Cluster(client)
    fleets = [_fleet(one) for one in ([fleet] if isinstance(fleet, Fleet | str) else fleet)]
    sites = _sites(device, bearer, server, costs, seed)
    engines = None if not endpoints else endpoints if isinstance(endpoints, Stacks) else Stacks()
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
    fleet: Fleet | str = DEFAULT_ARRIVALS,
    *,
    device: str | Path = DEFAULT_DEVICE,
    bearer: str | Path = DEFAULT_BEARER,
    server: ServerModel = ...,
    costs: Costs = ...,
    seed: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> SimulatedMix: ...
@overload
def simulate_mix(
    mix: list[str] | list[Path],
    fleet: Fleet | str = DEFAULT_ARRIVALS,
    *,
    device: str | Path = DEFAULT_DEVICE,
    bearer: str | Path = DEFAULT_BEARER,
    server: ServerModel = ...,
    costs: Costs = ...,
    seed: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Rows[SimulatedMix]: ...
@checked
def simulate_mix(
    mix: str | Path | Sequence[Kind] | Sequence[str | Path],
    fleet: Fleet | str = DEFAULT_ARRIVALS,
    *,
    device: str | Path = DEFAULT_DEVICE,
    bearer: str | Path = DEFAULT_BEARER,
    server: ServerModel = ServerModel(),
    costs: Costs = Costs(),
    seed: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> SimulatedMix | Rows[SimulatedMix]:
    """Simulates a fleet of several kinds of clients at one server, in virtual time. The same seed gives the
    same result.

    Args:
        mix: a file of tables `[[clients]]`, or kinds of clients (`shakedown.simulation.mix.Kind`); a list of
            files returns `Rows`.
        fleet: a `Fleet`, or only its arrivals, such as `"storm:10s"`. Its resumption applies to kinds that do
            not specify one.
        device, bearer: a profile's name or path, for kinds that do not specify one.
        server, costs, seed: as for `simulate`.
        progress: called with the number of completed clients, and the number of all clients.

    Raises:
        InputError: for invalid arguments.
    """
    sites, wanted = _sites(device, bearer, server, costs, seed), _fleet(fleet)
    if len(sites) != 1:
        raise InputError(f"the server's device is one of {len(sites)}; accepted: one, for all clients")

    def simulated(kinds: Sequence[Kind], name: str = "mix") -> SimulatedMix:
        return run_mix(kinds, wanted, sites[0], name=name, progress=progress)

    if isinstance(mix, str | Path):
        return simulated(read_mix(mix), Path(mix).stem)
    if mix and all(isinstance(one, str | Path) for one in mix):
        files = cast("Sequence[str | Path]", mix)
        return Rows(simulated(read_mix(one), Path(one).stem) for one in files)
    return simulated(cast("Sequence[Kind]", mix))


def _fleet(given: Fleet | str) -> Fleet:
    """Converts arrivals to a fleet. Raises `InputError` for fields that only experiments may set."""
    fleet = given if isinstance(given, Fleet) else Fleet(arrivals=given)
    if fleet.endpoints or fleet.mix is not None:
        raise InputError("a fleet with endpoints or a mix; accepted: endpoints=True, or simulate_mix")
    return fleet


def _sites(device: Names, bearer: Names, server: ServerModel, costs: Costs, seed: int | None) -> list[Site]:
    library = costs.library(server)
    return [
        Site(*place, server.workers, seed, library, costs.stand_in)
        for place in places(device, server.device, bearer)
    ]
