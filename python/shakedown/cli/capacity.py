"""`capacity`: how many handshakes a second a server takes within a promised time."""

from __future__ import annotations

from pathlib import Path

import click

from shakedown.cli._options import suites_argument
from shakedown.cli._output import console, echo, json_option, note, print_json
from shakedown.cli._scenario import Duration, capacity_table, scenario_options


@click.command("capacity")
@suites_argument
@scenario_options
@click.option(
    "--within", type=Duration(), required=True, help="Promised time of a whole handshake: 2s, 250ms."
)
@click.option(
    "--percentile", type=float, help="Share in per cent that must keep the promise; left out, the mean."
)
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
    as_json: bool,
) -> None:
    """Find the highest rate of handshakes at which they stay within a promised time.

    The whole handshake counts: processing on both sides, transmission, and the wait in the server's queue.
    """
    from shakedown.pricing.library import open_library
    from shakedown.pricing.predict import capacity

    rows = capacity(
        suites,
        within_s=within,
        device=device,
        server_device=server_device,
        bearer=bearer,
        percentile=percentile,
        workers=workers,
        traces=open_library(traces, say=note),
        scale_from=scale_from,
    )
    if as_json:
        print_json(rows)
        return
    promise = "the mean" if percentile is None else f"{percentile:g} % of handshakes"
    echo(f"modelled: {promise} within {within:g} s")
    echo(f"{device} over {bearer} to {server_device}, workers: {workers}")
    console().print(capacity_table(rows))
