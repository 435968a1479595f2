"""Reads and writes captures of UDP over IPv4 over Ethernet."""

from __future__ import annotations

import struct
from pathlib import Path

from interop.wtls.decoder import Sender

Connections = dict[tuple[bytes, int], list[tuple[Sender, bytes]]]
WTLS_PORT = 9203
_SECTIONS = {
    b"\xd4\xc3\xb2\xa1": "<",
    b"\x4d\x3c\xb2\xa1": "<",
    b"\xa1\xb2\xc3\xd4": ">",
    b"\xa1\xb2\x3c\x4d": ">",
}


def read(path: Path) -> Connections:
    """The datagrams of a pcap file by the client's address and port, in order of appearance."""
    content = path.read_bytes()
    order = _SECTIONS[content[:4]]
    assert struct.unpack_from(order + "I", content, 20) == (1,), "Ethernet"
    found: Connections = {}
    at = 24
    while at < len(content):
        _, _, captured, length = struct.unpack_from(order + "IIII", content, at)
        frame = content[at + 16 : at + 16 + captured]
        at += 16 + captured
        assert captured == length
        assert (frame[12:14], frame[14] >> 4, frame[23]) == (b"\x08\x00", 4, 17), "UDP over IPv4"
        udp = frame[14 + 4 * (frame[14] & 15) :]
        source, destination, udp_bytes = struct.unpack_from(">HHH", udp)
        assert udp_bytes == len(udp)
        if destination == WTLS_PORT:
            found.setdefault((frame[26:30], source), []).append(("client", udp[8:]))
        else:
            assert source == WTLS_PORT
            found[frame[30:34], destination].append(("server", udp[8:]))
    return found


def write(path: Path, datagrams: list[tuple[Sender, bytes]]) -> None:
    """Writes one connection as a pcap file (microseconds, big-endian)."""
    with path.open("wb") as file:
        file.write(struct.pack(">IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for number, (sender, data) in enumerate(datagrams):
            ports = (49152, WTLS_PORT) if sender == "client" else (WTLS_PORT, 49152)
            hosts = (b"\x0a\0\0\1", b"\x0a\1\0\1")
            source, destination = hosts if sender == "client" else hosts[::-1]
            udp = struct.pack(">HHHH", *ports, 8 + len(data), 0) + data
            ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, source, destination)
            frame = bytes(12) + b"\x08\x00" + ip + udp
            file.write(struct.pack(">IIII", number, 0, len(frame), len(frame)) + frame)
