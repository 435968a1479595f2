"""Experiments on a Dask cluster: the serial run's figures, byte for byte, even if workers are lost."""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from multiprocessing import active_children
from pathlib import Path

import polars as pl
import pytest

import runs
from shakedown.errors import InputError, ShakedownError
from shakedown.experiments import cluster, load_generators, undisturbed
from shakedown.experiments.runner import run_experiment
from shakedown.results.folder import load_results

EXPERIMENT = """
name = "spread"
suites = ["tls1.2/psk", "tls1.3/x25519/p256/server"]
repeat = 2
seed = 3
devices = ["cortex-m4", "phone"]
bearers = ["lte", "nb-iot", "gprs"]
rates = ["10/s", "300/s"]

[simulated]
arrivals = ["storm:2s", "poisson:20/s"]
clients = 400
"""

pytestmark = pytest.mark.filterwarnings("default")
"""Dask's own warnings are its own."""


@pytest.fixture(autouse=True)
def interruptible():
    """As at a terminal: what a shell starts in the background ignores Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="module")
def experiment(tmp_path_factory):
    return runs.experiment(tmp_path_factory.mktemp("spread"), EXPERIMENT)


@pytest.fixture(scope="module")
def client():
    with cluster.local(2) as found:
        yield found


def figures(folder) -> bytes:
    """All that may be made elsewhere, as it would stand in a file."""
    table = load_results(folder).table.filter(pl.col("kind").is_in(["modelled", "simulated"]))
    return table.drop("provenance").write_ndjson().encode()


@pytest.fixture(scope="module")
def serial(experiment, tmp_path_factory):
    folder = tmp_path_factory.mktemp("serial") / "results"
    run_experiment(experiment, folder)
    found = figures(folder)
    assert found.count(b"\n") > 1000
    return found


def test_a_worker_is_killed_in_the_middle_and_nothing_is_lost(experiment, client, serial, tmp_path):
    victims = list(client.run(os.getpid).values())
    printed = 0

    def kill_one(_found: object) -> None:
        nonlocal printed
        printed += 1
        # Two are measured and twelve modelled, two a place; then the fleets come.
        if printed == 2 + 24 + 5:
            os.kill(victims[0], signal.SIGKILL)

    outcome = run_experiment(experiment, tmp_path / "results", client=client, printed=kill_one)
    assert printed == 2 + 24 + 24
    assert not outcome.failures
    assert figures(tmp_path / "results") == serial
    client.wait_for_workers(2, timeout=300)
    assert victims[0] not in client.run(os.getpid).values()


def test_a_worker_of_another_version_is_told(client, monkeypatch):
    real = cluster.fingerprint
    other = {"shakedown": "9.9 (release)"}
    monkeypatch.setattr(cluster, "fingerprint", lambda profiles: {**real(profiles), **other})
    with pytest.raises(ShakedownError, match=r"worker tls://.* has another shakedown: .*accepted: 9\.9"):
        cluster.check_workers(client)


def test_a_workers_missing_or_other_profile_is_told(client, monkeypatch):
    real = cluster.fingerprint
    cluster.check_workers(client, ["phone", "lte"])
    monkeypatch.setattr(cluster, "fingerprint", lambda profiles: {**real(profiles), "profile phone": "1"})
    with pytest.raises(ShakedownError, match="another profile phone"):
        cluster.check_workers(client, ["phone"])


def test_a_worker_that_came_later_and_is_another_is_told(client, monkeypatch):
    """The first look passed; what differs goes with every job."""
    pool = cluster.Cluster(client)
    assert list(pool.results([cluster.alone(partial(pow, 2, 3))])) == [8]
    real = cluster.fingerprint
    other = {"shakedown": "9.9 (release)"}
    monkeypatch.setattr(cluster, "fingerprint", lambda profiles: {**real(profiles), **other})
    pool._ours = cluster.fingerprint(())
    with pytest.raises(ShakedownError, match=r"worker tls://.* has another shakedown: .*accepted: 9\.9"):
        list(pool.results([cluster.alone(partial(pow, 2, 3))]))


@pytest.mark.parametrize("what", ["tcp://127.0.0.1:8786", 5, object()])
def test_what_is_no_client_is_refused(what):
    with pytest.raises(InputError, match=r"client is .*; accepted: a Client of dask\.distributed"):
        cluster.Cluster(what)


def test_a_client_that_was_closed_is_refused():
    with cluster.local(1) as own:
        pass
    with pytest.raises(InputError, match=r"client is clos(ed|ing); accepted: a Client"):
        cluster.Cluster(own)


@pytest.mark.parametrize("kind", [cluster.Cluster, load_generators.Generators])
def test_a_client_that_answers_with_coroutines_is_refused(client, kind):
    import asyncio

    from distributed import Client

    async def ask() -> None:
        async with Client(
            client.scheduler.address, asynchronous=True, set_as_default=False, security=client.security
        ) as own:
            kind(own)

    with pytest.raises(InputError, match="client is asynchronous; accepted: a Client"):
        asyncio.run(ask())


def test_what_a_job_raises_is_raised(client):
    with pytest.raises(ZeroDivisionError):
        list(cluster.Cluster(client).results([cluster.alone(partial(divmod, 1, 0))]))


@pytest.mark.parametrize(
    ("make", "kind"),
    [("CoreError", ShakedownError), ("CaptureError", InputError), ("Unsupported", InputError)],
)
def test_what_the_core_complains_of_elsewhere_is_as_clear_here(client, make, kind):
    """Some of its classes are not found again where they are unpacked."""

    def job():
        from shakedown import native

        raise getattr(native.extension(), make)("port: connection refused")

    with pytest.raises(ShakedownError, match=r"^port: connection refused$") as found:
        list(cluster.Cluster(client).results([cluster.alone(job)]))
    assert found.type is kind


def test_a_scheduler_that_is_lost_in_the_middle_is_told_in_one_line(tmp_path):
    """Dask's own word for it is a cancelled future, with tracebacks of its reconnection."""
    (tmp_path / "spread.toml").write_text(EXPERIMENT.replace("clients = 400", "clients = 200000"))
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
    assert f"error: the scheduler {address} was lost; what was finished by then is kept" in said
    assert "Traceback" not in said
    assert load_results(tmp_path / "results").height


@contextlib.contextmanager
def start(program: str, *arguments: str, cwd: Path | None = None):
    """One of Dask's programs, as long as it is needed."""
    process = subprocess.Popen(
        [sys.executable, "-m", f"distributed.cli.{program}", *arguments],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=cwd,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def told(process, pattern: str) -> str:
    """What a program says of itself once it is there."""
    for line in process.stderr:
        if found := re.search(pattern, line):
            return found[1]
    raise AssertionError(f"ended with {process.wait()}")


def test_a_scheduler_that_does_not_answer_is_told(monkeypatch):
    monkeypatch.setattr(cluster, "CONNECT_S", 0.5)
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{held.getsockname()[1]}"
        with pytest.raises(InputError, match="accepted: the address of"), cluster.connected(address):
            pass
    for address in ("carrier-pigeon://x", "tls://127.0.0.1:1"):
        with pytest.raises(InputError, match="cannot be reached"), cluster.connected(address):
            pass


def test_the_command_says_it_in_one_line(shakedown, client, monkeypatch, tmp_path):
    (tmp_path / "spread.toml").write_text(EXPERIMENT)

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
    """Options by which a command is one of a local cluster's clients."""
    options = []
    for name, what in (("ca", "ca_file"), ("cert", "client_cert"), ("key", "client_key")):
        (folder / f"{name}.pem").write_text(getattr(client.security, f"tls_{what}"))
        options += [f"--scheduler-{name}", str(folder / f"{name}.pem")]
    return options


@pytest.mark.parametrize("workers", [0, -1, 100_000])
def test_processes_that_there_cannot_be_are_refused(workers):
    with pytest.raises(InputError, match="processes is"), cluster.local(workers):
        pass


@pytest.mark.parametrize(("lost", "starts"), [(1, True), (cluster.STARTS, False)])
def test_a_worker_that_is_lost_while_it_starts_is_started_again(monkeypatch, lost, starts):
    """Dask says then that a nanny failed to start."""
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


def test_several_clusters_on_a_machine_are_no_matter_for_words():
    """Dask's scheduler warns where port 8787 is taken."""
    with socket.socket() as held, warnings.catch_warnings(record=True) as said:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Somebody else may have it: so much the better.
        with contextlib.suppress(OSError):
            held.bind(("127.0.0.1", 8787))
            held.listen()
        warnings.simplefilter("always")
        with cluster.local(1):
            pass
    assert not [one for one in said if "Port" in str(one.message)]


@pytest.mark.parametrize("reason", [None, KeyboardInterrupt("the figures are …"), ShakedownError("refused")])
def test_ctrl_c_while_a_cluster_ends_keeps_the_reason_of_the_end(monkeypatch, reason):
    """It hurries the end, and nothing is left of it."""
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


def test_results_come_in_order_and_few_are_ahead(client, monkeypatch):
    monkeypatch.setattr(cluster, "HELD", 20)
    asked = []

    def works():
        for number in range(100):
            asked.append(number)
            yield cluster.alone(partial(pow, number, 2))

    pool = cluster.Cluster(client)
    for number, found in enumerate(pool.results(works())):
        assert found == number**2
        assert len(asked) <= number + 20


def interrupt_when(begun: Iterable[Path], noted: threading.Event | None = None) -> threading.Thread:
    """Ctrl-C once jobs have begun; again once the first was noted, however long that took."""

    def run() -> None:
        while not all(path.exists() for path in begun):
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGINT)
        if noted is not None:
            noted.wait()
            time.sleep(2 * undisturbed.SAME_S)
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
    """A job that ends only when it is told to, with what it has found; None: it had nothing."""

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
    """A job that looks at nothing but a file."""

    def job(_look: Callable[[], None]) -> int:
        begun.touch()
        while not ended.exists():
            time.sleep(0.01)
        return -1

    return job


def test_generators_that_are_interrupted_hand_back_what_they_have(client, tmp_path):
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
    # And there is nothing left of it.
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert generators.results([lambda look: look() or 5] * 2) == [5, 5]


def test_a_generator_that_was_lost_is_not_waited_for(client, tmp_path, monkeypatch):
    """It would wait for longer than the test has."""
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


def test_a_worker_that_is_lost_with_its_finished_job_is_told(client, monkeypatch):
    """All are done, and what one of them found is gone with it."""
    generators = load_generators.Generators(client)
    victim = client.run(os.getpid)[generators.workers[0]]
    monkeypatch.setattr(load_generators, "WORKERS_LOOKED_FOR_S", 0.5)
    real, asked = load_generators.result_of, []

    def lost_before_it_is_asked_for(future, timeout_s=None):
        if not asked:
            os.kill(victim, signal.SIGKILL)
            while generators.workers[0] in load_generators.workers_of(client):
                time.sleep(0.02)
        asked.append(future)
        return real(future, timeout_s)

    monkeypatch.setattr(load_generators, "result_of", lost_before_it_is_asked_for)
    with pytest.raises(ShakedownError, match=r"worker tls://.* was lost, and its share"):
        generators.results([lambda _look: 5] * 2)
    client.wait_for_workers(2, timeout=300)


def test_a_scheduler_that_says_nothing_of_its_workers_keeps_nobody(client, tmp_path, monkeypatch):
    """One that is stopped, say: Ctrl-C is heard nevertheless."""
    import asyncio

    generators = load_generators.Generators(client)
    monkeypatch.setattr(load_generators, "WORKERS_LOOKED_FOR_S", 0.2)

    async def silent(**_asked):
        await asyncio.sleep(1e6)

    monkeypatch.setattr(client.scheduler, "identity", silent, raising=False)
    begun = [tmp_path / "a", tmp_path / "b"]
    thread = interrupt_when(begun)
    found = generators.results([until_stopped(path, 1) for path in begun])
    thread.join()
    assert found == [1, 1]


def test_a_generator_that_does_not_answer_is_left_out(client, tmp_path, monkeypatch):
    # The other one answers within it, on a busy machine too.
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


def test_workers_are_not_lost_where_the_client_forgets_them(client, monkeypatch):
    """Its own list is emptied now and then, between being asked for and being read."""
    monkeypatch.setattr(client, "scheduler_info", lambda **_: {"workers": {}})
    assert cluster.Cluster(client).threads() == 2
    generators = load_generators.Generators(client)
    assert generators.count() == 2
    assert generators.results([lambda look: look() or 5] * 2) == [5, 5]


def test_generators_whose_scheduler_is_lost_say_so_in_one_line(tmp_path):
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
                with pytest.raises(ShakedownError, match=r"the scheduler tcp://.* was lost, and the load's"):
                    generators.results([until_stopped(tmp_path / "begun", 1, tmp_path / "ended")])
            thread.join()
            # No process is left that could stop it.
            wait_for(tmp_path / "ended")


def test_a_generator_ends_where_its_client_was_killed(tmp_path):
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


def test_a_second_ctrl_c_waits_for_no_generator(client, tmp_path, monkeypatch):
    """It would wait for longer than the test has."""
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


def test_generators_end_with_the_first_that_fails(client, tmp_path):
    """The others would never end by themselves, and keep their workers."""

    def fails(_look: Callable[[], None]) -> int:
        raise ZeroDivisionError

    generators = load_generators.Generators(client)
    with pytest.raises(ZeroDivisionError):
        generators.results([until_stopped(tmp_path / "a", 1), fails])
    assert generators.results([lambda _look: 5] * 2) == [5, 5]


def test_strangers_on_the_machine_are_refused(client):
    """What listens takes no work from who has not this cluster's own key."""
    from distributed import Client
    from distributed.security import Security

    assert client.scheduler.address.startswith("tls://127.0.0.1:")
    place = client.scheduler.address.rpartition("://")[2]
    workers = [address.rpartition("://")[2] for address in client.scheduler_info(n_workers=-1)["workers"]]
    assert workers
    for listening in (place, *workers):
        for scheme, security in (("tcp", None), ("tls", Security.temporary())):
            with pytest.raises((OSError, TypeError)):
                Client(f"{scheme}://{listening}", timeout=3, set_as_default=False, security=security)
    assert client.submit(int, "7").result() == 7


def test_all_that_listens_is_on_loopback(client):
    for pid in {os.getpid(), *client.run(os.getpid).values()}:
        found = subprocess.run(["ss", "-ltnpH"], capture_output=True, text=True, check=True).stdout
        mine = [line.split()[3] for line in found.splitlines() if f"pid={pid}," in line]
        assert all(place.startswith("127.0.0.1:") for place in mine), mine


@pytest.mark.parametrize(
    "first",
    [b"\1", b"HTTP/1.0 400 Bad Request\r\n\r\n", (1 << 40).to_bytes(8, "little"), (9).to_bytes(8, "little")],
    ids=["a byte", "HTTP", "a frame beyond memory", "half a frame"],
)
def test_a_scheduler_that_falls_silent_or_speaks_otherwise_is_given_up(monkeypatch, first):
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
        begun = time.monotonic()
        with pytest.raises(InputError, match="cannot be reached"), cluster.connected(address):
            pass
        # Less than Dask's own attempts, of 30 s and more, however busy the machine is.
        assert time.monotonic() - begun < 15.0
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()
    for one in held:
        one.close()


def test_the_web_servers_of_local_processes_answer_nothing(client):
    """They have no TLS, and any user of the machine can ask them; one worker here replaces another."""

    def port(dask_worker) -> int:
        return dask_worker.http_server.port

    victim, *_ = here = list(client.run(os.getpid).values())
    os.kill(victim, signal.SIGKILL)
    while victim in here or len(here) < 2:
        time.sleep(0.1)
        here = list(client.run(os.getpid, on_error="ignore").values())
    ports = [client.cluster.scheduler.http_server.port, *client.run(port).values()]
    assert len(ports) == 3
    for one in ports:
        for path in (
            "/",
            "/info/main/workers.html",
            "/json/identity.json",
            "/metrics",
            "/proxy/22/127.0.0.1/",
        ):
            asked = http.client.HTTPConnection("127.0.0.1", one, timeout=60)
            asked.request("GET", path)
            assert asked.getresponse().status == 404, (one, path)
            asked.close()


def test_a_silent_scheduler_is_named(monkeypatch):
    monkeypatch.setattr(cluster, "CONNECT_S", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        place = f"127.0.0.1:{silent.getsockname()[1]}"
        with (
            pytest.raises(InputError, match=r"cannot be reached: it did not answer within 0.5 s"),
            cluster.connected(f"tcp://{place}"),
        ):
            pass


@pytest.fixture(scope="module")
def pki(tmp_path_factory):
    """A root, what it issued, and a stranger's root, by OpenSSL."""
    folder = tmp_path_factory.mktemp("pki")

    def openssl(*arguments: object) -> None:
        subprocess.run(["openssl", *map(str, arguments)], cwd=folder, check=True, capture_output=True)

    new = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2")
    for name in ("root", "other"):
        openssl("req", "-x509", *new, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.pem")
    openssl("req", *new[:5], "-subj", "/CN=node", "-keyout", "node.key", "-out", "node.csr")
    issued = ("-CA", "root.pem", "-CAkey", "root.key", "-days", "2", "-out", "node.pem")
    openssl("x509", "-req", "-in", "node.csr", *issued)
    return folder


def test_a_scheduler_of_the_users_own_credentials(pki):
    from distributed import LocalCluster
    from distributed.security import Security

    files = {"ca": pki / "root.pem", "cert": pki / "node.pem", "key": pki / "node.key"}
    ours = cluster.Credentials(**files)
    names = [str(path) for path in files.values()]
    sides = {
        f"tls_{side}_{what}": name
        for side in ("scheduler", "worker", "client")
        for what, name in zip(("cert", "key"), names[1:], strict=True)
    }
    security = Security(tls_ca_file=names[0], require_encryption=True, **sides)
    options = {"n_workers": 1, "processes": False, "dashboard_address": None, "protocol": "tls://"}
    with LocalCluster(host="127.0.0.1", security=security, **options) as running:
        with cluster.connected(running.scheduler_address, ours) as client:
            assert client.submit(int, "7").result() == 7
        with (
            pytest.raises(InputError, match="cannot be reached"),
            cluster.connected(
                running.scheduler_address, cluster.Credentials(pki / "other.pem", *list(files.values())[1:])
            ),
        ):
            pass


@pytest.mark.parametrize(
    ("scheduler", "names", "expected"),
    [
        ("tcp://127.0.0.1:1", ("root.pem", "node.pem", "node.key"), r"accepted with these: tls://HOST:PORT"),
        (
            "tls://127.0.0.1:1",
            ("root.pem", "node.pem", None),
            r"without --scheduler-key; accepted: all three",
        ),
        ("tls://127.0.0.1:1", ("root.pem", "node.pem", "other.key"), r"no credentials for"),
        ("tls://127.0.0.1:1", ("root.pem", "none.pem", "node.key"), r"no credentials for"),
    ],
)
def test_wrong_credentials_are_one_line(pki, scheduler, names, expected):
    credentials = cluster.Credentials(*(name and pki / name for name in names))
    with pytest.raises(InputError, match=expected), cluster.connected(scheduler, credentials):
        pass
