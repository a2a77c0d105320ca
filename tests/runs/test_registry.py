"""The registry: transactions, fencing, queue order, migrations, locks, damage."""

import sqlite3
import time
from dataclasses import replace

import pytest

from headviz.errors import RunError
from headviz.runs.process import Identity
from headviz.runs.record import IllegalTransition, RunRecord, new_id, to_row
from headviz.runs.registry import MIGRATIONS, Registry, RegistryBusy, Superseded
from support.together import together


def record(**changes) -> RunRecord:
    base = RunRecord(id=new_id(), kind="rehearsal", spec={"steps": 2}, owner="ann", created=time.time())
    return replace(base, **changes)


@pytest.fixture
def base(tmp_path) -> Registry:
    return Registry(tmp_path / "runs", wait=2)


def test_a_record_comes_back_as_it_was(base):
    made = record(title="ü·θ", threads=3, device="cuda:1", worker=Identity("here", 12, "34"), error="", attempt=2)
    base.add([made])
    assert base.get(made.id) == made


def test_a_beginning_of_an_id_is_enough_if_it_is_the_only_one(base):
    base.add([record(id="aabbccdd"), record(id="aabb0000"), record(id="12345678")])
    assert base.get("12").id == "12345678"
    with pytest.raises(RunError, match="begins several runs"):
        base.get("aabb")
    with pytest.raises(RunError, match="no run 'ffff'"):
        base.get("ffff")
    for wrong in ("../x", "zz", "", "123456789", "' OR 1=1"):
        with pytest.raises(RunError, match="not a run's id"):
            base.get(wrong)


def test_adding_is_all_or_none(base):
    first = record()
    with pytest.raises(RunError):
        base.add([record(), first, first])
    assert base.records() == []


def test_steps_are_kept_under_their_numbers_and_the_history_tells_of_repeats(base):
    run = record(claim="t")
    base.add([run])
    base.put_steps(run.id, "t", {0: {"v": 1}, 2: {"v": 3}})
    base.put_steps(run.id, "t", {0: {"v": 1}, 1: {"v": 2}, 2: {"v": 4}})
    assert base.steps(run.id) == [{"v": 1}, {"v": 2}, {"v": 4}]
    assert [(e["what"], e["words"]) for e in base.events(run.id)] == [
        ("made", "by ann"),
        ("step", "0"),
        ("step", "2"),
        ("step", "1"),
        ("step again", "2"),
    ]


def test_a_worker_that_was_replaced_may_not_write(base):
    run = record(claim="old", state="running")
    base.add([run])
    base.apply(run.id, "vanish", claim="old")
    base.apply(run.id, "resume")
    assert base.take("new", 60, lambda slot: 1).id == run.id
    for write in (
        lambda: base.apply(run.id, "finish", claim="old"),
        lambda: base.put_steps(run.id, "old", {0: {}}),
        lambda: base.apply(run.id, "claim", claim="old"),
    ):
        with pytest.raises(Superseded):
            write()
    assert not base.holds(run.id, "old")
    assert base.holds(run.id, "new")
    assert base.get(run.id).state == "queued"


def test_the_queue_keeps_its_order_and_each_device_its_room(base):
    runs = [record(device=d) for d in ("cpu", "cpu", "cuda:0", "cpu")]
    base.add(runs)
    taken = [base.take(f"t{i}", 60, lambda slot: 1) for i in range(3)]
    assert [t and t.id for t in taken] == [runs[0].id, runs[2].id, None]
    base.apply(runs[0].id, "claim", claim="t0")
    assert base.take("t4", 60, lambda slot: 1) is None
    base.apply(runs[0].id, "finish", claim="t0")
    assert base.take("t5", 60, lambda slot: 1).id == runs[1].id
    assert base.take("t6", 60, lambda slot: 2).id == runs[3].id


def test_a_reservation_that_led_to_nothing_is_given_away(base):
    run = record()
    base.add([run])
    assert base.take("one", 60, lambda slot: 1)
    assert base.take("two", 60, lambda slot: 1) is None
    assert base.take("three", 0, lambda slot: 1)
    assert base.get(run.id).claim == "three"


def test_of_many_who_ask_at_once_each_run_goes_to_one(base):
    runs = [record() for _ in range(10)]
    base.add(runs)
    won: list[str] = []

    def ask(number: int) -> None:
        mine = Registry(base.folder)
        while (got := mine.take(f"t{number}", 60, lambda slot: 100)) is not None:
            won.append(got.id)

    together(6, ask)
    assert sorted(won) == sorted(r.id for r in runs)


def test_a_new_registry_may_be_made_by_many_at_once(tmp_path):
    errors: list[BaseException] = []

    def make(_: int) -> None:
        try:
            Registry(tmp_path / "runs").add([record()])
        except BaseException as error:
            errors.append(error)

    together(12, make)
    assert errors == []
    assert len(Registry(tmp_path / "runs").records()) == 12


def test_an_older_registry_is_brought_up_to_date_and_a_newer_one_left_alone(tmp_path):
    folder = tmp_path / "runs"
    run = record()
    Registry(folder).add([run])
    more = (*MIGRATIONS, "ALTER TABLE runs ADD COLUMN colour TEXT; CREATE TABLE extra (x)")
    newer = Registry(folder, migrations=more)
    with newer._open() as db:
        assert db.execute("PRAGMA user_version").fetchone()[0] == len(more)
        assert db.execute("SELECT id, colour FROM runs").fetchone()["id"] == run.id
    with pytest.raises(RunError, match="newer headviz"):
        Registry(folder).records()


def test_a_migration_that_fails_leaves_everything_as_it_was(tmp_path):
    folder = tmp_path / "runs"
    Registry(folder).add([record()])
    with pytest.raises(RunError):
        Registry(folder, migrations=(*MIGRATIONS, "CREATE TABLE extra (x); CREATE TABLE extra (x)")).records()
    assert len(Registry(folder).records()) == 1


def test_a_locked_registry_can_be_read_and_says_clearly_that_it_cannot_be_written(base):
    run = record()
    base.add([run])
    base.wait = 0.2
    other = sqlite3.connect(base.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert base.get(run.id) == run
    with pytest.raises(RegistryBusy, match="locked by another program"):
        base.apply(run.id, "cancel")
    other.execute("ROLLBACK")
    other.close()
    assert base.apply(run.id, "cancel").state == "cancelled"


def test_a_damaged_registry_is_named_and_not_deleted(base):
    base.add([record()])
    for path in base.folder.glob("registry.sqlite*"):
        path.unlink()
    base.path.write_bytes(b"not a database, but longer than one hundred bytes " * 10)
    with pytest.raises(RunError, match="damaged"):
        base.records()
    assert base.path.exists()


def test_an_illegal_change_writes_nothing(base):
    run = record(state="done")
    base.add([run])
    with pytest.raises(IllegalTransition):
        base.apply(run.id, "cancel", error="x")
    assert base.get(run.id) == run
    assert [e["what"] for e in base.events(run.id)] == ["made"]


def test_deleting_takes_steps_and_history_along(base):
    run = record(claim="t")
    base.add([run])
    base.put_steps(run.id, "t", {0: {}})
    base.delete(run.id)
    assert base.steps(run.id) == []
    assert base.events(run.id) == []


def test_whether_an_older_run_may_go_on_and_whose_fault_it_was_is_read_from_its_error_once(tmp_path):
    folder = tmp_path / "runs"
    old = Registry(folder, migrations=MIGRATIONS[:1])
    errors = {
        "00000001": "The model has changed since this run was written down. Start a new run.",
        "00000002": "It was written by headviz 0.1 and cannot be read. Start the run anew.",
        "00000003": "The disk is full. Free some space, then resume the run.",
        "00000004": "headviz failed here (KeyError: 'x'). The log has the details.",
    }
    with old._write() as db:
        for run_id, error in errors.items():
            row = {**to_row(record(id=run_id)), "error": error}
            names = [name for name in row if name not in ("resumable", "code")]
            db.execute(f"INSERT INTO runs ({', '.join(names)}) VALUES ({', '.join(f':{n}' for n in names)})", row)
    result = {r.id: (r.error, r.resumable, r.code) for r in Registry(folder).records()}
    assert result == {
        i: (error, i in ("00000003", "00000004"), "fault" if i == "00000004" else "") for i, error in errors.items()
    }


def test_a_run_that_goes_on_is_resumable_again(base):
    run = record()
    base.add([run])
    base.apply(run.id, "claim")
    assert not base.apply(run.id, "fail", error="gone", resumable=False).resumable
    assert base.apply(run.id, "resume").resumable


def test_a_folder_that_was_moved_away_does_not_come_back(tmp_path):
    registry = Registry(tmp_path / "runs")
    registry.records()
    (tmp_path / "runs").rename(tmp_path / "elsewhere")
    with pytest.raises(RunError, match="moved or removed"):
        registry.records()
    assert not (tmp_path / "runs").exists()
