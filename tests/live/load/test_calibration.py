"""The work of a running server for a connection: measured from outside, and used by `capacity`."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace

import pytest

from live.load import servers
from shakedown import native
from shakedown.api.predictions import capacity
from shakedown.errors import InputError, ShakedownError
from shakedown.live import calibration
from shakedown.live.calibration import calibrate
from shakedown.live.server_processes import Usage
from shakedown.prediction.inputs import ServerModel
from shakedown.prediction.processor_speed import Timed

SUITE = "tls1.3/x25519/p256/server"
QUICK = {"rounds": 2, "seconds": 0.3}


@pytest.fixture
def server(start, pair, tmp_path):
    """OpenSSL's test server."""
    return start(servers.s_server("openssl", tmp_path, pair, "-tls1_3"))


def test_server_work_matches_the_cpu_time_of_its_process(start, pair, tmp_path):
    server = start(servers.s_server("openssl", tmp_path, pair, "-tls1_3"))
    found = calibrate(server.target, SUITE, rounds=4, seconds=1.5)
    assert found.method == "process"
    assert found.processes == ("openssl",)
    process = server.process
    server.signal(15)
    _, _, used = os.wait4(process.pid, 0)
    process.returncode = 0
    server.process = None
    whole_s = used.ru_utime + used.ru_stime
    # The kernel's CPU time includes the warm-up and the short loads. Nine tenths of the connections are
    # counted, or half if other work leaves few to count.
    each_s = whole_s / found.handshakes
    assert 0.4 * each_s < found.server_s.estimate < each_s
    assert found.server_s.lower < found.server_s.estimate < found.server_s.upper
    assert 0.0 < found.full_speed <= 1.0


def test_capacity_uses_the_calibration(server):
    known = calibrate(server.target, SUITE, **QUICK)
    (row,) = capacity(
        SUITE, within_s=1.0, bearer="ethernet", server=ServerModel(workers=2), calibrations=[known]
    )
    (plain,) = capacity(SUITE, within_s=1.0, bearer="ethernet", server=ServerModel(workers=2))
    assert row.limit_per_s.estimate == pytest.approx(2 / known.server_s.estimate)
    assert row.limit_per_s.lower == pytest.approx(2 / known.server_s.upper)
    assert row.limit_per_s.upper == pytest.approx(2 / known.server_s.lower)
    assert row.calibration == known
    assert row.limit_per_s.estimate != plain.limit_per_s.estimate
    other = calibration.Calibration(**{name: getattr(known, name) for name in known.__struct_fields__})
    (of_another,) = capacity("tls1.2/psk", within_s=1.0, bearer="ethernet", calibrations=[other])
    assert not of_another.calibration


def test_device_without_a_figure_gets_the_calibrated_total(server, monkeypatch):
    """A board without a figure for the server's work gets the whole work, so nothing is missing."""
    monkeypatch.setattr(calibration, "MAX_BUSY", -1.0)
    known = calibrate(server.target, SUITE, **QUICK)
    assert any("other programs used" in line for line in known.warnings)
    # An idle machine may be faster, which no round shows.
    assert known.server_s.lower <= known.server_s.estimate / calibration.BUSY_SPREAD
    (row,) = capacity(
        SUITE, within_s=1.0, bearer="ethernet", server=ServerModel("stm32n6"), calibrations=[known]
    )
    assert row.limit_per_s.estimate == pytest.approx(1 / known.server_s.estimate)
    assert not row.limit_per_s.missing


def test_command_prints_the_calibration(server, shakedown, monkeypatch):
    done = shakedown("capacity", SUITE, "--within", "1s", "--calibrate", server.target, "--json")
    (row,) = json.loads(done.stdout)
    assert row["calibration"]["target"] == server.target
    done = shakedown("capacity", SUITE, "--within", "1s", "--calibrate", server.target)
    assert "a connection at" in done.stdout
    assert "CPU time of openssl" in done.stdout


def test_remote_server_is_calibrated_by_its_rate(server, monkeypatch):
    """OpenSSL's server takes one connection after the other: twice the clients make it no faster."""
    seen = calibrate(server.target, SUITE, **QUICK)
    monkeypatch.setattr(calibration, "listening", lambda host, port: frozenset())
    monkeypatch.setattr(calibration, "MAX_CLIENT_LOAD", 2.0)
    monkeypatch.setattr(calibration, "MAX_GROWTH", 10.0)
    found = calibrate(server.target, SUITE, **QUICK)
    assert found.method == "rate"
    assert found.full_speed is None
    # The server cannot use more CPU time than has elapsed.
    assert found.server_s.estimate > 0.8 * seen.server_s.estimate
    monkeypatch.setattr(calibration, "MAX_CLIENT_LOAD", 0.01)
    with pytest.raises(
        ShakedownError, match=r"clients use \d+% of a processor here.*accepted: a calibration"
    ):
        calibrate(server.target, SUITE, **QUICK)


class SlowProcessor:
    """A synthetic server: 1 ms per connection, slowed by the same factor as the loop beside it."""

    ran_s = 0.0

    def __init__(self, monkeypatch, slower):
        self.times, self.server_s, self.slower = 1.0, 0.0, iter(slower)

        @contextmanager
        def beside(there):
            assert there == [0, 1]
            yield self

        for name, fake in (
            ("listening", lambda host, port: frozenset({1})),
            ("allowed", lambda processes: [0, 1]),
            ("shared", beside),
            ("new_children", lambda processes: nullcontext(set())),
            ("name_of", str),
            ("usage", lambda processes: Usage(self.server_s, self.server_s, 0)),
            ("_load", self.load),
        ):
            monkeypatch.setattr(calibration, name, fake)

    def load(self, target, suite, clients, seconds, authorized_target):
        completed = round(1000 * seconds)
        self.server_s += 1e-3 * self.times * completed
        return SimpleNamespace(completed=completed, generator_cpu_s=0.0)

    def sampled(self, speed):
        return nullcontext()

    def timed(self, measure, speed):
        self.times = next(self.slower)
        return Timed(measure(), speed.note(self.times))


def test_only_rounds_at_the_processors_full_speed_count(monkeypatch):
    """The loop beside the rounds decides, as in a profile, and no figure of a round does."""
    monkeypatch.setattr(calibration, "MAX_BUSY", 2.0)
    monkeypatch.setattr(calibration, "MAX_STEAL", 2.0)
    SlowProcessor(monkeypatch, [1.75, 1.75, 1.0, 1.6, 1.04, 1.0, 1.75, 1.75])
    found = calibrate("127.0.0.1:1", SUITE, rounds=3, seconds=0.1)
    assert found.server_s.estimate == pytest.approx(1e-3)
    assert found.server_s.lower == pytest.approx(1e-3 / 1.1)
    assert found.server_s.upper == pytest.approx(1.1e-3)
    assert found.rounds == 3
    assert found.full_speed == pytest.approx(3 / 6)
    assert any("the processor ran at full speed for 50% of the time" in one for one in found.warnings)


def test_a_processor_that_is_slow_all_along_widens_the_range(monkeypatch):
    SlowProcessor(monkeypatch, [1.0, 1.6, 1.75, 1.5, 1.7, 1.75])
    found = calibrate("127.0.0.1:1", SUITE, rounds=3, seconds=0.1)
    assert found.rounds == 3
    assert found.server_s.lower <= 1e-3 / 1.6 * (1 + 1e-9)
    assert found.server_s.upper >= 1.6e-3 * (1 - 1e-9)
    assert any("measure again" in one for one in found.warnings)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"target": "192.0.2.1:443"}, "--authorized-target 192.0.2.1"),
        ({"target": "127.0.0.1"}, "accepted: HOST:PORT"),
        ({"suite": "tls9/x"}, 'unknown suite "tls9/x"|unknown'),
        ({"rounds": 1}, "accepted: at least 2"),
        ({"server_workers": 0}, "server_workers is 0; accepted: 1 or more"),
        ({"seconds": 0.0}, "accepted: at least 2, of 0.05 to 60 s"),
    ],
)
def test_bad_arguments_are_reported_in_one_line(arguments, words):
    with pytest.raises(InputError, match=words):
        calibrate(**{"target": "127.0.0.1:1", "suite": SUITE, **arguments})


def test_failing_handshakes_give_no_calibration(server):
    with pytest.raises(native.extension().CoreError, match="protocol version") as caught:
        calibrate(server.target, "tls1.2/psk", **QUICK)
    assert "\n" not in str(caught.value)


def test_missing_and_conflicting_options_are_refused(shakedown):
    for arguments, words in (
        (("--authorized-target", "h"), "--authorized-target requires --calibrate"),
        (("--calibrate", "127.0.0.1:1", "--simulated"), "--calibrate and --simulated are both given"),
    ):
        done: subprocess.CompletedProcess[str] = shakedown("capacity", SUITE, "--within", "1s", *arguments)
        assert done.returncode == 2
        assert words in done.stderr


PER_CONNECTION = """
import os, signal, socket, ssl, sys, threading
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1], sys.argv[2])
listening = socket.create_server(("127.0.0.1", int(sys.argv[3])), backlog=100)

def serve(one):
    try:
        with context.wrap_socket(one, server_side=True) as peer:
            peer.recv(1)
    except OSError:
        pass

while True:
    one, _ = listening.accept()
    if sys.argv[4] == "threads":
        threading.Thread(target=serve, args=(one,)).start()
        continue
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel then forgets what children ran
    if os.fork() == 0:
        serve(one)
        os._exit(0)
    one.close()
"""


@pytest.mark.parametrize(
    ("of", "seconds", "words"),
    [
        ("threads", 1.0, "accepted: a server that keeps its threads"),
        (
            "children",
            0.3,
            r"started \d+ or more processes during the calib.*accepted: a server that keeps its processes",
        ),
    ],
)
def test_servers_with_a_worker_per_connection_are_refused(start, pair, tmp_path, of, seconds, words):
    port = servers.free_port()
    command = [sys.executable, "-c", PER_CONNECTION, str(pair[0]), str(pair[1]), str(port), of]
    server = start(servers.Server(command, port, tmp_path / "server.log"))
    with pytest.raises(ShakedownError, match=words):
        calibrate(server.target, SUITE, rounds=2, seconds=seconds)


def test_another_server_on_the_same_port_of_another_address_does_not_count(start, pair, tmp_path):
    server = start(servers.s_server("openssl", tmp_path, pair, "-tls1_3"))
    with socket.create_server(("127.0.0.9", server.port)):
        assert calibration.listening("127.0.0.1", str(server.port)) == {server.process.pid}
        with pytest.raises(InputError, match="served by this process"):
            calibration.listening("127.0.0.9", str(server.port))
