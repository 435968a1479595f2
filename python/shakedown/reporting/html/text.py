"""Sentences of the page, in pieces that it can mark."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Piece:
    """A run of text; `suite` marks a suite's name, `strong` an important figure."""

    text: str
    suite: bool = False
    strong: bool = False


Sentence = list[Piece]


def sentence(template: str, **pieces: str | Piece) -> Sentence:
    """A sentence from a template: `{name}` is a suite's name, `{!name}` an important figure."""
    import re

    found: Sentence = []
    for part in re.split(r"(\{!?\w+\})", template):
        if not part.startswith("{"):
            found += [Piece(part)] if part else []
            continue
        strong = part.startswith("{!")
        value = pieces[part.strip("{!}")]
        if isinstance(value, Piece):
            found.append(value)
        else:
            found.append(Piece(value, suite=not strong, strong=strong))
    return found


def plain(pieces: Sentence) -> str:
    return "".join(piece.text for piece in pieces)
