"""The same capture, decoded by Shakedown and by Wireshark."""

from __future__ import annotations

import json
import os
import subprocess
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

PORTS = range(24400, 24480)
DATAGRAM_PORTS = range(24470, 24480)

NAMES = {
    0: "HelloRequest",
    1: "ClientHello",
    2: "ServerHello",
    3: "HelloVerifyRequest",
    4: "NewSessionTicket",
    5: "EndOfEarlyData",
    8: "EncryptedExtensions",
    11: "Certificate",
    12: "ServerKeyExchange",
    13: "CertificateRequest",
    14: "ServerHelloDone",
    15: "CertificateVerify",
    16: "ClientKeyExchange",
    20: "Finished",
    22: "CertificateStatus",
    24: "KeyUpdate",
}


def inspect(program: Path, capture: Path, key_log: Path | None = None) -> list[dict]:
    arguments = [str(program), str(capture), *([str(key_log)] if key_log else [])]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@dataclass
class Observed:
    """A connection as tshark reports it, keyed by its client's address and port."""

    # Per sender: message names with the time of their frame and their own length, header included.
    messages: dict[str, list[tuple[str, float, int]]] = field(default_factory=lambda: defaultdict(list))
    # Per sender: bytes of handshake and ChangeCipherSpec records.
    record_bytes: dict[str, int] = field(default_factory=lambda: defaultdict(int))


FIELDS = [
    "frame.time_epoch",
    "ip.src",
    "ipv6.src",
    "tcp.srcport",
    "udp.srcport",
    "{p}.record.content_type",
    "{p}.record.length",
    "{p}.handshake.type",
    "{p}.handshake.length",
    "ip.dst",
    "ipv6.dst",
    "tcp.dstport",
    "udp.dstport",
]


def observe(
    capture: Path, key_log: Path | None, servers: range, protocol: str = "tls", *options: str
) -> dict[str, Observed]:
    """tshark's view, by the client's "address:port"; `servers` are the ports that servers listen on."""
    command = [
        "tshark",
        "-r",
        str(capture),
        "-T",
        "fields",
        "-E",
        "separator=|",
        "-o",
        "tls.desegment_ssl_records:TRUE",
    ]
    command += ["-o", "tcp.reassemble_out_of_order:TRUE", "-Y", protocol]
    if key_log is not None:
        command += ["-o", f"tls.keylog_file:{key_log}"]
    for port in servers:
        command += ["-d", f"{'udp' if protocol == 'dtls' else 'tcp'}.port=={port},{protocol}"]
    for name in FIELDS:
        command += ["-e", name.format(p=protocol)]
    environment = {**os.environ, "HOME": "/proc/none"}
    done = subprocess.run(
        [*command, *options], capture_output=True, text=True, check=True, env=environment, timeout=120
    )
    header = 13 if protocol == "dtls" else 5
    found: dict[str, Observed] = defaultdict(Observed)
    for line in done.stdout.splitlines():
        time, source4, source6, *rest = line.split("|")
        tcp_port, udp_port, types, lengths, kinds, sizes, *_ = rest
        destination = int(rest[-2] or rest[-1])
        port = int(tcp_port or udp_port)
        from_client = destination in servers
        address = (source4 or f"[{source6}]") if from_client else (rest[-4] or f"[{rest[-3]}]")
        connection = found[f"{address}:{port if from_client else destination}"]
        sender = "client" if from_client else "server"
        for kind, length in zip(numbers(types), numbers(lengths), strict=False):
            if kind in (20, 22):
                connection.record_bytes[sender] += header + length
            if kind == 20:
                connection.messages[sender].append(("ChangeCipherSpec", float(time), 1))
        own = 12 if protocol == "dtls" else 4
        for kind, size in zip(numbers(kinds), numbers(sizes), strict=False):
            connection.messages[sender].append((NAMES.get(kind, f"Unknown({kind})"), float(time), own + size))
    return dict(found)


def numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")] if text else []


def told(connection: dict, sender: str) -> list[tuple[str, float, int]]:
    """Our messages in the oracle's form; a retry is a ServerHello to Wireshark."""
    names = {"HelloRetryRequest": "ServerHello"}
    return [
        (
            names.get(message["name"], message["name"]),
            connection["start_unix_s"] + message["time_s"],
            message["bytes"],
        )
        for message in connection["messages"]
        if message["from"] == sender
    ]


def differences(connection: dict, seen: Observed) -> list[str]:
    """The differences between the two views of a connection."""
    found = []
    for sender, direction in (("client", "client_to_server"), ("server", "server_to_client")):
        ours, theirs = told(connection, sender), seen.messages.get(sender, [])
        # Wireshark lists ChangeCipherSpec apart, so messages of one frame are compared without their order.
        ours_sorted = sorted(ours, key=lambda message: (round(message[1], 6), message[0]))
        theirs_sorted = sorted(theirs, key=lambda message: (round(message[1], 6), message[0]))
        if "Finished" not in [message[0] for message in theirs]:
            # Without keys, Wireshark does not name the Finished.
            ours_sorted = [message for message in ours_sorted if message[0] != "Finished"]
        if [message[0] for message in ours_sorted] != [message[0] for message in theirs_sorted]:
            found.append(f"{sender}: {[m[0] for m in ours]} against {[m[0] for m in theirs]}")
            continue
        for (name, at, size), (_, their_at, their_size) in zip(ours_sorted, theirs_sorted, strict=True):
            if abs(at - their_at) > 1.5e-6:
                found.append(f"{sender} {name}: at {at:.6f} against {their_at:.6f}")
            if size < their_size:
                found.append(f"{sender} {name}: {size} bytes, less than its content's {their_size}")
        if connection["bytes"][direction] != seen.record_bytes.get(sender, 0):
            found.append(
                f"{sender}: {connection['bytes'][direction]} bytes against {seen.record_bytes.get(sender, 0)}"
            )
    return found


@dataclass
class Captured:
    """A capture, its key log, and the numbers of connections made."""

    path: Path
    key_log: Path
    made: int
    made_datagram: int
    program: Path

    def ours(self, *, keys: bool = True) -> list[dict]:
        return inspect(self.program, self.path, self.key_log if keys else None)

    def theirs(self, protocol: str = "tls", *, keys: bool = True) -> dict[str, Observed]:
        servers = DATAGRAM_PORTS if protocol == "dtls" else range(PORTS.start, DATAGRAM_PORTS.start)
        return observe(self.path, self.key_log if keys else None, servers, protocol)

    def opened_in_s(self) -> dict[str, float]:
        """The time from each SYN to its answer, as Wireshark reports it, by the client's "address:port"."""
        command = ["tshark", "-r", str(self.path), "-Y", "tcp.flags.syn == 1 && tcp.flags.ack == 1"]
        fields = ("ip.dst", "ipv6.dst", "tcp.dstport", "tcp.analysis.ack_rtt")
        command += ["-T", "fields", "-E", "separator=|", *(part for one in fields for part in ("-e", one))]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
        found = {}
        for line in done.stdout.splitlines():
            address4, address6, port, took_s = line.split("|")
            found[f"{address4 or f'[{address6}]'}:{port}"] = float(took_s)
        return found
