"""`explore`: a local page with live controls over predictions and simulations."""

from __future__ import annotations

import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from pathlib import Path
from tempfile import NamedTemporaryFile

import click

from shakedown.cli._types import Whole


@click.command("explore", epilog="Example: shakedown explore --no-open")
@click.argument("results", type=click.Path(path_type=Path), required=False)
@click.option(
    "--port", metavar="N", type=Whole(0, 65535), default=0, help="Port on 127.0.0.1.  [default: any]"
)
@click.option("--open/--no-open", "browse", default=True, show_default=True, help="Open a browser.")
def command(results: Path | None, port: int, browse: bool) -> None:
    """Serve a page on 127.0.0.1 for interactive predictions and simulations.

    RESULTS is a folder that "run" wrote: the page starts with its suites, device and bearer, and links to
    its report. The address contains a secret token and the state of the controls. Ctrl-C stops the server.
    """
    from shakedown.cli._output import announce, until_stopped
    from shakedown.errors import InputError, os_reason
    from shakedown.explorer.server import Explorer

    query, report = "", None
    if results is not None:
        from shakedown.explorer.question import first_view

        query, report = first_view(results)
    try:
        server = Explorer(port, report, query)
    except OSError as error:
        raise InputError(f"port {port}: {os_reason(error)}; accepted: a free port, or 0 for any") from None
    with server, _leading_to(server.url) as page, until_stopped():
        announce(server.url)
        if browse:
            webbrowser.open(page)
        server.serve_forever()


@contextmanager
def _leading_to(url: str) -> Iterator[str]:
    """The address of a file that redirects a browser to `url` and is readable only by this user, because all
    users can read a browser's arguments.
    """
    with NamedTemporaryFile("w", prefix="shakedown-", suffix=".html", encoding="utf-8") as file:
        file.write(f'<!doctype html><meta http-equiv="refresh" content="0; url={escape(url)}">\n')
        file.flush()
        yield Path(file.name).as_uri()
