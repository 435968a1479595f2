"""The output of `suites --json` and `stacks --json`, and the description of a build."""

from __future__ import annotations

from shakedown.schema.base import Object, Text


class SuiteEntry(Object, frozen=True, kw_only=True):
    """A suite, the stack that runs it, or the reason why none can."""

    suite: Text
    stack: str | None
    supported: bool
    reason: str | None


class StackEntry(Object, frozen=True, kw_only=True):
    """An implementation that runs suites, and its protocols as a client and as a server."""

    name: Text
    version: str
    client: tuple[str, ...]
    server: tuple[str, ...]


class Build(Object, frozen=True, kw_only=True):
    """Versions and profile of the build that measures."""

    shakedown: str
    profile: str
    openssl: str


PRINTED = {
    "suite": (SuiteEntry, "An object of suites --json."),
    "stack": (StackEntry, "An object of stacks --json."),
}
