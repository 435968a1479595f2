"""The list that functions of the package return if there is more than one row; it displays itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, SupportsIndex, TypeVar, overload

from shakedown.errors import InputError

if TYPE_CHECKING:
    import altair
    import pandas
    import polars as pl

T = TypeVar("T")


class Rows(list[T]):
    """Objects of the schema, one per row: a list that prints and, in notebooks, displays as a table.

    Suites without figures are objects with an `error`; they are in the list in the requested order, and below
    the table.
    """

    __slots__ = ()

    @overload
    def __getitem__(self, index: SupportsIndex, /) -> T: ...
    @overload
    def __getitem__(self, index: slice, /) -> Rows[T]: ...
    def __getitem__(self, index: SupportsIndex | slice, /) -> T | Rows[T]:
        return Rows(super().__getitem__(index)) if isinstance(index, slice) else super().__getitem__(index)

    def __repr__(self) -> str:
        from shakedown.reporting.display import text_lines

        return "\n".join(text_lines(self)) if self else "no rows"

    def _repr_html_(self) -> str:
        from shakedown.reporting.display import html_table

        return html_table(self)

    def to_dicts(self) -> list[dict[str, Any]]:
        """The objects as dicts, lists and plain values: what `--json` prints."""
        import msgspec

        from shakedown.schema.base import encode

        return [
            msgspec.json.decode(encode(one.as_json() if hasattr(one, "as_json") else one)) for one in self
        ]

    def to_polars(self) -> pl.DataFrame:
        """A table with the columns that `--csv` prints: exact values, one row per object.

        All tables of a type of objects have the same schema. Those of predictions, capacities and simulations
        also have a column `error`, which is null for suites with figures.
        """
        import polars as pl

        from shakedown.reporting.display import unknown_types, values

        found = values(self)
        empty = {key for key, column in found.items() if all(value is None for value in column)}
        types = {str: pl.String(), int: pl.Int64(), float: pl.Float64()}
        unknown = {key: types[kind] for key, kind in unknown_types(self).items() if key in empty}
        return pl.DataFrame(found, schema_overrides=unknown, strict=False)

    def to_pandas(self) -> pandas.DataFrame:
        """The same for pandas. Raises `InputError` if it is not installed."""
        from shakedown.reporting.display import values

        try:
            import pandas
        except ImportError:
            raise InputError(
                "pandas is not installed; accepted: to_polars(), or pip install pandas"
            ) from None
        return pandas.DataFrame(values(self))

    def plot(self) -> altair.TopLevelMixin:
        """A chart of the rows. Raises `InputError` if Altair is not installed, or rows have no chart."""
        from shakedown.reporting.display import with_figures
        from shakedown.reporting.plots import plot_definition

        definition = plot_definition(with_figures(self))
        try:
            import altair
        except ImportError:
            raise InputError("Altair is not installed; accepted: pip install altair") from None
        return _offline(altair.Chart.from_dict(definition))


def _offline(chart: altair.TopLevelMixin) -> altair.TopLevelMixin:
    """The same chart, which notebooks display without a network unless a renderer was chosen.

    Altair's default loads its scripts from a server. The chart's output is an SVG, and the definition, from
    which notebooks with Vega, such as JupyterLab, draw the chart with its controls.
    """
    # Not `chart.__class__ = …`, which the schema would treat as a part of the definition.
    object.__setattr__(chart, "__class__", _offline_class(type(chart)))
    return chart


def _offline_class(kind: Any) -> type[altair.TopLevelMixin]:  # noqa: ANN401 - one of Altair's classes
    import altair

    def _repr_mimebundle_(self: altair.TopLevelMixin, *args: Any, **options: Any) -> Any:  # noqa: ANN401
        if altair.renderers.active != "default":
            return kind._repr_mimebundle_(self, *args, **options)
        from shakedown.reporting.charts.engine import vega

        definition = self.to_dict()
        version = altair.SCHEMA_VERSION.partition(".")[0]
        return {
            f"application/vnd.vegalite.{version}+json": definition,
            "image/svg+xml": vega().vegalite_to_svg(definition, allowed_base_urls=[]),
            "text/plain": repr(self),
        }

    return type(kind.__name__, (kind,), {"_repr_mimebundle_": _repr_mimebundle_, "__module__": __name__})
