"""`simulate`: a fleet of clients in virtual time, over links, transports and a server's queue."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shakedown.cli._options import Where, any_suites_argument, command_of, computed_where, only_with, pool_of
from shakedown.cli._output import (
    counted,
    note,
    print_failures,
    print_json,
    print_objects,
    progress_bar,
    rows_options,
)
from shakedown.cli._scenario import note_radios, scenario_options
from shakedown.cli._types import FILE, Whole
from shakedown.errors import InputError
from shakedown.reporting.columns import Column, Selection

if TYPE_CHECKING:
    from shakedown.native.scenario import Fleet, Stacks
    from shakedown.schema.simulated import FailedSimulation, Simulated
    from shakedown.simulation.deployment import Site
    from shakedown.simulation.pieces import Pool


def _columns(given: dict[str, Any]) -> Sequence[Column]:
    from shakedown.reporting.columns.simulated import CLIENTS, FLEETS

    return CLIENTS if given["mix"] else FLEETS


@click.command(
    "simulate",
    cls=command_of("native.scenario.Fleet", before="seed"),
    epilog="Example: shakedown simulate tls1.3/x25519/p256/server --arrivals storm:2s --clients 1000",
)
@any_suites_argument
@click.option(
    "--mix",
    type=FILE,
    metavar="FILE",
    help="Instead of suites: kinds of clients, each with suite, weight, device, bearer.",
)
@scenario_options
@click.option(
    "--arrivals",
    metavar="SPEC",
    default="poisson:10/s",
    show_default=True,
    help="When clients arrive: poisson:50/s, deterministic:50/s, bursts:100@2/min, storm:10s, "
    "storm:10s+backoff, diurnal:50/s,peak=20h,swing=0.8, rates:PATH, file:PATH, log:PATH.",
)
@click.option("--seed", type=Whole(), metavar="K", help="Random seed.  [default: 1]")
@click.option(
    "--endpoints",
    is_flag=True,
    help="Run real protocol stacks in virtual time, and compare a replay with them.",
)
@click.option(
    "--stack", metavar="NAME", help="With --endpoints: stack of both sides.  [default: the suite's]"
)
@click.option("--client-stack", metavar="NAME", help="With --endpoints: stack of the client.")
@click.option("--server-stack", metavar="NAME", help="With --endpoints: stack of the server.")
@computed_where
@rows_options(_columns)
def command(
    suites: tuple[str, ...],
    mix: Path | None,
    device: str,
    server_device: str,
    bearer: str,
    workers: int,
    scale_from: str | None,
    traces: Path | None,
    server_software: str | None,
    seed: int | None,
    endpoints: bool,
    stack: str | None,
    client_stack: str | None,
    server_stack: str | None,
    selection: Selection,
    cluster: Where,
    **given: Any,  # noqa: ANN401 - fields of `Fleet`
) -> None:
    """Simulate a fleet of clients of each suite, in virtual time.

    Replays recorded handshakes with the devices' processing times, over the bearer with Linux's TCP or the
    protocol's own retransmission. The server has a queue. Each suite has its own fleet. The same seed gives
    the same figures.

    With --endpoints real protocol stacks perform the handshakes, with real cryptography, over the same
    links and TCP. Processing times still come from the devices. A line compares the result with a replay.

    --processes and --scheduler distribute one fleet over processes and machines: by replications, and a storm
    by servers that share no client (--balance hash, or cell with --cells). The figures are the same.
    """
    from shakedown.native.scenario import Fleet, Stacks
    from shakedown.prediction.library import open_library
    from shakedown.profiles import places
    from shakedown.schema.options import options_of
    from shakedown.simulation.deployment import Site

    if bool(suites) == (mix is not None):
        found = "both suites and --mix" if suites else "neither a suite nor --mix"
        raise InputError(f"found {found}; accepted: one suite or more, or --mix FILE")
    stacks = {"stack": stack, "client_stack": client_stack, "server_stack": server_stack}
    only_with("--endpoints", endpoints, **stacks)
    fleet = options_of(Fleet, given)
    library = open_library(traces, note, server_software=server_software)
    sites = [
        Site(*place, workers, seed, library, scale_from)
        for place in places([device], [server_device], [bearer])
    ]
    if endpoints and mix is not None:
        raise InputError("--mix and --endpoints are both given; accepted with --endpoints: suites")
    if endpoints and not isinstance(cluster, nullcontext):
        raise InputError("--endpoints is given with --processes or --scheduler; accepted: one of them")
    engines = Stacks(client_stack or stack, server_stack or stack) if endpoints else None
    with pool_of(cluster) as pool:
        if mix is not None:
            _simulate_mix(mix, fleet, sites[0], selection, pool)
        else:
            _simulate_suites(suites, fleet, engines, sites, selection, pool)


def _in_cells(fleet: Fleet) -> bool:
    return fleet.cells is not None or fleet.clients_per_cell is not None


def _simulate_suites(
    suites: tuple[str, ...],
    fleet: Fleet,
    engines: Stacks | None,
    sites: list[Site],
    selection: Selection,
    pool: Pool | None,
) -> None:
    from shakedown.simulation.simulate import simulate

    rows: list[Simulated | FailedSimulation] = []
    with progress_bar(1000 * len(suites) * len(sites), "simulating") as update:
        for position, site in enumerate(sites):
            numbers: dict[str, int] = {}

            def advance(
                done: int, total: int, label: str, numbers: dict[str, int] = numbers, first: int = position
            ) -> None:
                number = first * len(suites) + numbers.setdefault(label, len(numbers))
                update(1000 * number + 1000 * done // max(total, 1), label)

            rows += simulate(suites, fleet, site, endpoints=engines, pool=pool, progress=advance)
    note_radios([site.bearer for site in sites], from_idle=fleet.from_idle, in_cells=_in_cells(fleet))
    if selection.json:
        print_json(rows)
        return
    from shakedown.schema.base import builtins
    from shakedown.schema.simulated import Simulated

    good = [row for row in rows if isinstance(row, Simulated)]
    if good:
        print_objects(good, selection)
    print_failures([builtins(row) for row in rows if row not in good], to_error=selection.csv)


def _simulate_mix(path: Path, fleet: Fleet, site: Site, selection: Selection, pool: Pool | None) -> None:
    from shakedown.simulation.mix import read_mix, simulate_mix

    kinds = read_mix(path)
    with counted("simulating") as update:
        row = simulate_mix(
            kinds, fleet, site, name=path.stem, pool=pool, progress=lambda *done: update(*done, path.stem)
        )
    bearers = [kind.bearer or site.bearer for kind in kinds]
    note_radios(bearers, from_idle=fleet.from_idle, in_cells=_in_cells(fleet))
    print_objects([row], selection)
