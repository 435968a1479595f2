"""Shakedown: what a secure handshake costs, on your device, over your network, at your load.

>>> import shakedown
>>> result = shakedown.measure("tls1.2/psk", repeat=30)
>>> result["bytes"]["total"]  # doctest: +SKIP

Importing the package loads nothing else and has no side effects; each name is loaded when first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shakedown.core import canonical, describe, inspect, machine, measure, primitives, suites
    from shakedown.errors import InputError, ShakedownError
    from shakedown.experiment import Experiment, load_experiment
    from shakedown.results.folder import Results, load_results
    from shakedown.runner import run_experiment

    __version__: str

_HOMES = {
    "canonical": "core",
    "describe": "core",
    "inspect": "core",
    "machine": "core",
    "measure": "core",
    "primitives": "core",
    "suites": "core",
    "InputError": "errors",
    "ShakedownError": "errors",
    "Experiment": "experiment",
    "load_experiment": "experiment",
    "Results": "results",
    "load_results": "results",
    "run_experiment": "runner",
}

__all__ = [
    "Experiment",
    "InputError",
    "Results",
    "ShakedownError",
    "__version__",
    "canonical",
    "describe",
    "inspect",
    "load_experiment",
    "load_results",
    "machine",
    "measure",
    "primitives",
    "run_experiment",
    "suites",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - the names above have types of their own
    if name == "__version__":
        from shakedown.core import build

        return build()["shakedown"]
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
