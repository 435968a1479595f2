"""Compares modelled, simulated and live handshakes."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from shakedown.experiments.figure_kinds import load_experiment
from shakedown.experiments.figure_kinds.live import compared
from shakedown.experiments.file.experiment import Experiment
from shakedown.experiments.runner import run_experiment
from shakedown.reporting.rows import Rows
from shakedown.schema.arguments import checked
from shakedown.schema.live import LiveRun


@checked
def compare_live(
    experiment: Experiment | str | Path,
    *,
    rate_per_s: float | None = None,
    time_s: float = 20.0,
    endpoints: bool = False,
    folder: str | Path | None = None,
) -> Rows[LiveRun]:
    """Compares modelled, simulated and live handshakes, as `validate --live` does.

    Each suite is measured in memory, and then served under load on this machine's loopback. Suites that fail
    are omitted.

    Args:
        experiment: an experiment, or its file.
        rate_per_s: new connections per second; default: the experiment's.
        time_s: total duration of all loads.
        endpoints: also run the protocol engines in virtual time.
        folder: the results folder to write; default: results are not kept.

    Raises:
        InputError: if there is nothing to compare.
    """
    wanted = load_experiment(experiment) if isinstance(experiment, str | Path) else experiment
    wanted = compared(wanted, rate_per_s, time_s, endpoints=endpoints)
    found: Rows[LiveRun] = Rows()
    with TemporaryDirectory() as temporary:
        run_experiment(
            wanted,
            Path(temporary) / "results" if folder is None else folder,
            printed=lambda one: found.append(one) if isinstance(one, LiveRun) else None,
        )
    return found
