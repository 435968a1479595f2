"""The command line: one thin module per command, loaded only when that command runs.

A module `cli/NAME.py` holds a click command called `command`. Commands parse, call the Python API and print;
data goes to standard output, everything else to standard error. Every failure is reported in one clear line
(`error: …`) and an exit status: 2 for wrong input, 1 for failures, 130 after Ctrl-C.
"""

from __future__ import annotations

import codecs
import io
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn, TextIO

import click
from click.shell_completion import FishComplete, add_completion_class

from shakedown.errors import (
    ShakedownError,
    bounded,
    did_you_mean,
    os_failure,
    os_reason,
    refused_name,
    with_options,
    without_codes,
)
from shakedown.files.text import json_escaped, visible

SECTIONS: dict[str, tuple[str, ...]] = {
    "Measure": ("doctor", "suites", "stacks", "measure", "primitives", "run", "inspect", "certs"),
    "Predict and simulate": ("predict", "capacity", "simulate", "explore", "devices", "bearers"),
    "Report and compare": ("report", "compare", "check", "reproduce", "validate"),
    "On the network": ("serve", "load", "bearer", "eap", "aka"),
}
"""The groups of commands in the help."""

PATTERN_OPTIONS = ("device", "server_device", "bearer")
"""Options of predictions and simulations that accept patterns."""

TRACEBACK_VARIABLE = "SHAKEDOWN_TRACEBACK"
COMPLETION_VARIABLE = "_SHAKEDOWN_COMPLETE"
"""Set by shells that request completions."""

RESEND_SIGNAL_S = 0.05

ESCAPED = "shakedown.escaped"
"""The name of the handler of characters that the terminal's encoding does not have."""

STATUS_FAILURE, STATUS_WRONG_INPUT, STATUS_INTERRUPTED, STATUS_BROKEN_PIPE = 1, 2, 130, 141


class Commands(click.Group):
    """A group whose commands are modules of this package, imported at first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        here = {path.stem for path in Path(__file__).parent.glob("[a-z]*.py")}
        return [name for names in SECTIONS.values() for name in names if name in here]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        from importlib import import_module

        command = import_module(f"{__name__}.{cmd_name}").command
        if not isinstance(command, click.Command):
            raise TypeError(f"{__name__}.{cmd_name}.command is no click command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name in SECTIONS["Predict and simulate"]:
            # numpy's linear algebra would start a thread for each other core, which no model uses.
            os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        known = self.list_commands(ctx)
        if name not in known and not name.startswith("-") and not ctx.resilient_parsing:
            accepted = did_you_mean(name, known) or f"; accepted: {', '.join(known)}"
            raise click.UsageError(f'unknown command "{name[:60]}"{accepted}', ctx)
        found = super().resolve_command(ctx, args)
        if found[1] is not None and not ctx.resilient_parsing:
            _check_repeated(found[1], found[2], ctx)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        known = self.list_commands(ctx)
        for section, names in SECTIONS.items():
            rows = []
            for name in names:
                command = self.get_command(ctx, name) if name in known else None
                if command is not None:
                    rows.append((name, command.get_short_help_str(limit=90)))
            if rows:
                with formatter.section(section):
                    formatter.write_dl(rows)


def _check_repeated(command: click.Command, args: Sequence[str], parent: click.Context) -> None:
    """Raises `click.UsageError` if a prediction or simulation names several devices or bearers by repeating
    an option: click would use the last one.
    """
    if command.name not in SECTIONS["Predict and simulate"]:
        return
    context = click.Context(command, parent=parent, info_name=command.name)
    *_, given = command.make_parser(context).parse_args(list(args))
    for option in dict.fromkeys(given):
        if option.name in PATTERN_OPTIONS and given.count(option) > 1:
            name = option.opts[0]
            several = f"once, or a pattern that matches several: {name} '{{A,B}}'"
            raise click.UsageError(
                f"{name} is given {given.count(option)} times; accepted: {several}", context
            )


def _print_version(ctx: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if not wanted or ctx.resilient_parsing:
        return
    from shakedown.native import build

    about = build()
    openssl = f"OpenSSL {about.openssl}{_supported(about.openssl)}"
    click.echo(f"shakedown {about.shakedown} ({about.profile} build, {openssl})")
    ctx.exit()


def _supported(openssl: str) -> str:
    """The end of support of a version of OpenSSL, as text; empty if it is not listed."""
    import tomllib
    from importlib.resources import files

    listed = tomllib.loads(files("shakedown").joinpath("data/support.toml").read_text("utf-8"))
    for row in listed["branch"]:
        if row["name"] == "OpenSSL" and openssl.startswith(f"{row['branch']}."):
            return f", supported until {row['until']}"
    return ""


@click.group(
    cls=Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog='"shakedown COMMAND --help" lists its options. '
    "Documentation: docs/ in the source distribution.\n\n"
    "Example: shakedown predict tls1.3/x25519/p256/server --device cortex-m4 --bearer nb-iot",
)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_print_version,
    help="Show the version of the program and of the stacks in it, and exit.",
)
@click.pass_context
def app(context: click.Context) -> None:
    """A handshake cost laboratory.

    What does this handshake cost — on my device, over my network, at my load — and what would another one
    cost?
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs the command line and exits; no failure ends in a traceback."""
    for name in ("stdout", "stderr"):
        setattr(sys, name, _complete_stream(getattr(sys, name)))
    sys.unraisablehook = _not_lost
    try:
        status = exit_status(arguments)
        # The command has finished: Ctrl-C during the interpreter's shutdown prints nothing.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    except KeyboardInterrupt:
        # A second Ctrl-C, while the first was handled.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        status = STATUS_INTERRUPTED
    sys.exit(status)


def _complete_stream(stream: TextIO | None) -> TextIO:
    """A standard stream that writes everything or raises an error, in any encoding."""
    if stream is None:
        # The parent process closed it.
        return Path(os.devnull).open("w", encoding="utf-8")
    if not isinstance(stream, io.TextIOWrapper):
        return stream
    codecs.register_error(ESCAPED, _escaped)
    # click would write UTF-8 instead of ASCII, but only what passes through it.
    encoding = "utf-8" if codecs.lookup(stream.encoding).name == "ascii" else stream.encoding
    if isinstance(stream.buffer, io.RawIOBase):
        # With PYTHONUNBUFFERED, Python ignores how much of a text was written.
        return io.TextIOWrapper(io.BufferedWriter(stream.detach()), encoding, ESCAPED, line_buffering=True)
    stream.reconfigure(encoding=encoding, errors=ESCAPED)
    return stream


def _escaped(error: UnicodeError) -> tuple[str, int]:
    """Handles characters that an encoding does not have: writes them as escapes, which JSON has too."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return json_escaped(error.object[error.start : error.end]), error.end


def _not_lost(ignored: sys.UnraisableHookArgs) -> None:
    """Raises Ctrl-C again if Python ignored it, as in a destructor."""
    if ignored.exc_type is KeyboardInterrupt:
        import threading

        # Sent again after a short time, because the next call may be one that only a signal can interrupt.
        again = threading.Timer(
            RESEND_SIGNAL_S, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT)
        )
        again.daemon = True
        again.start()
    else:
        sys.__unraisablehook__(ignored)


class _Fish(FishComplete):
    """Fish's completion, also of words that contain commas: lists of columns."""

    source_template = FishComplete.source_template.replace('split ","', 'split --max 1 ","')


def exit_status(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit status."""
    if COMPLETION_VARIABLE in os.environ:
        add_completion_class(_Fish)
        try:
            app.main(prog_name="shakedown")
        except Exception:
            # The shell would print an error in the middle of the line that the user types.
            return STATUS_FAILURE
    words = list(sys.argv[1:] if arguments is None else arguments)
    status = 0
    try:
        # Not `app.main`, which handles Ctrl-C and broken pipes itself.
        try:
            with app.make_context("shakedown", list(words)) as context:
                app.invoke(context)
        except click.exceptions.Exit as asked:
            status = asked.exit_code
        sys.stdout.flush()
    except BrokenPipeError:
        _discard_output()
        return STATUS_BROKEN_PIPE
    except click.exceptions.NoArgsIsHelpError as error:
        return _fail(_without_command(error.ctx), error.exit_code)
    except click.UsageError as error:
        return _fail(_with_example(error, words), error.exit_code)
    except click.ClickException as error:
        return _fail(error.format_message(), error.exit_code)
    except (KeyboardInterrupt, click.Abort) as error:
        return _fail(str(error) or "interrupted", STATUS_INTERRUPTED, error)
    except ShakedownError as error:
        return _fail(with_options(str(error), options_of(words)), error.exit_status, error)
    except Exception as error:
        return _fail_unforeseen(error)
    return status


ALTERNATIVES = {"--rate": ("--arrivals", "--arrivals poisson:300/s")}
"""Options that other commands do not have, with the option of those commands that means the same."""


def _with_example(error: click.UsageError, words: Sequence[str]) -> str:
    """The error of the arguments. If it does not state what is accepted, the help's example is added."""
    line = (error.message if isinstance(error, click.NoSuchOption) else error.format_message()).removesuffix(
        "."
    )
    if isinstance(error, click.NoSuchOption) and (instead := ALTERNATIVES.get(error.option_name)):
        option, written = instead
        if option in options_of(words):
            return f"{line}; did you mean {written}?"
    if isinstance(error, click.NoSuchOption) and error.possibilities:
        from difflib import get_close_matches

        (nearest,) = get_close_matches(error.option_name, error.possibilities, n=1, cutoff=0.0)
        return f"{line}; did you mean {nearest}?"
    example = (_command(words).epilog or "").partition("Example: ")[2]
    if not example or "accepted" in line or "did you mean" in line.lower():
        return line
    return f"{line}; for example: {example}"


def options_of(words: Sequence[str]) -> frozenset[str]:
    """The options of the command that a command line names."""
    return frozenset(
        name
        for one in _command(words).params
        for name in (*one.opts, *one.secondary_opts)
        if name.startswith("-")
    )


def _command(words: Sequence[str]) -> click.Command:
    """The command that a command line names."""
    command: click.Command = app
    context = click.Context(app)
    for word in words:
        found = command.get_command(context, word) if isinstance(command, click.Group) else None
        if found is None:
            break
        command = found
    return command


def _without_command(context: click.Context | None) -> str:
    """The error for a group without a subcommand."""
    group = context.command if context is not None else None
    if context is None or not isinstance(group, click.Group):
        return "arguments are missing"
    accepted = ", ".join(group.list_commands(context))
    return f'"{context.command_path}" needs a command; accepted: {accepted}'


def _fail(message: str, status: int, error: BaseException | None = None) -> int:
    """Prints the line of an error, and before it, if the environment requests this, the traceback."""
    if error is not None and os.environ.get(TRACEBACK_VARIABLE):
        import traceback

        traceback.print_exception(error)
    if message.lower().startswith("error: "):
        message = message[len("error: ") :]
    # Line ends become spaces; other control characters are printed visibly.
    line = bounded(visible(" ".join(without_codes(message).split(" ")).strip()))
    try:
        # Imported here, because a package must be initialised before its own modules are imported.
        from shakedown.cli._output import note

        note(f"error: {line[:1].lower() + line[1:] if _is_sentence(line) else line}")
        sys.stdout.flush()
    except OSError:
        _discard_output()
    return status


def _is_sentence(line: str) -> bool:
    """Whether the first word is capitalised only because it begins a sentence."""
    first = line.split(" ", 1)[0]
    return first.isalpha() and first[1:].islower()


def _fail_unforeseen(error: Exception) -> int:
    """Prints any other error: of the Rust core, of the operating system, or a defect of this program."""
    from shakedown import native

    status = native.exit_status(error)
    if status is not None:
        return _fail(str(error), status, error)
    if isinstance(error, OSError):
        where = f"{error.filename}: " if isinstance(error.filename, str | Path) else ""
        line = f"{where}{os_reason(error)}"
        return _fail(line, os_failure(line, error).exit_status, error)
    if line := refused_name(error):
        return _fail(line, STATUS_WRONG_INPUT, error)
    return _fail(
        f"internal error: {type(error).__name__}: {error} "
        f"(a defect of this program; set {TRACEBACK_VARIABLE}=1 to see where)",
        STATUS_FAILURE,
        error,
    )


def _discard_output() -> None:
    """After a broken pipe or a full disk: discards further output without further errors."""
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
    except (OSError, ValueError):
        pass
