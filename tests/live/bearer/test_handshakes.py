"""TLS of `openssl` over emulated bearers, with the kernel's TCP, compared with the simulator."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tools.bearer_handshakes import (
    Handshake,
    credentials,
    fixed,
    openssl_messages,
    simulated_s,
    start,
    timed,
)

from live.bearer.passages import ATTEMPTS
from shakedown.profiles.delay import distribution
from shakedown.schema.base import decode
from shakedown.schema.bearer import MeasuredPath

# On faster bearers, computation and scheduling of the two programs are a larger part of the total.
CASES = [("gsm-csd", 2), ("gprs", 12), ("nb-iot", 12), ("geo", 2), ("geo", 36)]


def test_handshakes_take_the_simulated_time(tmp_path: Path, peer: Callable[[str], str]) -> None:
    """Server flights of 1, 5 and 15 kB, within 5 %; the longest takes the window's extra round trip."""
    peer("openssl")
    tshark = peer("tshark")
    profiles = {name: fixed(name, tmp_path) for name, _ in CASES}
    servers = {count: credentials(tmp_path, count) for _, count in CASES}
    found: dict[tuple[str, int], Handshake] = {}
    for attempt in range(4 * ATTEMPTS):
        captures = {
            (name, count): tmp_path / f"{name}-{count}-{attempt}.pcap"
            for name, count in CASES
            if (name, count) not in found
        }
        running = [start(profiles[name], captures[name, count], servers[count]) for name, count in captures]
        for one in running:
            assert one.communicate(timeout=300)[1] == ""
        for (name, count), capture in captures.items():
            handshake = timed(capture, tshark)
            predicted_s = simulated_s(profiles[name], openssl_messages(handshake))
            # A busy machine makes a handshake longer, and nothing makes it shorter.
            assert handshake.ready_s >= 0.95 * predicted_s, (name, count)
            if handshake.ready_s <= 1.05 * predicted_s:
                found[name, count] = handshake
        if len(found) == len(CASES):
            break
    assert set(found) == set(CASES), found
    long, short = found["geo", 36], found["geo", 2]
    assert long.flight_bytes > 10 * 1448 - 600
    assert long.ready_s - short.ready_s > 2 * 0.290


def test_a_measured_path_becomes_a_profile(
    shakedown: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    """Measures a bearer without knowing its profile, by a client behind it and a reflector on this host.

    The bearer is slow, so packets stay in its queue while programs wait for a processor. Each figure must
    be right in one of several measurements.
    """

    from shakedown.profiles import load_bearer

    measure = [sys.executable, "-m", "shakedown", "bearer", "measure"]
    reflect = [*measure, "--reflect", "127.0.0.1:0"]
    true = load_bearer(str(fixed("lte-m", tmp_path)))
    wanted = (true.up_bits_per_s, true.down_bits_per_s, distribution(true.up.delay).mean)
    left = set(range(len(wanted)))
    with subprocess.Popen(reflect, stdout=subprocess.PIPE, text=True) as reflector:
        try:
            assert reflector.stdout is not None
            port = int(reflector.stdout.readline().rsplit(":", 1)[1])
            for attempt in range(2 * ATTEMPTS):
                profile = tmp_path / f"found-{attempt}.toml"
                options = ["--name", "found", "--out", str(profile), "--seconds", "1", "--json"]
                command = [*measure, f"198.18.0.2:{port}", *options]
                run = shakedown("bearer", "run", fixed("lte-m", tmp_path), "--", *command)
                assert run.returncode == 0, run.stderr
                decode(run.stdout, list[MeasuredPath])
                (row,) = json.loads(run.stdout)
                assert row["profile"] == str(profile)
                made = load_bearer(str(profile))
                found = (made.up_bits_per_s, made.down_bits_per_s, distribution(made.up.delay).p50)
                left = {one for one in left if found[one] != pytest.approx(wanted[one], rel=0.05)}
                if not left:
                    break
        finally:
            reflector.terminate()
    assert not left, (found, wanted)
    again = shakedown("bearer", "measure", "127.0.0.1:9", "--out", profile)
    assert again.returncode == 2
    assert "exists already" in again.stderr
