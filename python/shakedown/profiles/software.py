"""Profiles of server software: properties of a server's handshakes that the suite's name does not determine.

The values are those of the default configuration. The tickets are those of TLS 1.3: in TLS 1.2 a server
issues one if the client requests it, as only clients of suites in mode ``ticket`` do.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal, NamedTuple

from msgspec import Meta

from shakedown.errors import InputError
from shakedown.files.limits import MIB
from shakedown.profiles.costs import Triple
from shakedown.profiles.overhead import is_public_key
from shakedown.profiles.vocabulary import triple_fault
from shakedown.schema.base import Object, Text, convert
from shakedown.schema.options import upper_limit

DEFAULT_SOFTWARE = "openssl"

_Tickets = Annotated[int, Meta(ge=0, le=upper_limit("MeasureOptions", "tickets"))]


class Factor(NamedTuple):
    """A ratio of times, and its 90 % uncertainty as a factor: from times / spread to times * spread."""

    times: Annotated[float, Meta(ge=1e-6, le=1e6)] = 1.0
    spread: Annotated[float, Meta(ge=1.0, le=1e3)] = 1.0


AS_OURS = Factor()


UNIT: Triple = ("derive", "ecdh", "x25519")
"""The reference for operations of other libraries: its code hardly differs between versions of OpenSSL."""


class Library(Object, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Public-key operations of a library other than OpenSSL.

    `primitives`: by ``operation algorithm parameters``, an operation's time divided by that of OpenSSL's
    `UNIT` on the same processor. `other`: the time of any other operation divided by OpenSSL's time for it.
    """

    name: Text
    primitives: dict[Text, Factor]
    other: Factor


class ServerSoftware(Object, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A server's software.

    `tickets` and `resumption_tickets`: numbers of TLS 1.3 tickets after a full handshake and after a
    resumption. `session_ids`: sessions up to TLS 1.2 can be resumed by their ID. `write_bytes`: the largest
    part of a flight that is written to TCP at once; 0: all of it. `connection` and `work`: the server's time
    for a TCP connection, and for a handshake without its public-key operations, relative to Shakedown's
    server on the same processor. `symmetric_work`: the same for handshakes without public-key operations;
    None: as `work`. `library`: None for OpenSSL. `not_offered`: patterns of suites that it cannot negotiate;
    their figures are those of a server that could. `source`: the sources of these figures.
    """

    schema: Literal[1]
    name: Text
    title: Text
    tickets: _Tickets
    resumption_tickets: _Tickets
    session_ids: bool
    write_bytes: Annotated[int, Meta(ge=0, le=MIB)]
    connection: Factor = AS_OURS
    work: Factor = AS_OURS
    symmetric_work: Factor | None = None
    library: Library | None = None
    not_offered: tuple[Text, ...] = ()
    source: Annotated[tuple[Text, ...], Meta(min_length=1)]

    def tickets_of(self, *, resumption: bool) -> int:
        """The number of TLS 1.3 tickets after a full handshake or a resumption."""
        return self.resumption_tickets if resumption else self.tickets

    def work_of(self, *, public_keys: bool) -> Factor:
        """The factor for a handshake's other work; `public_keys`: whether it has public-key operations."""
        return self.work if public_keys or self.symmetric_work is None else self.symmetric_work

    def note(self, suite: str) -> str | None:
        """A note for the user on a suite with this server, or None."""
        if any(fnmatchcase(suite, one) for one in self.not_offered):
            return f"{suite}: {self.name} does not offer it; figures are those of a server that would"
        if "/resumed" not in suite:
            return None
        if suite.startswith("tls1.3/"):
            return None if self.tickets else f"{suite}: {self.name} issues no ticket by which clients resume"
        if self.session_ids:
            return None
        return f"{suite}: {self.name} resumes no session by its ID unless it is set up to; by ticket it does"


def parse_software(document: dict[str, Any], where: str) -> ServerSoftware:
    """Read and validate a profile. Raises `InputError`."""
    try:
        software = convert(document, ServerSoftware, where, "TOML")
    except InputError as error:
        raise InputError(f"{error}; accepted: a profile of server software") from None
    if software.library is not None:
        _check_names(software.library, where)
    return software


def _check_names(library: Library, where: str) -> None:
    """Raises `InputError` for a name of no operation, which would have no effect on predictions."""
    for name in library.primitives:
        operation, algorithm, parameters = (*name.split(" "), "", "")[:3]
        fault = triple_fault(operation, algorithm, parameters)
        if fault is None and (not is_public_key(operation) or name.count(" ") != 2):
            fault = "accepted: OPERATION ALGORITHM PARAMETERS of a public-key operation"
        if fault is not None:
            raise InputError(f"{where}: library.primitives: {name!r}: {fault}")
