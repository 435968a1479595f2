"""`aka run`: attaches in virtual time, from the command line."""

from __future__ import annotations

import json

import pytest

from runs import printed
from shakedown.schema.aka import AttachRun

PAPER = "tls1.0/dhe_rsa+dh1024/rsa1024/mutual/3des-sha"


@pytest.fixture
def run(shakedown):
    def found(*options: str) -> dict:
        done = shakedown("aka", "run", *options, "--json")
        (one,) = printed(done, AttachRun)
        return one

    return found


def test_attaches_resume_within_thresholds_and_repeat_with_the_seed(run):
    options = ("--bearer", "gprs", "--attaches", "12", "--max-resumptions", "3", "--gap", "1s")
    found = run(*options, "--samples")
    assert (found["completed"], found["failed"]) == (12, {})
    # One full handshake, three resumptions, and so on.
    assert (found["full"]["attaches"], found["resumed"]["attaches"]) == (3, 9)
    assert found["not_resumed"] == {"too_often": 2}
    assert found["suite"] == "tls1.2/ecdhe_ecdsa+x25519/p256@p256@p256/mutual"
    for kind in ("full", "resumed"):
        times = found[kind]
        # So few attaches give no 95th percentile.
        assert times["tht_s"]["p50"] is not None
        assert times["tht_s"]["p95"] is times["tht_s"]["p99"] is None
        assert times["nrt_s"]["mean"] < times["tht_s"]["mean"] < times["attach_s"]["mean"]
        sums = zip(times["rpt_s"]["samples"], times["tht_s"]["samples"], strict=True)
        assert times["tst_s"]["samples"] == pytest.approx([rpt + tht for rpt, tht in sums])
        assert times["handshake_bytes"]["up"] < times["wire_bytes"]["up"]
    # A full handshake takes two round trips and 2.7 kB, a resumed one takes one and 0.4 kB.
    assert found["resumed"]["tht_s"]["mean"] < 0.5 * found["full"]["tht_s"]["mean"]
    assert found["resumed"]["queries"] == 0
    assert run(*options, "--samples") == found
    assert run(*options, "--seed", "2")["full"]["tht_s"] != found["full"]["tht_s"]


def test_old_sessions_are_not_resumed_and_sessions_move_with_their_mobiles(run):
    found = run("--attaches", "20", "--gap", "100s", "--max-age", "0s", "--bearer", "wifi-11b")
    assert found["resumed"] is None
    assert found["not_resumed"] == {"too_old": 19}
    found = run("--attaches", "30", "--gap", "1s", "--moves", "0.5", "--bearer", "wifi-11b", "--mobiles", "3")
    assert found["handed_over"] > 0
    # Each mobile makes one session and keeps it wherever it goes.
    assert (found["full"]["attaches"], found["resumed"]["attaches"]) == (3, 27)
    assert found["resumed"]["queries"] > 0


def test_suite_of_the_paper_runs_with_two_level_chains(run):
    found = run(
        *("--suite", PAPER, "--bearer", "gprs-cs1", "--attaches", "5", "--max-resumptions", "0"),
        *("--background", "2/s", "--preparation", "36ms"),
    )
    assert found["suite"] == "tls1.0/dhe_rsa+dh1024/rsa1024@rsa1024@rsa1024/mutual/3des-sha"
    assert found["resumed"] is None
    assert found["background_served"] > 0
    full = found["full"]
    assert full["rpt_s"]["mean"] == pytest.approx(full["nrt_s"]["mean"] + 0.036)


def test_without_roaming_no_cross_certificate_is_requested(run):
    home = run("--at-home", "--attaches", "1")["full"]["queries"]
    assert (home, run("--attaches", "1")["full"]["queries"]) == (1, 2)


def test_radios_that_are_idle_before_each_attach_are_set_up_first(run, shakedown):
    """The set-up over UMTS takes at least 1.5 s, and every attach begins with one."""
    options = ("--bearer", "umts", "--attaches", "6", "--gap", "1s")
    idle, connected = run(*options, "--from-idle"), run(*options)
    assert (idle["from_idle"], connected["from_idle"]) == (True, False)
    for kind in ("full", "resumed"):
        assert idle[kind]["nrt_s"]["min"] > connected[kind]["nrt_s"]["max"] + 1.0
    assert ", roaming, from idle\n" in shakedown("aka", "run", *options, "--from-idle").stdout
    nothing = shakedown("aka", "run", "--bearer", "ethernet", "--attaches", "1", "--from-idle")
    assert (nothing.returncode, nothing.stderr.count("--from-idle changes nothing over ethernet")) == (0, 1)


def test_run_fails_only_if_no_mobile_attached(shakedown):
    none = shakedown("aka", "run", "--bearer", "gprs", "--attaches", "3", "--timeout", "1ms", "--json")
    assert (none.returncode, json.loads(none.stdout)[0]["failed"]) == (1, {"timeout": 3})
    assert none.stderr.endswith("error: no attach of 3 was completed: 3 timeout\n")
    # A resumed attach takes some 2.5 s over GPRS, a full one 5.4 s.
    some = shakedown("aka", "run", "--bearer", "gprs", "--attaches", "40", "--timeout", "5.2s", "--json")
    (found,) = json.loads(some.stdout)
    assert 0 < found["completed"] < 40
    assert some.returncode == 0
    assert f"{40 - found['completed']} of 40 attaches failed: " in some.stderr


def test_work_without_a_cost_figure_is_named(shakedown):
    options = ("aka", "run", "--attaches", "3", "--device", "stm32n6", "--suite", "tls1.0/rsa/rsa1024/mutual")
    said = shakedown(*options)
    assert said.returncode == 0, said.stderr
    (found,) = json.loads(shakedown(*options, "--json").stdout)
    missing = found["mobile"]["without_cost"]
    assert missing
    assert found["mobile"]["basis"] == "unknown"
    assert "all times are lower bounds: some work has no figure" in said.stdout
    for part in missing:
        what = " ".join(word for word in (part["operation"], part["algorithm"], part["parameters"]) if word)
        assert f"no figure: client {what}: {part['reason']}" in said.stdout
    assert "{" not in said.stdout
    lines = [line for line in said.stdout.splitlines() if line.startswith(("full ", "resumed "))]
    assert lines
    assert all(line.count("≥ ") >= 2 for line in lines)
    assert all(("unknown" in line) == line.startswith("resumed") for line in lines)


def test_costs_that_are_in_part_assumed_are_named(shakedown):
    options = ("aka", "run", "--attaches", "2", "--bearer", "nb-iot", "--device", "cortex-m4")
    said = shakedown(*options)
    (found,) = json.loads(shakedown(*options, "--json").stdout)
    assert (found["mobile"]["basis"], found["sgsn"]["basis"]) == ("assumed", "assumed")
    assert "costs in part assumed\n" in said.stdout
    assert "≥" not in said.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("run", "--suite", "tls1.3/x25519/p256/mutual"), "accepted: tls1.0, tls1.1, tls1.2"),
        (("run", "--suite", "tls1.2/psk"), "accepted: key exchanges with certificates"),
        (("run", "--suite", "tls1.2/nonsense"), "nonsense"),
        (("run", "--attaches", "0"), '"0" is out of range; accepted: 1 to 1,000,000'),
        (("run", "--moves", "2"), '"2" is not a share; accepted: 0 to 1'),
        (("run", "--bearer", "carrier-pigeon"), "carrier-pigeon"),
        (("run", "--gap", "nan"), "nan"),
        (("run", "--device", "ipaq-h3970"), "has no primitives"),
        (("hss", "--listen", "127.0.0.1:0", "--register", "/nowhere.json"), "No such file or directory"),
        (("hss", "--listen", "somewhere", "--register", "/nowhere.json"), "accepted: ADDRESS:PORT"),
        (("sgsn", "--listen", "127.0.0.1:0", "--node", "/nowhere.json"), "No such file or directory"),
        (("mobile", "--sgsn", "127.0.0.1:1", "--card", "/nowhere.json"), "No such file or directory"),
        (("provision", "/dev/null/x"), "Not a directory"),
        (("provision", "{tmp}/x", "--home", "2020"), "accepted: 5 or 6 digits"),
        (("provision", "{tmp}/x", "--sgsn", "A/B"), "accepted: 1 to 32 of a-z, 0-9, '-'"),
    ],
)
def test_wrong_input_is_reported_in_one_line(shakedown, tmp_path, arguments, says):
    done = shakedown("aka", *(one.replace("{tmp}", str(tmp_path)) for one in arguments))
    assert (done.returncode, done.stdout) == (2, "")
    lines = [line for line in done.stderr.splitlines() if not line.startswith("no recorded trace")]
    (line,) = lines
    assert line.startswith("error: ")
    assert says in line
    assert "os error" not in line
