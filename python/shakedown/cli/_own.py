"""Options for a user's own certificates and keys."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., object])

_HELP = {
    "chain": "The server's own chain, leaf first, instead of a made one.",
    "key": "Its private key, if not in the same file.",
    "ca": "The root that clients trust, if not at the chain's end.",
    "client_chain": "The client's own chain, in mutual suites.",
    "client_key": "Its private key.",
    "client_ca": "The root that servers trust.",
}


def own_material_options(function: Command) -> Command:
    """Gives a command the options; they arrive as `chain`, `key`, `ca`, `client_chain` … and `password`."""
    function = click.option(
        "--password", envvar="SHAKEDOWN_PASSWORD", show_envvar=True, help="Password of these files."
    )(function)
    for name, text in reversed(_HELP.items()):
        path = click.Path(dir_okay=False, path_type=Path)
        function = click.option(f"--{name.replace('_', '-')}", type=path, metavar="FILE", help=text)(function)
    return function
