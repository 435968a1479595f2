"""Shakedown: what a secure handshake costs, on your device, over your network, at your load.

>>> import shakedown
>>> result = shakedown.measure("tls1.2/psk", repeat=30)
>>> result.bytes.total  # doctest: +SKIP

Importing the package loads nothing else and has no side effects; each name is loaded when first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shakedown.api import (
        attach,
        attach_live,
        authenticate,
        bearers,
        capture,
        certs,
        check_bearer,
        compare_live,
        devices,
        measure,
        measure_path,
        primitives,
        report,
        reproduce,
        serve,
        simulate,
        simulate_mix,
        suites,
    )
    from shakedown.errors import InputError, ShakedownError
    from shakedown.experiments.figure_kinds import load_experiment
    from shakedown.experiments.file import Experiment
    from shakedown.experiments.runner import run_experiment
    from shakedown.live.load_test import load
    from shakedown.native import canonical, describe, inspect, machine, stacks
    from shakedown.prediction.capacity import capacity
    from shakedown.prediction.predict import predict
    from shakedown.results.folder import Results, load_results

    __version__: str

_HOMES = {
    "api": (
        "attach", "attach_live", "authenticate", "bearers", "capture", "certs", "check_bearer",
        "compare_live", "devices", "measure", "measure_path", "primitives",
        "report", "reproduce", "serve", "simulate", "simulate_mix", "suites",
    ),
    "native": ("canonical", "describe", "inspect", "machine", "stacks"),
    "errors": ("InputError", "ShakedownError"),
    "experiments.file": ("Experiment",),
    "experiments.figure_kinds": ("load_experiment",),
    "live.load_test": ("load",),
    "prediction.capacity": ("capacity",),
    "prediction.predict": ("predict",),
    "results.folder": ("Results", "load_results"),
    "experiments.runner": ("run_experiment",),
}  # fmt: skip
"""Where each name lives."""

__all__ = [
    "Experiment",
    "InputError",
    "Results",
    "ShakedownError",
    "__version__",
    "attach",
    "attach_live",
    "authenticate",
    "bearers",
    "canonical",
    "capacity",
    "capture",
    "certs",
    "check_bearer",
    "compare_live",
    "describe",
    "devices",
    "inspect",
    "load",
    "load_experiment",
    "load_results",
    "machine",
    "measure",
    "measure_path",
    "predict",
    "primitives",
    "report",
    "reproduce",
    "run_experiment",
    "serve",
    "simulate",
    "simulate_mix",
    "stacks",
    "suites",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - the names above have types of their own
    if name == "__version__":
        from shakedown.native import build

        return build().shakedown
    for home, names in _HOMES.items():
        if name in names:
            from importlib import import_module

            found = globals()[name] = getattr(import_module(f"{__name__}.{home}"), name)
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
