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
    from shakedown.core import canonical, describe, inspect, machine, stacks
    from shakedown.errors import InputError, ShakedownError
    from shakedown.experiment import Experiment
    from shakedown.kinds import load_experiment
    from shakedown.loading import load
    from shakedown.pricing.capacity import capacity
    from shakedown.pricing.predict import predict
    from shakedown.results.folder import Results, load_results
    from shakedown.runner import run_experiment

    __version__: str

_HOMES = {
    "api": (
        "attach", "attach_live", "authenticate", "bearers", "capture", "certs", "check_bearer",
        "compare_live", "devices", "measure", "measure_path", "primitives",
        "report", "reproduce", "serve", "simulate", "simulate_mix", "suites",
    ),
    "core": ("canonical", "describe", "inspect", "machine", "stacks"),
    "errors": ("InputError", "ShakedownError"),
    "experiment": ("Experiment",),
    "kinds": ("load_experiment",),
    "loading": ("load",),
    "pricing.capacity": ("capacity",),
    "pricing.predict": ("predict",),
    "results.folder": ("Results", "load_results"),
    "runner": ("run_experiment",),
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
        from shakedown.core import build

        return build().shakedown
    for home, names in _HOMES.items():
        if name in names:
            from importlib import import_module

            found = globals()[name] = getattr(import_module(f"{__name__}.{home}"), name)
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
