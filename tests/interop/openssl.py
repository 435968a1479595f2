"""Handshakes between two Debian OpenSSL programs over loopback, and the output of their ``-msg``."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from interop.ours import Message

_LINE = re.compile(
    r"(?P<way>>>>|<<<) [^,]+, (?P<what>[A-Za-z]+) \[length (?P<length>[0-9a-f]+)\](, (?P<name>\w+))?"
)
_SECONDS = 300


@dataclass(frozen=True)
class Seen:
    """One message: who sent it, its record's bytes on the wire, and its own content."""

    message: Message
    content: bytes


def handshake(
    program: str, folder: Path, server: Sequence[str | Path], client: Sequence[str | Path]
) -> tuple[list[Seen], list[Seen]]:
    """One handshake with these options; the server's account of it and the client's."""
    folder.mkdir(parents=True, exist_ok=True)
    logs = folder / "server.txt", folder / "client.txt"
    # Standard input stays open, because s_server exits when it closes.
    process = subprocess.Popen(
        [
            program,
            "s_server",
            "-accept",
            "127.0.0.1:0",
            "-naccept",
            "1",
            "-msg",
            "-msgfile",
            logs[0],
            *server,
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    try:
        said = []
        for line in process.stdout:
            said.append(line)
            if line.startswith("ACCEPT "):
                break
        address = re.search(r"ACCEPT (127\.0\.0\.1:\d+)", "".join(said))
        assert address is not None, "".join(said)
        done = subprocess.run(
            [program, "s_client", "-connect", address[1], "-msg", "-msgfile", logs[1], *client],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        process.communicate(timeout=_SECONDS)
    finally:
        process.kill()
        process.wait()
    return read(logs[0], "server"), read(logs[1], "client")


def read(log: Path, side: str) -> list[Seen]:
    """The messages of a log, in the order in which this side saw them."""
    other = {"server": "client", "client": "server"}[side]
    found: list[Seen] = []
    record_bytes: dict[str, int] = {}
    for kind, head, content in _blocks(log.read_text(encoding="ascii")):
        sender = side if head["way"] == ">>>" else other
        if kind == "RecordHeader":
            record_bytes[sender] = 5 + int.from_bytes(content[3:5])
        elif kind in ("Handshake", "ChangeCipherSpec"):
            name = head["name"] or kind
            found.append(Seen(Message(sender, name, record_bytes[sender]), content))
    return found


def _blocks(text: str) -> list[tuple[str, re.Match[str], bytes]]:
    """Headlines of a log, each with the bytes below it."""
    heads: list[tuple[re.Match[str], list[str]]] = []
    for line in text.splitlines():
        head = _LINE.match(line)
        if head:
            heads.append((head, []))
        elif line.startswith(" ") and heads:
            heads[-1][1].append(line)
    return [(head["what"], head, bytes.fromhex("".join(lines))) for head, lines in heads]
