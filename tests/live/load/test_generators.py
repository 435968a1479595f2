"""Several generators at once: a background load, and the workers of a cluster."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from live.serve.serving import serving
from runs import of_group
from shakedown.errors import InputError
from shakedown.live.load_test import _shares
from shakedown.native import load_generator

SUITE = "tls1.3/x25519/p256/server"


def test_background_load_runs_beside_a_measured_client(load):
    with serving(SUITE) as server:
        status, found, err = load(server.target, SUITE, "--background", "40/s", "--duration", "3s")
        counted = server.stop()
    assert status == 0, err
    beside = found["background"]
    assert (found["arrivals"], found["clients"]) == ("closed", 1)
    assert beside["rate_per_s"]["planned"] == 40
    assert 60 < beside["planned"] == beside["completed"] < 190
    assert found["completed"] == found["planned"] > 0
    assert beside["background"] is None
    # Each of the two generators makes one handshake before the load.
    assert counted["handshakes"]["full"] == found["completed"] + beside["completed"] + 2


def test_background_that_cannot_start_prevents_the_load(load):
    from live.load import servers

    status, found, err = load(
        f"127.0.0.1:{servers.free_port()}", SUITE, "--background", "5/s", "--duration", "1s"
    )
    assert (status, found) == (1, {})
    assert "connection refused" in err


def test_rate_limit_applies_to_load_and_background_together(load):
    capped = (
        "--authorized-target",
        "192.0.2.1",
        "--rate",
        "30/s",
        "--background",
        "30/s",
        "--duration",
        "1s",
    )
    status, _, err = load("192.0.2.1:443", *capped)
    assert status == 2
    assert "60/s is above the limit of 50/s" in err


def test_cluster_workers_share_the_load(load):
    with serving(SUITE) as server:
        options = ("--rate", "60/s", "--duration", "1s", "--clients", "5", "--processes", "2")
        status, found, err = load(server.target, SUITE, *options)
        counted = server.stop()
    assert status == 0, err
    assert found["generators"] == 2
    assert found["rate_per_s"]["planned"] == 60
    assert 30 < found["completed"] == found["planned"] < 100
    assert found["handshake_s"]["n"] == found["completed"]
    assert counted["handshakes"]["full"] == found["completed"] + 2


def is_pending(process: int, number: int) -> bool:
    """Whether a signal that was sent to a process has not reached it yet."""
    status = Path(f"/proc/{process}/status").read_text()
    return any(int(found, 16) >> (number - 1) & 1 for found in re.findall(r"(?:Sig|Shd)Pnd:\s+(\S+)", status))


def wait_until(there: Callable[[], object]) -> None:
    deadline_s = time.monotonic() + 300.0
    while not there():
        assert time.monotonic() < deadline_s
        time.sleep(0.02)


@contextmanager
def loading(target: str) -> Iterator[subprocess.Popen[str]]:
    """A load from two processes in a new process group, of which no process remains in the end."""
    command = [sys.executable, "-m", "shakedown", "load", target, SUITE, "--processes", "2", "--json"]
    process = subprocess.Popen(
        [*command, "--rate", "60/s", "--duration", "3000s"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    )
    try:
        yield process
        wait_until(lambda: not of_group(process.pid))
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def without_warnings(err: str) -> list[str]:
    """Lines of standard error, without the warning that a busy machine's generator is the bottleneck."""
    return [line for line in err.splitlines() if not line.startswith("warning: the generator was")]


@pytest.mark.parametrize(
    ("number", "send"),
    [
        (signal.SIGINT, os.killpg),
        (signal.SIGTERM, os.kill),
        # `timeout` sends the signal twice.
        (signal.SIGTERM, lambda pid, number: (os.kill(pid, number), os.killpg(pid, number))),
    ],
    ids=["ctrl-c", "sigterm", "timeout"],
)
def test_stopped_run_prints_the_counts_of_its_workers(tmp_path, number, send):
    traces = tmp_path / "server.jsonl"
    with serving(SUITE, "--traces-out", traces, "--sample", 1) as server:
        with loading(server.target) as process:
            wait_until(lambda: traces.exists() and traces.read_bytes().count(b"\n") > 40)
            send(process.pid, number)
            out, err = process.communicate(timeout=300)
        counted = server.stop()
    assert process.returncode == 130
    assert without_warnings(err) == [
        "error: interrupted: the figures are of the run so far, of 2 of 2 workers"
    ]
    [found] = json.loads(out)
    assert (found["interrupted"], found["generators"]) == (True, 2)
    assert 20 < found["completed"] == found["handshake_s"]["n"]
    # Each generator made one handshake before; handshakes in progress at the end are not completed here.
    assert found["completed"] <= counted["handshakes"]["full"] - 2


def test_a_second_ctrl_c_ends_at_once_and_leaves_no_process(tmp_path):
    """Stopped workers answer neither the main process nor Dask."""
    traces = tmp_path / "server.jsonl"
    with serving(SUITE, "--traces-out", traces, "--sample", 1) as server:
        with loading(server.target) as process:
            wait_until(lambda: traces.exists() and traces.read_bytes().count(b"\n") > 5)
            for one in of_group(process.pid):
                if b"spawn_main" in Path(f"/proc/{one}/cmdline").read_bytes():
                    os.kill(one, signal.SIGSTOP)
            process.send_signal(signal.SIGINT)
            wait_until(lambda: not is_pending(process.pid, signal.SIGINT))
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(timeout=3.0)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=300)
        server.stop()
    assert (process.returncode, out, err) == (130, "", "error: interrupted\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("processes", [2, 3, 4])
def test_interrupt_before_the_start_prints_only_that(number, processes):
    """While Dask starts its processes: the resource tracker's is the first beside our own."""
    with serving(SUITE) as server:
        with loading(server.target) as process:
            wait_until(lambda: len(of_group(process.pid)) >= processes)
            os.killpg(process.pid, number)
            out, err = process.communicate(timeout=300)
        server.stop()
    assert (process.returncode, out, err) == (130, "", "error: interrupted\n")


def test_parts_merge_exactly():
    """Two runs' parts, once each and once together: counts, sums and extremes are those of both."""
    config = {"arrivals": "closed", "duration_s": 0.3, "clients": 2}
    with serving(SUITE) as server:
        parts = [
            load_generator.part(config | {"target": server.target, "seed": seed}, SUITE, {})
            for seed in (1, 2)
        ]
    alone, both = [load_generator.merge([part]) for part in parts], load_generator.merge(parts)
    assert both.generators == 2
    for name in ("planned", "completed"):
        assert getattr(both, name) == sum(getattr(one, name) for one in alone)
    for name in ("connect_s", "handshake_s", "start_lateness_s"):
        times, each = getattr(both, name), [getattr(one, name) for one in alone]
        assert times.n == sum(one.n for one in each)
        assert times.max == max(one.max for one in each)
        assert times.mean == pytest.approx(sum(one.n * one.mean for one in each) / times.n, rel=1e-12)
        assert min(one.p50 for one in each) <= times.p50 <= max(one.p50 for one in each)


def test_interrupt_before_the_first_start_gives_no_figures(monkeypatch):
    counted = {"load": {"interrupted": True, "elapsed_s": 0.0}, "background": None}
    core = SimpleNamespace(load=lambda *_, **__: counted)
    monkeypatch.setattr(load_generator, "release_build", lambda: core)
    with pytest.raises(KeyboardInterrupt):
        load_generator.part({"target": "127.0.0.1:1"}, SUITE, {})


def test_shares_add_up_to_the_whole():
    config = {
        "clients": 7,
        "max_starts": 5,
        "trace_count": 3,
        "rate_per_s": 10.0,
        "background_per_s": None,
        "seed": 4,
    }
    shares = _shares(config, 3)
    for name in ("clients", "max_starts", "trace_count"):
        assert sum(share[name] for share in shares) == config[name]
    assert sum(share["rate_per_s"] for share in shares) == pytest.approx(10.0)
    assert len({share["seed"] for share in shares}) == 3
    with pytest.raises(InputError, match="at least 8 of each"):
        _shares(config, 8)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--processes", "0"), "processes is 0"),
        (("--processes", "2", "--scheduler", "tcp://127.0.0.1:1"), "accepted: one of them"),
        (("--background", "0"), "background rate: 0"),
    ],
)
def test_wrong_input_is_reported_in_one_line(load, arguments, told):
    status, found, err = load("127.0.0.1:1", SUITE, "--rate", "5/s", *arguments)
    assert (status, found) == (2, {})
    assert told in err
    assert err.count("\n") == 1
