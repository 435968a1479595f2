"""Queries of the tidy table for loads on real servers: one row per load."""

from __future__ import annotations

import polars as pl

from shakedown.results.parts import over_parts
from shakedown.results.quantities import Names, columns, texts
from shakedown.results.queries import PLACE, labelled, wide

STATISTICS = ("mean", "p50", "p90", "p95", "p99", "max")


@over_parts("live", labelled)
def loads(table: pl.DataFrame) -> pl.DataFrame:
    """Loads on real servers, one per row, in the table's order; times in seconds.

    `arrivals`, `planned`, `completed`, `failed`, `causes`, `rate`, `handshake_mean_s` … `handshake_max_s`,
    the same for `connect`, `lateness` and `busy`; `resumed_asked`, `resumed_confirmed`, `server_cpu_s`,
    `utilisation`, `formula_wait_s`, `unloaded_s`, `wait_s`, `modelled_…_s`, `simulated_…_s` and
    `endpoints_…_s` of `server_cpu`, `server_busy`, `handshake` and `wait`, `endpoints` (the stacks whose
    engines ran), `saturated`.
    """
    rows = table.filter(
        (pl.col("kind") == "live") & ~pl.col("quantity").str.contains(r"^live\.(step|sampled|slowdown)")
    )
    names: Names = {
        ("live.server-cpu", "server", "mean"): "server_cpu_s",
        ("live.wait.formula", None, None): "formula_wait_s",
        ("live.rate", None, None): "rate",
        **columns("live", ("resumed.asked", "resumed.confirmed", "own-core", "unloaded", "wait")),
        **columns("live", ("planned", "completed", "utilisation")),
        **columns("live", ("modelled.connection",), side="server"),
        **columns("live", ("connect", "handshake", "lateness"), STATISTICS, "client"),
        **columns("live", ("busy",), STATISTICS, "server"),
    }
    for kind in ("modelled", "simulated", "endpoints"):
        figures = ("server-cpu", "server-busy", "handshake", "wait")
        names |= columns("live", (f"{kind}.{name}" for name in figures))
    view = wide(rows, PLACE, names, texts=texts("live", "arrivals", "saturated", "endpoints"))
    failed = rows.filter(pl.col("quantity") == "live.failed").group_by("scenario", maintain_order=True)
    causes = pl.concat_str(pl.col("value").cast(pl.Int64), pl.lit(" × "), pl.col("text")).str.join(", ")
    view = view.join(
        failed.agg(pl.col("value").sum().alias("failed"), causes.alias("causes")),
        on="scenario",
        how="left",
        maintain_order="left",
    )
    return view.with_columns(pl.col("failed").fill_null(0.0))


@over_parts("live", labelled)
def steps(table: pl.DataFrame) -> pl.DataFrame:
    """Time spent in sampled handshakes, one row per side and message, in us.

    `cryptography_us`, `other_us`, `waited_us`; `device` is the emulated device of the client, null: this
    machine. In the row without a message, `waited_us` lasts until the connection was open, and `other_us`
    belongs to no message.
    """
    rows = table.filter(pl.col("quantity").str.starts_with("live.step."))
    keys = [*PLACE, "side", "message_index", "message", "sender"]
    names: Names = {
        (f"live.step.{name}", None, "mean"): f"{name}_us" for name in ("cryptography", "other", "waited")
    }
    view = wide(rows, keys, names, side="")
    counts = rows.group_by("scenario", "device", maintain_order=True).agg(pl.col("n").first())
    return view.join(counts, on=["scenario", "device"], how="left", nulls_equal=True, maintain_order="left")
