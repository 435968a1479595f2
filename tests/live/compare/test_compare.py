"""Live loads in experiments, and beside what is modelled and simulated; on this machine's loopback alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import polars as pl
import pytest

import shakedown
from runs import experiment
from shakedown import native
from shakedown.errors import InputError
from shakedown.experiments.figure_kinds import live
from shakedown.experiments.figure_kinds.live import Loaded
from shakedown.experiments.figure_kinds.live_comparison import compared
from shakedown.experiments.runner import run_experiment
from shakedown.reporting.html.write import write_report
from shakedown.results.folder import load_results
from shakedown.schema import convert
from shakedown.schema.live import LiveRun

SUITES = ("tls1.3/x25519/p256/server/resumed", "wtls/rsa/rsa1024/server")
TEXT = f"""
suites = {json.dumps(SUITES)}
repeat = 5
seed = 3

[live]
rate = "60/s"
duration = "1s"
clients = 4
compare = true
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("live")
    printed = []
    outcome = run_experiment(experiment(folder, TEXT), folder / "results", printed=printed.append)
    assert not outcome.failures
    return load_results(folder / "results"), [one for one in printed if isinstance(one, LiveRun)]


def test_client_and_server_count_the_same_handshakes(run):
    results, printed = run
    assert [one.suite for one in printed] == list(SUITES)
    for row, one in zip(results.loads.to_dicts(), printed, strict=True):
        assert (row["suite"], row["bearer"], row["rate_per_s"]) == (one.suite, "loopback", 60.0)
        assert row["planned"] == row["completed"] + row["failed"]
        assert row["completed"] == one.load.completed > 20
        counted = one.server.handshakes
        # Only the server counts the generator's first handshakes, which establish sessions.
        assert counted.full + counted.resumed >= one.load.completed
        assert 0.0 < row["busy_mean_s"] <= row["handshake_max_s"]
        assert row["handshake_p50_s"] <= row["handshake_p95_s"] <= row["handshake_max_s"]
        assert row["utilisation"] == pytest.approx(row["rate"] * row["busy_mean_s"])


def test_resumption_counts_match_the_server(run):
    results, printed = run
    resumed, full = results.loads.to_dicts()
    assert resumed["resumed_asked"] == resumed["completed"] == resumed["resumed_confirmed"]
    assert printed[0].server.handshakes.resumed >= resumed["resumed_confirmed"]
    assert full["resumed_asked"] == full["resumed_confirmed"] == 0


def test_formula_wait_is_computed_from_the_server_times(run):
    _, printed = run
    for one in printed:
        busy, rate_per_s = one.server.busy_s, one.load.rate_per_s.achieved
        # Written out, so that the formula is not compared with itself.
        expected = rate_per_s * busy.second_moment_s2 / (2.0 * (1.0 - rate_per_s * busy.mean))
        assert one.formula_wait_s == pytest.approx(expected)
        assert busy.second_moment_s2 >= busy.mean**2


def test_model_and_simulation_start_from_the_measured_times(run):
    results, _ = run
    measured = {row["suite"]: row["server_us"] * 1e-6 for row in results.handshakes.to_dicts()}
    for row in results.loads.to_dicts():
        assert row["modelled_server_cpu_s"] == pytest.approx(measured[row["suite"]])
        assert row["simulated_server_cpu_s"] == pytest.approx(measured[row["suite"]], rel=0.1)
        assert row["modelled_handshake_s"] > row["modelled_server_cpu_s"]
        assert row["simulated_handshake_s"] == pytest.approx(row["modelled_handshake_s"], rel=0.2)
        assert row["unloaded_s"] > 0.0


def test_engines_in_virtual_time_are_shown_beside_their_replay(shakedown, tmp_path):
    path = tmp_path / "small.toml"
    path.write_text('suites = ["tls1.2/psk"]\nrepeat = 5\n')
    done = shakedown(
        *("validate", path, "--live", "--endpoints", "--time", "1s", "--rate", "50/s"),
        *("--out", tmp_path / "results"),
    )
    assert done.returncode == 0, done.stderr
    assert "engines" in done.stdout
    (row,) = load_results(tmp_path / "results").loads.to_dicts()
    assert row["endpoints"] == "openssl"
    # The same work over the same loopback: three thousand of one, twenty thousand of the other.
    assert row["endpoints_server_cpu_s"] == pytest.approx(row["simulated_server_cpu_s"], rel=0.15)
    assert row["endpoints_handshake_s"] == pytest.approx(row["simulated_handshake_s"], rel=0.1)
    assert row["endpoints_wait_s"] > 0.0
    page = (tmp_path / "results" / "report.html").read_text()
    assert "engines in virtual time" in page


def test_without_engines_their_columns_are_empty(run):
    results, printed = run
    assert results.loads.select("endpoints", "endpoints_wait_s").null_count().row(0) == (2, 2)
    for one in printed:
        assert one.comparison.endpoints is None
        assert all(figure.endpoints_s is None is figure.endpoints_off for figure in one.comparison.figures)


def test_deviations_are_relative_to_the_live_figure():
    one = compared("wait", 2.0, 3.0, 1.0, 2.5)
    assert (one.modelled_off, one.simulated_off, one.endpoints_off) == (0.5, -0.5, 0.25)
    noise = compared("wait", -1e-3, 3.0, None)
    assert noise.live_s == -1e-3
    assert noise.modelled_off is None
    assert noise.simulated_off is None


def test_the_report_has_table_and_figure(run, tmp_path):
    results, _ = run
    page = write_report(results, tmp_path / "report.html").read_text()
    assert "Live: real sockets under load" in page
    assert "Live, modelled and simulated" in page
    assert all(suite in page for suite in SUITES)


def test_the_command_prints_objects_of_the_schema(shakedown, tmp_path):
    path = tmp_path / "small.toml"
    path.write_text('suites = ["tls1.2/psk"]\nrepeat = 3\n')
    done = shakedown("validate", path, "--live", "--time", "1s", "--rate", "50/s", "--json")
    assert done.returncode == 0, done.stderr
    (one,) = convert(json.loads(done.stdout), list[LiveRun])
    assert (one.suite, one.rate_per_s) == ("tls1.2/psk", 50.0)
    assert [figure.figure for figure in one.comparison.figures] == [
        "server-cpu",
        "server-busy",
        "handshake",
        "wait",
    ]
    assert one.load.target.startswith("tls://127.0.0.1:")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('rate = "fast"', "line 4, key live.rate"),
        ("rate = 0", "accepted: a rate above 0"),
        ('arrivals = "storm"', "accepted: poisson, deterministic, closed"),
        ('arrivals = "closed"\nrate = 5', "a closed loop has no rate"),
        ('duration = "2h"', "at most 3600"),
        ("resumption = 2", "a share from 0 to 1"),
        ("workers = 0", "a whole number from 1 to 256"),
        ("rat = 5", 'did you mean "rate"?'),
        ("compare = 1", "accepted: true, false"),
        ("rate = 5\nutilisation = 0.5", "accepted: one of them"),
        ("compare = true\nendpoints = 1", "key live.endpoints: found 1; accepted: true, false"),
        ("endpoints = true", "key live.endpoints: nothing is compared"),
        ("trace_count = 0", "a whole number from 1 to 10,000"),
        ('emulate_device = "raspberry-pi"', "accepted: with trace_count"),
        ('trace_count = 5\nemulate_device = "nothing"', "key live.emulate_device"),
        ("trace_count = 5\nemulate_device = 5", "found 5; accepted: a list of strings"),
    ],
)
def test_wrong_keys_are_reported_with_their_line(tmp_path, line, said):
    with pytest.raises(InputError) as error:
        experiment(tmp_path, f'suites = ["tls1.2/psk"]\n\n[live]\n{line}\n')
    assert said in str(error.value)


def test_live_table_overrides_rates_and_workers(tmp_path):
    text = 'suites = ["tls1.2/psk"]\nrates = ["5/s", "9/s"]\nworkers = 2\n[live]\n'
    assert [(one.rate_per_s, one.workers) for one in experiment(tmp_path, text).kind_tables["live"]] == [
        (5.0, 2),
        (9.0, 2),
    ]
    (one,) = experiment(tmp_path, text + 'rate = "7/s"\nworkers = 1\n').kind_tables["live"]
    assert (one.rate_per_s, one.workers) == (7.0, 1)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--rate", "5/s"), "--rate requires --live"),
        (("--endpoints",), "--endpoints requires --live"),
        (("--live", "--time", "0.1s"), "accepted: 0.5 s or more"),
    ],
)
def test_options_that_do_not_fit_are_refused_in_one_line(shakedown, tmp_path, arguments, said):
    path = tmp_path / "small.toml"
    path.write_text('suites = ["tls1.2/psk"]\nrepeat = 3\n')
    done = shakedown("validate", path, *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_kernel_work_is_modelled_if_this_machine_has_a_profile(monkeypatch):
    from dataclasses import replace

    from shakedown import native, profiles
    from shakedown.experiments.figure_kinds import live_comparison
    from shakedown.native.scenario import HandshakeId, MeasureOptions
    from shakedown.schema.profiles import DeviceConnection

    tls, wtls = (
        native.measure(HandshakeId(suite=suite), MeasureOptions(repeat=3))
        for suite in ("tls1.2/psk", SUITES[1])
    )
    assert live_comparison.connection_cost_s(tls) is None
    cost = DeviceConnection(100e-6, 200e-6, 0.0, 10e-6, 0.0, 0.0)
    device = replace(profiles.load_device("server"), connection=cost)
    monkeypatch.setattr(profiles, "load_device", lambda _name: device)
    moved_s = 10e-6 * tls.bytes.total / 1024
    found = live_comparison.connection_cost_s(tls)
    assert found == {"client": pytest.approx(200e-6 + moved_s), "server": pytest.approx(100e-6 + moved_s)}
    # Datagrams have no connection.
    assert live_comparison.connection_cost_s(wtls) is None
    bare, whole = (live_comparison.measured_estimate(tls, one) for one in (None, found))
    assert whole.service_s.mean - bare.service_s.mean == pytest.approx(found["server"])


SLOW = "cortex-m4"
"""A device a thousand times slower than any test machine, so that not even a busy one takes as long."""


@dataclass
class Asked:
    """The calls that an experiment made, and their results."""

    measured: list[Any] = field(default_factory=list)
    generators: list[dict[str, Any]] = field(default_factory=list)
    loads: list[Loaded] = field(default_factory=list)


@contextmanager
def listening() -> Iterator[Asked]:
    """Records an experiment's calls without changing them."""
    asked = Asked()
    measure, loaded = native.measure, live.loaded

    def measured(*arguments, **options):
        asked.measured.append(measure(*arguments, **options))
        return asked.measured[-1]

    def load(*arguments, **options):
        asked.generators.append(options.get("generator") or {})
        asked.loads.append(loaded(*arguments, **options))
        return asked.loads[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "measure", measured)
        patch.setattr(live, "loaded", load)
        yield asked


@pytest.fixture(scope="module")
def sampled(tmp_path_factory):
    for traces in (10, 20, 40, 80, 160):
        # On a busy machine the clients' thread is preempted in most handshakes; then more are sampled.
        folder = tmp_path_factory.mktemp("sampled")
        text = f"""
suites = ["tls1.3/x25519/p256/server"]
repeat = 5

[live]
rate = "40/s"
duration = "0.5s"
clients = 4
trace_count = {traces}
emulate_device = "{SLOW}"
"""
        printed = []
        with listening() as asked:
            outcome = run_experiment(experiment(folder, text), folder / "results", printed=printed.append)
        assert not outcome.failures
        row = next(one for one in printed if isinstance(one, LiveRun))
        if {one.emulate_device for one in row.time_spent} == {None, SLOW}:
            return load_results(folder / "results"), row, asked
    pytest.fail("the clients' thread was preempted in every sampled handshake of all runs")


def test_slowdown_starts_at_device_time_over_measured_time(sampled):
    """All figures are of the same run, so other work on this machine does not matter."""
    _, row, asked = sampled
    fast, slow = row.time_spent
    *_, unslowed, slowed = asked.generators
    (predicted,) = shakedown.predict(row.suite, device=SLOW)
    here_us = asked.measured[-1].handshake.client_us.median
    assert "slowdown" not in unslowed
    assert slowed["client_s"] == predicted.client_s.estimate
    assert slowed["slowdown"] == pytest.approx(predicted.client_s.estimate * 1e6 / here_us)
    # Later handshakes are slowed according to these clients' own times, as the load reports.
    *_, fast_load, slow_load = asked.loads
    assert fast.slowdown is fast_load.load.slowdown is None
    assert slow.slowdown == slow_load.load.slowdown
    assert slow_load.load.completed == slow_load.load.planned


def test_sampled_loads_report_the_time_per_step(sampled, tmp_path):
    results, row, _ = sampled
    fast, _ = row.time_spent
    assert fast.joined == fast.handshakes
    steps = results.load_steps
    assert set(steps["device"]) == {None, SLOW}
    for spent in row.time_spent:
        rows = steps.filter(pl.col("device").eq_missing(spent.emulate_device) & (pl.col("side") == "client"))
        saved_us = rows["cryptography_us"].sum() + rows["other_us"].sum() + rows["waited_us"].sum()
        parts = [
            (one.client.cryptography_us, one.client.other_us, one.client.waited_us) for one in spent.steps
        ]
        printed_us = sum(map(sum, parts)) + spent.connect_us + spent.client_unattributed_us
        assert saved_us == pytest.approx(printed_us)
        assert rows["n"].unique().to_list() == [spent.handshakes]
    # A load is one row, whatever was sampled.
    assert results.loads.height == 1
    page = write_report(results, tmp_path / "report.html").read_text()
    assert f"Where the time goes: tls1.3/x25519/p256/server: a client as slow as {SLOW}" in page
