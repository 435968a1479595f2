"""Debian's OpenSSL, over loopback and with our certificates, sends the messages that `measure` reports.

Two programs of Debian perform the handshake of each suite. Their messages, order and bytes must be the
reported ones. If Debian's OpenSSL 3.0 sends something else, the extension that differs must account for every
byte.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from interop.hellos import SCSV, hello, of_capture
from interop.openssl import Seen, handshake
from interop.ours import KEY, Message
from shakedown.api import in_memory
from shakedown.native.scenario import MeasureOptions

TLS_1_2 = ("-tls1_2", "-no_ticket")
TLS_1_3 = ("-tls1_3",)
AES_128 = ("-ciphersuites", "TLS_AES_128_GCM_SHA256")
CHACHA20 = ("-ciphersuites", "TLS_CHACHA20_POLY1305_SHA256")
RSA, EC = "rsa2048@rsa2048@rsa2048", "p256@p256@p256"


@dataclass(frozen=True)
class Case:
    """The arguments with which the programs run a suite."""

    both: tuple[str, ...]
    client: tuple[str, ...] = field(default=())


CASES = {
    f"tls1.2/rsa/{RSA}/server": Case(TLS_1_2, ("-cipher", "AES128-GCM-SHA256")),
    f"tls1.2/rsa/{RSA}/mutual/aes256-sha256": Case(TLS_1_2, ("-cipher", "AES256-SHA256")),
    f"tls1.2/ecdhe_rsa+x25519/{RSA}/server": Case(
        (*TLS_1_2, "-curves", "X25519"), ("-cipher", "ECDHE-RSA-AES128-GCM-SHA256")
    ),
    f"tls1.2/ecdhe_ecdsa+p256/{EC}/mutual": Case(
        (*TLS_1_2, "-curves", "P-256"), ("-cipher", "ECDHE-ECDSA-AES128-GCM-SHA256")
    ),
    "tls1.2/psk": Case(TLS_1_2, ("-cipher", "PSK-AES128-GCM-SHA256")),
    "tls1.2/psk/aes128-sha": Case(TLS_1_2, ("-cipher", "PSK-AES128-CBC-SHA")),
    "tls1.2/dhe_psk+dh2048": Case(TLS_1_2, ("-cipher", "DHE-PSK-AES128-GCM-SHA256")),
    f"tls1.3/x25519/{EC}/server": Case((*TLS_1_3, *AES_128, "-curves", "X25519")),
    f"tls1.3/x25519/{RSA}/mutual": Case((*TLS_1_3, *AES_128, "-curves", "X25519")),
    f"tls1.3/p256/{EC}/server/chacha20": Case((*TLS_1_3, *CHACHA20, "-curves", "P-256")),
    f"tls1.3/p256/{EC}/mutual": Case((*TLS_1_3, *AES_128, "-curves", "P-256")),
    "tls1.3/psk_dhe+x25519": Case((*TLS_1_3, *AES_128, "-curves", "X25519")),
}

# Extensions in which the two builds differ: their own lists, and tickets that only our client accepts.
OTHER_EXTENSIONS = {"renegotiation_info", "session_ticket", "ec_point_formats", "signature_algorithms"}
RANDOM_EXTENSIONS = {"key_share", "pre_shared_key"}


@dataclass(frozen=True)
class Run:
    """One suite by both implementations."""

    measured: list[Message]
    server: list[Seen]
    client: list[Seen]
    our_hellos: dict[str, bytes]
    chains: dict[str, Path]

    def theirs(self, sender: str) -> list[Seen]:
        """The messages that one of Debian's programs reports as sent."""
        account = self.server if sender == "server" else self.client
        return [one for one in account if one.message.sender == sender]

    def ours(self, sender: str) -> list[Message]:
        return [one for one in self.measured if one.sender == sender]


def certificates(folder: Path, keys: str) -> dict[str, Path]:
    """Generated chains of both sides, one folder each."""
    found = {}
    for side in ("server", "client"):
        found[side] = folder / f"{side}-{keys}"
        if not found[side].exists():
            command = [sys.executable, "-m", "shakedown", "certs", "make", keys, "--side", side]
            subprocess.run([*command, "--out", found[side]], check=True, capture_output=True)
            end = "-----END CERTIFICATE-----\n"
            issuers = (found[side] / "chain.pem").read_text().split(end, 1)[1]
            (found[side] / "issuers.pem").write_text(issuers)
    return found


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Run]:
    """Runs a suite once with both implementations."""
    folder = tmp_path_factory.mktemp("openssl")
    kept: dict[str, Run] = {}

    def both(program: str, suite: str) -> Run:
        if suite not in kept:
            kept[suite] = _run(program, suite, folder, folder / str(len(kept)))
        return kept[suite]

    return both


def _run(program: str, suite: str, chains: Path, folder: Path) -> Run:
    folder.mkdir()
    case, ours = CASES[suite], dict[str, Any]()
    server: list[str | Path] = [*case.both]
    client: list[str | Path] = [*case.both, *case.client]
    made: dict[str, Path] = {}
    if "psk" in suite:
        server += ["-nocert", "-psk", KEY.hex()]
        client += ["-psk", KEY.hex()]
    else:
        made = certificates(chains, suite.split("/")[2])
        server += _files(made["server"])
        ours |= {name: made["server"] / f"{name}.pem" for name in ("chain", "key", "ca")}
    if "mutual" in suite:
        server += ["-Verify", "3", "-verify_return_error", "-CAfile", made["client"] / "ca.pem"]
        client += _files(made["client"])
        ours |= {f"client_{name}": made["client"] / f"{name}.pem" for name in ("chain", "key", "ca")}
    if made:
        client += ["-verify_return_error", "-CAfile", made["server"] / "ca.pem"]
    seen = handshake(program, folder, server, client)
    in_memory.capture([suite], folder / "ours.pcap", options=MeasureOptions(**ours))
    messages = in_memory.measure(suite, 1, options=MeasureOptions(**ours)).messages
    return Run(
        [Message(one.sender, one.name, int(one.bytes)) for one in messages],
        *seen,
        of_capture(folder / "ours.pcap"),
        made,
    )


def _files(folder: Path) -> list[str | Path]:
    # With a given chain, OpenSSL does not build its own, which would include the root.
    return [
        *("-cert", folder / "chain.pem"),
        *("-key", folder / "key.pem"),
        *("-cert_chain", folder / "issuers.pem"),
    ]


each_suite = pytest.mark.parametrize("suite", CASES)
each_sender = pytest.mark.parametrize("sender", ["client", "server"])


@each_suite
def test_message_names_and_order_match_openssl(
    suite: str, run: Callable[[str, str], Run], peer: Callable[[str], str]
) -> None:
    """-msg prints a side's own ChangeCipherSpec, not the peer's, and a client exits without waiting for
    tickets; all other messages are in both logs.
    """
    both = run(peer("openssl"), suite)
    for sender in ("client", "server"):
        assert [one.message.name for one in both.theirs(sender)] == [one.name for one in both.ours(sender)]
    for side, account in (("server", both.server), ("client", both.client)):
        expected = [
            (one.sender, one.name)
            for one in both.measured
            if one.sender == side or one.name not in ("ChangeCipherSpec", "NewSessionTicket")
        ]
        found = [(one.message.sender, one.message.name) for one in account]
        assert [one for one in found if side == "server" or one[1] != "NewSessionTicket"] == expected


@each_suite
@each_sender
def test_message_bytes_match_openssl(
    suite: str, sender: str, run: Callable[[str, str], Run], peer: Callable[[str], str]
) -> None:
    """Records have the same length, or differ by the amount computed for that message."""
    both = run(peer("openssl"), suite)
    for theirs, ours in zip(both.theirs(sender), both.ours(sender), strict=True):
        apart = theirs.message.bytes - ours.bytes
        if ours.name in ("ClientHello", "ServerHello"):
            assert apart == len(theirs.content) - len(both.our_hellos[sender])
        elif ours.name == "CertificateRequest":
            assert apart == algorithms(theirs.content, suite) - our_algorithms(both)
        elif EC in suite and ours.name in ("ServerKeyExchange", "CertificateVerify"):
            assert abs(apart) <= 4, "DER writes r and s of ECDSA with or without leading zeros"
        elif EC in suite and "mutual" in suite and ours.name == "NewSessionTicket":
            assert abs(apart) <= 16, "the client's certificate is in it, encrypted in blocks"
        else:
            assert apart == 0, ours


def algorithms(request: bytes, suite: str) -> int:
    """The bytes of the list of signature algorithms in a CertificateRequest."""
    if suite.startswith("tls1.2"):
        types = request[4]
        return int.from_bytes(request[5 + types : 7 + types])
    at = 4 + 1 + len(request[5 : 5 + request[4]]) + 2
    while int.from_bytes(request[at : at + 2]) != 13:
        at += 4 + int.from_bytes(request[at + 2 : at + 4])
    return int.from_bytes(request[at + 4 : at + 6])


def our_algorithms(both: Run) -> int:
    """The bundled stack sends the same list in ClientHello and CertificateRequest."""
    return len(hello(both.our_hellos["client"]).extensions["signature_algorithms"]) - 2


@each_suite
@each_sender
def test_hellos_differ_in_named_extensions_only(
    suite: str, sender: str, run: Callable[[str, str], Run], peer: Callable[[str], str]
) -> None:
    both = run(peer("openssl"), suite)
    ours = hello(both.our_hellos[sender])
    (seen,) = [one for one in both.theirs(sender) if one.message.name.endswith("Hello")]
    theirs = hello(seen.content)
    assert len(ours.session_id) == len(theirs.session_id)
    assert [one for one in theirs.suites if one != SCSV] == list(ours.suites)
    differing = {
        name
        for name in ours.extensions.keys() | theirs.extensions.keys()
        if ours.extensions.get(name) != theirs.extensions.get(name)
    }
    assert differing <= OTHER_EXTENSIONS | RANDOM_EXTENSIONS
    for name in differing & RANDOM_EXTENSIONS:
        assert len(ours.extensions[name]) == len(theirs.extensions[name])
    explained = 2 * (len(theirs.suites) - len(ours.suites)) + sum(
        extension_bytes(theirs.extensions.get(name)) - extension_bytes(ours.extensions.get(name))
        for name in differing
    )
    assert len(seen.content) - len(both.our_hellos[sender]) == explained


def extension_bytes(content: bytes | None) -> int:
    return 0 if content is None else 4 + len(content)


@pytest.mark.parametrize("suite", [suite for suite in CASES if "psk" not in suite])
def test_certificates_are_identical_to_the_chain_file(
    suite: str, run: Callable[[str, str], Run], peer: Callable[[str], str]
) -> None:
    """What Debian's OpenSSL sends is the chain file that `measure` was given, and nothing more."""
    both = run(peer("openssl"), suite)
    for sender in ("server", "client") if "mutual" in suite else ("server",):
        (seen,) = [one for one in both.theirs(sender) if one.message.name == "Certificate"]
        chain = der((both.chains[sender] / "chain.pem").read_text())
        assert len(chain) == 2
        if suite.startswith("tls1.2"):
            entries = b"".join(len(one).to_bytes(3) + one for one in chain)
            expected = len(entries).to_bytes(3) + entries
        else:
            entries = b"".join(len(one).to_bytes(3) + one + b"\0\0" for one in chain)
            expected = b"\0" + len(entries).to_bytes(3) + entries
        assert seen.content == b"\x0b" + len(expected).to_bytes(3) + expected


def der(pem: str) -> list[bytes]:
    from base64 import b64decode

    found = re.findall(r"-----BEGIN CERTIFICATE-----(.*?)-----END", pem, re.DOTALL)
    return [b64decode(one) for one in found]
