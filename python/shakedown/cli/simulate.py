"""`simulate`: a fleet of clients in virtual time, over links, transports and a server's queue."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shakedown.cli._options import FILE
from shakedown.cli._output import console, echo_folded, json_option, note, print_json, progress_bar, show
from shakedown.cli._scenario import Duration, scenario_options
from shakedown.errors import InputError

if TYPE_CHECKING:
    from shakedown.native.scenario import Fleet
    from shakedown.simulation.deployment import Site


@click.command("simulate")
@click.argument("suites", nargs=-1, metavar="SUITE…")
@click.option(
    "--mix",
    type=FILE,
    metavar="FILE",
    help="In place of suites: clients of several kinds, each with its suite, weight, device, bearer.",
)
@scenario_options
@click.option(
    "--arrivals",
    metavar="SPEC",
    default="poisson:10/s",
    show_default=True,
    help="When clients arrive: poisson:50/s, deterministic:50/s, bursts:100@2/min, storm:10s, "
    "storm:10s+backoff, file:PATH.",
)
@click.option(
    "--clients", type=int, metavar="N", help="How many.  [default: 100,000 at a rate; 10,000 in a storm]"
)
@click.option("--seed", type=int, metavar="K", help="Of everything that is drawn.  [default: 1]")
@click.option(
    "--timeout",
    "timeout_s",
    type=Duration(),
    help="For one attempt.  [default: its transport's; 30s where clients try again]",
)
@click.option(
    "--retries", type=int, metavar="N", help="Attempts after the first.  [default: 0; 10 with +backoff]"
)
@click.option(
    "--resumption",
    type=float,
    default=0.0,
    metavar="SHARE",
    help="Share of the clients that resume.  [default: 0]",
)
@click.option("--from-idle", is_flag=True, help="Radios begin idle: their set-up comes first.")
@click.option(
    "--discipline",
    type=click.Choice(["fifo", "ps"]),
    default="fifo",
    show_default=True,
    help="Order of service: first come, first served, or processor sharing.",
)
@click.option(
    "--max-handshakes", type=int, metavar="N", help="That the server works on at once.  [default: any]"
)
@click.option(
    "--accept-queue", type=int, metavar="N", help="Connections that wait meanwhile.  [default: any]"
)
@click.option(
    "--replications",
    type=int,
    metavar="N",
    help="Runs that share the clients; more than one give intervals.  [default: 10 at a rate]",
)
@click.option(
    "--endpoints",
    is_flag=True,
    help="Run real protocol engines in virtual time instead of replaying, and check the replay against them.",
)
@click.option("--stack", metavar="NAME", help="With --endpoints: runs both sides.  [default: the suite's]")
@click.option("--client-stack", metavar="NAME", help="With --endpoints: runs the client's side.")
@click.option("--server-stack", metavar="NAME", help="With --endpoints: runs the server's side.")
@json_option
def command(
    suites: tuple[str, ...],
    mix: Path | None,
    device: str,
    server_device: str,
    bearer: str,
    workers: int,
    scale_from: str | None,
    traces: Path | None,
    seed: int | None,
    endpoints: bool,
    stack: str | None,
    client_stack: str | None,
    server_stack: str | None,
    as_json: bool,
    **given: Any,  # noqa: ANN401 - fields of `Fleet`
) -> None:
    """Simulate a fleet of clients of each suite, in virtual time.

    Recorded handshakes, priced on the devices, are replayed over the bearer, with Linux's TCP or the
    protocol's own retransmission, against a server with a queue. Each suite has a fleet of its own; the same
    seed gives the same figures.

    With --endpoints the stacks themselves shake hands, with real cryptography, over the same links and TCP:
    flights, fragments, timers and retransmissions are theirs. Their work takes what the recorded messages
    are priced at. A line says how far a replay of the same is from them.
    """
    from shakedown.native.scenario import Fleet
    from shakedown.prediction.library import open_library
    from shakedown.simulation.deployment import Site

    if bool(suites) == (mix is not None):
        found = "both suites and --mix" if suites else "neither a suite nor --mix"
        raise InputError(f"found {found}; accepted: one suite or more, or --mix FILE")
    for name, chosen in (
        ("--stack", stack),
        ("--client-stack", client_stack),
        ("--server-stack", server_stack),
    ):
        if chosen is not None and not endpoints:
            raise InputError(f"{name} goes with --endpoints, which is missing")
    fleet = Fleet(**given)
    site = Site(device, server_device, bearer, workers, seed, open_library(traces, say=note), scale_from)
    if mix is not None:
        if endpoints:
            raise InputError("--mix goes with replayed handshakes; accepted with --endpoints: suites")
        _simulate_mix(mix, fleet, site, as_json=as_json)
        return
    engines = (client_stack or stack, server_stack or stack) if endpoints else None
    _simulate_suites(suites, fleet, engines, site, as_json=as_json)


def _simulate_suites(
    suites: tuple[str, ...],
    fleet: Fleet,
    engines: tuple[str | None, str | None] | None,
    site: Site,
    *,
    as_json: bool,
) -> None:
    from shakedown.simulation.simulate import Stacks, simulate

    with progress_bar(1000 * len(suites), "simulating") as update:
        numbers: dict[str, int] = {}

        def advance(done: int, total: int, label: str) -> None:
            number = numbers.setdefault(label, len(numbers))
            update(1000 * number + 1000 * done // max(total, 1), label)

        stacks = None if engines is None else Stacks(*engines)
        rows = simulate(suites, fleet, site, endpoints=stacks, progress=advance)
    if as_json:
        print_json(rows)
        return
    from shakedown.reporting.terminal.simulated import fleet_tables, heading

    echo_folded(heading(rows))
    show(fleet_tables(rows, console().width))


def _simulate_mix(path: Path, fleet: Fleet, site: Site, *, as_json: bool) -> None:
    from shakedown.simulation.mix import read_mix, simulate_mix

    kinds = read_mix(path)
    with progress_bar(1000, "simulating") as update:

        def advance(done: int, total: int) -> None:
            update(1000 * done // max(total, 1), path.stem)

        row = simulate_mix(kinds, fleet, site, name=path.stem, progress=advance)
    if as_json:
        print_json([row])
        return
    from shakedown.reporting.terminal.mixture import mix_heading, mix_tables

    echo_folded(mix_heading(row))
    show(mix_tables(row, console().width))
