"""Inputs that predictions, capacities and simulations share: the server, and the sources of costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from shakedown.native.scenario import DEFAULT_SERVER_DEVICE
from shakedown.prediction.library import TraceLibrary, opened
from shakedown.prediction.trace import Trace
from shakedown.profiles.registry import Names, existing_device_names, listed, load_device, load_software
from shakedown.schema.arguments import check_fields, plain, profile_name


class _Checked:
    """Its fields are checked when it is created."""

    def __post_init__(self) -> None:
        """Raises `InputError` for a value of another type."""
        for one in fields(self):  # type: ignore[arg-type]  # its classes are dataclasses
            object.__setattr__(self, one.name, plain(getattr(self, one.name)))
        check_fields(vars(self), type(self))


@dataclass(frozen=True)
class ServerModel(_Checked):
    """The server of an estimate.

    Attributes:
        device: a profile's name or path, or a list of them and of patterns.
        workers: handshakes that it processes at the same time.
        software: its software (a profile's name or path), which determines tickets and the size of writes;
            None: openssl, or the software recorded in a file of traces.
    """

    device: Names = DEFAULT_SERVER_DEVICE
    workers: int = 1
    software: str | Path | None = None

    def __post_init__(self) -> None:
        """Raises `InputError` also for a device or a software without a valid profile."""
        super().__post_init__()
        if self.device != DEFAULT_SERVER_DEVICE:
            for name in listed(self.device, existing_device_names, "device"):
                load_device(name)
        if self.software is not None:
            load_software(str(profile_name(self.software)))


@dataclass(frozen=True)
class Costs(_Checked):
    """The sources of the costs of an estimate.

    Attributes:
        traces: the recorded handshakes: a file of `measure --json` or `inspect --traces-out`; None: the
            shipped library.
        scale_from: device whose figures, scaled by the clock rate, are used for a device without primitives.
    """

    traces: TraceLibrary | Mapping[str, Trace] | str | Path | None = None
    scale_from: str | Path | None = None

    def __post_init__(self) -> None:
        """Raises `InputError` also for a device without a valid profile."""
        super().__post_init__()
        if self.stand_in is not None:
            load_device(self.stand_in)

    def library(self, server: ServerModel) -> TraceLibrary:
        """The recorded handshakes with a server. Raises `InputError`."""
        return opened(self.traces, server.software)

    @property
    def stand_in(self) -> str | None:
        """The device whose figures are scaled, as profiles are loaded."""
        return profile_name(self.scale_from)
