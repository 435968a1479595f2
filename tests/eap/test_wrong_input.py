"""Wrong input of `eap peer`: one line and exit status 2, before a packet is sent."""

from __future__ import annotations

import json
import socket

import pytest


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--timeout", "1e300s"], "out of range"),
        (["--timeout", "0s"], "above 0 and up to 3,600 s"),
        (["--timeout", "2h"], "above 0 and up to 3,600 s"),
        (["--rate", "1e300/s"], "out of range"),
        (["--identity", "a\nb"], "no control characters"),
        (["--identity", "x" * 254], "up to 253 bytes"),
        (["--chain", "/nowhere.pem"], "/nowhere.pem: No such file or directory"),
        (
            ["--key", "/nowhere.pem"],
            "a key without its chain: /nowhere.pem; accepted: --key together with --chain",
        ),
        (["--chain", "{server}/chain.pem"], "chain.pem: holds no private key; accepted: PEM, DER, PKCS #12"),
        (["--chain", "{server}/chain.pem", "--key", "{client}/key.pem"], "is not that of any certificate in"),
        (["--secret", ""], "the secret is empty"),
        (["--server", "localhost:1812"], "accepted: ADDRESS:PORT in numbers"),
    ],
)
def test_wrong_peer_options_are_reported_in_one_line(shakedown, site, arguments, says):
    usual = {"--server": "127.0.0.1:1", "--secret": "x", "--suite": "tls1.3/x25519/p256/mutual"}
    done = shakedown(
        *("eap", "peer"),
        *(word for option in usual.items() if option[0] not in arguments for word in option),
        *(one.format(server=site.server, client=site.client) for one in arguments),
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert says in done.stderr
    assert "os error" not in done.stderr


SUITE = "tls1.3/x25519/p256"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ["--key", "/nowhere.pem"],
            "a key without its chain: /nowhere.pem; accepted: --key together with --chain",
        ),
        (["--chain", "{server}/chain.pem"], "chain.pem: holds no private key; accepted: PEM, DER, PKCS #12"),
        (["--state", "/nowhere/x"], "/nowhere/x: no such file or directory"),
        (
            ["--state", "{server}/key.pem"],
            "file is not a database; accepted: the sessions of an EAP-TLS server",
        ),
        (["--state", "{server}/new", "--no-resume"], "--state and --no-resume are both given"),
    ],
)
def test_wrong_server_options_are_reported_in_one_line(shakedown, site, arguments, says):
    done = shakedown(
        *("eap", "serve", "--listen", "127.0.0.1:0", "--secret", "x", "--suite", SUITE),
        *(one.format(server=site.server) for one in arguments),
    )
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert says in line


def test_silent_server_is_reported_in_one_line(shakedown):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        done = shakedown(
            *("eap", "peer", "--server", f"127.0.0.1:{silent.getsockname()[1]}", "--secret", "x", "--json"),
            *("--suite", SUITE, "--timeout", "500ms"),
        )
    assert done.returncode == 1
    (found,) = json.loads(done.stdout)
    assert (found["completed"], found["failed"], found["authentication_s"]) == (0, {"no_answer": 1}, None)
    assert done.stderr == (
        "error: 1 of 1 authentications failed; the first: no response to a request that was sent once; "
        "check the address and the secret\n"
    )


@pytest.mark.parametrize(
    ("server", "line"),
    [
        (("serve", SUITE), 'error: "/nowhere.pem" cannot be read: no such file or directory\n'),
        (
            ("eap", "serve", "--secret", "x", "--suite", SUITE),
            "error: /nowhere.pem: No such file or directory\n",
        ),
    ],
    ids=["serve", "eap"],
)
def test_servers_report_missing_files_and_used_ports(shakedown, server, line):
    missing = shakedown(*server, "--listen", "127.0.0.1:0", "--chain", "/nowhere.pem")
    assert (missing.returncode, missing.stderr) == (2, line)
    kind = socket.SOCK_DGRAM if server[0] == "eap" else socket.SOCK_STREAM
    with socket.socket(socket.AF_INET, kind) as taken:
        taken.bind(("127.0.0.1", 0))
        if kind == socket.SOCK_STREAM:
            taken.listen()
        busy = shakedown(*server, "--listen", f"127.0.0.1:{taken.getsockname()[1]}")
    assert busy.returncode == 2
    (line,) = busy.stderr.splitlines()
    assert line.startswith("error: cannot listen on 127.0.0.1:")
    assert line.endswith("another program listens there")
