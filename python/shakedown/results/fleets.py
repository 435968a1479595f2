"""Questions to the tidy table about simulated fleets: one row a fleet, and their time series."""

from __future__ import annotations

import polars as pl

from shakedown.results.parts import over_parts
from shakedown.results.queries import PLACE, Names, label, wide

_STATISTICS = ("mean", "margin", "min", "p50", "p90", "p95", "p99", "max")


def _labelled(view: pl.DataFrame) -> pl.DataFrame:
    named = label(view)
    # Engines stand beside the replay of the same suite.
    engines = pl.format("{} ({} engines)", named, pl.col("endpoints"))
    return view.with_columns(label=pl.when(pl.col("endpoints").is_null()).then(named).otherwise(engines))


@over_parts("simulated", _labelled)
def fleets(table: pl.DataFrame) -> pl.DataFrame:
    """Simulated fleets, one a row, in the table's order; times in seconds.

    `arrivals`, `clients`, `completed`, `attempts`, `failed`, `handshake_mean_s` … `handshake_max_s`,
    `wait_mean_s`, `wait_margin_s`, `energy_mean_j`, `energy_missing`, `missing` (why times are lower bounds),
    `utilisation`, `offered`, `recovery_s`, `in_flight`, the three
    `modelled_…_s`, `width_s` of the time series, `unpriced`; `endpoints`: the stacks whose engines ran;
    `mix`: the mixture of clients, null where all are of one kind.
    """
    rows = table.filter((pl.col("kind") == "simulated") & pl.col("item").is_null())
    names: dict[tuple[str, str | None, str | None], str] = {
        ("simulated.modelled.handshake", None, None): "modelled_handshake_s",
        ("simulated.modelled.wait", None, None): "modelled_wait_s",
        ("simulated.modelled.flights-wait", None, None): "modelled_flights_wait_s",
        ("simulated.recovery", None, None): "recovery_s",
        ("simulated.in-flight", None, None): "in_flight",
        ("series.width", None, None): "width_s",
    }
    for name in ("clients", "completed", "attempts", "utilisation", "offered", "seed"):
        names[f"simulated.{name}", None, None] = name
    for statistic in _STATISTICS:
        names["simulated.handshake", None, statistic] = f"handshake_{statistic}_s"
        names["simulated.wait", None, statistic] = f"wait_{statistic}_s"
        names["simulated.energy", None, statistic] = f"energy_{statistic}_j"
    texts = {
        "simulated.arrivals": "arrivals",
        "simulated.unpriced": "unpriced",
        "simulated.missing": "missing",
        "simulated.energy.missing": "energy_missing",
        "simulated.endpoints": "endpoints",
        "simulated.mix": "mix",
    }
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
    rows = rows.filter(pl.col("item").is_not_null())
    names: Names = {
        (f"series.{name}", None, None): name.replace("-", "_")
        for name in ("arrived", "completed", "failed", "retries", "in-flight", "waiting", "busy")
    }
    return wide(rows, ("scenario", "item"), names)
