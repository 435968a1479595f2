"""Writes a bearer profile from a measured path, with the measured and the assumed values."""

from __future__ import annotations

from shakedown.live.path_probe import HEADER, UDP_IP_BYTES, PathFigures
from shakedown.profiles.profile_text import quoted

SHARES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
MAX_LOSS = 0.9


def one_way_ms(figures: PathFigures) -> list[tuple[float, float]]:
    """Quantiles of the one-way delay that does not depend on size: half of the round-trip time.

    The transmission time of a ping at both rates is subtracted first.
    """
    import numpy as np

    sending_s = (
        8.0 * (HEADER.size + UDP_IP_BYTES) * (1.0 / figures.up_bits_per_s + 1.0 / figures.down_bits_per_s)
    )
    halves_s = [max(0.0, (trip_s - sending_s) / 2.0) for trip_s in figures.round_trips_s]
    ends_ms = 1e3 * np.quantile(halves_s, SHARES)
    return [(share, round(float(ms), 3)) for share, ms in zip(SHARES, ends_ms, strict=True)]


def profile_text(figures: PathFigures, *, name: str, target: str, date: str) -> str:
    measured = (
        f"bearer measure {target}, {date}: {len(figures.round_trips_s)} of {figures.pings} pings answered, "
        "rates by the spacing of packets of 1228 bytes"
    )
    points = ", ".join(f"[{share:g}, {ms:g}]" for share, ms in one_way_ms(figures))
    lines = [
        "schema = 2",
        f"name = {quoted(name)}",
        f"title = {quoted(f'Measured path to {target}')}",
        f"date = {quoted(date)}",
        "",
        f"mtu_bytes = {figures.mtu_bytes}",
    ]
    ways = (
        ("up", figures.up_bits_per_s, figures.loss_up),
        ("down", figures.down_bits_per_s, figures.loss_down),
    )
    for side, rate_bits_per_s, loss in ways:
        lines += ["", f"[{side}]", f"rate_bps = {rate_bits_per_s:.0f}"]
        lines += [f"delay_ms = {{ quantiles = [{points}] }}"]
        if loss:
            lines.append(f"loss = {min(max(loss, 0.0), MAX_LOSS):.5f}")
    lines += ["", "[source]"]
    lines += [f"{aspect} = {quoted(measured)}" for aspect in ("rate", "delay", "loss")]
    lines += [
        'mtu = "known to the kernel"',
        "",
        "[assumed]",
        'delay = "half of the round-trip time in each direction: one clock measures only the sum"',
        'queue = "not measured"',
        'setup = "not measured: the path was already connected"',
        'duplex = "full duplex; the directions were loaded separately"',
        "",
    ]
    return "\n".join(lines)
