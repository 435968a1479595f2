"""The thesis's cases on this machine: orders, percentages and ratios of our WTLS engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shakedown.papers import verdicts
from shakedown.papers.load import PaperData
from shakedown.papers.paper import ModernRerun
from shakedown.papers.replication import Cost, Replication
from shakedown.papers.rows import Row
from shakedown.papers.thesis.inputs import (
    AUTHENTICATIONS,
    COLUMNS,
    SHARE_TABLES,
    SIZES,
    TIME_TABLES,
    WORDS,
    Authentication,
    Case,
    Thesis,
)
from shakedown.papers.thesis.processing_claims import growth_violations, order_check, prime_ratios, violations
from shakedown.papers.verdicts import Check, beside, cell_row
from shakedown.schema.base import SIDES, Side


def share_here(cost: Cost, side: Side, column: str) -> float:
    """A column of the percentage tables for one of our handshakes, in per cent."""
    public_us = cost.class_us(side, "key")
    secret_us = cost.master_secret_us(side)
    exchange_us, total_us = public_us + secret_us, cost.us(side)
    certificate_us = cost.operation_us(side, "verify", ["Certificate"])
    signature_us = cost.operation_us(side, "sign") + cost.operation_us(side, "verify", ["CertificateVerify"])
    if column == "others_pct":
        return 100 * (total_us - exchange_us - certificate_us - signature_us) / total_us
    if column in ("client_kx_pct", "server_kx_pct"):
        return 100 * exchange_us / total_us
    if column.startswith("master_secret"):
        return 100 * secret_us / exchange_us
    if column.startswith("verify"):
        return 100 * certificate_us / total_us
    if column.startswith("certificate_verify"):
        return 100 * signature_us / total_us
    return 100 * public_us / exchange_us


def measured_cells(data: PaperData, replication: Replication) -> list[Row]:
    """Tables 4.1, 4.2 and 4.11 as ratios to their first case, tables 4.3 to 4.10 as they stand."""
    thesis = Thesis(data)
    return [*_ratios(thesis, replication), *_shares(thesis, replication)]


def _ratios(thesis: Thesis, replication: Replication) -> list[Row]:
    rows = []
    first = thesis.cases[0]
    for authentication in AUTHENTICATIONS:
        number, table = TIME_TABLES[authentication]
        columns: list[tuple[str, str, str, Callable[[Cost], float]]] = [
            (number, table, f"{side}_ms", lambda cost, side=side: cost.us(side))  # type: ignore[misc]
            for side in SIDES
        ]
        columns.append(("4.11", SIZES, f"{authentication}_bytes", lambda cost: cost.size_bytes))
        for table_number, name, column, of in columns:
            base = float(thesis.printed(name, first)[column])
            for case in thesis.cases[1:]:
                suites = (case.suite(authentication), first.suite(authentication))
                costs = replication.all(suites)
                row = cell_row(
                    f"table {table_number} over 160p/160p, {case.name}",
                    f"{column.split('_')[0]} {'time' if 'ms' in column else 'bytes'}, {WORDS[authentication]}"
                    if "ms" in column
                    else f"handshake data, {WORDS[authentication]}",
                    "x",
                    f"{float(thesis.printed(name, case)[column]) / base:.3f}",
                    of(costs[0]) / of(costs[1]) if costs else None,
                    "10 %",
                    replication.why_not(suites) or f"{suites[0]} over {suites[1]} here",
                    "measured",
                )
                # Bytes depend on no machine.
                rows.append(beside(row) if "ms" in column else row)
    return rows


def _shares(thesis: Thesis, replication: Replication) -> list[Row]:
    rows = []
    for (authentication, family, side), (number, table) in SHARE_TABLES.items():
        columns = [column for column in thesis.data.tables[table].columns if column in COLUMNS]
        for case in thesis.cases:
            if case.family != family:
                continue
            suite = case.suite(authentication)  # type: ignore[arg-type]
            cost = replication.cost(suite)
            for column in columns:
                rows.append(
                    beside(
                        cell_row(
                            f"table {number} (modern rerun), {case.name}",
                            f"{side}'s share, {WORDS[authentication]}: {COLUMNS[column]}",
                            "%",
                            thesis.printed(table, case)[column],
                            share_here(cost, side, column) if cost else None,
                            "5",
                            replication.why_not([suite]) or f"{suite} here",
                            "measured",
                        )
                    )
                )
    return rows


def modern_rerun(data: PaperData, replication: Replication) -> Sequence[ModernRerun]:
    """What a modern rerun says to the orders and percentages."""
    thesis = Thesis(data)
    everything = [case.suite(how) for case, how in thesis.all()]

    def time(case: Case, authentication: Authentication, side: Side) -> float:
        return replication.costs[case.suite(authentication)].us(side) / 1e6

    def order(kinds: Sequence[str], side: Side, categories: Sequence[int], words: str) -> Callable[[], Check]:
        return lambda: order_check(
            violations(thesis, time, kinds, (side,), categories),
            words,
            "our WTLS engine, mutual and server auth",
            "measured",
        )

    def ecc_before_rsa() -> Check:
        broken = [
            one
            for kind in ("prime", "koblitz", "random")
            for one in violations(thesis, time, (kind, "rsa"), SIDES, (1, 2, 3))
        ]
        return order_check(broken, "ecc < rsa", "36 pairs of equal strength on both sides", "measured")

    def span(how: Authentication, family: str, side: Side, column: str) -> tuple[float, float]:
        values = [
            share_here(replication.costs[case.suite(how)], side, column)
            for case in thesis.cases
            if case.family == family
        ]
        return min(values), max(values)

    def ranges(how: Authentication, family: str, side: Side, *columns: str) -> Callable[[], Check]:
        return lambda: verdicts.spans(
            [span(how, family, side, column) for column in columns], "our WTLS engine", "measured"
        )

    def above(least: float, how: Authentication, family: str, side: Side, column: str) -> Callable[[], Check]:
        def check() -> Check:
            low, high = span(how, family, side, column)
            value = 100 - high if column == "others_pct" else low
            return verdicts.holds(value > least, value, "our WTLS engine, least over the cases", "measured")

        return check

    def over(end: str, base: str, how: Authentication, side: Side) -> float:
        return time(thesis.case(end), how, side) / time(thesis.case(base), how, side)

    def three(how: Authentication) -> Callable[[], Check]:
        return lambda: verdicts.numbers(
            [over(f"{key}/{key}", "160p/160p", how, "server") for key in ("163k", "163r", "rsa1024")],
            "our WTLS engine",
            "measured",
        )

    def primes() -> Check:
        ratios = prime_ratios(thesis, time)
        worst = max(ratios, key=lambda name: ratios[name])
        return verdicts.holds(
            ratios[worst] < 0.5, ratios[worst], f"greatest of {len(ratios)} ratios: {worst}", "measured"
        )

    def mutual_above() -> Check:
        broken = [
            case.name
            for case in thesis.cases
            if time(case, "mutual", "server") <= time(case, "serverauth", "server")
        ]
        return order_check(broken, "mutual > serverauth", "24 pairs", "measured")

    rows: list[tuple[str, str, Callable[[], Check]]] = [
        ("wn-001", "orders of client's and server's time", ecc_before_rsa),
        (
            "wn-012",
            "orders of the client's time, category 1",
            order(("random", "koblitz", "prime", "rsa"), "client", (1,), "163r < 163k < 160p < rsa1024"),
        ),
        (
            "wn-015",
            "client's time, RSA-1024: mutual over server auth",
            lambda: verdicts.number(
                time(thesis.case("rsa1024/rsa1024"), "mutual", "client")
                / time(thesis.case("rsa1024/rsa1024"), "serverauth", "client"),
                "our WTLS engine",
                "measured",
            ),
        ),
        ("wn-018", "server's time over 160p, server auth", three("serverauth")),
        ("wn-019", "server's time over 160p, mutual", three("mutual")),
        (
            "wn-022",
            "orders of the server's time, category 2",
            order(("prime", "koblitz"), "server", (2,), "224p < 233k"),
        ),
        (
            "wn-023",
            "orders of the client's time, category 3",
            order(("koblitz", "random", "prime", "rsa"), "client", (3,), "283k < 283r < 256p < rsa3072"),
        ),
        (
            "wn-024",
            "orders of the server's time, category 3",
            order(("prime", "koblitz"), "server", (3,), "256p < 283k"),
        ),
        (
            "wn-025",
            "share of the server certificate's check, mutual ECDH client",
            ranges("mutual", "ecc", "client", "verify_server_cert_pct"),
        ),
        (
            "wn-026",
            "share of the key exchange, mutual ECDH client",
            ranges("mutual", "ecc", "client", "client_kx_pct"),
        ),
        (
            "wn-027",
            "ECDH's share of the key exchange, mutual ECDH client",
            above(99, "mutual", "ecc", "client", "ecdh_of_client_kx_pct"),
        ),
        (
            "wn-028",
            "share of the two operations, mutual ECDH client",
            above(98, "mutual", "ecc", "client", "others_pct"),
        ),
        (
            "wn-029",
            "shares of key exchange, certificate and CertificateVerify, mutual RSA client",
            ranges(
                "mutual",
                "rsa",
                "client",
                "client_kx_pct",
                "verify_server_cert_pct",
                "certificate_verify_sign_pct",
            ),
        ),
        (
            "wn-030",
            "share of the three operations, mutual RSA client",
            above(99, "mutual", "rsa", "client", "others_pct"),
        ),
        (
            "wn-031",
            "RSA's share of the key exchange, mutual RSA client",
            above(99, "mutual", "rsa", "client", "rsa_encrypt_of_client_kx_pct"),
        ),
        (
            "wn-032",
            "share of ECDH and certificate, mutual ECDH server",
            above(95, "mutual", "ecc", "server", "others_pct"),
        ),
        (
            "wn-033",
            "share of the key exchange, mutual RSA server",
            ranges("mutual", "rsa", "server", "server_kx_pct"),
        ),
        (
            "wn-036",
            "share of the two operations, server-auth ECDH client",
            above(98, "serverauth", "ecc", "client", "others_pct"),
        ),
        (
            "wn-037",
            "share of the key exchange, server-auth ECDH server",
            above(87, "serverauth", "ecc", "server", "server_kx_pct"),
        ),
        (
            "wn-038",
            "share of the key exchange, server-auth RSA server",
            above(98, "serverauth", "rsa", "server", "server_kx_pct"),
        ),
        ("wn-083", "server's time, prime over Koblitz and random", primes),
        (
            "wn-085",
            "client's time by the CA's key",
            lambda: order_check(
                growth_violations(thesis, time), "category 1 < 2 < 3", "at equal end certificates", "measured"
            ),
        ),
        ("wn-089", "server's time, mutual and server auth", mutual_above),
    ]
    return [ModernRerun(claim, words, everything, check) for claim, words, check in rows]
