"""Options and tables of the commands that estimate recorded handshakes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, TypeVar, cast

import click

from shakedown.cli._output import note
from shakedown.cli._types import BEARER, DEVICE, FILE, Whole
from shakedown.files.limits import MAX_WORKERS

F = TypeVar("F", bound=Callable[..., Any])


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
    "--bearer",
    default="lte",
    show_default=True,
    type=BEARER,
    help="Network: name or path of a profile, with or without settings: lte:syn-retries=3,synack-retries=2.",
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
    """Adds the options of a scenario: devices, bearer, hosts, workers, traces.

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


def note_radios(bearers: Iterable[str], *, from_idle: bool, in_cells: bool = False) -> None:
    """Prints a note if `--from-idle` has no effect, because the bearer has neither set-up nor random access,
    or if clients in cells need no random access, because their radios are not idle.
    """
    from shakedown.profiles import load_bearer
    from shakedown.schema.profiles import RandomAccess

    profiles = [load_bearer(bearer) for bearer in dict.fromkeys(bearers)]
    with_access = [
        one.name for one in profiles if in_cells and one.cell and isinstance(one.cell.entry, RandomAccess)
    ]
    for profile in profiles if from_idle else ():
        if profile.setup is None and profile.name not in with_access:
            why = profile.assumed.get("setup", "its profile has no setup_ms")
            note(f"--from-idle changes nothing over {profile.name}: {why}")
    if with_access and not from_idle:
        over = ", ".join(with_access)
        note(f"without --from-idle clients over {over} are connected at first: no random access")
