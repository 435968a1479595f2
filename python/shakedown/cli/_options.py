"""Options and arguments that several commands share; those of `measure` come from their one definition."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

import click
import click.shell_completion

from shakedown.errors import InputError
from shakedown.files.limits import MAX_UNIX_S

if TYPE_CHECKING:
    from distributed import Client

    from shakedown.experiments.cluster import Credentials
    from shakedown.schema.options import Declared
    from shakedown.simulation.pieces import Pool


F = TypeVar("F", bound=Callable[..., Any])
Where: TypeAlias = "AbstractContextManager[Client | None]"
"""The cluster that computes; None: this process."""

MAX_SHORT_HELP = 200

FILE = click.Path(dir_okay=False, path_type=Path)
"""A file's path; a folder is refused."""


class Suites(click.ParamType[str]):
    """A suite's name, or a pattern of several; completed by the shell."""

    name = "suite"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[click.shell_completion.CompletionItem]:
        """Completions of a suite's name, up to the next slash."""
        from shakedown import native

        names = [one.suite for one in native.suites() if one.suite.startswith(incomplete)]
        begin = len(incomplete)
        ends = (name.find("/", begin) for name in names)
        stems = dict.fromkeys(
            name if end < 0 else name[: end + 1] for name, end in zip(names, ends, strict=True)
        )
        return [click.shell_completion.CompletionItem(one) for one in stems]


class Profiles(click.ParamType[str]):
    """A device's or bearer's name; completed by the shell."""

    def __init__(self, name: str) -> None:
        self.name = name

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[click.shell_completion.CompletionItem]:
        from shakedown.profiles import bearer_names, existing_device_names

        names = bearer_names() if self.name == "bearer" else existing_device_names()
        return [click.shell_completion.CompletionItem(one) for one in names if one.startswith(incomplete)]


DEVICE, BEARER = Profiles("device"), Profiles("bearer")


def _expanded(_ctx: click.Context, _param: click.Parameter, words: tuple[str, ...]) -> tuple[str, ...]:
    """Suites by name; patterns as all that match."""
    from shakedown.files.patterns import is_pattern

    if not any(map(is_pattern, words)):
        return words
    from shakedown.native.suite_names import expand

    return tuple(expand(words))


suites_argument = click.argument(
    "suites", nargs=-1, required=True, metavar="SUITE…", type=Suites(), callback=_expanded
)
any_suites_argument = click.argument("suites", nargs=-1, metavar="SUITE…", type=Suites(), callback=_expanded)


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
                f'"{text[:40]}" is not a time; accepted: Unix seconds before the year 10000, or an ISO date '
                "as 2026-01-31",
                param,
                ctx,
            )
        return found


class Group(click.Group):
    """A group whose help describes its commands in full."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Lists the commands; long lines are folded, not cut."""
        known = [self.commands[name] for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(
                [(one.name or "", one.get_short_help_str(MAX_SHORT_HELP)) for one in known if not one.hidden]
            )


class Whole(click.IntRange):
    """A whole number within bounds."""

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return super().convert(cast("int", value), param, ctx)
        except click.BadParameter:
            text = str(value)
            least, most = (None if one is None else f"{int(one):,}" for one in (self.min, self.max))
            accepted = f"{least or 'up'} to {most}"
            if most is None:
                accepted = "digits alone, as 12" if least is None else f"{least} or more"
            wrong = "out of range" if text.strip().lstrip("+-").isdecimal() else "not a whole number"
            self.fail(f'"{text[:40]}" is {wrong}; accepted: {accepted}', param, ctx)


class FiniteRange(click.FloatRange):
    """A range of numbers that also refuses `nan`."""

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        found = float(super().convert(cast("float", value), param, ctx))
        if math.isnan(found):
            self.fail(f"{found} is not in the range {self._describe_range()}.", param, ctx)
        return found


class Share(click.ParamType[float]):
    """A share of one, or a percentage."""

    name = "share"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        from shakedown.schema.units import parse_share

        try:
            return parse_share(str(value))
        except InputError as error:
            self.fail(str(error), param, ctx)


def _unix_s(text: str) -> int:
    when = datetime.fromisoformat(text)
    return int((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp())


def command_of(
    options: str, *, before: str, without: Collection[str] = (), only: Collection[str] = ()
) -> type[click.Command]:
    """A command with the options that a struct declares, `MODULE.STRUCT`, or only some of them, before one of
    its other options.

    They are created when the command is used, so that the program's help, which loads all commands, stays
    fast.
    """

    class Command(click.Command):
        _params: list[click.Parameter]
        _made: bool

        @property
        def params(self) -> list[click.Parameter]:
            if not self._made:
                from importlib import import_module

                from shakedown.schema.options import declared

                module, _, name = options.rpartition(".")
                found = declared(getattr(import_module(f"shakedown.{module}"), name))
                taken = [one for one in found if one.field not in without and (not only or one.field in only)]
                first = next(place for place, one in enumerate(self._params) if one.name == before)
                self._params[first:first] = map(_option, taken)
                self._made = True
            return self._params

        @params.setter
        def params(self, value: list[click.Parameter]) -> None:
            self._params, self._made = value, False

    return Command


def _option(one: Declared) -> click.Option:
    from msgspec import inspect as types

    from shakedown.cli._scenario import Charge, Duration, Rate

    name = one.name or one.key.replace("_", "-")
    more: dict[str, Any] = {"help": one.about, "metavar": one.metavar or None}
    inner, default = one.inner, one.default
    if isinstance(inner, types.BoolType):
        more |= {"is_flag": True, "metavar": None}
        if default is True:
            name, more = one.name or f"no-{name}", more | {"flag_value": False, "default": True}
        else:
            more["default"] = None
    elif isinstance(inner, types.VarTupleType):
        more["multiple"] = True
    elif one.form == "device":
        more |= {"type": DEVICE, "metavar": one.metavar or "DEVICE"}
    elif one.form in ("file", "name or file", "server software"):
        more |= {"type": FILE, "metavar": one.metavar or "FILE"}
    elif one.form == "secret":
        more |= {"envvar": "SHAKEDOWN_PASSWORD", "show_envvar": True}
    elif isinstance(inner, types.FloatType) and one.form == "duration":
        more["type"] = Duration(inner.le, least_s=inner.ge)
    elif one.form:
        more["type"] = {"time": Time, "share": Share, "rate": Rate, "charge": Charge}[one.form]()
    elif isinstance(inner, types.FloatType):
        more["type"] = float
    elif one.choices:
        more["type"] = click.Choice(one.choices)
    elif isinstance(inner, types.IntType):
        bounds = inner.ge, inner.le
        more["metavar"] = one.metavar or "N"
        more["type"] = Whole(*bounds)
    text = one.default_text
    if not text and isinstance(default, int | float | str) and not isinstance(default, bool):
        text = f"{default:g}s" if one.form == "duration" else str(default)
    if text:
        more["help"] += f"  [default: {text}]"
    return click.Option([f"--{name}", one.field], **more)


def computed_where(command: F) -> F:
    """Adds the options that say where figures are computed; the command is given the `cluster`."""

    @wraps(command)
    def call(
        *args: object, processes: int | None, scheduler: str | None, scheduler_ca: Path | None,
        scheduler_cert: Path | None, scheduler_key: Path | None, **given: object,
    ) -> object:  # fmt: skip
        from shakedown.experiments.cluster import Credentials

        credentials = Credentials(scheduler_ca, scheduler_cert, scheduler_key)
        return command(*args, cluster=_cluster(processes, scheduler, credentials), **given)

    for option in (
        click.option("--scheduler-key", type=FILE, metavar="FILE", help="Private key of --scheduler-cert."),
        click.option("--scheduler-cert", type=FILE, metavar="FILE", help="Certificate of this program."),
        click.option(
            "--scheduler-ca",
            type=FILE,
            metavar="FILE",
            help="Root for validating a tls:// scheduler's certificate.",
        ),
        click.option(
            "--scheduler",
            metavar="URL",
            help="Compute on a Dask cluster: tls://HOST:8786, or tcp://HOST:8786 on a trusted network.",
        ),
        click.option(
            "--processes",
            type=int,
            metavar="N",
            help="Compute in N processes of this machine.  [default: in this one]",
        ),
    ):
        call = option(call)
    return cast(F, call)


def _cluster(processes: int | None, scheduler: str | None, credentials: Credentials) -> Where:
    """The requested cluster; None for this process. Raises `InputError`."""
    from shakedown.experiments.cluster import Credentials, connected, local

    if processes is not None and scheduler is not None:
        raise InputError("--processes and --scheduler at once; accepted: one of the two")
    if scheduler is not None:
        return connected(scheduler, credentials)
    if credentials != Credentials():
        raise InputError(
            "credentials for a scheduler, and no --scheduler; accepted: --scheduler tls://HOST:PORT"
        )
    return nullcontext() if processes is None else local(processes)


@contextmanager
def pool_of(cluster: Where) -> Iterator[Pool | None]:
    """Where a fleet's pieces are simulated; None: in this process."""
    if isinstance(cluster, nullcontext):
        yield None
        return
    from shakedown.cli._output import stopped_like_interrupted
    from shakedown.experiments.cluster import Cluster

    with stopped_like_interrupted(), cluster as client:
        yield Cluster(cast("Client", client))
