"""The cost of a served connection, and the comparison of another OpenSSL with ours."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import real
from shakedown import native
from shakedown.errors import ShakedownError
from shakedown.native import load_generator
from shakedown.native.scenario import Fleet
from shakedown.prediction import connection_cost as measuring
from shakedown.prediction import cpu_contention
from shakedown.prediction.connection_cost import Plan as Serving
from shakedown.prediction.connection_cost import Served, Speeds, connection_cost, fitted, served
from shakedown.prediction.cpu_contention import Watch, busy_neighbours, shared
from shakedown.prediction.inputs import ServerModel
from shakedown.prediction.libssl import LibraryError, Libssl, Plan, libssl_of
from shakedown.prediction.other_openssl import RARE, OtherOpenssl, adjusted
from shakedown.prediction.other_openssl import _steady as steady
from shakedown.prediction.other_openssl import openssl_speed as speed
from shakedown.prediction.predict import predict_rows
from shakedown.prediction.processor_speed import Speed, Timed
from shakedown.prediction.scenario import scenario
from shakedown.prediction.side_cost import side_cost
from shakedown.prediction.this_machine import profile_of
from shakedown.prediction.trace import parse_trace
from shakedown.profiles import load_device
from shakedown.schema import builtins
from shakedown.simulation.fleet import settle
from shakedown.simulation.simulate import Job, run

PRF = ("prf", "hkdf-sha256", "")
NAMES = ("operation", "algorithm", "parameters")


def test_connection_cost_is_fitted_to_the_served_handshakes(monkeypatch):
    """Fits the times of real connections and handshakes, whatever they are on a busy machine."""
    rounds: list[Served] = []
    serve, copy, copying_us = measuring.served, load_generator.connection_per_kib_us, []

    def served(*arguments: object) -> Served:
        rounds.append(serve(*arguments))
        return rounds[-1]

    def per_kib_us(processors: list[int]) -> float:
        copying_us.append(copy(processors))
        return copying_us[-1]

    monkeypatch.setattr(measuring, "served", served)
    monkeypatch.setattr(load_generator, "connection_per_kib_us", per_kib_us)
    # Further rounds, which too few rounds at full speed would cause, test nothing more.
    monkeypatch.setattr(measuring, "MAX_ROUNDS", measuring.MIN_ROUNDS)
    speeds = Speeds()
    found = connection_cost(0.1, plans=(Serving("tls1.2/psk"),), speeds=speeds)
    assert len(rounds) == measuring.MIN_ROUNDS
    for one in rounds:
        assert one.kib > 0.0
        for timed in (*one.took_us.values(), *one.alone_us.values()):
            assert min(timed.found, timed.loop_s) > 0.0
    assert found == fitted([rounds], *copying_us, speeds)
    assert set(found) == {"server_us", "client_us", "server_cold", "client_cold", "sd_us", "per_kib_us"}
    assert found["per_kib_us"] >= 0.0
    # A single suite cannot separate the connection's cost from that of cold caches.
    assert found["server_cold"] == found["client_cold"] == 0.0


def test_load_that_lost_the_processor_is_repeated(monkeypatch):
    """The difference of a long and a short load is not positive if other programs preempted the long one."""
    starved, fed = ({"server_us": 40.0, "client_us": one_us} for one_us in (-3.0, 50.0))
    answers = [starved, fed]
    monkeypatch.setattr(load_generator, "connection_served", lambda *_: answers.pop(0))
    found = measuring.served(Serving("tls1.2/psk"), 0.1, Speeds())
    assert (found.took_us["client"].found, answers) == (50.0, [])
    answers.extend([starved] * measuring.ATTEMPTS)
    with pytest.raises(ShakedownError, match="measure when they have ended"):
        measuring.served(Serving("tls1.2/psk"), 0.1, Speeds())


def test_fit_separates_connection_cost_from_longer_handshakes():
    """Rounds at half the speed, in which everything takes twice as long, are discarded."""
    usual_s, speeds = 0.0017, Speeds()
    rounds = [
        [
            Served(
                kib=2.0,
                took_us={
                    "server": Timed(slower * (50.0 + 2.0 * 3.0 + 1.25 * alone), slower * usual_s),
                    "client": Timed(slower * (40.0 + 2.0 * 3.0 + alone), slower * usual_s),
                },
                alone_us={side: Timed(slower * alone, slower * usual_s) for side in ("client", "server")},
            )
            for slower in (2.0, 1.0, 2.0, 1.05, *(1.0,) * measuring.MIN_ROUNDS)
        ]
        for alone in (20.0, 40.0, 80.0, 160.0)
    ]
    for one in (speeds.alone, speeds.server, speeds.client):
        one.loops_s.extend([usual_s] * 10)
    found = fitted(rounds, 3.0, speeds)
    assert found["server_cold"] == pytest.approx(0.25)
    assert found["server_us"] == pytest.approx(50.0)
    assert found["client_cold"] == pytest.approx(0.0, abs=1e-9)
    assert found["client_us"] == pytest.approx(40.0)
    assert found["sd_us"] == pytest.approx(0.0, abs=1e-6)


def test_a_longer_handshake_takes_longer_in_its_connection(tmp_path):
    measured = builtins(real.measurement("tls1.3/x25519/p256/server"))
    trace = parse_trace(measured, measured["suite"])
    costs = []
    for cold in (0.0, 0.5):
        path = tmp_path / "it.toml"
        connection = {"server_us": 60.0, "client_us": 50.0, "server_cold": cold}
        path.write_text(profile_of("it", [], [measured], connection), encoding="utf-8")
        costs.append(side_cost(trace, "server", load_device(str(path))))
    warm, cool = costs
    more_s = cool.connection.mean - warm.connection.mean
    assert warm.connection.mean == pytest.approx(60e-6)
    assert more_s == pytest.approx(0.5 * warm.total.mean)
    assert cool.total.mean == warm.total.mean


def test_varying_connections_wait_longer_and_widen_percentiles(tmp_path):
    """Pollaczek and Khinchine's mean wait grows with the variance of the work."""
    suite, rows = "tls1.3/x25519/p256/server", []
    measured = builtins(real.measurement(suite))
    for sd_us in (0.0, 400.0):
        path = tmp_path / f"{sd_us:.0f}.toml"
        connection = {"server_us": 60.0, "client_us": 50.0, "sd_us": sd_us}
        path.write_text(profile_of("it", [], [measured], connection), encoding="utf-8")
        one = scenario(suite, "phone", str(path), "loopback")
        rate_per_s = 0.8 / one.service_s.mean
        rows += predict_rows([suite], server=ServerModel(path), bearer="loopback", rate_per_s=rate_per_s)
    alike, apart = rows
    assert alike["server_s"] == apart["server_s"]
    more_s = rate_per_s * 400e-6**2 / (2 * (1 - 0.8))
    assert apart["queue_s"]["estimate"] - alike["queue_s"]["estimate"] == pytest.approx(more_s, rel=0.02)
    assert apart["done_s"]["p99"] > alike["done_s"]["p99"]


def test_varying_connections_widen_percentiles_without_load(tmp_path):
    """In predict, and in simulate at a rate at which almost no client waits."""
    suite = "tls1.3/x25519/p256/server"
    measured = builtins(real.measurement(suite))
    path = tmp_path / "varies.toml"
    connection = {"server_us": 10_000.0, "client_us": 50.0, "sd_us": 5_000.0}
    path.write_text(profile_of("it", [], [measured], connection), encoding="utf-8")
    [row] = predict_rows([suite], server=ServerModel(path), bearer="loopback")
    ready = row["ready_s"]
    assert ready["p99"] - ready["mean"] > 2.0 * 5e-3
    one = scenario(suite, "phone", str(path), "loopback")
    fleet = settle(Fleet(arrivals="poisson:0.01/s", clients=2000, replications=1))
    simulated = builtins(run(Job(one, None, fleet, 1, 1)))["ready_s"]
    assert simulated["mean"] == pytest.approx(ready["mean"], rel=0.05)
    assert simulated["p99"] == pytest.approx(ready["p99"], rel=0.15)


def test_served_handshake_transfers_the_same_bytes_as_in_memory():
    assert 0.2 < served(Serving("tls1.2/psk"), 0.1, Speeds()).kib < 0.5


@pytest.fixture
def files(tmp_path):
    folder = tmp_path / "made"
    folder.mkdir()
    request = {"do": "make", "now": 1_780_000_000, "keys": "ed25519", "out": folder, "side": "server"}
    native.certs({**request, "profile": "lab", "days": 20_000})
    return folder


def plan(files, **changes) -> Plan:
    given = {
        "tls13": True,
        "groups": "X25519",
        "cipher": "TLS_AES_128_GCM_SHA256",
        "certificate": str(files / "chain.pem"),
        "key": str(files / "key.pem"),
        "root": str(files / "ca.pem"),
    }
    return Plan(**{**given, **changes})


def test_system_libssl_performs_a_handshake(peer, files):
    took = Libssl(libssl_of(peer("openssl"))).measure(plan(files), 5)
    assert took["client"] > 0.0
    assert took["server"] > 0.0


def test_system_libssl_resumes_sessions(peer, files):
    """In TLS 1.3 the client has the ticket only when it reads after the handshake."""
    library = Libssl(libssl_of(peer("openssl")))
    for changes in (
        {"tickets": 1},
        {"tls13": False, "cipher": "ECDHE-ECDSA-AES128-GCM-SHA256"},
    ):
        assert library.measure(plan(files, resumed=True, **changes), 3)["server"] > 0.0
    with pytest.raises(LibraryError, match="the session was not resumed"):
        library.measure(plan(files, resumed=True, tickets=0), 1)


def test_file_that_is_not_a_libssl_is_refused(tmp_path):
    for path in (tmp_path / "missing", Path(__file__)):
        with pytest.raises(LibraryError, match="accepted: OpenSSL's libssl"):
            Libssl(str(path))
    with pytest.raises(LibraryError, match="no function TLS_client_method"):
        Libssl("libc.so.6")


@pytest.mark.parametrize("name", ["x25519", "p256", "secp160r1", "sect571r1", "brainpoolp384r1"])
def test_system_libcrypto_generates_keys(peer, name):
    library = Libssl(libssl_of(peer("openssl")))
    (made,) = library.keygen(name).items()
    assert made[0] == ("keygen", "ecdh", name)
    assert made[1] > 0.0


def test_openssl_speed_gives_sign_and_verify_figures(peer):
    found = speed(peer("openssl"), "rsa3072")
    assert set(found) >= {("sign", "rsa", "rsa3072"), ("verify", "rsa", "rsa3072")}
    assert found["sign", "rsa", "rsa3072"] > 5.0 * found["verify", "rsa", "rsa3072"]


def test_openssl_speed_names_map_to_known_operations(peer):
    """A few of the names; each is answered with figures of a curve or size that a suite may have."""
    for name, triple in (
        ("rsa512", ("sign", "rsa", "rsa512")),
        ("ecdsak163", ("sign", "ecdsa", "sect163k1")),
        ("ecdhb571", ("derive", "ecdh", "sect571r1")),
        ("ecdsabrp512r1", ("verify", "ecdsa", "brainpoolp512r1")),
    ):
        assert name in RARE
        assert triple in speed(peer("openssl"), name)


def test_rounds_continue_until_full_speed_figures_agree():
    rounds = [(1.0, 1.0), (2.0, 1.0), (4.0, 1.0), (2.0, 1.5), (2.0, 1.0), (2.1, 1.05), (9.0, 1.0)]
    left, speed = iter(rounds), Speed([1.0] * 10)

    def measure() -> Timed[dict[str, float]]:
        figure, loop_s = next(left)
        return Timed({"a": figure}, loop_s)

    assert steady(measure, speed) == {"a": pytest.approx([1.0, 2.0, 4.0, 2.0, 2.0])}
    assert next(left) == (9.0, 1.0)
    assert steady(lambda: Timed({}, 1.0), speed) == {}
    left = iter(rounds)
    assert steady(measure, speed, limit=3) == {"a": pytest.approx([1.0, 2.0, 4.0])}
    assert next(left) == (2.0, 1.5)


def test_a_ratio_is_not_corrected_for_the_speed():
    found = steady(lambda: Timed({"a": 2.1}, 1.05), Speed([1.0] * 10), times=False)
    assert found == {"a": [2.1] * 3}


def test_failed_handshake_of_libssl_is_reported(peer, files):
    library = Libssl(libssl_of(peer("openssl")))
    other = files / "other"
    other.mkdir()
    request = {"do": "make", "now": 1_780_000_000, "keys": "p256", "out": other, "side": "server"}
    native.certs({**request, "profile": "lab"})
    with pytest.raises(LibraryError, match="the handshake failed"):
        library.measure(plan(files, root=str(other / "ca.pem")), 1)


def test_programs_without_a_libssl_are_refused():
    with pytest.raises(LibraryError, match="accepted: a program that is linked with one"):
        libssl_of(shutil.which("true") or "true")
    with pytest.raises(LibraryError, match="no such program"):
        libssl_of("no-program-of-this-name")


def test_a_profile_is_adjusted_to_another_library():
    sign, derive = ("sign", "ecdsa", "p256"), ("derive", "ecdh", "p256")
    work = {("tls1.3", "client"): 4.0, ("tls1.3", "server"): 2.0}
    other = OtherOpenssl("OpenSSL 3.0.19", {sign: 35.0}, work, 1.02)
    primitives, overhead = adjusted(
        {
            sign: {"time_us": 20.0},
            derive: {"time_us": 40.0},
            PRF: {"per_call_us": 1.0},
        },
        {
            "message": [
                {"protocol": "tls1.3", "name": "Finished", "work": "process", "mean_us": 4.0},
                {"protocol": "tls1.3", "name": "ClientHello", "work": "process", "mean_us": 4.0},
                {"protocol": "tls1.3", "name": "ClientHello", "work": "generate", "mean_us": 4.0},
            ],
            "handshake": [{"protocol": "tls1.3", "side": "server", "mean_us": 1.0}],
            "primitive": [
                {"protocol": "wtls", **dict(zip(NAMES, sign, strict=True)), "time_us": 20.0},
                {"message": "Certificate", **dict(zip(NAMES, sign, strict=True)), "time_us": 20.0},
            ],
        },
        other,
    )
    assert primitives[sign]["time_us"] == 35.0
    assert derive not in primitives  # the other library has no figure: its cost is estimated
    assert primitives[PRF]["per_call_us"] == 3.0
    # Both sides make and read a Finished; a ClientHello is read by servers alone.
    assert [row["mean_us"] for row in overhead["message"]] == [12.0, 8.0, 16.0]
    assert overhead["handshake"][0]["mean_us"] == 2.0
    # WTLS does not use OpenSSL, so its row stays; OpenSSL's one figure replaces the certificate's row.
    assert [row["time_us"] for row in overhead["primitive"]] == [20.0]


def test_the_command_refuses_a_program_before_it_measures(shakedown):
    done: subprocess.CompletedProcess[str] = shakedown("devices", "measure", "--openssl", "/bin/true")
    assert done.returncode == 2
    assert "no shared libssl" in done.stderr
    assert "Traceback" not in done.stderr


def test_refused_program_is_not_measured(monkeypatch, capsys):
    from shakedown.cli import exit_status

    def measured(**_: object) -> None:
        raise AssertionError("measured before the program was looked at")

    monkeypatch.setattr("shakedown.prediction.connection_cost.connection_cost", measured)
    assert exit_status(["devices", "measure", "--openssl", "/bin/true", "--name", "other"]) == 2
    assert "no shared libssl" in capsys.readouterr().err


def test_busy_neighbours_use_the_other_processors_and_end():
    affinity = os.sched_getaffinity(0)
    children = set(multiprocessing.active_children())
    with busy_neighbours():
        assert os.sched_getaffinity(0) == {min(affinity)}
        assert len(set(multiprocessing.active_children()) - children) == len(affinity) - 1
    assert os.sched_getaffinity(0) == affinity
    assert set(multiprocessing.active_children()) == children


@pytest.mark.parametrize("which", ["shared([min(os.sched_getaffinity(0))], 2)", "busy_neighbours()"])
def test_neighbours_end_with_a_parent_that_is_killed(which):
    """Such a parent cannot end its children; they would occupy the processors for ever."""
    script = f"""
import multiprocessing, os, signal
from shakedown.prediction.cpu_contention import busy_neighbours, shared
with {which}:
    print(*[one.pid for one in multiprocessing.active_children()], flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL
    children = [Path(f"/proc/{pid}") for pid in done.stdout.split()]
    assert children or len(os.sched_getaffinity(0)) == 1
    for child in children:
        while child.exists() and child.joinpath("stat").read_text().rpartition(")")[2].split()[0] != "Z":
            time.sleep(0.01)


def test_neighbours_ignore_ctrl_c():
    """A terminal sends Ctrl-C to all processes, and a neighbour would print a traceback."""
    others = set(multiprocessing.active_children())
    with shared([min(os.sched_getaffinity(0))], 2) as meter:
        children = set(multiprocessing.active_children()) - others
        before = meter.counts[1::2]
        for child in children:
            os.kill(child.pid, signal.SIGINT)
        while not all(now > then + 2 for now, then in zip(meter.counts[1::2], before, strict=True)):
            assert all(child.is_alive() for child in children)
            time.sleep(0.01)
    assert len(children) == 2


def test_no_neighbours_run_if_not_requested():
    affinity = os.sched_getaffinity(0)
    with busy_neighbours(busy=False):
        assert os.sched_getaffinity(0) == affinity


def test_watch_warns_of_host_steal_and_of_low_speed(monkeypatch):
    monkeypatch.setattr(cpu_contention, "_ticks", iter([(1000, 10), (2000, 60)]).__next__)
    speed = Speed([1.0] * 5 + [1.5] * 5)
    watch = Watch(speed)
    speed.counted([Timed("slow", 1.3)])
    assert watch.warnings() == [
        "the host took 5% of the processors' time: measure again when it is quiet",
        "the processor ran at full speed for 50% of the time, and the figures are for full speed; on "
        "average, work takes 1.25 times as long",
        "full speed did not last long enough for all figures; some were measured at a speed that is 1.30 "
        "times lower: measure again",
    ]
    assert watch.lowest == 1.3


def test_steady_machine_gives_no_warning(monkeypatch):
    monkeypatch.setattr(cpu_contention, "_ticks", lambda: (1000, 10))
    speed = Speed([1.0, 1.02, 1.05] * 10)
    watch = Watch(speed)
    speed.counted([Timed("usual", 1.05)])
    assert watch.warnings() == []
    assert watch.lowest == 1.0
