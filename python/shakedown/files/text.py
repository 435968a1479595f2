"""Makes untrusted text safe to print, by escaping control characters.

Names and notes come from files that others wrote. Control characters, terminal escapes, bidirectional
overrides and undecodable bytes are printed as `\\x1b`, `\\u202e` …; everything else stays as it is.
"""

from __future__ import annotations

import re
import unicodedata

_JOINERS = "\u200c\u200d"
"""Format characters that some scripts and emoji need inside words."""


def visible(text: object) -> str:
    """One line of text; characters that affect the cursor, colours or the text direction are escaped."""
    line = str(text)
    if line.isprintable():
        return line
    return "".join(one if _is_harmless(one) else _escaped(one) for one in line)


def visible_lines(text: object) -> str:
    """As `visible`, for several lines; line breaks and tabs are kept."""
    return re.sub(r"[^\n\t]+", lambda run: visible(run[0]), str(text).replace("\r\n", "\n"))


def json_safe(text: str) -> str:
    """Writes unsafe characters in JSON as `\\u…` escapes; a parser reads the same values."""
    if text.isascii():
        return text.replace("\x7f", "\\u007f")
    return "".join(one if one == "\n" or _is_harmless(one) else json_escaped(one) for one in text)


def _is_harmless(character: str) -> bool:
    if character.isprintable() or character in _JOINERS:
        return True
    return unicodedata.category(character) == "Zs"


def _escaped(character: str) -> str:
    code = ord(character)
    names = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
    if character in names:
        return names[character]
    if 0xDC80 <= code <= 0xDCFF:
        # A byte of a file's name that is not UTF-8.
        return f"\\x{code - 0xDC00:02x}"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def json_escaped(text: str) -> str:
    """Writes all characters as `\\u…` escapes."""
    units = text.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
