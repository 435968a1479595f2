"""The command `simulate`: rows, the same for the same seed; wrong input in one line."""

from __future__ import annotations

import json

import pytest

from runs import printed
from shakedown.cli import exit_status
from shakedown.schema.base import convert
from shakedown.schema.simulated import Simulated, SimulatedCapacity

SUITE = "tls1.3/x25519/p256/server"


def test_row_has_counts_and_times_of_the_clients(shakedown):
    arguments = ("--arrivals", "poisson:50/s", "--clients", "1000", "--seed", "7", "--json")
    (row,) = printed(shakedown("simulate", "tls1.3/x25519", *arguments))
    found = convert(row, Simulated)
    assert found.suite == SUITE
    assert (found.kind, found.clients, found.seed, found.workers) == ("simulated", 1000, 7, 1)
    assert (found.device, found.server_device, found.bearer) == ("phone", "server", "lte")
    assert found.completed + sum(found.failed.values()) == found.clients == found.ready_s.n
    assert set(row["ready_s"]) >= {"mean", "p50", "p90", "p95", "p99", "max"}
    ordered = [row["ready_s"][name] for name in ("min", "p50", "p90", "p95", "p99", "max")]
    assert ordered == sorted(ordered)
    assert 0.0 < found.utilisation.estimate < 0.1
    assert found.unstable is False
    assert found.modelled is not None
    assert found.virtual_s >= found.recovery_s.estimate > 1000 / 50 / 2 / 10


def test_percentiles_of_too_few_clients_are_omitted_with_a_note(shakedown):
    storm = ("simulate", SUITE, "--arrivals", "storm:1s", "--clients", "50")
    (row,) = printed(shakedown(*storm, "--json"))
    times = row["ready_s"]
    assert times["p99"] is times["p99_margin"] is None
    assert times["p50"] < times["p90"] < times["p95"] < times["max"]
    lines = shakedown(*storm).stdout.splitlines()
    assert "–: too few clients; p99 needs 100" in lines
    assert "too few" not in shakedown(*storm, "--columns", "suite,p95").stdout


def test_lower_bounds_of_percentiles_are_in_order(shakedown):
    """Two replications leave wide intervals, whose lower ends are below the minimum."""
    options = ("--bearer", "5g", "--device", "palm-vii", "--clients", "20", "--arrivals", "storm:1s")
    (row,) = printed(shakedown("simulate", SUITE, *options, "--replications", "2", "--json"))
    for name in ("ready_s", "done_s"):
        found = row[name]
        assert found["missing"]
        assert found["min"] > 0.0
        assert found["p50_margin"] > 0.0
        assert found["min"] <= found["mean"] <= found["max"]
        assert found["min"] <= found["p50"] <= found["p90"] <= found["p95"] <= found["max"]


def test_equal_seeds_give_equal_bytes_and_others_differ(shakedown):
    storm = ("--bearer", "nb-iot", "--arrivals", "storm:5s", "--clients", "300")
    command = ("simulate", SUITE, *storm, "--json")
    first, again, other = (shakedown(*command, "--seed", seed).stdout for seed in ("1", "1", "2"))
    assert first == again
    assert first != other


def test_a_storm_has_a_time_series_that_counts_every_client(shakedown):
    storm = ("--arrivals", "storm:2s", "--clients", "500")
    (row,) = printed(shakedown("simulate", SUITE, *storm, "--json"))
    for name, count in (("arrived", 500), ("completed", row["completed"]), ("failed", 0)):
        assert sum(interval[name] for interval in row["series"]) == count
    last = max(one["start_s"] for one in row["series"] if one["completed"])
    assert last <= row["recovery_s"]["estimate"] <= last + row["series_s"]
    assert row["rate_per_s"] is None
    assert row["modelled"] is None


@pytest.mark.parametrize("idle", [(), ("--from-idle",)])
@pytest.mark.parametrize(("device", "bearer"), [("phone", "ethernet"), ("cortex-m4", "nb-iot")])
def test_modelled_figures_beside_the_simulation_match_predict(shakedown, device, bearer, idle):
    place = ("--device", device, "--bearer", bearer, *idle, "--json")
    (row,) = printed(shakedown("simulate", SUITE, "--arrivals", "poisson:0.1/s", "--clients", "4000", *place))
    (predicted,) = printed(shakedown("predict", SUITE, "--rate", "0.1/s", *place))
    assert row["modelled"]["ready_s"] == pytest.approx(predicted["ready_s"]["mean"], rel=1e-9)
    for name in ("mean", "p50", "p95"):
        assert row["ready_s"][name] == pytest.approx(predicted["ready_s"][name], rel=0.03)


def test_overload_is_simulated_and_marked_unstable(shakedown):
    command = ("simulate", SUITE, "--arrivals", "poisson:10000/s", "--clients", "5000")
    (row,) = printed(shakedown(*command, "--json"))
    assert row["unstable"]
    assert row["offered"]["estimate"] > 1.0
    assert row["completed"] == 5000
    assert row["modelled"]["ready_s"] is None
    done = shakedown(*command)
    assert "unstable" in done.stdout
    assert "no steady state" in done.stdout


def test_clients_that_time_out_retry_and_increase_the_load(shakedown):
    command = ("simulate", SUITE, "--arrivals", "storm:0.1s", "--clients", "4000", "--json")
    (calm,) = printed(shakedown(*command))
    (hasty,) = printed(shakedown(*command, "--timeout", "0.3s", "--retries", "2"))
    assert calm["attempts"] == calm["completed"] == 4000
    assert hasty["attempts"] > 4000
    assert hasty["failed"] == {"timeout": 4000 - hasty["completed"]} != {"timeout": 0}


def test_storm_with_failed_clients_has_no_recovery_time(shakedown):
    storm = ("simulate", SUITE, "--arrivals", "storm:0.1s", "--clients", "400", "--json")
    for timeout, some in (("10s", True), ("0.16s", True), ("0.01s", False)):
        (row,) = printed(shakedown(*storm, "--timeout", timeout))
        assert (row["last_ready_s"]["estimate"] is not None) == bool(row["completed"]) == some
        recovered = None if row["failed"] else row["last_ready_s"]["estimate"]
        assert row["recovery_s"]["estimate"] == recovered
        assert bool(row["failed"]) == (timeout != "10s")


def test_suites_with_equal_retry_options_share_a_note(shakedown):
    suites = ("tls1.2/psk", SUITE)
    storm = ("--arrivals", "storm:0.1s", "--clients", "4000", "--timeout", "0.3s", "--retries", "2")
    lines = [line for line in shakedown("simulate", *suites, *storm).stdout.splitlines() if "tried" in line]
    attempts = [row["attempts"] - 4000 for row in printed(shakedown("simulate", *suites, *storm, "--json"))]
    assert min(attempts) > 1
    times = ", ".join(f"{suite} {again:,} times" for suite, again in zip(suites, attempts, strict=True))
    assert [line.partition("): ")[2] for line in lines] == [times]


def test_resumption_reduces_server_utilisation(shakedown):
    load = ("--arrivals", "poisson:1000/s", "--clients", "2000")
    command = ("simulate", "tls1.2/rsa/rsa2048/server", *load, "--json")
    (full,) = printed(shakedown(*command))
    (resumed,) = printed(shakedown(*command, "--resumption", "1"))
    # No public-key operation is left.
    assert resumed["utilisation"]["estimate"] < 0.6 * full["utilisation"]["estimate"]
    assert resumed["resumption"] == 1.0


def test_idle_radio_adds_its_setup_time(shakedown):
    few = ("--arrivals", "poisson:1/s", "--clients", "1000")
    command = ("simulate", SUITE, "--bearer", "nb-iot", *few, "--json")
    (connected,) = printed(shakedown(*command))
    (idle,) = printed(shakedown(*command, "--from-idle"))
    later = idle["ready_s"]["mean"] - connected["ready_s"]["mean"]
    assert 1.8 < later < 2.2  # the profile's set-up: median 1.99 s


def test_arrivals_come_from_a_file(shakedown, tmp_path):
    (tmp_path / "times.txt").write_text("0\n100\n200\n")
    (row,) = printed(shakedown("simulate", SUITE, "--arrivals", "file:times.txt", "--json", cwd=tmp_path))
    assert row["clients"] == 3
    assert 200.0 < row["recovery_s"]["estimate"] < 201.0


def test_each_suite_has_a_row_and_a_failed_one_has_its_reason(shakedown):
    done = shakedown("simulate", SUITE, "dtls1.2/psk", "--arrivals", "storm:1s", "--clients", "100", "--json")
    first, second = printed(done)
    assert first["completed"] == 100
    assert second["suite"] == "dtls1.2/psk"
    assert "no stack here runs" in second["error"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--arrivals", "poisson:0/s"), "a rate above 0"),
        (("--arrivals", "storm:soon"), "is not a duration"),
        (("--clients", "0"), "clients is 0"),
        (("--clients", "many"), "many"),
        (("--server-workers", "0"), "workers"),
        (("--server-workers", "1000000"), '"1000000" is out of range; accepted: 1 to 100,000'),
        (("--seed", "-1"), "seed is -1"),
        (("--timeout", "0"), "timeout is 0"),
        (("--resumption", "2"), '"2" is not a share'),
        (("--replications", "7"), "a divisor"),
        (("--discipline", "lifo"), "lifo"),
        (("--bearer", "carrier-pigeon"), "carrier-pigeon"),
    ],
)
def test_wrong_input_is_reported_in_one_line(shakedown, arguments, says):
    done = shakedown("simulate", SUITE, *arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert says in done.stderr


def test_resumption_of_a_resumed_suite_is_refused(shakedown):
    done = shakedown("simulate", f"{SUITE}/resumed", "--resumption", "0.5")
    assert done.returncode == 2
    assert "resumes already" in done.stderr


def test_capacity_by_simulation_agrees_with_the_formula(shakedown, monkeypatch, capsys):
    monkeypatch.setattr("shakedown.simulation.capacity.MAX_EVENTS", 60_000_000)
    monkeypatch.setattr("shakedown.simulation.capacity.MAX_EVENTS_TRIED", 20_000_000)
    # One flight at the server decides: formula and simulation mean the same.
    asked = ("capacity", "tls1.3/x25519", "--within", "200ms", "--bearer", "lte", "--simulated", "--json")
    assert exit_status(asked) == 0
    (row,) = json.loads(capsys.readouterr().out)
    found = convert(row, SimulatedCapacity)
    assert found.rate_per_s.estimate == pytest.approx(found.modelled_rate_per_s.estimate, rel=0.03)
    assert found.ready_s is not None
    assert found.ready_s.mean is not None
    assert found.ready_s.mean <= 0.2
    done = shakedown("capacity", "tls1.3/x25519", "--within", "1ms", "--simulated")
    assert "unreachable" in done.stdout
    assert "ready after 148 ms on average even at the lowest rate tried" in done.stdout
    assert shakedown("capacity", "tls1.3/x25519", "--within", "1s", "--seed", "3").returncode == 2
    assert shakedown("capacity", SUITE, "--within", "1s", "--simulated", "--percentile", "98").returncode == 2
