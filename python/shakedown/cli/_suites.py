"""Arguments that several commands share."""

from __future__ import annotations

from datetime import UTC, datetime

import click

suites_argument = click.argument("suites", nargs=-1, required=True, metavar="SUITE…")


class Moment(click.ParamType[int]):
    """A point in time: Unix seconds, or an ISO date or date and time (UTC where it names no zone)."""

    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        text = str(value)
        try:
            return int(text)
        except ValueError:
            pass
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            self.fail(
                f'"{text}" is no time; accepted: Unix seconds, or an ISO date as 2026-01-31', param, ctx
            )
        return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
