"""The registry of runs: one SQLite file (WAL) on a local disk, the only place where a state is decided.

Every change of state is one transaction that reads the old state, asks the table in ``record`` and writes the new
one, so of two processes only one succeeds. Readers do not wait for a writer.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import RunError
from ..storage.strict_disk import FULL, LOCKED, meaning, private_folder
from .files import DiskFull, runs_home, writing_run
from .process import monotonic
from .record import BROKEN, CARRIED, CLAIM, COLUMNS, QUEUED, RESUME, RunRecord, check_id, follow, from_row, to_row

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


WAIT = 30.0  # seconds to wait for another process's lock


class RegistryBusy(RunError):
    """Another process has locked the registry for too long."""


class Superseded(Exception):
    """Another worker has taken this run: stop, and write nothing more."""


class Registry:
    """Runs, their steps and their history. Each call opens the file, so threads and forks may share one object."""

    def __init__(self, folder: Path | None = None, wait: float = WAIT, migrations: Sequence[str] = MIGRATIONS) -> None:
        self.folder = folder or runs_home()
        self.path = self.folder / "registry.sqlite"
        self.wait = wait
        self.migrations = migrations
        self._seen = False  # a folder that was moved away is not made again

    # connections ------------------------------------------------------------------------------

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        if self._seen and not self.path.exists():
            raise RunError(f"The run registry {self.path} is gone: its folder was moved or removed.")
        with writing_run(self.folder):
            private_folder(self.folder)
        try:
            try:
                db = self._connected()
            except sqlite3.OperationalError as error:
                if meaning(error) != FULL:
                    raise
                db = self._connected(alone=True)
            self._seen = True
            try:
                yield db
            finally:
                db.close()
        except sqlite3.OperationalError as error:
            raise self._clear(error) from error
        except sqlite3.DatabaseError as error:
            raise RunError(
                f"The run registry {self.path} is damaged ({error}). Move the file away to start a new one; "
                "the folders of the runs stay."
            ) from error

    def _connected(self, alone: bool = False) -> sqlite3.Connection:
        """Processes share an index next to the file; one that is ``alone`` for a moment needs no room for it."""
        db = sqlite3.connect(self.path, timeout=self.wait, isolation_level=None)
        try:
            db.row_factory = sqlite3.Row
            db.text_factory = lambda raw: raw.decode("utf-8", errors="replace")  # damaged text is in its own row alone
            if alone:
                db.execute("PRAGMA locking_mode = EXCLUSIVE")
            db.execute("PRAGMA foreign_keys = ON")
            db.execute("PRAGMA synchronous = FULL")  # there are few writes, and each must survive a power cut
            self._use_wal(db)
            migrate(db, self.migrations)
        except BaseException:
            db.close()
            raise
        return db

    def _use_wal(self, db: sqlite3.Connection) -> None:
        until = time.monotonic() + self.wait
        while db.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
            try:  # this statement does not wait for locks by itself
                mode = db.execute("PRAGMA journal_mode = WAL").fetchone()[0]
            except sqlite3.OperationalError as error:
                if meaning(error) != LOCKED or time.monotonic() > until:
                    raise
                time.sleep(0.02)
                continue
            if mode != "wal":
                raise RunError(
                    f"{self.folder} cannot hold the run registry: its file system lacks SQLite's WAL mode. "
                    "Set HEADVIZ_HOME to a folder on a local disk."
                )

    def _clear(self, error: sqlite3.OperationalError) -> RunError:
        text = meaning(error)
        if text == LOCKED:
            return RegistryBusy(
                f"The run registry has been locked by another program for more than {self.wait:.0f} s. "
                "Close that program, then try again."
            )
        if text == FULL:
            return DiskFull(f"The disk of {self.folder} is full. Free some space, then try again.")
        return RunError(f"The run registry {self.path} cannot be used ({error}). It needs a local disk of yours.")

    @contextmanager
    def _write(self) -> Iterator[sqlite3.Connection]:
        with self._open() as db:
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise

    # reading ----------------------------------------------------------------------------------

    def get(self, run_id: str) -> RunRecord:
        """A run by its id, or by the beginning of its id if no other run begins like that."""
        text = check_id(run_id)
        with self._open() as db:
            rows = db.execute("SELECT * FROM runs WHERE substr(id, 1, ?) = ?", (len(text), text)).fetchall()
        if not rows:
            raise RunError(f"There is no run '{run_id}'. `headviz run list` shows them all.")
        if len(rows) > 1:
            raise RunError(
                f"'{run_id}' begins several runs: {', '.join(r['id'] for r in rows[:5])}. Write one more digit."
            )
        return from_row(dict(rows[0]))

    def records(
        self, states: Sequence[str] | None = None, parent: str | None = None, archived: bool | None = None
    ) -> list[RunRecord]:
        """Runs in the order they were made."""
        where, values = ["1"], []
        if states is not None:
            where.append(f"state IN ({','.join('?' * len(states))})")
            values += list(states)
        if parent is not None:
            where.append("parent = ?")
            values.append(parent)
        if archived is not None:
            where.append("archived = ?")
            values.append(str(int(archived)))
        with self._open() as db:
            rows = db.execute(f'SELECT * FROM runs WHERE {" AND ".join(where)} ORDER BY "order"', values).fetchall()
        return [from_row(dict(r)) for r in rows]

    def steps(self, run_id: str) -> list[dict[str, Any]]:
        with self._open() as db:
            rows = db.execute("SELECT body FROM steps WHERE run = ? ORDER BY number", (run_id,)).fetchall()
        return [json.loads(r["body"]) for r in rows]

    def events(self, run_id: str) -> list[dict[str, Any]]:
        """The history, oldest first: [{at, what, words}]."""
        with self._open() as db:
            rows = db.execute("SELECT at, what, words FROM events WHERE run = ? ORDER BY number", (run_id,)).fetchall()
        return [dict(r) for r in rows]

    # writing ----------------------------------------------------------------------------------

    def add(self, records: Sequence[RunRecord]) -> None:
        """Write new runs down, all or none."""
        names = ", ".join(COLUMNS)
        marks = ", ".join(f":{c}" for c in COLUMNS)
        with self._write() as db:
            for record in records:
                db.execute(f"INSERT INTO runs ({names}) VALUES ({marks})", to_row(record))
                self._note(db, record.id, "made", f"by {record.owner}" if record.owner else "")

    def apply(self, run_id: str, event: str, *, words: str = "", claim: str | None = None, **changes: Any) -> RunRecord:
        """Change a run's state by an event and return the new record; ``IllegalTransition`` if that is not allowed.

        With ``claim`` only the worker that holds this token may do it; ``Superseded`` for others.
        """
        with self._write() as db:
            old = self._get(db, run_id)
            if claim is not None and old.claim != claim:
                raise Superseded(run_id)
            new = replace(old, state=follow(old.state, event, run_id), **changes)
            if event == CLAIM:
                new = replace(new, attempt=old.attempt + 1, error="", code="", resumable=True, ended=None)
            if event == RESUME:
                new = replace(new, claim="", claimed=0.0, worker=None, error="", code="", resumable=True, ended=None)
            self._put(db, new)
            self._note(db, run_id, event, words)
        return new

    def take(self, token: str, stale: float, room: Callable[[str], int]) -> RunRecord | None:
        """Reserve the first queued run whose slot has room, for a worker that is to be started; None without one.

        A reservation older than ``stale`` seconds is ignored: its worker never came. One transaction decides, so two
        callers get different runs, and no slot gets more runs than it has room for.
        """
        with self._write() as db:
            rows = db.execute(
                "SELECT * FROM runs WHERE executor != ? AND state IN ('queued', 'running', 'cancelling') "
                'ORDER BY "order"',
                (CARRIED,),
            )
            records = [record for r in rows if (record := from_row(dict(r))).state != BROKEN]
            now = monotonic()  # read after waiting for the lock
            waiting = [r for r in records if r.state == QUEUED and not _reserved(r, now, stale)]
            busy = Counter(r.slot for r in records) - Counter(r.slot for r in waiting)
            for record in waiting:
                if busy[record.slot] < room(record.slot):
                    return self._reserve(db, record, token, now)
        return None

    def take_one(self, run_id: str, token: str) -> RunRecord:
        """Reserve this run whether there is room or not; ``IllegalTransition`` if it is not queued."""
        with self._write() as db:
            record = self._get(db, run_id)
            follow(record.state, CLAIM, run_id)
            return self._reserve(db, record, token, monotonic())

    def holds(self, run_id: str, claim: str) -> bool:
        """Whether the worker with this token may still write."""
        with self._open() as db:
            row = db.execute("SELECT claim FROM runs WHERE id = ?", (run_id,)).fetchone()
        return row is not None and row["claim"] == claim

    def put_steps(self, run_id: str, claim: str, steps: Mapping[int, dict[str, Any]]) -> None:
        """Record the steps so far, each under its fixed number.

        A step that was computed again after a damaged checkpoint replaces its row; the history notes it.
        """
        with self._write() as db:
            if self._get(db, run_id).claim != claim:
                raise Superseded(run_id)
            have = dict(db.execute("SELECT number, body FROM steps WHERE run = ?", (run_id,)))
            for number, step in sorted(steps.items()):
                body = json.dumps(step, ensure_ascii=False, allow_nan=False)
                if have.get(number) != body:
                    db.execute("INSERT OR REPLACE INTO steps VALUES (?, ?, ?)", (run_id, number, body))
                    self._note(db, run_id, "step" if number not in have else "step again", str(number))

    def set_expected(self, run_id: str, expected: int) -> None:
        with self._write() as db:
            db.execute("UPDATE runs SET expected = ? WHERE id = ?", (expected, run_id))

    def set_archived(self, run_id: str, archived: bool) -> None:
        with self._write() as db:
            db.execute("UPDATE runs SET archived = ? WHERE id = ?", (int(archived), run_id))
            self._note(db, run_id, "archived" if archived else "brought back", "")

    def note(self, run_id: str, what: str, words: str = "") -> None:
        """One more line of history."""
        with self._write() as db:
            self._note(db, run_id, what, words)

    def delete(self, run_id: str) -> None:
        with self._write() as db:
            db.execute("DELETE FROM runs WHERE id = ?", (run_id,))

    # inside a transaction ---------------------------------------------------------------------

    def _get(self, db: sqlite3.Connection, run_id: str) -> RunRecord:
        row = db.execute("SELECT * FROM runs WHERE id = ?", (run_id,)).fetchone()
        if row is None:
            raise RunError(f"There is no run '{run_id}'. `headviz run list` shows them all.")
        return from_row(dict(row))

    def _put(self, db: sqlite3.Connection, record: RunRecord) -> None:
        row = to_row(record)
        sets = ", ".join(f"{c} = :{c}" for c in COLUMNS if c != "id")
        db.execute(f"UPDATE runs SET {sets} WHERE id = :id", row)

    def _reserve(self, db: sqlite3.Connection, record: RunRecord, token: str, now: float) -> RunRecord:
        reserved = replace(record, claim=token, claimed=now)
        self._put(db, reserved)
        return reserved

    def _note(self, db: sqlite3.Connection, run_id: str, what: str, words: str) -> None:
        db.execute("INSERT INTO events (run, at, what, words) VALUES (?, ?, ?, ?)", (run_id, time.time(), what, words))


def _reserved(record: RunRecord, now: float, stale: float) -> bool:
    return bool(record.claim) and abs(now - record.claimed) < stale  # abs: the clock starts again at each boot
