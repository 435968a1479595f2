"""Loss, reordering, repetition and truncation at every packet, and every encapsulation."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from capture import packets
from capture.oracle import Captured, Observed, inspect, observe
from capture.packets import Packet

Message = tuple[str, str, int | None, int]


def essence(connection: dict) -> list[Message]:
    """Everything about a connection's messages but the times."""
    return [(one["from"], one["name"], one["flight"], one["bytes"]) for one in connection["messages"]]


@dataclass
class Sample:
    """An undamaged connection: its packets, and the report about it."""

    packets: list[Packet]
    port: int
    told: dict

    @property
    def messages(self) -> list[Message]:
        return essence(self.told)


@pytest.fixture(scope="module")
def samples(captured: Captured, tmp_path_factory: pytest.TempPathFactory) -> list[Sample]:
    """One short connection for each protocol and sequence of messages."""
    everything = packets.read(captured.path, tmp_path_factory.mktemp("plain"))
    found: dict[object, Sample] = {}
    for one in captured.ours():
        if one["transport"] != "tcp" or not one["complete"] or not one["client"].startswith("127."):
            continue
        names = tuple(message["name"] for message in one["messages"])
        port = int(one["client"].rpartition(":")[2])
        own = packets.connection(everything, port)
        # Few packets, most of them of the handshake.
        if len(own) <= 40 and one["application_data_bytes"]["server_to_client"] < 20_000:
            found.setdefault((one["protocol"], names), Sample(own, port, one))
    assert len(found) >= 8
    return list(found.values())


class Bench:
    """Variants of connections, each with its own addresses, read from one capture."""

    def __init__(self, folder: Path, captured: Captured) -> None:
        self.folder, self.captured = folder, captured
        self.variants: list[tuple[Sample, str]] = []
        self.packets: list[Packet] = []

    def add(self, sample: Sample, what: str, changed: list[Packet]) -> None:
        self.packets += packets.moved(changed, len(self.variants), sample.port)
        self.variants.append((sample, what))

    def ours(self) -> dict[int, list[dict]]:
        """The report about each variant."""
        path = self.folder / "variants.pcap"
        packets.write(path, self.packets)
        told: dict[int, list[dict]] = {number: [] for number in range(len(self.variants))}
        for one in inspect(self.captured.program, path, self.captured.key_log):
            told[number(one["client"])].append(one)
        return told

    def theirs(self) -> dict[int, Observed]:
        """Wireshark's view of each variant; call `ours` first."""
        ports = range(24400, 24470)
        seen = observe(self.folder / "variants.pcap", self.captured.key_log, ports)
        return {number(client): one for client, one in seen.items()}


def number(address: str) -> int:
    _, high, low, _ = address.rpartition(":")[0].split(".")
    return int(high) << 8 | int(low)


@pytest.fixture
def bench(tmp_path: Path, captured: Captured) -> Bench:
    return Bench(tmp_path, captured)


def test_packet_order_repetition_and_segmentation_change_no_message(
    bench: Bench, samples: list[Sample]
) -> None:
    for sample in samples:
        own = sample.packets
        for at in range(len(own) - 1):
            swapped = [*own[:at], own[at + 1], own[at], *own[at + 2 :]]
            bench.add(sample, f"packets {at} and {at + 1} swapped", swapped)
        for at, packet in enumerate(own):
            bench.add(sample, f"packet {at} twice", [*own[: at + 1], packet, *own[at + 1 :]])
        for at in range(3, len(own) - 3):
            late = [*own[:at], *own[at + 1 : at + 4], own[at], *own[at + 4 :]]
            bench.add(sample, f"packet {at} three late", late)
        for size in (1, 7, 100, 536):
            bench.add(sample, f"segments of {size}", packets.segmented(own, size))
    told = bench.ours()
    for index, (sample, what) in enumerate(bench.variants):
        assert [essence(one) for one in told[index]] == [sample.messages], what
        assert told[index][0]["complete"], what


def test_messages_after_packet_loss_match_wireshark(bench: Bench, samples: list[Sample]) -> None:
    for sample in samples:
        for at in range(len(sample.packets)):
            bench.add(sample, f"packet {at} lost", [*sample.packets[:at], *sample.packets[at + 1 :]])
    told, seen = bench.ours(), bench.theirs()
    for index, (sample, what) in enumerate(bench.variants):
        lost = sample.packets[int(what.split()[1])]
        found = [message for one in told[index] for message in essence(one)]
        # On a busy machine, TCP may have sent the packet twice.
        is_repeated = any(
            (one.ports, one.sequence, one.payload) == (lost.ports, lost.sequence, lost.payload)
            for position, one in enumerate(sample.packets)
            if position != int(what.split()[1])
        )
        if not lost.payload or is_repeated:
            assert found == sample.messages, what
            continue
        # Each message found is one of the original messages, with the same size.
        whole = Counter((sender, name, size) for sender, name, _, size in sample.messages)
        mine = Counter((sender, name, size) for sender, name, _, size in found)
        assert mine <= whole, what
        retry = {"HelloRetryRequest": "ServerHello"}
        names = Counter((sender, retry.get(name, name)) for sender, name, _ in mine.elements())
        theirs = seen.get(index, Observed()).messages
        observed = Counter((sender, name) for sender, some in theirs.items() for name, _, _ in some)
        assert observed <= names, what
        # A later packet in the same direction, even a mere FIN, reveals the loss.
        later = sample.packets[int(what.split()[1]) + 1 :]
        if found and any(
            one.ports == lost.ports and (one.payload or one.flags & packets.FIN) for one in later
        ):
            assert any(one["gaps"][way]["count"] for one in told[index] for way in one["gaps"]) or any(
                one["problems"] for one in told[index]
            ), what


def test_truncated_captures_yield_the_messages_they_contain(bench: Bench, samples: list[Sample]) -> None:
    for sample in samples:
        for end in range(1, len(sample.packets)):
            bench.add(sample, f"ends after {end}", sample.packets[:end])
    told, seen = bench.ours(), bench.theirs()
    for index, (sample, what) in enumerate(bench.variants):
        found = [message for one in told[index] for message in essence(one)]
        per_sender = {
            side: [one for one in sample.messages if one[0] == side] for side in ("client", "server")
        }
        for side, whole in per_sender.items():
            mine = [one for one in found if one[0] == side]
            assert mine == whole[: len(mine)], what
            theirs = seen.get(index, Observed()).messages[side]
            assert len(mine) == len(theirs), (what, sample.told, theirs)


def test_captures_that_begin_late_yield_no_false_messages(bench: Bench, samples: list[Sample]) -> None:
    for sample in samples:
        for start in range(1, len(sample.packets)):
            bench.add(sample, f"begins with {start}", sample.packets[start:])
    told, messages = bench.ours(), 0
    for index, (sample, what) in enumerate(bench.variants):
        found = Counter((one[0], one[1], one[3]) for told_one in told[index] for one in essence(told_one))
        whole = Counter((one[0], one[1], one[3]) for one in sample.messages)
        assert found <= whole, what
        messages += found.total()
    assert messages > len(samples)


def test_snapped_packets_keep_message_names_if_headers_remain(bench: Bench, samples: list[Sample]) -> None:
    for sample, size in itertools.product(samples, (60, 100, 200, 400, 1000)):
        bench.add(sample, f"snapped to {size}", [packets.snapped(packet, size) for packet in sample.packets])
    told = bench.ours()
    for index, (sample, what) in enumerate(bench.variants):
        found = Counter((one[0], one[1], one[3]) for told_one in told[index] for one in essence(told_one))
        whole = Counter((one[0], one[1], one[3]) for one in sample.messages)
        assert found <= whole, what
        if what == "snapped to 1000":
            assert ("client", "ClientHello") in {(sender, name) for sender, name, _ in found}


WRAPPINGS = {
    "raw": (packets.RAW_IP, b""),
    "ethernet": (packets.ETHERNET, bytes(12) + b"\x08\x00"),
    "null": (packets.NULL, b"\x02\x00\x00\x00"),
    "vlan": (packets.ETHERNET, bytes(12) + b"\x81\x00\x00\x05\x08\x00"),
    "qinq": (packets.ETHERNET, bytes(12) + b"\x88\xa8\x00\x05\x81\x00\x00\x06\x08\x00"),
    "pppoe": (packets.ETHERNET, bytes(12) + b"\x88\x64\x11\x00\x00\x01\x00\x00\x00\x21"),
    "mpls": (packets.ETHERNET, bytes(12) + b"\x88\x47\x00\x00\x00\x40\x00\x00\x01\x40"),
    "ppp": (packets.POINT_TO_POINT, b"\xff\x03\x00\x21"),
    "cooked": (packets.LINUX_COOKED, bytes(14) + b"\x08\x00"),
    "cooked 2": (packets.LINUX_COOKED_2, b"\x08\x00" + bytes(18)),
}


@pytest.mark.parametrize("wrapping", WRAPPINGS)
def test_link_layers_give_the_same_messages(
    wrapping: str, tmp_path: Path, captured: Captured, samples: list[Sample]
) -> None:
    link, head = WRAPPINGS[wrapping]
    path = tmp_path / "wrapped.pcap"
    packets.write(path, [packet for sample in samples for packet in sample.packets], link, head)
    told = inspect(captured.program, path, captured.key_log)
    assert [essence(one) for one in told] == [sample.messages for sample in samples]


def test_ipv6_and_fragments_give_the_same_messages(
    tmp_path: Path, captured: Captured, samples: list[Sample]
) -> None:
    path = tmp_path / "changed.pcap"
    for sample in samples:
        packets.write(path, map(packets.to_version_6, sample.packets), packets.RAW_IP)
        (one,) = inspect(captured.program, path, captured.key_log)
        assert essence(one) == sample.messages
        assert one["client"].startswith("[2001:")
    pieces = []
    for sample in samples:
        # Each packet has its own IPv4 identification, as a sender assigns it.
        for number, packet in enumerate(sample.packets):
            marked = replace(packet, data=packet.data[:4] + number.to_bytes(2, "big") + packet.data[6:])
            pieces += packets.fragments(marked, 64)
    packets.write(path, pieces)
    told = inspect(captured.program, path, captured.key_log)
    assert [essence(one) for one in told] == [sample.messages for sample in samples]


def test_reused_ports_are_separate_connections(
    tmp_path: Path, captured: Captured, samples: list[Sample]
) -> None:
    """The same two ports, one connection after the other."""
    path = tmp_path / "again.pcap"
    chosen = samples[:4]
    sequence = []
    for sample in chosen:
        for packet in sample.packets:
            client = packet.ports[0] == sample.port
            ports = b"\xc0\x00\x01\xbb" if client else b"\x01\xbb\xc0\x00"
            at = packet.header_bytes
            sequence.append(replace(packet, data=packet.data[:at] + ports + packet.data[at + 4 :]))
    packets.write(path, sequence)
    told = inspect(captured.program, path, captured.key_log)
    assert [essence(one) for one in told] == [sample.messages for sample in chosen]
