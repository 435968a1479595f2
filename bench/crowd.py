"""Large captures for benchmarks: genuine handshakes, repeated between other addresses, many at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from struct import pack_into, unpack_from
from tempfile import TemporaryDirectory
from typing import TypeAlias

import numpy as np

Bytes: TypeAlias = np.ndarray[tuple[int], np.dtype[np.uint8]]

FILE_HEADER_BYTES, RECORD_HEADER_BYTES = 24, 16
ETHERNET_BYTES, IP_BYTES, TCP_BYTES = 14, 20, 20
TCP_AT = ETHERNET_BYTES + IP_BYTES
SEGMENT_BYTES = 1460
CLOSING_PACKETS = 3
SERVER = bytes([10, 1, 0, 1])
FIRST_S = 1_700_000_000
STEP_US = 2000
"""Time between two packets of a connection."""


@dataclass(frozen=True)
class Template:
    """A connection's packets, and which of them its client sends."""

    packets: Sequence[bytes]
    from_client: Sequence[bool]

    @property
    def size_bytes(self) -> int:
        """The size of one copy in a capture."""
        return sum(RECORD_HEADER_BYTES + len(packet) for packet in self.packets)


def templates(suites: Sequence[str], data_bytes: int = 0) -> list[Template]:
    """One handshake of each suite, followed by `data_bytes` of the server's application data."""
    from shakedown.api import in_memory

    with TemporaryDirectory() as folder:
        path = Path(folder) / "handshakes.pcap"
        in_memory.capture(suites, path)
        capture = path.read_bytes()
    by_client: dict[bytes, list[bytes]] = {}
    at = FILE_HEADER_BYTES
    while at < len(capture):
        size = int.from_bytes(capture[at + 8 : at + 12], "little")
        packet = capture[at + RECORD_HEADER_BYTES : at + RECORD_HEADER_BYTES + size]
        at += RECORD_HEADER_BYTES + size
        ends = packet[ETHERNET_BYTES + 12 : ETHERNET_BYTES + IP_BYTES + 4]
        server_first = ends[:4] == SERVER
        client = ends[4:8] + ends[10:12] if server_first else ends[:4] + ends[8:10]
        by_client.setdefault(client, []).append(packet)
    return [_with_data(packets, data_bytes) for packets in by_client.values()]


def _with_data(packets: list[bytes], data_bytes: int) -> Template:
    """Insert records of application data before the three packets that close a connection."""
    talk, closing = packets[:-CLOSING_PACKETS], packets[-CLOSING_PACKETS:]
    record = bytes([23, 3, 3, 0x40, 0x18]) + bytes(0x4018)
    stream = record * -(-data_bytes // len(record)) if data_bytes else b""
    server = next(packet for packet in closing if _sent_by_server(packet))
    (sequence,) = unpack_from("!I", server, TCP_AT + 4)
    for at in range(0, len(stream), SEGMENT_BYTES):
        segment = stream[at : at + SEGMENT_BYTES]
        head = bytearray(server[: TCP_AT + TCP_BYTES])
        pack_into("!H", head, ETHERNET_BYTES + 2, IP_BYTES + TCP_BYTES + len(segment))
        pack_into("!I4s", head, TCP_AT + 4, (sequence + at) % 2**32, closing[0][TCP_AT + 4 : TCP_AT + 8])
        head[TCP_AT + 13] = 0x10
        talk.append(bytes(head) + segment)
    moved = [_moved(packet, len(stream)) for packet in closing]
    whole = [*talk, *moved]
    return Template(whole, [not _sent_by_server(packet) for packet in whole])


def _moved(packet: bytes, count: int) -> bytes:
    """A packet after `count` more bytes of the server."""
    moved, at = bytearray(packet), TCP_AT + (4 if _sent_by_server(packet) else 8)
    pack_into("!I", moved, at, (unpack_from("!I", packet, at)[0] + count) % 2**32)
    return bytes(moved)


def _sent_by_server(packet: bytes) -> bool:
    return packet[ETHERNET_BYTES + 12 : ETHERNET_BYTES + 16] == SERVER


def write(
    path: Path, made: Sequence[Template], size_bytes: int, at_a_time: int, *, stay_open: bool = False
) -> int:
    """Write a capture of about `size_bytes`, with `at_a_time` handshakes in parallel; return their number.

    With `stay_open` no connection is closed before the last has begun. Checksums are those of the templates,
    which readers ignore, as they do with checksum offload of network cards.
    """
    round_bytes = sum(template.size_bytes for template in made)
    each = max(1, at_a_time // len(made))
    rounds = max(1, size_bytes // (round_bytes * each))
    parts = [slice(None)] if not stay_open else [slice(0, -CLOSING_PACKETS), slice(-CLOSING_PACKETS, None)]
    with path.open("wb") as file:
        header = [0xA1B2C3D4, 2 | 4 << 16, 0, 0, 262_144, 1]
        file.write(np.array(header, "<u4").tobytes())
        clock_us = 0
        for part in parts:
            for first in range(0, rounds * each * len(made), each * len(made)):
                for packets in zip_longest(*(range(len(one.packets))[part] for one in made)):
                    for number, (template, place) in enumerate(zip(made, packets, strict=True)):
                        if place is not None:
                            start = first + number * each
                            block = _copies(template, place, np.arange(start, start + each), clock_us)
                            file.write(block.tobytes())
                    clock_us += STEP_US
    return rounds * each * len(made)


def _copies(
    template: Template, place: int, numbers: "np.ndarray[tuple[int], np.dtype[np.int64]]", clock_us: int
) -> "np.ndarray[tuple[int, int], np.dtype[np.uint8]]":
    """A packet of the template, once for each connection number."""
    packet = np.frombuffer(template.packets[place], np.uint8)
    rows = np.empty((len(numbers), RECORD_HEADER_BYTES + len(packet)), np.uint8)
    seconds, microseconds = divmod(clock_us, 1_000_000)
    fields = [FIRST_S + seconds, microseconds, len(packet), len(packet)]
    rows[:, :RECORD_HEADER_BYTES] = np.frombuffer(np.array(fields, "<u4").tobytes(), np.uint8)
    rows[:, RECORD_HEADER_BYTES:] = packet
    # The client's address and port are derived from the connection's number.
    ip = RECORD_HEADER_BYTES + ETHERNET_BYTES
    address = ip + (12 if template.from_client[place] else 16)
    port = ip + IP_BYTES + (0 if template.from_client[place] else 2)
    hosts, ports = numbers // 50_000, 10_000 + numbers % 50_000
    rows[:, address] = 10
    rows[:, address + 1] = 2
    rows[:, address + 2], rows[:, address + 3] = hosts >> 8, hosts & 0xFF
    rows[:, port], rows[:, port + 1] = ports >> 8, ports & 0xFF
    return rows
