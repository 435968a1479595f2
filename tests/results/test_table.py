"""The tidy table has every figure once, and its views agree with the objects."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

import real
from results.folders import SUITES, manifest, table_of
from runs import python, written
from shakedown.experiments.figure_kinds import KINDS, kind, measured, modelled
from shakedown.experiments.figure_kinds.in_memory_results import results_of
from shakedown.native.scenario import HandshakeId, Scenario
from shakedown.results.folder import load_results
from shakedown.results.quantities import QUANTITIES
from shakedown.results.table import SCHEMA
from shakedown.results.writer import ResultsWriter
from shakedown.schema.base import CLASSES, SIDES
from shakedown.schema.identity import Identified


@pytest.mark.parametrize("suite", SUITES)
def test_every_figure_of_a_measurement_is_in_the_table(suite):
    """Each number of the printed object is at its place."""
    one = real.measurement(suite)
    rows = table_of(suite)
    assert dict(rows.schema) == SCHEMA

    def value(quantity: str, **columns: object) -> float:
        return rows.filter(quantity=quantity, **columns)["value"].item()

    for side in SIDES:
        spread = one.handshake.of(side)
        for statistic in measured.STATISTICS:
            assert value("handshake.time", side=side, statistic=statistic) == getattr(spread, statistic)
        assert value("handshake.bytes", side=side) == one.bytes.of(side)
        assert value("unattributed.time", side=side, statistic="mean") == one.unattributed_us.mean(side)
    for item, message in enumerate(one.messages):
        place = {"item": item, "message": message.name, "message_index": message.index}
        assert value("message.bytes", **place) == message.bytes
        assert value("message.generate", statistic="median", **place) == message.generate_us
        assert value("message.process", statistic="mean", **place) == message.process_mean_us
    for item, operation in enumerate(one.operations):
        place = {"item": item, "operation": operation.operation, "class": operation.class_}
        assert value("operation.time", statistic="median", **place) == operation.us
        assert value("operation.time", statistic="mean", **place) == operation.mean_us
        assert value("operation.count", **place) == operation.count
        assert value("operation.bytes", **place) == operation.bytes
    assert value("memory.peak", side="client") == one.memory.client_peak_bytes
    assert value("accounting.coverage") == one.accounting.coverage


def test_samples_are_in_their_column():
    one = real.measurement("tls1.2/psk")
    times = msgspec.structs.replace(one.handshake.client_us, samples=(1.0, 2.5))
    sampled = msgspec.structs.replace(one, handshake=msgspec.structs.replace(one.handshake, client_us=times))
    rows = kind("measured").table([(Scenario(kind="measured", handshake=real.identity(one)), sampled)])
    kept = rows.filter(quantity="handshake.time", side="client", statistic="median")["samples"]
    assert kept.to_list() == [[1.0, 2.5]]


def test_every_quantity_is_documented_and_unique():
    found = load_quantities()
    names = {name: [one.name for one in QUANTITIES[name]] for name in KINDS}
    assert found <= {one for some in names.values() for one in some}
    for some in names.values():
        assert len(some) == len(set(some))


def test_the_documentation_lists_all_columns_and_quantities():
    text = (Path(__file__).parents[2] / "docs/reference/results.md").read_text()
    for name in SCHEMA:
        assert f"`{name}`" in text
    for name in KINDS:
        for one in QUANTITIES[name]:
            assert f"| `{one.name}` |" in text.split(f"### {name}\n")[1].split("###")[0]


def load_quantities() -> set[str]:
    return set(results_of(map(real.measurement, SUITES)).table["quantity"].unique())


def test_view_of_handshakes_matches_the_objects():
    results = results_of(map(real.measurement, SUITES))
    for row, suite in zip(results.handshakes.to_dicts(), SUITES, strict=True):
        one = real.measurement(suite)
        assert (row["label"], row["suite"], row["flights"]) == (suite, suite, one.flights)
        assert row["bytes"] == one.bytes.total
        for side in SIDES:
            split = {kind: row[f"{side}_{kind}_us"] for kind in CLASSES}
            assert split == pytest.approx(one.time_by_class_us(side))


def test_two_stacks_of_one_suite_have_separate_rows():
    one = real.measurement("tls1.2/psk")
    other = msgspec.structs.replace(
        one, server_stack=msgspec.structs.replace(one.server_stack, name="rustls")
    )
    results = results_of([one, other])
    assert results.handshakes["label"].to_list() == ["tls1.2/psk · openssl", "tls1.2/psk · openssl → rustls"]
    assert results.handshakes["scenario"].n_unique() == 2
    assert results.messages.height == 2 * len(one.messages)


def test_table_is_queried_with_one_expression(folder):
    """A new query is one expression."""
    table = load_results(folder).table
    spent = table.filter(quantity="operation.time", statistic="mean", operation="sign").select(
        "suite", "value"
    )
    expected = [
        (one.suite, operation.mean_us)
        for one in map(real.measurement, SUITES)
        for operation in one.operations
        if operation.operation == "sign"
    ]
    assert spent.rows() == expected


def test_the_table_as_objects_has_every_figure_once(folder):
    loaded = load_results(folder)
    objects = list(loaded.figures())
    assert [one.suite for one in objects] == list(SUITES)
    assert sum(len(one.figures) for one in objects) == loaded.table.height
    assert objects[0].client_stack.name == "openssl"
    values = [figure.value for one in objects for figure in one.figures]
    assert values == loaded.table["value"].to_list()


VIEWS = (
    "handshakes",
    "messages",
    "operations",
    "predictions",
    "fleets",
    "fleet_series",
    "fleet_kind_series",
    "loads",
    "load_steps",
)


def test_queries_give_the_same_result_part_by_part(tmp_path, monkeypatch):
    """The same views, objects and CSV, whether parts are decoded together or each by itself."""
    from shakedown.experiments.figure_kinds import load_experiment
    from shakedown.experiments.runner import run_experiment
    from shakedown.results import parts, queries

    experiment = written(
        tmp_path,
        'suites = ["tls1.2/psk", "tls1.3/x25519/p256/server"]\nrepeat = 2\ndevices = ["phone", "esp32"]\n'
        'bearers = ["lte", "gprs"]\nrates = [1, 50]\n[simulated]\narrivals = ["poisson:5/s"]\nclients = 20\n',
    )
    run_experiment(load_experiment(experiment), tmp_path / "r")
    whole = load_results(tmp_path / "r")
    assert len(whole.manifest.parts) > 4
    together = {name: getattr(whole, name) for name in VIEWS}
    assert together["predictions"].height == 2 * 4 * 2
    asked = (queries.without_cost, queries.missing, queries.extrapolated, queries.queues)
    monkeypatch.setattr(parts, "ROWS_AT_A_TIME", 1)
    apart = load_results(tmp_path / "r")
    assert len(list(apart.chunks())) == len(whole.manifest.parts)
    for name, view in together.items():
        assert getattr(apart, name).equals(view), name
    for query in asked:
        assert query(apart).equals(query(whole)), query
    assert queries.queue_points(apart) == queries.queue_points(whole)
    assert list(apart.figures()) == list(whole.figures())
    assert apart.csv() == whole.csv()
    assert (repr(apart), apart.height) == (repr(whole), whole.table.height)
    assert apart.table.equals(whole.table)


def test_millions_of_rows_take_little_memory(tmp_path):
    """A results folder whose table, with a Python row per prediction, would take more than a gigabyte."""
    from shakedown.prediction import predict
    from shakedown.prediction.scenario import scenario as estimated

    scenario = estimated("tls1.2/psk", "phone", "server", "lte")
    rates = [float(rate) for rate in range(1000)]
    rows = predict.rows(scenario, "default", rates, 1)
    found = modelled.Modelled(Identified(suite="tls1.2/psk"), predictions=tuple(rows))
    with ResultsWriter(tmp_path / "r", manifest()) as writer:
        for number in range(40):
            place = Scenario(
                kind="modelled",
                handshake=HandshakeId(suite="tls1.2/psk"),
                device=f"device-{number}",
                server_device="server",
                bearer="lte",
            )
            writer.add("modelled", f"part {number}", modelled.table([(place, found)]))
    code = (
        "import os, re, sys\n"
        # With more threads, the number of parts in memory at a time depends on the machine.
        "os.environ['POLARS_MAX_THREADS'] = '1'\n"
        # Polars' allocator returns memory at once; else it does so after seconds, while more is allocated.
        "os.environ['_RJEM_MALLOC_CONF'] = 'dirty_decay_ms:0,muzzy_decay_ms:0'\n"
        "from pathlib import Path\n"
        "from shakedown.cli import exit_status\n"
        "assert exit_status(['report', sys.argv[1], '--csv', sys.argv[1] + '.csv']) == 0\n"
        "from shakedown.results.folder import load_results\n"
        "found = load_results(sys.argv[1])\n"
        # Not getrusage, which includes the process's memory before exec.
        "most = int(re.search(r'VmHWM:\\s+(\\d+)', Path('/proc/self/status').read_text())[1]) / 1024\n"
        "print(found.height, found.predictions.height, most, file=sys.stderr)\n"
    )
    done = python(code, str(tmp_path / "r"))
    assert done.returncode == 0, done.stderr
    height, predictions, most_mib = done.stderr.splitlines()[-1].split()
    assert (int(height) > 900_000, predictions) == (True, "40000")
    assert float(most_mib) < 450
