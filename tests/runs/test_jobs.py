"""Every kind of run follows the protocol: its result does not depend on where or in which order pieces are done."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import numpy as np
import pytest

import headviz
from headviz.engine import Checkpoints, Execution, Workplace, run_here
from headviz.errors import Cancelled, OptionError, RunError
from headviz.models.feed_forward import neurons
from headviz.models.source import Source
from headviz.pruning import ALGORITHMS
from headviz.pruning.faster_search import Turn
from headviz.pruning.latency import TimeTable
from headviz.runs import reading, service
from headviz.runs.kinds import RUNS, make_job
from support.pieces import after
from support.real_runs import folders, options
from support.running import ended, essence
from support.timed import Clock


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """Times that are the same each time. Runs of their own processes measure real ones."""
    monkeypatch.setattr("headviz.pruning.faster.Timer", Clock)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return folders(tmp_path_factory.mktemp("real") / "x")


def spec_of(kind: str, place: dict[str, str]) -> dict:
    source = {
        "task": "custom",
        "data": place["data"],
        "text_columns": ["text", "pair"],
        "label_column": "label",
        "device": "cpu",
    }
    return {
        "prune": options(place, "one-shot-isp", seeds=[0, 1], keep_models="all", until=0.25),
        "finetune": {**source, "model": place["base"], "finetune": {"epochs": 1.0, "batch": 8}},
        "score": {**source, "model": place["model"], "score": "taylor", "samples": 24, "length_filter": "none"},
        "ablation": {**source, "model": place["model"]},
        "distill": {
            **source,
            "model": place["model"],
            "remove": "heads:0.0",
            "inits": ["conditional", "random"],
            "seeds": [0, 1],
            "training": {"steps": 2, "batch": 4, "every": 2},
            "iterates": {"count": 2, "gap": 1},
        },
        "faster": {
            **source,
            "model": place["model"],
            "targets": [1.2, 1.4],
            "batch": 2,
            "length": 8,
            "samples": 16,
            "importance": "labels",
        },
        "rehearsal": {"steps": 3, "chains": 3},
    }[kind]


def timeless(value):
    """Without what differs from run to run."""
    if isinstance(value, dict):
        return {k: timeless(v) for k, v in value.items() if k not in ("seconds", "phases")}
    return [timeless(v) for v in value] if isinstance(value, list) else value


def carried(kind: str, spec: dict, folder: Path, seed: int | None) -> tuple[list, dict]:
    """As the engine does it here; with a seed in random order, each state packed and unpacked, each job made again."""
    folder.mkdir()
    draw = random.Random(seed)
    job = make_job(kind, spec)
    state, workplace = job.begin(), Workplace(job, folder)
    if seed is None:
        *_, state = run_here(Execution(job, Checkpoints(folder / "checkpoints"), state), workplace)
    while pieces := list(job.ready(state)):
        piece = draw.choice(pieces)
        job = make_job(kind, json.loads(json.dumps(spec)))
        state = after(job, state, piece, workplace)
        state = job.unpack(job.pack(state))
    steps = job.steps(state)
    assert steps
    assert len(steps) == job.expected(state)
    return [timeless(steps[n]) for n in sorted(steps)], timeless(job.finish(state, folder))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*RUNS, "rehearsal"])
def test_the_order_of_pieces_does_not_matter(kind, place, tmp_path):
    spec = spec_of(kind, place)
    assert carried(kind, spec, tmp_path / "a", None) == carried(kind, spec, tmp_path / "b", 3)


def test_a_kind_runs_in_the_background_as_here(place, registry, tmp_path):
    spec = spec_of("score", place)
    run = service.start("score", spec)
    end = ended(run.id)
    assert (end.state, end.error) == ("done", "")
    steps, outcome = carried("score", spec, tmp_path / "here", None)
    assert timeless(essence(run.id)) == steps
    assert timeless(reading.show(run.id).outcome) == outcome


@pytest.mark.slow
def test_a_search_for_speed_that_is_stopped_goes_on_with_what_was_timed(place, tmp_path, monkeypatch):
    """Bit for bit, although the machine is slower now; heads alone that do not reach the target are no failure."""
    spec = {**spec_of("faster", place), "targets": [1.3, 2.4]}
    steps, outcome = carried("faster", spec, tmp_path / "a", None)
    assert [(s["remove"], s["speedup"] is None) for s in steps] == [
        ("both", False),
        ("both", False),
        ("heads", False),
        ("heads", True),
    ]
    (tmp_path / "b").mkdir()
    job = make_job("faster", spec)
    state, workplace = job.begin(), Workplace(job, tmp_path / "b")
    while len(state["find"]) < 3:
        piece = next(p for p in job.ready(state) if not p.startswith("build"))
        state = after(job, state, piece, workplace)
    raw, table = job.pack(state), state["table"]
    state = job.unpack(raw)
    with pytest.raises(Cancelled):
        after(job, state, job.ready(state)[0], tmp_path / "b", None, lambda: True)
    workplace = Workplace(job, tmp_path / "b")
    while pieces := job.ready(state):
        state = after(job, state, pieces[0], workplace)
    assert [timeless(s) for _, s in sorted(job.steps(state).items())] == steps
    assert timeless(job.finish(state, tmp_path / "b")) == {**outcome, "table": table}


def test_a_search_that_was_begun_before_turns_were_kept_goes_on(place):
    job = make_job("faster", {**spec_of("faster", place), "beside": False})
    old = {"table": {}, "find": {"both-1.2": {}}, "build": {}}
    assert job.ready(old) == ["build:both-1.2", "turn:both-1.4:0"]
    now = job.absorb(old, "turn:both-1.4:0", json.dumps({"turn": [{"sizes": [1]}], "find": None}).encode())
    assert job.ready(now) == ["build:both-1.2", "turn:both-1.4:1"]


@pytest.mark.slow
def test_targets_with_training_share_their_rounds(place, tmp_path):
    """Each round cuts what the one before has left; a run that was stopped in any of them ends in the same models."""
    finetune = {"epochs": 1.0, "batch": 4, "learning_rate": 1e-3}
    spec = {**spec_of("faster", place), "targets": [2.4, 1.3], "beside": False, "finetune": finetune}
    steps, outcome = carried("faster", spec, tmp_path / "a", None)
    assert [s["target"] for s in steps] == [2.4, 1.3]
    far, near = (headviz.load(tmp_path / "a" / s["model"]) for s in steps)
    assert set(far.present.off) > set(near.present.off)
    assert all(a <= b for a, b in zip(neurons(far), neurons(near), strict=True))
    assert outcome["models"] == ["models/both-2.4", "models/both-1.3"]
    assert sorted(p.name for p in (tmp_path / "a" / "models").iterdir()) == ["both-1.3", "both-2.4"]
    job = make_job("faster", spec)
    assert list(job.spec.rounds) == ["both-1.3", "both-1.77", "both-2.4"]
    state, done = job.begin(), []
    (tmp_path / "b").mkdir()
    while pieces := job.ready(state):  # a new process for each piece
        (piece,) = pieces
        state = after(job, job.unpack(job.pack(state)), piece, tmp_path / "b")
        done.append(job.work_done(state))
    # a round that only leads to a target is a third of its epochs, and the fastest model takes the least time
    near_work, between, far_work = np.diff(sorted({0.0, *done}))
    assert between < far_work < near_work
    assert done[-1] == pytest.approx(job.expected(state))
    assert [timeless(s) for _, s in sorted(job.steps(state).items())] == steps


@pytest.mark.slow
def test_a_run_of_an_earlier_version_keeps_the_repair_that_it_names(place, tmp_path):
    spec = {**spec_of("faster", place), "targets": [1.3], "beside": False, "importance": "labels", "repair": "none"}
    job = make_job("faster", spec)
    state = job.begin()
    while not state["build"]:
        (piece,) = job.ready(state)
        for turn in state["turn"].get("both-1.3", ()):
            turn["choice"].pop("repair", None)
        state = after(job, state, piece, tmp_path)
    assert state["build"]["both-1.3"]["repair"] == "none"
    assert state["build"]["both-1.3"]["error"] is None


@pytest.mark.slow
def test_a_stopped_search_keeps_its_turns_however_fast_the_machine_is_then(place, tmp_path, monkeypatch):
    """The table says too little of a model's time, so that a search takes several turns. Each is timed once."""
    spec = {**spec_of("faster", place), "targets": [1.5], "beside": False}
    timed = []

    class Slower(Clock):
        def __call__(self, clf):
            timed.append(clf)
            jitter = 1 + 0.01 * (len(timed) % 7)  # no two measurements agree
            return jitter * (super().__call__(clf) + sum(clf.heads_per_layer) * sum(neurons(clf)) / 20)

    monkeypatch.setattr("headviz.pruning.faster.Timer", Slower)
    monkeypatch.setattr("headviz.pruning.faster_search.CLOSE", 1e-4)
    job = make_job("faster", spec)
    state, kept = job.begin(), []
    while not state["build"]:
        state = job.unpack(job.pack(state))
        (piece,) = job.ready(state)
        begun = len(timed)
        state = after(job, state, piece, tmp_path)  # as in a process that was started again
        if piece.startswith("turn"):
            now = state["turn"]["both-1.5"]
            assert now[: len(kept)] == kept
            assert (len(timed) > begun) == (len(now) > len(kept))
            kept = now
    assert len(kept) > 1
    again = job.load(tmp_path).shared
    again.table = TimeTable.from_dict(state["table"])
    turns = [Turn.from_dict(t) for t in kept]
    result, _ = again.search("both", turns[0].choice).best(1.5, turns)
    assert result.to_dict() == state["find"]["both-1.5"]


@pytest.mark.slow
def test_the_ablation_is_that_of_the_library(place, tmp_path):
    from headviz.analyses.ablation import ablate

    spec = {**spec_of("ablation", place), "ablation": "mean", "reference": 12}
    _, outcome = carried("ablation", spec, tmp_path / "a", 1)
    clf = headviz.load(place["model"], device="cpu")
    columns = {"data": place["data"], "text_columns": ("text", "pair"), "label_column": "label"}
    data, train = (headviz.load_task("custom", split=split, **columns) for split in ("dev", "train"))
    reference = headviz.sample(train, 12, length_filter=None)
    whole = timeless(ablate(headviz.Evaluator(clf, data), ablation="mean", reference=reference).to_dict())
    assert json.loads(json.dumps(outcome)) == json.loads(json.dumps(whole))


def test_an_ablation_whose_metric_is_undefined_has_no_costs(place, tmp_path):
    steps, outcome = carried(
        "ablation", {**spec_of("ablation", place), "metric": "matthews", "limit": 1}, tmp_path / "a", 1
    )
    assert json.loads(json.dumps(steps, allow_nan=False)) == steps
    assert [step["metrics"] for step in steps] == [{"largest cost": None, "smallest cost": None}] * 2
    assert steps[0]["costs"] == [[head, None] for head in range(4)]
    assert outcome["values"] == [[None] * 4] * 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "own"),
    [("random", {}), ("michel-2019", {}), pytest.param("conductance-kendall", {"steps": 4}, marks=pytest.mark.soak)],
)
def test_a_score_from_many_pieces_is_that_of_the_library(name, own, tmp_path):
    """On a cluster the pieces are shared out; the table is the one of headviz score."""
    place = folders(tmp_path / "real", train=300)
    columns = {"text_columns": ("text", "pair"), "label_column": "label"}
    data = headviz.load_task("custom", split="train", data=place["data"], **columns)
    clf = headviz.load(place["model"], device="cpu")
    drawn = headviz.sample(data, 270, 3, length_filter="none")
    spec = {**spec_of("score", place), "score": name, "samples": 270, "seed": 3, "options": own, "off": "1.2"}
    job = make_job("score", spec)
    assert len(job.ready(after(job, job.begin(), "check", tmp_path))) == (1 if name == "random" else 3)
    _, outcome = carried("score", spec, tmp_path / name, 2)
    how = {"preset": name} if name == "michel-2019" else {"score": name}
    how |= {"seed": 3} if name == "random" else {}
    mask = headviz.HeadMask.full(2, 4).without([(1, 2)])
    whole = headviz.score_heads(clf, drawn, mask=mask, cache=False, **how, **own)
    assert outcome == json.loads(json.dumps(whole.to_dict()))
    assert outcome["values"][1][2] is None
    with pytest.raises(OptionError, match="length_filter"):
        make_job("score", {**spec, "length_filter": "short"})


@pytest.mark.slow
def test_a_scoring_of_many_examples_is_several_pieces_in_any_order(tmp_path):
    """The parts of a scoring lie in the checkpoint until the mask is chosen, and only the choice is sent them."""
    spec = options(folders(tmp_path / "real", train=300), "iterative", samples=300, until=0.25, seeds=[0, 1])
    assert carried("prune", spec, tmp_path / "a", None) == carried("prune", spec, tmp_path / "b", 5)

    job = make_job("prune", spec)
    workplace = Workplace(job, tmp_path / "a")
    held = after(job, None, "check", workplace)
    parts = [f"choose-s0-k1-p{i}" for i in range(3)]
    assert [p for p in job.ready(held) if p.startswith("choose-s0")] == parts
    alone = len(job.parcel(held, parts[1]))
    for piece in parts:
        held = after(job, held, piece, workplace)
    assert "choose-s0-k1" in job.ready(held)
    assert len(job.parcel(held, "choose-s1-k1-p0")) == alone  # without the others' parts
    assert len(job.parcel(held, "choose-s0-k1")) > alone
    held = after(job, held, "choose-s0-k1", workplace)
    assert not held.parts
    with pytest.raises(RunError, match="no piece"):
        job.parcel(held, "choose-s7-k1-p0")


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_spec_of_every_algorithm_is_read_back(algorithm, place):
    spec = options(place, algorithm)
    assert make_job("prune", json.loads(json.dumps(spec))).plan == make_job("prune", spec).plan


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "changed"), [("ablation", "model"), ("score", "data"), ("faster", "model"), ("faster", "data")]
)
def test_a_model_or_data_that_change_between_pieces_are_refused(kind, changed, place, tmp_path):
    """A table with the layers of two models, or of two data sets, would look like any other."""
    spec = {**spec_of(kind, place), "targets": [1.2]} if kind == "faster" else spec_of(kind, place)
    for name in ("model", "data"):
        spec[name] = str(shutil.copytree(place[name], tmp_path / name))
    job = make_job(kind, spec)
    state = after(job, job.begin(), job.ready(job.begin())[0], tmp_path)
    if changed == "model":
        shutil.rmtree(spec["model"])
        shutil.copytree(place["base"], spec["model"])
    else:
        for path in Path(spec["data"]).iterdir():
            rows = path.read_text(encoding="utf-8").splitlines(keepends=True)
            path.write_text("".join(rows[:1] + rows[2:] + rows[1:2]), encoding="utf-8")
    state = job.unpack(job.pack(state))
    with pytest.raises(RunError, match=f"The {changed} of this run has changed") as refused:
        after(job, state, job.ready(state)[0], tmp_path)
    assert (refused.value.code, refused.value.resumable) == ("source-changed", False)


def test_a_recipe_says_how_many_examples_its_training_takes(place, tmp_path, monkeypatch):
    """`headviz finetune` and pruning runs took them; a run of this kind took its updates alone."""
    model = shutil.copytree(place["base"], tmp_path / "m")
    (model / "recipe.json").write_text('{"finetune": {"epochs": 1.0, "batch": 4}, "examples": 24}')
    asked: list[int | None] = []
    whole = Source.dataset

    def dataset(self, split, limit=None):
        asked.append(limit)
        return whole(self, split, limit)

    monkeypatch.setattr(Source, "dataset", dataset)
    recipe = {"model": str(model), "task": "demo", "device": "cpu", "dev_limit": 20}
    for spec, limit in (
        (recipe, 24),
        ({**recipe, "train_limit": 30}, 30),
        ({**recipe, "train_limit": 40, "finetune": {"batch": 8}}, 40),
        ({**spec_of("finetune", place), "model": str(model), "finetune": None}, None),  # data of one's own: all
    ):
        make_job("finetune", spec).load()
        assert asked[-2] == limit
