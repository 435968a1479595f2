"""Measuring a path with an untrusted reflector or client."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from shakedown.errors import ShakedownError
from shakedown.live import path_probe
from shakedown.live.measured_profile import profile_text
from shakedown.live.path_probe import HEADER, MAGIC, REPORT_BODY
from shakedown.profiles.registry import load_bearer


@contextmanager
def reflecting(report: bytes | None) -> Iterator[int]:
    """A reflector that sends these bytes as reports; None: each report has a later last packet."""
    reflector = path_probe.Reflector(("127.0.0.1", 0))
    send, asked, stopped = reflector._send, [0], threading.Event()

    def reports(data: bytes, address: tuple[object, ...]) -> None:
        if data[len(MAGIC)] == path_probe.REPORT:
            asked[0] += 1
            body = REPORT_BODY.pack(9, 24, 1, 10**9 + asked[0]) if report is None else report
            data = data[: HEADER.size] + body
        send(data, address)

    reflector._send = reports
    thread = threading.Thread(target=reflector.serve, args=(stopped.is_set,))
    thread.start()
    try:
        yield reflector.port
    finally:
        stopped.set()
        thread.join()


@pytest.mark.parametrize(
    ("report", "refused"),
    [
        (b"", "no answer"),
        (bytes(100), "no answer"),
        (REPORT_BODY.pack(0, 0, 0, 0), "0 packets of a train arrived"),
        (REPORT_BODY.pack(9, 24, 10**9, 1), "24 packets of a train arrived"),
        (REPORT_BODY.pack(9, 3, 0, 2**64 - 1), "3 packets of a train arrived"),
        (REPORT_BODY.pack(2**32 - 1, 2**32 - 1, 0, 1), "packets of a train arrived"),
        (REPORT_BODY.pack(2**32 - 1, 2**32 - 1, 0, 1000), None),
        (None, None),
    ],
)
def test_reflector_reports_give_an_error_or_a_valid_profile(monkeypatch, tmp_path, report, refused):
    monkeypatch.setattr(path_probe, "ANSWER_WITHIN_S", 0.5)
    with reflecting(report) as port:
        if refused is not None:
            with pytest.raises(ShakedownError, match=refused):
                path_probe.measure("127.0.0.1", port, seconds=0.5)
            return
        found = path_probe.measure("127.0.0.1", port, seconds=0.5)
    assert 0.0 <= found.loss_up < 0.2
    text = profile_text(found, name="far", target="far", date="2026-01-01")
    (tmp_path / "far.toml").write_text(text)
    assert load_bearer(str(tmp_path / "far.toml")).up_bits_per_s > 0.0


def test_slow_train_to_one_client_does_not_delay_others():
    reflector = path_probe.Reflector(("127.0.0.1", 0))
    stopped = threading.Event()
    thread = threading.Thread(target=reflector.serve, args=(stopped.is_set,))
    thread.start()

    def hello(client: socket.socket) -> bytes:
        client.settimeout(60)
        client.connect(("127.0.0.1", reflector.port))
        client.send(HEADER.pack(MAGIC, path_probe.HELLO, bytes(8), 0, 0))
        return HEADER.unpack(client.recv(2048))[2]

    with socket.socket(type=socket.SOCK_DGRAM) as slow, socket.socket(type=socket.SOCK_DGRAM) as other:
        cookie = hello(slow)
        for number in range(2):
            slow.send(HEADER.pack(MAGIC, path_probe.TRAIN_UP, cookie, number, 0))
        slow.send(HEADER.pack(MAGIC, path_probe.ASK_TRAIN, cookie, 2, 2**63))
        hello(other)
        # The second packet of the train comes 15 s after the first: it is still being sent.
        assert [train.is_alive() for train in reflector.trains.values()] == [True]
        stopped.set()
        thread.join()
