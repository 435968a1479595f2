"""Saved results are read back unchanged, whenever the run that wrote them ended."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from results.folders import SUITES, manifest, planned, table_of, write
from shakedown.comparison.folders import load_runs
from shakedown.errors import InputError
from shakedown.results import reader
from shakedown.results.folder import load_results
from shakedown.results.names import JOURNAL, manifest_digest
from shakedown.results.table import SCHEMA
from shakedown.results.writer import ResultsWriter
from shakedown.schema.saved import FORMAT, SCHEMA_VERSION, Failure


def test_results_folder_is_read_back_unchanged(folder):
    loaded = load_results(folder)
    expected = pl.concat(map(table_of, SUITES)).with_columns(provenance=pl.lit("0123456789ab"))
    assert loaded.table.equals(expected)
    assert (loaded.manifest.format, loaded.manifest.schema) == (FORMAT, SCHEMA_VERSION)
    assert loaded.is_whole


def test_repr_of_results_is_short(folder):
    shown = repr(load_results(folder))
    assert "3 measured" in shown
    assert len(shown) < 300


def test_results_are_compared_by_identity_and_can_be_in_a_set(folder):
    one, other = load_results(folder), load_results(folder)
    assert one == one
    assert one != other
    assert len({one, other}) == 2


@pytest.mark.parametrize("load", [load_results, load_runs])
def test_name_that_is_too_long_is_wrong_input(load):
    with pytest.raises(InputError, match=r"x: cannot be read: file name too long$"):
        load(Path("x" * 100_000))


def test_unfinished_run_is_readable_and_marked(tmp_path):
    writer = ResultsWriter(tmp_path / "r", manifest(planned=planned("tls1.2/psk", SUITES[0])))
    writer.add("measured", "tls1.2/psk", table_of("tls1.2/psk"))
    # No close: the process was killed here.
    loaded = load_results(writer.folder)
    assert loaded.handshakes["suite"].to_list() == ["tls1.2/psk"]
    assert not loaded.is_whole
    assert [one.about for one in loaded.missing] == [SUITES[0]]
    assert "not ended" in repr(loaded)


def test_ctrl_c_after_a_part_was_written_keeps_the_part(monkeypatch, tmp_path):
    from shakedown.results import writer as module

    def interrupted(path, content, *, replace):
        write_durably(path, content, replace=replace)
        raise KeyboardInterrupt

    writer = ResultsWriter(tmp_path / "r", manifest(planned=planned(*SUITES[:2])))
    write_durably = module.write_durably
    monkeypatch.setattr(module, "write_durably", interrupted)
    with pytest.raises(KeyboardInterrupt):
        writer.add("measured", SUITES[0], table_of(SUITES[0]))
    monkeypatch.undo()
    writer.close("interrupted")
    assert load_results(writer.folder).handshakes["suite"].to_list() == [SUITES[0]]


def test_listed_but_unwritten_part_is_missing_and_not_damaged(tmp_path):
    """The run was killed after writing the list's line and before naming the part."""
    writer = write(tmp_path / "r", *SUITES[:2])
    (tmp_path / "r" / "part-0002.parquet").unlink()
    loaded = load_results(writer.folder)
    assert loaded.handshakes["suite"].to_list() == [SUITES[0]]
    assert [one.about for one in loaded.missing] == [SUITES[1]]


def test_truncated_journal_line_is_ignored(tmp_path):
    writer = write(tmp_path / "r", SUITES[0])
    with (writer.folder / JOURNAL).open("ab") as journal:
        journal.write(b'{"file":"part-0002.par')
    assert load_results(writer.folder).handshakes.height == 1


def test_failed_suites_are_not_missing(tmp_path):
    writer = ResultsWriter(tmp_path / "r", manifest(planned=planned(*SUITES[:2])))
    writer.add("measured", SUITES[0], table_of(SUITES[0]))
    writer.fail(Failure(suite=SUITES[1], reason="no shared cipher"))
    for _ in range(2):
        loaded = load_results(writer.folder)
        assert loaded.missing == ()
        assert [one.suite for one in loaded.manifest.failures] == [SUITES[1]]
        writer.close("complete")


def test_an_empty_run_is_readable(tmp_path):
    loaded = load_results(ResultsWriter(tmp_path / "r", manifest()).folder)
    assert loaded.handshakes.height == 0
    assert dict(loaded.table.schema) == SCHEMA


def test_concurrent_reader_sees_a_complete_ending_run(tmp_path, monkeypatch):
    """A reader reads a running run's manifest; then the run ends and removes its list of parts."""
    folder = tmp_path / "results"
    write(folder, SUITES[1]).close("complete")
    ended = (folder / "manifest.json").read_bytes()
    whole = load_results(folder).table
    before = json.loads(ended) | {"ended": None, "parts": [], "failures": []}
    before["sha256"] = manifest_digest(before)
    (folder / "manifest.json").write_text(json.dumps(before))
    read = reader.load_journal

    def ends_meanwhile(path):
        (folder / "manifest.json").write_bytes(ended)
        return read(path)

    monkeypatch.setattr(reader, "load_journal", ends_meanwhile)
    assert load_results(folder).table.equals(whole)
