"""Captures as lists of packets, for tests that damage them."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

ETHERNET, POINT_TO_POINT, RAW_IP, NULL, LINUX_COOKED, LINUX_COOKED_2 = 1, 9, 101, 0, 113, 276
FIN, SYN, PUSH = 0x01, 0x02, 0x08


@dataclass(frozen=True)
class Packet:
    """An IPv4 packet with TCP in it, without the link layer."""

    time_ns: int
    data: bytes
    # Length on the wire; greater than the captured length if the snap length cut the packet.
    length: int

    @property
    def header_bytes(self) -> int:
        return (self.data[0] & 0x0F) * 4

    @property
    def ports(self) -> tuple[int, int]:
        return struct.unpack_from("!HH", self.data, self.header_bytes)

    @property
    def payload_at(self) -> int:
        return self.header_bytes + (self.data[self.header_bytes + 12] >> 4) * 4

    @property
    def payload(self) -> bytes:
        return self.data[self.payload_at :]

    @property
    def sequence(self) -> int:
        return struct.unpack_from("!I", self.data, self.header_bytes + 4)[0]

    @property
    def flags(self) -> int:
        return self.data[self.header_bytes + 13]


def read(capture: Path, folder: Path) -> list[Packet]:
    """The IPv4 packets of a capture of an Ethernet or loopback device."""
    plain = folder / "plain.pcap"
    subprocess.run(["editcap", "-F", "nsecpcap", capture, plain], check=True, capture_output=True)
    content = plain.read_bytes()
    packets, at = [], 24
    while at < len(content):
        seconds, fraction, captured, length = struct.unpack_from("<IIII", content, at)
        frame = content[at + 16 : at + 16 + captured]
        at += 16 + captured
        if frame[12:14] == b"\x08\x00":
            packets.append(Packet(seconds * 10**9 + fraction, frame[14:], length - 14))
    return packets


def connection(packets: Iterable[Packet], port: int) -> list[Packet]:
    """The packets to and from one client's port."""
    return [packet for packet in packets if port in packet.ports]


def write(path: Path, packets: Iterable[Packet], link: int = ETHERNET, head: bytes = b"") -> None:
    """Writes a classic capture with nanoseconds; `head` goes before each packet."""
    head = head or (bytes(12) + b"\x08\x00" if link == ETHERNET else b"")
    with path.open("wb") as file:
        file.write(struct.pack("<IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, link))
        for packet in packets:
            frame = head + packet.data
            seconds, fraction = divmod(packet.time_ns, 10**9)
            file.write(struct.pack("<IIII", seconds, fraction, len(frame), len(head) + packet.length) + frame)


def moved(packets: Iterable[Packet], number: int, client_port: int) -> list[Packet]:
    """The same connection between two addresses, 10.x.y.1 and 10.x.y.2, that `number` makes unique."""
    client, server = (bytes([10, number >> 8, number & 255, end]) for end in (1, 2))
    out = []
    for packet in packets:
        source, destination = (client, server) if packet.ports[0] == client_port else (server, client)
        out.append(replace(packet, data=packet.data[:12] + source + destination + packet.data[20:]))
    return out


def segmented(packets: Iterable[Packet], size: int) -> list[Packet]:
    """The same streams in segments of at most `size` bytes, a microsecond apart."""
    out = []
    for packet in packets:
        head, payload = packet.data[: packet.payload_at], packet.payload
        pieces = [payload[at : at + size] for at in range(0, len(payload), size)] or [b""]
        tcp = packet.header_bytes
        for index, piece in enumerate(pieces):
            flags = packet.flags if index == len(pieces) - 1 else packet.flags & ~(FIN | PUSH)
            sequence = (packet.sequence + index * size) % 2**32
            data = bytearray(head + piece)
            struct.pack_into("!H", data, 2, len(data))
            struct.pack_into("!I", data, tcp + 4, sequence)
            data[tcp + 13] = flags
            out.append(Packet(packet.time_ns + index * 1000, bytes(data), len(data)))
    return sorted(out, key=lambda packet: packet.time_ns)


def to_version_6(packet: Packet) -> Packet:
    """The same segment in IPv6, behind a hop-by-hop and a destination header."""
    payload = packet.data[packet.header_bytes :]
    extensions = b"\x3c\x00\x01\x04\x00\x00\x00\x00" + b"\x06\x00\x01\x04\x00\x00\x00\x00"
    addresses = b"\x20\x01" + bytes(10) + packet.data[12:16] + b"\x20\x01" + bytes(10) + packet.data[16:20]
    head = struct.pack("!IHBB", 6 << 28, len(extensions) + len(payload), 0, 64) + addresses
    data = head + extensions + payload
    return Packet(packet.time_ns, data, len(data))


def snapped(packet: Packet, size: int) -> Packet:
    """The packet as captured with that snap length."""
    return replace(packet, data=packet.data[:size])


def fragments(packet: Packet, size: int) -> list[Packet]:
    """The packet in IPv4 fragments of at most `size` bytes (a multiple of eight), the last first."""
    head, payload = packet.data[: packet.header_bytes], packet.data[packet.header_bytes :]
    out = []
    for at in range(0, len(payload), size):
        piece = payload[at : at + size]
        more = 0x2000 if at + size < len(payload) else 0
        data = bytearray(head + piece)
        struct.pack_into("!H", data, 2, len(data))
        struct.pack_into("!H", data, 6, more | at // 8)
        out.append(Packet(packet.time_ns, bytes(data), len(data)))
    return out[::-1]
