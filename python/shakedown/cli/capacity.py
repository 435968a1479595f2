"""`capacity`: the highest rate of handshakes within a time limit, and the workers that a rate needs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shakedown.cli._options import only_with, suites_argument
from shakedown.cli._output import (
    note,
    print_estimates,
    progress_bar,
    rows_options,
)
from shakedown.cli._scenario import note_radios, scenario_options
from shakedown.cli._types import NUMBER, RATE, Duration, Whole
from shakedown.errors import InputError
from shakedown.reporting.columns import Selection

if TYPE_CHECKING:
    from shakedown.schema.predictions import Calibration
    from shakedown.simulation.deployment import Site


@click.command("capacity", epilog="Example: shakedown capacity tls1.3/x25519/p256/server --within 2s")
@suites_argument
@scenario_options
@click.option(
    "--within",
    type=Duration(),
    required=True,
    help="Limit of the time until the client is ready: 2s, 250ms.",
)
@click.option(
    "--percentile", metavar="P", type=NUMBER, help="Percentile that must meet --within.  [default: the mean]"
)
@click.option("--rate", type=RATE, help="Arrival rate: print the number of workers that it needs.")
@click.option("--simulated", is_flag=True, help="Search by simulating fleets.")
@click.option(
    "--records",
    metavar="SPEC",
    help="With --simulated: data that each client sends after its handshake: "
    "rate=100B/s,for=10min,size=512B.",
)
@click.option(
    "--cells",
    metavar="N",
    type=Whole(),
    help="With --simulated: cells that clients share.  [default: each client has its own link]",
)
@click.option(
    "--from-idle",
    is_flag=True,
    help="With --simulated: radios are idle at first and have to be set up.",
)
@click.option(
    "--calibrate",
    metavar="HOST:PORT",
    help="Load a running server for some seconds, and use its measured work.",
)
@click.option("--authorized-target", metavar="HOST", help="Permit load on HOST, another machine.")
@click.option("--seed", type=Whole(), metavar="K", help="Random seed.  [default: 1]")
@rows_options("capacity.CAPACITIES")
def command(
    suites: tuple[str, ...],
    device: str,
    server_device: str,
    bearer: str,
    workers: int,
    scale_from: str | None,
    traces: Path | None,
    server_software: str | None,
    within: float,
    percentile: float | None,
    rate: float | None,
    simulated: bool,
    records: str | None,
    cells: int | None,
    from_idle: bool,
    calibrate: str | None,
    authorized_target: str | None,
    seed: int | None,
    selection: Selection,
) -> None:
    """Find the highest rate of handshakes at which clients are ready in time.

    The time includes both sides' processing, transmission, and the wait in the server's queue. The
    server's work includes its TCP connection in the kernel.
    """
    from shakedown.prediction.library import open_library

    only_with("--calibrate", calibrate is not None, authorized_target=authorized_target)
    if calibrate is not None and simulated:
        raise InputError("--calibrate and --simulated are both given; accepted: one of them")
    only_with("--simulated", simulated, seed=seed, records=records, cells=cells, from_idle=from_idle)
    library = open_library(traces, note, server_software=server_software)
    if simulated:
        if rate is not None:
            raise InputError("--rate and --simulated are both given; accepted: one of them")
        from shakedown.profiles import places
        from shakedown.simulation.deployment import Site

        sites = [
            Site(*place, workers, seed, library, scale_from)
            for place in places([device], [server_device], [bearer])
        ]
        rows = _simulated(
            suites,
            sites,
            within_s=within,
            percentile=percentile,
            records=records,
            cells=cells,
            from_idle=from_idle,
        )
        note_radios([site.bearer for site in sites], from_idle=from_idle, in_cells=cells is not None)
    else:
        from shakedown.prediction.capacity import capacity_rows
        from shakedown.prediction.inputs import Costs, ServerModel

        calibrations = (
            [] if calibrate is None else list(_calibrated(suites, calibrate, workers, authorized_target))
        )
        rows = capacity_rows(
            suites,
            within_s=within,
            percentile=percentile,
            rate_per_s=rate,
            device=[device],
            bearer=[bearer],
            server=ServerModel([server_device], workers),
            costs=Costs(library, scale_from),
            calibrations=calibrations,
        )
    print_estimates(rows, selection, "Capacity")


def _calibrated(
    suites: tuple[str, ...], target: str, workers: int, authorized_target: str | None
) -> Iterator[Calibration]:
    from shakedown import native
    from shakedown.live.calibration import ROUNDS, calibrate

    with progress_bar(len(suites) * (ROUNDS + 1), "calibrating") as update:
        for number, suite in enumerate(map(native.canonical, suites)):

            def advance(done: int, _: int, at: int = number * (ROUNDS + 1), suite: str = suite) -> None:
                update(at + done, suite)

            yield calibrate(
                target,
                suite,
                server_workers=workers,
                authorized_target=authorized_target,
                progress=advance,
            )


def _simulated(
    suites: tuple[str, ...],
    sites: list[Site],
    **asked: Any,  # noqa: ANN401 - those of `simulated_capacity`
) -> list[dict[str, Any]]:
    from shakedown.schema.base import builtins
    from shakedown.simulation.capacity import simulated_capacity

    with progress_bar(len(suites) * len(sites), "simulating") as update:
        done: list[str] = []

        def advance(label: str) -> None:
            update(len(done), label)
            done.append(label)

        return [
            builtins(row)
            for site in sites
            for row in simulated_capacity(suites, site, **asked, progress=advance)
        ]
