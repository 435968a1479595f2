"""Compares emulated bearers with their profiles, and measures real paths."""

from __future__ import annotations

import re
from contextlib import nullcontext
from datetime import date
from pathlib import Path

from shakedown.errors import InputError
from shakedown.files.write import check_free, made_folders, write
from shakedown.live import path_probe
from shakedown.live.bearer import check
from shakedown.live.measured_profile import profile_text
from shakedown.profiles.registry import load_bearer, user_data_dir
from shakedown.schema.arguments import checked, profile_name
from shakedown.schema.bearer import BearerCheck, MeasuredPath, Percentiles


@checked
def check_bearer(name: str | Path, *, seed: int = 0, seconds: float = 5.0) -> BearerCheck:
    """Measures an emulated bearer with probe packets, and compares it with its profile.

    Args:
        name: the bearer's profile.
        seed: seed of the bearer's random numbers.
        seconds: duration of each of three parts: delay, rate up, rate down.

    Raises:
        ShakedownError: if the bearer is unknown, or namespaces cannot be created; the message explains how to
            enable them.
    """
    return check(load_bearer(profile_name(name)), seed=seed, seconds=seconds)


@checked
def measure_path(
    target: str,
    profile: str | Path | None = None,
    *,
    name: str = "measured",
    replace: bool = False,
    seconds: float = 5.0,
) -> MeasuredPath:
    """Measures the path to a reflector (`shakedown bearer measure --reflect`) and writes it as a profile.

    Args:
        target: the reflector's HOST:PORT.
        profile: the file to write; default: NAME.toml in the user's folder of bearer profiles.
        name: the profile's name.
        replace: replace an existing file.
        seconds: duration of each of three parts: round trips, rate up, rate down.

    Raises:
        InputError: for an invalid address or name, or an existing file.
        ShakedownError: if the reflector does not respond.
    """
    import numpy as np

    if re.fullmatch(r"[a-z0-9][a-z0-9.-]*", name) is None:
        raise InputError(f"name is {name!r}; accepted: small letters, digits, dots, hyphens")
    if not 0.5 <= seconds <= 30.0:
        raise InputError(f"seconds is {seconds}; accepted: from 0.5 to 30")
    host, port = path_probe.address(target)
    file = user_data_dir() / "bearers" / f"{name}.toml" if profile is None else Path(profile)
    with made_folders(file.parent) if profile is None else nullcontext():
        check_free(file, replace)
    found = path_probe.measure(host, port, seconds=seconds)
    text = profile_text(found, name=name, target=target, date=date.today().isoformat())
    with made_folders(file.parent):
        write(file, text, replace=replace)
    least_s, p50_s, p95_s, most_s = map(float, np.quantile(found.round_trips_s, (0.0, 0.5, 0.95, 1.0)))
    return MeasuredPath(
        target=target,
        pings=found.pings,
        round_trip_s=Percentiles(min=least_s, p50=p50_s, p95=p95_s, max=most_s),
        up_bits_per_s=found.up_bits_per_s,
        down_bits_per_s=found.down_bits_per_s,
        loss_up=found.loss_up,
        loss_down=found.loss_down,
        mtu_bytes=found.mtu_bytes,
        profile=str(file),
    )
