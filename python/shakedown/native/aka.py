"""Attaches by SSL-based AKA: in virtual time, and between nodes and mobiles on sockets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from shakedown.native import check_text, name_errors_as_input, paths_as_text
from shakedown.native.core import extension
from shakedown.schema import convert
from shakedown.schema.aka import HssSummary, ProvisionedFiles, SgsnSummary


def suites(suite: str) -> tuple[str, str]:
    """The suites of full attaches by SSL-based AKA (mutual, chains of two levels) and of resumptions.

    Raises `InputError`, and the core's `Unsupported` for a suite that cannot carry an attach.
    """
    with name_errors_as_input(suite):
        return cast("tuple[str, str]", extension().aka_suites(suite))


def run(suite: str, plan: str, progress: Callable[[int], None] | None = None) -> dict[str, Any]:
    """Runs attaches in virtual time; `plan` is JSON from `simulation.attaches`.

    Raises `InputError`.
    """
    with name_errors_as_input(suite):
        return cast("dict[str, Any]", extension().aka_run(suite, plan, progress=progress))


def provision(
    folder: Path, suite: str, *, home: str, serving: str, nodes: Sequence[str], subscribers: int
) -> ProvisionedFiles:
    """Creates two operators, and the files of their HSS, SGSNs and subscribers. Raises `InputError`."""
    for name, value in {"folder": folder, "home": home, "serving": serving, "sgsn": nodes}.items():
        check_text(name, value)
    with name_errors_as_input(suite):
        made = extension().aka_provision(str(folder), suite, home, serving, list(nodes), subscribers)
    return convert({**made, "files": [str(path) for path in made["files"]]}, ProvisionedFiles)


def hss(
    listen: str,
    register: Path,
    *,
    first_message_s: float,
    listening: Callable[[str], None],
    stopped: Callable[[HssSummary], None],
) -> None:
    """Serves an HSS until a signal handler raises. Calls `listening` with the address, and `stopped`.

    Raises `InputError`.
    """
    check_text("register", register)
    with name_errors_as_input(""):
        extension().aka_hss(
            listen,
            str(register),
            first_message_s=first_message_s,
            listening=listening,
            stopped=lambda found: stopped(convert(found, HssSummary)),
        )


def sgsn(
    options: Mapping[str, object],
    *,
    store: object | None,
    listening: Callable[[str, str | None], None],
    stopped: Callable[[SgsnSummary], None],
) -> None:
    """Serves an SGSN until a signal handler raises; `store` keeps its state, as `live.sgsn_state` does.

    `listening` is called with the addresses for mobiles and for other SGSNs, `stopped` with the summary.
    Raises `InputError`.
    """
    check_text("node", options["file"])
    with name_errors_as_input(""):
        extension().aka_sgsn(
            paths_as_text(options),
            store=store,
            listening=listening,
            stopped=lambda found: stopped(convert(found, SgsnSummary)),
        )


def mobile(options: Mapping[str, object], *, progress: Callable[[int], None] | None = None) -> dict[str, Any]:
    """Attaches to an SGSN over sockets; returns the suite and each attach. Raises `InputError`."""
    with name_errors_as_input(""):
        return cast("dict[str, Any]", extension().aka_mobile(paths_as_text(options), progress=progress))
