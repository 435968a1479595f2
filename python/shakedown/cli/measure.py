"""`measure`: the times of real handshakes in memory, by message and operation."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shakedown.cli._options import command_of, suites_argument
from shakedown.cli._output import (
    echo,
    force_option,
    note,
    print_json,
    print_objects,
    print_rows,
    print_table,
    progress_bar,
    results_so_far,
    rows_options,
)
from shakedown.cli._types import FILE, Whole
from shakedown.reporting.columns import Column, Selection

if TYPE_CHECKING:
    from shakedown.native.scenario import HandshakeId, MeasureOptions
    from shakedown.schema.measured import Measurement

WTLS_ONLY = ("certificate_form", "private_curves")


def _columns(given: dict[str, Any]) -> Sequence[Column]:
    from shakedown.reporting.columns.measured import HANDSHAKES, MESSAGES

    if _by_message(given["messages"], given["selection"]):
        return MESSAGES
    return HANDSHAKES if given["messages"] is not None else (*HANDSHAKES, *MESSAGES)


def _by_message(messages: bool | None, selection: Selection) -> bool:
    """Whether messages are printed: if requested, or if selected columns exist only for messages."""
    from shakedown.reporting.columns.measured import HANDSHAKES, MESSAGES

    return selection.names_any_of(MESSAGES, beyond=HANDSHAKES) if messages is None else messages


@click.command(
    "measure",
    cls=command_of("native.scenario.MeasureOptions", before="stack", without=("client_password",)),
    epilog="Example: shakedown measure tls1.3/x25519/p256/server",
)
@suites_argument
@click.option(
    "--stack", metavar="NAME", help='Stack of both sides; "stacks" lists them.  [default: the suite\'s]'
)
@click.option("--client-stack", metavar="NAME", help="Stack of the client.")
@click.option("--server-stack", metavar="NAME", help="Stack of the server.")
@click.option("--samples", is_flag=True, help="With --json: print the figures of every repetition.")
@click.option(
    "--transfer",
    "sizes_kib",
    metavar="SIZE",
    type=Whole(1, 1 << 20),
    multiple=True,
    help="After the handshake, transfer SIZE KiB from server to client; may be repeated.",
)
@click.option(
    "--link",
    type=click.Choice(["open", "wep"]),
    default="open",
    show_default=True,
    help="Link layer under a transfer; wep encrypts every frame.",
)
@click.option(
    "--pcap",
    type=FILE,
    help="Write a handshake of each suite as a capture.",
)
@click.option(
    "--keylog",
    type=FILE,
    help="Write the key log that decrypts the capture. An existing key log is never replaced.",
)
@click.option(
    "--messages/--no-messages",
    default=None,
    help="Print messages one by one.  [default: if there is one suite, or --columns names message columns]",
)
@click.option("--on-request", is_flag=True, hidden=True)
@force_option
@rows_options(_columns)
def command(
    suites: tuple[str, ...],
    stack: str | None,
    client_stack: str | None,
    server_stack: str | None,
    samples: bool,
    sizes_kib: tuple[int, ...],
    link: str,
    pcap: Path | None,
    keylog: Path | None,
    messages: bool | None,
    on_request: bool,
    force: bool,
    selection: Selection,
    **options: object,
) -> None:
    """Measure handshakes on this machine: bytes, and the time of each message and operation.

    SUITE is protocol/key-exchange[/keys][/authentication][/mode][/cipher], as in tls1.3/x25519/p256/server;
    "shakedown suites" lists them. Without --repeat, noisy suites are repeated until their means are within
    5 %, for at most two seconds each.
    """
    from msgspec.structs import replace

    from shakedown import native
    from shakedown.api import in_memory
    from shakedown.files.write import check_distinct, check_free
    from shakedown.native.scenario import MeasureOptions
    from shakedown.reporting.columns.measured import repetitions
    from shakedown.schema.options import options_of

    if keylog and not pcap:
        raise click.UsageError("--keylog requires --pcap")
    if link != "open" and not sizes_kib:
        raise click.UsageError("--link requires --transfer")
    if pcap is not None:
        check_free(pcap, force)
    if keylog is not None:
        check_free(keylog, accepted=in_memory.NEW_KEY_LOG)
    names = [native.canonical(suite) for suite in suites]
    if any(options[name] for name in WTLS_ONLY) and not all(name.startswith("wtls/") for name in names):
        raise click.UsageError("--certificate-form and --private-curves accept only wtls suites")
    given = options_of(MeasureOptions, options)
    check_distinct([pcap, keylog], given.files())
    alone = given.unpaired()
    if alone is not None:
        raise click.UsageError(f"--{alone[0]} requires --{alone[1]}".replace("_", "-"))
    if given.carrier != "eap" and given.fragment is not None:
        raise click.UsageError("--fragment requires --carrier eap")
    if given.carrier == "eap" and (sizes_kib or pcap is not None):
        raise click.UsageError("--carrier eap is given with --transfer or --pcap; accepted: one of them")
    # Certificates of all suites and of the capture are validated at the same time.
    chosen = given.checked()
    if chosen.user_supplied:
        names = [_named_by_chain(name, chosen) for name in names]
    handshakes = [
        in_memory.identity(name, chosen, client_stack or stack, server_stack or stack) for name in names
    ]
    if on_request:
        _measure_on_request(handshakes, chosen)
        return
    measured: list[Measurement] = []

    measure_one = partial(
        in_memory.measure_one,
        samples=samples,
        transfer_bytes=[1024 * size for size in sizes_kib],
        link=link,
    )
    show = partial(_show, measured, selection, messages)
    repeat = chosen.repeat
    with (
        results_so_far(measured, show, len(names), "suites measured"),
        progress_bar(repeat * len(handshakes), "measuring") as update,
    ):
        for position, one in enumerate(handshakes):

            def tell(done: int, position: int = position, one: HandshakeId = one) -> None:
                update(position * repeat + min(done, repeat), one.suite)

            tell(0)
            found = measure_one(one, chosen, progress=tell)
            more = 0 if options["repeat"] is not None else repetitions(found)
            if more > repeat:
                found = measure_one(one, replace(chosen, repeat=more))
            measured.append(found)
    show()
    of_software = [one.server_software_note for one in measured]
    for remark in (*native.take_notices(), *of_software):
        if remark:
            note(remark)
    if pcap:
        in_memory.write_capture(handshakes, pcap, keylog, chosen, replace=force)
        note(f"capture: {pcap}")


def _measure_on_request(handshakes: list[HandshakeId], options: MeasureOptions) -> None:
    """Measures once per line of standard input, and prints a line of JSON; `compare` uses this.

    The line `times` requests a measurement without counting instructions.
    """
    import sys

    from msgspec.structs import replace

    from shakedown.api import in_memory
    from shakedown.schema.base import encode

    for line in sys.stdin:
        if line.strip() == "times":
            options = replace(options, counter=None)
        echo(encode([in_memory.measure_one(one, options) for one in handshakes]).decode())
        # Counts do not change, so they are measured only once.
        options = replace(options, counter=None)


def _named_by_chain(name: str, options: MeasureOptions) -> str:
    """The suite's name with the keys of user-supplied certificates."""
    from shakedown.api.in_memory import named_by_chain

    found, notes = named_by_chain(name, options)
    for remark in notes:
        note(f"{found}: {remark}")
    return found


def _show(measured: list[Measurement], selection: Selection, messages: bool | None) -> None:
    if selection.json:
        print_json(measured)
    elif measured:
        from msgspec import UNSET

        from shakedown.reporting.columns import measured as columns
        from shakedown.schema.base import SIDES, builtins

        alone = len(measured) == 1 and selection == Selection() and messages is None
        if alone or _by_message(messages, selection):
            _show_messages(measured, selection)
        else:
            print_objects(measured, selection)
        if selection.csv:
            return
        moved = [
            {
                **builtins(part),
                "suite": one.suite,
                **{f"{side}_us": getattr(part, f"{side}_us").median for side in SIDES},
            }
            for one in measured
            if one.transfers is not UNSET
            for part in one.transfers
        ]
        if moved:
            print_rows(columns.TRANSFERS, moved, Selection(), title="transfers after the handshake (medians)")
        for one in measured:
            if one.suite.startswith("tls1.3/psk") and not one.suite.startswith("tls1.3/psk_dhe"):
                unused_us = sum(
                    call.us for call in one.operations if (call.side, call.operation) == ("client", "keygen")
                )
                echo(
                    f"{one.suite}: {unused_us * 1e-3:.3f} ms of the client's are for a key share that libssl "
                    "sends and the suite does not use"
                )
            if one.eap is not UNSET:
                echo(
                    f"{one.suite} inside EAP, {one.eap.fragment_bytes:,} bytes of TLS a packet: "
                    f"{one.eap.round_trips:,} round trips, {one.eap.fragments:,} fragments, "
                    f"{one.eap.eap_bytes:,} bytes"
                )


def _show_messages(measured: list[Measurement], selection: Selection) -> None:
    from shakedown.reporting.columns.measured import MESSAGES, message_table

    tables = [message_table(one) for one in measured]
    if selection.csv:
        print_rows(MESSAGES, [row for one in tables for row in one.rows], selection)
        return
    for number, one in enumerate(tables):
        if number:
            echo("")
        print_table(one, selection)
