"""All commands of the command line, for tests of properties that all share."""

from __future__ import annotations

from collections.abc import Iterator

import click


def commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """Every command with its full name."""
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        assert found is not None
        if not isinstance(found, click.Group) or found.invoke_without_command:
            yield " ".join((*path, name)), found
        if isinstance(found, click.Group):
            yield from commands(found, (*path, name))
