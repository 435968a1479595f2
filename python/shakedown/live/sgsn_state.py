"""An SGSN's sessions and subscribers in SQLite, so that they survive a restart or crash.

Each change is one transaction, which is on the disk before the call returns. So a granted resumption is never
lost, and no session is resumed more often than allowed. The core's threads make one call at a time.
"""

from __future__ import annotations

from shakedown.live.state_file import StateFile

Session = tuple[bytes, str, str, int, int, bytes]
Subscriber = tuple[str, str, bytes | None]


class SgsnState(StateFile):
    """One SGSN's file, which is locked while it is open."""

    APPLICATION = 0x5368416B  # ShAk
    LAYOUT = 2
    WHAT = "an SGSN's state"
    WITHOUT_IT = "each mobile then attaches once with a full handshake"
    TABLES = (
        "CREATE TABLE session (id BLOB PRIMARY KEY, secret BLOB NOT NULL, imsi TEXT NOT NULL, home TEXT NOT "
        "NULL, resumptions INTEGER NOT NULL, last_ns INTEGER NOT NULL, basis BLOB NOT NULL) WITHOUT ROWID",
        "CREATE INDEX session_imsi ON session (imsi)",
        "CREATE TABLE subscriber (ptmsi INTEGER PRIMARY KEY, imsi TEXT NOT NULL UNIQUE, home TEXT NOT NULL,"
        " session BLOB)",
    )
    PRAGMAS = ("synchronous = FULL",)

    def session(self, session: bytes) -> Session | None:
        """A session by its ID: secret, IMSI, home network, resumptions, last use (ns since 1970), basis.

        The basis is a digest of the suite and the roots with which the session was created.
        """
        found: Session | None = self._database.execute(
            "SELECT secret, imsi, home, resumptions, last_ns, basis FROM session WHERE id = ?", (session,)
        ).fetchone()
        return found

    def keep_session(
        self,
        session: bytes,
        secret: bytes,
        imsi: str,
        home: str,
        resumptions: int,
        last_ns: int,
        basis: bytes,
    ) -> None:
        """Stores a session; replaces one with the same ID."""
        self._database.execute(
            "INSERT OR REPLACE INTO session VALUES (?, ?, ?, ?, ?, ?, ?)",
            (session, secret, imsi, home, resumptions, last_ns, basis),
        )

    def forget_session(self, session: bytes) -> None:
        self._database.execute("DELETE FROM session WHERE id = ?", (session,))

    def subscriber(self, ptmsi: int) -> Subscriber | None:
        """The subscriber with a temporary identity: IMSI, home network, session ID."""
        found: Subscriber | None = self._database.execute(
            "SELECT imsi, home, session FROM subscriber WHERE ptmsi = ?", (ptmsi,)
        ).fetchone()
        return found

    def keep_subscriber(self, ptmsi: int, imsi: str, home: str, session: bytes | None) -> None:
        """Stores a subscriber under a new temporary identity; removes older identities and other sessions."""
        self._all(
            ("DELETE FROM session WHERE imsi = ? AND id IS NOT ?", (imsi, session)),
            ("DELETE FROM subscriber WHERE imsi = ?", (imsi,)),
            ("INSERT OR REPLACE INTO subscriber VALUES (?, ?, ?, ?)", (ptmsi, imsi, home, session)),
        )

    def forget_subscriber(self, ptmsi: int) -> None:
        """Removes a subscriber and its sessions."""
        self._all(
            (
                "DELETE FROM session WHERE imsi IN (SELECT imsi FROM subscriber WHERE ptmsi = ?)",
                (ptmsi,),
            ),
            ("DELETE FROM subscriber WHERE ptmsi = ?", (ptmsi,)),
        )
