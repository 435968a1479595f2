"""Every unknown is marked in all cells that depend on it: in returned and printed rows, in the results'
tables, and in the report.
"""

from __future__ import annotations

import math
import re

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import real
import shakedown
from shakedown.experiments.figure_kinds import Run, kind
from shakedown.experiments.figure_kinds.in_memory_results import results_of
from shakedown.experiments.file.experiment import Experiment
from shakedown.native.scenario import Fleet, Fleets, Places, Scenario
from shakedown.prediction import scenario as scenarios
from shakedown.reporting.columns import WIDE, shown_in
from shakedown.reporting.columns.objects import object_table
from shakedown.reporting.html.modelled import sections as predicted_sections
from shakedown.reporting.html.simulated import sections as simulated_sections
from shakedown.reporting.terminal.modelled import predicted_tables
from shakedown.results.folder import Results
from shakedown.schema.options import PredictionOptions
from shakedown.schema.saved import AboutExperiment
from unknowns import POWERS, hidden_work, with_power

SUITES = ("tls1.2/psk", "tls1.3/x25519/p256/server")
DEVICE, BEARER = "cortex-m4", "nb-iot"
ARRIVALS = ("poisson:0.1/s", "storm:1s")
UNKNOWNS = (
    *((side, message) for side in ("client", "server") for message in (None, 0, 1)),
    *(("bearer", key) for key in POWERS["bearer"]),
)
TRUE = {"client": (0.0, 5.0), "server": (0.0, 5.0), "bearer": (1e-4, 20.0)}
"""True values of the unknown: seconds; watts or joules."""
DRAWN = 0.05
"""With new draws, the network's times differ slightly."""
MARKED = re.compile(r"[≥≤] |.+ – |unknown$|–$|no server cost is known$")

Figure = tuple[str, float | None]
"""A cell's text, and its value."""


def world(place, true):
    """The cells of every output if the unknown has a true value, or None."""
    what, where = place

    def estimate(trace, side, device, scale):
        found = real_cost(trace, side, device, scale)
        return hidden_work(found, side, where, true) if side == what else found

    def bearer(name):
        return with_power(real_bearer(name), where, true) if what == "bearer" else real_bearer(name)

    real_cost, real_bearer = scenarios._cached_cost, scenarios.load_bearer
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(scenarios, "_cached_cost", estimate)
        patched.setattr(scenarios, "load_bearer", bearer)
        saved = results()
        return rows(), saved, {**tables(saved), **lines(saved)}


def rows(rate_per_s: float = 0.1) -> dict[str, list[Figure]]:
    """The cells of the tables that functions and commands share."""
    place = {"device": DEVICE, "bearer": BEARER}
    options = PredictionOptions(from_idle=True, battery_j=1e4)
    fleet = Fleet(arrivals=ARRIVALS[0], clients=100, replications=1)
    made = {
        "predict": shakedown.predict(SUITES, rate_per_s=rate_per_s, options=options, **place),
        "capacity": shakedown.capacity(SUITES, within_s=60.0, rate_per_s=rate_per_s, **place),
        "simulate": shakedown.simulate(SUITES, fleet, **place),
        "storm": shakedown.simulate(SUITES, Fleet(arrivals=ARRIVALS[1], clients=100), **place),
    }
    found = {}
    for name, objects in made.items():
        table = object_table(list(objects))
        for column in shown_in(table.columns, table.rows, WIDE):
            if column.numeric:
                cells = [(column.cell(row), row.get(column.key)) for row in table.rows]
                found[f"{name} {column.key}"] = cells
    return found


def results(rate_per_s: float = 0.1) -> Results:
    """The results of an experiment with the same places and fleets."""
    own = [real.measurement(suite) for suite in SUITES]
    fleets = Fleets(
        fleets=tuple(Fleet(arrivals=one, clients=100, replications=1) for one in ARRIVALS), seed=1
    )
    places = Places(
        devices=(DEVICE,), bearers=(BEARER,), rates_per_s=(rate_per_s,), within_s=60.0, battery_j=1e4
    )
    about = AboutExperiment(name="e")
    run = Run(Experiment(about, (), places, kind_tables={"simulated": fleets}))
    for one in own:
        run.keep(Scenario(kind="measured", handshake=real.identity(one)), one)
    parts = [
        figures.table([(scenario, figures.run(scenario, run))])
        for figures in (kind("modelled"), kind("simulated"))
        for batch in figures.scenarios(run)
        for scenario in batch
    ]
    plain = results_of(own)
    return Results(plain.manifest, pl.concat([plain.table, *parts], how="diagonal"))


def tables(saved: Results) -> dict[str, list[Figure]]:
    """The cells of the report's tables, by section and heading."""
    found: dict[str, list[Figure]] = {}
    for section in (*predicted_sections(saved), *simulated_sections(saved)):
        for block in section.blocks:
            if block.table is None or "extrapolated" in block.folded_table:
                continue
            first = len(block.table.head) - block.table.numeric
            for row in block.table.rows:
                for heading, cell in zip(block.table.head[first:], row[first:], strict=True):
                    key = f"{section.anchor} {block.folded_table} {heading}"
                    found.setdefault(key, []).append((str(cell), getattr(cell, "value", None)))
    return found


def lines(saved: Results) -> dict[str, list[Figure]]:
    """The cells of predictions on a terminal; fleets have the columns of the report there."""
    found: dict[str, list[Figure]] = {}
    title = ""
    for line in (one for text in predicted_tables(saved, 400) for one in text.splitlines()):
        if line.startswith("modelled"):
            title = line
        elif line.startswith(SUITES):
            for number, cell in enumerate(re.split(r"  +", line)[1:]):
                found.setdefault(f"terminal {title} {number}", []).append((cell, None))
    return found


def depends(one: Figure, other: Figure) -> bool:
    """Whether a cell differs by more than draws do."""
    (text, value), (other_text, other_value) = one, other
    if value is None or other_value is None:
        numbers = [re.fullmatch(r"[!~≈]? ?([\d.,]+) ?([a-zµ%]*)", cell) for cell in (text, other_text)]
        if None in numbers or numbers[0][2] != numbers[1][2]:
            return text != other_text
        value, other_value = (float(found[1].replace(",", "")) for found in numbers)
    return not math.isclose(value, other_value, rel_tol=DRAWN, abs_tol=1e-12)


def test_every_estimate_has_the_mark_of_its_basis():
    """All costs of this scenario are in part assumed."""
    estimates = {
        "predict": ("client_s", "server_s", "queue_s", "utilisation", "energy_j", "wake_tail_j"),
        "capacity": ("rate_per_s", "workers_needed", "unloaded_s", "limit_per_s"),
    }
    found = rows(1000.0)
    for command, keys in estimates.items():
        for key in keys:
            assert all(text.startswith("≈ ") for text, _ in found[f"{command} {key}"]), (command, key)
    saved = results(1000.0)
    page = {**tables(saved), **lines(saved)}
    loads = [
        name for name in page if ("utilisation" in name and "predictions" in name) or "worker of" in name
    ]
    assert len(loads) >= 2
    for name in loads:
        assert all(text.startswith("≈ ") for text, _ in page[name]), (name, page[name])


@settings(max_examples=6, deadline=None)
@given(st.sampled_from(UNKNOWNS))
def test_every_cell_that_depends_on_an_unknown_is_marked(place):
    (shown, saved, page), *true = (world(place, value) for value in (None, *TRUE[place[0]]))
    checked = 0
    for here, *there in ((shown, *(one[0] for one in true)), (page, *(one[2] for one in true))):
        for name, cells in here.items():
            for hidden, *both in zip(cells, *(one[name] for one in there if name in one), strict=True):
                if len(both) == len(there) and depends(*both):
                    checked += 1
                    assert MARKED.match(hidden[0].removeprefix("! ")), (name, hidden, both)
    assert checked >= 4
    for view in ("predictions", "fleets"):
        missing = ("energy_missing", "wake_tail_missing") if place[0] == "bearer" else ("missing",)
        found = (getattr(one, view).to_dicts() for one in (saved, *(one[1] for one in true)))
        for hidden, *both in zip(*found, strict=True):
            for name, value in hidden.items():
                if isinstance(both[0][name], float) and depends(*(("", row[name]) for row in both)):
                    assert value is None or any(hidden[one] for one in missing), (view, name, value)
