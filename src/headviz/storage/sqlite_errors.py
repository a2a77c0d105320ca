"""What an error of SQLite means. Only this file looks into these errors."""

from __future__ import annotations

import sqlite3

LOCKED, FULL, DAMAGED, OTHER = "locked", "full", "damaged", "other"
_MEANING = {
    sqlite3.SQLITE_BUSY: LOCKED,
    sqlite3.SQLITE_LOCKED: LOCKED,
    sqlite3.SQLITE_FULL: FULL,
    sqlite3.SQLITE_IOERR_SHMSIZE: FULL,  # no room for the index that readers share
    sqlite3.SQLITE_CORRUPT: DAMAGED,
    sqlite3.SQLITE_NOTADB: DAMAGED,
}
_PRIMARY = 0xFF  # the low byte of an extended result code is the code itself


def meaning(error: Exception) -> str:
    """One of LOCKED, FULL, DAMAGED, OTHER."""
    code = getattr(error, "sqlite_errorcode", None)  # errors of Python's own, such as a closed database, have none
    if code is None:
        return OTHER
    # for a table definition that it cannot parse SQLite gives its general error code; only the text says more
    if code == sqlite3.SQLITE_ERROR and str(error).startswith("malformed database schema"):
        return DAMAGED
    return _MEANING.get(code) or _MEANING.get(code & _PRIMARY, OTHER)
