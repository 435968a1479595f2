"""`validate`: is an experiment file right, before anything runs?"""

from __future__ import annotations

from pathlib import Path

import click

from shakedown.cli._output import note


@click.command("validate")
@click.argument("experiment", type=click.Path(path_type=Path), metavar="EXPERIMENT.toml")
def command(experiment: Path) -> None:
    """Check an experiment file without running it."""
    from shakedown.experiment import load_experiment
    from shakedown.runner import own_lines

    found = load_experiment(experiment)
    parts = [_many(len(found.suites), "suite"), _many(found.repeat, "repetition")] if found.suites else []
    for values, what in (
        (found.devices, "device"),
        (found.bearers, "bearer"),
        (found.rates_per_s, "rate"),
        (found.captures, "capture"),
    ):
        if values:
            parts.append(_many(len(values), what))
    click.echo(f"{experiment}: valid: {', '.join(parts)}")
    for remark in (*own_lines(found.own), *found.own.notes):
        note(remark)


def _many(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
