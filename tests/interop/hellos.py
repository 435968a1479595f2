"""Parses TLS hello messages with their extensions (RFC 5246, 7.4.1; RFC 8446, 4.1)."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

_TLS_PORT = 443

SCSV = 0x00FF
"""Stands among cipher suites for an empty renegotiation_info (RFC 5746)."""

EXTENSIONS = {
    0: "server_name",
    10: "supported_groups",
    11: "ec_point_formats",
    13: "signature_algorithms",
    22: "encrypt_then_mac",
    23: "extended_master_secret",
    35: "session_ticket",
    41: "pre_shared_key",
    43: "supported_versions",
    45: "psk_key_exchange_modes",
    49: "post_handshake_auth",
    50: "signature_algorithms_cert",
    51: "key_share",
    65281: "renegotiation_info",
}


@dataclass(frozen=True)
class Hello:
    """A hello: cipher suites (the chosen one of a server), and the content of each extension, in order."""

    of_client: bool
    session_id: bytes
    suites: tuple[int, ...]
    extensions: dict[str, bytes]


def hello(message: bytes) -> Hello:
    """A ClientHello or ServerHello with its handshake header."""
    kind, size = message[0], int.from_bytes(message[1:4])
    assert kind in (1, 2)
    assert len(message) == 4 + size
    at = 4 + 2 + 32
    session_id = message[at + 1 : at + 1 + message[at]]
    at += 1 + len(session_id)
    if kind == 1:
        length = int.from_bytes(message[at : at + 2])
        suites = struct.unpack_from(f">{length // 2}H", message, at + 2)
        at += 2 + length
        assert message[at : at + 2] == b"\x01\x00", "no compression"
        at += 2
    else:
        suites = struct.unpack_from(">H", message, at)
        at += 3
    extensions: dict[str, bytes] = {}
    if at < len(message):
        assert int.from_bytes(message[at : at + 2]) == len(message) - at - 2
        at += 2
        while at < len(message):
            number, length = struct.unpack_from(">HH", message, at)
            extensions[EXTENSIONS[number]] = message[at + 4 : at + 4 + length]
            at += 4 + length
    return Hello(kind == 1, session_id, suites, extensions)


def of_capture(capture: Path) -> dict[str, bytes]:
    """Either side's first handshake message in a capture of one connection, with its header."""
    content = capture.read_bytes()
    assert content[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1"), "pcap, little-endian"
    streams = {"client": b"", "server": b""}
    at = 24
    while at < len(content):
        captured = struct.unpack_from("<I", content, at + 8)[0]
        frame = content[at + 16 : at + 16 + captured]
        at += 16 + captured
        assert (frame[12:14], frame[23]) == (b"\x08\x00", 6), "TCP over IPv4 over Ethernet"
        packet = frame[14 : 14 + int.from_bytes(frame[16:18])]
        segment = packet[4 * (packet[0] & 15) :]
        sender = "client" if int.from_bytes(segment[2:4]) == _TLS_PORT else "server"
        streams[sender] += segment[4 * (segment[12] >> 4) :]
    return {side: stream[5 : 5 + int.from_bytes(stream[3:5])] for side, stream in streams.items()}
