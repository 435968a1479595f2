"""The devices, bearer and server that all simulations of a command share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from shakedown.errors import InputError
from shakedown.files.limits import MAX_WORKERS
from shakedown.native.scenario import DEFAULT_BEARER, DEFAULT_DEVICE, DEFAULT_SERVER_DEVICE
from shakedown.prediction.library import TraceLibrary, open_library
from shakedown.prediction.scenario import Scenario as Estimate
from shakedown.prediction.scenario import scenario
from shakedown.schema.base import MAX_NUMBER

DEFAULT_SEED = 1


@dataclass(frozen=True)
class Site:
    """Devices, bearer and server. Raises `InputError` for an invalid number of workers or seed.

    Attributes:
        device, server_device, bearer: profile names or paths.
        seed: random seed; None: `DEFAULT_SEED`.
        traces: source of the recorded handshakes; None: the shipped library.
        scale_from: device whose figures, scaled by the clock rate, are used for one without primitives.
    """

    device: str = DEFAULT_DEVICE
    server_device: str = DEFAULT_SERVER_DEVICE
    bearer: str = DEFAULT_BEARER
    server_workers: int = 1
    seed: int | None = None
    traces: TraceLibrary | None = None
    scale_from: str | None = None

    def __post_init__(self) -> None:
        check_server(self.server_workers, self.seed)

    @cached_property
    def library(self) -> TraceLibrary:
        return self.traces or open_library()

    @property
    def draws(self) -> int:
        return seed_of(self.seed)

    @property
    def names(self) -> Mapping[str, str]:
        """The names of the place, for the row of a suite that cannot be simulated."""
        return {
            "device": self.device,
            "server_device": self.server_device,
            "bearer": self.bearer,
            "kind": "simulated",
        }

    def estimate(
        self, suite: str, device: str | None = None, bearer: str | None = None, *, from_idle: bool = False
    ) -> Estimate:
        """A suite's handshake at this site, or with another device or bearer. Raises `InputError`.

        `from_idle`: the radio is set up first.
        """
        return scenario(
            suite,
            device or self.device,
            self.server_device,
            bearer or self.bearer,
            traces=self.library,
            scale_from=self.scale_from,
            from_idle=from_idle,
        )


def seed_of(given: int | None) -> int:
    return DEFAULT_SEED if given is None else given


def check_server(workers: int, seed: int | None) -> None:
    """Raise `InputError` for an invalid number of workers or seed."""
    if not 1 <= workers <= MAX_WORKERS:
        raise InputError(f"workers is {workers}; accepted: a whole number from 1 to {MAX_WORKERS:,}")
    if seed is not None and not 0 <= seed <= MAX_NUMBER:
        raise InputError(f"seed is {seed}; accepted: a whole number from 0 to {MAX_NUMBER}")
