"""An experiment: its scenarios and places."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from shakedown.experiments.file.credentials import SideFiles
from shakedown.native.scenario import MeasureOptions, Places, Scenario
from shakedown.schema.base import Side
from shakedown.schema.saved import AboutExperiment


@dataclass(frozen=True)
class Experiment:
    """The scenarios of an experiment, in the order of the file, and its places.

    A suite that presents user-supplied certificates is named after their keys. `kind_tables` has the contents
    of the tables of single kinds, by kind.
    """

    about: AboutExperiment
    scenarios: tuple[Scenario, ...]
    places: Places = field(default_factory=Places)
    options: MeasureOptions = field(default_factory=MeasureOptions)
    kind_tables: Mapping[str, Any] = field(default_factory=dict)
    chains: Mapping[Side, SideFiles] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The experiment's name; default: the file's."""
        return self.about.name

    def of(self, kind: str) -> tuple[Scenario, ...]:
        """Scenarios of a kind that records handshakes; those of other kinds are derived in the run."""
        return tuple(one for one in self.scenarios if one.kind == kind)

    @property
    def suites(self) -> tuple[str, ...]:
        return tuple(one.label for one in self.of("measured"))

    def presented(self, side: Side) -> tuple[str, ...]:
        """The suites in which a side presents the user's certificates."""
        return tuple(one.label for one in self.of("measured") if side in one.options.user_supplied)
