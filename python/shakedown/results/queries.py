"""Queries of the tidy table: views with one row per handshake, message, operation, prediction or connection.

A view is a table that is computed only from rows of the tidy table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from shakedown.results.parts import Chunked, over_parts
from shakedown.results.quantities import Names, columns, texts
from shakedown.results.table import IDENTITY_COLUMNS, SCHEMA
from shakedown.schema.base import CLASSES, SIDES, convert
from shakedown.schema.saved import ScenarioFigures

IDENTITY = ("scenario", *IDENTITY_COLUMNS)
PLACE = (
    *IDENTITY,
    "device",
    "server_device",
    "bearer",
    "rate_per_s",
    "workers",
    "model",
    "capture",
    "connection",
)
MESSAGE = ("message_index", "message", "sender", "flight", "message_unit")
OPERATION = ("side", "operation", "algorithm", "parameters", "class")

BOUNDED = (
    "client",
    "server",
    "queue",
    "utilisation",
    "offered",
    "energy",
    "wake-tail",
    "handshakes_per_charge",
)
"""Predicted figures with a lower and an upper end."""
ENDS = ("", "_low", "_high")
MARKED = ("client", "server", "energy", "wake-tail", "handshakes_per_charge")
"""Predicted figures with a basis."""


def labelled(view: pl.DataFrame) -> pl.DataFrame:
    return view.with_columns(label=label(view))


@over_parts("measured", labelled)
def handshakes(table: pl.DataFrame) -> pl.DataFrame:
    """Measured handshakes, one per row. Times are in µs; `client_us` and the classes are means. `label`
    distinguishes handshakes.

    `client_us`, `client_sd_us`, `client_median_us`, `client_min_us`, `client_key_us`, `client_signature_us`,
    `client_common_us`, `client_unattributed_us`, `client_peak_bytes`, `client_held_bytes`, and the same for
    the server; `coverage`, `bytes`, `client_bytes`, `server_bytes`, `flights`, `repeat`, `preempted`,
    `clock`; `user_supplied`: sides, joined by "and".
    """
    rows = table.filter(pl.col("kind") == "measured")
    names: Names = {
        **columns("handshake", ("bytes", "flights", "repeat", "preempted")),
        **columns("accounting", ("coverage",)),
    }
    for side in SIDES:
        names |= {
            ("handshake.time", side, "mean"): f"{side}_us",
            ("handshake.time", side, "sd"): f"{side}_sd_us",
            ("handshake.time", side, "median"): f"{side}_median_us",
            ("handshake.time", side, "min"): f"{side}_min_us",
            ("handshake.bytes", side, None): f"{side}_bytes",
            ("unattributed.time", side, "mean"): f"{side}_unattributed_us",
            ("memory.peak", side, None): f"{side}_peak_bytes",
            ("memory.held", side, None): f"{side}_held_bytes",
        }
    view = wide(rows, IDENTITY, names)
    public = rows.filter(
        (pl.col("quantity") == "operation.time")
        & (pl.col("statistic") == "mean")
        & (pl.col("class") != "common")
    )
    for side in SIDES:
        for kind in CLASSES[:2]:
            chosen = public.filter((pl.col("side") == side) & (pl.col("class") == kind))
            spent = chosen.group_by("scenario").agg(pl.col("value").sum().alias(f"{side}_{kind}_us"))
            view = view.join(spent, on="scenario", how="left", maintain_order="left")
            view = view.with_columns(pl.col(f"{side}_{kind}_us").fill_null(0.0))
        rest = pl.col(f"{side}_us") - pl.col(f"{side}_key_us") - pl.col(f"{side}_signature_us")
        view = view.with_columns(rest.alias(f"{side}_common_us"))
    facts = rows.filter(pl.col("quantity") == "handshake.clock").select("scenario", clock="text")
    supplied = (
        rows.filter(pl.col("quantity") == "credentials.user-supplied")
        .group_by("scenario", maintain_order=True)
        .agg(pl.col("side").sort(descending=True).str.join(" and ").alias("user_supplied"))
    )
    view = view.join(facts.unique("scenario"), on="scenario", how="left", maintain_order="left")
    view = view.join(supplied, on="scenario", how="left", maintain_order="left")
    return view.with_columns(pl.col("user_supplied").fill_null(""))


def label(view: pl.DataFrame) -> pl.Expr:
    """A text that distinguishes handshakes: the suite, and the parts of the identity that differ; of captured
    ones also the file, if there are several.

    Unknown values (the stacks of captured peers) do not distinguish scenarios.
    """
    parts: list[pl.Expr] = [pl.col("suite")]
    # Only one stack runs WTLS, so the suite's name implies it.
    known = view.filter(pl.col("client_stack").is_not_null() & ~pl.col("suite").str.starts_with("wtls/"))
    if known.select("client_stack", "server_stack").n_unique() > 1:
        same = pl.col("client_stack") == pl.col("server_stack")
        both = pl.col("client_stack") + " → " + pl.col("server_stack")
        parts.append(pl.when(same).then(pl.col("client_stack")).otherwise(both))
    if view["carrier"].drop_nulls().n_unique() > 1:
        parts.append(pl.col("carrier"))
    whose = view.filter(pl.col("credentials").is_not_null()).group_by("suite", "client_stack", "server_stack")
    if whose.agg(pl.col("credentials").n_unique())["credentials"].max() not in (None, 1):
        parts.append(pl.col("credentials"))
    if "capture" in view.columns and view["capture"].drop_nulls().n_unique() > 1:
        parts.append(pl.col("capture"))
    return pl.concat_str(parts, separator=" · ", ignore_nulls=True)


@over_parts("measured")
def messages(table: pl.DataFrame) -> pl.DataFrame:
    """Messages of measured handshakes, one per row: `bytes`, `generate_us`, `process_us` (means), and their
    medians.
    """
    rows = table.filter((pl.col("kind") == "measured") & pl.col("quantity").str.starts_with("message."))
    names: Names = {
        **columns("message", ("bytes", "retransmissions")),
        ("message.generate", None, "mean"): "generate_us",
        ("message.process", None, "mean"): "process_us",
        **columns("message", ("generate", "process"), ("median",)),
    }
    return wide(rows, (*IDENTITY, "item", *MESSAGE), names, side="")


@over_parts("measured")
def operations(table: pl.DataFrame) -> pl.DataFrame:
    """Operations of measured handshakes, one per row: `us` (mean), `median_us`, `count`, `bytes`."""
    rows = table.filter((pl.col("kind") == "measured") & pl.col("quantity").str.starts_with("operation."))
    names: Names = {
        ("operation.time", None, "mean"): "us",
        ("operation.time", None, "median"): "median_us",
        **columns("operation", ("count", "bytes")),
    }
    return wide(rows, (*IDENTITY, "item", *MESSAGE, *OPERATION), names, side="")


@over_parts("modelled", labelled)
def predictions(table: pl.DataFrame) -> pl.DataFrame:
    """Predictions, one per row. Times are in s and energies in J; times that include the queue are null
    without a steady state. `capture` is set for captured handshakes.

    `failed` is the share of handshakes that fail; times are those of the others.
    90 % of handshakes are between `ready_low_s` and `ready_high_s`; `ready_p99_s` and similar columns are
    percentiles; `basis` is the basis of the time, `missing` the number of operations without a cost figure,
    `workers_needed` the number of workers that meet the experiment's `within`. Figures of `BOUNDED`
    without an estimate are null; of their ends, those that are known are set. If `missing` is above 0, times
    until ready and done are lower bounds.
    """
    quantity = pl.col("quantity")
    parts = table.filter((pl.col("kind") == "modelled") & (quantity == "predicted.missing"))
    missing = parts.group_by("scenario", "capture", "connection").agg(missing=pl.len().cast(pl.Int64))
    rows = (
        table.lazy()
        .filter((pl.col("kind") == "modelled") & quantity.str.starts_with("predicted."))
        .filter(~quantity.str.contains("extrapolated|without_cost") & (quantity != "predicted.missing"))
    )
    names: Names = {
        **columns("predicted", ("transmission", "failed")),
        **columns("predicted", ("ready", "done"), ("low", "high")),
        **columns("predicted", (*BOUNDED, "unused-key-share"), (None, "low", "high")),
        **columns("predicted", ("ready", "done"), ("mean", "p50", "p95", "p99")),
        ("predicted.workers", None, None): "workers_needed",
        ("predicted.workers", None, "low"): "workers_needed_low",
        ("predicted.workers", None, "high"): "workers_needed_high",
    }
    text_columns = texts(
        "predicted", "basis", *(f"{name}.basis" for name in MARKED), "energy.missing",
        "wake-tail.missing", "energy.terms", "unused-key-share.basis", "unused-key-share.missing",
    )  # fmt: skip
    by = ("scenario", "capture", "connection", "rate_per_s")
    view = wide(rows, PLACE, names, texts=text_columns, by=by)
    keys = ["scenario", "capture", "connection"]
    view = view.join(missing, on=keys, how="left", nulls_equal=True, maintain_order="left")
    # The offered load is saved only where it differs from the utilisation.
    is_saved = pl.any_horizontal(pl.col(f"offered{end}").is_not_null() for end in ENDS)
    offered = [
        pl.when(is_saved).then(f"offered{end}").otherwise(f"utilisation{end}").alias(f"offered{end}")
        for end in ENDS
    ]
    return view.with_columns(pl.col("missing").fill_null(0), *offered)


@over_parts("modelled")
def without_cost(table: pl.DataFrame) -> pl.DataFrame:
    """Scenarios that could not be predicted, with the `reason`. (Work without a cost figure in a predicted
    scenario is in `missing`.)
    """
    return table.filter(pl.col("quantity") == "predicted.without_cost").select(*PLACE, reason="text")


_WHERE = pl.when(pl.col("side") == "client").then(pl.col("device")).otherwise(pl.col("server_device"))
"""The device on which a side runs."""


@over_parts("modelled")
def missing(table: pl.DataFrame) -> pl.DataFrame:
    """Work without a cost figure: `where` is the device, `why` the reason."""
    rows = table.filter(pl.col("quantity") == "predicted.missing")
    return rows.select(*PLACE, *OPERATION, why="text", where=_WHERE)


@over_parts("modelled")
def extrapolated(table: pl.DataFrame) -> pl.DataFrame:
    """Work whose cost is not the device's own: `where` is the device, `how` the method, and the `source`."""
    rows = table.filter(pl.col("quantity").str.starts_with("predicted.extrapolated"))
    keys = ("scenario", "suite", "device", "server_device", "bearer", "capture", "connection", *OPERATION)
    names: Names = {
        ("predicted.extrapolated", None, "mean"): "time_s",
        ("predicted.extrapolated", None, "low"): "low_s",
        ("predicted.extrapolated", None, "high"): "high_s",
    }
    text_columns = {"predicted.extrapolated": "how", "predicted.extrapolated.source": "source"}
    return wide(rows, keys, names, side="", texts=text_columns).with_columns(where=_WHERE)


@over_parts("modelled", labelled)
def queues(table: pl.DataFrame) -> pl.DataFrame:
    """The server's queue for each handshake: `service_s`, `knee_per_s`, `saturation_per_s`, `basis`."""
    rows = table.filter(
        pl.col("quantity").is_in(["queue.basis", "queue.service", "queue.knee", "queue.saturation"])
    ).with_columns(rate_per_s=pl.lit(None, pl.Float64))
    names = columns("queue", ("service", "knee", "saturation"))
    return wide(rows, PLACE, names, texts=texts("queue", "basis"))


def queue_points(results: Chunked) -> dict[str, list[tuple[float, float]]]:
    """The curves of the queues: by scenario, pairs of rate (1/s) and wait (s)."""
    found: dict[str, list[tuple[float, float]]] = {}
    for part in results.chunks("modelled"):
        rows = part.filter(pl.col("quantity") == "queue.wait")
        for scenario, rate, wait in rows.select("scenario", "rate_per_s", "value").iter_rows():
            found.setdefault(scenario, []).append((rate, wait))
    return found


@over_parts("captured")
def captures(table: pl.DataFrame) -> pl.DataFrame:
    """Captures, one per row: `packets`, `length_s`, `keylog`, `problem`; `connections` (all), of which
    `uncounted` are of kinds that are not counted separately; `without_cost`: suites that were not predicted.
    """
    rows = table.filter((pl.col("kind") == "captured") & pl.col("quantity").str.starts_with("capture."))
    keys = ("scenario", "capture")
    names = columns("capture", ("packets", "length", "uncounted"))
    view = wide(rows, keys, names, texts=texts("capture", "keylog", "problem"))
    total = rows.filter(pl.col("quantity").is_in(["capture.connections", "capture.uncounted"]))
    total = total.group_by("scenario").agg(pl.col("value").sum().cast(pl.Int64).alias("connections"))
    suites_without_cost = rows.filter(pl.col("quantity") == "capture.without_cost")
    listed = suites_without_cost.group_by("scenario", maintain_order=True).agg(
        pl.col("text").alias("without_cost")
    )
    view = view.join(total, on="scenario", how="left", maintain_order="left")
    return view.join(listed, on="scenario", how="left", maintain_order="left")


@over_parts("captured")
def capture_kinds(table: pl.DataFrame) -> pl.DataFrame:
    """Kinds of connections, one per row: description, number, bytes and times (low, mean, high)."""
    rows = table.filter(
        (pl.col("kind") == "captured")
        & pl.col("quantity").str.starts_with("capture.")
        & pl.col("item").is_not_null()
    )
    names: Names = {
        ("capture.connections", None, None): "count",
        **columns("capture", ("resumed", "complete")),
    }
    for statistic in ("low", "mean", "high"):
        names["capture.bytes", None, statistic] = f"{statistic}_bytes"
        names["capture.duration", None, statistic] = f"{statistic}_s"
    text_columns = texts("capture", "protocol", "cipher")
    return wide(rows, ("scenario", "capture", "item", "suite"), names, texts=text_columns)


@over_parts("captured")
def connections(table: pl.DataFrame) -> pl.DataFrame:
    """Connections that were kept, one per row; `wire_bytes` includes undecrypted bytes."""
    rows = table.filter((pl.col("kind") == "captured") & pl.col("connection").is_not_null())
    names: Names = {
        **columns("connection", ("resumed", "complete", "messages")),
        ("handshake.duration", None, None): "handshake_s",
        **columns("handshake", ("flights", "bytes")),
    }
    for side in SIDES:
        names["handshake.undecrypted", side, None] = f"{side}_undecrypted_bytes"
        names["retransmission.segments", side, None] = f"{side}_segments"
    text_columns = texts("connection", "client", "server", "server_name", "protocol", "cipher", "refused")
    view = wide(rows, ("scenario", "capture", "connection", "suite"), names, texts=text_columns)
    undecrypted = pl.sum_horizontal(f"{side}_undecrypted_bytes" for side in SIDES)
    return view.with_columns(undecrypted_bytes=undecrypted, wire_bytes=pl.col("bytes") + undecrypted)


def connection_notes(results: Chunked) -> dict[tuple[str, int], list[tuple[str, str | None, str | None]]]:
    """Alerts and problems of connections: (quantity, side, text), by scenario and connection."""
    found: dict[tuple[str, int], list[tuple[str, str | None, str | None]]] = {}
    for part in results.chunks("captured"):
        rows = part.filter(pl.col("quantity").is_in(["connection.alert", "connection.problem"]))
        for scenario, connection, *note in rows.select(
            "scenario", "connection", "quantity", "side", "text"
        ).iter_rows():
            found.setdefault((scenario, connection), []).append((note[0], note[1], note[2]))
    return found


@over_parts("captured")
def captured_messages(table: pl.DataFrame) -> pl.DataFrame:
    """Messages of captured connections, one per row: `bytes`, `time_s`, `wait_s`, `network_s`, `sender_s`."""
    rows = table.filter((pl.col("kind") == "captured") & pl.col("quantity").str.starts_with("message."))
    names: Names = {
        ("message.bytes", None, None): "bytes",
        ("message.at", None, None): "time_s",
        ("message.wait", None, None): "wait_s",
        ("message.wait.sender", None, None): "sender_s",
        ("message.wait.network", None, None): "network_s",
    }
    return wide(rows, ("scenario", "capture", "connection", "item", *MESSAGE), names)


def figures(table: pl.DataFrame) -> Iterator[ScenarioFigures]:
    """The table as objects, one for each scenario and capture, in the table's order."""
    place = [name for name in (*PLACE, "kind", "provenance") if name != "rate_per_s"]
    stacks = [f"{side}_stack" for side in SIDES]
    per_scenario = ["scenario", "capture"]
    for part in table.partition_by(per_scenario, maintain_order=True):
        rows = part.to_dicts()
        about = {name: _common(rows, name) for name in place if not name.endswith("_version")}
        for stack in stacks:
            if about[stack] is not None:
                about[stack] = {"name": about[stack], "version": rows[0][f"{stack}_version"] or ""}
        outside = {*(name for name in about if about[name] is not None), "provenance"}
        outside |= {f"{stack}_version" for stack in stacks}
        inner = [name for name in SCHEMA if name not in outside]
        yield convert(
            {
                **{name: value for name, value in about.items() if value is not None},
                "figures": [{name: row[name] for name in inner if row[name] is not None} for row in rows],
            },
            ScenarioFigures,
        )


def _common(rows: Sequence[Mapping[str, Any]], name: str) -> Any:  # noqa: ANN401 - a cell
    """The value of a column if it is the same in all rows, else None."""
    first = rows[0][name]
    return first if all(row[name] == first for row in rows) else None


def wide(
    rows: pl.DataFrame | pl.LazyFrame,
    keys: Sequence[str],
    names: Names,
    *,
    side: str = "side",
    texts: Mapping[str, str] | None = None,
    by: Sequence[str] | None = None,
) -> pl.DataFrame:
    """Converts rows of several quantities to one row per value of `keys` and one column per quantity, in the
    rows' order.

    Missing figures are null. `side` is the column of the side, "" for none; `texts` are columns of text, by
    quantity. `by` are the keys that determine the other keys; by default all.
    """
    sides = pl.col(side).fill_null("") if side else pl.lit("")
    name = pl.concat_str([pl.col("quantity"), sides, pl.col("statistic").fill_null("")], separator="|")
    columns = {
        f"{quantity}|{(one or '') if side else ''}|{what or ''}": column
        for (quantity, one, what), column in names.items()
    }
    texts = texts or {}
    needed = [*keys, "quantity", *([side] if side else []), "statistic", "value", "text"]
    chosen = (
        rows.lazy()
        .select(list(dict.fromkeys(needed)))
        .with_columns(name.replace_strict(columns, default=None, return_dtype=pl.String).alias("_name"))
        .filter(pl.col("_name").is_not_null() | pl.col("quantity").is_in(list(texts)))
        # Texts repeat in many rows; as categories they take a quarter of the memory.
        .with_columns(pl.col(name).cast(pl.Categorical) for name in keys if SCHEMA[name] == pl.String())
        .collect()
    )
    # The view's rows are numbered, so keys are compared once, not for every column.
    by = by or keys
    view = chosen.select(keys).unique(by, keep="first", maintain_order=True).with_row_index("_row")
    numbers = view.select(*by, "_row")
    number = chosen.select(by).join(numbers, on=by, how="left", nulls_equal=True, maintain_order="left")[
        "_row"
    ]
    apart: Any = {"as_dict": True, "include_key": False}
    figures = chosen.select("_name", "value").with_columns(number).partition_by("_name", **apart)
    words: dict[tuple[Any, ...], pl.DataFrame] = {}
    if texts:
        words = chosen.select("quantity", "text").with_columns(number).partition_by("quantity", **apart)
    del chosen
    for column in dict.fromkeys(columns.values()):
        view = _with_column(view, figures.pop((column,), None), "value", column, pl.Float64())
    for quantity, column in texts.items():
        view = _with_column(view, words.pop((quantity,), None), "text", column, pl.String())
    return view.drop("_row").cast({name: SCHEMA[name] for name in keys})


def _with_column(
    view: pl.DataFrame, part: pl.DataFrame | None, source: str, column: str, kind: pl.DataType
) -> pl.DataFrame:
    """Adds a column to a view, with the first figure of each of its rows."""
    if part is None:
        return view.with_columns(pl.lit(None, kind).alias(column))
    first = part.unique("_row", keep="first", maintain_order=True).rename({source: column})
    return view.join(first, on="_row", how="left", maintain_order="left")
