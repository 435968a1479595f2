"""Results go to disk and come back the same; what is not the run's own is neither touched nor believed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import msgspec
import polars as pl
import pytest

import real
from shakedown.errors import InputError
from shakedown.experiments.figure_kinds import KINDS, measured, modelled, reported
from shakedown.experiments.figure_kinds.in_memory_results import results_of
from shakedown.files.write import digest, draft_of
from shakedown.native.scenario import HandshakeId, Scenario
from shakedown.reporting.html.write import write_report
from shakedown.results import reader
from shakedown.results.folder import load_results
from shakedown.results.lock import FolderLock
from shakedown.results.quantities import QUANTITIES
from shakedown.results.table import SCHEMA
from shakedown.results.writer import JOURNAL, MANIFEST, PART_KEY, ResultsWriter, manifest_digest
from shakedown.schema.base import CLASSES, SIDES
from shakedown.schema.identity import Identified
from shakedown.schema.saved import FORMAT, SCHEMA_VERSION, Failure, Manifest, Planned

SUITES = ("tls1.2/dhe_rsa+dh2048/rsa2048/server", "tls1.2/psk", "tls1.3/x25519mlkem768/mldsa65/server")


def manifest(**more: object) -> Manifest:
    return Manifest(**{"provenance": "0123456789ab", "created": "2026-01-31T12:00:00+00:00", **more})


def planned(*suites: str) -> tuple[Planned, ...]:
    return tuple(Planned(kind="measured", about=suite) for suite in suites)


def table_of(suite: str) -> pl.DataFrame:
    one = real.measurement(suite)
    return measured.rows(Scenario(kind="measured", handshake=real.identity(one)), one)


def write(folder: Path, *suites: str, **more: object) -> ResultsWriter:
    writer = ResultsWriter(folder, manifest(planned=planned(*suites), **more))
    for suite in suites:
        writer.add("measured", suite, table_of(suite))
    return writer


@pytest.fixture
def folder(tmp_path) -> Path:
    with write(tmp_path / "r", *SUITES) as writer:
        pass
    return writer.folder


@pytest.mark.parametrize("suite", SUITES)
def test_every_figure_of_a_measurement_is_in_the_table(suite):
    """Each number of the printed object, at its place; samples are in their column."""
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


def test_samples_stand_in_their_column():
    one = real.measurement("tls1.2/psk")
    times = msgspec.structs.replace(one.handshake.client_us, samples=(1.0, 2.5))
    sampled = msgspec.structs.replace(one, handshake=msgspec.structs.replace(one.handshake, client_us=times))
    rows = measured.rows(Scenario(kind="measured", handshake=real.identity(one)), sampled)
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


def test_the_view_of_handshakes_is_what_the_objects_say():
    results = results_of(map(real.measurement, SUITES))
    for row, suite in zip(results.handshakes.to_dicts(), SUITES, strict=True):
        one = real.measurement(suite)
        assert (row["label"], row["suite"], row["flights"]) == (suite, suite, one.flights)
        assert row["bytes"] == one.bytes.total
        for side in SIDES:
            split = {kind: row[f"{side}_{kind}_us"] for kind in CLASSES}
            assert split == pytest.approx(one.time_by_class_us(side))


def with_server(one, name: str):
    stack = msgspec.structs.replace(one.server_stack, name=name)
    return msgspec.structs.replace(one, server_stack=stack)


def test_two_stacks_of_one_suite_stay_apart():
    one = real.measurement("tls1.2/psk")
    other = msgspec.structs.replace(
        one, server_stack=msgspec.structs.replace(one.server_stack, name="rustls")
    )
    results = results_of([one, other])
    assert results.handshakes["label"].to_list() == ["tls1.2/psk · openssl", "tls1.2/psk · openssl → rustls"]
    assert results.handshakes["scenario"].n_unique() == 2
    assert results.messages.height == 2 * len(one.messages)


def test_folders_survive(folder):
    loaded = load_results(folder)
    expected = pl.concat(map(table_of, SUITES)).with_columns(provenance=pl.lit("0123456789ab"))
    assert loaded.table.equals(expected)
    assert (loaded.manifest.format, loaded.manifest.schema) == (FORMAT, SCHEMA_VERSION)
    assert loaded.is_whole


def test_results_show_themselves_in_a_few_lines(folder):
    shown = repr(load_results(folder))
    assert "3 measured" in shown
    assert len(shown) < 300


def test_the_table_is_tidy(folder):
    """A question that nobody foresaw is one expression."""
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


def test_an_unfinished_run_is_readable_and_says_so(tmp_path):
    writer = ResultsWriter(tmp_path / "r", manifest(planned=planned("tls1.2/psk", SUITES[0])))
    writer.add("measured", "tls1.2/psk", table_of("tls1.2/psk"))
    # No close: the process was killed here.
    loaded = load_results(writer.folder)
    assert loaded.handshakes["suite"].to_list() == ["tls1.2/psk"]
    assert not loaded.is_whole
    assert [one.about for one in loaded.missing] == [SUITES[0]]
    assert "not ended" in repr(loaded)


def test_a_part_that_was_named_and_not_written_is_missing_not_damaged(tmp_path):
    """Killed between the list's line and the part's name."""
    writer = write(tmp_path / "r", *SUITES[:2])
    (tmp_path / "r" / "part-0002.parquet").unlink()
    loaded = load_results(writer.folder)
    assert loaded.handshakes["suite"].to_list() == [SUITES[0]]
    assert [one.about for one in loaded.missing] == [SUITES[1]]


def test_a_line_that_was_cut_off_is_no_line(tmp_path):
    writer = write(tmp_path / "r", SUITES[0])
    with (writer.folder / JOURNAL).open("ab") as journal:
        journal.write(b'{"file":"part-0002.par')
    assert load_results(writer.folder).handshakes.height == 1


def test_failures_are_not_missing(tmp_path):
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


def spoil_format(folder):
    _edit(folder, format="somebody else's")
    return "not a results folder"


def spoil_schema(folder):
    _edit(folder, schema=SCHEMA_VERSION + 1)
    return f"schema version {SCHEMA_VERSION + 1}; accepted: {SCHEMA_VERSION}"


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


def other_columns(folder):
    part = folder / "part-0001.parquet"
    about = pl.read_parquet_metadata(part)[PART_KEY]
    pl.read_parquet(part).drop("unit").write_parquet(part, metadata={PART_KEY: about})
    parts = json.loads((folder / MANIFEST).read_text())["parts"]
    parts[0]["sha256"] = digest(part.read_bytes())
    _edit(folder, parts=parts)
    return "its columns are not those of schema"


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
    parts = json.loads((folder / MANIFEST).read_text())["parts"]
    _edit(folder, parts=[*parts, parts[0]])
    return "damaged: part-0001.parquet is listed twice"


def a_part_elsewhere(folder):
    parts = json.loads((folder / MANIFEST).read_text())["parts"]
    parts[0]["file"] = "../part-0001.parquet"
    _edit(folder, parts=parts)
    return "damaged: parts[0].file: expected a string matching"


def foreign_part(folder):
    pl.DataFrame({"a": [1]}).write_parquet(folder / "part-0001.parquet")
    return "part-0001.parquet: damaged: not the file that the manifest lists"


def certificates_of_another_kind(folder):
    _edit(folder, certificates={"server": 3})
    return "manifest.json: damaged: certificates[...]: expected an object, got a whole number"


def certificates_without_contents(folder):
    _edit(folder, certificates={"client": {"suites": [], "files": {}}})
    return "manifest.json: damaged: certificates[...].files: the key chain is missing"


def command_of_another_kind(folder):
    _edit(folder, command="shakedown run")
    return "manifest.json: damaged: command: expected an array, got a string"


def experiment_of_another_kind(folder):
    _edit(folder, experiment=["x"])
    return "manifest.json: damaged: experiment: expected an object, got an array"


def failures_of_another_kind(folder):
    _edit(folder, failures=[{"suite": "tls1.2/psk"}])
    return "manifest.json: damaged: failures[0]: the key reason is missing"


def parts_of_another_kind(folder):
    _edit(folder, parts=-1)
    return "manifest.json: damaged: parts: expected an array, got a whole number"


def a_key_twice(folder):
    path = folder / MANIFEST
    path.write_text(path.read_text().replace('"seed":', '"command": ["shakedown"],\n  "seed":', 1))
    return 'manifest.json: damaged: the key "command" stands twice in an object'


def a_part_of_another_kind(folder):
    parts = json.loads((folder / MANIFEST).read_text())["parts"]
    parts[1]["kind"] = "modelled"
    _edit(folder, parts=parts)
    return 'part-0002.parquet: damaged: its figures are not of the kind "modelled", as the manifest says'


def a_run_that_goes_on_without_its_list(folder):
    _edit(folder, ended=None)
    return f"{JOURNAL}: is missing: it lists the parts of a run that has not ended"


def drop_manifest(folder):
    (folder / MANIFEST).unlink()
    return "holds no manifest.json"


def _edit(folder, **changes):
    path = folder / MANIFEST
    path.write_text(json.dumps(sealed({**json.loads(path.read_text()), **changes})))


def sealed(manifest: dict) -> dict:
    """A manifest with the digest that belongs to it."""
    return {**manifest, "sha256": manifest_digest(manifest)}


@pytest.mark.parametrize(
    "spoil",
    [
        spoil_format,
        spoil_schema,
        spoil_manifest,
        deep_manifest,
        spoil_part,
        cut_part,
        drop_middle_part,
        drop_last_part,
        drop_rows,
        other_columns,
        part_of_another_run,
        the_same_part_twice,
        a_part_listed_twice,
        a_part_elsewhere,
        foreign_part,
        drop_manifest,
        certificates_of_another_kind,
        certificates_without_contents,
        command_of_another_kind,
        experiment_of_another_kind,
        failures_of_another_kind,
        parts_of_another_kind,
        a_key_twice,
        a_part_of_another_kind,
        a_run_that_goes_on_without_its_list,
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
        ResultsWriter(folder, manifest())
    with ResultsWriter(folder, manifest(), replace=True) as writer:
        writer.add("measured", "tls1.2/psk", table_of("tls1.2/psk"))
    assert load_results(folder).handshakes["suite"].to_list() == ["tls1.2/psk"]
    assert sorted(path.name for path in folder.iterdir()) == [MANIFEST, "part-0001.parquet"]


@pytest.mark.parametrize("goes_on", [False, True])
def test_results_of_another_version_are_replaced_if_asked(tmp_path, goes_on):
    """Only files that their list names and that are what it says; others stay, and stop nothing."""
    writer = write(tmp_path / "r", *SUITES)
    folder = writer.folder
    writer._release() if goes_on else writer.close("complete")
    _edit(folder, schema=SCHEMA_VERSION - 1, machine="that of an older version")
    (folder / "part-0002.parquet").write_bytes(b"somebody's")
    (tmp_path / "part-0001.parquet").write_bytes(b"somebody's, too")
    if not goes_on:
        parts = json.loads((folder / MANIFEST).read_text())["parts"]
        entry = {"file": "../part-0001.parquet", "sha256": digest(b"somebody's, too")}
        _edit(folder, parts=[*parts, entry, {"file": 3}, "text"])
    with pytest.raises(InputError, match="holds results already"):
        ResultsWriter(folder, manifest())
    with ResultsWriter(folder, manifest(), replace=True) as writer:
        writer.add("measured", "tls1.2/psk", table_of("tls1.2/psk"))
    assert load_results(folder).handshakes["suite"].to_list() == ["tls1.2/psk"]
    assert (folder / "part-0002.parquet").read_bytes() == b"somebody's"
    assert (tmp_path / "part-0001.parquet").exists()
    assert not (folder / "part-0003.parquet").exists()


def left_over(path: Path) -> None:
    """A draft that nobody holds."""
    draft_of(path).write_text("half")


def test_a_killed_run_can_be_replaced(tmp_path):
    killed = write(tmp_path / "r", *SUITES)
    killed._release()
    left_over(tmp_path / "r" / "part-0002.parquet")
    with ResultsWriter(tmp_path / "r", manifest(), replace=True):
        pass
    assert [path.name for path in (tmp_path / "r").iterdir()] == [MANIFEST]


@pytest.mark.parametrize("calls", range(8))
def test_killed_while_older_results_are_removed(tmp_path, monkeypatch, calls):
    """After whichever removal: what is left can be replaced."""
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
def test_other_peoples_files_stay_as_they_are(tmp_path, name, replace, linked):
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
def test_replacing_spares_what_others_put_there(folder, name):
    (folder / name).write_text("mine")
    with ResultsWriter(folder, manifest(), replace=True) as writer:
        for suite in (*SUITES, "tls1.2/psk", SUITES[0], SUITES[2]):
            writer.add("measured", suite, table_of(suite).filter(pl.int_range(pl.len()) > len(writer.parts)))
    assert (folder / name).read_text() == "mine"
    assert load_results(folder).manifest.parts[-1].file in ("part-0006.parquet", "part-0007.parquet")


def test_a_part_that_somebody_changed_is_not_removed(folder):
    (folder / "part-0002.parquet").write_text("mine")
    with ResultsWriter(folder, manifest(), replace=True):
        pass
    assert (folder / "part-0002.parquet").read_text() == "mine"
    assert not (folder / "part-0001.parquet").exists()


def test_two_runs_do_not_share_a_folder(tmp_path):
    first = ResultsWriter(tmp_path / "r", manifest())
    for replace in (False, True):
        with pytest.raises(InputError, match="another run is writing there"):
            ResultsWriter(tmp_path / "r", manifest(), replace=replace)
    first.close("complete")
    with pytest.raises(InputError, match="holds results already"):
        ResultsWriter(tmp_path / "r", manifest())


def test_a_report_is_of_the_results_that_the_folder_holds(tmp_path):
    """Replaced since they were read, or being replaced: no page of other results comes beside them."""
    with ResultsWriter(tmp_path / "r", manifest()) as writer:
        writer.add("measured", SUITES[0], table_of(SUITES[0]))
    old = load_results(writer.folder)
    page = writer.folder / "report.html"
    new = ResultsWriter(writer.folder, manifest(provenance="another"), replace=True)
    with pytest.raises(InputError, match="another run is writing there"):
        write_report(old, page, reported())
    new.close("complete")
    with pytest.raises(InputError, match="another run has replaced these results"):
        write_report(old, page, reported())
    assert not page.exists()
    assert write_report(old, tmp_path / "elsewhere.html", reported()).exists()


def test_a_lock_that_a_caller_holds_outlives_the_results(tmp_path):
    with FolderLock(tmp_path / "r") as lock:
        with ResultsWriter(tmp_path / "r", manifest(), lock=lock) as writer:
            writer.add("measured", SUITES[0], table_of(SUITES[0]))
        with pytest.raises(InputError, match="another run is writing there"):
            ResultsWriter(tmp_path / "r", manifest(), replace=True)
        write_report(load_results(tmp_path / "r"), tmp_path / "r" / "report.html", reported(), lock=lock)
    with ResultsWriter(tmp_path / "r", manifest(), replace=True):
        pass


def test_a_folder_made_for_a_lock_goes_with_it_where_nothing_came(tmp_path):
    with FolderLock(tmp_path / "r"):
        pass
    assert not (tmp_path / "r").exists()
    (tmp_path / "r").mkdir()
    with FolderLock(tmp_path / "r"):
        pass
    assert (tmp_path / "r").exists()


@pytest.mark.parametrize("made_again", [False, True])
def test_a_folder_that_went_before_it_was_locked(tmp_path, monkeypatch, made_again):
    """Another run had made it, failed, and removed it, empty; a third one may have made it again."""
    from shakedown.results import lock as module

    folder, flock, went = tmp_path / "r", module.fcntl.flock, []

    def late(handle: int, how: int) -> None:
        if not went:
            went.append(os.fstat(handle).st_ino)
            folder.rmdir()
            if made_again:
                folder.mkdir()
        flock(handle, how)

    monkeypatch.setattr(module.fcntl, "flock", late)
    with FolderLock(folder):
        assert went
        monkeypatch.undo()
        with pytest.raises(InputError, match="another run is writing there"):
            FolderLock(folder)


def test_many_runs_into_one_folder_at_once(tmp_path):
    """All but one are refused, whatever the others make and remove meanwhile; the one is whole."""
    code = (
        "import sys\n"
        "from shakedown.errors import InputError\n"
        "from shakedown.results.lock import FolderLock\n"
        "from pathlib import Path\n"
        "won = 0\n"
        "for _ in range(400):\n"
        "    try:\n"
        "        with FolderLock(sys.argv[1]) as lock:\n"
        "            token = lock.folder / 'held'\n"
        "            token.touch(exist_ok=False)\n"
        "            won += 1\n"
        "            token.unlink()\n"
        "    except InputError as error:\n"
        "        assert 'another run is writing there' in str(error), error\n"
        "print(won)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "r")]
    running = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(4)
    ]
    ended = [process.communicate(timeout=300) for process in running]
    # Who wins how often is up to the scheduler.
    assert not any(err for _, err in ended), ended
    assert sum(int(out) for out, _ in ended) > 0
    assert not list(tmp_path.rglob("held"))


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


def test_parts_are_asked_one_after_the_other_as_if_they_were_one(tmp_path, monkeypatch):
    """The same views, objects and CSV, whether parts are decoded together or each by itself."""
    from shakedown.experiments.figure_kinds import load_experiment
    from shakedown.experiments.runner import run_experiment
    from shakedown.results import parts, queries

    experiment = tmp_path / "e.toml"
    experiment.write_text(
        'suites = ["tls1.2/psk", "tls1.3/x25519/p256/server"]\nrepeat = 2\ndevices = ["phone", "esp32"]\n'
        'bearers = ["lte", "gprs"]\nrates = [1, 50]\n[simulated]\narrivals = ["poisson:5/s"]\nclients = 20\n'
    )
    run_experiment(load_experiment(experiment), tmp_path / "r")
    whole = load_results(tmp_path / "r")
    assert len(whole.manifest.parts) > 4
    together = {name: getattr(whole, name) for name in VIEWS}
    assert together["predictions"].height == 2 * 4 * 2
    asked = (queries.without_cost, queries.missing, queries.extrapolated, queries.queues)
    monkeypatch.setattr(parts, "ROWS_AT_A_TIME", 1)
    apart = load_results(tmp_path / "r")
    assert len(list(apart.source.chunks())) == len(whole.manifest.parts)
    for name, view in together.items():
        assert getattr(apart, name).equals(view), name
    for query in asked:
        assert query(apart.source).equals(query(whole.table)), query
    assert queries.queue_points(apart.source) == queries.queue_points(whole.table)
    assert list(apart.figures()) == list(whole.figures())
    assert apart.csv() == whole.csv()
    assert (repr(apart), apart.height) == (repr(whole), whole.table.height)
    assert apart.table.equals(whole.table)


def test_millions_of_rows_take_little_memory(tmp_path):
    """A results folder whose table, with a row a prediction in Python, would take more than a gigabyte."""
    from shakedown.prediction import predict

    scenario = predict.scenario("tls1.2/psk", "phone", "server", "lte")
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
            writer.add("modelled", f"part {number}", modelled.rows(place, found))
    code = (
        "import re, sys\n"
        "from pathlib import Path\n"
        "from shakedown.cli import exit_status\n"
        "assert exit_status(['report', sys.argv[1], '--csv', sys.argv[1] + '.csv']) == 0\n"
        "from shakedown.results.folder import load_results\n"
        "found = load_results(sys.argv[1])\n"
        # Not getrusage: that counts what the process was before it became this one.
        "most = int(re.search(r'VmHWM:\\s+(\\d+)', Path('/proc/self/status').read_text())[1]) / 1024\n"
        "print(found.height, found.predictions.height, most, file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "r")], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    height, predictions, most_mib = done.stderr.splitlines()[-1].split()
    assert (int(height) > 900_000, predictions) == (True, "40000")
    assert float(most_mib) < 600


def test_a_reader_beside_a_run_that_ends_sees_all_of_it(tmp_path, monkeypatch):
    """The manifest of a run that goes on is read, and then the run ends and takes its list of parts away."""
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
