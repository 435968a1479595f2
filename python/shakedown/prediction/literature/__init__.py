"""Models of the literature, one module each; the module's name, with dashes, is what ``--model`` accepts.

A module has the two terms in which models differ, `transmission` and `wait_s`. A new model needs only a new
module here.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    from shakedown.models.arrays import Floats
    from shakedown.models.distribution import Distribution
    from shakedown.prediction.trace import Trace
    from shakedown.prediction.work import SideCost
    from shakedown.profiles import Bearer

LITERATURE = tuple(sorted(module.name.replace("_", "-") for module in iter_modules(__path__)))
"""The models' names."""


class Handshake(Protocol):
    """What a model uses of a handshake: the recording, the network, and the server's work."""

    @property
    def trace(self) -> Trace: ...
    @property
    def bearer(self) -> Bearer: ...
    @property
    def served(self) -> SideCost: ...


class Model(Protocol):
    """The interface of a model's module."""

    def transmission(self, one: Handshake) -> Distribution:
        """Time on the network, in seconds, without the sides' work."""

    def wait_s(self, one: Handshake, rates_per_s: Floats, factor: float) -> Floats:
        """Mean wait at the one server at each rate, with its work scaled by ``factor``.

        The value is unspecified without a steady state.
        """


def load_model(name: str) -> Model:
    """The model of one of the names in `LITERATURE`."""
    return cast("Model", import_module(f"{__name__}.{name.replace('-', '_')}"))
