"""Results go to disk and come back the same; damage is told in one line."""

from __future__ import annotations

import json

import polars as pl
import pytest

import synthetic
from shakedown.errors import InputError
from shakedown.results.folder import FORMAT, SCHEMA_VERSION, ResultsWriter, load_results
from shakedown.results.tidy import SCHEMA, from_table, rest_of, to_table

SUITES = ("tls1.2/dhe_rsa+dh2048/rsa2048/server", "tls1.2/psk", "tls1.3/x25519mlkem768/mldsa65/server")


@pytest.fixture
def folder(tmp_path):
    writer = ResultsWriter(tmp_path / "r", {"seed": 1})
    for suite in SUITES:
        writer.add(synthetic.measurement(suite))
    writer.close(ended="complete")
    return writer.folder


@pytest.mark.parametrize("suite", SUITES)
def test_a_measurement_survives_the_table(suite):
    measurement = synthetic.measurement(suite)
    table = to_table(measurement, "here")
    assert dict(table.schema) == SCHEMA
    assert from_table(table, rest_of(measurement)) == measurement


def test_what_the_table_does_not_know_survives_too():
    measurement = synthetic.measurement()
    measurement["transfers"] = [{"bytes": 1024, "client_us": 3.5}]
    del measurement["memory"]
    measurement["messages"][2]["bytes"] = 830.5
    assert from_table(to_table(measurement, "here"), rest_of(measurement)) == measurement


def test_folders_survive(folder):
    loaded = load_results(folder)
    assert list(loaded.measurements) == [synthetic.measurement(suite) for suite in SUITES]
    assert (loaded.manifest["format"], loaded.manifest["schema"]) == (FORMAT, SCHEMA_VERSION)
    assert loaded.table["provenance"].unique().to_list() == [loaded.manifest["provenance"]]


def test_the_table_is_tidy(folder):
    """A question that nobody foresaw is one expression."""
    table = load_results(folder).table
    spent = table.filter(quantity="operation.time", statistic="mean", operation="sign").select(
        "suite", "value"
    )
    expected = [
        (one["suite"], operation["mean_us"])
        for one in map(synthetic.measurement, SUITES)
        for operation in one["operations"]
        if operation["operation"] == "sign"
    ]
    assert spent.rows() == expected


def test_an_unfinished_run_is_readable(tmp_path):
    writer = ResultsWriter(tmp_path / "r", {})
    writer.add(synthetic.measurement("tls1.2/psk"))
    # No close: the process was killed here.
    assert list(load_results(writer.folder).by_suite) == ["tls1.2/psk"]


def test_an_empty_run_is_readable(tmp_path):
    writer = ResultsWriter(tmp_path / "r", {})
    loaded = load_results(writer.folder)
    assert loaded.measurements == ()
    assert dict(loaded.table.schema) == SCHEMA


def test_folders_of_the_first_schema_are_read_and_say_nothing_of_what_came_later(folder):
    before = load_results(folder)
    for part in folder.glob("part-*.parquet"):
        about = json.loads(pl.read_parquet_metadata(part)["shakedown"])
        table = pl.read_parquet(part).drop("certificates", "capture", "connection")
        table.write_parquet(part, metadata={"shakedown": json.dumps({**about, "schema": 1})})
    _edit(folder, schema=1)
    loaded = load_results(folder)
    assert loaded.measurements == before.measurements
    assert dict(loaded.table.schema) == SCHEMA
    assert loaded.table["certificates"].unique().to_list() == [None]


def spoil_format(folder):
    _edit(folder, format="somebody else's")
    return "not a results folder"


def spoil_schema(folder):
    _edit(folder, schema=SCHEMA_VERSION + 1)
    return f"schema version {SCHEMA_VERSION + 1}; accepted: 1 and {SCHEMA_VERSION}"


def spoil_manifest(folder):
    (folder / "manifest.json").write_text("{")
    return "not valid JSON"


def spoil_part(folder):
    (folder / "part-0002.parquet").write_bytes(b"PAR1 nonsense")
    return "part-0002.parquet: damaged"


def cut_part(folder):
    part = folder / "part-0002.parquet"
    part.write_bytes(part.read_bytes()[:-100])
    return "part-0002.parquet: damaged"


def drop_middle_part(folder):
    (folder / "part-0002.parquet").unlink()
    return "part-0002.parquet is missing (3 parts were written)"


def drop_last_part(folder):
    (folder / "part-0003.parquet").unlink()
    return "part-0003.parquet is missing (3 parts were written)"


def drop_rows(folder):
    part = folder / "part-0001.parquet"
    about = pl.read_parquet_metadata(part)["shakedown"]
    table = pl.read_parquet(part).filter(pl.col("quantity") != "handshake.flights")
    table.write_parquet(part, metadata={"shakedown": about})
    return "part-0001.parquet: damaged: no row handshake.flights"


def other_columns(folder):
    part = folder / "part-0001.parquet"
    about = pl.read_parquet_metadata(part)["shakedown"]
    pl.read_parquet(part).drop("unit").write_parquet(part, metadata={"shakedown": about})
    return "its columns are not those of schema"


def part_of_another_schema(folder):
    part = folder / "part-0001.parquet"
    table = pl.read_parquet(part)
    table.write_parquet(part, metadata={"shakedown": json.dumps({"schema": 99, "rest": {}})})
    return "schema version 99"


def foreign_part(folder):
    pl.DataFrame({"a": [1]}).write_parquet(folder / "part-0001.parquet")
    return "part-0001.parquet: damaged"


def drop_models(folder):
    writer = ResultsWriter(folder, {}, replace=True)
    writer.add_models([], [])
    writer.close()
    load_results(folder)
    (folder / "modelled.parquet").unlink()
    return "modelled.parquet is missing"


def certificates_of_another_kind(folder):
    _edit(folder, certificates={"server": 3})
    return "manifest.json: damaged: certificates.server is 3, not an object"


def certificates_without_contents(folder):
    _edit(folder, certificates={"client": {"suites": [], "files": {}}})
    return "manifest.json: damaged: certificates.client.files.chain is missing"


def command_of_another_kind(folder):
    _edit(folder, command="shakedown run")
    return 'manifest.json: damaged: command is "shakedown run", not an array'


def experiment_of_another_kind(folder):
    _edit(folder, experiment=["x"])
    return "manifest.json: damaged: experiment is an array, not an object"


def failures_of_another_kind(folder):
    _edit(folder, failures=[{"suite": "tls1.2/psk"}])
    return "manifest.json: damaged: failures[0].reason is missing"


def parts_of_another_kind(folder):
    _edit(folder, parts=-1)
    return "manifest.json: damaged: parts is -1, not a whole number"


def drop_manifest(folder):
    (folder / "manifest.json").unlink()
    return "holds no manifest.json"


def _edit(folder, **changes):
    path = folder / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.mark.parametrize(
    "spoil",
    [
        spoil_format,
        spoil_schema,
        spoil_manifest,
        spoil_part,
        cut_part,
        drop_middle_part,
        drop_last_part,
        drop_rows,
        other_columns,
        part_of_another_schema,
        foreign_part,
        drop_manifest,
        drop_models,
        certificates_of_another_kind,
        certificates_without_contents,
        command_of_another_kind,
        experiment_of_another_kind,
        failures_of_another_kind,
        parts_of_another_kind,
    ],
    ids=lambda spoil: spoil.__name__,
)
def test_damage_is_told_in_one_line(folder, spoil):
    expected = spoil(folder)
    with pytest.raises(InputError) as caught:
        load_results(folder)
    line = str(caught.value)
    assert expected in line
    assert str(folder) in line
    assert "\n" not in line


def test_replacing_leaves_nothing_of_the_old_run(folder):
    with pytest.raises(InputError, match="holds results already"):
        ResultsWriter(folder, {})
    writer = ResultsWriter(folder, {}, replace=True)
    writer.add(synthetic.measurement("tls1.2/psk"))
    writer.close()
    assert list(load_results(folder).by_suite) == ["tls1.2/psk"]
