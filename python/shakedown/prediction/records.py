"""The server's work on data that a client sends after the handshake.

It has three parts: the cipher and MAC of the handshake's Finished, at the server device's costs; the
library's work on a record; and the system's work until the server has read data that arrives separately (the
packet, waking the server, the call). The second was not measured by itself: the work on a ChangeCipherSpec of
TLS 1.3, which is read and ignored, is used. The third is a share of the server's work on a connection, for
each record. Only the first can be a device's own figure; the others are assumed.
"""

from __future__ import annotations

import math

from msgspec import structs

from shakedown.errors import InputError
from shakedown.models.ranges import within
from shakedown.prediction.side_cost import SideEstimator, on_device
from shakedown.prediction.stack_work import reference
from shakedown.prediction.symmetric import DIGEST_BYTES, Part, digests_of
from shakedown.prediction.trace import Message, Operation, Trace
from shakedown.prediction.work import SideCost
from shakedown.profiles.device import Device
from shakedown.profiles.software import AS_OURS

MAX_RECORD_BYTES = 16_384
"""Data in a record of TLS."""
RECEIVE_SHARE, RECEIVE_SPREAD = 0.1, 2.0
"""The cost of receiving a record that arrives separately, as a share of the server's work on a connection
besides the handshake, and its uncertainty (×/÷).

A polling server in Python needed 7 to 9 µs for 512 bytes over loopback on a Xeon, including the interpreter;
our server takes 60 to 70 µs for a connection on such processors.
"""

_HEADER_BYTES = {"tls1.3": 4, "dtls1.2": 12, "dtls1.3": 12, "wtls": 3}
"""Header of a handshake message; 4 in other protocols."""
_VERIFY_BYTES = 12
"""Body of a Finished; in TLS and DTLS 1.3 it is a digest."""


def record_cost(
    trace: Trace,
    device: Device,
    scale_from: Device | None,
    size_bytes: int,
    piece_bytes: int = MAX_RECORD_BYTES,
) -> SideCost:
    """Estimate the server's work on `size_bytes` that a client sends at once, in records of at most
    `piece_bytes`; `scale_from` as for `side_cost`.

    Raises `InputError` for a trace that does not contain how records are protected, and devices without
    primitives.
    """
    records = math.ceil(size_bytes / piece_bytes)
    sent = _sent(trace, size_bytes, records)
    return on_device(lambda one: _RecordEstimator(sent, records, one), device, scale_from)


def _sent(trace: Trace, size_bytes: int, records: int) -> Trace:
    """The data as a trace: a message with the operations that the server needs for it."""
    protected = _protection(trace)
    plain_bytes = _finished_bytes(trace, protected)
    return Trace(
        trace.suite,
        (Message(0, "client", "ApplicationData", None, size_bytes),),
        tuple(
            structs.replace(
                one,
                message=0,
                calls=one.count * records,
                bytes=size_bytes + max(0.0, one.size_bytes - plain_bytes) * records,
            )
            for one in protected
            if not (_has_own_mac(trace) and one.operation == "mac")
        ),
        software=trace.software,
    )


def _protection(trace: Trace) -> list[Operation]:
    """The server's symmetric work on the client's Finished. Raises `InputError`."""
    finished = [one.index for one in trace.messages if one.sender == "client" and one.name == "Finished"]
    found = [
        one
        for one in trace.operations
        if one.side == "server" and one.message in finished[-1:] and one.operation in ("cipher", "mac")
    ]
    kinds = {one.operation for one in found}
    if trace.protocol == "ssl3" or not kinds or (_has_own_mac(trace) and len(kinds) < 2):
        raise InputError(
            f"{trace.suite}: its trace does not show how records are protected, and so not what they cost; "
            "accepted with records: a measured handshake of WTLS, DTLS or TLS 1.0 and later"
        )
    return found


def _has_own_mac(trace: Trace) -> bool:
    """Whether a Finished is itself a MAC, and records have no MAC besides their cipher."""
    return trace.protocol in ("tls1.3", "dtls1.3")


def _finished_bytes(trace: Trace, protected: list[Operation]) -> int:
    """The length of a Finished before it was protected."""
    verify = _VERIFY_BYTES
    if _has_own_mac(trace):
        names = [name for one in protected if one.operation == "mac" for name in digests_of(one.algorithm)]
        verify = DIGEST_BYTES[names[0]]
    return _HEADER_BYTES.get(trace.protocol, 4) + verify


class _RecordEstimator(SideEstimator):
    """The server's work on records, part by part."""

    def __init__(self, trace: Trace, records: int, device: Device) -> None:
        super().__init__(trace, "server", device)
        self.records = records

    def _stack(self) -> None:
        """The library's work on the records, and the system's work to receive them."""
        own = self.device.overhead
        if own.known and not own.messages:
            seconds = own.per_message_s * self.records + own.per_byte_s * self.trace.size_bytes("client")
            self._stack_part(self._own_part(seconds), 0)
        else:
            read = reference().message("tls1.3", "ChangeCipherSpec", "process")
            assert read is not None
            self._stack_part(self._assumed(self.records * read.mean_s), 0)
        self._add_received()

    def _add_received(self) -> None:
        own = self.device.connection
        kib = self.trace.size_bytes("client") / 1024.0
        share = RECEIVE_SHARE * self.records
        if own.server_s is not None:
            time = within(share * own.server_s + own.per_kib_s * kib, self.device.spread)
            where = f"{self.device.name}'s"
        else:
            shown = reference().connection
            time = self.work.network.of(share * shown["server_s"] + shown["per_kib_s"] * kib)
            where = f"{reference().device}'s × {self.work.network.factor:.3g}"
        factor = AS_OURS if self.software is None else self.software.connection
        time = time.scaled(1.0, RECEIVE_SPREAD).scaled(*factor)
        method = f"receiving: {RECEIVE_SHARE:g} of {where} work on a connection"
        part = Part(f"{self.device.name}: receiving", time, "assumed", method)
        self.cost._add(part, 0)
        self._note(("receive", "", ""), part, self.records)

    def _connection(self) -> None:
        """No cost: the connection is already open."""
