"""`eap serve` with eapol_test and with `eap peer`."""

from __future__ import annotations

import contextlib
import re
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import supplied
from eap.freeradius import SECRET
from eap.supplicant import eapol_test
from runs import printed


@contextlib.contextmanager
def serving(suite: str, *options: str, tallies: list[str] | None = None) -> Iterator[int]:
    """`eap serve` on an ephemeral port, until the block ends; SIGTERM must end it with 0 and its tally."""
    command = [sys.executable, "-m", "shakedown", "eap", "serve", "--listen", "127.0.0.1:0"]
    command += ["--secret", SECRET, "--suite", suite, *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        found = re.fullmatch(r"serving (\S+) by EAP-TLS on 127\.0\.0\.1:(\d+)\n", line)
        assert found, line + process.stderr.read()
        yield int(found[2])
        process.send_signal(signal.SIGTERM)
        assert process.wait(300) == 0
        tally = process.stdout.read()
        assert re.match(r"[\d,]+ accepted \([\d,]+ resumed\), [\d,]+ rejected, ", tally), tally
        if tallies is not None:
            tallies.append(tally)
        assert process.stderr.read() == ""
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


SUITES = ("tls1.2/ecdhe_ecdsa", "tls1.3/x25519/p256")


@pytest.mark.parametrize("suite", SUITES)
def test_eapol_test_authenticates_and_resumes(peer, site, tmp_path, suite):
    peer("eapol_test")
    with serving(suite, *site.authenticator()) as port:
        outcome = eapol_test(
            tmp_path, port, SECRET, client=site.client, ca=site.server / "ca.pem",
            tls13=suite.startswith("tls1.3"), again=1,
        )  # fmt: skip
    assert outcome.status == 0, outcome.log[-3000:]
    assert outcome.matching_keys == (2, 0)
    assert outcome.resumed == [False, True]


def test_our_peer_authenticates_with_generated_certificates(shakedown):
    tallies: list[str] = []
    with serving("tls1.3/x25519/p256/mutual", tallies=tallies) as port:
        done = shakedown(
            "eap", "peer", "--server", f"127.0.0.1:{port}", "--secret", SECRET,
            "--suite", "tls1.3/x25519/p256/mutual", "--count", "20", "--rate", "100/s",
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "20 completed, 0 resumed" in done.stdout
    # On a busy machine an answer may take longer than the peer waits before it asks again.
    assert re.fullmatch(
        r"20 accepted \(0 resumed\), 0 rejected, 0 abandoned, 0 turned away; \d+ duplicates, 0 discarded\n",
        *tallies,
    )


class Lossy(threading.Thread):
    """A relay that drops the datagrams of these numbers, counted from 0 in each direction."""

    def __init__(self, port: int, up: set[int], down: set[int]) -> None:
        super().__init__(daemon=True)
        self.front = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.front.bind(("127.0.0.1", 0))
        self.back = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.back.connect(("127.0.0.1", port))
        self.port = self.front.getsockname()[1]
        self.lost = {self.front: up, self.back: down}
        self.seen = {self.front: 0, self.back: 0}
        self.requests: list[bytes] = []
        self.client: object = None
        self.over = threading.Event()

    def run(self) -> None:
        while not self.over.is_set():
            for arrived in select.select([self.front, self.back], [], [], 0.05)[0]:
                datagram, sender = arrived.recvfrom(4096)
                number = self.seen[arrived]
                self.seen[arrived] += 1
                if arrived is self.front:
                    self.client = sender
                if number in self.lost[arrived]:
                    continue
                if arrived is self.front:
                    self.requests.append(datagram)
                    self.back.send(datagram)
                else:
                    self.front.sendto(datagram, self.client)

    def __enter__(self) -> Lossy:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.join()
        self.front.close()
        self.back.close()


@pytest.mark.parametrize(
    ("up", "down", "duplicates"), [({0}, set(), 0), (set(), {1}, 1), ({2}, {0}, 1)], ids=str
)
def test_lost_requests_and_answers_are_sent_again_and_counted_once(shakedown, up, down, duplicates):
    tallies: list[str] = []
    with (
        serving("tls1.3/x25519/p256/mutual", tallies=tallies) as port,
        Lossy(port, up, down) as path,
    ):
        done = shakedown(
            "eap", "peer", "--server", f"127.0.0.1:{path.port}", "--secret", SECRET,
            "--suite", "tls1.3/x25519/p256/mutual", "--json",
        )  # fmt: skip
    (found,) = printed(done)
    assert (found["completed"], found["failed"]) == (1, {})
    # A repeated request is one round trip; the server repeats its stored answer.
    assert found["round_trips"] == 4 == len(set(path.requests))
    repeated = len(path.requests) - len(set(path.requests))
    # There are more if a busy machine took longer than the peer's timeout.
    assert repeated >= duplicates
    assert tallies == [
        "1 accepted (0 resumed), 0 rejected, 0 abandoned, 0 turned away; "
        f"{repeated} duplicates, 0 discarded\n"
    ]


@pytest.mark.parametrize("suite", SUITES)
def test_a_client_of_another_authority_gets_an_alert_and_eap_failure(peer, site, tmp_path, suite):
    peer("eapol_test")
    stranger = supplied.chain(tmp_path / "stranger", "p256", "client")
    with serving(suite, *site.authenticator()) as port:
        outcome = eapol_test(
            tmp_path, port, SECRET, client=stranger, ca=site.server / "ca.pem",
            tls13=suite.startswith("tls1.3"),
        )  # fmt: skip
    assert outcome.status != 0
    assert outcome.eap_failure
    assert "unknown CA" in outcome.log


def test_a_wrong_secret_gets_no_answer(peer, site, tmp_path):
    peer("eapol_test")
    with serving(SUITES[0], *site.authenticator()) as port:
        outcome = eapol_test(
            tmp_path, port, "another", client=site.client, ca=site.server / "ca.pem", tls13=False, wait_s=1
        )
    assert outcome.status != 0
    assert "RADIUS packet matching with station" not in outcome.log


def expired(folder: Path) -> Path:
    """A client's chain whose leaf is no longer valid."""
    return supplied.chain(folder / "expired", "p256", "client", not_before="2021-01-01", days=30)


@pytest.mark.parametrize("suite", SUITES)
def test_an_expired_certificate_is_refused_by_name(shakedown, site, tmp_path, suite):
    late = expired(tmp_path)
    tallies: list[str] = []
    with serving(suite, *site.authenticator()[:4], "--ca", str(late / "ca.pem"), tallies=tallies) as port:
        done = shakedown(
            "eap", "peer", "--server", f"127.0.0.1:{port}", "--secret", SECRET, "--suite", suite,
            "--chain", late / "chain.pem", "--key", late / "key.pem", "--ca", site.server / "ca.pem",
        )  # fmt: skip
    assert done.returncode == 1
    assert "failed: 1 (tls_certificate_expired)" in done.stdout
    (tally,) = tallies
    assert tally.startswith("0 accepted (0 resumed), 1 rejected")
    assert "rejected: 1 (tls_certificate_expired)" in tally
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: 1 of 1 authentications failed")
    assert "certificate_expired" in line
