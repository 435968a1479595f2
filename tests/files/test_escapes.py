"""Names that other programs and peers supply, each full of what a terminal would obey."""

from __future__ import annotations

import json
import shutil
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

from shakedown import api
from shakedown.cli import exit_status

HOSTILE = "\x1b]0;owned\x07\x1b[31m\u202egnp.exe\u2066\x9b2J\r\u200f\u061c\u2028"
SUITE = "tls1.2/ecdhe_ecdsa+p256/p256/server"


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


def test_certificates(certificate, tmp_path, capsys):
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
    for arguments in (["make", "p256"], ["issue", "root", "p256"]):
        status = exit_status(["certs", *arguments, "--name", HOSTILE, "--out", str(tmp_path / HOSTILE)])
        out, err = capsys.readouterr()
        assert_clean(out, err)
        assert status in (0, 2)


def test_a_run_with_such_certificates(certificate, tmp_path, capsys):
    """Words of certificates reach the results, the terminal and the page."""
    experiment, folder = tmp_path / "e.toml", tmp_path / "r"
    experiment.write_text(
        f'suites = ["tls1.2/ecdhe_ecdsa+p256/p256/server"]\nrepeat = 1\n[server]\n'
        f'chain = "{certificate}/chain.pem"\nkey = "{certificate}/key.pem"\nca = "{certificate}/chain.pem"\n'
    )
    exit_status(["run", str(experiment), "--out", str(folder)])
    out, err = capsys.readouterr()
    assert_clean(out, err)
    if (folder / "report.html").exists():
        assert_clean((folder / "report.html").read_text().replace("\t", ""))


def test_server_names_in_captures(tmp_path, capsys):
    capture, keys = tmp_path / "c.pcap", tmp_path / "keys"
    api.capture([SUITE], capture, keylog=keys)
    found = json.loads(_printed(["inspect", str(capture), "--json"], capsys))
    name = found[0]["server_name"].encode()
    hostile = HOSTILE.encode()[: len(name)].decode(errors="ignore").encode().ljust(len(name), b"x")
    content = capture.read_bytes()
    assert name in content
    capture.write_bytes(content.replace(name, hostile))
    for more in ([], ["--summary"], ["--json"], ["--keylog", str(keys)]):
        out = _printed(["inspect", str(capture), *more], capsys)
        assert "exe" in out or "owned" in out
    experiment, folder = tmp_path / "e.toml", tmp_path / "r"
    experiment.write_text(f'captures = [{{ file = "{capture}" }}]\n')
    _printed(["run", str(experiment), "--out", str(folder)], capsys)
    assert_clean((folder / "report.html").read_text().replace("\t", ""))


def _printed(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert exit_status(arguments) == 0
    out, err = capsys.readouterr()
    assert_clean(out, err)
    return out


def test_servers_under_load(certificate, capsys):
    """A server whose certificate is nobody's, as every handshake finds."""
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
            exit_status(["load", f"tls://127.0.0.1:{port}", *options, *more])
            assert_clean(*capsys.readouterr())
    finally:
        server.kill()
        server.communicate()


def test_identities_that_peers_send(tmp_path, capsys):
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
        time.sleep(0.3)
        server.terminate()
        rest, _ = server.communicate(timeout=60)
    finally:
        server.kill()
        server.wait()
    assert_clean(first, rest)
