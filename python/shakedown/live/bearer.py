"""Emulated bearers: converting profiles for the core, running commands behind bearers, and measuring them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, cast

from shakedown.errors import ShakedownError
from shakedown.files.write import writing
from shakedown.native.core import extension
from shakedown.profiles.bearer import Bearer
from shakedown.profiles.delay import distribution
from shakedown.schema import convert
from shakedown.schema.bearer import BearerCheck, BearerFigure, BearerReport
from shakedown.schema.profiles import BearerWay

CONGESTION_CONTROL = "reno"
"""The congestion control of the models, which is available on every Linux."""

DEFAULT_QUEUE_BYTES = 1 << 22
"""Default length of a queue, so that memory is bounded if the profile does not define it."""


class BearerError(ShakedownError):
    """The bearer, or the command behind it, cannot be started."""

    def __init__(self, message: str, exit_status: int) -> None:
        super().__init__(message)
        self.exit_status = exit_status


def link_plan(bearer: Bearer, seed: int) -> dict[str, Any]:
    """Converts a profile to ``LinkPlan`` of ``crates/live/src/bearer/packet.rs``.

    The radio's set-up from idle is omitted, as in ``ready_s`` of the models: the radio is connected.
    """
    from shakedown.prediction.spec import bearer_spec

    spec = bearer_spec(bearer)
    for key in ("queue_bytes_up", "queue_bytes_down"):
        if spec[key] is None:
            spec[key] = DEFAULT_QUEUE_BYTES
    return {"bearer": spec, "seed": seed}


def run_behind(
    bearer: Bearer,
    command: Sequence[str],
    *,
    pair: str | None = None,
    seed: int = 0,
    pcap: Path | None = None,
    replace: bool = False,
    congestion_control: str = CONGESTION_CONTROL,
    linger_s: float = 10.0,
) -> tuple[int, BearerReport]:
    """Runs a command behind an emulated bearer until it ends.

    Args:
        bearer: the bearer to emulate.
        command: program and arguments.
        pair: a shell command for the far end, instead of the servers on this host's loopback.
        seed: seed of the bearer's random numbers.
        pcap: capture of the client's interface; with `replace`, an existing file is replaced.
        congestion_control: that of TCP at both ends.
        linger_s: time for which data of connections that the command left open may still arrive.

    Returns:
        The command's exit status (128 plus the signal that ended it), and the bearer's packets and errors.

    Raises:
        BearerError: with one line that explains what is missing and how to enable it.
    """
    plan: dict[str, Any] = {
        "link": link_plan(bearer, seed),
        "command": list(command),
        "pair": pair,
        "congestion_control": congestion_control,
        "pcap": None,
        "replace": False,
        "linger_s": linger_s,
    }
    with nullcontext() if pcap is None else writing(pcap, replace=replace) as capture:
        if capture is not None:
            # The core writes into the draft, which is renamed when it is complete.
            plan |= {"pcap": str(capture.temp_path), "replace": True}
        try:
            with _one_line():
                answer = extension().bearer_run(plan)
        except BearerError as error:
            if capture is None:
                raise
            text = str(error).replace(str(capture.temp_path), str(pcap))
            raise BearerError(text, error.exit_status) from error
    return cast(int, answer["status"]), convert(answer["report"], BearerReport)


def check(bearer: Bearer, *, seed: int = 0, seconds: float = 5.0) -> BearerCheck:
    """Measures an emulated bearer with probe packets, and compares it with its profile.

    Args:
        bearer: the bearer to emulate.
        seed: seed of the bearer's random numbers.
        seconds: duration of each of three parts: delay, rate up, rate down.

    Raises:
        BearerError: with one line that explains what is missing and how to enable it.
    """
    with _one_line():
        found = extension().bearer_check({"link": link_plan(bearer, seed), "seconds": seconds})
    figures = []
    for figure in found["figures"]:
        way = bearer.up if figure["direction"] == "up" else bearer.down
        profile = _expected(way, figure["figure"], figure["bytes"])
        figures.append(BearerFigure(**figure, profile=profile, deviation=_deviation(figure, profile)))
    return BearerCheck(
        bearer=bearer.name,
        seed=seed,
        figures=tuple(figures),
        report=convert(found["report"], BearerReport),
    )


def _expected(way: BearerWay, figure: str, wire_bytes: int) -> float:
    """The profile's value of a figure, for packets of `wire_bytes` on the link."""
    sending_s = 8.0 * wire_bytes / way.rate_bits_per_s
    if figure == "one_way_s":
        return sending_s + distribution(way.delay).mean
    if figure == "loss":
        return way.loss
    duty_s = way.pause_s + sending_s * (1.0 / way.duty_cycle - 1.0)
    return 8.0 * wire_bytes / (sending_s + duty_s)


def _deviation(figure: dict[str, Any], profile: float) -> float | None:
    """The relative deviation of the bearer from its profile: the timing error on these packets, times the
    error of the random numbers.

    A mean over few packets with random delays may differ from the profile's by chance; its ratio to the
    delays drawn for the same packets does not. Loss depends only on random numbers. None if the profile's
    figure is 0.
    """
    if profile == 0.0:
        return None
    clock = 1.0 if figure["figure"] == "loss" else figure["measured"] / figure["drawn"]
    deviation = clock * figure["long_run"] / profile - 1.0
    return deviation if math.isfinite(deviation) else None


@contextmanager
def _one_line() -> Iterator[None]:
    core = extension()
    try:
        yield
    except core.CoreError as error:
        raise BearerError(str(error), getattr(error, "exit_status", 1)) from error
