"""`predict`: what a handshake costs on other devices, over other networks, under load."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from shakedown.cli._options import suites_argument
from shakedown.cli._output import console, echo_folded, json_option, note, print_json, show
from shakedown.cli._scenario import Charge, Duration, Rate, per_second, prediction_tables, scenario_options
from shakedown.prediction.literature import LITERATURE


@click.command("predict")
@suites_argument
@scenario_options
@click.option(
    "--rate",
    "rate_per_s",
    type=Rate(),
    default="0",
    show_default=True,
    help="Handshakes that arrive: 300/s, 20/min.",
)
@click.option("--model", default="default", show_default=True, help=f"default, {', '.join(LITERATURE)}.")
@click.option(
    "--carrier",
    type=click.Choice(["bare", "eap"]),
    default="bare",
    show_default=True,
    help="What carries the handshake: the suite's own transport, or EAP-TLS over RADIUS.",
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
    help="Access point to RADIUS server and back.  [default: 5ms, assumed]",
)
@click.option(
    "--battery",
    "battery_j",
    type=Charge(),
    metavar="CHARGE",
    help="What the client's battery holds, 9000J, 2.5Wh or 230mAh@3V: how many handshakes is that?",
)
@click.option("--from-idle", is_flag=True, help="The radio begins idle: its set-up comes first.")
@json_option
def command(
    suites: tuple[str, ...],
    device: str,
    server_device: str,
    bearer: str,
    workers: int,
    traces: Path | None,
    rate_per_s: float,
    model: str,
    carrier: str,
    as_json: bool,
    **given: Any,  # noqa: ANN401 - as `predict_rows` takes them
) -> None:
    """Predict what handshakes cost elsewhere, from recorded traces and profiles.

    Every figure is modelled. Those that are not the device's own are scaled from its others, or assumed;
    where neither can be defended, they are missing, and said to be. --json names each with its method and
    range. "shakedown devices" and "shakedown bearers" list the profiles.
    """
    from shakedown.prediction.library import open_library
    from shakedown.prediction.predict import predict_rows

    rows = predict_rows(
        suites,
        device=device,
        server_device=server_device,
        bearer=bearer,
        rate_per_s=rate_per_s,
        model=model,
        server_workers=workers,
        traces=open_library(traces, say=note),
        carrier=carrier,
        **given,
    )
    if as_json:
        print_json(rows)
        return
    many = f", {workers} workers" if workers > 1 else ""
    to = f"{bearer} to {server_device}{many}"
    inside = " inside EAP" if carrier == "eap" else ""
    echo_folded(f"modelled ({model}{inside}): {device} over {to}, {per_second(rate_per_s)} handshakes/s")
    show(prediction_tables(rows, console().width))
