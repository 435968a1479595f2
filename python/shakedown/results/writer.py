"""Writes a results folder.

    manifest.json       provenance: machine, versions, command, experiment; at the end also the parts and how
                        the run ended
    parts.jsonl         during the run: parts and failures, one per line, with the digest of all lines so far
    part-0001.parquet   the first scenario's figures, one row per figure (see `shakedown.results.table`)
    …

A part's name and digest are on the disk before the part, and the part is renamed to its name when it is
complete. So after any interruption all finished parts are readable, and no other file is mistaken for a part.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Literal

import msgspec
import polars as pl

from shakedown.errors import InputError, ShakedownError, os_failure, os_reason
from shakedown.files.owned import remove_page
from shakedown.files.write import DRAFT, digest, digest_of, flush_folder, remove_left_over, write_durably
from shakedown.results.lock import FolderLock
from shakedown.results.names import (
    JOURNAL,
    MANIFEST,
    OWN_NAMES,
    PART_KEY,
    PART_NAME,
    line_digest,
    manifest_digest,
)
from shakedown.results.reader import listed_parts
from shakedown.schema.base import builtins, encode, encode_pretty
from shakedown.schema.saved import SCHEMA_VERSION, Failure, Manifest, Part


class ResultsWriter:
    """Writes a results folder: parts are added one by one, then the folder is closed."""

    def __init__(
        self,
        folder: str | Path,
        manifest: Manifest,
        *,
        replace: bool = False,
        lock: FolderLock | None = None,
    ) -> None:
        """Creates and locks the folder. Raises `InputError` if this fails, or the folder has other files.

        A `lock` that the caller already holds is used instead, and is not released when the results are
        closed. The folder must be new or empty, or, with `replace`, a results folder; of that, only the files
        in its manifest are removed.
        """
        self.folder = Path(folder)
        self.manifest = manifest
        self.parts: list[Part] = []
        self.failures: list[Failure] = []
        self._number = 0
        self._noted = ""
        self._journal: int | None = None
        self._lock = None if lock is not None else FolderLock(self.folder)
        try:
            self._make_room(replace)
            write_durably(self.folder / MANIFEST, self._manifest(), replace=False)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
            self._journal = os.open(self.folder / JOURNAL, flags, 0o666)
            flush_folder(self.folder)
        except FileExistsError as error:
            self._release()
            raise InputError(
                f"{self.folder}: {Path(str(error.filename or error)).name} is there already; "
                "accepted: a new or empty folder"
            ) from error
        except OSError as error:
            self._release()
            raise os_failure(
                f"{self.folder}: results cannot be written there: {os_reason(error)}", error
            ) from error
        except BaseException:
            self._release()
            raise

    def add(self, kind: str, about: str, table: pl.DataFrame) -> None:
        """Writes a part durably: after the return it survives a crash. Raises `ShakedownError`."""
        name = self._free_name()
        note = {"schema": SCHEMA_VERSION, "provenance": self.manifest.provenance, "file": name}
        buffer = io.BytesIO()
        table = table.with_columns(provenance=pl.lit(self.manifest.provenance, pl.String))
        table.write_parquet(buffer, metadata={PART_KEY: json.dumps(note)})
        content = buffer.getvalue()
        part = Part(file=name, sha256=digest(content), kind=kind, about=about)
        try:
            self._note(part)
            write_durably(self.folder / name, content, replace=False)
        except OSError as error:
            raise self._cannot_write(error) from error
        except KeyboardInterrupt:
            # Ctrl-C may come between the part's appearance and the return.
            if (self.folder / name).exists():
                self.parts.append(part)
            raise
        self.parts.append(part)

    def fail(self, failure: Failure) -> None:
        """Records that a scenario has no figures. Raises `ShakedownError`."""
        try:
            self._note(failure)
        except OSError as error:
            raise self._cannot_write(error) from error
        self.failures.append(failure)

    def close(self, ended: Literal["complete", "interrupted", "failed"]) -> None:
        """Records how the run ended, and releases the folder. Raises `ShakedownError`."""
        self.manifest = msgspec.structs.replace(
            self.manifest, parts=tuple(self.parts), failures=tuple(self.failures), ended=ended
        )
        try:
            write_durably(self.folder / MANIFEST, self._manifest(), replace=True)
            (self.folder / JOURNAL).unlink(missing_ok=True)
        except OSError as error:
            raise self._cannot_write(error) from error
        finally:
            self._release()

    def __enter__(self) -> ResultsWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.manifest.ended is None and self._journal is not None:
            if kind is None:
                self.close("complete")
                return
            # The folder is readable without this record, and the first error must be reported.
            with suppress(ShakedownError):
                self.close("interrupted" if kind is KeyboardInterrupt else "failed")

    def _release(self) -> None:
        if self._journal is not None:
            os.close(self._journal)
            self._journal = None
        if self._lock is not None:
            self._lock.release()

    def _make_room(self, replace: bool) -> None:
        """Refuses a folder with other files; removes the results of an earlier run."""
        # A run that was killed before it renamed its first file left this draft.
        remove_left_over(self.folder / MANIFEST)
        there = sorted(path.name for path in self.folder.iterdir())
        if not there:
            return
        if MANIFEST not in there:
            raise InputError(
                f"{self.folder} holds other files ({there[0]}); accepted: a new or an empty folder"
            )
        # Raises InputError if the manifest is not one of a results folder.
        old = listed_parts(self.folder)
        if not replace:
            raise InputError(f"{self.folder} already contains results; accepted: another folder, or --force")
        remove_page(self.folder / "report.html")
        remove_parts(self.folder, old)
        for draft in self.folder.glob(f".part-*{DRAFT}"):
            name = draft.name[1 : -len(DRAFT)]
            if PART_NAME.fullmatch(name):
                remove_left_over(self.folder / name)
        # The manifest is removed last, so that an interrupted removal leaves a results folder.
        (self.folder / JOURNAL).unlink(missing_ok=True)
        (self.folder / MANIFEST).unlink()

    def _manifest(self) -> bytes:
        sealed = msgspec.structs.replace(self.manifest, sha256=manifest_digest(builtins(self.manifest)))
        return encode_pretty(sealed).encode() + b"\n"

    def _note(self, entry: Part | Failure) -> None:
        assert self._journal is not None
        content = encode(entry)
        self._noted = line_digest(self._noted, content)
        line = b"%b\t%b\n" % (content, self._noted.encode())
        while line:
            line = line[os.write(self._journal, line) :]
        os.fsync(self._journal)

    def _free_name(self) -> str:
        """The next part's name; names of existing files are skipped."""
        while True:
            self._number += 1
            name = f"part-{self._number:04d}.parquet"
            if not os.path.lexists(self.folder / name):
                return name

    def _cannot_write(self, error: OSError) -> ShakedownError:
        return ShakedownError(
            f"{self.folder}: results cannot be written: {os_reason(error)}; kept: {len(self.parts)} parts"
        )


def own_files(results: Path) -> list[Path]:
    """The files from which results are read: a file, or those of a results folder."""
    if not results.is_dir():
        return [results]
    return [*(results / name for name in OWN_NAMES), *results.glob("part-*.parquet")]


def remove_parts(folder: Path, parts: Iterable[Part]) -> None:
    """Removes the parts that a manifest lists, if their digests match."""
    for part in parts:
        path = folder / part.file
        if digest_of(path) == part.sha256:
            path.unlink()
