"""`simulate --mix`: clients of several kinds at one server; invalid files in one line."""

from __future__ import annotations

import json

import pytest

import shakedown as lab
from shakedown.native.scenario import Mix
from shakedown.schema.base import convert
from shakedown.schema.simulated import SimulatedMix

SUITE = "tls1.3/x25519/p256/server"
QUANTUM = "tls1.3/x25519mlkem768/mldsa65/server"

MIX = f"""
[[clients]]
suite = "{SUITE}"
weight = 3

[[clients]]
suite = "{QUANTUM}"
device = "cortex-m4"
bearer = "nb-iot"
"""


def mixed(shakedown, folder, text, *arguments):
    """The row, or the line on standard error."""
    (folder / "mix.toml").write_text(text)
    done = shakedown("simulate", "--mix", "mix.toml", *arguments, "--json", cwd=folder)
    if done.returncode == 0:
        (row,) = json.loads(done.stdout)
        return row
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    return done.stderr


def test_each_kind_has_its_share_and_its_own_times(shakedown, tmp_path):
    row = mixed(shakedown, tmp_path, MIX, "--arrivals", "poisson:50/s", "--clients", "8000", "--seed", "3")
    found = convert(row, SimulatedMix)
    phone, meter = found.kinds
    assert (found.mix, found.seed, found.clients) == ("mix", 3, 8000)
    assert (phone.suite, phone.device, phone.bearer, phone.share) == (SUITE, "phone", "lte", 0.75)
    assert (meter.suite, meter.device, meter.bearer, meter.share) == (QUANTUM, "cortex-m4", "nb-iot", 0.25)
    # Binomial: five standard deviations of 8000 draws at 0.75 are 194.
    assert abs(phone.clients - 6000) < 194
    assert phone.clients + meter.clients == 8000 == found.completed
    assert phone.ready_s.p50 < 0.3 < 3.0 < meter.ready_s.p50
    means = sum(one.ready_s.mean * one.clients for one in found.kinds) / 8000
    assert found.ready_s.mean == pytest.approx(means, rel=1e-9)


def test_mixture_of_one_kind_equals_a_plain_fleet(shakedown, tmp_path):
    load = ("--arrivals", "poisson:1000/s", "--clients", "3000", "--resumption", "0.4")
    row = mixed(shakedown, tmp_path, f'[[clients]]\nsuite = "{SUITE}"\n', *load)
    (alone,) = json.loads(shakedown("simulate", SUITE, *load, "--json").stdout)
    for name in ("ready_s", "done_s", "queue_wait_s", "utilisation", "traffic", "recovery_s"):
        assert row[name] == alone[name], name
    assert row["kinds"][0]["resumption"] == 0.4 == alone["resumption"]


def test_resuming_kinds_reduce_server_utilisation(shakedown, tmp_path):
    load = ("--arrivals", "poisson:500/s", "--clients", "2000")
    text = '[[clients]]\nsuite = "tls1.2/rsa/rsa2048/server"\nresumption = {}\n'
    full, resumed = (mixed(shakedown, tmp_path, text.format(share), *load) for share in (0, 1.0))
    assert resumed["utilisation"]["estimate"] < 0.6 * full["utilisation"]["estimate"]


def test_table_has_one_line_per_kind_and_a_total(shakedown, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "130")
    (tmp_path / "meters.toml").write_text(MIX)
    storm = ("--arrivals", "storm:2s", "--clients", "400")
    done = shakedown("simulate", "--mix", "meters.toml", *storm, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith(
        "simulated: meters to server; 400 clients, each with a link of its own, storm:2s"
    )
    assert [line.split()[0] for line in lines[1:5]] == ["suite", SUITE, QUANTUM, "all"]
    assert "75%" in lines[2]
    assert any("recovery time" in line for line in lines)


def test_kind_without_clients_has_no_failures(shakedown, tmp_path):
    (tmp_path / "rare.toml").write_text(
        f'[[clients]]\nsuite = "{SUITE}"\nweight = 0\n[[clients]]\nsuite = "tls1.2/psk"\n'
    )
    storm = ("--arrivals", "storm:1s", "--clients", "20")
    done = shakedown("simulate", "--mix", "rare.toml", *storm, "--columns", "suite,failed", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [line.split() for line in done.stdout.splitlines()[2:4]] == [[SUITE, "–"], ["tls1.2/psk", "none"]]


def test_python_accepts_a_mixture_file_or_kinds(tmp_path):
    from shakedown.simulation.mix import Kind

    (tmp_path / "mix.toml").write_text(MIX)
    fleet = lab.Fleet(arrivals="storm:1s", clients=100)
    read = lab.simulate_mix(tmp_path / "mix.toml", fleet)
    made = lab.simulate_mix([Kind(SUITE, 3.0), Kind(QUANTUM, device="cortex-m4", bearer="nb-iot")], fleet)
    assert read == made


def test_python_mixture_refuses_experiment_fleets_and_several_servers():
    from shakedown.simulation.mix import Kind

    for fleet in (lab.Fleet(endpoints=True), lab.Fleet(mix=Mix(name="x", kinds=()))):
        with pytest.raises(lab.InputError, match="accepted: endpoints=True, or simulate_mix"):
            lab.simulate_mix([Kind(SUITE)], fleet)
    two = lab.ServerModel(["server", "phone"])
    with pytest.raises(lab.InputError, match="the server's device is one of 2; accepted: one"):
        lab.simulate_mix([Kind(SUITE)], server=two)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "0 kinds of clients; accepted: 1 to 1,000"),
        ("clients = 3", "key clients: found 3; accepted: tables [[clients]]"),
        ("[[client]]\nsuite = 'a'", 'line 1, key client: unknown key; did you mean "clients"'),
        ("[[clients]]\nweight = 1", "line 1, key clients.suite: is missing"),
        (MIX + "wieght = 2", 'line 10, key clients.wieght: unknown key; did you mean "weight"'),
        (MIX + "weight = -2", "line 10, key clients.weight: found -2; accepted: a number from 0 to 1e9"),
        (MIX + "weight = nan", "line 10, key clients.weight: found nan"),
        (MIX + "weight = 1e300", "line 10, key clients.weight: found 1e+300"),
        (MIX + "weight = true", "line 10, key clients.weight: found true"),
        (MIX + 'resumption = "half"', 'line 10, key clients.resumption: found "half"; accepted: a share'),
        (MIX + "resumption = 1.5", "line 10, key clients.resumption: found 1.5"),
        (f'[[clients]]\nsuite = "{SUITE}"\nweight = 0', "all weights are 0"),
        ('[[clients]]\nsuite = "tls1.3/x25518"', "line 2: "),
        (f'[[clients]]\nsuite = "{SUITE}"\nbearer = "pigeon"', "pigeon"),
        (f'[[clients]]\nsuite = "{SUITE}/resumed"\nresumption = 0.5', "resumes already"),
        ("[[clients]\n", "not valid TOML"),
    ],
)
def test_wrong_files_are_reported_in_one_line(shakedown, tmp_path, text, says):
    assert says in mixed(shakedown, tmp_path, text)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "neither a suite nor --mix"),
        ((SUITE, "--mix", "mix.toml"), "both suites and --mix"),
        (("--mix", "mix.toml", "--endpoints"), "--mix and --endpoints are both given"),
        (("--mix", "missing.toml"), "missing.toml"),
    ],
)
def test_suites_together_with_a_mixture_are_refused(shakedown, tmp_path, arguments, says):
    (tmp_path / "mix.toml").write_text(MIX)
    done = shakedown("simulate", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert says in done.stderr
