"""Whole distillations: the command, its folder, going on after a stop, as a run; bad input."""

import json

import pytest
import torch

import headviz
from headviz import cli
from headviz.engine import Order, Workplace, restored
from headviz.errors import Cancelled, OptionError, RunError, UserError
from headviz.extras.distillation import posterior
from headviz.extras.distillation.job import DistillationJob, distil
from headviz.extras.distillation.pieces import open_context
from headviz.extras.distillation.plan import TEACHER, DistillationPlan, PosteriorOptions
from headviz.extras.distillation.posterior import Chosen
from support.pieces import after
from support.tiny import PAIRS, TEXTS, tiny_folder

TRAINING = {"steps": 4, "batch": 4, "every": 2, "learning_rate": 1e-3}
ITERATES = {"count": 4, "gap": 1}


@pytest.fixture(scope="module")
def teacher(tmp_path_factory):
    return str(tiny_folder(tmp_path_factory.mktemp("teacher") / "m", "bert", layers=2))


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    rows = [
        f"{t}\t{p}\t{['entailment', 'neutral', 'contradiction'][i % 3]}"
        for i, (t, p) in enumerate(zip(TEXTS, PAIRS, strict=True))
    ]
    for split, times in (("train", 5), ("dev", 2)):
        (folder / f"{split}.tsv").write_text("a\tb\ty\n" + "\n".join(rows * times) + "\n")
    return str(folder)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pairs")
    words = [f"w{i}" for i in range(5)]
    lines = [f"{a} {b}\t{b} {a}" for a in words for b in words]
    for split in ("train", "dev"):
        (folder / f"{split}.tsv").write_text("\n".join(lines) + "\n")
    return str(folder)


def plan(teacher, data, **more):
    given = {"model": teacher, "task": "custom", "data": data, "text_columns": ("a", "b"), "label_column": "y"}
    return DistillationPlan(
        **{"remove": "heads:0.1+ffn:1", "training": TRAINING, "iterates": ITERATES, **given, **more}
    )


def command(teacher, data, out, *more):
    return [
        *("distill", "--model", teacher, "--task", "custom", "--data", data),
        *"--text-columns a,b --label-column y --steps 4 --batch 4 --every 2 --iterates 4 --gap 1".split(),
        *("--out", str(out), *more),
    ]


def without_times(value):
    if isinstance(value, dict):
        return {k: without_times(v) for k, v in value.items() if k not in ("seconds", "wall_seconds")}
    return [without_times(v) for v in value] if isinstance(value, (list, tuple)) else value


def without_places(result):
    """Nor where a model lies."""
    found = without_times(json.loads(json.dumps(result)))
    for student in found["students"]:
        for one in student["runs"]:
            del one["model"]
    return found


@pytest.mark.slow
def test_the_command_gives_what_it_promises(teacher, data, tmp_path, capsys):
    out = tmp_path / "out"
    words = command(teacher, data, out, "--remove", "heads:0.1", "--remove", "layers:1", "--init", "variational,copy")
    assert cli.main([*words, "--seeds", "0,1", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["init"] == "variational"
    assert [p["step"] for p in result["curve"]] == [0, 2, 4]
    assert set(result["curve"][0]["metrics"]) == set(result["metrics"]) == {"accuracy", "matthews"}
    assert [s["init"] for s in result["students"]] == ["variational", "copy"]
    assert result["teacher"]["partition"]["exact"] is False
    assert "norm(norm(x))" in result["notes"][0]
    assert "dev examples are among the training examples, too, so its figures look better" in result["notes"][1]
    # the folder is the first student; the others lie below it
    first = headviz.load(out)
    assert first.heads_per_layer == [3]
    assert result["parameters"] == sum(p.numel() for p in first.model.parameters())
    accuracy = headviz.evaluate(
        first, headviz.load_task("custom", data=data, text_columns=["a", "b"], label_column="y")
    )
    assert accuracy.metrics["accuracy"] == result["students"][0]["runs"][0]["metrics"]["accuracy"]
    for piece in ("variational-s1", "copy-s0", "copy-s1"):
        assert headviz.load(out / "students" / piece).num_layers == 1
    assert not (out / "iterates").exists()
    assert not (out / "training").exists()
    # asking again answers from the folder
    assert cli.main([*words, "--seeds", "0,1"]) == 0
    text = capsys.readouterr().out
    assert "variational inference" in text
    assert "not exactly" in text


@pytest.fixture(scope="module")
def whole(teacher, data, tmp_path_factory):
    """A distillation of two beginnings and two seeds, made in one go: its plan and what it found."""
    asked = plan(teacher, data, inits=("conditional", "copy"), seeds=(0, 1))
    return asked, distil(asked, tmp_path_factory.mktemp("whole") / "out")


@pytest.mark.slow
def test_a_copy_starts_where_the_zeroed_teacher_stands(teacher, data, tmp_path):
    result = distil(plan(teacher, data, remove="ffn:0", inits=("copy", "random")), tmp_path / "out")
    assert result["teacher"]["partition"]["exact"]
    assert result["teacher"]["partition"]["difference"]["largest"] < 1e-5
    assert result["teacher"]["partition"]["difference"]["changed"] == 0
    clf = headviz.load(teacher)
    from headviz.extras.distillation.layer_removal import remove
    from headviz.extras.distillation.removal import Removal

    student = remove(clf, Removal.parse("ffn:0")).student
    data_set = headviz.load_task("custom", data=data, text_columns=["a", "b"], label_column="y")
    assert headviz.evaluate(student, data_set).metrics == result["students"][0]["curve"][0]["metrics"]


@pytest.mark.slow
def test_a_stopped_distillation_goes_on(whole, tmp_path):
    asked, straight = whole
    calls = stops = 0
    limit = 3

    def cancel():
        nonlocal calls
        calls += 1
        return calls > limit

    again = None
    while again is None:
        try:
            again = distil(asked, tmp_path / "again", cancel=cancel)
        except Cancelled:
            stops += 1
            # measuring is not taken up halfway, so each try gets a little further
            calls, limit = 0, limit + 1
    assert stops > 2
    assert without_times(json.loads(json.dumps(again))) == without_times(json.loads(json.dumps(straight)))


@pytest.mark.slow
def test_a_folder_of_another_distillation_is_left_alone(teacher, data, tmp_path):
    distil(plan(teacher, data), tmp_path / "out")
    with pytest.raises(RunError, match="different inits"):
        distil(plan(teacher, data, inits=("copy",)), tmp_path / "out")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("keep")
    with pytest.raises(RunError, match="not an empty folder"):
        distil(plan(teacher, data), tmp_path / "full")
    assert [p.name for p in (tmp_path / "full").iterdir()] == ["mine.txt"]


def test_nothing_is_written_when_it_cannot_begin(teacher, data, tmp_path):
    for wrong in ({"remove": "layers:0,1"}, {"model": "/nowhere"}, {"label_column": "z"}, {"remove": "attention"}):
        with pytest.raises(UserError):
            distil(plan(teacher, data, **wrong), tmp_path / "out")
        assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_posterior_of_trainings(teacher, data, tmp_path):
    others = []
    for seed in (1, 2, 3):
        folder = tmp_path / f"t{seed}"
        tiny_folder(folder, "bert", layers=2, seed=seed)
        others.append(str(folder))
    given = {"inits": ("conditional",), "trainings": tuple(others)}
    half = distil(plan(teacher, data, **given, posterior=PosteriorOptions(shrinkage=0.5)), tmp_path / "half")
    assert half["teacher"]["prior"]["iterates"] == 3
    assert half["teacher"]["prior"]["rank"] == 2
    assert half["teacher"]["prior"]["moved"] > 0
    # random models have nothing in common: left to itself, the conditional mean is the copied weights
    result = distil(plan(teacher, data, **given), tmp_path / "out")
    assert result["teacher"]["prior"]["shrinkage"] == 1
    assert result["teacher"]["prior"]["moved"] == 0
    assert any("foretell anything" in note for note in result["teacher"]["notes"])
    tiny_folder(tmp_path / "small", "bert", layers=1)
    with pytest.raises(UserError, match="not another training"):
        distil(
            plan(teacher, data, inits=("conditional",), trainings=(others[0], str(tmp_path / "small"))), tmp_path / "b"
        )


@pytest.mark.slow
def test_a_shrinkage_that_moves_too_far_is_declined_and_says_so(teacher, data, tmp_path, monkeypatch):
    """The result tells what was declined, and students of a begun distillation keep the shrinkage of its teacher."""
    monkeypatch.setattr(posterior, "chosen", lambda *args, **how: Chosen(0.5, 0.4, 0.3))
    asked = plan(teacher, data, inits=("conditional",))
    monkeypatch.setattr(posterior, "FAR", 0.0)
    result = distil(asked, tmp_path / "far")
    prior = result["teacher"]["prior"]
    assert (prior["shrinkage"], prior["moved"]) == (1, 0)
    assert prior["declined"]["shrinkage"] == 0.5
    assert prior["declined"]["moved"] > 0
    assert any("the conditional mean is the copied weights" in note for note in result["notes"])
    copied = distil(plan(teacher, data, inits=("copy",)), tmp_path / "copy")
    assert result["students"][0]["metrics"] == copied["students"][0]["metrics"]
    # a state that an earlier version began, whose teacher had no such bound
    job, folder = DistillationJob(asked), tmp_path / "far"
    state, _ = restored(job, job.kept_in(folder))
    state = {**state, "teacher": {**state["teacher"], "prior": {**prior, "shrinkage": 0.5}}}
    context = open_context(asked, folder)
    workplace = Workplace(job, folder, context)
    workplace.do(Order.of(job, job.begin(), TEACHER))
    assert context.prior().moved == 0
    workplace.do(Order.of(job, state, "conditional-s0"))
    assert context.prior().posterior.shrinkage == 0.5
    assert context.prior().moved > 0


def test_beams_and_words_of_its_own_are_for_translators(teacher, data, tmp_path):
    with pytest.raises(OptionError, match="does not search"):
        distil(plan(teacher, data, beams=2), tmp_path / "out")
    with pytest.raises(OptionError, match="Only recurrent"):
        distil(plan(teacher, data, training={**TRAINING, "forcing": 0.5}), tmp_path / "out")
    with pytest.raises(OptionError, match="beams"):
        plan(teacher, data, beams=0)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_recurrent_translators_through_the_command(pairs, tmp_path, capsys):
    from headviz.extras.translation.recurrent import RnnTranslator

    train = headviz.load_task("custom-translation", split="train", data=pairs)
    RnnTranslator.new(train.texts, train.references, embedding=8, hidden=12, units=8).save(tmp_path / "rnn")
    words = ["distill", "--model", str(tmp_path / "rnn"), "--task", "custom-translation", "--data", pairs, "--remove"]
    more = "attention --init copy,conditional --steps 4 --batch 4 --every 2 --iterates 3 --gap 1 --beams 2".split()
    words += [*more, "--forcing", "0.5"]
    assert cli.main([*words, "--out", str(tmp_path / "out"), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert set(result["metrics"]) == {"bleu", "chrf"}
    assert result["teacher"]["partition"]["exact"]
    assert result["teacher"]["partition"]["difference"]["largest"] < 1e-5
    student = RnnTranslator.load(tmp_path / "out")
    assert student.model.attention is None
    searched = headviz.evaluate(student, headviz.load_task("custom-translation", data=pairs), beams=2)
    assert result["metrics"]["bleu"] == pytest.approx(searched.metrics["bleu"])
    assert [p["loss"] is None for p in result["curve"]] == [True, False, False]
    written = json.loads((tmp_path / "out" / "distillation.json").read_text())["plan"]
    assert (written["beams"], written["training"]["forcing"]) == (2, 0.5)
    assert student.parameters == result["parameters"]
    assert cli.main([*words[:8], "heads:0.0", "--out", str(tmp_path / "b")]) == 2
    assert "--remove attention" in capsys.readouterr().err


@pytest.mark.slow
def test_it_can_be_a_run(whole, tmp_path):
    """Through the protocol of background runs, pieces in another order, every result passed on as bytes."""
    from headviz.extras.distillation.job import make

    asked, straight = whole
    job = make(asked.to_dict())
    workplace = Workplace(job, tmp_path / "run")
    state = job.begin()
    assert job.expected(state) == 5
    while job.ready(state):
        piece = job.ready(state)[-1]
        assert job.needs(state, piece) == (["iterates"] if piece.startswith("conditional") else [])
        state = job.unpack(job.pack(after(job, state, piece, workplace)))
    assert sorted(job.steps(state)) == [0, 1, 2, 3, 4]
    done = job.finish(state, tmp_path / "run")
    assert all(headviz.load(tmp_path / "run" / m) for m in done["models"])
    plain, want = without_places(done), without_places(straight)
    for key in ("students", "teacher", "notes", "metrics"):
        assert plain[key] == want[key], key


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"inits": ("best",)}, "Choose one of: random, copy"),
        ({"inits": ()}, "at least one initialisation"),
        ({"inits": ("copy", "copy")}, "given once"),
        ({"seeds": ()}, "at least one seed"),
        ({"seeds": (-1,)}, "from 0"),
        ({"inits": ("conditional",), "posterior": {"rank": 4}}, "needs at least 5 iterates, and there are 4"),
        ({"inits": ("conditional",), "trainings": ("a",)}, "at least 2 trainings"),
        ({"posterior": {"rnk": 4}}, "Did you mean 'rank'"),
        ({"iterates": {"count": 1}}, "from 2"),
        ({"training": {"steps": 0}}, "steps"),
        ({"remove": "nothing"}, "Choose one of: heads, layers"),
    ],
)
def test_bad_plans_get_one_clear_line(teacher, data, wrong, words):
    with pytest.raises(OptionError, match=words) as error:
        plan(teacher, data, **wrong)
    assert "\n" not in str(error.value)


def test_a_plan_is_read_back(teacher, data):
    one = plan(teacher, data, inits=("variational",), posterior={"rank": 2})
    assert DistillationPlan.from_dict(json.loads(json.dumps(one.to_dict()))) == one
    assert one.digest != plan(teacher, data).digest


def test_making_a_network_leaves_the_callers_random_numbers_alone():
    torch.manual_seed(1)
    before = torch.rand(1)
    torch.manual_seed(1)
    from headviz.extras.translation.recurrent import Rnn, RnnConfig

    Rnn(RnnConfig(5, 5, 2, 2, 2))
    assert torch.equal(torch.rand(1), before)


def test_the_teachers_regression_has_no_share_of_answers_that_differ(tmp_path, capsys):
    folder = tiny_folder(tmp_path / "m", "bert", layers=2, labels=("score",), problem_type="regression")
    for split in ("train", "dev"):
        rows = [f"{t}\t{p}\t{i / 4}" for i, (t, p) in enumerate(zip(TEXTS, PAIRS, strict=True))]
        (tmp_path / f"{split}.tsv").write_text("\n".join(["a\tb\ty", *rows]) + "\n")
    words = command(str(folder), str(tmp_path), tmp_path / "out", "--remove", "layers:1")
    assert cli.main(words) == 0
    said = capsys.readouterr().out
    assert "the student with copied weights is the teacher with zeros not exactly (largest difference" in said
    state = json.loads((tmp_path / "out" / "distillation.json").read_text())
    assert state["teacher"]["partition"]["difference"]["changed"] is None
