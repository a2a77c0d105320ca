import os
import pickle
import sqlite3
import stat
import subprocess
import sys
import textwrap
import tracemalloc
import warnings

import numpy as np
import pytest
import torch

from headviz.errors import OptionError
from headviz.storage.store import Entry, Store, StoreWarning, limit_from_environment, make_key
from headviz.storage.strict_disk import remove_database
from support.marks import some_in_ci
from support.small_disk import run_on_small_disk

SMALL = np.arange(6, dtype=np.float32).reshape(2, 3)
LARGE = np.arange(40_000, dtype=np.float32)  # beyond the size that stays inside the database


@pytest.fixture
def store(tmp_path):
    result = Store(tmp_path / "store")
    yield result
    result.close()


def sql(store, statement, *values):
    with sqlite3.connect(store.folder / "cache.db") as base:
        return base.execute(statement, values).fetchall()


def value_files(store):
    return sorted(store.folder.glob("??/??/*.val"))


@pytest.mark.parametrize("array", [SMALL, LARGE, np.array(3.5), np.zeros((0, 4), np.int64), np.array([True, False])])
def test_what_goes_in_comes_out(store, array):
    assert store.put("maps:1", {"a": array}, {"note": "é"})
    entry = store.get("maps:1")
    assert entry.words == {"note": "é"}
    assert entry.arrays["a"].dtype == array.dtype
    assert entry.arrays["a"].shape == array.shape
    np.testing.assert_array_equal(entry.arrays["a"], array)
    np.testing.assert_array_equal(Store(store.folder).get("maps:1").arrays["a"], array)


def test_keys_depend_on_every_part():
    parts = {"weights": "ab", "tokens": [1, 2], "steps": 8}
    assert make_key("maps", **parts) == make_key("maps", **dict(reversed(parts.items())))
    others = [{**parts, "weights": "ac"}, {**parts, "tokens": [12]}, {**parts, "steps": 9}, {**parts, "steps": "8"}]
    assert len({make_key("maps", **p) for p in [parts, *others]} | {make_key("score", **parts)}) == 6


def test_keys_tell_products_of_shorter_numbers_apart():
    full = make_key("maps", steps=8)
    keys = []
    try:
        for precision in ("high", "medium", "highest"):
            torch.set_float32_matmul_precision(precision)
            keys.append(make_key("maps", steps=8))
    finally:
        torch.set_float32_matmul_precision("highest")
    assert keys[2] == full
    assert len(set(keys)) == 3


def test_folder_is_private_and_files_too(store):
    store.folder.mkdir(mode=0o777, parents=True)
    store.folder.chmod(0o777)
    store.put("maps:1", {"a": LARGE})
    assert stat.S_IMODE(store.folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(value_files(store)[0].stat().st_mode) == 0o600


class Bomb:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


@pytest.mark.parametrize("where", ["inline", "file"])
def test_a_pickled_value_is_dropped_and_not_run(store, tmp_path, where):
    bomb = pickle.dumps(Bomb(str(tmp_path / "ran")))
    store.put("maps:1", {"a": SMALL})
    if where == "inline":
        sql(store, "UPDATE Cache SET mode = 4, value = ?", bomb)
    else:
        name = "ab/cd/" + "0" * 28 + ".val"
        (store.folder / "ab/cd").mkdir(parents=True)
        (store.folder / name).write_bytes(bomb)
        sql(store, "UPDATE Cache SET mode = 4, value = NULL, filename = ?", name)
    assert store.get("maps:1") is None
    assert not (tmp_path / "ran").exists()
    assert sql(store, "SELECT COUNT(*) FROM Cache") == [(0,)]


def test_a_pickled_key_is_not_run(store, tmp_path):
    store.put("maps:1", {"a": SMALL})
    sql(store, "UPDATE Cache SET raw = 0, key = ?", pickle.dumps(Bomb(str(tmp_path / "ran"))))
    assert store.get("maps:1") is None
    store.usage()
    assert store.clear() == 1
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("form", ["../secret", "absolute", "link", "folder_link", "fifo", "beside"])
def test_a_file_that_is_no_entry_is_neither_read_nor_removed(store, tmp_path, form):
    store.put("maps:1", {"a": LARGE})
    good = value_files(store)[0]
    secret = tmp_path / "secret"
    secret.write_bytes(good.read_bytes())  # even a well-formed value: it is not ours to read
    if form == "../secret":
        sql(store, "UPDATE Cache SET filename = '../secret'")
    elif form == "absolute":
        sql(store, "UPDATE Cache SET filename = ?", str(secret))
    elif form == "beside":  # inside the folder, under a name that no entry has
        secret = secret.rename(store.folder / "secret")
        sql(store, "UPDATE Cache SET filename = 'secret'")
    elif form == "link":
        good.unlink()
        good.symlink_to(secret)
    elif form == "fifo":
        good.unlink()
        os.mkfifo(good)
    else:
        elsewhere = tmp_path / "elsewhere"
        good.parent.rename(elsewhere)
        good.parent.symlink_to(elsewhere)
    assert store.get("maps:1") is None
    assert secret.exists()
    store.clear()
    assert secret.exists()


@pytest.mark.parametrize("harm", ["cut", "flip", "empty", "gone"])
@pytest.mark.parametrize("array", [SMALL, LARGE])
def test_a_damaged_entry_is_dropped(store, harm, array):
    store.put("maps:1", {"a": array})
    files = value_files(store)
    raw = bytearray(files[0].read_bytes() if files else sql(store, "SELECT value FROM Cache")[0][0])
    if harm == "flip":
        raw[-3] ^= 16
    raw = {"cut": raw[:-7], "flip": raw, "empty": b"", "gone": b""}[harm]
    if files and harm == "gone":
        files[0].unlink()
    elif files:
        files[0].write_bytes(raw)
    else:
        sql(store, "UPDATE Cache SET value = ?", None if harm == "gone" else bytes(raw))
    assert store.get("maps:1") is None
    assert store.put("maps:1", {"a": array})
    np.testing.assert_array_equal(store.get("maps:1").arrays["a"], array)


@pytest.mark.parametrize("content", [b"", b"not a database at all, but long enough to look like one" * 40])
def test_a_foreign_database_is_replaced(store, content):
    store.folder.mkdir(mode=0o700)
    (store.folder / "cache.db").write_bytes(content)
    assert store.put("maps:1", {"a": SMALL})
    assert store.get("maps:1") is not None


def test_a_database_damaged_while_open_is_replaced(store):
    for i in range(50):
        store.put(f"maps:{i}", {"a": np.arange(3000.0)})
    path = store.folder / "cache.db"
    store._cache.close()  # flush, so that the harm is what the next reader sees
    for tail in ("-wal", "-shm"):
        path.with_name(path.name + tail).unlink(missing_ok=True)
    path.write_bytes(path.read_bytes()[:4096] + b"\x07" * 100_000)
    assert all(store.get(f"maps:{i}") is None for i in range(50))
    assert store.put("maps:1", {"a": SMALL})
    assert store.get("maps:1") is not None


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO Settings VALUES ('disk_fetch', 'x')",
        "INSERT INTO Settings VALUES ('sqlite_writable_schema', 1)",
        "CREATE TRIGGER t AFTER INSERT ON Cache BEGIN DELETE FROM Cache; END",
        "CREATE VIEW v AS SELECT 1",
    ],
)
def test_a_database_with_more_than_ours_is_not_opened(store, statement):
    store.put("maps:1", {"a": SMALL})
    store.close()
    sql(store, statement)
    again = Store(store.folder)
    assert again.get("maps:1") is None
    assert again.put("maps:1", {"a": SMALL})
    assert again.get("maps:1") is not None


def test_eviction_keeps_the_limit(tmp_path):
    store = Store(tmp_path / "store", limit=2**20)
    for i in range(60):
        store.put(f"maps:{i}", {"a": LARGE})
    assert store.get("maps:59") is not None
    assert store.get("maps:0") is None
    assert store.usage().bytes < 2 * 2**20


def test_usage_and_clear(store):
    store.put("maps:1", {"a": LARGE})
    store.put("values:1", {"a": SMALL})
    store.put("values:2", {"a": SMALL})
    usage = store.usage()
    assert (usage.entries, usage.kinds) == (3, {"maps": 1, "values": 2})
    assert usage.bytes > LARGE.nbytes
    keep = store.folder / "somebody's.txt"
    keep.write_text("not ours")
    assert store.clear() == 3
    assert store.usage().entries == 0
    assert value_files(store) == []
    assert keep.exists()


def test_an_unwritable_folder_warns_and_goes_on(tmp_path):
    (tmp_path / "file").write_text("in the way")
    store = Store(tmp_path / "file" / "store")
    with pytest.warns(StoreWarning, match="cannot be used"):
        assert store.put("maps:1", {"a": SMALL}) is False
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # once is enough
        assert store.get("maps:1") is None
    assert store.usage().entries == 0
    assert store.clear() == 0


@pytest.mark.parametrize("array", [SMALL, LARGE])
def test_a_full_disk_warns_and_goes_on(store, monkeypatch, array):
    store.put("maps:0", {"a": SMALL})
    if array is LARGE:
        monkeypatch.setattr(os, "fdopen", full_disk(os.fdopen))
    else:
        store._cache._sql("PRAGMA max_page_count = 1")  # sqlite answers 'database or disk is full'
        array = np.zeros(7000, np.float32)
        for i in range(20):
            store._cache._sql("INSERT INTO Settings VALUES (?, 1)", (f"fill{i}",))
    with pytest.warns(StoreWarning, match="(?i)full|space"):
        assert store.put("maps:1", {"a": array}) is False
    monkeypatch.undo()
    assert store.get("maps:1") is None
    assert value_files(store) == []
    assert store.get("maps:0") is not None


def full_disk(real):
    class Full:
        def __init__(self, file):
            self.file = file

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self.file.close()

        def write(self, _):
            raise OSError(28, "No space left on device")

    return lambda handle, mode="r", *rest: Full(real(handle, mode)) if "w" in mode else real(handle, mode, *rest)


def test_a_disk_without_a_free_byte_can_be_cleared(tmp_path):
    """SQLite could not open the database: `cache show` said 0 entries, and `cache clear` freed nothing."""
    script = """
        import os, sys, warnings
        from pathlib import Path
        import numpy as np
        from headviz.storage.store import Store
        warnings.simplefilter("ignore")
        folder = Path(sys.argv[1]) / "store"
        store = Store(folder)
        assert store.put("values:1", {"a": np.zeros(3)})
        assert store.put("maps:1", {"a": np.zeros(50_000)})
        before = store.usage()
        store.close()
        for path in folder.glob("??/??/*.val"):
            os.utime(path, (0, 0))
        print(fill())
        store = Store(folder)
        print(store.get("values:1"), store.put("values:2", {"a": np.zeros(3)}), store.usage() == before)
        print(store.clear(), sum(1 for _ in folder.glob("??/??/*.val")), store.usage().entries)
        print(store.put("maps:2", {"a": np.ones(20_000)}), store.get("maps:2").arrays["a"].sum(), store.usage().kinds)
    """
    free, full, cleared, used_again = run_on_small_disk(tmp_path / "small", script)
    assert free == "0"
    assert full == "None False True"
    assert cleared == "2 0 0"
    assert used_again == "True 20000.0 {'maps': 1}"


def test_a_value_is_found_while_it_is_being_replaced(store, monkeypatch):
    """Its file stays until the new row is there for all to see."""
    store.put("maps:1", {"a": LARGE})
    other, seen = Store(store.folder), []
    assert other.get("maps:1") is not None  # opening waits for the lock
    real = store._cache.set

    def look_after(key, raw):
        real(key, raw)
        seen.append(other.get("maps:1"))

    monkeypatch.setattr(store._cache, "set", look_after)
    store.put_many([("maps:1", Entry({"a": LARGE + 1})), ("maps:2", Entry({"a": LARGE}))])
    assert [None if e is None else float(e.arrays["a"][0]) for e in seen] == [0.0, 0.0]
    assert other.get("maps:1").arrays["a"][0] == 1
    assert len(value_files(store)) == 2
    other.close()


def test_a_value_that_is_replaced_between_look_up_and_reading_is_read_again(store, monkeypatch):
    store.put("maps:1", {"a": LARGE})
    other, real, fetched = Store(store.folder), store._cache._disk.fetch, []

    def after_a_change(mode, filename, value, read):
        if not fetched:
            assert other.put("maps:1", {"a": LARGE + 1})
        fetched.append(filename)
        return real(mode, filename, value, read)

    monkeypatch.setattr(store._cache._disk, "fetch", after_a_change)
    assert store.get("maps:1").arrays["a"][0] == 1
    assert len(fetched) == 2
    other.close()


def test_a_failed_replacement_keeps_the_old_value_and_leaves_no_file(store, monkeypatch):
    store.put("maps:1", {"a": LARGE})
    real = store._cache.set

    def stop_at_second(key, raw):
        if key == "maps:2":
            raise KeyboardInterrupt
        return real(key, raw)

    monkeypatch.setattr(store._cache, "set", stop_at_second)
    with pytest.raises(KeyboardInterrupt):
        store.put_many([("maps:1", Entry({"a": LARGE + 1})), ("maps:2", Entry({"a": LARGE}))])
    assert store.get("maps:1").arrays["a"][0] == 0
    assert len(value_files(store)) == 1


def test_a_folder_that_another_process_tidies_away_is_made_again(store, monkeypatch):
    store.put("maps:0", {"a": SMALL})
    real, asked = os.open, []

    def tidied(path, flags, *rest):
        if flags & os.O_CREAT:
            asked.append(path)
            if len(asked) == 1:
                os.removedirs(os.path.dirname(path))
        return real(path, flags, *rest)

    monkeypatch.setattr(os, "open", tidied)
    assert store.put("maps:1", {"a": LARGE})
    assert len(asked) == 2


def test_clearing_leaves_a_file_that_is_about_to_be_recorded(store):
    store.put("maps:1", {"a": LARGE})
    [path] = value_files(store)
    waiting, left = (path.with_name(letter * 28 + ".val") for letter in "ab")
    for extra in (waiting, left):
        extra.write_bytes(b"x")
    os.utime(left, (0, 0))
    assert store.clear() == 1
    assert value_files(store) == [waiting]


WRITER = """
import sys, numpy as np
from headviz.storage.store import Store
store = Store(sys.argv[1])
me = int(sys.argv[2])
for i in range(60):
    assert store.put(f"maps:{i}", {"a": np.full(20_000 if i % 2 else 20, i, np.float32)})
    got = store.get(f"maps:{i}")
    assert got is not None and (got.arrays["a"] == i).all(), i
"""


def test_two_processes_write_one_cache(tmp_path):
    folder = tmp_path / "store"
    runs = [
        subprocess.Popen([sys.executable, "-W", "error", "-c", textwrap.dedent(WRITER), str(folder), str(i)])
        for i in range(2)
    ]
    assert [p.wait(timeout=120) for p in runs] == [0, 0]
    store = Store(folder)
    for i in range(60):
        assert (store.get(f"maps:{i}").arrays["a"] == i).all()


@pytest.mark.parametrize("kind", ["pipe", "loop"])
def test_what_stands_in_the_databases_place_is_replaced(kind, tmp_path):
    assert Store(tmp_path).put("maps:1", {"a": np.ones(3)})
    path = tmp_path / "cache.db"
    remove_database(tmp_path)
    os.mkfifo(path) if kind == "pipe" else path.symlink_to(path)
    assert Store(tmp_path).get("maps:1") is None
    assert Store(tmp_path).put("maps:1", {"a": np.ones(3)})


def test_a_file_of_holes_is_no_value(tmp_path):
    store = Store(tmp_path)
    store.put("maps:1", {"a": np.ones(10**5)})
    (file,) = tmp_path.rglob("*.val")
    os.truncate(file, 3 * 2**30)
    tracemalloc.start()
    assert store.get("maps:1") is None
    assert tracemalloc.get_traced_memory()[1] < 10**8
    tracemalloc.stop()


def test_the_limit_comes_from_the_environment(monkeypatch):
    for text, size in {"": 2 * 2**30, "500MB": 500 * 2**20, "1.5 GiB": 3 * 2**29, "4g": 4 * 2**30}.items():
        monkeypatch.setenv("HEADVIZ_CACHE_LIMIT", text)
        assert limit_from_environment() == size
    for text in ("much", "-1GB", "10", "9" * 30 + "GB", "9" * 400):
        monkeypatch.setenv("HEADVIZ_CACHE_LIMIT", text)
        with pytest.raises(OptionError, match="HEADVIZ_CACHE_LIMIT"):
            limit_from_environment()


@pytest.mark.parametrize("array", [SMALL, LARGE])
def test_entries_that_were_swapped_are_dropped(store, array):
    """The key is under the checksum, so a value that was moved to another key is never taken for that one's."""
    store.put("maps:1", {"a": array})
    store.put("maps:2", {"a": array + 1})
    sql(store, "UPDATE Cache SET key = 'maps:3' WHERE key = 'maps:1'")
    sql(store, "UPDATE Cache SET key = 'maps:1' WHERE key = 'maps:2'")
    assert store.get("maps:1") is None
    assert store.get("maps:3") is None


@pytest.mark.parametrize(
    "text", some_in_ci([b"Settings", b"Cache", b"key", b"access_count", b"TRIGGER", b"CREATE"], [b"Cache", b"TRIGGER"])
)
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("harm", [b"\xc5\xa0", b"\xff\xfe"])
def test_a_damaged_definition_is_mended(store, text, last, harm):
    """SQLite fails in several ways, and Python may fail to read its error."""
    store.put("maps:1", {"a": SMALL})
    store.close()
    path = store.folder / "cache.db"
    raw = path.read_bytes()
    at = raw.rfind(text) if last else raw.find(text)
    for use in (lambda s: s.get("maps:1"), lambda s: s.put("maps:2", {"a": SMALL}), Store.usage, Store.clear):
        path.write_bytes(raw[:at] + harm + raw[at + len(harm) :])
        again = Store(store.folder)
        use(again)
        again.clear()
        again.close()
        after = Store(store.folder)
        assert after.put("maps:3", {"a": SMALL})
        assert after.get("maps:3") is not None
        after.close()


@pytest.mark.parametrize("harm", [*((at, 9) for at in (18, 47)), *range(4)], ids=str)
@pytest.mark.filterwarnings("ignore::headviz.storage.store.StoreWarning")
def test_a_cleared_cache_works_whatever_was_damaged(store, harm):
    """A byte of the header, or some bytes anywhere."""
    for i in range(20):
        store.put(f"maps:{i}", {"a": np.arange(50.0) + i})
    store.close()
    raw = bytearray((store.folder / "cache.db").read_bytes())
    if isinstance(harm, tuple):
        raw[harm[0]] = harm[1]
    else:
        rng = np.random.default_rng(harm)
        for at in rng.integers(0, len(raw), 10 ** rng.integers(1, 4)):
            raw[at] = rng.integers(256)
    (store.folder / "cache.db").write_bytes(raw)
    again = Store(store.folder)
    entry = again.get("maps:3")
    assert entry is None or np.array_equal(entry.arrays["a"], np.arange(50.0) + 3)
    again.clear()
    again.close()
    after = Store(store.folder)
    assert after.usage().entries == 0
    assert after.put("maps:1", {"a": SMALL})
    assert after.get("maps:1") is not None
