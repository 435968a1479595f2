"""The accesses repeated in virtual time, from the file that `tools.aka_runs` wrote."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, cast

from shakedown.errors import ShakedownError

FILE = Path(__file__).parent / "runs.json"


@cache
def runs() -> dict[str, Any]:
    try:
        return cast("dict[str, Any]", json.loads(FILE.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise ShakedownError(f'{FILE}: {error}; "python -m tools.aka_runs" makes it') from error


def mean_ms(setup: str, time: str) -> float:
    """A time's mean in a set-up, in ms."""
    return float(runs()["setups"][setup]["times"][time]["mean_ms"])


def sd_ms(setup: str, time: str) -> float:
    """A time's sample standard deviation in a set-up, in ms."""
    return float(runs()["setups"][setup]["times"][time]["sd_ms"])


def resumed_ms() -> float:
    """The handshake's mean in resumed accesses over GPRS without processing time, in ms."""
    return float(runs()["resumed"]["times"]["tht"]["mean_ms"])


def load_effect_percent() -> float:
    """The increase of the handshake's mean from no load to the server's highest load, in per cent."""
    loads = runs()["load"]
    return 100.0 * (float(loads[-1]["mean_ms"]) / float(loads[0]["mean_ms"]) - 1.0)
