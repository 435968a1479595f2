"""`validate`: is an experiment file right, before anything runs?"""

from __future__ import annotations

from pathlib import Path

import click


@click.command("validate")
@click.argument("experiment", type=click.Path(path_type=Path), metavar="EXPERIMENT.toml")
def command(experiment: Path) -> None:
    """Check an experiment file without running it."""
    from shakedown.experiment import load_experiment

    found = load_experiment(experiment)
    parts = [_many(len(found.suites), "suite"), _many(found.repeat, "repetition")]
    for values, what in ((found.devices, "device"), (found.bearers, "bearer"), (found.rates_per_s, "rate")):
        if values:
            parts.append(_many(len(values), what))
    click.echo(f"{experiment}: valid: {', '.join(parts)}")


def _many(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
