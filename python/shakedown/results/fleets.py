"""Questions to the tidy table about simulated fleets: one row a fleet, and their time series."""

from __future__ import annotations

import polars as pl

from shakedown.results.parts import over_parts
from shakedown.results.queries import PLACE, Names, label, wide

OF_CLIENTS = (
    "arrived",
    "completed",
    "failed",
    "in_flight",
    "pausing",
    "seeking",
    "at_server",
    "under_way",
)
OF_FLEETS = (*OF_CLIENTS, "retries", "refused", "waiting", "busy")
OF_SERVERS = ("servers", "starting")
"""Of a time series, what is known where servers start and stop."""

FLEET_OPTIONS = ("retry", "admission", "autoscale", "sessions")
"""Texts that were given to a fleet, or null."""

OF_CELLS = ("sent", "collided", "up", "down", "bytes")
"""Of a time series, what is known of cells; `up` and `down` are shares of their time."""

_STATISTICS = ("mean", "margin", "min", "p50", "p90", "p95", "p99", "max", "p99_margin")


def _labelled(view: pl.DataFrame) -> pl.DataFrame:
    named = label(view)
    # Engines stand beside the replay of the same suite.
    engines = pl.format("{} ({} engines)", named, pl.col("endpoints"))
    return view.with_columns(label=pl.when(pl.col("endpoints").is_null()).then(named).otherwise(engines))


@over_parts("simulated", _labelled)
def fleets(table: pl.DataFrame) -> pl.DataFrame:
    """Simulated fleets, one a row, in the table's order; times in seconds.

    `arrivals`, `clients`, `cells`, `retry`, `admission`, `autoscale` and `sessions` (null where
    not given), `completed`, `attempts`, `failed`,
    `handshake_mean_s` … `handshake_max_s`, `wait_mean_s`, `wait_margin_s`, `wait_missing`,
    `energy_mean_j`, `wake_tail_j`, `energy_missing`, `missing` (why times are lower bounds),
    `utilisation`, `offered`, `recovery_s` (null where work has no figure; `utilisation_low` and its like
    are lower bounds), `in_flight`, the three `modelled_…_s`, `width_s` of the time series, `without_cost`;
    `endpoints`: the stacks whose engines ran; `mix`: the mixture of clients, null where all are of one
    kind; `imprecise`: why figures are less precise than asked.
    """
    rows = table.filter((pl.col("kind") == "simulated") & pl.col("item").is_null())
    names: dict[tuple[str, str | None, str | None], str] = {
        ("simulated.modelled.handshake", None, None): "modelled_handshake_s",
        ("simulated.modelled.wait", None, None): "modelled_wait_s",
        ("simulated.modelled.flights-wait", None, None): "modelled_flights_wait_s",
        ("simulated.recovery", None, None): "recovery_s",
        ("simulated.recovery", None, "low"): "recovery_low_s",
        ("simulated.utilisation", None, "low"): "utilisation_low",
        ("simulated.offered", None, "low"): "offered_low",
        ("simulated.wake-tail", None, None): "wake_tail_j",
        ("simulated.in-flight", None, None): "in_flight",
        ("series.width", None, None): "width_s",
    }
    for name in ("clients", "cells", "completed", "refused", "attempts", "utilisation", "offered", "seed"):
        names[f"simulated.{name}", None, None] = name
    for statistic in _STATISTICS:
        names["simulated.handshake", None, statistic] = f"handshake_{statistic}_s"
        names["simulated.wait", None, statistic] = f"wait_{statistic}_s"
        names["simulated.energy", None, statistic] = f"energy_{statistic}_j"
    texts = {
        "simulated.arrivals": "arrivals",
        "simulated.without_cost": "without_cost",
        "simulated.missing": "missing",
        "simulated.wait.missing": "wait_missing",
        "simulated.energy.missing": "energy_missing",
        "simulated.energy.terms": "energy_terms",
        "simulated.endpoints": "endpoints",
        "simulated.mix": "mix",
        "simulated.imprecise": "imprecise",
    }
    texts |= {f"simulated.{name}": name for name in FLEET_OPTIONS}
    view = wide(rows, PLACE, names, texts=texts)
    failed = rows.filter(pl.col("quantity") == "simulated.failed").group_by("scenario")
    view = view.join(
        failed.agg(pl.col("value").sum().alias("failed")), on="scenario", how="left", maintain_order="left"
    )
    return view.with_columns(pl.col("failed").fill_null(0.0))


@over_parts("simulated")
def fleet_kinds(table: pl.DataFrame) -> pl.DataFrame:
    """Kinds of clients of mixtures, one a row: `scenario`, `item`, suite, device and bearer, `share`,
    `resumption`, `clients`, `failed`, `handshake_mean_s` … `handshake_max_s`, `missing`.
    """
    rows = table.filter(
        (pl.col("kind") == "simulated")
        & pl.col("item").is_not_null()
        & pl.col("quantity").str.starts_with("simulated.")
    )
    names: dict[tuple[str, str | None, str | None], str] = {
        (f"simulated.{name}", None, None): name for name in ("share", "resumption", "clients", "failed")
    }
    for statistic in _STATISTICS:
        names["simulated.handshake", None, statistic] = f"handshake_{statistic}_s"
    return wide(
        rows, ("scenario", "item", "suite", "device", "bearer"), names, texts={"simulated.missing": "missing"}
    )


@over_parts("simulated")
def fleet_series(table: pl.DataFrame) -> pl.DataFrame:
    """Time series of fleets, one interval a row: `scenario`, `item`, and what happened in it."""
    rows = table.filter((pl.col("kind") == "simulated") & pl.col("quantity").str.starts_with("series."))
    rows = rows.filter(pl.col("item").is_not_null() & pl.col("class").is_null())
    names: Names = {
        (f"series.{name.replace('_', '-')}", None, None): name
        for name in (*OF_FLEETS, *OF_SERVERS, *OF_CELLS)
    }
    # Cells may still carry what clients that are gone have sent.
    return wide(rows, ("scenario", "item"), names).with_columns(
        pl.col(name).fill_null(0.0) for name in OF_FLEETS
    )


@over_parts("simulated")
def fleet_kind_series(table: pl.DataFrame) -> pl.DataFrame:
    """The same of each kind of client of a mixture: `class` is its number, from 0, as text."""
    rows = table.filter((pl.col("kind") == "simulated") & pl.col("quantity").str.starts_with("series."))
    rows = rows.filter(pl.col("item").is_not_null() & pl.col("class").is_not_null())
    names: Names = {(f"series.{name.replace('_', '-')}", None, None): name for name in OF_CLIENTS}
    return wide(rows, ("scenario", "class", "item"), names)
