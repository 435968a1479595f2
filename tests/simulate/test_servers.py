"""Several servers, pauses between attempts, and arrivals by time of day or from a log."""

from __future__ import annotations

import math
import re

import pytest

from runs import printed
from shakedown.errors import InputError
from shakedown.native.scenario import Fleet
from shakedown.simulation.admission import Admission, parse_admission
from shakedown.simulation.arrivals import parse_arrivals
from shakedown.simulation.autoscaling import Autoscaling, parse_autoscaling
from shakedown.simulation.fleet import settle
from shakedown.simulation.rate_curves import mean_clients
from shakedown.simulation.retry import CONSTANT, Backoff, parse_backoff

SUITE = "tls1.2/rsa/rsa2048/server"


def test_backoff_is_parsed_and_passed_to_the_core():
    assert parse_backoff("base=500ms, factor=3,max=1min,jitter=half") == Backoff(0.5, 3.0, 60.0, 0.5)
    assert parse_backoff("jitter=none") == Backoff(jitter=0.0)
    # The longest pause is never shorter than the first.
    assert parse_backoff("base=2min,factor=1") == Backoff(120.0, 1.0, 120.0)
    assert settle(Fleet(arrivals="storm:1s", retries=2)).backoff == CONSTANT
    settled = settle(Fleet(arrivals="storm:1s", retry="base=2s"))
    assert settled.retry == {"attempts": 11, "delay_s": 2.0, "factor": 2.0, "maximum_s": 60.0, "jitter": 1.0}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ("--arrivals", "storm:1s+backoff"),
            "--timeout 30s --retries 10 --retry base=1s,factor=2,max=60s,jitter=full",
        ),
        (
            ("--arrivals", "storm:1s", "--retries", "3", "--timeout", "500ms"),
            "--timeout 0.5s --retries 3 --retry base=1s,factor=1,jitter=none",
        ),
        (
            ("--arrivals", "storm:1s", "--retries", "2", "--timeout", "2s", "--retry", "base=3s,jitter=0.2"),
            "--timeout 2s --retries 2 --retry base=3s,factor=2,max=60s,jitter=0.2",
        ),
    ],
)
def test_row_names_the_options_that_control_retries(shakedown, options, said):
    """Defaults are named, too; given as options, they describe the same fleet."""
    slow = ("--server-device", "cortex-m4", "--clients", "300", "--bearer", "nb-iot:congestion=reno")
    command = ("simulate", SUITE, *slow, *options)
    shown = shakedown(*command).stdout
    assert f"times ({said})" in shown
    assert shakedown(*command, *said.split()).stdout == shown
    (row,) = printed(shakedown(*command, "--json"))
    assert (row["tcp"]["congestion"], row["tcp"]["initial_window"]) == ("reno", 10)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("bas=1s", "base"),
        ("base=1s,base=2s", "twice"),
        ("factor=0.5", "a factor from 1"),
        ("jitter=lots", "none, half, full"),
        ("base=soon", "soon"),
        ("max=1000000d", "accepted"),
        ("base=2s,max=1s", "max is below base; accepted: 2 s at least"),
        ("full", "accepted"),
    ],
)
def test_wrong_backoff_is_refused(text, said):
    with pytest.raises(InputError, match=said):
        settle(Fleet(arrivals="storm:1s", retry=text))


def test_diurnal_arrivals_have_the_given_mean_and_peak():
    arrivals = parse_arrivals("diurnal:10/s,peak=18h,swing=0.5")
    assert mean_clients(arrivals.points) == pytest.approx(10 * 86_400)
    assert max(arrivals.points, key=lambda point: point[1]) == (18 * 3600.0, pytest.approx(15.0))
    assert min(per_s for _, per_s in arrivals.points) == pytest.approx(5.0)
    assert settle(Fleet(arrivals="diurnal:0.1/s")).clients == 8640


def test_rates_come_from_a_file(shakedown, tmp_path):
    (tmp_path / "rates.csv").write_text("seconds,per second\n0,0\n10,40 # rises\n20,40\n20.5,0\n")
    arguments = ("--arrivals", "rates:rates.csv", "--json")
    (row,) = printed(shakedown("simulate", SUITE, *arguments, cwd=tmp_path))
    # 200 + 400 + 10 on average, Poisson-distributed.
    assert abs(row["clients"] - 610) < 5 * 610**0.5
    assert row["precision"] is None
    assert sum(one["arrived"] for one in row["series"]) == row["clients"]
    done = shakedown("simulate", SUITE, *arguments, "--clients", "5", cwd=tmp_path)
    assert done.returncode == 2
    assert "accepted: no number" in done.stderr


def test_clients_arrive_at_the_times_of_an_access_log(shakedown, tmp_path):
    line = '192.0.2.1 - - [10/Oct/2026:13:55:{second:02} +0200] "GET / HTTP/1.1" 200 12\n'
    (tmp_path / "access.log").write_text("".join(line.format(second=second) for second in (36, 38, 37, 37)))
    assert list(parse_arrivals("log:access.log", tmp_path).at_s) == [0.5, 1.25, 1.75, 2.5]
    (row,) = printed(shakedown("simulate", SUITE, "--arrivals", "log:access.log", "--json", cwd=tmp_path))
    assert row["clients"] == 4


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        ("rates", "0,1\nhalf,2\n", "line 2"),
        ("rates", "1,1\n2,2\n", "from 0"),
        ("rates", "0,1\n0,2\n", "line 2"),
        ("rates", "0,0\n1,0\n", "above 0"),
        ("log", "GET /\n", "line 1"),
        ("log", "\n", "no lines"),
    ],
)
def test_wrong_files_are_refused_with_their_line(tmp_path, kind, text, said):
    (tmp_path / "it").write_text(text)
    with pytest.raises(InputError, match=said):
        parse_arrivals(f"{kind}:it", tmp_path)


def test_hash_balance_equals_separate_single_server_fleets(shakedown):
    alone = ("simulate", SUITE, "--bearer", "ethernet", "--json")
    command = (*alone, "--servers", "4")
    (one,) = printed(shakedown(*command, "--arrivals", "poisson:6000/s", "--balance", "hash"))
    (quarter,) = printed(shakedown(*alone, "--arrivals", "poisson:1500/s", "--seed", "2"))
    assert one["precision"]["is_met"]
    assert one["utilisation"]["estimate"] == pytest.approx(6000 / 4 * 0.000391444, rel=0.02)
    wait, same = one["queue_wait_s"], quarter["queue_wait_s"]
    assert abs(wait["mean"] - same["mean"]) < 1.8 * math.hypot(wait["margin"], same["margin"])
    assert one["modelled"]["ready_s"] == pytest.approx(quarter["modelled"]["ready_s"])
    (least,) = printed(shakedown(*command, "--arrivals", "poisson:6000/s", "--balance", "least-connections"))
    assert least["modelled"] is None
    assert least["queue_wait_s"]["mean"] < 0.5 * wait["mean"]


def test_a_run_that_is_too_short_is_marked(shakedown):
    command = ("simulate", SUITE, "--bearer", "ethernet", "--arrivals", "poisson:2300/s")
    done = shakedown(*command, "--clients", "2000")
    assert done.returncode == 0
    assert "! " in done.stdout
    assert "target ± 5%" in done.stdout
    (row,) = printed(shakedown(*command, "--clients", "2000", "--json"))
    assert row["clients"] == 2000
    assert not row["precision"]["is_met"]
    (longer,) = printed(shakedown(*command, "--precision", "20%", "--json"))
    assert longer["precision"]["is_met"]
    assert longer["precision"]["reached"] <= 0.2
    assert longer["clients"] >= 100_000


def test_admission_and_autoscaling_are_parsed():
    assert parse_admission("rate=60/min, burst=5") == Admission(1.0, 5, "reset")
    assert parse_admission("refuse=silence,rate=2/s").spec() == {
        "per_s": 2.0,
        "burst": 1,
        "refusal": "silence",
    }
    found = parse_autoscaling("max=9,up=0.9,down=10%,queue=4,startup=2min", 3)
    assert found == Autoscaling(9, 0.9, 0.1, up_waiting=4.0, startup_s=120.0)
    assert settle(Fleet(arrivals="poisson:1/s")).autoscaling is None


@pytest.mark.parametrize(
    ("option", "text", "said"),
    [
        ("admission", "burst=5", "rate is missing"),
        ("admission", "rate=0/s", "1e-06/s to"),
        ("admission", "rate=1/s,burst=0", "from 1"),
        ("admission", "rate=1/s,refuse=drop", "reset, alert, silence"),
        ("autoscale", "up=80%", "max is missing"),
        ("autoscale", "max=1", "servers is 2"),
        ("autoscale", "max=4,up=30%,down=30%", "not below"),
        ("autoscale", "max=4,up=80", "0% to 100%"),
        ("autoscale", "max=4,interval=0s", "0.001"),
        ("sessions", "lifetime=2h", "interval is missing"),
        ("sessions", "interval=2h", "lifetime is missing"),
    ],
)
def test_wrong_limits_are_refused(option, text, said):
    with pytest.raises(InputError, match=re.escape(said)):
        settle(Fleet(arrivals="storm:1s", servers=2, **{option: text}))


def test_token_bucket_refuses_clients_above_its_rate(shakedown):
    command = ("simulate", SUITE, "--bearer", "ethernet", "--arrivals", "storm:1s", "--clients", "2000")
    limit = ("--admission", "rate=500/s,burst=100,refuse=reset")
    (row,) = printed(shakedown(*command, *limit, "--json"))
    found = row["admission"]
    # 100 at once and 500/s for a second; without retries a refused client fails.
    assert abs(found["admitted"] - 600) <= 1
    assert row["failed"] == {"refused": found["refused"]}
    assert row["completed"] == found["admitted"]
    assert sum(one["refused"] for one in row["series"]) == found["refused"]
    done = shakedown(*command, *limit)
    assert f"servers refused {found['refused']:,} of 2,000 connections by reset" in done.stdout
    refused = shakedown("simulate", "wtls/rsa/rsa1024/server", *command[2:], *limit)
    assert "accepted without TCP: silence" in refused.stdout + refused.stderr


def test_autoscaling_starts_servers_in_a_storm(shakedown):
    command = ("simulate", SUITE, "--bearer", "ethernet", "--arrivals", "storm:5s", "--clients", "20000")
    scale = ("--autoscale", "max=3,interval=1s,startup=1s")
    (row,) = printed(shakedown(*command, *scale, "--json"))
    found = row["autoscaling"]
    assert (found["peak"], found["started"], found["stopped"]) == (3, 2, 0)
    # The load is checked at 1 and 2 s; each new server serves a second later.
    assert found["starting_s"] == 2.0
    assert found["server_s"] == pytest.approx(1 * 2.0 + 2 * 1.0 + 3 * (row["virtual_s"] - 3.0))
    assert [one["servers"] for one in row["series"] if one["start_s"] in (0.0, 4.0)] == [1.0, 3.0]
    done = shakedown(*command, *scale)
    assert "up to 3 servers in service; 2 started, 0 stopped" in done.stdout
    (alone,) = printed(shakedown(*command, "--json"))
    assert alone["autoscaling"] is None
    assert alone["series"][0]["servers"] is None
    assert row["recovery_s"]["estimate"] < 0.9 * alone["recovery_s"]["estimate"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--arrivals", "storm:1s", "--precision", "5%"), "accepted with a rate"),
        (("--max-events", "5", "--clients", "100"), "one of them"),
        (("--precision", "0"), "0.1%"),
        (("--servers", "0"), "servers is 0"),
        (("--servers", "2", "--endpoints"), "servers"),
        (("--autoscale", "max=2", "--balance", "hash"), "least-connections"),
        (("--admission", "rate=1/s", "--endpoints"), "admission"),
    ],
)
def test_conflicting_options_are_refused(shakedown, arguments, said):
    done = shakedown("simulate", SUITE, *arguments)
    assert done.returncode == 2
    assert said in done.stderr


LEAST = " (with the least work: a part of it has no figure)"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--admission", "rate=20/s,burst=5,refuse=reset"), ("servers refused", "failed: ")),
        (("--admission", "rate=20/s,burst=5,refuse=reset", "--retries", "2"), ("clients tried again",)),
        (("--autoscale", "max=3,interval=1s,startup=1s"), (" in service; ",)),
        (("--records", "rate=1B/s,for=10s,size=1B"), ("connections were open",)),
    ],
)
def test_counts_for_the_least_work_have_a_note(shakedown, options, said):
    arrivals = "poisson:1/s" if options[0] == "--records" else "storm:1s"
    common = ("--bearer", "ethernet", "--arrivals", arrivals, "--clients", "1000", "--seed", "1")
    for server, remark in (("palm-v", LEAST), ("server", "")):
        lines = shakedown("simulate", "tls1.2/psk", "--server-device", server, *common, *options).stdout
        for words in said:
            [line] = [one for one in lines.splitlines() if words in one and not one.startswith("–")]
            assert line.endswith(LEAST) == bool(remark), line
            assert " 1 servers" not in line


def test_failures_are_unknown_if_the_work_is_unknown(shakedown):
    command = ("simulate", "tls1.2/psk", "--bearer", "ethernet", "--arrivals", "storm:1s", "--clients", "200")
    failed = {}
    for server in ("palm-v", "server"):
        for limit in ((), ("--admission", "rate=20/s,burst=5,refuse=reset")):
            done = shakedown(*command, "--server-device", server, *limit, "--columns", "suite,failed")
            [line] = [one for one in done.stdout.splitlines() if one.startswith("tls1.2/psk ")]
            failed[server, bool(limit)] = line.removeprefix("tls1.2/psk").strip()
    assert failed["server", False] == "none"
    assert failed["palm-v", False] == "unknown"
    assert failed["palm-v", True].startswith("≥ ")
    assert failed["server", True].endswith("%")
    assert not failed["server", True].startswith("≥")
