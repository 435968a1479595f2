"""Attaches by SSL-based AKA, in virtual time and on sockets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from shakedown.native.scenario import DEFAULT_BEARER, DEFAULT_DEVICE, DEFAULT_SERVER_DEVICE
from shakedown.prediction.inputs import Costs
from shakedown.prediction.library import opened
from shakedown.schema.aka import AttachRun, LiveAttaches
from shakedown.schema.arguments import checked, profile_name, several
from shakedown.schema.options import MobileOptions
from shakedown.simulation.attaches import DEFAULT_SUITE, Attaching, simulate_attaches
from shakedown.simulation.attaches import attach_live as attached
from shakedown.simulation.deployment import Site


@checked
def attach(
    suite: str | None = None,
    attaching: Attaching = Attaching(),
    *,
    device: str | Path = DEFAULT_DEVICE,
    server_device: str | Path = DEFAULT_SERVER_DEVICE,
    bearer: str | Path = DEFAULT_BEARER,
    costs: Costs = Costs(),
    samples: bool = False,
    progress: Callable[[int], None] | None = None,
) -> AttachRun:
    """Attaches mobiles by SSL-based AKA in virtual time; the same arguments give the same result.

    Args:
        suite: the suite to negotiate. It is always mutual, with chains of two levels.
        attaching: number and times of the attaches, and the resumption policy.
        device, server_device, bearer: names or paths of the profiles of mobiles, SGSNs and network.
        costs: the recorded handshakes, and a device whose figures are scaled.
        samples: keep each attach's times.
        progress: called with the number of attaches done.

    Raises:
        InputError: for invalid arguments.
    """
    return simulate_attaches(
        DEFAULT_SUITE if suite is None else suite,
        attaching,
        Site(
            profile_name(device),
            profile_name(server_device),
            profile_name(bearer),
            traces=opened(costs.traces),
            scale_from=costs.stand_in,
        ),
        samples=samples,
        progress=progress,
    )


@checked
def attach_live(
    sgsns: str | Sequence[str],
    card: str | Path,
    options: MobileOptions = MobileOptions(),
    *,
    samples: bool = False,
    progress: Callable[[int], None] | None = None,
) -> LiveAttaches:
    """Attaches to SGSNs over sockets (ADDR:PORT, in turn); each attach uses the identity and session of the
    previous one.

    Args:
        sgsns: one address, or several.
        card: the file that `aka provision` wrote.
        options: the network of the SGSNs, number and times of the attaches, and user data, which the SGSN
            returns.
        samples: keep each attach's times.
        progress: called with the number of attaches done.

    Failed attaches are counted by cause.

    Raises:
        InputError: for invalid arguments.
    """
    found, _ = attached(several(sgsns), Path(card), options, samples=samples, progress=progress)
    return found
