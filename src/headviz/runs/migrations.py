"""The registry's tables, version by version. Never edit a released version: add a new one."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from ..errors import RunError

# number n of the list brings a registry from version n to n + 1
MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE runs (
        "order"   INTEGER PRIMARY KEY AUTOINCREMENT,
        id        TEXT NOT NULL UNIQUE,
        kind      TEXT NOT NULL,
        spec      TEXT NOT NULL,
        title     TEXT NOT NULL,
        owner     TEXT NOT NULL,
        version   TEXT NOT NULL,
        executor  TEXT NOT NULL,
        device    TEXT NOT NULL,
        threads   INTEGER NOT NULL,
        expected  INTEGER NOT NULL,
        parent    TEXT REFERENCES runs (id) ON DELETE CASCADE,
        created   REAL NOT NULL,
        state     TEXT NOT NULL,
        attempt   INTEGER NOT NULL,
        claim     TEXT NOT NULL,
        claimed   REAL NOT NULL,
        started   REAL,
        ended     REAL,
        place     TEXT,
        pid       INTEGER,
        pid_start TEXT,
        error     TEXT NOT NULL,
        archived  INTEGER NOT NULL
    );
    CREATE INDEX runs_state ON runs (state);
    CREATE INDEX runs_parent ON runs (parent);
    CREATE TABLE steps (
        run    TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
        number INTEGER NOT NULL,
        body   TEXT NOT NULL,
        PRIMARY KEY (run, number)
    ) WITHOUT ROWID;
    CREATE TABLE events (
        number  INTEGER PRIMARY KEY AUTOINCREMENT,
        run     TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
        at      REAL NOT NULL,
        what    TEXT NOT NULL,
        words   TEXT NOT NULL
    );
    CREATE INDEX events_run ON events (run, number);
    """,
    # whether a run that failed may go on; before, only the text of its error said so
    """
    ALTER TABLE runs ADD COLUMN resumable INTEGER NOT NULL DEFAULT 1;
    UPDATE runs SET resumable = 0 WHERE error LIKE '%Start a new run%' OR error LIKE '%Start the run anew%';
    """,
    # the code of the error; before, only its text said that the fault was headviz's own
    """
    ALTER TABLE runs ADD COLUMN code TEXT NOT NULL DEFAULT '';
    UPDATE runs SET code = 'fault' WHERE error LIKE 'headviz failed here%';
    """,
)


def migrate(db: sqlite3.Connection, migrations: Sequence[str] = MIGRATIONS) -> None:
    """Bring a registry to the newest version in one transaction; a ``RunError`` for one from a newer headviz."""
    if _version(db) == len(migrations):
        return
    db.execute("BEGIN IMMEDIATE")
    try:
        have = _version(db)  # another process may have been first
        if have > len(migrations):
            raise RunError(
                f"The run registry was written by a newer headviz (version {have}, this one knows {len(migrations)}). "
                "Update headviz, or set HEADVIZ_HOME to another folder."
            )
        for script in migrations[have:]:
            for statement in script.split(";"):
                if statement.strip():
                    db.execute(statement)
        db.execute(f"PRAGMA user_version = {len(migrations)}")
        db.execute("COMMIT")
    except BaseException:
        db.execute("ROLLBACK")
        raise


def _version(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])
