"""What an error of SQLite means. Only this file looks into these errors."""

from __future__ import annotations

import sqlite3

# sqlite3 also fails to decode the text of its own error where a damaged name stands in it
ERRORS = (sqlite3.DatabaseError, UnicodeDecodeError)
LOCKED, FULL, DAMAGED, OTHER = "locked", "full", "damaged", "other"
_MEANING = {
    sqlite3.SQLITE_BUSY: LOCKED,
    sqlite3.SQLITE_LOCKED: LOCKED,
    sqlite3.SQLITE_FULL: FULL,
    sqlite3.SQLITE_IOERR_SHMSIZE: FULL,  # no room for the index that readers share
    sqlite3.SQLITE_CORRUPT: DAMAGED,
    sqlite3.SQLITE_NOTADB: DAMAGED,
}
_DAMAGED_SCHEMA = ("malformed database schema", "no such table", "no such column", "has no column named")
_PRIMARY = 0xFF  # the low byte of an extended result code is the code itself


def meaning(error: Exception) -> str:
    """One of LOCKED, FULL, DAMAGED, OTHER."""
    if isinstance(error, UnicodeDecodeError):
        return DAMAGED
    code = getattr(error, "sqlite_errorcode", None)  # errors of Python's own, such as a closed database, have none
    if code is None:
        return OTHER
    # for a damaged table definition SQLite gives its general error code; only the text says more
    if code == sqlite3.SQLITE_ERROR and any(words in str(error) for words in _DAMAGED_SCHEMA):
        return DAMAGED
    return _MEANING.get(code) or _MEANING.get(code & _PRIMARY, OTHER)
