"""Record the trace library that ships with the package: ``python -m tools.record_traces [FILE]``.

It contains every suite that the examples, the papers and the documentation name, and for TLS 1.0 to 1.3 every
key exchange, authentication and resumption at 1024 and 2048 bits. Times are omitted, because a trace is
estimated on devices. A trace that differs from the shipped one only in lengths that vary from run to run is
not replaced. Suites that cannot be run here are named and skipped.
"""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

from shakedown import native, papers
from shakedown.api import in_memory
from shakedown.errors import InputError
from shakedown.prediction.library import SHIPPED, write_library
from shakedown.schema import builtins
from shakedown.schema.trace import bare
from tools.pages import ROOT

REPEAT = 9
NAME = re.compile(r"\b(?:ssl3|d?tls1\.[0-3]|wtls)/[a-z0-9_+@./-]*[a-z0-9]")
AUTHENTICATIONS = ("server", "requested", "mutual")
TLS13_GROUPS = ("x25519", "p256", "p384", "ffdhe2048", "mlkem768", "x25519mlkem768", "secp256r1mlkem768")
TLS13_KEYS = ("rsa1024", "rsa2048", "p256", "p384", "ed25519", "mldsa44", "mldsa65", "mldsa87")
VARYING = {"ServerKeyExchange", "CertificateVerify", "NewSessionTicket"}
"""Messages whose lengths vary: signatures of DSA and ECDSA, times in tickets."""
WTLS_CATEGORIES = ROOT / "python/shakedown/papers/data/wtls-nokia7650/table_3_3_categories_groups.csv"


def named() -> Iterator[str]:
    """Suites that examples, documentation and profiles name."""
    files = [*ROOT.glob("examples/*.toml"), *ROOT.glob("docs/**/*.md"), ROOT / "README.md"]
    files += [*ROOT.glob("python/shakedown/profiles/devices/*.toml")]
    for path in files:
        if path.exists():
            yield from NAME.findall(path.read_text(encoding="utf-8"))


def of_the_papers() -> Iterator[str]:
    """Suites that the papers' pages measure, and others that the papers measured."""
    for name in papers.MODULES:
        yield from papers.find(name).suites
    with WTLS_CATEGORIES.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            ca, end = row["ca_cert"], row["end_cert"]
            yield f"wtls/{'rsa' if end.startswith('rsa') else 'ecdh_ecdsa'}/{end}@{ca}/server"
    for mode, cipher in product(("mutual", "mutual/resumed"), ("", "/3des-sha")):  # Kambourakis
        yield f"tls1.0/dhe_rsa+dh512/rsa1024@rsa1024/{mode}{cipher}"


def systematic() -> Iterator[str]:
    """TLS 1.0 to 1.3: every key exchange, authentication and resumption at 1024 and 2048 bits."""
    for protocol, bits in product(("tls1.0", "tls1.1", "tls1.2"), (1024, 2048)):
        exchanges = [
            f"rsa/rsa{bits}",
            f"dhe_rsa+dh{bits}/rsa{bits}",
            f"dhe_dss+dh{bits}/dsa{bits}",
            f"ecdhe_rsa+p256/rsa{bits}",
            f"ecdhe_rsa+x25519/rsa{bits}",
            "ecdhe_ecdsa+p256/p256",
            "ecdhe_ecdsa+x25519/p256",
        ]
        for exchange, mode in product(exchanges, AUTHENTICATIONS):
            yield from (f"{protocol}/{exchange}/{mode}{how}" for how in ("", "/resumed", "/ticket"))
        for exchange in (
            "psk",
            f"dhe_psk+dh{bits}",
            f"rsa_psk/rsa{bits}",
            "ecdhe_psk+p256",
            f"dh_anon+dh{bits}",
        ):
            yield f"{protocol}/{exchange}"
        yield f"{protocol}/ecdh_anon+p256"
    yield from (f"tls1.2/dhe_rsa+ffdhe2048/rsa2048/{mode}" for mode in AUTHENTICATIONS)
    for group, keys, mode in product(TLS13_GROUPS, TLS13_KEYS, AUTHENTICATIONS):
        yield f"tls1.3/{group}/{keys}/{mode}"
    for group in TLS13_GROUPS:
        yield f"tls1.3/psk_dhe+{group}"
        yield f"tls1.3/{group}/p256/server/resumed"
        yield f"tls1.3/{group}/rsa2048/server/resumed"
    yield "tls1.3/psk"


def shape(entry: Mapping[str, Any]) -> dict[str, Any]:
    """A trace without the lengths that vary."""
    messages = [{**one, "bytes": None} if one["name"] in VARYING else one for one in entry["messages"]]
    operations = [{**one, "bytes": None} for one in entry["operations"]]
    return {**entry, "bytes": None, "messages": messages, "operations": operations}


def main() -> None:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else SHIPPED
    _, *lines = SHIPPED.read_bytes().splitlines()
    shipped = {entry["suite"]: entry for entry in map(json.loads, lines)}
    suites: set[str] = set()
    for name in (*named(), *of_the_papers(), *systematic()):
        try:
            suites.add(native.canonical(name))
        except InputError:
            continue  # a name in running text, or with a part that the key exchange does not use
    entries = []
    for suite in sorted(suites):
        try:
            fresh = builtins(bare(in_memory.measure(suite, REPEAT)))
        except Exception as error:
            print(f"omitted: {error}", file=sys.stderr)
            continue
        known = shipped.get(suite)
        entries.append(known if known is not None and shape(known) == shape(fresh) else fresh)
    write_library(path, entries)
    print(f"{path}: {len(entries)} of {len(suites)} suites", file=sys.stderr)


if __name__ == "__main__":
    main()
