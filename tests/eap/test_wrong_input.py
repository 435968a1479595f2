"""What `eap peer` cannot be asked: one line and exit status 2, before a packet is sent."""

from __future__ import annotations

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
    ],
)
def test_times_and_rates_beyond_any_use_are_one_line(shakedown, arguments, says):
    done = shakedown(
        *("eap", "peer", "--server", "127.0.0.1:1", "--secret", "x", "--suite", "tls1.3/x25519/p256/mutual"),
        *arguments,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert says in done.stderr
    assert "os error" not in done.stderr


SUITE = "tls1.3/x25519/p256"


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
def test_servers_say_what_is_wrong_with_files_and_ports(shakedown, server, line):
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
