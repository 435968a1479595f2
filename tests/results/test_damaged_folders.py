"""Damage to a results folder is reported in one line."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import msgspec
import polars as pl
import pytest

from results.folders import SUITES, edit, listed, manifest, table_of
from shakedown.cli import exit_status
from shakedown.errors import InputError
from shakedown.files.write import digest
from shakedown.results.folder import load_results
from shakedown.results.names import JOURNAL, MANIFEST, PART_KEY
from shakedown.results.writer import ResultsWriter
from shakedown.schema.saved import SCHEMA_VERSION


def spoil_manifest(folder):
    (folder / MANIFEST).write_text("{")
    return "not JSON"


def deep_manifest(folder):
    (folder / MANIFEST).write_text("[" * 100_000)
    return "not JSON: nested deeper"


def spoil_part(folder):
    (folder / "part-0002.parquet").write_bytes(b"PAR1 nonsense")
    return "part-0002.parquet: damaged: not the file that the manifest lists"


def cut_part(folder):
    part = folder / "part-0002.parquet"
    part.write_bytes(part.read_bytes()[:-100])
    return "part-0002.parquet: damaged"


def drop_middle_part(folder):
    (folder / "part-0002.parquet").unlink()
    return "part-0002.parquet is missing (3 parts listed)"


def drop_last_part(folder):
    (folder / "part-0003.parquet").unlink()
    return "part-0003.parquet is missing (3 parts listed)"


def drop_rows(folder):
    part = folder / "part-0001.parquet"
    about = pl.read_parquet_metadata(part)[PART_KEY]
    table = pl.read_parquet(part).filter(pl.col("quantity") != "handshake.flights")
    table.write_parquet(part, metadata={PART_KEY: about})
    return "part-0001.parquet: damaged: changed since it was written"


def replace_first_part(folder, change):
    """Changes the first part and updates its digest, as a program of another version would write it."""
    part = folder / "part-0001.parquet"
    about = pl.read_parquet_metadata(part)[PART_KEY]
    change(pl.read_parquet(part)).write_parquet(part, metadata={PART_KEY: about})
    parts = listed(folder)
    parts[0]["sha256"] = digest(part.read_bytes())
    edit(folder, parts=parts)


def other_columns(folder):
    replace_first_part(folder, lambda table: table.drop("unit"))
    return "its columns are not those of schema"


def other_quantity(folder):
    replace_first_part(folder, lambda table: table.with_columns(quantity=pl.lit("handshake.colour")))
    return "part-0001.parquet: damaged: unknown quantity: handshake.colour"


def other_side(folder):
    replace_first_part(folder, lambda table: table.with_columns(sender=pl.lit("proxy")))
    return "part-0001.parquet: damaged: unknown sender: proxy"


def wrong_number(column, value, said):
    """A damage: a number in the third row of the first part."""

    def damage(folder):
        wrong = pl.when(pl.int_range(pl.len()) == 2).then(value).otherwise(pl.col(column)).alias(column)
        replace_first_part(folder, lambda table: table.with_columns(wrong.cast(table.schema[column])))
        return f"part-0001.parquet: damaged: {said}"

    return damage


WRONG_NUMBERS = {
    "nan": wrong_number("value", math.nan, "handshake.time is nan; accepted: from -2^53 to 2^53"),
    "infinity": wrong_number("value", -math.inf, "handshake.time is -inf; accepted: from -2^53 to 2^53"),
    "large": wrong_number("value", 1e308, "handshake.time is 1e+308; accepted"),
    "sample": wrong_number("samples", pl.lit([1.0, math.nan]), "handshake.time is nan; accepted"),
    "rate": wrong_number("rate_per_s", -5.0, "rate_per_s is -5.0; accepted: from 0 to 2^53"),
    "message": wrong_number("message_index", -1, "message_index is -1; accepted: from 0 to 2^53"),
}


@pytest.mark.parametrize("what", WRONG_NUMBERS)
def test_number_that_is_not_finite_or_negative_is_refused(folder, what):
    assert_told(folder, WRONG_NUMBERS[what](folder))


def test_negative_bytes_are_refused_and_negative_differences_of_times_are_not(folder):
    below = pl.when(pl.col("quantity") == "message.process").then(-0.5).otherwise(pl.col("value"))
    replace_first_part(folder, lambda table: table.with_columns(value=below))
    assert load_results(folder).messages["process_us"].min() == -0.5
    below = pl.when(pl.col("quantity") == "message.bytes").then(-1.0).otherwise(pl.col("value"))
    replace_first_part(folder, lambda table: table.with_columns(value=below))
    assert_told(folder, "part-0001.parquet: damaged: message.bytes is -1.0; accepted: from 0 to 2^53")


@pytest.mark.parametrize(
    ("change", "command"),
    [
        ({"value": pl.lit(None, pl.Float64)}, ["report", "r", "--out", "page.html"]),
        ({"class": pl.lit("colour")}, ["report", "r", "--out", "page.html"]),
        ({"workers": pl.int_range(pl.len(), dtype=pl.Int32)}, ["report", "r", "--json"]),
    ],
)
def test_figures_that_do_not_belong_together_are_reported_in_one_line(
    folder, change, command, monkeypatch, capsys
):
    monkeypatch.chdir(folder.parent)
    replace_first_part(folder, lambda table: table.with_columns(**change))
    assert exit_status(command) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("error: r: damaged: ")
    assert not (folder.parent / "page.html").exists()


def part_of_another_run(folder):
    with ResultsWriter(
        folder.parent / "other", msgspec.structs.replace(manifest(), provenance="ba98")
    ) as one:
        one.add("measured", SUITES[0], table_of(SUITES[0]))
    shutil.copy(one.folder / "part-0001.parquet", folder)
    return "part-0001.parquet: a part of another run (ba98), not of this one (0123456789ab)"


def the_same_part_twice(folder):
    shutil.copy(folder / "part-0001.parquet", folder / "part-0003.parquet")
    return "part-0003.parquet: a copy of part-0001.parquet, not the part that the manifest lists"


def a_part_listed_twice(folder):
    edit(folder, parts=[*listed(folder), listed(folder)[0]])
    return "damaged: part-0001.parquet is listed twice"


def a_part_elsewhere(folder):
    parts = listed(folder)
    parts[0]["file"] = "../part-0001.parquet"
    edit(folder, parts=parts)
    return "damaged: parts[0].file: expected a string matching"


def foreign_part(folder):
    pl.DataFrame({"a": [1]}).write_parquet(folder / "part-0001.parquet")
    return "part-0001.parquet: damaged: not the file that the manifest lists"


def a_key_twice(folder):
    path = folder / MANIFEST
    path.write_text(path.read_text().replace('"seed":', '"command": ["shakedown"],\n  "seed":', 1))
    return 'manifest.json: damaged: the key "command" stands twice in an object'


def a_part_of_another_kind(folder):
    parts = listed(folder)
    parts[1]["kind"] = "modelled"
    edit(folder, parts=parts)
    return 'part-0002.parquet: damaged: its figures are not of the kind "modelled", as the manifest says'


def drop_manifest(folder):
    (folder / MANIFEST).unlink()
    return "holds no manifest.json"


CHANGED = (
    (
        "certificates",
        {"server": 3},
        "manifest.json: damaged: certificates[...]: expected an object, got a whole number",
    ),
    (
        "certificates",
        {"client": {"suites": [], "files": {}}},
        "manifest.json: damaged: certificates[...].files: the key chain is missing",
    ),
    ("command", "shakedown run", "manifest.json: damaged: command: expected an array, got a string"),
    ("experiment", ["x"], "manifest.json: damaged: experiment: expected an object, got an array"),
    (
        "failures",
        [{"suite": "tls1.2/psk"}],
        "manifest.json: damaged: failures[0]: the key reason is missing",
    ),
    ("parts", -1, "manifest.json: damaged: parts: expected an array, got a whole number"),
    ("format", "somebody else's", "not a results folder"),
    ("schema", SCHEMA_VERSION + 1, f"schema version {SCHEMA_VERSION + 1}; accepted: {SCHEMA_VERSION}"),
    ("ended", None, f"{JOURNAL}: is missing: it lists the parts of a run that has not ended"),
)
"""A key of the manifest, its wrong value, and the expected error."""


def assert_told(folder: Path, expected: str) -> None:
    """Checks that the error about a folder is one line, which names the folder."""
    with pytest.raises(InputError) as caught:
        load_results(folder)
    line = str(caught.value)
    assert expected in line
    assert str(folder) in line
    assert "\n" not in line


@pytest.mark.parametrize(
    "spoil",
    [
        spoil_manifest,
        deep_manifest,
        spoil_part,
        cut_part,
        drop_middle_part,
        drop_last_part,
        drop_rows,
        other_columns,
        other_quantity,
        other_side,
        part_of_another_run,
        the_same_part_twice,
        a_part_listed_twice,
        a_part_elsewhere,
        foreign_part,
        a_key_twice,
        a_part_of_another_kind,
        drop_manifest,
    ],
    ids=lambda spoil: spoil.__name__,
)
def test_damage_is_reported_in_one_line(folder, spoil):
    assert_told(folder, spoil(folder))


@pytest.mark.parametrize(("key", "value", "expected"), CHANGED)
def test_modified_manifest_is_reported_in_one_line(folder, key, value, expected):
    edit(folder, **{key: value})
    assert_told(folder, expected)
