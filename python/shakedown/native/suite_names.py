"""Finds suites by patterns, names of cipher suites and misspelt names. The core decides what is valid."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import product

from shakedown.errors import MAX_WORD, InputError, did_you_mean
from shakedown.files.patterns import alternatives, is_pattern, matches, one_name
from shakedown.native.core import extension

MAX_TRIED = 50_000
"""Maximum number of combined names to try; a pattern with more combinations matches only listed suites."""


def expand(words: Iterable[str]) -> list[str]:
    """Replaces patterns by the matching suites that run here; keeps other words. Raises `InputError`."""
    found: dict[str, None] = {}
    for word in words:
        for one in alternatives(word) if is_pattern(word) else (word,):
            if not is_pattern(one):
                found[one] = None
                continue
            some = matching(one)
            if not some:
                raise InputError(_no_match(one))
            found |= dict.fromkeys(some)
    return list(found)


def _no_match(pattern: str) -> str:
    """The error for a pattern without a match, with a suggestion for its first part that no suite has."""
    found = f'no suite here matches "{pattern[:80]}"'
    lists = '"shakedown suites" lists the suites'
    protocol, *parts = respelt = _respelt(pattern).split("/")
    if (meant := "/".join(respelt)) != pattern and matching(meant):
        return f'{found}; did you mean "{meant}"? {lists}'
    places = [some for one, some in _places().items() if fnmatchcase(one, protocol)]
    if not places:
        return f"{found}; protocols that run here: {', '.join(_places())}; {lists}"
    for place, part in enumerate(parts):
        known = [word for some in places for words in some[place : place + 1] for word in words]
        if not any(fnmatchcase(word, part) for word in known):
            begun = any(word.startswith(f"{part}+") for word in known)
            hint = f'; did you mean "{part}+*"?' if begun else did_you_mean(part.strip("*?[]"), known)
            if hint:
                return f"{found}{hint} {lists}"
            break
    return f"{found}{'; each part of a name needs its own *' if '*' in pattern else ''}; {lists}"


def listed(suites: str | Sequence[str]) -> list[str]:
    """Expands one suite, or a list of suites and patterns, to a list of suites. Raises `InputError`."""
    if isinstance(suites, str):
        return [one_name(suites, "suite")]
    return expand(suites) if any(map(is_pattern, suites)) else list(suites)


def matching(pattern: str) -> list[str]:
    """The suites that run here and match a pattern: listed ones, and other combinations of their words."""
    names = _names()
    found = [name for name in names if matches(pattern, name)]
    protocol, *parts = pattern.split("/")
    tried: list[str] = []
    for one, places in _places().items():
        if not fnmatchcase(one, protocol) or len(parts) > len(places):
            continue
        words = [
            [word for word in some if fnmatchcase(word, part)] if is_pattern(part) else [part]
            for part, some in zip(parts, places, strict=False)
        ]
        tried += _joined(one, words)
    return list(dict.fromkeys([*found, *(name for name in _runnable(tried) if matches(pattern, name))]))


def holding(words: Sequence[str]) -> list[str]:
    """Suites that run here, listed or not, whose names contain all words."""
    tried: list[str] = []
    for protocol, places in _places().items():
        for count in range(1, len(places) + 1):
            some = [
                [one for one in place if any(word in one for word in words)] or place
                for place in places[:count]
            ]
            tried += _joined(protocol, some)
    names = (name for name in tried if all(word in name for word in words))
    return list(dict.fromkeys(_runnable(names)))


def _joined(protocol: str, words: Sequence[Sequence[str]]) -> Iterator[str]:
    if math.prod(map(len, words)) <= MAX_TRIED:
        yield from ("/".join((protocol, *chosen)) for chosen in product(*words))


def _runnable(names: Iterable[str]) -> Iterator[str]:
    core = extension()
    for name in names:
        try:
            found = core.describe(name)
        except core.CoreError:
            continue
        if found["stack"] is not None:
            yield found["suite"]


@lru_cache(maxsize=1)
def _names() -> tuple[str, ...]:
    return tuple(one["suite"] for one in extension().suites(False))


@lru_cache(maxsize=1)
def _places() -> dict[str, list[list[str]]]:
    """By protocol, the words at each position of the listed names."""
    found: dict[str, list[dict[str, None]]] = {}
    for name in _names():
        protocol, *parts = name.split("/")
        places = found.setdefault(protocol, [])
        for place, part in enumerate(parts):
            if place == len(places):
                places.append({})
            places[place][part] = None
    return {protocol: [list(words) for words in places] for protocol, places in found.items()}


def meant(name: str) -> str:
    """The suite for a cipher suite's name or a misspelt name; empty if there is none."""
    core = extension()
    respelt = _respelt(name)
    for one in (*_of_cipher_suite(name), respelt, _renamed(respelt), _holding_part(_part(respelt))):
        try:
            if one and one != name:
                return str(core.canonical(one))
        except core.CoreError:
            continue
    return ""


_KEY_EXCHANGES = {
    "ECDHE-ECDSA": "ecdhe_ecdsa",
    "ECDHE-RSA": "ecdhe_rsa",
    "ECDHE-PSK": "ecdhe_psk",
    "DHE-RSA": "dhe_rsa",
    "EDH-RSA": "dhe_rsa",
    "DHE-DSS": "dhe_dss",
    "EDH-DSS": "dhe_dss",
    "DHE-PSK": "dhe_psk",
    "PSK-DHE": "dhe_psk",
    "RSA-PSK": "rsa_psk",
    "ECDHE": "ecdhe_rsa",
    "ECDH-ANON": "ecdh_anon",
    "AECDH": "ecdh_anon",
    "DH-ANON": "dh_anon",
    "ADH": "dh_anon",
    "PSK": "psk",
    "RSA": "rsa",
}
"""Key exchanges in names of IANA and OpenSSL; in names of OpenSSL, a missing one means RSA."""


def _of_cipher_suite(name: str) -> Iterator[str]:
    """Suites for `TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256` or `ECDHE-RSA-AES128-GCM-SHA256`."""
    text = name.upper().replace("_", "-")
    if not re.fullmatch(r"[A-Z0-9]+(-[A-Z0-9]+)+", text):
        return
    iana = text.startswith("TLS-")
    exchange, with_, cipher = text.removeprefix("TLS-").partition("-WITH-")
    if not with_:
        exchange, cipher = "", exchange
        for one in () if iana else _KEY_EXCHANGES:
            if cipher.startswith(f"{one}-"):
                exchange, cipher = one, cipher.removeprefix(f"{one}-")
                break
    found = _cipher(cipher)
    if iana and not with_:
        yield f"tls1.3/x25519/{found}"
    elif (exchange or "RSA") in _KEY_EXCHANGES:
        for protocol in ("tls1.2", "tls1.1"):
            yield f"{protocol}/{_KEY_EXCHANGES[exchange or 'RSA']}/{found}"


def _cipher(text: str) -> str:
    for old, new in (
        ("3DES-EDE", "3DES"), ("DES-CBC3", "3DES"), ("-CBC", ""), ("CHACHA20-POLY1305", "CHACHA20"),
        ("RC4-128", "RC4"), ("CCM-8", "CCM8"),
    ):  # fmt: skip
        text = text.replace(old, new)
    text = re.sub(r"^(AES|CAMELLIA|ARIA)-(\d)", r"\1\2", text)
    if re.search("GCM|CCM|CHACHA20", text):
        text = re.sub(r"-SHA\d+$", "", text)
    return text.lower()


def _respelt(name: str) -> str:
    """Corrects the spelling of the protocol in `tls13/…`, `TLSv1.3/…`, `ssl3.0/…`."""
    protocol, slash, rest = name.strip().lower().partition("/")
    found = re.fullmatch(r"(d?tls|ssl)[-_ ]?v?[-_ ]?(\d)[._]?(\d)?", protocol)
    if found is None:
        return name.strip().lower()
    kind, major, minor = found.groups()
    return f"{kind}{major}{'' if kind == 'ssl' else f'.{minor or 0}'}{slash}{rest}"


_OTHER_NAMES = (
    (r"dilithium-?2", "mldsa44"),
    (r"dilithium-?3", "mldsa65"),
    (r"dilithium-?5", "mldsa87"),
    (r"ml[-_]?dsa[-_]?(\d+)", r"mldsa\1"),
    (r"(?:kyber|ml[-_]?kem)[-_]?(\d+)(?:draft\d+)?", r"mlkem\1"),
    (r"(x25519|secp256r1)[-_]?(?:kyber|ml[-_]?kem)[-_]?(\d+)(?:draft\d+)?", r"\1mlkem\2"),
    (r"(?:ecdsa[-_]?)?(?:secp|prime|nist)?p?[-_]?(256|384|521)(?:r1|v1)?", r"p\1"),
    (r"curve25519", "x25519"),
    (r"rsa[-_](\d+)", r"rsa\1"),
    (r"aes[-_](128|256)[-_](\w+)", r"aes\1-\2"),
    (r"chacha20[-_]?poly1305", "chacha20"),
    (r"mtls|both|client-?auth", "mutual"),
    (r"resume|resumption", "resumed"),
)
"""Other spellings of parts of names, and their spellings in suites."""


def _part(text: str) -> str:
    """A key, group, cipher or mode as it is spelled in suites."""
    for pattern, ours in _OTHER_NAMES:
        found = re.fullmatch(pattern, text)
        if found is not None:
            return found.expand(ours)
    return text


def _renamed(name: str) -> str:
    """Corrects other spellings and misspellings of a name's parts."""
    protocol, *parts = name.split("/")
    places = _places().get(protocol, [])
    known = {piece for words in places for word in words for piece in (word, *re.split("[+@]", word))}
    found = [protocol]
    for place, part in enumerate(parts):
        if place:  # a key: the first part names the key exchange
            part = {"rsa": "rsa2048", "ecdsa": "p256"}.get(part, part)
        pieces = [_nearest(_part(piece), known) for piece in re.split("([+@])", part)]
        found.append("".join(pieces))
    return "/".join(found)


def _nearest(piece: str, known: Collection[str]) -> str:
    if piece in known or len(piece) > MAX_WORD:
        return piece
    import difflib  # only errors need it

    return next(iter(difflib.get_close_matches(piece, known, n=1, cutoff=0.75)), piece)


def _holding_part(part: str) -> str:
    """The first suite with this key exchange or key, of the newest TLS version; empty if there is none."""
    some = [name for name in _names() if part in re.split("[/+@]", "/".join(name.split("/")[1:3]))]
    of_tls = (name for protocol in _NEWEST_FIRST for name in some if name.startswith(f"{protocol}/"))
    return next(of_tls, "") if part else ""


_NEWEST_FIRST = ("tls1.3", "tls1.2", "tls1.1", "tls1.0", "ssl3")
