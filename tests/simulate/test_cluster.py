"""Experiments on a Dask cluster: the same bytes as a serial run, even if workers are lost."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import warnings
from functools import partial
from multiprocessing import active_children

import polars as pl
import pytest

import runs
from dask_programs import SPREAD
from shakedown.errors import InputError, ShakedownError
from shakedown.experiments import cluster, load_generators
from shakedown.experiments.runner import run_experiment
from shakedown.results.folder import load_results

pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.usefixtures("interruptible")]
"""Dask's warnings are not errors."""


@pytest.fixture(scope="module")
def experiment(tmp_path_factory):
    return runs.experiment(tmp_path_factory.mktemp("spread"), SPREAD)


def figures(folder) -> bytes:
    """All figures that workers may compute, as bytes."""
    table = load_results(folder).table.filter(pl.col("kind").is_in(["modelled", "simulated"]))
    return table.drop("provenance").write_ndjson().encode()


@pytest.fixture(scope="module")
def serial(experiment, tmp_path_factory):
    folder = tmp_path_factory.mktemp("serial") / "results"
    run_experiment(experiment, folder)
    found = figures(folder)
    assert found.count(b"\n") > 1000
    return found


def test_killed_worker_loses_no_results(experiment, client, serial, tmp_path):
    victims = list(client.run(os.getpid).values())
    printed = 0

    def kill_one(_found: object) -> None:
        nonlocal printed
        printed += 1
        # Two measurements and two figures for each of twelve places are printed before the fleets.
        if printed == 2 + 24 + 5:
            os.kill(victims[0], signal.SIGKILL)

    outcome = run_experiment(experiment, tmp_path / "results", client=client, printed=kill_one)
    assert printed == 2 + 24 + 24
    assert not outcome.failures
    assert figures(tmp_path / "results") == serial
    client.wait_for_workers(2, timeout=300)
    assert victims[0] not in client.run(os.getpid).values()


def test_worker_of_another_version_is_reported(client, monkeypatch):
    real = cluster.fingerprint
    other = {"shakedown": "9.9 (release)"}
    monkeypatch.setattr(cluster, "fingerprint", lambda profiles: {**real(profiles), **other})
    with pytest.raises(ShakedownError, match=r"worker tls://.* has another shakedown: .*accepted: 9\.9"):
        cluster.check_workers(client)


def test_worker_with_another_profile_is_reported(client, monkeypatch):
    real = cluster.fingerprint
    cluster.check_workers(client, ["phone", "lte"])
    monkeypatch.setattr(cluster, "fingerprint", lambda profiles: {**real(profiles), "profile phone": "1"})
    with pytest.raises(ShakedownError, match="another profile phone"):
        cluster.check_workers(client, ["phone"])


def test_changed_profile_figure_changes_the_fingerprint(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    path = tmp_path / "shakedown" / "bearers" / "mine.toml"
    path.parent.mkdir(parents=True)

    def found(rate_bps):
        path.write_text(
            'schema = 2\nname = "mine"\ntitle = "mine"\ndate = "2024-01-01"\nsource = ["mine"]\n'
            f"up_bps = {rate_bps}\ndown_bps = 9600\ntraversal_ms = 10\n"
        )
        return cluster.fingerprint(("mine",))

    assert found(9600) == found(9600) != found(4800)


def test_late_worker_of_another_version_is_reported(client, monkeypatch):
    """The first check passed; each later job carries the fingerprint that differs."""
    pool = cluster.Cluster(client)
    assert list(pool.results([cluster.alone(partial(pow, 2, 3))])) == [8]
    real = cluster.fingerprint
    other = {"shakedown": "9.9 (release)"}
    monkeypatch.setattr(cluster, "fingerprint", lambda profiles: {**real(profiles), **other})
    pool._ours = cluster.fingerprint(())
    with pytest.raises(ShakedownError, match=r"worker tls://.* has another shakedown: .*accepted: 9\.9"):
        list(pool.results([cluster.alone(partial(pow, 2, 3))]))


@pytest.mark.parametrize("what", ["tcp://127.0.0.1:8786", 5, object()])
def test_object_that_is_not_a_client_is_refused(what):
    with pytest.raises(InputError, match=r"client is .*; accepted: a Client of dask\.distributed"):
        cluster.Cluster(what)


def test_closed_client_is_refused():
    with cluster.local(1) as own:
        pass
    with pytest.raises(InputError, match=r"client is clos(ed|ing); accepted: a Client"):
        cluster.Cluster(own)


@pytest.mark.parametrize("kind", [cluster.Cluster, load_generators.Generators])
def test_asynchronous_client_is_refused(client, kind):
    import asyncio

    from distributed import Client

    async def ask() -> None:
        async with Client(
            client.scheduler.address, asynchronous=True, set_as_default=False, security=client.security
        ) as own:
            kind(own)

    with pytest.raises(InputError, match="client is asynchronous; accepted: a Client"):
        asyncio.run(ask())


def test_exception_of_a_job_is_raised(client):
    with pytest.raises(ZeroDivisionError):
        list(cluster.Cluster(client).results([cluster.alone(partial(divmod, 1, 0))]))


@pytest.mark.parametrize(
    ("make", "kind"),
    [("CoreError", ShakedownError), ("CaptureError", InputError), ("Unsupported", InputError)],
)
def test_core_error_of_a_worker_keeps_its_message(client, make, kind):
    """Some of the core's exception classes cannot be unpickled."""

    def job():
        from shakedown import native

        raise getattr(native.extension(), make)("port: connection refused")

    with pytest.raises(ShakedownError, match=r"^port: connection refused$") as found:
        list(cluster.Cluster(client).results([cluster.alone(job)]))
    assert found.type is kind


@pytest.mark.parametrize("workers", [0, -1, 100_000])
def test_invalid_numbers_of_processes_are_refused(workers):
    with pytest.raises(InputError, match="processes is"), cluster.local(workers):
        pass


@pytest.mark.parametrize(("lost", "starts"), [(1, True), (cluster.STARTS, False)])
def test_worker_lost_during_start_is_restarted(monkeypatch, lost, starts):
    """Dask then reports that a nanny failed to start."""
    import distributed

    real, tried = distributed.LocalCluster, []

    def cluster_of(**options):
        tried.append(options)
        if len(tried) <= lost:
            raise RuntimeError("Nanny failed to start.")
        return real(**options)

    monkeypatch.setattr(distributed, "LocalCluster", cluster_of)
    if starts:
        with cluster.local(1) as found:
            assert found.submit(pow, 2, 3).result() == 8
        return
    with pytest.raises(ShakedownError, match="worker processes could not be started: Nanny failed"):
        cluster.local(1).__enter__()
    assert len(tried) == cluster.STARTS


def test_several_clusters_on_a_machine_give_no_warning():
    """Dask's scheduler warns where port 8787 is taken."""
    with socket.socket() as held, warnings.catch_warnings(record=True) as said:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # The port may already be taken, which serves the test as well.
        with contextlib.suppress(OSError):
            held.bind(("127.0.0.1", 8787))
            held.listen()
        warnings.simplefilter("always")
        with cluster.local(1):
            pass
    assert not [one for one in said if "Port" in str(one.message)]


@pytest.mark.parametrize("reason", [None, KeyboardInterrupt("the figures are …"), ShakedownError("refused")])
def test_ctrl_c_during_cluster_shutdown_keeps_the_original_error(monkeypatch, reason):
    """Ctrl-C speeds up the end, and no process remains."""
    real, children = cluster.to_the_end, set(active_children())

    def interrupted_end(work, others, **how):
        real(lambda: os.kill(os.getpid(), signal.SIGINT) or work(), others, **how)

    monkeypatch.setattr(cluster, "to_the_end", interrupted_end)

    def use() -> None:
        with cluster.local(2):
            if reason is not None:
                raise reason

    with pytest.raises(KeyboardInterrupt if reason is None else type(reason)) as found:
        use()
    assert reason is None or found.value is reason
    assert set(active_children()) == children


def test_results_are_in_order_and_few_jobs_are_queued_ahead(client, monkeypatch):
    monkeypatch.setattr(cluster, "MAX_WORKS", 20)
    asked = []

    def works():
        for number in range(100):
            asked.append(number)
            yield cluster.alone(partial(pow, number, 2))

    pool = cluster.Cluster(client)
    for number, found in enumerate(pool.results(works())):
        assert found == number**2
        assert len(asked) <= number + 20
