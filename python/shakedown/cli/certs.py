"""`certs`: makes certificates, and says of any what it is, its bytes and what a peer would refuse."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shakedown.cli._options import Time
from shakedown.cli._output import console, echo, echo_lines, force_option, json_option, note, print_json

if TYPE_CHECKING:
    from shakedown.schema.certificates import Description, GeneratedChain

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
    help="Who presents the chain.",
)
_profile = click.option(
    "--profile",
    default="lab",
    show_default=True,
    metavar="NAME|FILE.toml",
    help='What certificates hold besides keys; "certs profiles" lists those that come along.',
)
_name = click.option("--name", help="Common name instead of the profile's; a leaf's DNS name, too.")
_alternative = click.option(
    "--alternative",
    "alternative_names",
    multiple=True,
    metavar="KIND:NAME",
    help="Instead of the profile's alternative names: dns:…, ip:…, uri:…, email:… (repeatable).",
)
_not_before = click.option("--not-before", metavar="YYYY-MM-DD", help="First day of validity.")
_days = click.option("--days", type=int, help="Days of validity.")
_out = click.option("--out", type=_file, required=True, metavar="FOLDER", help="Where the files go.")


@click.group("certs")
def command() -> None:
    """Make certificates, and say what a chain is, costs, and what peers would refuse about it."""


@command.command("show")
@click.argument("files", type=_file, nargs=-1, required=True, metavar="FILE…")
@click.option("--key", type=_file, metavar="FILE", help="Private key that should be the leaf's.")
@click.option("--ca", type=_file, metavar="FILE", help="Roots that the peer trusts; else the last issuer.")
@_password
@click.option("--host", help="Whom the peer means to talk to.")
@_side
@click.option("--level", type=int, default=2, show_default=True, help="The peer's security level, 0 to 5.")
@click.option("--at", "now", type=Time(), help="Verification time.  [default: now]")
@json_option
def show(
    files: tuple[Path, ...],
    level: int,
    as_json: bool,
    **given: Any,  # noqa: ANN401 - as `api.certs` takes them
) -> None:
    """Describe certificates: X.509 in PEM, DER, PKCS #12; WTLS in PEM or as it is sent."""
    from shakedown import api

    found = api.certs("show", files=files, level=level, **given)
    if as_json:
        print_json(found)
        return
    for entry in found:
        _print_description(entry.file, entry, f"security level {level}")


@command.command("make")
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
    help="Also write a PKCS #12 archive under this password.",
)
@json_option
def make(
    out: Path,
    force: bool,
    as_json: bool,
    **given: Any,  # noqa: ANN401 - as `api.certs` takes them
) -> None:
    """Make a chain of new keys: leaf, issuers and root.

    Keys are those of suite names, as in "p256@rsa2048@rsa4096"; a lone leaf is issued by a root of its own
    kind. Default: the profile's usual ones. Options on names and dates are about the leaf.
    """
    from shakedown import api

    [made] = api.certs("make", out=out, replace=force, **given)
    _print_made(made, out, as_json)


@command.command("issue")
@click.argument("place", metavar="root|intermediate|server|client")
@click.argument("key", metavar="KEY")
@_out
@force_option
@click.option(
    "--wtls", is_flag=True, help="A WTLS certificate; goes without saying where the issuer's is one."
)
@click.option("--ca", type=_file, metavar="FILE", help="The issuer's certificate, then its own issuers.")
@click.option("--ca-key", type=_file, metavar="FILE", help="The issuer's key, if not in the same file.")
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
@json_option
def issue(
    out: Path,
    force: bool,
    ca: Path | None,
    ca_key: Path | None,
    as_json: bool,
    **given: Any,  # noqa: ANN401 - as `api.certs` takes them
) -> None:
    """Make one certificate with a new key: a root, or what an issuer of yours issues."""
    from shakedown import api
    from shakedown.files.write import check_distinct

    check_distinct([out / "chain.pem", out / "key.pem"], [ca, ca_key])
    [made] = api.certs("issue", out=out, replace=force, ca=ca, ca_key=ca_key, **given)
    _print_made(made, out, as_json)


@command.command("profiles")
@click.argument("name", required=False)
@json_option
def profiles(name: str | None, as_json: bool) -> None:
    """List the certificate profiles that come along, or print one: a start for your own."""
    from shakedown import api
    from shakedown.errors import InputError, did_you_mean

    known = api.certs("profiles")
    if name is not None:
        chosen = [entry for entry in known if entry.name == name]
        if not chosen:
            names = [entry.name for entry in known]
            hint = did_you_mean(name, names) or f"; accepted: {', '.join(names)}"
            raise InputError(f"unknown certificate profile '{name}'{hint}")
        known = chosen
    if as_json:
        print_json(known)
    elif name is not None:
        echo_lines(known[0].text)
    else:
        for entry in known:
            echo(f"{entry.name:<20} {entry.keys}")


def _print_made(made: GeneratedChain, out: Path, as_json: bool) -> None:
    if as_json:
        print_json([made])
        return
    for file in made.files:
        note(f"{file.path}: {file.what}, {file.bytes:,} bytes")
    _print_description(str(out / "chain.pem"), made.description, "security level 0")


def _print_description(file: str, description: Description, level: str) -> None:
    from rich.text import Text

    from shakedown.reporting.terminal.certificates import certificate_table, finding_lines, headline

    screen = console()
    screen.print(Text(headline(file, description), style="bold"))
    for place, certificate in enumerate(description.certificates, start=1):
        screen.print(certificate_table(place, certificate))
    for line in finding_lines(description, level):
        screen.print(Text(line))
    screen.print()
