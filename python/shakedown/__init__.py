"""Shakedown computes the cost of secure handshakes on your device, over your network and at your load.

>>> import shakedown
>>> result = shakedown.measure("tls1.2/psk", repeat=30)
>>> result.bytes.total  # doctest: +SKIP

Importing the package loads nothing else and has no side effects; each name is loaded when first used.
"""

from __future__ import annotations

from threading import RLock
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shakedown.api.attaches import attach, attach_live
    from shakedown.api.bearers import check_bearer, measure_path
    from shakedown.api.catalogue import bearers, devices, stacks, suites
    from shakedown.api.certificates import certs
    from shakedown.api.comparison import compare_live
    from shakedown.api.in_memory import capture, measure, primitives
    from shakedown.api.live import authenticate, serve
    from shakedown.api.papers import reproduce
    from shakedown.api.predictions import capacity, predict
    from shakedown.api.reports import report
    from shakedown.api.simulations import simulate, simulate_mix
    from shakedown.comparison.budgets import check_budgets
    from shakedown.comparison.functions import compare, compare_pair
    from shakedown.errors import InputError, ShakedownError
    from shakedown.experiments.figure_kinds import load_experiment
    from shakedown.experiments.file.experiment import Experiment
    from shakedown.experiments.runner import run_experiment
    from shakedown.live.calibration import calibrate
    from shakedown.live.load_test import load
    from shakedown.native import canonical, describe, machine
    from shakedown.native.captures import inspect
    from shakedown.native.scenario import Fleet, MeasureOptions, Stacks
    from shakedown.prediction.inputs import Costs, ServerModel
    from shakedown.reporting.rows import Rows
    from shakedown.results.folder import Results, load_results
    from shakedown.schema.options import (
        EapOptions,
        LoadOptions,
        MobileOptions,
        PredictionOptions,
        ServerOptions,
    )
    from shakedown.simulation.attaches import Attaching

    __version__: str

_HOMES = {
    "api.attaches": ("attach", "attach_live"),
    "api.bearers": ("check_bearer", "measure_path"),
    "api.catalogue": ("bearers", "devices", "stacks", "suites"),
    "api.certificates": ("certs",),
    "api.comparison": ("compare_live",),
    "api.in_memory": ("capture", "measure", "primitives"),
    "api.live": ("authenticate", "serve"),
    "api.papers": ("reproduce",),
    "api.predictions": ("capacity", "predict"),
    "api.reports": ("report",),
    "api.simulations": ("simulate", "simulate_mix"),
    "comparison.budgets": ("check_budgets",),
    "comparison.functions": ("compare", "compare_pair"),
    "native": ("canonical", "describe", "machine"),
    "native.captures": ("inspect",),
    "native.scenario": ("Fleet", "MeasureOptions", "Stacks"),
    "prediction.inputs": ("Costs", "ServerModel"),
    "errors": ("InputError", "ShakedownError"),
    "experiments.file": ("Experiment",),
    "experiments.figure_kinds": ("load_experiment",),
    "live.calibration": ("calibrate",),
    "live.load_test": ("load",),
    "reporting.rows": ("Rows",),
    "results.folder": ("Results", "load_results"),
    "schema.options": ("EapOptions", "LoadOptions", "MobileOptions", "PredictionOptions", "ServerOptions"),
    "simulation.attaches": ("Attaching",),
    "experiments.runner": ("run_experiment",),
}
"""The public names of each module."""

_WITH_MODULES = ("schema", "native", "profiles", "profiles.importers", "experiments.file", "reporting.charts")
"""Packages that import their own modules at first use. If two threads import such a package and one of its
modules in different orders, Python's import locks deadlock. Therefore these packages are imported before
anything else.
"""

_LOADING = RLock()

__all__ = [
    "Attaching",
    "Costs",
    "EapOptions",
    "Experiment",
    "Fleet",
    "InputError",
    "LoadOptions",
    "MeasureOptions",
    "MobileOptions",
    "PredictionOptions",
    "Results",
    "Rows",
    "ServerModel",
    "ServerOptions",
    "ShakedownError",
    "Stacks",
    "__version__",
    "attach",
    "attach_live",
    "authenticate",
    "bearers",
    "calibrate",
    "canonical",
    "capacity",
    "capture",
    "certs",
    "check_bearer",
    "check_budgets",
    "compare",
    "compare_live",
    "compare_pair",
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


def __getattr__(name: str) -> Any:  # noqa: ANN401 - the imports above declare the types
    if name == "__version__":
        from shakedown.native import build

        return build().shakedown
    for home, names in _HOMES.items():
        if name in names:
            from importlib import import_module

            with _LOADING:
                for package in _WITH_MODULES:
                    import_module(f"{__name__}.{package}")
            found = globals()[name] = getattr(import_module(f"{__name__}.{home}"), name)
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
