"""Attaches by SSL-based AKA: in virtual time, and the nodes and mobiles on sockets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from shakedown.native import complaints, paths_as_text
from shakedown.native.core import extension
from shakedown.schema import convert
from shakedown.schema.aka import HssSummary, ProvisionedFiles, SgsnSummary


def suites(suite: str) -> tuple[str, str]:
    """A suite as attaches by SSL-based AKA run it (mutual, chains of two levels), and the one they resume by.

    Raises `InputError`, and the core's `Unsupported` for one that cannot carry an attach.
    """
    with complaints(suite):
        return cast("tuple[str, str]", extension().aka_suites(suite))


def run(suite: str, plan: str, progress: Callable[[int], None] | None = None) -> dict[str, Any]:
    """Runs attaches in virtual time; `plan` is JSON, as `simulation.attaches` makes it.

    Raises `InputError`.
    """
    with complaints(suite):
        return cast("dict[str, Any]", extension().aka_run(suite, plan, progress=progress))


def provision(
    folder: Path, suite: str, *, home: str, serving: str, nodes: Sequence[str], subscribers: int
) -> ProvisionedFiles:
    """Makes two operators, and the files of their HSS, SGSNs and subscribers. Raises `InputError`."""
    with complaints(suite):
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
    """Serves an HSS until a signal's handler raises. Calls `listening` with the address, and `stopped`.

    Raises `InputError`.
    """

    with complaints(""):
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
    """Serves an SGSN until a signal's handler raises; `store` keeps its state, as `live.sgsn_state` does.

    `listening` is called with the addresses for mobiles and for other SGSNs, `stopped` with the summary.
    Raises `InputError`.
    """

    with complaints(""):
        extension().aka_sgsn(
            paths_as_text(options),
            store=store,
            listening=listening,
            stopped=lambda found: stopped(convert(found, SgsnSummary)),
        )


def mobile(options: Mapping[str, object], *, progress: Callable[[int], None] | None = None) -> dict[str, Any]:
    """Attaches to an SGSN on sockets; the suite, and each attach. Raises `InputError`."""
    with complaints(""):
        return cast("dict[str, Any]", extension().aka_mobile(paths_as_text(options), progress=progress))
