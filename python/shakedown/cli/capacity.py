"""`capacity`: how many handshakes a second a server takes within a promised time, and which workers a
rate needs.
"""

from __future__ import annotations

from pathlib import Path

import click

from shakedown.cli._options import suites_argument
from shakedown.cli._output import console, echo, json_option, note, print_json
from shakedown.cli._scenario import PromisedTime, Rate, capacity_tables, scenario_options, seconds


@click.command("capacity")
@suites_argument
@scenario_options
@click.option(
    "--within", type=PromisedTime(), required=True, help="Promised time of a whole handshake: 2s, 250ms."
)
@click.option(
    "--percentile", type=float, help="Share in per cent that must keep the promise.  [default: the mean]"
)
@click.option("--rate", type=Rate(), help="Handshakes that arrive: how many workers do they need?")
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
    as_json: bool,
) -> None:
    """Find the highest rate of handshakes at which they stay within a promised time.

    The whole handshake counts: processing on both sides, transmission, and the wait in the server's
    queue. The
    server's work has a TCP connection's in it, kernel included.
    """
    from shakedown.pricing.capacity import capacity
    from shakedown.pricing.library import open_library

    rows = capacity(
        suites,
        within_s=within,
        device=device,
        server_device=server_device,
        bearer=bearer,
        percentile=percentile,
        workers=workers,
        rate_per_s=rate,
        traces=open_library(traces, say=note),
        scale_from=scale_from,
    )
    if as_json:
        print_json(rows)
        return
    promise = "the mean" if percentile is None else f"{percentile:g} % of handshakes"
    echo(f"modelled: {promise} within {seconds(within)}")
    echo(f"{device} over {bearer} to {server_device}, workers: {workers}")
    screen = console()
    for table in capacity_tables(rows, screen.width):
        screen.print(table)
