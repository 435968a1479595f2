"""Data that clients send after their handshakes: the option, the server's work, and the rows."""

from __future__ import annotations

import json
import math
import signal
import subprocess
import sys
import time

import pytest

from runs import printed
from shakedown.errors import InputError
from shakedown.native.scenario import Fleet
from shakedown.prediction.scenario import scenario
from shakedown.prediction.side_cost import side_cost
from shakedown.results.folder import load_results
from shakedown.simulation import memory_limit
from shakedown.simulation.fleet import DEFAULT_CLIENTS, settle
from shakedown.simulation.memory_limit import check_room, open_at_once, records_waiting
from shakedown.simulation.records import Records, parse_records
from shakedown.simulation.spec import Client, uncounted

SUITE = "tls1.3/x25519/p256/server"
SENT = "rate=100B/s,for=10min,size=512B"
COMMAND = ("simulate", SUITE, "--bearer", "ethernet", "--arrivals", "poisson:400/s", "--clients", "10000")


def test_records_are_parsed_and_passed_to_the_core():
    found = parse_records("rate=100B/s, for=10min,size=512")
    assert found == Records(100.0, 600.0, 512)
    # 117 whole pieces, 5.12 s apart: the last after 599 s.
    assert found.spec() == {"interval_s": 5.12, "count": 117}
    assert parse_records("rate=6kB/min,for=1h,size=2KiB").interval_s == pytest.approx(20.48)
    # Rounding loses no piece.
    assert parse_records("rate=0.1kB/s,for=3s,size=10B").count == 30
    assert settle(Fleet(arrivals="poisson:1/s")).records is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rate=100B/s,for=10min", "size is missing; accepted: rate=100B/s"),
        ("rate=100,for=10min,size=512B", "not a rate of bytes; accepted: a rate such as 100B/s"),
        ("rate=100B/s,for=10min,size=512bits", "not a size"),
        ("rate=100B/s,for=10min,size=0.5B", "a whole number of bytes"),
        ("rate=0B/s,for=10min,size=1B", "above 0"),
        ("rate=1B/s,for=10s,size=512B", "sends 0 times"),
        ("rate=1GB/s,for=10s,size=1B", "as by a larger size"),
        ("rate=1B/s,rate=2B/s", "rate is there twice"),
        ("speed=1B/s", "there is no"),
    ],
)
def test_wrong_records_are_refused(text, said):
    with pytest.raises(InputError, match=said):
        settle(Fleet(arrivals="storm:1s", records=text))


def test_record_cost_is_cipher_plus_overhead():
    own = scenario(SUITE, server_device="epyc-turin").record(16_384)
    costs = {"per_call_s": 0.0723496e-6, "per_kib_s": 0.0795713e-6}
    # One call over the data and the byte for its type.
    cipher_s = costs["per_call_s"] + costs["per_kib_s"] * 16_385 / 1024
    assert own.parts["epyc-turin: own"].mean == pytest.approx(cipher_s, rel=1e-9)
    assert own.parts["epyc-turin: receiving"].mean == pytest.approx(0.1 * 65.8785e-6)
    assert own.basis == "assumed"
    assert not own.missing
    assert {row["operation"] for row in own.figures} == {"stack", "receive"}
    # Four records, of which nothing is shared.
    four = scenario(SUITE, server_device="epyc-turin").record(65_536)
    assert four.total.mean == pytest.approx(4 * own.total.mean, rel=1e-9)


def test_record_cost_includes_the_mac():
    with_mac = scenario("tls1.0/rsa/rsa2048/server", server_device="epyc-turin").record(1024)
    costs = {
        one: scenario("tls1.0/rsa/rsa2048/server", server_device="epyc-turin").server_device.costs[one]
        for one in (("cipher", "aes-256-cbc", ""), ("mac", "hmac-sha1", ""))
    }
    least_s = sum(one.time_s(1, 1024) for one in costs.values())
    found_s = with_mac.parts["epyc-turin: own"].mean
    assert least_s < found_s < 1.2 * least_s
    # TLS 1.3 has a MAC in its Finished, and none in its records.
    aead = scenario(SUITE, server_device="epyc-turin").record(1024)
    assert aead.parts["epyc-turin: own"].mean < 0.5e-6


def test_datagram_records_are_split_by_datagram_size():
    one = scenario("wtls/rsa/rsa1024/server", server_device="epyc-turin").record(1000)
    ten = scenario("wtls/rsa/rsa1024/server", server_device="epyc-turin").record(10_000)
    receiving = "epyc-turin: receiving"
    assert ten.parts[receiving].mean == pytest.approx(math.ceil(10_000 / 1408) * one.parts[receiving].mean)


def test_record_without_cost_figure_is_a_lower_bound():
    found = scenario("tls1.2/psk", server_device="palm-v").record(512)
    assert found.missing == ("server cipher aes-128-gcm",)
    assert found.basis == "unknown"
    # Only an upper bound of the cipher's cost is known, from the clock.
    assert found.whole.high > 4 * found.total.high


def test_records_are_scaled_by_the_clock_like_handshakes():
    plain = scenario(SUITE, server_device="epyc-turin")
    by_clock = scenario(SUITE, server_device="kuo-p4", scale_from="epyc-turin")
    ratio = plain.server_device.clock_hz / by_clock.server_device.clock_hz
    assert by_clock.record(512).total.mean == pytest.approx(plain.record(512).total.mean * ratio)
    assert by_clock.record(512).basis == "assumed"


def test_trace_without_record_protection_is_refused():
    from dataclasses import replace

    one = scenario(SUITE)
    bare = replace(one, trace=replace(one.trace, operations=()))
    with pytest.raises(InputError, match="does not show how records are protected"):
        bare.record(512)


def test_repeated_cost_scales_with_the_count():
    found = side_cost(scenario(SUITE).trace, "server", scenario(SUITE).server_device)
    ten = found.repeated(10)
    assert ten.total.mean == pytest.approx(10 * found.total.mean)
    assert ten.missing == found.missing
    assert ten.bases.keys() == found.bases.keys()
    for basis, part in ten.bases.items():
        assert part.times(0.1) == pytest.approx(found.bases[basis])


def test_many_records_per_client_reduce_the_default_clients():
    assert (
        settle(Fleet(arrivals="poisson:1/s", records="rate=1B/s,for=1s,size=1B")).clients == DEFAULT_CLIENTS
    )
    few = settle(Fleet(arrivals="poisson:1/s", records="rate=1kB/s,for=1h,size=1B"))
    assert few.clients == 2500
    assert open_at_once(few) == pytest.approx(3600)
    assert open_at_once(settle(Fleet(arrivals="storm:1s", records=SENT))) == 10_000
    assert open_at_once(settle(Fleet(arrivals="storm:1s"))) == 0.0


def test_open_connections_follow_the_admitted_clients(tmp_path):
    refusing = Fleet(arrivals="poisson:1000/s", admission="rate=10/s,burst=5", records=SENT, servers=2)
    assert open_at_once(settle(refusing)) == pytest.approx(20 * 117 * 5.12)
    # A curve starts with the connections of its first rate.
    (tmp_path / "rates.txt").write_text("0,1000\n1,10\n")
    curve = settle(Fleet(arrivals="rates:rates.txt", records=SENT), tmp_path)
    assert open_at_once(curve) == pytest.approx(1000 * 117 * 5.12)


def test_records_that_pile_up_beyond_memory_are_refused(monkeypatch):
    monkeypatch.setattr(memory_limit, "free_bytes", lambda: 4 << 30)
    found = [Client(scenario(SUITE))]
    flood = settle(Fleet(arrivals="poisson:500/s", clients=2000, records="rate=1GB/s,for=10min,size=1KiB"))
    # 200 clients of a replication, and those before and after them, have 585,937,500 records each.
    arriving = 200 + sum(uncounted(found, flood))
    assert records_waiting(found, flood, 1) == pytest.approx(arriving * 585_937_500, rel=1e-3)
    with pytest.raises(InputError, match=r"records waiting, which .* GiB .*, or clients that send less"):
        check_room(found, flood, 1)
    served = settle(Fleet(arrivals="poisson:500/s", clients=2000, records=SENT))
    assert records_waiting(found, served, 1) == 0.0
    check_room(found, served, 1)


def test_row_has_the_work_of_records(shakedown):
    (row,) = printed(shakedown(*COMMAND, "--records", SENT, "--json"))
    (bare,) = printed(shakedown(*COMMAND, "--json"))
    assert "records" not in bare
    found = row["records"]
    assert (found["size_bytes"], found["interval_s"], found["count"]) == (512, 5.12, 117)
    work_s = found["work_s"]["estimate"]
    assert found["work_s"]["lower"] < work_s < found["work_s"]["upper"]
    assert found["work_s"]["basis"] == row["basis"] == "assumed"
    share = found["utilisation"]["estimate"]
    assert share == pytest.approx(400 * 117 * work_s, rel=0.02)
    assert row["utilisation"]["estimate"] == pytest.approx(bare["utilisation"]["estimate"] + share, rel=0.02)
    asked = row["offered"]["estimate"] - bare["offered"]["estimate"]
    assert asked == pytest.approx(400 * 117 * work_s, rel=1e-6)
    assert found["peak_open"] == pytest.approx(400 * 117 * 5.12, rel=0.05)
    assert found["wait_s"]["mean"] > 0.0
    assert row["job_wait_s"]["mean"] > bare["job_wait_s"]["mean"]
    assert row["modelled"] is None
    assert {one["operation"] for one in found["extrapolated"]} >= {"stack", "receive"}
    done = shakedown(*COMMAND, "--records", SENT)
    assert f"{share:.0%}" in done.stdout
    assert "each client sends 512 bytes every 5.12 s, 117 times; the server works ≈" in done.stdout
    # The estimate is far below what one server does; its upper end is not.
    most = row["offered"]["estimate"] + asked * (found["work_s"]["upper"] / work_s - 1.0)
    assert row["offered"]["estimate"] < 1.0 < most
    assert "each, the server would saturate)" in done.stdout
    little = shakedown(*COMMAND, "--records", "rate=1B/s,for=10min,size=512B").stdout
    assert "after its handshake" in little
    assert "saturate" not in little


def test_unknown_work_on_records_marks_the_row(shakedown):
    command = ("simulate", "tls1.2/psk", "--server-device", "palm-v", "--arrivals", "poisson:1/s")
    (row,) = printed(
        shakedown(*command, "--clients", "1000", "--records", "rate=1B/s,for=10s,size=1B", "--json")
    )
    found = row["records"]
    assert "server cipher aes-128-gcm" in found["work_s"]["missing"]
    # The work on handshakes lacks the same figure, and may leave less of the server for data.
    assert found["utilisation"]["estimate"] is found["utilisation"]["lower"] is None
    assert row["utilisation"]["lower"] > 0.0
    assert row["basis"] == "unknown"


def test_a_mixture_has_records_of_each_kind(shakedown, tmp_path):
    mix = tmp_path / "mix.toml"
    kinds = ((SUITE, 3), ("tls1.0/rsa/rsa2048/server", 1))
    mix.write_text("".join(f'[[clients]]\nsuite = "{suite}"\nweight = {weight}\n' for suite, weight in kinds))
    command = (
        "simulate",
        "--mix",
        mix,
        "--arrivals",
        "poisson:100/s",
        "--clients",
        "2000",
        "--records",
        SENT,
    )
    (row,) = printed(shakedown(*command, "--json"))
    works = [scenario(suite).record(512).total.mean for suite, _ in kinds]
    assert row["records"]["work_s"]["estimate"] == pytest.approx(0.75 * works[0] + 0.25 * works[1])
    assert "after its handshake each client sends 512 bytes" in shakedown(*command).stdout


def test_a_short_run_has_the_offered_share(shakedown):
    # Over NB-IoT no handshake is over within the second in which these clients come.
    short = ("simulate", SUITE, "--bearer", "nb-iot", "--arrivals", "poisson:400/s", "--replications", "1")
    (row,) = printed(shakedown(*short, "--clients", "400", "--records", SENT, "--json"))
    found = row["records"]
    assert row["ready_s"]["min"] > 0.5
    asked = 400 * 117 * found["work_s"]["estimate"]
    # Connections that are open at the start: 239,616 on average, give or take 490.
    assert found["utilisation"]["estimate"] == pytest.approx(asked, rel=0.01)


def test_capacity_includes_records_of_clients(shakedown, quick):
    asked = ("capacity", SUITE, "--bearer", "ethernet", "--within", "100ms", "--simulated")
    sent = ("--records", "rate=1kB/s,for=1min,size=4KiB")
    (row,) = printed(shakedown(*asked, *sent, "--json"))
    (bare,) = printed(shakedown(*asked, "--json"))
    assert "records" not in bare
    found = row["records"]
    assert (found["size_bytes"], found["count"]) == (4096, 14)
    # The queue saturates where handshakes and records together fill the worker.
    each_s = 1.0 / bare["limit_per_s"]["estimate"] + 14 * found["work_s"]["estimate"]
    assert row["limit_per_s"]["estimate"] == pytest.approx(1.0 / each_s, rel=1e-6)
    assert row["limit_per_s"]["lower"] < row["limit_per_s"]["estimate"] < row["limit_per_s"]["upper"]
    rate = row["rate_per_s"]["estimate"]
    assert 0.5 * row["limit_per_s"]["estimate"] < rate < row["limit_per_s"]["estimate"]
    assert rate < 0.8 * bare["rate_per_s"]["estimate"]
    assert row["utilisation"] == pytest.approx(rate * each_s, rel=0.05)
    assert row["modelled_rate_per_s"] is None
    assert bare["modelled_rate_per_s"] is not None
    done = shakedown(*asked, *sent)
    assert "by formula" not in done.stdout
    assert "after its handshake each client sends 4,096 bytes every 4." in done.stdout
    assert "14 times; the server works" in done.stdout


def test_unknown_record_cost_makes_the_capacity_an_upper_bound(shakedown, quick):
    asked = ("capacity", "tls1.2/psk", "--server-device", "palm-v", "--within", "100s", "--simulated")
    (row,) = printed(shakedown(*asked, "--records", "rate=1B/s,for=10s,size=5B", "--json"))
    assert "server cipher aes-128-gcm" in row["limit_per_s"]["missing"]
    assert row["rate_per_s"]["estimate"] is None
    assert row["rate_per_s"]["upper"] > 0.0
    assert row["basis"] == "unknown"


def test_capacity_validates_records_like_simulate(shakedown):
    asked = ("capacity", SUITE, "--within", "1s", "--records", "rate=1B/s")
    assert "--records requires --simulated" in shakedown(*asked).stderr
    wrong = shakedown(*asked, "--simulated")
    assert wrong.returncode == 2
    assert "size is missing" in wrong.stderr or "for is missing" in wrong.stderr


def test_a_file_of_arrivals_starts_with_no_connection(shakedown, tmp_path):
    (tmp_path / "times").write_text("".join(f"{n * 0.1:.1f}\n" for n in range(100)))
    command = ("simulate", SUITE, "--bearer", "ethernet", "--arrivals", f"file:{tmp_path / 'times'}")
    (row,) = printed(shakedown(*command, "--records", "rate=100B/s,for=1min,size=100B", "--json"))
    found = row["records"]
    assert (row["completed"], found["count"], found["peak_open"]) == (100, 60, 100)
    # Each sends one a second from when it is ready until the last client comes, at 9.9 s: 450 in all.
    assert found["wait_s"]["n"] == pytest.approx(450, abs=10)


def test_records_are_refused_with_engines(shakedown):
    done = shakedown("simulate", SUITE, "--endpoints", "--records", SENT)
    assert done.returncode == 2
    assert "records is not supported with endpoints; accepted: none" in done.stderr


def test_experiment_simulates_records(shakedown, tmp_path):
    (tmp_path / "e.toml").write_text(
        f'suites = ["{SUITE}"]\nrepeat = 3\n'
        '[simulated]\narrivals = ["poisson:100/s"]\nclients = 2000\n'
        f'records = ["{SENT}", "rate=1B/s,for=10min,size=512B"]\n'
    )
    done = shakedown("run", "e.toml", "--out", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    fleets = load_results(tmp_path / "out").fleets
    assert fleets["records"].to_list() == [SENT, "rate=1B/s,for=10min,size=512B"]
    much, little = fleets["records_utilisation"].to_list()
    assert much > 50 * little > 0.0
    wrong = tmp_path / "wrong.toml"
    wrong.write_text(f'suites = ["{SUITE}"]\n[simulated]\narrivals = ["storm:1s"]\nrecords = "rate=1B/s"\n')
    done = shakedown("validate", wrong)
    assert done.returncode == 2
    assert "key simulated.records" in done.stderr


def test_ctrl_c_keeps_the_finished_fleets(tmp_path):
    suites = [SUITE, "tls1.2/psk", "tls1.3/psk", "tls1.3/x25519/rsa2048/server"]
    (tmp_path / "e.toml").write_text(
        f"suites = {json.dumps(suites)}\nrepeat = 3\n"
        f'[simulated]\narrivals = ["poisson:100/s"]\nclients = 200000\nrecords = "{SENT}"\n'
    )
    command = [sys.executable, "-m", "shakedown", "run", "e.toml", "--out", "out"]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    limit_s, first = time.monotonic() + 300.0, tmp_path / "out" / f"part-{len(suites) + 1:04}.parquet"
    # Four fleets of some seconds each, after four measurements: when the first is saved, the others are not.
    while process.poll() is None and not first.exists():
        assert time.monotonic() < limit_s
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=200)
    assert process.returncode == 130, said
    found = load_results(tmp_path / "out")
    assert not found.is_whole
    assert 1 <= found.fleets.height < len(suites)
    assert found.fleets["suite"][0] == SUITE
    assert found.fleets["records_utilisation"][0] > 0.0


def test_data_due_after_the_last_handshake_is_counted(shakedown):
    """The clients of a storm of 1 s send four times, every 5 s; those at a rate send as before."""
    sends = ("--clients", "200", "--records", "rate=100B/s,for=20s,size=500B")
    storm = ("simulate", SUITE, "--arrivals", "storm:1s", *sends)
    (row,) = printed(shakedown(*storm, "--json"))
    assert row["records"]["wait_s"]["n"] == 0
    assert row["records"]["not_simulated"] == 4 * row["completed"] == 800
    assert (
        "the run ends with the last handshake: 800 of these sends are due later and not simulated"
        in shakedown(*storm).stdout
    )
    steady = shakedown("simulate", SUITE, "--arrivals", "poisson:20/s", *sends, "--json")
    assert printed(steady)[0]["records"]["not_simulated"] is None
