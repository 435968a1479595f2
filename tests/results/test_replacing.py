"""Only the run's own files are replaced; other files are neither changed nor trusted."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import polars as pl
import pytest

from results.folders import SUITES, edit, listed, manifest, table_of, write
from shakedown.cli import exit_status
from shakedown.errors import InputError
from shakedown.files.write import digest, draft_of
from shakedown.results.folder import load_results
from shakedown.results.names import JOURNAL, MANIFEST
from shakedown.results.writer import ResultsWriter
from shakedown.schema.saved import SCHEMA_VERSION


def test_replacing_removes_all_files_of_the_old_run(folder):
    with pytest.raises(InputError, match="already contains results"):
        ResultsWriter(folder, manifest())
    with ResultsWriter(folder, manifest(), replace=True) as writer:
        writer.add("measured", "tls1.2/psk", table_of("tls1.2/psk"))
    assert load_results(folder).handshakes["suite"].to_list() == ["tls1.2/psk"]
    assert sorted(path.name for path in folder.iterdir()) == [MANIFEST, "part-0001.parquet"]


@pytest.mark.parametrize("goes_on", [False, True])
def test_results_of_another_version_are_replaced_on_request(tmp_path, goes_on):
    """Replaces only listed files with the listed digest; other files stay and do not prevent it."""
    writer = write(tmp_path / "r", *SUITES)
    folder = writer.folder
    writer._release() if goes_on else writer.close("complete")
    edit(folder, schema=SCHEMA_VERSION - 1, machine="that of an older version")
    (folder / "part-0002.parquet").write_bytes(b"somebody's")
    (tmp_path / "part-0001.parquet").write_bytes(b"somebody's, too")
    if not goes_on:
        entry = {"file": "../part-0001.parquet", "sha256": digest(b"somebody's, too")}
        edit(folder, parts=[*listed(folder), entry, {"file": 3}, "text"])
    with pytest.raises(InputError, match="already contains results"):
        ResultsWriter(folder, manifest())
    with ResultsWriter(folder, manifest(), replace=True) as writer:
        writer.add("measured", "tls1.2/psk", table_of("tls1.2/psk"))
    assert load_results(folder).handshakes["suite"].to_list() == ["tls1.2/psk"]
    assert (folder / "part-0002.parquet").read_bytes() == b"somebody's"
    assert (tmp_path / "part-0001.parquet").exists()
    assert not (folder / "part-0003.parquet").exists()


def left_over(path: Path) -> None:
    """A draft without a lock."""
    draft_of(path).write_text("half")


def test_a_killed_run_can_be_replaced(tmp_path):
    killed = write(tmp_path / "r", *SUITES)
    killed._release()
    left_over(tmp_path / "r" / "part-0002.parquet")
    with ResultsWriter(tmp_path / "r", manifest(), replace=True):
        pass
    assert [path.name for path in (tmp_path / "r").iterdir()] == [MANIFEST]


@pytest.mark.parametrize("calls", range(8))
def test_results_are_replaceable_after_a_kill_during_removal(tmp_path, monkeypatch, calls):
    """The command is killed after any number of removals; the rest can be replaced."""
    folder = tmp_path / "r"
    write(folder, *SUITES)._release()
    left_over(folder / MANIFEST)
    unlink, left = Path.unlink, iter(range(calls))

    def killed(path: Path, missing_ok: bool = False) -> None:
        if path.parent == folder and next(left, None) is None:
            raise KeyboardInterrupt
        unlink(path, missing_ok)

    with monkeypatch.context() as patched, suppress(KeyboardInterrupt):
        patched.setattr(Path, "unlink", killed)
        ResultsWriter(folder, manifest(), replace=True)._release()
    with ResultsWriter(folder, manifest(), replace=True) as writer:
        writer.add("measured", "tls1.2/psk", table_of("tls1.2/psk"))
    assert load_results(folder).handshakes["suite"].to_list() == ["tls1.2/psk"]


FOREIGN = ("part-0001.parquet", "part-00000-1f3a.snappy.parquet", "captured.parquet", "modelled.parquet",
           "report.html", MANIFEST, JOURNAL, "notes.txt")  # fmt: skip


@pytest.mark.parametrize("name", FOREIGN)
@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("linked", [False, True])
def test_foreign_files_are_refused_and_kept(tmp_path, name, replace, linked):
    folder = tmp_path / "shared"
    folder.mkdir()
    target = tmp_path / "elsewhere" if linked else folder / name
    target.write_text("mine")
    if linked:
        (folder / name).symlink_to(target)
    with pytest.raises(InputError) as caught:
        ResultsWriter(folder, manifest(), replace=replace)
    assert str(folder) in str(caught.value)
    assert target.read_text() == "mine"
    assert [path.name for path in folder.iterdir()] == [name]


@pytest.mark.parametrize("name", ["notes.txt", "part-0004.parquet", "report.html"])
def test_replacing_keeps_foreign_files(folder, name):
    (folder / name).write_text("mine")
    with ResultsWriter(folder, manifest(), replace=True) as writer:
        for suite in (*SUITES, "tls1.2/psk", SUITES[0], SUITES[2]):
            writer.add("measured", suite, table_of(suite).filter(pl.int_range(pl.len()) > len(writer.parts)))
    assert (folder / name).read_text() == "mine"
    assert load_results(folder).manifest.parts[-1].file in ("part-0006.parquet", "part-0007.parquet")


def test_modified_part_is_not_removed(folder):
    (folder / "part-0002.parquet").write_text("mine")
    with ResultsWriter(folder, manifest(), replace=True):
        pass
    assert (folder / "part-0002.parquet").read_text() == "mine"
    assert not (folder / "part-0001.parquet").exists()


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_report_writes_nothing_through_a_linked_folder_of_figures(folder, tmp_path, capsys, force):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (folder / "figures").symlink_to(elsewhere)
    assert exit_status(["report", str(folder), *force]) == 2
    error = f"error: {folder / 'figures'}: is a symbolic link; accepted: another --out\n"
    assert capsys.readouterr().err == error
    assert list(elsewhere.iterdir()) == []
    assert not (folder / "report.html").exists()
