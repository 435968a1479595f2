"""One fleet in pieces on a cluster: the same bytes as one process, even if workers are lost."""

from __future__ import annotations

import json
import os
import signal
import time
from functools import partial
from pathlib import Path

import pytest

from shakedown.errors import InputError
from shakedown.experiments import cluster
from shakedown.native import virtual_time
from shakedown.native.scenario import Fleet
from shakedown.schema import builtins
from shakedown.simulation.deployment import Site
from shakedown.simulation.pieces import in_pieces
from shakedown.simulation.simulate import simulate

pytestmark = pytest.mark.filterwarnings("default")
"""Dask's warnings are not errors."""

SUITES = ("tls1.3/x25519/p256/server", "tls1.2/psk")
METERS = Site(device="cortex-m4", bearer="nb-iot", server_workers=2)
FLEETS = {
    "a rate, as long as its precision needs": (Fleet(arrivals="poisson:900/s", precision=0.1), Site()),
    "a rate, so many clients": (Fleet(arrivals="bursts:20@9/s", clients=2000), Site()),
    "records after a handshake, at a rate": (
        Fleet(arrivals="poisson:300/s", precision=0.3, records="rate=100B/s,for=10s,size=100B"), Site(),
    ),
    "records after a handshake, in storms": (
        Fleet(
            arrivals="storm:2s", clients=200, replications=2, servers=2, balance="hash",
            records="rate=100B/s,for=10s,size=100B",
        ),
        Site(),
    ),
    "storms": (Fleet(arrivals="storm:2s+backoff", clients=400, replications=4), Site()),
    "cells with servers of their own": (
        Fleet(
            arrivals="storm:1s+backoff", clients=300, cells=7, servers=4, balance="cell", from_idle=True,
            timeout_s=4.0, replications=2,
        ),
        METERS,
    ),
    "servers of their own": (
        Fleet(arrivals="storm:0s", clients=300, servers=5, balance="hash", discipline="ps"), Site(),
    ),
    "one piece": (Fleet(arrivals="storm:1s", clients=200), Site()),
}  # fmt: skip


def rows(fleet: Fleet, site: Site, pool=None) -> str:
    return json.dumps([builtins(row) for row in simulate(SUITES, fleet, site, pool=pool)])


class Backwards:
    """Runs jobs one after another, the last first, as a pool of `threads` threads would."""

    def __init__(self, threads: int = 3) -> None:
        self.count, self.jobs = threads, []

    def threads(self) -> int:
        return self.count

    def is_here(self) -> bool:
        return True

    def results(self, works):
        for work in list(works)[::-1]:
            yield self.result(work)

    def result(self, work):
        found = None
        while True:
            try:
                jobs = work.send(found)
            except StopIteration as end:
                return end.value
            self.jobs.append(len(jobs))
            found = [job() for job in jobs[::-1]][::-1]


@pytest.mark.parametrize("name", FLEETS)
def test_two_processes_give_the_rows_of_one(client, name):
    fleet, site = FLEETS[name]
    assert rows(fleet, site, cluster.Cluster(client)) == rows(fleet, site)


def test_file_of_times_is_split_by_servers(client, tmp_path):
    (tmp_path / "times").write_text("".join(f"{n // 3 * 0.02:.2f}\n" for n in range(900)))
    fleet = Fleet(arrivals=f"file:{tmp_path / 'times'}", servers=3, balance="hash")
    assert rows(fleet, Site(), cluster.Cluster(client)) == rows(fleet, Site())


def spec_of(fleet: Fleet) -> dict:
    from shakedown.simulation.fleet import settle
    from shakedown.simulation.simulate import Job

    return Job(Site().estimate(SUITES[0]), None, settle(fleet), 1, 1).spec()


def test_pieces_are_merged_in_any_order_over_several_rounds():
    spec, pool = spec_of(Fleet(arrivals="poisson:3600/s", max_events=9_000_000)), Backwards()
    assert pool.result(in_pieces(spec, "it", 3)) == virtual_time.simulate(spec)
    assert len(pool.jobs) > 1
    assert set(pool.jobs) == {25}


@pytest.mark.parametrize(
    ("options", "threads", "pieces"),
    [
        ({"servers": 8, "balance": "hash"}, 3, 6),
        ({"servers": 8, "balance": "hash"}, 100, 8),
        ({"servers": 8, "balance": "hash", "replications": 5}, 3, 10),
        ({"servers": 8, "balance": "round-robin"}, 3, 1),
        ({"replications": 5}, 100, 5),
    ],
)
def test_fleet_is_split_into_enough_pieces_for_all_threads(options, threads, pieces):
    spec, pool = spec_of(Fleet(arrivals="storm:1s", clients=50, **options)), Backwards()
    assert pool.result(in_pieces(spec, "it", threads)) == virtual_time.simulate(spec)
    assert pool.jobs == [pieces]


def test_fleet_that_cannot_be_split_is_reported_in_one_line(caplog):
    in_pieces(spec_of(Fleet(arrivals="storm:1s", clients=50, servers=4)), "psk", 2)
    (line,) = caplog.messages
    assert line.startswith("psk is simulated in one process: one replication, whose clients share")
    caplog.clear()
    in_pieces(spec_of(Fleet(arrivals="storm:1s", clients=50, servers=4)), "psk", 1)
    in_pieces(spec_of(Fleet(arrivals="storm:1s", clients=50, servers=4, balance="hash")), "psk", 2)
    assert not caplog.messages


def test_invalid_scenario_is_refused_before_it_runs():
    spec = {**spec_of(Fleet(arrivals="storm:1s", clients=50)), "seed": -1}
    with pytest.raises(InputError, match=r"invalid value"):
        in_pieces(spec, "it", 2)
    fleet = Fleet(arrivals="storm:1s", clients=50, servers=2, balance="hash")
    piece = virtual_time.piece(virtual_time.spec_text(spec_of(fleet)), 0, (1, 2))
    with pytest.raises(InputError, match="of replication 0's 2 parts, 1 are there"):
        virtual_time.merged([piece])


def test_balance_by_cell_requires_cells():
    with pytest.raises(InputError, match='balance is "cell" and there are no cells; accepted: a number of'):
        simulate(SUITES, Fleet(arrivals="storm:1s", balance="cell", servers=2), Site())


def with_a_mishap(text: str, begun: Path, *, kills: bool):
    """A storm's twelve pieces; the first attempt at the first one kills its worker or keeps it busy."""

    def first() -> str:
        if not begun.exists():
            begun.touch()
            if kills:
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(2.0)
        return virtual_time.piece(text, 0, (0, 12))

    found = yield [
        first,
        *(partial(virtual_time.piece, text, 0, (number, 12)) for number in range(1, 12)),
    ]
    return virtual_time.merged(found)[0]


@pytest.fixture(scope="module")
def storm():
    fleet = Fleet(arrivals="storm:1s+backoff", clients=600, servers=12, balance="hash")
    return spec_of(fleet)


@pytest.mark.parametrize("kills", [True, False])
def test_killed_or_slow_worker_does_not_change_the_result(client, storm, tmp_path, kills):
    work = with_a_mishap(virtual_time.spec_text(storm), tmp_path / "begun", kills=kills)
    (report,) = cluster.Cluster(client).results([work])
    assert (tmp_path / "begun").exists()
    assert report == virtual_time.simulate(storm)
    client.wait_for_workers(2, timeout=300)


def test_shared_arguments_are_sent_again_after_the_only_worker_dies(storm, tmp_path, monkeypatch):
    """A scattered argument is lost with the worker and is sent again."""
    monkeypatch.setattr(cluster, "LARGE_BYTES", 100)
    with cluster.local(1) as own:
        work = with_a_mishap(virtual_time.spec_text(storm), tmp_path / "begun", kills=True)
        (report,) = cluster.Cluster(own).results([work])
    assert report == virtual_time.simulate(storm)


def test_late_worker_takes_part_and_does_not_change_the_result(storm):
    with cluster.local(1) as own:
        pool, workers = cluster.Cluster(own), set()

        def told(number: int, text: str) -> tuple[str, str]:
            from distributed import get_worker

            time.sleep(0.05)
            return get_worker().address, virtual_time.piece(text, 0, (number, 12))

        def work():
            text = virtual_time.spec_text(storm)
            own.cluster.scale(2)
            found = []
            while len({address for address, _ in found}) < 2:
                found = yield [partial(told, number, text) for number in range(12)]
            workers.update(address for address, _ in found)
            return virtual_time.merged([piece for _, piece in found])[0]

        (report,) = pool.results([work()])
    assert len(workers) == 2
    assert report == virtual_time.simulate(storm)


def test_shared_job_arguments_are_sent_once_per_worker(client, monkeypatch):
    sent = []
    real = client.scatter

    def scatter(data, **options):
        sent.append((data, options["broadcast"]))
        return real(data, **options)

    monkeypatch.setattr(client, "scatter", scatter)
    text = "x" * (cluster.LARGE_BYTES + 1)
    works = (cluster.alone(partial(str.count, text, "x")) for _ in range(20))
    assert list(cluster.Cluster(client).results(works)) == [len(text)] * 20
    assert sent == [([text], True)]


def test_long_job_does_not_delay_the_others(client, tmp_path):
    """The first ends only when the last has begun."""
    last = tmp_path / "last"

    def wait() -> int:
        until_s = time.monotonic() + 300.0
        while not last.exists():
            assert time.monotonic() < until_s
            time.sleep(0.01)
        return 0

    def work(number: int) -> int:
        if number == 199:
            last.touch()
        return number

    works = [cluster.alone(wait), *(cluster.alone(partial(work, number)) for number in range(1, 200))]
    assert list(cluster.Cluster(client).results(works)) == list(range(200))


def test_command_prints_the_same_with_several_processes(shakedown):
    arguments = (
        "simulate",
        SUITES[0],
        "--arrivals",
        "storm:1s",
        "--clients",
        "400",
        "--replications",
        "4",
        "--json",
    )
    serial = shakedown(*arguments)
    spread = shakedown(*arguments, "--processes", "2")
    assert spread.returncode == 0, spread.stderr
    assert json.loads(spread.stdout)[0]["replications"] == 4
    assert spread.stdout == serial.stdout
    refused = shakedown("simulate", SUITES[0], "--endpoints", "--processes", "2")
    assert refused.returncode == 2
    assert "--endpoints is given with --processes or --scheduler; accepted" in refused.stderr


def test_simulate_function_accepts_a_client(client):
    import shakedown

    fleet = Fleet(arrivals="storm:1s", clients=400, servers=4, balance="hash")
    spread, serial = (
        shakedown.simulate(SUITES[0], fleet, client=client),
        shakedown.simulate(SUITES[0], fleet),
    )
    assert [builtins(row) for row in spread] == [builtins(row) for row in serial]
    with pytest.raises(InputError, match="client with endpoints; accepted"):
        shakedown.simulate(SUITES[0], endpoints=True, client=client)


def test_pieces_that_do_not_fit_into_memory_are_refused():
    fleet = Fleet(arrivals="storm:1s", clients=1_000_000_000)
    with pytest.raises(InputError, match=r"takes [\d,.]+ GiB of memory where [\d,.]+ are free"):
        rows(fleet, Site(), Backwards())
