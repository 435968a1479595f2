"""Results on disk: a folder with a manifest and one Parquet file per measured suite.

    manifest.json       format, schema version, provenance: machine, versions, seed, command, experiment
    part-0001.parquet   the first suite's figures, one row a figure (see `shakedown.results.tidy`)
    …
    captured.parquet    the connections of its captures, bounded in number (see `shakedown.results.captures`)
    modelled.parquet    what the experiment asked of them elsewhere: predictions, and the server's queue

Each part is written beside its final name, flushed to the disk and renamed, so that whatever interrupts a run
leaves every finished suite readable. Parts name their schema and carry what of a measurement is not a figure.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import polars as pl

from shakedown.errors import InputError, ShakedownError, os_reason
from shakedown.measurement import Measurement
from shakedown.results import tidy_captures, tidy_models
from shakedown.results.accepted import ABOUT_A_RUN, CAPTURED, MEASURED
from shakedown.results.shapes import misfit
from shakedown.results.tidy import SCHEMA, SINCE_VERSION_2, from_table, rest_of, to_table

if TYPE_CHECKING:
    from shakedown.results.captures import Capture

FORMAT = "shakedown results"
SCHEMA_VERSION = 2
READABLE_VERSIONS = (1, 2)
"""Raised whenever a reader of the old version could misread the new; history: docs/reference/results.md."""

MANIFEST = "manifest.json"
_PART = "part-{:04d}.parquet"
_MODELLED = "modelled.parquet"
_CAPTURED = "captured.parquet"
_PART_KEY = "shakedown"


class ResultsWriter:
    """A results folder in the making; suites are added as they are measured, then it is closed."""

    def __init__(self, folder: str | Path, manifest: Mapping[str, Any], *, replace: bool = False) -> None:
        """Makes the folder. Raises `InputError` where it can't, or holds results that may not be replaced."""
        self.folder = Path(folder)
        self.parts = 0
        self._tables: list[str] = []
        created = datetime.now(UTC).isoformat(timespec="seconds")
        about = {"format": FORMAT, "schema": SCHEMA_VERSION, "created": created, **manifest}
        about["provenance"] = sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:12]
        self.manifest: dict[str, Any] = about
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if (self.folder / MANIFEST).exists():
                if not replace:
                    raise InputError(
                        f"{self.folder} holds results already; accepted: another folder, or --force"
                    )
                (self.folder / MANIFEST).unlink()
            for old in [
                *self.folder.glob("part-*.parquet"),
                self.folder / _MODELLED,
                self.folder / _CAPTURED,
            ]:
                old.unlink(missing_ok=True)
            self._write_manifest()
        except OSError as error:
            raise InputError(f"{self.folder}: results cannot be written there: {os_reason(error)}") from error

    def add(self, measurement: Measurement) -> None:
        """Writes one suite; once this returns it survives a crash. Raises `ShakedownError`."""
        table = to_table(measurement, self.manifest["provenance"])
        self._write_table(_PART.format(self.parts + 1), table, rest=rest_of(measurement))
        self.parts += 1

    def add_models(
        self,
        predictions: Sequence[Mapping[str, Any]],
        queues: Sequence[Mapping[str, Any]],
        unpriced: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        """Writes predictions and queue curves, and what could not be priced. Raises `ShakedownError`."""
        table = tidy_models.to_table(predictions, queues, self.manifest["provenance"])
        extrapolated = tidy_models.extrapolated_of(predictions)
        self._write_table(_MODELLED, table, extrapolated=extrapolated, unpriced=list(unpriced))
        self._tables.append(_MODELLED)

    def add_captures(self, captures: Sequence[Capture]) -> None:
        """Writes what came of the captures. Raises `ShakedownError`."""
        table = tidy_captures.to_table(captures, self.manifest["provenance"])
        self._write_table(_CAPTURED, table, captures=list(captures))
        self._tables.append(_CAPTURED)

    def _write_table(self, name: str, table: pl.DataFrame, **about: object) -> None:
        note = {"schema": SCHEMA_VERSION, "provenance": self.manifest["provenance"], **about}
        buffer = io.BytesIO()
        table.write_parquet(buffer, metadata={_PART_KEY: json.dumps(note)})
        try:
            _write_durably(self.folder / name, buffer.getvalue())
        except OSError as error:
            raise self._cannot_write(error) from error

    def close(self, **outcome: object) -> None:
        """Writes down how the run ended: the parts and tables that there are, and `outcome`.

        Raises `ShakedownError`.
        """
        self.manifest.update(parts=self.parts, tables=self._tables, **outcome)
        try:
            self._write_manifest()
        except OSError as error:
            raise self._cannot_write(error) from error

    def _write_manifest(self) -> None:
        text = json.dumps(self.manifest, indent=2, ensure_ascii=False, default=str) + "\n"
        _write_durably(self.folder / MANIFEST, text.encode())

    def _cannot_write(self, error: OSError) -> ShakedownError:
        return ShakedownError(
            f"{self.folder}: results cannot be written: {os_reason(error)}; kept: {self.parts} suites"
        )


def _write_durably(path: Path, content: bytes) -> None:
    """All of it or nothing, even if the power goes: temporary file, flush to disk, rename."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@dataclass(frozen=True)
class Results:
    """Saved results: the manifest, the tidy table, and the measurements rebuilt from it.

    `predictions` price the measured handshakes, `captured_predictions` the captured ones.
    """

    manifest: dict[str, Any]
    table: pl.DataFrame
    measurements: tuple[Measurement, ...]
    folder: Path | None = None
    predictions: tuple[dict[str, Any], ...] = ()
    queues: tuple[dict[str, Any], ...] = ()
    unpriced: tuple[dict[str, Any], ...] = ()
    captures: tuple[Capture, ...] = ()
    captured_predictions: tuple[dict[str, Any], ...] = ()

    @cached_property
    def by_suite(self) -> dict[str, Measurement]:
        """The measurements by suite."""
        return {measurement["suite"]: measurement for measurement in self.measurements}

    @property
    def experiment(self) -> dict[str, Any]:
        """Name, title, question and text of the experiment; empty where there was none."""
        return cast("dict[str, Any]", self.manifest.get("experiment") or {})

    def write_csv(self, path: str | Path) -> None:
        """The tidy table as CSV. Raises `InputError`."""
        try:
            Path(path).write_text(self.table.write_csv(), encoding="utf-8")
        except OSError as error:
            raise InputError(f"{path}: cannot be written: {os_reason(error)}") from error


def load_results(folder: str | Path) -> Results:
    """Reads a results folder; raises `InputError` in one line where it isn't one, or is damaged."""
    folder = Path(folder)
    manifest = _load_manifest(folder)
    numbers = sorted(int(path.stem[5:]) for path in folder.glob("part-[0-9][0-9][0-9][0-9]*.parquet"))
    expected: int = manifest.get("parts", max(numbers, default=0))
    for number in range(1, expected + 1):
        if number not in numbers:
            raise InputError(f"{folder}: {_PART.format(number)} is missing ({expected} parts were written)")
    for name in manifest.get("tables", ()):
        if not (folder / name).exists():
            raise InputError(f"{folder}: {name} is missing")
    tables, measurements = [], []
    for number in range(1, expected + 1):
        table, measurement = _load_part(folder / _PART.format(number))
        tables.append(table)
        measurements.append(measurement)
    models: dict[str, Any] = {}
    if (folder / _MODELLED).exists():
        modelled, models = _load_models(folder / _MODELLED)
        tables.append(modelled)
    captures: tuple[Capture, ...] = ()
    if (folder / _CAPTURED).exists():
        captured, captures = _load_captures(folder / _CAPTURED)
        tables.append(captured)
    table = pl.concat(tables) if tables else pl.DataFrame(schema=SCHEMA)
    return Results(manifest, table, tuple(measurements), folder, captures=captures, **models)


def _load_manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    if not folder.exists():
        raise InputError(f"{folder}: there is no such folder; accepted: a folder that run has written")
    if not path.is_file():
        raise InputError(f"{folder}: not a results folder: it holds no {MANIFEST}")
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {os_reason(error)}") from error
    except ValueError as error:
        raise InputError(f"{path}: damaged: not valid JSON ({error})") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise InputError(f'{path}: not a results folder: its manifest\'s format is not "{FORMAT}"')
    _check_schema(manifest.get("schema"), path)
    wrong = misfit(manifest, ABOUT_A_RUN)
    if wrong:
        raise InputError(f"{path}: damaged: {wrong}")
    return manifest


def _check_schema(version: object, path: Path) -> None:
    if version not in READABLE_VERSIONS:
        accepted = " and ".join(map(str, READABLE_VERSIONS))
        raise InputError(f"{path}: results of schema version {version}; accepted: {accepted}")


def _load_part(path: Path) -> tuple[pl.DataFrame, Measurement]:
    with _damage_told(path):
        table, about = _load_table(path)
        measurement = from_table(table, about["rest"])
    return table, measurement


def _load_models(path: Path) -> tuple[pl.DataFrame, dict[str, Any]]:
    with _damage_told(path):
        table, about = _load_table(path)
        predictions = tidy_models.predictions_of(table, about["extrapolated"])
        models = {
            "predictions": tuple(one for one in predictions if "capture" not in one),
            "captured_predictions": tuple(one for one in predictions if "capture" in one),
            "queues": tuple(tidy_models.queues_of(table)),
            "unpriced": tuple(about["unpriced"]),
        }
    return table, models


def _load_captures(path: Path) -> tuple[pl.DataFrame, tuple[Capture, ...]]:
    with _damage_told(path):
        table, about = _load_table(path)
        captures = tuple(about["captures"])
        if not all(isinstance(one["connections"], list) for one in captures):
            raise ValueError("its captures have no connections")
    return table, captures


def _load_table(path: Path) -> tuple[pl.DataFrame, dict[str, Any]]:
    content = path.read_bytes()
    about = json.loads(pl.read_parquet_metadata(io.BytesIO(content))[_PART_KEY])
    _check_schema(about.get("schema"), path)
    table = pl.read_parquet(io.BytesIO(content))
    if about["schema"] == 1:
        since = {name: pl.lit(None, SCHEMA[name]) for name in SINCE_VERSION_2}
        table = table.with_columns(**since).select(list(SCHEMA))
    if dict(table.schema) != SCHEMA:
        raise ValueError(f"its columns are not those of schema {SCHEMA_VERSION}")
    return table, about


@contextmanager
def _damage_told(path: Path) -> Iterator[None]:
    """Whatever is wrong with a file becomes one clear line that names it."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {os_reason(error)}") from error
    except (pl.exceptions.PolarsError, ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        reason = " ".join(str(error).split()).strip("'\"")
        raise InputError(f"{path}: damaged: {reason[:160]}") from error


def results_of(
    measurements: Iterable[Measurement],
    manifest: Mapping[str, Any] | None = None,
    captures: Sequence[Capture] = (),
) -> Results:
    """Measurements and captures that never were on disk, as results."""
    kept: Sequence[Measurement] = tuple(measurements)
    tables = [to_table(measurement, "unsaved") for measurement in kept]
    if captures:
        tables.append(tidy_captures.to_table(captures, "unsaved"))
    table = pl.concat(tables) if tables else pl.DataFrame(schema=SCHEMA)
    return Results(dict(manifest or {}), table, tuple(kept), captures=tuple(captures))


def results_of_json(path: str | Path, canonical: Callable[[str], str] | None = None) -> Results:
    """Objects of `measure --json`, or of `inspect --traces`, as results.

    `canonical` refuses what names no suite. Raises `InputError` in one line where the file holds anything
    else.
    """
    from shakedown.results.captures import capture_of_traces

    path = Path(path)
    accepted = "accepted: what measure --json prints, or inspect --traces writes"
    try:
        found = json.loads(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {os_reason(error)}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON ({error}); {accepted}") from error
    if not isinstance(found, list) or not found or not all(isinstance(one, dict) for one in found):
        raise InputError(f"{path}: holds no traces; {accepted}")
    shapes = {"measured": MEASURED, "captured": CAPTURED}
    for number, one in enumerate(found):
        kind = one.get("kind")
        if not isinstance(kind, str) or kind not in shapes:
            raise InputError(f'{path}: a trace\'s kind is neither "measured" nor "captured"; {accepted}')
        wrong = misfit(one, shapes[kind])
        if wrong:
            raise InputError(f"{path}: trace {number + 1}: {wrong}; {accepted}")
        if canonical is not None:
            try:
                canonical(one["suite"])
            except InputError as error:
                raise InputError(f"{path}: trace {number + 1}: {error}") from error
    measured = [one for one in found if one["kind"] == "measured"]
    captured = [one for one in found if one["kind"] == "captured"]
    if len({one["suite"] for one in measured}) < len(measured):
        raise InputError(f"{path}: a suite stands there twice; {accepted}")
    captures = [capture_of_traces(path.name, captured)] if captured else []
    about = {"experiment": {"title": f"What {path.name} holds"}}
    return results_of(measured, about, captures)
