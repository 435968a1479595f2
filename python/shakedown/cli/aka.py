"""`aka`: network access by SSL-based AKA, in virtual time and as processes on sockets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shakedown.cli._options import FILE
from shakedown.cli._output import announce, echo, json_option, note, print_json, progress_bar, until_stopped
from shakedown.cli._scenario import Duration, Rate, bearer_option, scale_from_option, traces_option
from shakedown.errors import InputError, ShakedownError
from shakedown.reporting.terminal.figures import no_figure

if TYPE_CHECKING:
    from shakedown.schema.aka import (
        AttachGroup,
        AttachRun,
        HssSummary,
        LiveAttaches,
        Refusals,
        SgsnSummary,
        TimeSpread,
    )

MAX_SUBSCRIBERS = 10_000
_file = click.Path(path_type=Path)
_DEFAULT_SUITE = "tls1.2/ecdhe_ecdsa/p256/mutual"

_TIMES = (
    ("nrt_s", "NRT", "connection"),
    ("rpt_s", "RPT", "and preparation"),
    ("tht_s", "THT", "handshake"),
    ("tst_s", "TST", "RPT and THT"),
    ("scrt_s", "SCRT", "server"),
    ("attach_s", "attach", "until accepted"),
)


@click.group("aka")
def command() -> None:
    """Network access by SSL-based AKA: attaches in virtual time, or mobile, SGSN and HSS as processes."""


_suite = click.option(
    "--suite",
    default=_DEFAULT_SUITE,
    show_default=True,
    help="What is negotiated, tls1.0 to tls1.2; chains get two levels.",
)


def _policy(function: Callable[..., object]) -> Callable[..., object]:
    """The two thresholds of resumption."""
    for option in (
        click.option(
            "--max-age",
            "max_age_s",
            type=Duration(),
            default="1h",
            show_default=True,
            help="A session is resumed no later than this after the last time.",
        ),
        click.option(
            "--max-resumptions",
            type=click.IntRange(0, 2**32 - 1),
            default=10,
            show_default=True,
            help="A session is resumed no more often.",
        ),
    ):
        function = option(function)
    return function


@command.command("run")
@_suite
@bearer_option
@click.option("--attaches", type=int, default=50, show_default=True, help="One after the other.")
@click.option("--device", default="phone", show_default=True, help="The mobile.")
@click.option("--server-device", default="server", show_default=True, help="What the SGSNs run on.")
@click.option(
    "--server-workers", "workers", type=int, default=1, show_default=True, help="Processors of an SGSN."
)
@click.option("--mobiles", type=int, default=1, show_default=True, help="That attach in turn.")
@click.option(
    "--gap",
    "gap_s",
    type=Duration(),
    default="60s",
    show_default=True,
    help="Mean of the exponential time between attaches.",
)
@click.option("--at-home", is_flag=True, help="Mobiles are of the serving network.  [default: they roam]")
@click.option(
    "--moves",
    type=float,
    default=0.0,
    show_default=True,
    help="Share of the attaches that go to the other SGSN.",
)
@click.option(
    "--background",
    "background_per_s",
    type=Rate(),
    default="0",
    show_default=True,
    help="Others' full handshakes on the SGSNs' processors, as 5/s, with exponential gaps.",
)
@_policy
@click.option(
    "--core-round-trip",
    "core_round_trip_s",
    type=Duration(),
    default="40ms",
    show_default=True,
    help="A question of an SGSN to another node and its answer; assumed.",
)
@click.option(
    "--preparation",
    "preparation_s",
    type=Duration(),
    default="0s",
    show_default=True,
    help="What a mobile does between connection and handshake (reading certificates); assumed.",
)
@click.option(
    "--timeout",
    "timeout_s",
    type=Duration(),
    default="120s",
    show_default=True,
    help="For one attach of a mobile.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Of everything that is drawn.")
@traces_option
@scale_from_option
@click.option("--samples", is_flag=True, help="Print each attach's times too (with --json).")
@json_option
def run(
    suite: str,
    bearer: str,
    attaches: int,
    device: str,
    server_device: str,
    at_home: bool,
    traces: Path | None,
    scale_from: str | None,
    samples: bool,
    as_json: bool,
    **given: Any,  # noqa: ANN401 - fields of `Attaching`
) -> None:
    """Attach mobiles to two SGSNs in virtual time: real messages and handshakes over TCP on a bearer.

    What computing takes is drawn from the suite's handshake as priced on the devices. The same seed gives the
    same figures. Where no attach at all was completed, the exit status is 1.
    """
    from shakedown.prediction.library import open_library
    from shakedown.simulation.attaches import Attaching, simulate_attaches

    asked = Attaching(attaches=attaches, roaming=not at_home, **given)
    with progress_bar(max(attaches, 1), "attaching") as update:
        found = simulate_attaches(
            suite,
            asked,
            device=device,
            server_device=server_device,
            bearer=bearer,
            traces=open_library(traces, say=note),
            scale_from=scale_from,
            samples=samples,
            progress=lambda done: update(done, "attaching"),
        )
    if as_json:
        print_json([found])
    else:
        _show_run(found)
    if not found.completed:
        raise ShakedownError(f"no attach of {found.attaches:,} was completed: {_counts(found.failed)}")
    if found.failed:
        note(f"{sum(found.failed.values()):,} of {found.attaches:,} attaches failed: {_counts(found.failed)}")


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{times:,} {word}" for word, times in sorted(counts.items()))


def _show_run(found: AttachRun) -> None:
    where = "roaming" if found.roaming else "at home"
    echo(f"simulated: {found.suite}, {found.device} over {found.bearer} to {found.server_device}, {where}")
    _show_groups(found.full, found.resumed)
    if found.not_resumed:
        echo(f"offered and not resumed: {_counts(found.not_resumed)}")
    unpriced = [part for side in (found.mobile, found.sgsn) for part in side.unpriced]
    if unpriced:
        echo("all times are lower bounds: some work has no figure")
    for part in unpriced:
        echo(no_figure(part.side, part.operation, part.algorithm, part.parameters, part.reason))


def _show_groups(full: AttachGroup | None, resumed: AttachGroup | None) -> None:
    for name, one in (("full", full), ("resumed", resumed)):
        if one is None:
            continue
        size = one.handshake_bytes
        echo(f"{one.attaches:,} {name}: {size.up:,.0f} bytes of TLS up, {size.down:,.0f} down")
        for field, short, words in _TIMES:
            times = getattr(one, field)
            if times is not None:
                echo(f"  {short:<6} {_times(times)}  {words}")


def _times(one: TimeSpread) -> str:
    sd = "–" if one.sd is None else f"{one.sd:.3g}"
    return f"mean {one.mean:.4g} s, sd {sd}, median {one.p50:.4g}, p95 {one.p95:.4g}, max {one.max:.4g}"


@command.command("provision")
@click.argument("folder", type=_file)
@_suite
@click.option("--home", default="20201", show_default=True, metavar="NETWORK", help="The home network.")
@click.option(
    "--serving",
    default="20801",
    show_default=True,
    metavar="NETWORK",
    help="The network of the SGSNs; the home network too, without roaming.",
)
@click.option(
    "--sgsn", "nodes", multiple=True, default=("sgsn-1", "sgsn-2"), show_default=True, help="An SGSN's name."
)
@click.option(
    "--subscribers", type=click.IntRange(1, MAX_SUBSCRIBERS), default=1, show_default=True, help="How many."
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

    FOLDER is a new one, or empty: it gets all files or none. Private keys are in them.
    """
    from shakedown import native

    made = native.aka_provision(
        folder, suite, home=home, serving=serving, nodes=nodes, subscribers=subscribers
    )
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
    help="Connections that send nothing for so long are closed.",
)


def _patience(first_message_s: float) -> float:
    """A time for the first message that lets anybody say anything."""
    if first_message_s <= 0.0:
        raise InputError("--first-message: 0; accepted: a time above 0")
    return first_message_s


def _show_refusals(whose: str, found: Refusals) -> None:
    if found.turned_away or found.displaced or found.silent:
        echo(
            f"  {whose} connections: {found.turned_away:,} turned away, "
            f"{found.displaced:,} displaced by others, {found.silent:,} closed for their silence"
        )


@command.command("hss")
@click.option("--listen", required=True, metavar="ADDR:PORT", help="For SGSNs; port 0: any free one.")
@click.option("--register", "register", required=True, type=_file, help="What provision wrote.")
@_first_message
def hss(listen: str, register: Path, first_message_s: float) -> None:
    """Serve a home network's register to SGSNs, until SIGTERM or Ctrl-C."""
    from shakedown import native

    def stopped(found: HssSummary) -> None:
        echo(f"{found.granted:,} queries granted, {sum(found.refused.values()):,} refused")
        if found.refused:
            echo(f"  refused: {_counts(found.refused)}")
        _show_refusals("SGSNs'", found.connections)

    with until_stopped():
        native.aka_hss(
            listen,
            register,
            first_message_s=_patience(first_message_s),
            listening=lambda address: announce(f"HSS on {address}"),
            stopped=stopped,
        )


def _named(values: tuple[str, ...], option: str) -> dict[str, str]:
    """NAME=ADDR:PORT, several."""
    found: dict[str, str] = {}
    for value in values:
        name, equals, address = value.partition("=")
        if not equals or not name or not address:
            raise InputError(f'{option}: "{value[:60]}"; accepted: NAME=ADDR:PORT')
        if name in found:
            raise InputError(f"{option}: {name[:60]} twice; accepted: one address for each")
        found[name] = address
    return found


@command.command("sgsn")
@click.option("--listen", required=True, metavar="ADDR:PORT", help="For mobiles; port 0: any free one.")
@click.option(
    "--core",
    metavar="ADDR:PORT",
    help="For other SGSNs; not for an address that others can reach.  [default: none]",
)
@click.option("--node", "node", required=True, type=_file, help="What provision wrote.")
@click.option("--hss", "homes", multiple=True, metavar="NETWORK=ADDR:PORT", help="A home network's HSS.")
@click.option(
    "--neighbour", "neighbours", multiple=True, metavar="NAME=ADDR:PORT", help="Another SGSN's --core."
)
@click.option(
    "--state",
    type=FILE,
    help="Where sessions and subscribers are kept (SQLite).  [default: memory]",
)
@_policy
@_first_message
@click.option("--json", "as_json", is_flag=True, help="When it stops, print what it did as JSON.")
def sgsn(
    listen: str,
    core: str | None,
    node: Path,
    homes: tuple[str, ...],
    neighbours: tuple[str, ...],
    state: Path | None,
    first_message_s: float,
    as_json: bool,
    **policy: float,
) -> None:
    """Serve mobiles, until SIGTERM or Ctrl-C. With --state, sessions survive the end of the SGSN."""
    from shakedown import native as native
    from shakedown.live.sgsn_state import SgsnState

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
        "first_message_s": _patience(first_message_s),
        **policy,
    }
    kept = None if state is None else SgsnState(state)
    with until_stopped():
        native.aka_sgsn(options, store=kept, listening=listening, stopped=stopped)
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


@command.command("mobile")
@click.option(
    "--sgsn", "sgsns", required=True, multiple=True, metavar="ADDR:PORT", help="The SGSN; several: in turn."
)
@click.option(
    "--serving", default="20801", show_default=True, metavar="NETWORK", help="The network of the SGSN."
)
@click.option("--card", required=True, type=_file, help="What provision wrote.")
@click.option("--attaches", type=click.IntRange(1, 1_000_000), default=1, show_default=True, help="How many.")
@click.option(
    "--gap", "gap_s", type=Duration(), default="0s", show_default=True, help="Between two attaches."
)
@click.option(
    "--timeout", "timeout_s", type=Duration(), default="60s", show_default=True, help="For one attach."
)
@click.option("--data", metavar="TEXT", help="User data to send under the derived keys; the SGSN returns it.")
@click.option("--samples", is_flag=True, help="Print each attach's times too (with --json).")
@json_option
def mobile(
    sgsns: tuple[str, ...],
    attaches: int,
    timeout_s: float,
    samples: bool,
    as_json: bool,
    **given: Any,  # noqa: ANN401 - as the core takes them
) -> None:
    """Attach to an SGSN on a socket, each time with what the last attach left."""
    if timeout_s <= 0.0:
        raise InputError("--timeout: 0; accepted: a time above 0")
    from shakedown.simulation.attaches import attach_live

    with progress_bar(attaches, "attaching") as update:
        found, reason = attach_live(
            {"sgsns": list(sgsns), "attaches": attaches, "timeout_s": timeout_s, **given},
            samples=samples,
            progress=lambda done: update(done, "attaching"),
        )
    if as_json:
        print_json([found])
    else:
        _show_live(found)
    if reason is not None:
        failed = sum(found.failed.values())
        raise click.ClickException(f"{failed} of {attaches} attaches failed; the first: {reason}")


def _show_live(found: LiveAttaches) -> None:
    echo(f"live: {found.suite} to {', '.join(found.sgsns)}")
    _show_groups(found.full, found.resumed)
    if found.echoed is not None:
        echo(f"user data returned under the derived keys: {found.echoed:,} of {found.completed:,}")
