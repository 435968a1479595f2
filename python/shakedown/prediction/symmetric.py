"""Symmetric work on a device: from its own figures per call and per KiB, else from the blocks of a call.

Published rates are those of long messages, but a handshake's are short. A call costs its blocks at the
published rate, padding and key schedule included, and its library's work per call, which is not published.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from shakedown.models.ranges import Range, exactly, within
from shakedown.prediction.cost_model import WIDEST
from shakedown.prediction.figures import Figure, call_figure
from shakedown.prediction.stack_work import StackWork, reference
from shakedown.prediction.trace import Operation
from shakedown.profiles.costs import Cost
from shakedown.profiles.device import Device
from shakedown.schema.base import Basis

BLOCK_BYTES = {"sha384": 128, "sha512": 128}
DIGEST_BYTES = {"md5": 16, "sha1": 20, "sha224": 28, "sha256": 32, "sha384": 48, "sha512": 64}
BLOCK_SPREAD = 1.3
"""Uncertainty, ×/÷, of the number of blocks of a call: keys may be cached, labels differ in length."""
_PADDING = 0.64  # of a block: nine bytes of padding, and on average half a block left over
_HMAC_BLOCKS = 3.64  # inner and outer key, inner padding, outer digest
_PRF_BLOCKS = 2.0  # inner and outer key of P_hash
_PRF_OUTPUT_BLOCKS = 5.5  # an output of P_hash: A(i), 1 to 2 + 1 blocks; HMAC of it, label and seed, 2 + 1
_HKDF_BLOCKS = 4.5  # one HMAC over a label, keys included
_TAG_BYTES = 32.0  # a tag, and the block that its counter starts with


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a figure that is uncertain for one reason.

    `wide` is the range, ×/÷, if it is wider than a figure's may be: such a part is used only if it hardly
    matters.
    """

    cause: str
    time: Range
    basis: Basis
    method: str
    wide: float = 0.0


def digests_of(algorithm: str) -> list[str]:
    """The digests that a symmetric algorithm uses; none for a cipher."""
    name = algorithm
    for prefix in ("hmac-", "tls1-prf-", "wtls-prf-", "hkdf-"):
        name = name.removeprefix(prefix)
    if name == "md5-sha1":
        return ["md5", "sha1"]
    return [name] if name in DIGEST_BYTES else []


def hashed_kib(operation: Operation, digest: str) -> float:
    """KiB of blocks that one digest compresses in an operation, padding and keys included."""
    block = BLOCK_BYTES.get(digest, 64)
    kind, algorithm, _ = operation.triple
    count, size = operation.count, operation.size_bytes
    if kind == "digest":
        return (size + _PADDING * block * count) / 1024.0
    if kind == "mac":
        return (size + _HMAC_BLOCKS * block * count) / 1024.0
    if algorithm.startswith("hkdf-"):
        return _HKDF_BLOCKS * block * count / 1024.0
    outputs = count * math.ceil(max(1.0, size / max(count, 1)) / DIGEST_BYTES[digest])
    return block * (_PRF_BLOCKS * count + _PRF_OUTPUT_BLOCKS * outputs) / 1024.0


def symmetric_parts(
    device: Device, work: StackWork, operation: Operation, *, own: Cost | None, slower: float = 1.0
) -> list[Part] | Figure:
    """The parts of an operation's time, or an unknown figure if one of them has no cost.

    `own` is the device's own cost, `slower` the factor by which it is higher in this handshake.
    """
    kind = operation.triple[0]
    if own is not None and own.mean_s > 0.0:
        time_s = slower * own.time_s(operation.count, operation.size_bytes)
        call = Part(f"{device.name}: own", within(time_s, device.spread), "own", "")
        kib = operation.size_bytes / 1024.0
        if own.per_kib_s > 0.0 or kind == "prf" or kib <= 0.0:
            return [call]
        data = _data_parts(device, work, operation, lambda digest: kib, kib)
        return [call, *data] if isinstance(data, list) else data
    kib = (operation.size_bytes + _TAG_BYTES * operation.count) / 1024.0
    parts = _data_parts(device, work, operation, lambda digest: hashed_kib(operation, digest), kib)
    if not isinstance(parts, list):
        return parts
    per_call_s = reference().calls.get(kind, 0.0)
    if operation.count:
        time = work.stack.of(per_call_s * operation.count)
        parts.append(Part(work.cause, time, "assumed", f"{kind} per call: {work.stack.method}"))
    return parts


def _data_parts(
    device: Device,
    work: StackWork,
    operation: Operation,
    hashed: Callable[[str], float],
    encrypted_kib: float,
) -> list[Part] | Figure:
    """The parts for the data, of which each digest compresses `hashed` KiB; or an unknown figure."""
    kind, algorithm, _ = operation.triple
    if digests := digests_of(algorithm):
        return [_blocks(device, work, digest, hashed(digest)) for digest in digests]
    if kind != "cipher":
        return Figure(None, basis="unknown", method="no rule says what it is made of", cause=algorithm)
    figure = call_figure(device, operation.triple)
    if figure.time is None:
        return figure
    time = figure.time.times(encrypted_kib)
    return [Part(figure.cause, time, figure.basis, figure.method, _wide(figure))]


def _wide(figure: Figure) -> float:
    """The range of a figure, ×/÷, if it is wider than a figure's may be; else 0."""
    if figure.basis != "assumed" or figure.time is None:
        return 0.0
    factor = figure.time.high / figure.time.mean
    return factor if factor > WIDEST * (1.0 + 1e-9) else 0.0


def _blocks(device: Device, work: StackWork, digest: str, kib: float) -> Part:
    if kib <= 0.0:
        return Part(f"{device.name}: own", exactly(0.0), "own", "")
    figure = call_figure(device, ("digest", digest, ""))
    if figure.time is None or _wide(figure):
        time = work.software.of(reference().software_s_per_kib).times(kib)
        return Part(work.cause, time.widened(BLOCK_SPREAD), "assumed", f"{digest}: {work.software.method}")
    time = figure.time.times(kib)
    spread = math.exp(math.hypot(math.log(BLOCK_SPREAD), math.log(time.high / time.mean)))
    basis: Basis = "scaled" if figure.basis == "own" else figure.basis
    return Part(figure.cause, within(time.mean, spread), basis, figure.method or f"blocks of {digest}")
