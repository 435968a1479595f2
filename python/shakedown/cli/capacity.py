"""`capacity`: how many handshakes a second a server takes within a promised time, and which workers a
rate needs.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from shakedown.cli._options import suites_argument
from shakedown.cli._output import console, echo_folded, json_option, note, print_json, progress_bar, show
from shakedown.cli._scenario import PromisedTime, Rate, capacity_tables, scenario_options, seconds
from shakedown.errors import InputError

if TYPE_CHECKING:
    from shakedown.simulation.deployment import Site


@click.command("capacity")
@suites_argument
@scenario_options
@click.option(
    "--within", type=PromisedTime(), required=True, help="Promised time until the client is ready: 2s, 250ms."
)
@click.option(
    "--percentile", type=float, help="Share in per cent that must keep the promise.  [default: the mean]"
)
@click.option("--rate", type=Rate(), help="Handshakes that arrive: how many workers do they need?")
@click.option("--simulated", is_flag=True, help="Search by simulating fleets, not by formula.")
@click.option("--seed", type=int, metavar="K", help="Of what a simulation draws.  [default: 1]")
@json_option
def command(
    suites: tuple[str, ...],
    device: str,
    server_device: str,
    bearer: str,
    workers: int,
    scale_from: str | None,
    traces: Path | None,
    within: float,
    percentile: float | None,
    rate: float | None,
    simulated: bool,
    seed: int | None,
    as_json: bool,
) -> None:
    """Find the highest rate of handshakes at which clients are ready within a promised time.

    That time has both sides' processing, transmission, and the wait in the server's queue in it. The
    server's work includes a TCP connection's, with the kernel.
    """
    from shakedown.prediction.library import open_library

    if not simulated and seed is not None:
        raise InputError("--seed goes with --simulated, which is missing")
    if simulated:
        if rate is not None:
            raise InputError("--rate with --simulated; accepted: one of the two")
        from shakedown.simulation.deployment import Site

        site = Site(device, server_device, bearer, workers, seed, open_library(traces, say=note), scale_from)
        _simulated(suites, site, within_s=within, percentile=percentile, as_json=as_json)
        return
    from shakedown.prediction.capacity import capacity_rows

    rows = capacity_rows(
        suites,
        within_s=within,
        device=device,
        server_device=server_device,
        bearer=bearer,
        percentile=percentile,
        server_workers=workers,
        rate_per_s=rate,
        traces=open_library(traces, say=note),
        scale_from=scale_from,
    )
    if as_json:
        print_json(rows)
        return
    promise = "the mean" if percentile is None else f"{percentile:.12g} % of handshakes"
    echo_folded(f"modelled: {promise} within {seconds(within)}")
    echo_folded(f"{device} over {bearer} to {server_device}, workers: {workers}")
    show(capacity_tables(rows, console().width))


def _simulated(
    suites: tuple[str, ...], site: Site, *, within_s: float, percentile: float | None, as_json: bool
) -> None:
    from shakedown.simulation.capacity import simulated_capacity

    with progress_bar(len(suites), "simulating") as update:
        done: list[str] = []

        def advance(label: str) -> None:
            update(len(done), label)
            done.append(label)

        rows = simulated_capacity(suites, site, within_s=within_s, percentile=percentile, progress=advance)
    if as_json:
        print_json(rows)
        return
    from shakedown.reporting.terminal.simulated import capacity_heading, capacity_tables

    echo_folded(capacity_heading(rows))
    show(capacity_tables(rows, console().width))
