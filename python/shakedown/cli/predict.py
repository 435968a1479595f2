"""`predict`: the cost of a handshake on other devices, over other networks, under load."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from shakedown.cli._options import command_of, suites_argument
from shakedown.cli._output import note, print_estimates, rows_options
from shakedown.cli._scenario import note_radios, scenario_options
from shakedown.cli._types import RATE
from shakedown.reporting.columns import Selection


@click.command(
    "predict",
    cls=command_of("schema.options.PredictionOptions", before="as_json"),
    epilog="Example: shakedown predict tls1.3/x25519/p256/server --device cortex-m4 --bearer nb-iot",
)
@suites_argument
@scenario_options
@click.option(
    "--rate",
    "rate_per_s",
    type=RATE,
    default="0",
    show_default=True,
    help="Arrival rate of handshakes: 300/s, 20/min.",
)
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
    scale_from: str | None,
    selection: Selection,
    **given: Any,  # noqa: ANN401 - fields of `PredictionOptions`
) -> None:
    """Predict what handshakes cost on other devices and networks, from recordings and profiles.

    Every figure is modelled. Costs that the device's profile lacks are scaled from its other costs, or
    assumed; figures without a credible estimate are omitted and listed. --json names each scaled or assumed
    cost with its method and range. "shakedown devices" and "shakedown bearers" list the profiles.
    """
    from shakedown.prediction.inputs import Costs, ServerModel
    from shakedown.prediction.library import open_library
    from shakedown.prediction.predict import predict_rows
    from shakedown.profiles import places
    from shakedown.schema.options import PredictionOptions, options_of

    options = options_of(PredictionOptions, given)
    library = open_library(traces, note, server_software=server_software)
    rows = predict_rows(
        suites,
        device=[device],
        bearer=[bearer],
        rate_per_s=rate_per_s,
        server=ServerModel([server_device], workers),
        costs=Costs(library, scale_from),
        options=options,
    )
    networks = [network for *_, network in places([device], [server_device], [bearer])]
    note_radios(networks, from_idle=options.from_idle)
    print_estimates(rows, selection, "Prediction")
