"""Names from other programs and peers that contain terminal escapes."""

from __future__ import annotations

import re
import shutil
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

from runs import written
from shakedown.cli import exit_status

HOSTILE = "\x1b]0;owned\x07\x1b[31m\u202egnp.exe\u2066\x9b2J\r\u200f\u061c\u2028"


def assert_clean(*texts: str) -> None:
    for text in texts:
        bad = [one for one in text if not one.isprintable() and one not in "\n"]
        assert not bad, (bad, text)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A foreign certificate whose names are hostile, with its key."""
    program = shutil.which("openssl")
    if program is None:
        pytest.fail("openssl is not installed; tools/install-peers installs it")
    folder = tmp_path_factory.mktemp("certificate")
    config = folder / "config"
    lines = ["[req]", "distinguished_name = names", "x509_extensions = more", "prompt = no"]
    lines += ["string_mask = utf8only", "utf8 = yes", "[names]"]
    text = "".join(HOSTILE.splitlines())
    lines += [f"{name} = {text}" for name in ("CN", "O", "OU")]
    lines += ["[more]", "subjectAltName = DNS:localhost", f"nsComment = {text}"]
    config.write_text("\n".join(lines) + "\n")
    command = [program, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc"]
    command += ["-config", str(config), "-keyout", str(folder / "key.pem"), "-out", str(folder / "chain.pem")]
    subprocess.run([*command, "-days", "30"], check=True, capture_output=True)
    return folder


def test_hostile_certificate_names_are_escaped(certificate, tmp_path, capsys):
    chain, key = str(certificate / "chain.pem"), str(certificate / "key.pem")
    for arguments in (
        ["show", chain],
        ["show", chain, "--key", key, "--host", HOSTILE],
        ["show", chain, "--json"],
    ):
        assert exit_status(["certs", *arguments]) == 0
        out, err = capsys.readouterr()
        assert_clean(out, err)
        assert "owned" in out
    for arguments, expected in ((["make", "p256"], 2), (["issue", "root", "p256"], 0)):
        status = exit_status(["certs", *arguments, "--name", HOSTILE, "--out", str(tmp_path / HOSTILE)])
        out, err = capsys.readouterr()
        assert_clean(out, err)
        assert status == expected


def test_run_with_hostile_certificate_names_is_escaped(certificate, tmp_path, capsys):
    """Words of certificates reach the results, the terminal and the page."""
    folder = tmp_path / "r"
    experiment = written(
        tmp_path,
        f'suites = ["tls1.2/ecdhe_ecdsa+p256/p256/server"]\nrepeat = 1\n[server]\n'
        f'chain = "{certificate}/chain.pem"\nkey = "{certificate}/key.pem"\nca = "{certificate}/chain.pem"\n',
    )
    _printed(["run", str(experiment), "--out", str(folder)], capsys)
    assert "owned" in (folder / "report.html").read_text()
    assert_clean((folder / "report.html").read_text().replace("\t", ""))


def test_hostile_server_names_in_captures_are_escaped(tmp_path, capsys):
    capture = tmp_path / "c.pcap"
    name = HOSTILE.encode()
    entry = struct.pack("!BH", 0, len(name)) + name
    names = struct.pack("!HHH", 0, len(entry) + 2, len(entry)) + entry
    protocol = bytes([len(name)]) + name
    protocols = struct.pack("!HHH", 16, len(protocol) + 2, len(protocol)) + protocol
    extensions = names + protocols
    body = b"\x03\x03" + bytes(32) + b"\0" + b"\0\2\xc0\x2b" + b"\1\0"
    body += struct.pack("!H", len(extensions)) + extensions
    hello = b"\1" + len(body).to_bytes(3, "big") + body
    record = struct.pack("!BHH", 22, 0x0301, len(hello)) + hello
    segment = struct.pack("!HHIIBBHHH", 40000, 443, 1, 1, 5 << 4, 0x18, 65535, 0, 0) + record
    packet = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(segment), 0, 0, 64, 6, 0) + bytes(
        [10, 0, 0, 1, 10, 0, 0, 2]
    )
    packet += segment
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101)
    capture.write_bytes(head + struct.pack("<IIII", 0, 0, len(packet), len(packet)) + packet)
    for more in (["--wide"], ["--summary", "--wide"], ["--json"]):
        out = _printed(["inspect", str(capture), *more], capsys)
        assert "10.0.0.2:443" in out, "such a name is none, and the connection is there"
    folder = tmp_path / "r"
    experiment = written(tmp_path, f'captures = [{{ file = "{capture}" }}]\n')
    _printed(["run", str(experiment), "--out", str(folder)], capsys)
    assert_clean((folder / "report.html").read_text().replace("\t", ""))


def _printed(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert exit_status(arguments) == 0
    out, err = capsys.readouterr()
    assert_clean(out, err)
    return out


def test_hostile_certificate_names_under_load_are_escaped(certificate, capsys):
    """The certificate is not valid for the server's address, so every handshake fails."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = ["openssl", "s_server", "-accept", f"127.0.0.1:{port}", "-quiet", "-naccept", "1000"]
    command += ["-cert", str(certificate / "chain.pem"), "-key", str(certificate / "key.pem")]
    server = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.PIPE
    )
    try:
        for _ in range(600):
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except ConnectionRefusedError:
                time.sleep(0.05)
        options = ["--rate", "20/s", "--duration", "1s", "--ca", str(certificate / "chain.pem")]
        for more in ([], ["--json"], ["--server-name", "elsewhere.example"]):
            assert exit_status(["load", f"tls://127.0.0.1:{port}", *options, *more]) == 1
            out, err = capsys.readouterr()
            assert_clean(out, err)
            assert "certificate verify failed" in err
    finally:
        server.kill()
        server.communicate()


def test_hostile_peer_identities_are_escaped(tmp_path, capsys):
    """To a RADIUS server, in packets that are not even authentic."""
    assert (
        exit_status(
            [
                "eap",
                "peer",
                "--server",
                "127.0.0.1:9",
                "--suite",
                "tls1.2/rsa",
                "--secret",
                "x",
                "--identity",
                HOSTILE,
            ]
        )
        == 2
    )
    assert_clean(*capsys.readouterr())
    command = [sys.executable, "-m", "shakedown", "eap", "serve", "--listen", "127.0.0.1:0"]
    command += ["--suite", "tls1.2/rsa", "--secret", "x"]
    server = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=tmp_path
    )
    try:
        assert server.stdout is not None
        first = server.stdout.readline()
        port = int(first.split("127.0.0.1:")[1].split()[0].rstrip(","))
        name = HOSTILE.encode()
        body = struct.pack("!BB", 2, 1) + struct.pack("!HB", 5 + len(name), 1) + name
        attributes = (
            struct.pack("!BB", 1, 2 + len(name)) + name + struct.pack("!BB", 79, 2 + len(body)) + body
        )
        attributes += struct.pack("!BB", 80, 18) + bytes(16)
        request = struct.pack("!BBH", 1, 7, 20 + len(attributes)) + bytes(16) + attributes
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
            for _ in range(3):
                peer.sendto(request, ("127.0.0.1", port))
        # Its rx_queue in the kernel's table is empty once the server has read all of them.
        waiting = re.compile(rf" 0100007F:{port:04X} \S+ \S+ [0-9A-F]+:(?!0+ )")
        deadline_s = time.monotonic() + 300.0
        while waiting.search(Path("/proc/net/udp").read_text()):
            assert time.monotonic() < deadline_s
            time.sleep(0.01)
        server.terminate()
        rest, _ = server.communicate(timeout=300)
    finally:
        server.kill()
        server.wait()
    assert_clean(first, rest)
