"""Options and tables of the commands that estimate recorded handshakes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, TypeVar, cast

import click

from shakedown.cli._options import BEARER, DEVICE, FILE, Whole
from shakedown.cli._output import note
from shakedown.errors import InputError
from shakedown.files.limits import MAX_WORKERS

F = TypeVar("F", bound=Callable[..., Any])


class Rate(click.ParamType[float]):
    """Handshakes per second, with a unit or without."""

    name = "rate"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Reads `300/s`, `20/min`, `300`."""
        from shakedown.schema.units import parse_rate_per_s

        return _converted(self, parse_rate_per_s, value, param, ctx)


class Duration(click.ParamType[float]):
    """Seconds, with a unit or without; within limits where there are any, and above 0 where only the upper
    one is given. `unit` is that of a bare number.
    """

    name = "duration"

    def __init__(self, most_s: float | None = None, *, least_s: float | None = None, unit: str = "s") -> None:
        self._least_s, self._most_s, self._unit = least_s, most_s, unit

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Reads `2s`, `250ms`, `2`."""
        from shakedown.schema.units import parse_duration_s

        found = _converted(self, lambda text: parse_duration_s(text, self._unit), value, param, ctx)
        if self._most_s is None:
            return found
        if found > self._most_s or (found <= 0.0 if self._least_s is None else found < self._least_s):
            least = "above 0 and" if self._least_s is None else f"from {self._least_s:g} s"
            self.fail(
                f'"{value}" is out of range; accepted: {least} up to {self._most_s:,.10g} s', param, ctx
            )
        return found


class Charge(click.ParamType[float]):
    """The energy of a battery, in joules."""

    name = "charge"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Reads `9000J`, `2.5Wh`, `230mAh@3V`."""
        from shakedown.schema.units import parse_charge_j

        return _converted(self, parse_charge_j, value, param, ctx)


def _converted(
    kind: click.ParamType[float],
    parse: Callable[[str | float], float],
    value: object,
    param: click.Parameter | None,
    ctx: click.Context | None,
) -> float:
    try:
        return parse(value if isinstance(value, (int, float)) else str(value))
    except InputError as error:
        kind.fail(str(error), param, ctx)


traces_option = click.option(
    "--traces",
    type=FILE,
    help="Recorded handshakes, as measure --json prints them.  [default: the shipped library]",
)
software_option = click.option(
    "--server-software",
    metavar="NAME|FILE.toml",
    help="Software of the server: its tickets, writes, work.  [default: openssl; with --traces as recorded]",
)
scale_from_option = click.option(
    "--scale-from", metavar="DEVICE", help="Use this device's figures, scaled by the ratio of clock rates."
)
bearer_option = click.option(
    "--bearer", default="lte", show_default=True, type=BEARER, help="Network: a name, or a profile's path."
)
_loss_option = click.option(
    "--loss", metavar="SHARE", help="Packet loss in each direction: 2%.  [default: the bearer's]"
)
_congestion_option = click.option(
    "--congestion", metavar="cubic|reno|bbr", help="Congestion control of both hosts.  [default: cubic]"
)
_initial_window_option = click.option(
    "--initial-window", metavar="N", help="Segments of TCP's first window.  [default: 10]"
)
_workers_option = click.option(
    "--server-workers",
    "workers",
    metavar="N",
    type=Whole(1, MAX_WORKERS),
    default=1,
    show_default=True,
    help="Workers of the server.",
)
_server_device_option = click.option(
    "--server-device", default="server", show_default=True, type=DEVICE, help="Device of the server."
)
_device_option = click.option(
    "--device",
    default="phone",
    show_default=True,
    type=DEVICE,
    help="Device of the client: NAME or NAME:VARIANT.",
)


def scenario_options(command: F) -> F:
    """Adds the options that say where a handshake runs: devices, bearer, hosts, workers, traces.

    Options that modify a bearer become part of its name, so that saved rows contain them.
    """

    @wraps(command)
    def call(
        *args: object, bearer: str, loss: str | None, congestion: str | None, initial_window: str | None,
        **given: object,
    ) -> object:  # fmt: skip
        from shakedown.profiles import changed_bearer

        changed = changed_bearer(bearer, loss=loss, congestion=congestion, initial_window=initial_window)
        return command(*args, bearer=changed, **given)

    for option in (
        traces_option, scale_from_option, software_option, _workers_option, _initial_window_option,
        _congestion_option, _loss_option, bearer_option, _server_device_option, _device_option,
    ):  # fmt: skip
        call = option(call)
    return cast(F, call)


def note_without_setup(bearers: Iterable[str]) -> None:
    """Prints a note if `--from-idle` has no effect, because the bearer has no set-up."""
    from shakedown.profiles import load_bearer

    for bearer in dict.fromkeys(bearers):
        profile = load_bearer(bearer)
        if profile.setup is None:
            why = profile.assumed.get("setup", "its profile has no setup_ms")
            note(f"--from-idle changes nothing over {profile.name}: {why}")
