"""Certificates identify every curve of WTLS, in either form; an ambiguous root is an error."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from shakedown import _core
from shakedown.native import captures

CURVES = (
    "wtls1",
    "163k",
    "wtls4",
    "wtls5",
    "wtls6",
    "160p",
    "wtls8",
    "wtls9",
    "233k",
    "233r",
    "224p",
    "163r",
    "256p",
    "283k",
    "283r",
)
# Roots whose signatures are alike: the lengths of their orders differ by less than seven bits.
ALIKE = (
    {"163k", "163r", "wtls5", "160p", "wtls9"},
    {"233k", "233r"},
    {"283k", "283r"},
    {"224p"},
    {"256p"},
)
# ECDSA below 160 bits is forbidden.
ISSUERS = sorted({curve for alike in ALIKE for curve in alike})
DOUBT = "the root's curve is not visible; assumed: "


@pytest.fixture(scope="module", params=("wtls", "x509"))
def told(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The reported suite and problems, by the keys of the chain."""
    folder = tmp_path_factory.mktemp("curves")
    asked = [f"{leaf}@{root}" for leaf, root in _pairs()]
    path = folder / "all.pcap"
    _core.capture(
        [f"wtls/ecdh_ecdsa/{keys}/server" for keys in asked],
        str(path),
        options={"cache": str(folder / "keys"), "certificate_form": request.param},
    )
    found = {one.connection.index: one.connection for one in captures.inspect(path)}
    return {keys: [found[at].suite, *found[at].problems] for at, keys in enumerate(asked)}


def _pairs() -> Iterator[tuple[str, str]]:
    for leaf in CURVES:
        yield leaf, "163k"
    for root in ISSUERS:
        yield root, root
        yield "160p", root
        yield "163k", root


def test_every_curve_is_named_and_ambiguous_roots_are_reported(told: dict[str, list[str]]) -> None:
    for asked, (suite, *problems) in told.items():
        leaf, root = asked.split("@")
        assert suite is not None, asked
        keys = suite.split("/")[2]
        # A root with the leaf's kind of key is not named again.
        shown, taken = keys.split("@") if "@" in keys else (keys, keys)
        assert shown == leaf, asked
        (alike,) = (group for group in ALIKE if root in group)
        if len(alike) == 1:
            assert (taken, problems) == (root, []), asked
            continue
        doubts = [problem for problem in problems if problem.startswith(DOUBT)]
        possible = {taken}
        if doubts:
            (doubt,) = doubts
            first, others = doubt.removeprefix(DOUBT).split(", possible: ")
            assert first == taken, asked
            possible |= set(others.replace(" or ", ", ").split(", "))
        assert root in possible <= alike, (asked, problems)
        # The leaf's own kind is assumed first, because nearly all chains have one kind.
        assert taken == root or leaf != root, asked
