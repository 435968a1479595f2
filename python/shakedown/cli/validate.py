"""`validate`: is an experiment file right, before anything runs?"""

from __future__ import annotations

from pathlib import Path

import click

from shakedown.cli._output import echo, note


@click.command("validate")
@click.argument("experiment", type=click.Path(path_type=Path), metavar="EXPERIMENT.toml")
def command(experiment: Path) -> None:
    """Check an experiment file without running it."""
    from shakedown.experiment import load_experiment
    from shakedown.runner import chain_lines
    from shakedown.terminal.figures import count

    found = load_experiment(experiment)
    measured, places = found.of("measured"), found.places
    parts = (
        [count(len(measured), "suite"), count(measured[0].options.repeat, "repetition")] if measured else []
    )
    for values, what in (
        (places.devices, "device"),
        (places.bearers, "bearer"),
        (places.rates_per_s, "rate"),
        (found.of("captured"), "capture"),
    ):
        if values:
            parts.append(count(len(values), what))
    echo(f"{experiment}: valid: {', '.join(parts)}")
    for remark in (*chain_lines(found), *found.notes):
        note(remark)
