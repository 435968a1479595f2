"""A results folder with changed bytes is refused in one line, or shows the same results."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from results.folders import SUITES, manifest, planned, table_of
from shakedown.errors import InputError
from shakedown.results.folder import Results, load_results
from shakedown.results.names import JOURNAL, MANIFEST
from shakedown.results.writer import ResultsWriter
from shakedown.schema.saved import Failure

PER_WAY = 30


def write(folder: Path, *, ended: bool) -> None:
    """Three parts and a failure, of a run that ended or was killed."""
    writer = ResultsWriter(folder, manifest(planned=planned(*SUITES[:3])))
    for suite in SUITES[:2]:
        writer.add("measured", suite, table_of(suite))
    writer.fail(Failure(suite="tls1.2/dhe_psk", reason="no shared cipher"))
    writer.add("measured", SUITES[2], table_of(SUITES[2]))
    if ended:
        writer.close("complete")


def a_file(folder: Path, rng: random.Random) -> Path:
    return rng.choice(sorted(path for path in folder.iterdir() if path.stat().st_size))


def flip(folder: Path, rng: random.Random) -> None:
    path = a_file(folder, rng)
    content = bytearray(path.read_bytes())
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)


def truncate(folder: Path, rng: random.Random) -> None:
    path = a_file(folder, rng)
    content = path.read_bytes()
    path.write_bytes(content[: rng.randrange(len(content))])


def append(folder: Path, rng: random.Random) -> None:
    path = a_file(folder, rng)
    path.write_bytes(path.read_bytes() + rng.randbytes(rng.randint(1, 8)))


def swap(folder: Path, rng: random.Random) -> None:
    one, other = rng.sample(sorted(folder.glob("part-*")), 2)
    content = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(content)


def delete(folder: Path, rng: random.Random) -> None:
    rng.choice(sorted(folder.iterdir())).unlink()


def edit(folder: Path, rng: random.Random) -> None:
    """Changes, repeats or deletes a value of the manifest or of a line of the list of parts."""
    journal = folder / JOURNAL
    path = journal if journal.exists() and rng.random() < 0.5 else folder / MANIFEST
    lines = path.read_text().splitlines() if path == journal else [path.read_text()]
    number = rng.randrange(len(lines))
    content, tab, rest = lines[number].partition("\t")
    document = json.loads(content)
    holder, key = rng.choice(list(places(document)))
    match rng.choice(("other", "gone", "null", "twice")):
        case "gone":
            del holder[key]
        case "null":
            holder[key] = None
        case "twice" if isinstance(holder, list):
            holder.append(holder[key])
        case _:
            holder[key] = other(holder[key])
    lines[number] = json.dumps(document) + tab + rest
    path.write_text("".join(f"{line}\n" for line in lines))


def drop_line(folder: Path, rng: random.Random) -> None:
    """Drops a line of the list of parts or, if the run ended, an entry of the manifest's list."""
    journal = folder / JOURNAL
    if journal.exists():
        lines = journal.read_text().splitlines(keepends=True)
        # The last line stays: without it, this would be the list of a run that was killed earlier.
        del lines[rng.randrange(len(lines) - 1)]
        journal.write_text("".join(lines))
        return
    document = json.loads((folder / MANIFEST).read_text())
    del document["parts"][rng.randrange(len(document["parts"]))]
    (folder / MANIFEST).write_text(json.dumps(document))


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every key of every object, every index of every list."""
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], dict | list):
            yield from places(value[key])


def other(value: Any) -> Any:
    if isinstance(value, bool) or value is None:
        return not value
    if isinstance(value, str):
        return f"{value}x"
    return value + 1 if isinstance(value, int | float) else value[::-1] if isinstance(value, list) else {}


@pytest.mark.parametrize("ended", [True, False], ids=["ended", "killed"])
@pytest.mark.parametrize("damage", [flip, truncate, append, swap, delete, edit, drop_line])
def test_damaged_results_are_refused_or_load_unchanged(
    tmp_path: Path, damage: Callable[[Path, random.Random], None], ended: bool
) -> None:
    write(tmp_path / "sound", ended=ended)
    sound, hurt = load_results(tmp_path / "sound"), tmp_path / "hurt"
    rng, refused = random.Random(20261122), 0
    for number in range(PER_WAY):
        shutil.copytree(tmp_path / "sound", hurt)
        damage(hurt, rng)
        found = loaded(hurt)
        if isinstance(found, str):
            refused += 1
            assert "\n" not in found
        else:
            assert shows(found) == shows(sound) or (not ended and is_killed_earlier(found, sound)), number
        shutil.rmtree(hurt)
    assert refused > 0


def test_part_with_a_wrong_digest_is_not_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a single bit is wrong polars may panic, which is no `Exception`, or end the process."""
    write(tmp_path / "sound", ended=True)
    part = tmp_path / "sound/part-0001.parquet"
    content = bytearray(part.read_bytes())
    content[-20] ^= 1
    part.write_bytes(content)
    for name in ("read_parquet", "read_parquet_metadata"):
        monkeypatch.setattr(pl, name, lambda *_arguments, **_options: pytest.fail("it was read"))
    assert loaded(tmp_path / "sound") == f"{part}: damaged: changed since it was written"


def test_panic_of_the_parquet_reader_is_reported_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "sound", ended=True)

    def panics(_source: object) -> None:
        raise pl.exceptions.PanicException("called `Option::unwrap()` on a `None` value")

    monkeypatch.setattr(pl, "read_parquet", panics)
    part = tmp_path / "sound/part-0001.parquet"
    assert loaded(tmp_path / "sound") == f"{part}: damaged: called `Option::unwrap()` on a `None` value"


def loaded(folder: Path) -> Results | str:
    """The results, or the message of the error."""
    try:
        return load_results(folder)
    except InputError as error:
        return str(error)


def shows(results: Results) -> tuple[object, ...]:
    return results.manifest, results.csv(), results.missing


def is_killed_earlier(found: Results, sound: Results) -> bool:
    """Whether these are the results of a killed run: parts to some point, perhaps without the last file."""
    parts, failures = found.manifest.parts, found.manifest.failures
    there = len(sound.manifest.planned) - len(found.missing)
    return (
        not found.is_whole
        and parts == sound.manifest.parts[: len(parts)]
        and failures == sound.manifest.failures[: len(failures)]
        and 0 <= len(parts) - there <= 1
        and sound.csv().startswith(found.csv())
    )
