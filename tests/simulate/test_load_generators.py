"""Load generators on a cluster: interrupted, lost, unresponsive, or without their scheduler."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from dask_programs import start, told
from shakedown.errors import ShakedownError
from shakedown.experiments import cluster, load_generators
from shakedown.native import signals

pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.usefixtures("interruptible")]
"""Dask's warnings are not errors."""


def interrupt_when(begun: Iterable[Path], noted: threading.Event | None = None) -> threading.Thread:
    """Sends Ctrl-C once jobs have begun, and again once the first was noticed."""

    def run() -> None:
        while not all(path.exists() for path in begun):
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGINT)
        if noted is not None:
            noted.wait()
            time.sleep(2 * signals.SAME_S)
            os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def wait_for(path: Path) -> None:
    deadline_s = time.monotonic() + 300.0
    while not path.exists():
        assert time.monotonic() < deadline_s
        time.sleep(0.02)


def until_stopped(
    begun: Path, found: int | None, ended: Path | None = None
) -> Callable[[Callable[[], None]], int]:
    """A job that ends only on request and returns `found`; None: it has no result."""

    def job(look: Callable[[], None]) -> int:
        begun.touch()
        try:
            while True:
                look()
                time.sleep(0.01)
        except KeyboardInterrupt:
            if ended is not None:
                ended.touch()
            if found is None:
                raise
            return found

    return job


def deaf(begun: Path, ended: Path) -> Callable[[Callable[[], None]], int]:
    """A job that ignores requests to stop, and ends once a file exists."""

    def job(_look: Callable[[], None]) -> int:
        begun.touch()
        while not ended.exists():
            time.sleep(0.01)
        return -1

    return job


def test_interrupted_generators_return_their_results(client, tmp_path):
    begun = [tmp_path / "a", tmp_path / "b"]
    generators = load_generators.Generators(client)
    for found, expected in (((1, 2), [1, 2]), ((None, 2), [2])):
        thread = interrupt_when(begun)
        assert generators.results([until_stopped(*one) for one in zip(begun, found, strict=True)]) == expected
        thread.join()
        for path in begun:
            path.unlink()
    thread = interrupt_when(begun)
    with pytest.raises(KeyboardInterrupt):
        generators.results([until_stopped(path, None) for path in begun])
    thread.join()
    # No trace of the interrupt is left.
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert generators.results([lambda look: look() or 5] * 2) == [5, 5]


def test_lost_generator_is_not_waited_for(client, tmp_path, monkeypatch):
    """Such a wait would exceed the test's time limit."""
    monkeypatch.setattr(load_generators, "STOP_S", 1e6)
    generators = load_generators.Generators(client)
    victim = client.run(os.getpid)[generators.workers[0]]
    real = generators._stop
    monkeypatch.setattr(generators, "_stop", lambda run: (os.kill(victim, signal.SIGKILL), real(run)))
    begun = [tmp_path / "a", tmp_path / "b"]
    thread = interrupt_when(begun)
    jobs = [deaf(begun[0], tmp_path / "never"), until_stopped(begun[1], 2)]
    assert generators.results(jobs) == [2]
    thread.join()
    client.wait_for_workers(2, timeout=300)


def test_worker_lost_with_a_finished_job_is_reported(client, monkeypatch):
    """All jobs are done, and one job's result is lost with its worker."""
    generators = load_generators.Generators(client)
    victim = client.run(os.getpid)[generators.workers[0]]
    monkeypatch.setattr(load_generators, "WORKER_CHECK_S", 0.5)
    real, asked = load_generators.result_of, []

    def lost_before_it_is_asked_for(future, timeout_s=None):
        if not asked:
            os.kill(victim, signal.SIGKILL)
            while generators.workers[0] in load_generators.workers_of(client):
                time.sleep(0.02)
        asked.append(future)
        return real(future, timeout_s)

    monkeypatch.setattr(load_generators, "result_of", lost_before_it_is_asked_for)
    with pytest.raises(ShakedownError, match=r"worker tls://.* was lost, so the load"):
        generators.results([lambda _look: 5] * 2)
    client.wait_for_workers(2, timeout=300)


def test_silent_scheduler_does_not_block_ctrl_c(client, tmp_path, monkeypatch):
    """With a stopped scheduler, for example, Ctrl-C still works."""
    import asyncio

    generators = load_generators.Generators(client)
    monkeypatch.setattr(load_generators, "WORKER_CHECK_S", 0.2)

    async def silent(**_asked):
        await asyncio.sleep(1e6)

    monkeypatch.setattr(client.scheduler, "identity", silent, raising=False)
    begun = [tmp_path / "a", tmp_path / "b"]
    thread = interrupt_when(begun)
    found = generators.results([until_stopped(path, 1) for path in begun])
    thread.join()
    assert found == [1, 1]


def test_unresponsive_generator_is_omitted(client, tmp_path, monkeypatch):
    # The other generator answers within this time, on a busy machine, too.
    monkeypatch.setattr(load_generators, "STOP_S", 10.0)
    begun, ended = [tmp_path / "a", tmp_path / "b"], tmp_path / "ended"
    thread = interrupt_when(begun)
    try:
        found = load_generators.Generators(client).results(
            [deaf(begun[0], ended), until_stopped(begun[1], 2)]
        )
    finally:
        ended.touch()
        thread.join()
    assert found == [2]


def test_workers_are_found_when_the_client_list_is_empty(client, monkeypatch):
    """The client's own list of workers is sometimes emptied between its request and its use."""
    monkeypatch.setattr(client, "scheduler_info", lambda **_: {"workers": {}})
    assert cluster.Cluster(client).threads() == 2
    generators = load_generators.Generators(client)
    assert generators.count() == 2
    assert generators.results([lambda look: look() or 5] * 2) == [5, 5]


def test_lost_scheduler_is_reported_in_one_line(tmp_path):
    with start("dask_scheduler", "--port", "0", "--host", "127.0.0.1", "--no-dashboard") as scheduler:
        address = told(scheduler, r"Scheduler at:\s+(tcp://\S+)")
        with start("dask_worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard") as worker:
            told(worker, r"Registered to:\s+(\S+)")

            def lose() -> None:
                while not (tmp_path / "begun").exists():
                    time.sleep(0.02)
                scheduler.kill()

            thread = threading.Thread(target=lose)
            thread.start()
            with cluster.connected(address) as found:
                generators = load_generators.Generators(found)
                with pytest.raises(ShakedownError, match=r"the scheduler tcp://.* was lost; the load has no"):
                    generators.results([until_stopped(tmp_path / "begun", 1, tmp_path / "ended")])
            thread.join()
            # No process is left that could stop the job.
            wait_for(tmp_path / "ended")


def test_generator_ends_when_its_client_is_killed(tmp_path):
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from shakedown.experiments import cluster, load_generators\n"
        "def job(look):\n"
        "    Path('begun').touch()\n"
        "    try:\n"
        "        while True: look()\n"
        "    finally: Path('ended').touch()\n"
        "with cluster.connected(sys.argv[1]) as client: load_generators.Generators(client).results([job])\n"
    )
    with start("dask_scheduler", "--port", "0", "--host", "127.0.0.1", "--no-dashboard") as scheduler:
        address = told(scheduler, r"Scheduler at:\s+(tcp://\S+)")
        with start("dask_worker", address, "--nthreads", "1", "--no-nanny", cwd=tmp_path) as worker:
            told(worker, r"Registered to:\s+(\S+)")
            with subprocess.Popen([sys.executable, "-c", code, address]) as killed:
                wait_for(tmp_path / "begun")
                killed.kill()
            wait_for(tmp_path / "ended")


def test_second_ctrl_c_does_not_wait_for_generators(client, tmp_path, monkeypatch):
    """Such a wait would exceed the test's time limit."""
    monkeypatch.setattr(load_generators, "STOP_S", 1e6)
    begun, ended, noted = [tmp_path / "a", tmp_path / "b"], tmp_path / "ended", threading.Event()
    generators = load_generators.Generators(client)
    real = generators._stop
    monkeypatch.setattr(generators, "_stop", lambda run: (noted.set(), real(run)))
    thread = interrupt_when(begun, noted)
    try:
        with pytest.raises(KeyboardInterrupt):
            generators.results([deaf(begun[0], ended), until_stopped(begun[1], 2)])
    finally:
        ended.touch()
        thread.join()


def test_all_generators_end_when_one_fails(client, tmp_path):
    """The others would never end by themselves, and keep their workers."""

    def fails(_look: Callable[[], None]) -> int:
        raise ZeroDivisionError

    generators = load_generators.Generators(client)
    with pytest.raises(ZeroDivisionError):
        generators.results([until_stopped(tmp_path / "a", 1), fails])
    assert generators.results([lambda _look: 5] * 2) == [5, 5]
