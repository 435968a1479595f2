"""What is saved with results beside their table: the manifest of a results folder."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from shakedown.schema.base import Count, Object, Side, Text
from shakedown.schema.catalogue import Build
from shakedown.schema.certificates import UserChain
from shakedown.schema.measured import Machine

FORMAT: Literal["shakedown results"] = "shakedown results"
SCHEMA_VERSION = 3

Sha256 = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}$")]
PartName = Annotated[str, msgspec.Meta(pattern=r"^part-[0-9]{4,9}\.parquet$")]


class AboutExperiment(Object, frozen=True, kw_only=True):
    """What was asked; `text` is the experiment's file as it was written."""

    name: str = ""
    title: str = ""
    question: str = ""
    text: str = ""


class Part(Object, frozen=True, kw_only=True):
    """A part of the table: its file, what it holds, and the file's digest."""

    file: PartName
    sha256: Sha256
    kind: Text
    about: str


class Failure(Object, frozen=True, kw_only=True):
    """A scenario without figures, and why."""

    suite: str
    reason: str


class Manifest(Object, frozen=True, kw_only=True):
    """Where a run's figures come from, which parts it wrote, and how it ended.

    `ended` is null while the run goes on, and for ever where it was killed; `planned` is how many parts
    were to be written.
    """

    format: Literal["shakedown results"] = FORMAT
    schema: int = SCHEMA_VERSION
    provenance: Text
    created: str
    experiment: AboutExperiment = AboutExperiment()
    certificates: dict[Side, UserChain] = msgspec.field(default_factory=dict)
    seed: Count | None = None
    now: int | None = None
    command: tuple[str, ...] = ()
    machine: Machine | None = None
    build: Build | None = None
    python: str = ""
    planned: tuple[str, ...] = ()
    parts: tuple[Part, ...] = ()
    failures: tuple[Failure, ...] = ()
    ended: Literal["complete", "interrupted", "failed"] | None = None
