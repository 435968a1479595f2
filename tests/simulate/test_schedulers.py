"""Dask schedulers that do not respond, stop responding or are lost: one line each."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import threading

import pytest

from dask_programs import SPREAD, start, told
from shakedown.errors import InputError
from shakedown.experiments import cluster
from shakedown.results.folder import load_results

pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.usefixtures("interruptible")]
"""Dask's warnings are not errors."""


def test_scheduler_lost_during_a_run_is_reported_in_one_line(tmp_path):
    """Dask itself reports a cancelled future, with tracebacks of its reconnection."""
    (tmp_path / "spread.toml").write_text(SPREAD.replace("clients = 400", "clients = 200000"))
    with start("dask_scheduler", "--port", "0", "--host", "127.0.0.1", "--no-dashboard") as scheduler:
        address = told(scheduler, r"Scheduler at:\s+(tcp://\S+)")
        with start("dask_worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard") as worker:
            told(worker, r"Registered to:\s+(\S+)")
            command = [sys.executable, "-m", "shakedown", "run", "spread.toml", "--out", "results"]
            with subprocess.Popen(
                [*command, "--scheduler", address, "--json"],
                cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            ) as run:  # fmt: skip
                assert run.stdout is not None
                while '"kind": "modelled"' not in run.stdout.readline():
                    assert run.poll() is None
                scheduler.kill()
                _, said = run.communicate(timeout=300)
    assert run.returncode == 1
    assert f"error: the scheduler {address} was lost; completed work is kept" in said
    assert "Traceback" not in said
    assert load_results(tmp_path / "results").height


def test_unreachable_scheduler_is_reported(monkeypatch):
    monkeypatch.setattr(cluster, "CONNECT_S", 0.5)
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{held.getsockname()[1]}"
        with pytest.raises(InputError, match="accepted: the address of"), cluster.connected(address):
            pass
    for address in ("carrier-pigeon://x", "tls://127.0.0.1:1"):
        with pytest.raises(InputError, match="cannot be reached"), cluster.connected(address):
            pass


@pytest.mark.parametrize(
    "first",
    [b"\1", b"HTTP/1.0 400 Bad Request\r\n\r\n", (1 << 40).to_bytes(8, "little"), (9).to_bytes(8, "little")],
    ids=["a byte", "HTTP", "a frame beyond memory", "half a frame"],
)
def test_scheduler_with_wrong_or_no_reply_is_abandoned(monkeypatch, first):
    config = pytest.importorskip("dask.config")
    monkeypatch.setattr(cluster, "CONNECT_S", 1.0)
    held = []

    def answer(listening: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                held.append(listening.accept()[0])
                held[-1].sendall(first)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=answer, args=(listening,))
        thread.start()
        address = f"tcp://127.0.0.1:{listening.getsockname()[1]}"
        # Dask's own attempts, of 30 s each, would take longer than a test may.
        with (
            config.set({"distributed.comm.timeouts": {"connect": "3000s", "tcp": "3000s"}}),
            pytest.raises(InputError, match="cannot be reached"),
            cluster.connected(address),
        ):
            pass
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()
    for one in held:
        one.close()


def test_a_silent_scheduler_is_named(monkeypatch):
    monkeypatch.setattr(cluster, "CONNECT_S", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        place = f"127.0.0.1:{silent.getsockname()[1]}"
        with (
            pytest.raises(InputError, match=r"cannot be reached: it did not respond within 0.5 s"),
            cluster.connected(f"tcp://{place}"),
        ):
            pass


def test_command_reports_scheduler_errors_in_one_line(shakedown, client, monkeypatch, tmp_path):
    (tmp_path / "spread.toml").write_text(SPREAD)

    def refused(scheduler: str, *credentials: str) -> str:
        arguments = ("run", "spread.toml", "--out", "results", "--scheduler", scheduler, *credentials)
        done = shakedown(*arguments, cwd=tmp_path)
        assert done.returncode in (1, 2)
        assert done.stdout == ""
        (line,) = [one for one in done.stderr.splitlines() if one.startswith("error: ")]
        assert "Traceback" not in done.stderr
        return line

    monkeypatch.setattr(cluster, "CONNECT_S", 0.5)
    assert "cannot be reached" in refused("tcp://127.0.0.1:1")
    real = cluster.fingerprint
    other = {"shakedown": "9.9 (release)"}
    monkeypatch.setattr(cluster, "fingerprint", lambda profiles: {**real(profiles), **other})
    assert "accepted: 9.9 (release), as here" in refused(
        client.scheduler.address, *credentials_of(client, tmp_path)
    )


def credentials_of(client, folder) -> list[str]:
    """Options that make a command a client of a local cluster."""
    options = []
    for name, what in (("ca", "ca_file"), ("cert", "client_cert"), ("key", "client_key")):
        (folder / f"{name}.pem").write_text(getattr(client.security, f"tls_{what}"))
        options += [f"--scheduler-{name}", str(folder / f"{name}.pem")]
    return options
