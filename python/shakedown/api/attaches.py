"""Attaches by SSL-based AKA, in virtual time and on sockets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from shakedown.errors import InputError
from shakedown.native.scenario import DEFAULT_BEARER, DEFAULT_DEVICE, DEFAULT_SERVER_DEVICE
from shakedown.prediction.library import opened
from shakedown.schema.aka import AttachRun, LiveAttaches
from shakedown.schema.arguments import checked, profile_name, several
from shakedown.schema.options import options_of
from shakedown.simulation.attaches import DEFAULT_SUITE, Attaching, simulate_attaches
from shakedown.simulation.attaches import attach_live as attached


@checked
def attach(
    suite: str | None = None,
    *,
    device: str | Path = DEFAULT_DEVICE,
    server_device: str | Path = DEFAULT_SERVER_DEVICE,
    bearer: str | Path = DEFAULT_BEARER,
    traces: str | Path | None = None,
    scale_from: str | Path | None = None,
    samples: bool = False,
    progress: Callable[[int], None] | None = None,
    **attaching: float,
) -> AttachRun:
    """Attaches mobiles by SSL-based AKA in virtual time; the same arguments give the same result.

    `attaching` are the fields of `simulation.attaches.Attaching`: `attaches`, `mobiles`, `gap_s`, `roaming`,
    `moves`, `background_per_s`, `workers`, `max_resumptions`, `max_age_s`, `seed` and others. Raises
    `InputError`.
    """
    return simulate_attaches(
        DEFAULT_SUITE if suite is None else suite,
        options_of(Attaching, attaching),
        device=profile_name(device),
        server_device=profile_name(server_device),
        bearer=profile_name(bearer),
        traces=opened(traces),
        scale_from=profile_name(scale_from),
        samples=samples,
        progress=progress,
    )


@checked
def attach_live(
    sgsns: str | Sequence[str],
    card: str | Path,
    *,
    serving: str = "20801",
    attaches: int = 1,
    gap_s: float = 0.0,
    timeout_s: float = 60.0,
    data: str | None = None,
    samples: bool = False,
    progress: Callable[[int], None] | None = None,
) -> LiveAttaches:
    """Attaches to SGSNs over sockets (ADDR:PORT, in turn); each attach uses the identity and session of the
    previous one.

    `card` is what `aka provision` wrote; `serving` the network of the SGSNs; `data` is sent under the derived
    keys, and the SGSN returns it. Failed attaches are counted by cause. Raises `InputError`.
    """
    if timeout_s <= 0.0:
        raise InputError("timeout_s: 0; accepted: a time above 0")
    found, _ = attached(
        {
            "sgsns": several(sgsns),
            "serving": serving,
            "card": Path(card),
            "attaches": attaches,
            "gap_s": gap_s,
            "timeout_s": timeout_s,
            "data": data,
        },
        samples=samples,
        progress=progress or (lambda done: None),
    )
    return found
