"""A capture as decoded by Wireshark."""

from __future__ import annotations

import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from capture.oracle import NAMES
from interop.ours import Message

CHANGE_CIPHER_SPEC = 20


def connections(program: str, capture: Path, key_log: Path, port: int = 443) -> list[list[Message]]:
    """The handshake messages of each TCP connection, each with the size of the record that carried it."""
    done = subprocess.run(
        [program, "-r", capture, "-o", f"tls.keylog_file:{key_log}", "-T", "pdml", "-Y", "tls"],
        capture_output=True,
        timeout=300,
        check=True,
    )
    found: dict[int, list[Message]] = {}
    for packet in ElementTree.fromstring(done.stdout).iter("packet"):
        stream = int(_first(packet, "tcp.stream"))
        sender = "server" if int(_first(packet, "tcp.srcport")) == port else "client"
        for layer in packet.iter("proto"):
            if layer.get("name") == "tls":
                messages = [_message(sender, record) for record in layer.iter("field") if _is_record(record)]
                found.setdefault(stream, []).extend(messages)
    return [found[stream] for stream in sorted(found)]


def _is_record(field: ElementTree.Element) -> bool:
    return field.get("name") == "tls.record" and int(field.get("size", "0")) > 0


def _message(sender: str, record: ElementTree.Element) -> Message:
    size = int(record.get("size", "0"))
    kinds = [field for field in record.iter("field") if field.get("name") == "tls.handshake.type"]
    if kinds:
        assert len(kinds) == 1, "one message a record, as libssl sends them"
        return Message(sender, NAMES[int(kinds[0].get("show", "0"))], size)
    assert int(_first(record, "tls.record.content_type")) == CHANGE_CIPHER_SPEC, ElementTree.tostring(record)
    return Message(sender, "ChangeCipherSpec", size)


def _first(element: ElementTree.Element, name: str) -> str:
    return next(field.get("show", "") for field in element.iter("field") if field.get("name") == name)
