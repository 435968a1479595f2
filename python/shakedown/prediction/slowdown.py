"""The ratio of a device's time for the client's side of a handshake to this machine's time."""

from __future__ import annotations

from pathlib import Path

from shakedown.errors import InputError
from shakedown.native.scenario import HandshakeId, MeasureOptions

REPEAT = 30
"""Handshakes in memory from which this machine's time is known."""


def slowed(
    device: str,
    suite: str,
    *,
    client_stack: str | None = None,
    client_chain: str | Path | None = None,
    client_key: str | Path | None = None,
) -> dict[str, float]:
    """Arguments of `load_generator.load`: `client_s`, the client's time that `predict` computes for a device,
    and `slowdown`, its ratio to the median in memory here.

    Raises `InputError` for a device that is unknown or faster than this machine, and for a suite that
    cannot be estimated; the core's errors if it cannot run.
    """
    from shakedown import native
    from shakedown.prediction.predict import predict_rows

    (row,) = predict_rows([suite], device=device)
    there_s = row["client_s"]["estimate"]
    if there_s is None:
        raise InputError(
            f"{device} has no figure for {', '.join(row['client_s']['missing'])}; accepted: a suite that can "
            "be estimated on the device in full"
        )
    options = MeasureOptions(repeat=REPEAT, client_chain=client_chain, client_key=client_key)
    measured = native.measure(HandshakeId(suite=suite, client_stack=client_stack), options)
    here_s = measured.handshake.client_us.median * 1e-6
    factor = there_s / here_s
    if factor < 1.0:
        raise InputError(
            f"{device} takes {there_s * 1e6:.3g} us for the client's side of {suite}, this machine "
            f"{here_s * 1e6:.3g} us; accepted: a device that is slower than this machine"
        )
    return {"slowdown": factor, "client_s": there_s}
