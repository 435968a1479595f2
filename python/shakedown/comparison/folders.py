"""Compares the measurements in two results folders; times only for equal machines, clocks and versions."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from shakedown.comparison.figures import Figure, Figures, Handshake, Readings, handshakes
from shakedown.comparison.verdicts import Pair, comparison, logarithms, only, pairs_of
from shakedown.errors import InputError
from shakedown.results.folder import Results, load_results
from shakedown.results.names import MANIFEST
from shakedown.results.reader import check_exists, damage_reported
from shakedown.schema.comparison import Comparison, Method

MIN_RUNS = 10
"""Minimum runs of each condition for intervals: ten suffice for 4,600 simultaneous times, eight for 320."""
NAMED = 3
"""Limit of suites in an error."""


@dataclass(frozen=True)
class Runs:
    """The results of a condition: one run of an experiment, or several."""

    label: str
    results: tuple[Results, ...]

    def handshakes(self) -> dict[Handshake, list[Figures]]:
        """The figures of each handshake, by run."""
        found: dict[Handshake, list[Figures]] = {}
        for one in self.results:
            with damage_reported(one.folder):
                of_run = handshakes(one.table)
            for handshake, figures in of_run.items():
                found.setdefault(handshake, []).append(figures)
        return found


def load_runs(folder: Path) -> Runs:
    """Loads a results folder, or a folder of results folders of one experiment. Raises `InputError`."""
    check_exists(folder)
    if (folder / MANIFEST).exists() or not folder.is_dir():
        return Runs(str(folder), (load_results(folder),))
    inside = sorted(one.parent for one in folder.glob(f"*/{MANIFEST}"))
    if not inside:
        raise InputError(
            f"{folder}: holds no results; accepted: a results folder, or a folder of several, the runs of "
            "one experiment"
        )
    runs = {one: load_results(one) for one in inside}
    names: dict[str, Path] = {}
    for one, results in runs.items():
        # Copies of one run would hide the variation between runs.
        other = names.setdefault(results.manifest.provenance, one)
        if other != one:
            raise InputError(f"{folder}: {other.name} and {one.name} are the same run; accepted: one of them")
    return Runs(str(folder), tuple(runs.values()))


def compare_folders(before: Runs, after: Runs, *, rules: Method, across: bool = False) -> Comparison:
    """Compares the measurements of common handshakes. `across`: compares times even if machines, clocks or
    versions differ. Raises `InputError` if there is no common handshake.
    """
    first, second = before.handshakes(), after.handshakes()
    for one, found in ((before, first), (after, second)):
        if not found:
            raise InputError(
                f"{one.label}: holds no measured handshake; accepted: results of measured suites"
            )
    if not set(first) & set(second):
        raise InputError(
            f"the folders have no handshake in common: {before.label} has {_named(first)}, "
            f"{after.label} {_named(second)}; "
            "accepted: results of the same suites and stacks (--pair measures two different ones)"
        )
    reason = None if across else differing([*before.results, *after.results])
    pairs: list[Pair] = []
    for handshake, runs in first.items():
        if handshake in second:
            pairs += run_pairs(handshake, runs, second[handshake], rules, reason)
        else:
            pairs += only(handshake, _median(runs), "before")
    for handshake, runs in second.items():
        if handshake not in first:
            pairs += only(handshake, _median(runs), "after")
    return comparison(before.label, after.label, pairs, rules)


def run_pairs(
    handshake: Handshake,
    before: Sequence[Figures],
    after: Sequence[Figures],
    rules: Method,
    reason: str | None,
) -> list[Pair]:
    """Figures of a handshake in runs of two conditions; `reason`: why times are not comparable."""
    few = min(len(before), len(after)) < MIN_RUNS
    if reason is None and few and not rules.floor:
        reason = f"fewer than {MIN_RUNS} runs"
    medians = (_median(before), _median(after))

    def varying(figure: Figure) -> Pair | None:
        groups = [
            logarithms([run[figure].median for run in runs if figure in run]) for runs in (before, after)
        ]
        if groups[0] is None or groups[1] is None:
            return None
        return Pair(
            (handshake, handshake),
            figure,
            medians[0][figure],
            medians[1][figure],
            groups=(groups[0], groups[1]),
            few=few,
        )

    return list(pairs_of((handshake, handshake), *medians, varying, reason))


def _named(found: Mapping[Handshake, object]) -> str:
    names = [f"{one.suite} ({one.stacks})" for one in found]
    return ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")


def differing(results: Sequence[Results]) -> str | None:
    """The reason if times are not comparable: machines, clocks or versions differ."""
    manifests = [one.manifest for one in results]
    machines = {
        None if one.machine is None else (one.machine.cpu, one.machine.cores, one.machine.os)
        for one in manifests
    }
    versions = {None if one.build is None else (one.build.shakedown, one.build.openssl) for one in manifests}
    clocks = {
        text
        for one in results
        for text in one.table.filter(one.table["quantity"] == "handshake.clock")["text"].to_list()
    }
    differ = [
        name
        for name, values in (("machines", machines), ("clocks", clocks), ("versions", versions))
        if len(values) > 1
    ]
    return f"{' and '.join(differ)} differ" if differ else None


def _median(runs: Sequence[Mapping[Figure, Readings]]) -> Figures:
    """The median over runs of each figure that all runs have."""
    return {
        figure: replace(one, median=statistics.median(run[figure].median for run in runs))
        for figure, one in runs[0].items()
        if all(figure in run for run in runs)
    }
