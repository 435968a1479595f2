"""`predict`: what a handshake costs on other devices, over other networks, under load."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shakedown.cli._options import suites_argument
from shakedown.cli._output import json_option, note, print_estimates, rows_options
from shakedown.cli._scenario import Charge, Duration, Rate, note_without_setup, scenario_options
from shakedown.prediction.literature import LITERATURE

if TYPE_CHECKING:
    from shakedown.reporting.columns import Selection


@click.command(
    "predict",
    epilog="Example: shakedown predict tls1.3/x25519/p256/server --device cortex-m4 --bearer nb-iot",
)
@suites_argument
@scenario_options
@click.option(
    "--rate",
    "rate_per_s",
    type=Rate(),
    default="0",
    show_default=True,
    help="Arrival rate of handshakes: 300/s, 20/min.",
)
@click.option(
    "--model", metavar="NAME", default="default", show_default=True, help=f"default, {', '.join(LITERATURE)}."
)
@click.option(
    "--carrier",
    type=click.Choice(["bare", "eap"]),
    default="bare",
    show_default=True,
    help="Transport: the suite's own (bare), or EAP-TLS over RADIUS.",
)
@click.option(
    "--fragment",
    "fragment_bytes",
    type=int,
    metavar="BYTES",
    help="TLS bytes in an EAP packet.  [default: 1398]",
)
@click.option(
    "--radius-hop",
    "radius_hop_s",
    type=Duration(),
    metavar="TIME",
    help="Round-trip time between access point and RADIUS server.  [default: 5ms, assumed]",
)
@click.option(
    "--battery",
    "battery_j",
    type=Charge(),
    metavar="CHARGE",
    help="The client's battery (9000J, 2.5Wh, 230mAh@3V): print handshakes per charge.",
)
@click.option("--from-idle", is_flag=True, help="The radio is idle at first and has to be set up.")
@json_option
@rows_options("modelled.PREDICTIONS")
def command(
    suites: tuple[str, ...],
    device: str,
    server_device: str,
    bearer: str,
    workers: int,
    traces: Path | None,
    server_software: str | None,
    rate_per_s: float,
    model: str,
    carrier: str,
    as_json: bool,
    selection: Selection,
    **given: Any,  # noqa: ANN401 - as `predict_rows` takes them
) -> None:
    """Predict what handshakes cost on other devices and networks, from recordings and profiles.

    Every figure is modelled. Those that are not the device's own are scaled from its others, or assumed;
    figures without a credible estimate are omitted and listed. --json names each with its method and
    range. "shakedown devices" and "shakedown bearers" list the profiles.
    """
    from shakedown.prediction.library import open_library
    from shakedown.prediction.predict import predict_rows
    from shakedown.profiles import places

    rows = predict_rows(
        suites,
        device=[device],
        server_device=[server_device],
        bearer=[bearer],
        rate_per_s=rate_per_s,
        model=model,
        server_workers=workers,
        traces=open_library(traces, note, server_software=server_software),
        carrier=carrier,
        **given,
    )
    if given["from_idle"]:
        note_without_setup(network for *_, network in places([device], [server_device], [bearer]))
    print_estimates(rows, selection, "Prediction", as_json=as_json)
