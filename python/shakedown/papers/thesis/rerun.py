"""The thesis's cases on this machine: orders, percentages and ratios of our WTLS engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from shakedown.papers import verdicts
from shakedown.papers.load import PaperData
from shakedown.papers.paper import ModernRerun
from shakedown.papers.replication import Cost, Replication
from shakedown.papers.thesis.additive import share_of_parts
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
    share_cells,
)
from shakedown.papers.thesis.processing_claims import (
    SHARES,
    Share,
    growth_violations,
    mutual_violations,
    order_check,
    prime_ratios,
    rsa_violations,
    violations,
)
from shakedown.papers.verdicts import Check, beside, cell_row
from shakedown.schema.base import SIDES, Side
from shakedown.schema.replication import Row


def share_here(cost: Cost, side: Side, column: str) -> float:
    """A column of the percentage tables for one of our handshakes, in per cent."""
    signed_us = cost.operation_us(side, "sign") + cost.operation_us(side, "verify", ["CertificateVerify"])
    parts_us = {
        "public": cost.class_us(side, "key"),
        "master secret": cost.master_secret_us(side),
        "certificate": cost.operation_us(side, "verify", ["Certificate"]),
        "CertificateVerify": signed_us,
    }
    exchange_us = parts_us["public"] + parts_us["master secret"]
    parts_us["others"] = cost.us(side) - exchange_us - parts_us["certificate"] - signed_us
    return share_of_parts(column, parts_us, cost.us(side))


def measured_cells(data: PaperData, replication: Replication) -> list[Row]:
    """Tables 4.1, 4.2 and 4.11 as ratios to their first case, tables 4.3 to 4.10 unchanged."""
    thesis = Thesis(data)
    return [*_ratios(thesis, replication), *_shares(thesis, replication)]


def _ratios(thesis: Thesis, replication: Replication) -> Iterator[Row]:
    first = thesis.cases[0]
    for authentication in AUTHENTICATIONS:
        for side in (*SIDES, None):
            number, name = TIME_TABLES[authentication] if side else ("4.11", SIZES)
            column = f"{side}_ms" if side else f"{authentication}_bytes"
            base = float(thesis.printed(name, first)[column])
            for case in thesis.cases[1:]:
                suites = (case.suite(authentication), first.suite(authentication))
                costs = replication.all(suites) or ()
                figures = [cost.us(side) if side else cost.size_bytes for cost in costs]
                row = cell_row(
                    f"table {number} over 160p/160p, {case.name}",
                    f"{f'{side} time' if side else 'handshake data'}, {WORDS[authentication]}",
                    "x",
                    f"{float(thesis.printed(name, case)[column]) / base:.3f}",
                    figures[0] / figures[1] if figures else None,
                    "10 %",
                    replication.why_not(suites) or f"{suites[0]} over {suites[1]} here",
                )
                # Bytes do not depend on the machine.
                yield beside(row) if side else row


def _shares(thesis: Thesis, replication: Replication) -> Iterator[Row]:
    for number, table, case, authentication, side, column in share_cells(thesis):
        suite = case.suite(authentication)
        cost = replication.costs.get(suite)
        row = cell_row(
            f"table {number} (modern rerun), {case.name}",
            f"{side}'s share, {WORDS[authentication]}: {COLUMNS[column]}",
            "%",
            thesis.printed(table, case)[column],
            share_here(cost, side, column) if cost else None,
            "5",
            replication.why_not([suite]) or f"{suite} here",
        )
        yield beside(row)


def modern_rerun(data: PaperData, replication: Replication) -> Sequence[ModernRerun]:
    thesis = Thesis(data)
    everything = [case.suite(how) for case, how in thesis.all()]

    def time(case: Case, authentication: Authentication, side: Side) -> float:
        return replication.costs[case.suite(authentication)].us(side) / 1e6

    def order(kinds: Sequence[str], side: Side, categories: Sequence[int], words: str) -> Callable[[], Check]:
        return lambda: order_check(
            violations(thesis, time, kinds, (side,), categories),
            words,
            "mutual and server auth",
        )

    def span(how: Authentication, family: str, side: Side, column: str) -> tuple[float, float]:
        values = [
            share_here(replication.costs[case.suite(how)], side, column)
            for case in thesis.cases
            if case.family == family
        ]
        return min(values), max(values)

    def extremes(how: Authentication, family: str, side: Side, *columns: str) -> str:
        """The cases of the smallest and largest share, in µs, and the work except public-key operations."""
        found = []
        for column in columns:
            of = {
                case.name: share_here(replication.costs[case.suite(how)], side, column)
                for case in thesis.cases
                if case.family == family
            }
            ends = [min(of, key=lambda name: of[name]), max(of, key=lambda name: of[name])]
            found += [f"{COLUMNS[column]} {' and '.join(share_us(how, side, name, column) for name in ends)}"]
        low, high = span(how, family, side, "others_pct")
        printed = thesis.shares(how, family, side, "others_pct")
        return (
            f"{'; '.join(found)}; others (parsing, decoding of points) are {low:.0f} to {high:.0f} % of "
            f"the time here, {min(printed):.2g} to {max(printed):.2g} % in table "
            f"{SHARE_TABLES[how, family, side][0]}"
        )

    def share_us(how: Authentication, side: Side, name: str, column: str) -> str:
        cost = replication.costs[thesis.case(name).suite(how)]
        whole_us = cost.us(side)
        if "_of_" in column:
            whole_us = cost.class_us(side, "key") + cost.master_secret_us(side)
        return f"{share_here(cost, side, column) / 100 * whole_us:.0f} of {whole_us:.0f} µs ({name})"

    def held(one: Share) -> Callable[[], Check]:
        return lambda: one.check(span, extremes(*one.place, *one.columns))

    def over(end: str, base: str, how: Authentication, side: Side) -> float:
        return time(thesis.case(end), how, side) / time(thesis.case(base), how, side)

    def three(how: Authentication) -> Callable[[], Check]:
        def words() -> str:
            found = []
            for key in ("160p", "163k", "163r", "rsa1024"):
                cost = replication.costs[thesis.case(f"{key}/{key}").suite(how)]
                public_us = cost.us("server") - cost.class_us("server", "common")
                found.append(f"{key} {public_us:.0f} of {cost.us('server'):.0f}")
            return f"public keys, of the server's µs: {', '.join(found)}"

        return lambda: verdicts.numbers(
            [over(f"{key}/{key}", "160p/160p", how, "server") for key in ("163k", "163r", "rsa1024")],
            words(),
        )

    def primes() -> Check:
        ratios = prime_ratios(thesis, time)
        worst = max(ratios, key=lambda name: ratios[name])
        return verdicts.holds(ratios[worst] < 0.5, ratios[worst], f"largest of {len(ratios)} ratios: {worst}")

    rows: list[tuple[str, str, Callable[[], Check]]] = [
        (
            "wn-001",
            "orders of client's and server's time",
            lambda: order_check(
                rsa_violations(thesis, time), "ecc < rsa", "36 pairs of equal strength on both sides"
            ),
        ),
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
                f"{1e6 * time(thesis.case('rsa1024/rsa1024'), 'mutual', 'client'):.0f} over "
                f"{1e6 * time(thesis.case('rsa1024/rsa1024'), 'serverauth', 'client'):.0f} µs",
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
        *((one.claim, one.words, held(one)) for one in SHARES if one.what is not None),
        ("wn-083", "server's time, prime over Koblitz and random", primes),
        (
            "wn-085",
            "client's time by the CA's key",
            lambda: order_check(
                growth_violations(thesis, time), "category 1 < 2 < 3", "at equal end certificates"
            ),
        ),
        (
            "wn-089",
            "server's time, mutual and server auth",
            lambda: order_check(mutual_violations(thesis, time), "mutual > serverauth", "24 pairs"),
        ),
    ]
    return [ModernRerun(claim, words, everything, check) for claim, words, check in rows]
