"""The manifest of a results folder, and the table's rows as objects."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from shakedown.schema.base import Count, Number, Object, Side, Text
from shakedown.schema.catalogue import Build
from shakedown.schema.certificates import UserChain
from shakedown.schema.identity import StackId
from shakedown.schema.measured import Machine

FORMAT: Literal["shakedown results"] = "shakedown results"
SCHEMA_VERSION = 4

Sha256 = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}$")]
PartName = Annotated[str, msgspec.Meta(pattern=r"^part-[0-9]{4,9}\.parquet$")]


class AboutExperiment(Object, frozen=True, kw_only=True):
    """The experiment of a run; `text` is its file, unchanged."""

    name: str = ""
    title: str = ""
    question: str = ""
    text: str = ""


class Part(Object, frozen=True, kw_only=True):
    """A part of the table: its file, the file's digest, and its scenario."""

    file: PartName
    sha256: Sha256
    kind: Text
    about: str


class Failure(Object, frozen=True, kw_only=True):
    """A scenario without figures, and the reason."""

    suite: str
    reason: str
    kind: str = "measured"


class Planned(Object, frozen=True, kw_only=True):
    """A part that a run plans to write; `after`: the kind of the part with this `about` that it requires."""

    kind: Text
    about: str
    after: str | None = None


class Manifest(Object, frozen=True, kw_only=True):
    """The provenance of a run's figures, the parts that it wrote, and how it ended.

    `ended` is null during the run, and remains null if the run is killed; parts and failures are then listed
    in `parts.jsonl`, one per line, written before the part itself. `sha256` is the digest of everything else
    (`shakedown.results.names.manifest_digest`).
    """

    sha256: Sha256 | Literal[""] = ""
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
    planned: tuple[Planned, ...] = ()
    parts: tuple[Part, ...] = ()
    failures: tuple[Failure, ...] = ()
    ended: Literal["complete", "interrupted", "failed"] | None = None


class Figure(Object, frozen=True, kw_only=True, omit_defaults=True):
    """A row of the table without its scenario; keys that do not apply are omitted.

    `suite`, `device` and `bearer` are those of a kind of client in a mixture; `suite` and `connection` those
    of a captured connection.
    """

    quantity: Text
    suite: str | None = None
    device: str | None = None
    bearer: str | None = None
    connection: int | None = None
    side: Side | None = None
    item: int | None = None
    message_index: int | None = None
    message: str | None = None
    sender: Side | None = None
    flight: int | None = None
    message_unit: int | None = None
    operation: str | None = None
    algorithm: str | None = None
    parameters: str | None = None
    class_: str | None = msgspec.field(name="class", default=None)
    rate_per_s: Number | None = None
    statistic: str | None = None
    value: Number | None = None
    unit: str | None = None
    text: str | None = None
    n: int | None = None
    samples: tuple[Number, ...] | None = None


class ScenarioFigures(Object, frozen=True, kw_only=True, omit_defaults=True):
    """All figures of one scenario in the table."""

    scenario: Text
    kind: Text
    provenance: Text
    suite: str | None = None
    client_stack: StackId | None = None
    server_stack: StackId | None = None
    carrier: str | None = None
    credentials: str | None = None
    device: str | None = None
    server_device: str | None = None
    bearer: str | None = None
    workers: int | None = None
    model: str | None = None
    capture: str | None = None
    connection: int | None = None
    figures: tuple[Figure, ...]

    def __repr__(self) -> str:
        where = [self.suite, self.capture, self.device, self.bearer]
        what = " ".join(one for one in where if one)
        return f"ScenarioFigures({self.kind} {what}: {len(self.figures)} figures)"


PRINTED = {
    "figures": (ScenarioFigures, "An object of report --json."),
    "manifest": (Manifest, "The file manifest.json of a results folder."),
}
