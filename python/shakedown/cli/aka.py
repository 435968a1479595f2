"""`aka`: network access by SSL-based AKA, in virtual time and as processes on sockets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shakedown.cli._options import Group, command_of
from shakedown.cli._output import (
    announce,
    echo,
    json_option,
    note,
    print_json,
    print_rows,
    progress_bar,
    rows_options,
    until_stopped,
)
from shakedown.cli._scenario import bearer_option, note_radios, scale_from_option, traces_option
from shakedown.cli._types import DEVICE, FILE, Duration, OutputFolder, Whole
from shakedown.errors import InputError, ShakedownError
from shakedown.reporting.columns import Selection
from shakedown.reporting.figures import no_figure

if TYPE_CHECKING:
    from shakedown.schema.aka import (
        AttachGroup,
        AttachRun,
        HssSummary,
        LiveAttaches,
        Refusals,
        SgsnSummary,
    )

MAX_SUBSCRIBERS = 10_000
_file = click.Path(path_type=Path)
_DEFAULT_SUITE = "tls1.2/ecdhe_ecdsa/p256/mutual"


@click.group("aka", cls=Group)
def command() -> None:
    """SSL-based AKA: attach in virtual time, or run mobile, SGSN and HSS."""


_suite = click.option(
    "--suite",
    default=_DEFAULT_SUITE,
    show_default=True,
    help="Suite, tls1.0 to tls1.2; its chains have two levels.",
)


@command.command(
    "run",
    epilog="Example: shakedown aka run --attaches 10",
    cls=command_of("simulation.attaches.Attaching", before="traces"),
)
@_suite
@bearer_option
@click.option("--device", type=DEVICE, default="phone", show_default=True, help="Device of the mobiles.")
@click.option(
    "--server-device", type=DEVICE, default="server", show_default=True, help="Device of the SGSNs."
)
@traces_option
@scale_from_option
@click.option("--samples", is_flag=True, help="With --json: print the times of each attach.")
@rows_options("attaches.ATTACHES")
def run(
    suite: str,
    bearer: str,
    device: str,
    server_device: str,
    traces: Path | None,
    scale_from: str | None,
    samples: bool,
    selection: Selection,
    **given: Any,  # noqa: ANN401 - fields of `Attaching`
) -> None:
    """Attach mobiles to two SGSNs in virtual time: real messages and handshakes over TCP on a bearer.

    Processing times are drawn from the suite's handshake on the devices. The same seed gives the same
    figures. If no attach was completed, the exit status is 1.
    """
    from shakedown.prediction.library import open_library
    from shakedown.schema.options import options_of
    from shakedown.simulation.attaches import Attaching, simulate_attaches
    from shakedown.simulation.deployment import Site

    asked = options_of(Attaching, given)
    with progress_bar(asked.attaches, "attaching") as update:
        found = simulate_attaches(
            suite,
            asked,
            Site(device, server_device, bearer, traces=open_library(traces, say=note), scale_from=scale_from),
            samples=samples,
            progress=lambda done: update(done, "attaching"),
        )
    note_radios([bearer], from_idle=asked.from_idle)
    if selection.json:
        print_json([found])
    else:
        _show_run(found, selection)
    if not found.completed:
        raise ShakedownError(f"no attach of {found.attaches:,} was completed: {_counts(found.failed)}")
    if found.failed:
        note(f"{sum(found.failed.values()):,} of {found.attaches:,} attaches failed: {_counts(found.failed)}")


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{times:,} {word}" for word, times in sorted(counts.items()))


def _show_run(found: AttachRun, selection: Selection) -> None:
    from shakedown.reporting.columns.fleet_notes import bases

    say = note if selection.csv else echo
    where = ("roaming" if found.roaming else "at home") + (", from idle" if found.from_idle else "")
    say(f"simulated: {found.suite}, {found.device} over {found.bearer} to {found.server_device}, {where}")
    sides = {"the mobile": found.mobile, "the SGSN": found.sgsn}
    without_cost = [part for side in sides.values() for part in side.without_cost]
    _show_groups(found.full, found.resumed, selection, lower_bounds=bool(without_cost))
    if found.not_resumed:
        say(f"offered and not resumed: {_counts(found.not_resumed)}")
    for line in bases((name, {"ready_basis": side.basis}) for name, side in sides.items()):
        say(line)
    if without_cost:
        say("all times are lower bounds: some work has no figure")
    for part in without_cost:
        say(no_figure(part.side, part.operation, part.algorithm, part.parameters, part.reason))


def _show_groups(
    full: AttachGroup | None,
    resumed: AttachGroup | None,
    selection: Selection,
    *,
    lower_bounds: bool = False,
) -> None:
    from shakedown.reporting.columns.attaches import ATTACHES, attach_rows
    from shakedown.reporting.columns.notes import missing_percentiles

    say = note if selection.csv else echo
    for name, one in (("full", full), ("resumed", resumed)):
        if one is not None:
            size = one.handshake_bytes
            say(f"{one.attaches:,} {name}: {size.up:,.0f} bytes of TLS up, {size.down:,.0f} down")
    rows = list(attach_rows(full, resumed, lower_bounds=lower_bounds))
    print_rows(ATTACHES, rows, selection, notes=lambda shown: missing_percentiles(rows, shown, "attaches"))


@command.command("provision", epilog="Example: shakedown aka provision operators")
@click.argument("folder", type=OutputFolder())
@_suite
@click.option("--home", default="20201", show_default=True, metavar="NETWORK", help="The home network.")
@click.option(
    "--serving",
    default="20801",
    show_default=True,
    metavar="NETWORK",
    help="The network of the SGSNs; may be the home network (no roaming).",
)
@click.option(
    "--sgsn", "nodes", multiple=True, default=("sgsn-1", "sgsn-2"), show_default=True, help="An SGSN's name."
)
@click.option(
    "--subscribers",
    type=Whole(1, MAX_SUBSCRIBERS),
    default=1,
    show_default=True,
    help="Subscribers.",
)
@json_option
def provision(
    folder: Path,
    suite: str,
    home: str,
    serving: str,
    nodes: tuple[str, ...],
    subscribers: int,
    as_json: bool,
) -> None:
    """Make two operators that certify each other, and the files of HSS, SGSNs and subscribers.

    FOLDER must be new or empty. Either all files are written or none. They contain private keys.
    """
    from shakedown.native import aka

    made = aka.provision(folder, suite, home=home, serving=serving, nodes=nodes, subscribers=subscribers)
    if as_json:
        print_json([made])
    else:
        for path in made.files:
            echo(path)


_first_message = click.option(
    "--first-message",
    "first_message_s",
    type=Duration(),
    default="10s",
    show_default=True,
    help="Timeout for a connection's first message.",
)


def _first_message_timeout(first_message_s: float) -> float:
    if first_message_s <= 0.0:
        raise InputError("--first-message: 0; accepted: a time above 0")
    return first_message_s


def _show_refusals(whose: str, found: Refusals) -> None:
    if found.turned_away or found.displaced or found.silent:
        echo(
            f"  {whose} connections: {found.turned_away:,} turned away, "
            f"{found.displaced:,} displaced by others, {found.silent:,} closed for their silence"
        )


@command.command(
    "hss", epilog="Example: shakedown aka hss --listen 127.0.0.1:7000 --register operators/hss-20201.json"
)
@click.option(
    "--listen", required=True, metavar="ADDR:PORT", help="Address for SGSNs; port 0: any free port."
)
@click.option("--register", "register", required=True, type=_file, help="File that provision wrote.")
@_first_message
def hss(listen: str, register: Path, first_message_s: float) -> None:
    """Serve a home network's register to SGSNs, until SIGTERM or Ctrl-C."""
    from shakedown.native import aka

    def stopped(found: HssSummary) -> None:
        echo(f"{found.granted:,} queries granted, {sum(found.refused.values()):,} refused")
        if found.refused:
            echo(f"  refused: {_counts(found.refused)}")
        _show_refusals("SGSNs'", found.connections)

    with until_stopped():
        aka.hss(
            listen,
            register,
            first_message_s=_first_message_timeout(first_message_s),
            listening=lambda address: announce(f"HSS on {address}"),
            stopped=stopped,
        )


def _named(values: tuple[str, ...], option: str) -> dict[str, str]:
    """Parses values NAME=ADDR:PORT."""
    found: dict[str, str] = {}
    for value in values:
        name, equals, address = value.partition("=")
        if not equals or not name or not address:
            raise InputError(f'{option}: "{value[:60]}"; accepted: NAME=ADDR:PORT')
        if name in found:
            raise InputError(f"{option}: {name[:60]} twice; accepted: one address for each")
        found[name] = address
    return found


@command.command(
    "sgsn",
    epilog="Example: shakedown aka sgsn --listen 127.0.0.1:7001 --node operators/sgsn-1.json",
    cls=command_of(
        "simulation.attaches.Attaching", before="first_message_s", only=("max_age_s", "max_resumptions")
    ),
)
@click.option(
    "--listen", required=True, metavar="ADDR:PORT", help="Address for mobiles; port 0: any free port."
)
@click.option(
    "--core",
    metavar="ADDR:PORT",
    help="Address for other SGSNs; must not be reachable by others.  [default: none]",
)
@click.option("--node", "node", required=True, type=_file, help="File that provision wrote.")
@click.option("--hss", "homes", multiple=True, metavar="NETWORK=ADDR:PORT", help="A home network's HSS.")
@click.option(
    "--neighbour", "neighbours", multiple=True, metavar="NAME=ADDR:PORT", help="Another SGSN's --core."
)
@click.option(
    "--state",
    type=FILE,
    help="File for sessions and subscribers (SQLite).  [default: memory]",
)
@_first_message
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON when the SGSN stops.")
def sgsn(
    listen: str,
    core: str | None,
    node: Path,
    homes: tuple[str, ...],
    neighbours: tuple[str, ...],
    state: Path | None,
    first_message_s: float,
    as_json: bool,
    **policy: Any,  # noqa: ANN401 - fields of `Attaching`
) -> None:
    """Serve mobiles, until SIGTERM or Ctrl-C. With --state, sessions survive the end of the SGSN."""
    from shakedown.live.sgsn_state import SgsnState
    from shakedown.native import aka
    from shakedown.schema.options import options_of
    from shakedown.simulation.attaches import Attaching

    sessions = options_of(Attaching, policy)

    def listening(address: str, between: str | None) -> None:
        line = f"SGSN on {address}"
        announce(line if between is None else f"{line}, for other SGSNs on {between}")

    def stopped(found: SgsnSummary) -> None:
        if as_json:
            print_json([found])
        else:
            _show_summary(found)

    options = {
        "listen": listen,
        "core": core,
        "file": node,
        "homes": _named(homes, "--hss"),
        "neighbours": _named(neighbours, "--neighbour"),
        "first_message_s": _first_message_timeout(first_message_s),
        "max_age_s": sessions.max_age_s,
        "max_resumptions": sessions.max_resumptions,
    }
    kept = None if state is None else SgsnState(state)
    with until_stopped():
        aka.sgsn(options, store=kept, listening=listening, stopped=stopped)
    if kept is not None:
        kept.close()


def _show_summary(found: SgsnSummary) -> None:
    rejected = sum(found.rejected.values())
    echo(
        f"{found.full:,} full, {found.resumed:,} resumed, {rejected:,} rejected; "
        f"{found.taken_over:,} came from another SGSN, {found.handed_over:,} went to one"
    )
    if found.not_resumed:
        echo(f"  offered and not resumed: {_counts(found.not_resumed)}")
    for cause, times in sorted(found.rejected.items()):
        why = f", the first: {found.reasons[cause]}" if cause in found.reasons else ""
        echo(f"  rejected: {times:,} {cause}{why}")
    _show_refusals("mobiles'", found.connections)
    if found.core_connections is not None:
        _show_refusals("SGSNs'", found.core_connections)
    for name, values in (("full", found.scrt_full_s), ("resumed", found.scrt_resumed_s)):
        if values:
            echo(f"  SCRT, {name}: mean {sum(values) / len(values):.4g} s of {len(values):,}")


@command.command(
    "mobile",
    epilog="Example: shakedown aka mobile --sgsn 127.0.0.1:7001 --card operators/card-0.json",
    cls=command_of("schema.options.MobileOptions", before="samples"),
)
@click.option(
    "--sgsn",
    "sgsns",
    required=True,
    multiple=True,
    metavar="ADDR:PORT",
    help="The SGSN; if repeated, attaches alternate.",
)
@click.option("--card", required=True, type=_file, help="File that provision wrote.")
@click.option("--samples", is_flag=True, help="With --json: print the times of each attach.")
@rows_options("attaches.ATTACHES")
def mobile(
    sgsns: tuple[str, ...],
    card: Path,
    samples: bool,
    selection: Selection,
    **given: Any,  # noqa: ANN401 - fields of `MobileOptions`
) -> None:
    """Attach to an SGSN over a socket; each attach may resume the session of the previous one."""
    from shakedown.schema.options import MobileOptions, options_of
    from shakedown.simulation.attaches import attach_live

    options = options_of(MobileOptions, given)
    with progress_bar(options.attaches, "attaching") as update:
        found, reason = attach_live(
            sgsns, card, options, samples=samples, progress=lambda done: update(done, "attaching")
        )
    if selection.json:
        print_json([found])
    else:
        _show_live(found, selection)
    if reason is not None:
        failed = sum(found.failed.values())
        raise click.ClickException(f"{failed} of {options.attaches} attaches failed; the first: {reason}")


def _show_live(found: LiveAttaches, selection: Selection) -> None:
    say = note if selection.csv else echo
    say(f"live: {found.suite} to {', '.join(found.sgsns)}")
    _show_groups(found.full, found.resumed, selection)
    if found.echoed is not None:
        say(f"user data returned under the derived keys: {found.echoed:,} of {found.completed:,}")
