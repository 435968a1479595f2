"""`certs`: generates certificates, and describes and validates chains."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shakedown.cli._options import Group
from shakedown.cli._output import (
    echo,
    echo_lines,
    force_option,
    note,
    print_json,
    print_rows,
    rows_options,
)
from shakedown.cli._types import OutputFolder, Time, Whole
from shakedown.reporting.columns import Column, Selection

if TYPE_CHECKING:
    from shakedown.schema.certificates import Description, GeneratedChain


def _columns(_given: dict[str, Any]) -> Sequence[Column]:
    from shakedown.reporting.terminal.certificates import certificate_columns

    return certificate_columns()


def _profile_columns(_given: dict[str, Any]) -> Sequence[Column]:
    from shakedown.reporting.columns import label

    return label("name", "profile"), label("keys", "keys", prose=True)


_file = click.Path(path_type=Path)
_password = click.option(
    "--password",
    envvar="SHAKEDOWN_PASSWORD",
    show_envvar=True,
    help="Password of archives and keys.",
)
_side = click.option(
    "--side",
    type=click.Choice(["server", "client"]),
    default="server",
    show_default=True,
    help="Side that presents the chain.",
)
_profile = click.option(
    "--profile",
    default="lab",
    show_default=True,
    metavar="NAME|FILE.toml",
    help='Names, dates and extensions; "certs profiles" lists the shipped ones.',
)
_name = click.option("--name", help="Common name (default: the profile's); also a leaf's DNS name.")
_alternative = click.option(
    "--alternative",
    "alternative_names",
    multiple=True,
    metavar="KIND:NAME",
    help="Instead of the profile's alternative names: dns:…, ip:…, uri:…, email:… (repeatable).",
)
_not_before = click.option("--not-before", metavar="YYYY-MM-DD", help="First day of validity.")
_days = click.option("--days", type=Whole(1, 100_000), metavar="N", help="Days of validity.")
_out = click.option(
    "--out", type=OutputFolder(), required=True, metavar="FOLDER", help="Folder for the files."
)


@click.group("certs", cls=Group)
def command() -> None:
    """Generate certificates; describe and validate chains."""


@command.command("show", epilog="Example: shakedown certs show chain/chain.pem")
@click.argument("files", type=_file, nargs=-1, required=True, metavar="FILE…")
@click.option("--key", type=_file, metavar="FILE", help="Check that this is the leaf's private key.")
@click.option(
    "--ca", type=_file, metavar="FILE", help="Roots that the peer trusts.  [default: the chain's last issuer]"
)
@_password
@click.option("--host", help="Host name that the peer expects.")
@_side
@click.option(
    "--level",
    type=Whole(0, 5),
    metavar="N",
    default=2,
    show_default=True,
    help="The peer's security level.",
)
@click.option("--at", "now", type=Time(), help="Time at which certificates are validated.  [default: now]")
@rows_options(_columns)
def show(
    files: tuple[Path, ...],
    level: int,
    selection: Selection,
    **given: Any,  # noqa: ANN401 - as `certificates.certs` takes them
) -> None:
    """Describe certificates: X.509 in PEM, DER, PKCS #12; WTLS in PEM or in binary form."""
    from shakedown.api import certificates

    found = certificates.certs("show", files=files, level=level, **given)
    if selection.json:
        print_json(found)
        return
    _print_descriptions([(entry.file, entry) for entry in found], f"security level {level}", selection)


@command.command("make", epilog="Example: shakedown certs make p256@p384 --out chain")
@click.argument("keys", required=False, metavar="[LEAF@ISSUER…@ROOT]")
@_out
@force_option
@click.option("--wtls", is_flag=True, help="WTLS certificates instead of X.509.")
@_side
@_profile
@_name
@_alternative
@_not_before
@_days
@click.option(
    "--password",
    envvar="SHAKEDOWN_PASSWORD",
    show_envvar=True,
    help="Also write a PKCS #12 archive with this password.",
)
@rows_options(_columns)
def make(
    out: Path,
    force: bool,
    selection: Selection,
    **given: Any,  # noqa: ANN401 - as `certificates.certs` takes them
) -> None:
    """Make a certificate chain with new keys: leaf, issuers and root.

    Keys are those of suite names, as in "p256@rsa2048@rsa4096"; a leaf without @ is
    issued by a root with a key of the same kind. Default: the profile's usual keys. Options on names and
    dates apply to the leaf.
    """
    from shakedown.api import certificates

    [made] = certificates.certs("make", out=out, replace=force, **given)
    _print_made(made, out, selection)


@command.command("issue", epilog="Example: shakedown certs issue root p256 --out root")
@click.argument("place", metavar="root|intermediate|server|client")
@click.argument("key", metavar="KEY")
@_out
@force_option
@click.option("--wtls", is_flag=True, help="Make a WTLS certificate; implied by a WTLS issuer.")
@click.option("--ca", type=_file, metavar="FILE", help="The issuer's certificate, followed by its issuers.")
@click.option("--ca-key", type=_file, metavar="FILE", help="The issuer's key.  [default: in --ca's file]")
@click.option(
    "--ca-password",
    envvar="SHAKEDOWN_PASSWORD",
    show_envvar=True,
    help="Password of the issuer's files.",
)
@_profile
@_name
@_alternative
@_not_before
@_days
@rows_options(_columns)
def issue(
    out: Path,
    force: bool,
    ca: Path | None,
    ca_key: Path | None,
    selection: Selection,
    **given: Any,  # noqa: ANN401 - as `certificates.certs` takes them
) -> None:
    """Make one certificate with a new key: a root, or one that your own authority issues."""
    from shakedown.api import certificates
    from shakedown.files.write import check_distinct

    check_distinct([out / "chain.pem", out / "key.pem"], [ca, ca_key])
    [made] = certificates.certs("issue", out=out, replace=force, ca=ca, ca_key=ca_key, **given)
    _print_made(made, out, selection)


@command.command("profiles", epilog="Example: shakedown certs profiles")
@click.argument("name", required=False)
@rows_options(_profile_columns)
def profiles(name: str | None, selection: Selection) -> None:
    """List the shipped certificate profiles, or print one as a template."""
    from shakedown.api import certificates
    from shakedown.errors import InputError, did_you_mean

    known: list[Any] = certificates.certs("profiles")
    if name is not None:
        chosen = [entry for entry in known if entry.name == name]
        if not chosen:
            names = [entry.name for entry in known]
            hint = did_you_mean(name, names) or f"; accepted: {', '.join(names)}"
            raise InputError(f"unknown certificate profile '{name}'{hint}")
        known = chosen
    if selection.json:
        print_json(known)
    elif name is not None:
        echo_lines(known[0].text)
    else:
        print_rows(_profile_columns({}), [{"name": one.name, "keys": one.keys} for one in known], selection)


def _print_made(made: GeneratedChain, out: Path, selection: Selection) -> None:
    if selection.json:
        print_json([made])
        return
    for file in made.files:
        note(f"{file.path}: {file.what}, {file.bytes:,} bytes")
    _print_descriptions([(str(out / "chain.pem"), made.description)], "security level 0", selection)


def _print_descriptions(found: Sequence[tuple[str, Description]], level: str, selection: Selection) -> None:
    """Prints a table for each certificate, or one CSV table of all."""
    from shakedown.reporting.terminal.certificates import (
        certificate_columns,
        certificate_rows,
        finding_lines,
        headline,
    )

    tables = [
        [
            list(certificate_rows(file, place, one))
            for place, one in enumerate(description.certificates, start=1)
        ]
        for file, description in found
    ]
    if selection.csv:
        print_rows(
            certificate_columns(), [row for some in tables for rows in some for row in rows], selection
        )
        return
    for (file, description), some in zip(found, tables, strict=True):
        echo(headline(file, description))
        for place, rows in enumerate(some, start=1):
            print_rows(certificate_columns(place), rows, selection)
        for line in finding_lines(description, level):
            echo(line)
