"""`measure`: real handshakes in memory, priced from inside."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from shakedown.cli._options import FILE, MeasureCommand, suites_argument
from shakedown.cli._output import echo, force_option, json_option, note, print_json, progress_bar, show

if TYPE_CHECKING:
    from shakedown.native.scenario import HandshakeId, Options
    from shakedown.schema.measured import Measurement

WTLS_ONLY = ("certificate_form", "private_curves")


@click.command("measure", cls=MeasureCommand)
@suites_argument
@click.option(
    "--stack", metavar="NAME", help='Runs both sides; "stacks" lists them.  [default: the suite\'s]'
)
@click.option("--client-stack", metavar="NAME", help="Runs the client's side.")
@click.option("--server-stack", metavar="NAME", help="Runs the server's side.")
@click.option("--samples", is_flag=True, help="--json: every repetition's figure beside each median.")
@click.option(
    "--transfer",
    "sizes_kib",
    metavar="SIZE",
    type=click.IntRange(1, 1 << 20),
    multiple=True,
    help="After the handshake, transfer SIZE KiB from server to client; may be repeated.",
)
@click.option(
    "--link",
    type=click.Choice(["open", "wep"]),
    default="open",
    show_default=True,
    help="What lies under a transfer; wep encrypts every frame.",
)
@click.option(
    "--pcap",
    type=FILE,
    help="Write a handshake of each suite as a capture.",
)
@click.option(
    "--keylog",
    type=FILE,
    help="Write the key log that decrypts the capture.",
)
@force_option
@json_option
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
    force: bool,
    as_json: bool,
    **options: object,
) -> None:
    """Measure what handshakes cost here: time per message and operation, and bytes, on both sides.

    SUITE is protocol/key-exchange[/keys][/authentication][/mode][/cipher], as in tls1.3/x25519/p256/server;
    "shakedown suites" lists them.
    """
    from shakedown import api, native
    from shakedown.files.write import check_distinct, check_free
    from shakedown.native.scenario import options_of

    if keylog and not pcap:
        raise click.UsageError("--keylog goes with --pcap, which it decrypts")
    if link != "open" and not sizes_kib:
        raise click.UsageError("--link goes with --transfer, under which it lies")
    if pcap is not None:
        check_free(pcap, force)
    if keylog is not None:
        # Other programs' secrets may be in it: --force is for what can be made again.
        check_free(keylog, accepted="another name")
    names = [native.canonical(suite) for suite in suites]
    if any(options[name] for name in WTLS_ONLY) and not all(name.startswith("wtls/") for name in names):
        raise click.UsageError("--certificate-form and --private-curves are for suites of wtls alone")
    given = options_of(options)
    check_distinct([pcap, keylog], given.files())
    alone = given.unpaired()
    if alone is not None:
        raise click.UsageError(f"--{alone[0]} goes with --{alone[1]}".replace("_", "-"))
    if given.carrier != "eap" and given.fragment is not None:
        raise click.UsageError("--fragment goes with --carrier eap, whose packets it bounds")
    if given.carrier == "eap" and (sizes_kib or pcap is not None):
        raise click.UsageError(
            "--carrier eap carries a handshake alone; it goes without --transfer and --pcap"
        )
    # One verification time for all that follows.
    chosen = given.checked()
    if chosen.user_supplied:
        names = [_named_by_chain(name, chosen) for name in names]
    handshakes = [api.identity(name, chosen, client_stack or stack, server_stack or stack) for name in names]
    measured: list[Measurement] = []
    repeat = chosen.repeat
    try:
        with progress_bar(repeat * len(handshakes), "measuring") as update:
            for position, one in enumerate(handshakes):

                def tell(done: int, position: int = position, one: HandshakeId = one) -> None:
                    update(position * repeat + min(done, repeat), one.suite)

                tell(0)
                measured.append(
                    api.measure_one(
                        one,
                        chosen,
                        samples=samples,
                        transfer_bytes=[1024 * size for size in sizes_kib],
                        link=link,
                        progress=tell,
                    )
                )
    except KeyboardInterrupt:
        _show(measured, as_json)
        raise KeyboardInterrupt(f"interrupted: {len(measured)} of {len(names)} suites measured") from None
    except Exception:
        if measured:
            _show(measured, as_json)
        raise
    _show(measured, as_json)
    for remark in native.take_notices():
        note(remark)
    if pcap:
        api.write_capture(handshakes, pcap, keylog, chosen, replace=force)
        note(f"capture: {pcap}")


def _named_by_chain(name: str, options: Options) -> str:
    """The suite's name with the keys of the user's certificates."""
    from shakedown.api import named_by_chain

    found, notes = named_by_chain(name, options)
    for remark in notes:
        note(f"{found}: {remark}")
    return found


def _show(measured: list[Measurement], as_json: bool) -> None:
    if as_json:
        print_json(measured)
    elif measured:
        from msgspec import UNSET

        from shakedown.cli._output import show_results
        from shakedown.experiments.figure_kinds.in_memory_results import results_of
        from shakedown.reporting.terminal.measured import transfer_table

        show_results(results_of(measured))
        show(transfer_table(one) for one in measured if one.transfers is not UNSET)
        for one in measured:
            if one.eap is not UNSET:
                echo(
                    f"{one.suite} inside EAP, {one.eap.fragment_bytes:,} bytes of TLS a packet: "
                    f"{one.eap.round_trips:,} round trips, {one.eap.fragments:,} fragments, "
                    f"{one.eap.eap_bytes:,} bytes"
                )
