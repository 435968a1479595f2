"""Options and arguments that several commands share; those of `measure` are derived from their definition."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

import click
import click.shell_completion

from shakedown.cli._types import CHARGE, DEVICE, FILE, RATE, SHARE, Duration, Suites, Time, Whole
from shakedown.errors import InputError

if TYPE_CHECKING:
    from distributed import Client

    from shakedown.experiments.cluster import Credentials
    from shakedown.schema.options import Declared
    from shakedown.simulation.pieces import Pool


F = TypeVar("F", bound=Callable[..., Any])
Where: TypeAlias = "AbstractContextManager[Client | None]"
"""The cluster that computes; None: this process."""

MAX_SHORT_HELP = 200


def _expanded(_ctx: click.Context, _param: click.Parameter, words: tuple[str, ...]) -> tuple[str, ...]:
    """Replaces patterns by all suites that match."""
    from shakedown.files.patterns import is_pattern

    if not any(map(is_pattern, words)):
        return words
    from shakedown.native.suite_names import expand

    return tuple(expand(words))


def only_with(option: str, is_given: bool, **others: object) -> None:
    """Raises `InputError` for options that are given without the one that they belong to."""
    for name, value in others.items():
        if not is_given and value is not None and value is not False:
            raise InputError(f"--{name.replace('_', '-')} requires {option}")


suites_argument = click.argument(
    "suites", nargs=-1, required=True, metavar="SUITE…", type=Suites(), callback=_expanded
)
any_suites_argument = click.argument("suites", nargs=-1, metavar="SUITE…", type=Suites(), callback=_expanded)


class Group(click.Group):
    """A group whose help describes its commands in full."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Lists the commands; long lines are wrapped, not truncated."""
        known = [self.commands[name] for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(
                [(one.name or "", one.get_short_help_str(MAX_SHORT_HELP)) for one in known if not one.hidden]
            )


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
    elif one.form == "file":
        more |= {"type": FILE, "metavar": one.metavar or "FILE"}
    elif one.form in ("name or file", "server software"):
        # As text, because a path would always mean a file, even if a profile has this name.
        more |= {"type": str, "metavar": one.metavar or "FILE"}
    elif one.form == "secret":
        more |= {"envvar": "SHAKEDOWN_PASSWORD", "show_envvar": True}
    elif isinstance(inner, types.FloatType) and one.form == "duration":
        more["type"] = Duration(inner.le, least_s=inner.ge)
    elif one.form:
        more["type"] = {"time": Time(), "share": SHARE, "rate": RATE, "charge": CHARGE}[one.form]
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
    """Adds the options that select where figures are computed; the command gets the argument `cluster`."""

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
            type=Whole(),
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
        raise InputError("--processes and --scheduler are both given; accepted: one of them")
    if scheduler is not None:
        return connected(scheduler, credentials)
    if credentials != Credentials():
        raise InputError(
            "credentials for a scheduler are given without --scheduler; accepted: --scheduler tls://HOST:PORT"
        )
    return nullcontext() if processes is None else local(processes)


@contextmanager
def pool_of(cluster: Where) -> Iterator[Pool | None]:
    """The pool that simulates a fleet's pieces; None: this process."""
    if isinstance(cluster, nullcontext):
        yield None
        return
    from shakedown.cli._output import stopped_like_interrupted
    from shakedown.experiments.cluster import Cluster

    with stopped_like_interrupted(), cluster as client:
        yield Cluster(cast("Client", client))
