"""User-supplied certificates: their contents and bytes, and what a peer would refuse."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime

from shakedown.reporting.charts.figure import Figure
from shakedown.reporting.charts.sides import Segment, stacked_bars
from shakedown.reporting.html.section import Block, Section, Table
from shakedown.reporting.terminal.certificates import signed
from shakedown.results.folder import Results
from shakedown.schema.base import SIDES, Side, opposite
from shakedown.schema.certificates import Certificate, UserChain

MAX_NAMES = 8
_FILLS = {
    "public keys": "key",
    "signatures": "signature",
    "extensions": "hello",
    "names": "common",
    "other fields": "busy",
}


def certificates_section(results: Results) -> Iterator[Section]:
    """For each side that presented the user's certificates: what is sent, its cost, and violations."""
    presented = results.manifest.certificates
    sides = {side: presented[side] for side in reversed(SIDES) if side in presented}
    if not sides:
        return
    blocks: list[Block] = []
    for side, about in sides.items():
        blocks.append(Block(f"{side}: {about.files.chain}", _summary(about), table=_what(about)))
        if any(one.parts for one in about.certificates):
            blocks.append(Block(figure=_sizes(side, about)))
        blocks.append(Block(table=_violations(side, about)))
    yield Section("certificates", "Your certificates", _lead(sides), blocks)


def _lead(sides: Mapping[Side, UserChain]) -> str:
    """Sentences on the bytes that are sent, and on whether a peer would reject the certificates."""
    sentences = []
    for side, about in sides.items():
        suites = about.suites
        where = suites[0] if len(suites) == 1 else f"{len(suites)} suites"
        sentences.append(
            f"The {side} presents {about.files.chain} in {where}: {about.bytes_sent:,} bytes of "
            f"certificates are sent, the largest part of them {_heaviest(about)}."
        )
        number = len(about.violations)
        if number:
            sentences.append(f"A peer would reject them for {number} reason{'' if number == 1 else 's'}.")
    return " ".join(sentences)


def _heaviest(about: UserChain) -> str:
    sums = _bytes_of(_sent(about))
    if not sums:
        return "not separated"
    largest = max(sums, key=sums.__getitem__)
    return f"{largest} ({sums[largest] / sums.total():.0%})"


def _bytes_of(certificates: Iterable[Certificate]) -> Counter[str]:
    sums: Counter[str] = Counter()
    for part in (part for one in certificates for part in one.parts):
        sums[_words_of(part.name)] += part.bytes
    return sums


def _words_of(part: str) -> str:
    """The name of a part of a certificate in a sentence."""
    plain = {"public key": "public keys", "signature": "signatures", "subject": "names", "issuer": "names"}
    return plain.get(part, "extensions" if part.startswith("extension") else "other fields")


def _sent(about: UserChain) -> list[Certificate]:
    """The certificates that are sent: all but a self-signed one at the end."""
    certificates = about.certificates
    last = len(certificates) - 1
    return [one for place, one in enumerate(certificates) if not (place == last > 0 and one.is_self_signed)]


def _summary(about: UserChain) -> str:
    number = len(about.certificates)
    keys = f", keys {about.keys_name}" if about.keys_name else ""
    return f"{number} certificate{'' if number == 1 else 's'}{keys}, {about.bytes_sent:,} bytes sent"


def _what(about: UserChain) -> Table:
    rows = []
    for place, one in enumerate(about.certificates, start=1):
        names = [name.removeprefix("dns:") for name in one.alternative_names]
        more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
        key = one.key
        rows.append(
            [
                str(place),
                one.subject + (f" ({', '.join(names[:MAX_NAMES])}{more})" if names else ""),
                one.issuer + (" (itself)" if one.is_self_signed else ""),
                f"{one.not_before[:10]} to {one.not_after[:10]}",
                f"{key.name}, {key.security_bits} bits strong",
                signed(one.signature),
                f"{one.fingerprint[:16]}…",
                f"{one.bytes:,}",
            ]
        )
    head = ["#", "subject (names)", "issuer", "valid", "key", "signature", "SHA-256", "bytes"]
    keys = [name for name in (about.files.key, about.files.ca) if name]
    caption = "From the files " + ", ".join([about.files.chain, *keys]) + "; no key is kept with results."
    return Table(head, rows, 1, caption)


def _sizes(side: Side, about: UserChain) -> Figure:
    data, segments, totals = [], [], []
    there = _bytes_of(about.certificates)
    used = {content: fill for content, fill in _FILLS.items() if content in there}
    for place, one in enumerate(about.certificates, start=1):
        label = f"{place}  {_common_name(one.subject)}"
        for part in one.parts:
            data.append({"side": side, "certificate": place, "part": part.name, "bytes": part.bytes})
        sums = _bytes_of([one])
        for content, fill in used.items():
            segments.append(Segment(label, "", content, fill, sums[content]))
        totals.append(f"{one.bytes:,}")
    return Figure(
        name=f"certificates-{side}",
        title=f"Bytes of the {side}'s certificates, by what they hold",
        kind="",
        alternative=f"Stacked bars: bytes of each certificate of the {side}, by part",
        define=lambda width: stacked_bars(segments, totals, "bytes", width, sides=("",)),
        data=data,
        caption="Read from the files. A root at the end is not sent, because peers have it.",
    )


def _common_name(subject: str) -> str:
    for piece in subject.split(", "):
        if piece.startswith("CN="):
            return piece[3:]
    return subject


def _violations(side: Side, about: UserChain) -> Table:
    """The violations for which a peer would refuse the certificates, one row each."""
    day = datetime.fromtimestamp(about.verification_time, UTC).date().isoformat()
    rows = [
        [
            "the chain" if one.place is None else f"certificate {one.place + 1}",
            one.detail,
        ]
        for one in about.violations
    ]
    peer = opposite(side)
    # Security levels are OpenSSL's; WTLS has none.
    levelled = about.certificates[0].kind == "X.509"
    level = f" of security level {about.level}" if levelled else ""
    caption = f"Validated as a {peer}{level} would on {day}."
    if not rows:
        return Table(["", ""], [[f"what a {peer} would reject", "nothing"]], 0, caption)
    return Table([f"a {peer} would reject", "why"], rows, 0, caption)
