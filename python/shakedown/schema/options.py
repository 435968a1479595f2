"""Options as frozen structs, the only declaration for command line, experiment files and functions.

A struct has the types and defaults of its options, and checks their values when it is created. The name of
a field ends with its unit (`timeout_s` is `--timeout`, and `timeout` in a file). `options.csv` has the rest,
one option per line:

- `option`: its name, if it differs from the field's.
- `form`: how its text is read: a `time`, `duration`, `rate`, `share`, `charge`, `file`, `secret`, a `device`,
  the `name or file` of a certificate profile, or of `server software`.
- `table`: its table in an experiment's file; empty: the top of the file.
- `metavar`, `about`: for the help text. `default`: the meaning of None.
- `above`, `least`, `most`: its bounds.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, get_args, get_origin

import msgspec
from msgspec import inspect as types

from shakedown.errors import InputError
from shakedown.schema.arguments import plain, profile_name
from shakedown.schema.base import Object

if TYPE_CHECKING:
    FileName = str | Path
else:
    # Options keep paths as text, which every format has.
    FileName = str

T = TypeVar("T", bound=Object)
UNITS = ("_per_s", "_s", "_bytes")


@dataclass(frozen=True)
class Declared:
    """An option: `kind` is its type with its bounds but without None, `inner` msgspec's description of it."""

    field: str
    default: Any
    kind: Any
    inner: types.Type
    about: str
    name: str = ""
    form: str = ""
    table: str = ""
    metavar: str = ""
    default_text: str = ""

    @property
    def key(self) -> str:
        """The option's name in an experiment's file: the field's, without its unit."""
        unit = next((one for one in UNITS if self.field.endswith(one)), "")
        return self.field.removesuffix(unit)

    @property
    def choices(self) -> tuple[str, ...]:
        """The accepted words, in the order of their declaration; empty for other types."""
        return get_args(self.kind) if get_origin(self.kind) is Literal else ()

    @property
    def accepted(self) -> str:
        inner = self.inner
        if self.form == "rate":
            return "a number per second"
        if isinstance(inner, types.IntType):
            if inner.ge is None and inner.le is None:
                return "a whole number"
            return f"a whole number from {inner.ge or 0} to {2**64 - 1 if inner.le is None else inner.le:,}"
        if isinstance(inner, types.FloatType):
            if self.form == "duration":
                return "a number of seconds" + (f", above 0, at most {inner.le:g}" if inner.le else "")
            if inner.ge is None or inner.le is None:
                return "a number"
            return f"a {self.form or 'number'} from {inner.ge:g} to {inner.le:g}"
        if self.choices:
            return ", ".join(self.choices)
        if isinstance(inner, types.VarTupleType):
            return "a list of strings"
        return "true, false" if isinstance(inner, types.BoolType) else "a string"

    def checked(self, value: object) -> Any:  # noqa: ANN401 - as its field is
        """A value converted to the field's type: numbers of other libraries to Python's, paths to text.

        Raises `InputError`.
        """
        found = plain(value)
        if isinstance(found, Path):
            found = profile_name(found) if self.form in ("device", "server software") else str(found)
        try:
            return msgspec.convert(found, self.kind)
        except (msgspec.ValidationError, UnicodeEncodeError):
            raise InputError(f"{self.field} is {found!r:.80}; accepted: {self.accepted}") from None


@cache
def _table() -> dict[str, dict[str, dict[str, str]]]:
    """The lines of `options.csv`, by struct and field."""
    found: dict[str, dict[str, dict[str, str]]] = {}
    with (Path(__file__).parent / "options.csv").open(newline="", encoding="utf-8") as file:
        for line in csv.DictReader(file):
            found.setdefault(line.pop("struct"), {})[line.pop("field")] = line
    return found


def upper_limit(struct: str, field: str) -> int:
    """The largest integer that an option accepts."""
    return int(_table()[struct][field]["most"])


@cache
def declared(kind: type[Object]) -> tuple[Declared, ...]:
    """The options of a struct, in order; fields that are not in the table are not options."""
    return tuple(_declared(kind))


def _declared(kind: type[Object]) -> Iterator[Declared]:
    table = _table()[kind.__name__]
    for field in msgspec.structs.fields(kind):
        if field.name not in table:
            continue
        line = table[field.name]
        bounds = {
            name: float(line[column]) if "." in line[column] else int(line[column])
            for name, column in (("gt", "above"), ("ge", "least"), ("le", "most"))
            if line[column]
        }
        args = get_args(field.type)
        given = args[0] if NoneType in args else field.type
        bounded = Annotated[given, msgspec.Meta(**bounds)] if bounds else given  # type: ignore[call-overload]  # ge and le
        yield Declared(
            field.name,
            field.default,
            bounded,
            types.type_info(bounded),
            line["about"],
            line["option"],
            line["form"],
            line["table"],
            line["metavar"],
            line["default"],
        )


class OptionGroup(Object, frozen=True, kw_only=True):
    """Options that belong together. Values are checked when the object is created (`InputError`)."""

    def __repr__(self) -> str:
        secret = {one.field for one in declared(type(self)) if one.form == "secret"}
        shown = (f"{name}={'…' if name in secret else repr(value)}" for name, value in self.given().items())
        return f"{type(self).__name__}({', '.join(shown)})"

    def given(self) -> dict[str, Any]:
        """The options that differ from their defaults."""
        return {
            field.name: value
            for field in msgspec.structs.fields(self)
            # Arrays have no truth value.
            if type(value := getattr(self, field.name)) is not type(field.default) or value != field.default
        }

    def __post_init__(self) -> None:
        """Checks the values that are not the defaults."""
        for one in declared(type(self)):
            given = getattr(self, one.field)
            if given is not one.default:
                msgspec.structs.force_setattr(self, one.field, one.checked(given))


def options_of(kind: type[T], given: Mapping[str, Any]) -> T:
    """Creates options from the keywords that are not None. Raises `InputError`."""
    return kind(**{name: value for name, value in given.items() if value is not None})


class ServerOptions(OptionGroup, frozen=True, kw_only=True):
    """The options of a server, apart from its handshakes."""

    workers: int = 1
    payload_bytes: int = 0
    payload_when: Literal["request", "handshake"] = "request"
    handshake_timeout_s: float = 10.0
    idle_timeout_s: float = 60.0
    drain_timeout_s: float = 5.0
    max_handshakes: int = 4096
    max_connections: int = 65_536
    client_ca: FileName | None = None
    metrics: str | None = None
    traces_out: FileName | None = None
    sample: int = 100
    queue_times: bool = False
    max_queue_traces: int | None = None


class LoadOptions(OptionGroup, frozen=True, kw_only=True):
    """How clients load a server."""

    rate_per_s: float | None = None
    arrivals: Literal["poisson", "deterministic", "closed"] | None = None
    background_per_s: float | None = None
    duration_s: float = 10.0
    max_starts: int | None = None
    clients: int | None = None
    resumption: float = 0.0
    seed: int = 1
    timeout_s: float = 10.0
    max_open: int | None = None
    http: str | None = None
    await_first_byte: bool = False
    ca: FileName | None = None
    server_name: str | None = None
    check: bool = True
    client_stack: str | None = None
    client_chain: FileName | None = None
    client_key: FileName | None = None
    requirements: tuple[str, ...] = ()
    trace_count: int | None = None
    traces_out: FileName | None = None
    server_traces: FileName | None = None
    emulate_device: FileName | None = None
    authorized_target: str | None = None
    rate_cap: bool = True


class PredictionOptions(OptionGroup, frozen=True, kw_only=True):
    """Other inputs of a prediction: the model, the carrier, the client's radio and battery.

    `carrier` is the suite's own transport, or EAP-TLS over RADIUS.
    """

    model: str = "default"
    carrier: Literal["bare", "eap"] = "bare"
    fragment_bytes: int | None = None
    radius_hop_s: float | None = None
    battery_j: float | None = None
    from_idle: bool = False


class EapOptions(OptionGroup, frozen=True, kw_only=True):
    """How a peer authenticates by EAP-TLS. A server uses only the certificates and the fragment size."""

    identity: str = "anonymous@shakedown.test"
    count: int = 1
    rate_per_s: float | None = None
    in_flight: int | None = None
    resume: bool = False
    timeout_s: float = 10.0
    chain: FileName | None = None
    key: FileName | None = None
    ca: FileName | None = None
    password: str | None = None
    fragment: int | None = None


class MobileOptions(OptionGroup, frozen=True, kw_only=True):
    """How a mobile attaches to SGSNs by SSL-based AKA."""

    serving: str = "20801"
    attaches: int = 1
    gap_s: float = 0.0
    timeout_s: float = 60.0
    data: str | None = None
