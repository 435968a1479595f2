"""Options and arguments that several commands share; those of `measure` come from their one definition."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from shakedown.errors import InputError
from shakedown.files.limits import MAX_UNIX_S

if TYPE_CHECKING:
    from distributed import Client


F = TypeVar("F", bound=Callable[..., Any])

FILE = click.Path(dir_okay=False, path_type=Path)
"""A file's path; what is a folder is none."""

suites_argument = click.argument("suites", nargs=-1, required=True, metavar="SUITE…")


class Time(click.ParamType[int]):
    """A point in time: Unix seconds, or an ISO date or date and time (UTC where it names no zone)."""

    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        text = str(value)
        try:
            found = int(text) if text.lstrip("-").isdigit() else _unix_s(text)
        except ValueError:
            found = -1
        if not 0 <= found <= MAX_UNIX_S:
            self.fail(
                f'"{text[:40]}" is no time; accepted: Unix seconds before the year 10000, or an ISO date as '
                "2026-01-31",
                param,
                ctx,
            )
        return found


class FiniteRange(click.FloatRange):
    """A range of numbers; `nan` compares with none of its ends, and would pass as in range."""

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        found = float(super().convert(cast("float", value), param, ctx))
        if math.isnan(found):
            self.fail(f"{found} is not in the range {self._describe_range()}.", param, ctx)
        return found


class Share(click.ParamType[float]):
    """A share of one, or a percentage."""

    name = "share"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        text = str(value)
        try:
            found = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
        except ValueError:
            found = math.nan
        if not 0 <= found <= 1:
            self.fail(f'"{text[:20]}" is no share; accepted: 0 to 1, or 0% to 100%', param, ctx)
        return found


def _unix_s(text: str) -> int:
    when = datetime.fromisoformat(text)
    return int((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp())


class MeasureCommand(click.Command):
    """A command with the options of `measure` by their definition; None is what was not given.

    They are made when the command is used: the program's help, which loads every command, need not wait.
    """

    _made = False

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        if not self._made:
            import msgspec

            from shakedown.native.scenario import Options

            fields = [one for one in msgspec.structs.fields(Options) if one.name != "client_password"]
            # After the argument, before the command's other options.
            self.params[1:1] = [_option(one) for one in fields]
            self._made = True
        return super().get_params(ctx)


def _option(field: Any) -> click.Option:  # noqa: ANN401 - msgspec's description of a field
    from msgspec import inspect as types

    about = types.type_info(field.type)
    for one in about.types if isinstance(about, types.UnionType) else (about,):
        if isinstance(one, types.Metadata):
            about = one
    assert isinstance(about, types.Metadata)
    extra: dict[str, str] = about.extra or {}
    inner, form = about.type, extra.get("form", "")
    text: str = (about.extra_json_schema or {}).get("description", "")
    more: dict[str, Any] = {"help": text, "metavar": extra.get("metavar") or None}
    if isinstance(inner, types.BoolType):
        more |= {"is_flag": True, "default": None, "metavar": None}
    elif form == "time":
        more["type"] = Time()
    elif form == "secret":
        more |= {"envvar": "SHAKEDOWN_PASSWORD", "show_envvar": True}
    elif form:
        more["type"] = FILE
        more["metavar"] = more["metavar"] or "FILE"
    elif isinstance(inner, types.LiteralType):
        more["type"] = click.Choice([str(one) for one in inner.values])
    elif isinstance(inner, types.IntType):
        more["type"] = click.IntRange(inner.ge, inner.le)
        if isinstance(field.default, int):
            more["help"] = f"{text}  [default: {field.default}]"
    return click.Option([f"--{field.name.replace('_', '-')}", field.name], **more)


def computed_where(command: F) -> F:
    """Adds the options that say where figures are computed; `cluster_of` takes what they collect."""
    for option in (
        click.option("--scheduler-key", type=FILE, metavar="FILE", help="Its private key."),
        click.option("--scheduler-cert", type=FILE, metavar="FILE", help="This program's certificate."),
        click.option(
            "--scheduler-ca",
            type=FILE,
            metavar="FILE",
            help="What a tls:// scheduler's certificate is checked by.",
        ),
        click.option(
            "--scheduler",
            metavar="URL",
            help="Compute on a Dask cluster: tls://HOST:8786, or tcp://HOST:8786 on a trusted network.",
        ),
        click.option(
            "--processes", type=int, metavar="N", help="Compute in N processes here.  [default: in this one]"
        ),
    ):
        command = option(command)
    return command


def cluster_of(
    processes: int | None,
    scheduler: str | None,
    scheduler_ca: Path | None,
    scheduler_cert: Path | None,
    scheduler_key: Path | None,
) -> AbstractContextManager[Client | None]:
    """The cluster that was asked for; None for this process. Raises `InputError`."""
    from shakedown.experiments.cluster import Credentials, connected, local

    if processes is not None and scheduler is not None:
        raise InputError("--processes and --scheduler at once; accepted: one of the two")
    credentials = Credentials(scheduler_ca, scheduler_cert, scheduler_key)
    if scheduler is not None:
        return connected(scheduler, credentials)
    if credentials != Credentials():
        raise InputError(
            "credentials for a scheduler, and no --scheduler; accepted: --scheduler tls://HOST:PORT"
        )
    return nullcontext() if processes is None else local(processes)
