"""Heads and neurons off for speed: every step against an obvious oracle, with times that a test can set."""

import dataclasses
import itertools
import json
import re
import shutil
import zlib

import numpy as np
import pytest
import torch

import headviz
from headviz.cli import main
from headviz.errors import ModelError, OptionError, TaskError
from headviz.heads import in_order
from headviz.models.feed_forward import neurons, outer_map, smaller
from headviz.pruning import faster, latency
from headviz.pruning import search as s
from headviz.pruning.faster import FasterSteps
from headviz.pruning.faster_search import Search, Shape, SizeGroup, Turn, allot, losses
from headviz.pruning.latency import Timer, kept_table, measure_speed, timed_table
from headviz.pruning.options import IMPORTANCE, TRAINS, FasterOptions, FinetuneOptions, Round
from headviz.pruning.reconstruction import text_layers
from headviz.pruning.trainer import Watch
from headviz.pruning.unit_gradients import SOFT, unit_gradients
from headviz.storage.store import Store
from support.gated import gated
from support.jobs import CLASSES, data_of, model_of
from support.marks import seeds
from support.pruning_plans import make_data
from support.timed import Clock
from support.tiny import tiny_classifier, tiny_folder

DATA = make_data(24)


pytestmark = pytest.mark.usefixtures("no_waiting")


@pytest.fixture(scope="module")
def clf():
    return tiny_classifier()


# importance ---------------------------------------------------------------------------------------


def test_gradients_do_not_depend_on_order_or_padding(clf):
    order = np.random.default_rng(0).permutation(len(DATA))
    one, other = unit_gradients(clf, DATA), unit_gradients(clf, DATA.subset(order))
    np.testing.assert_allclose(one.heads[order], other.heads, atol=1e-6)
    np.testing.assert_allclose(one.neurons[1][order], other.neurons[1], atol=1e-5)


# sizes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_no_choice_of_sizes_within_the_budget_loses_less(seed):
    rng = np.random.default_rng(seed)
    groups = []
    for _ in range(4):
        sizes = tuple(range(5))
        loss = losses(rng.random(4), sizes)
        groups.append(SizeGroup(sizes, np.cumsum(np.append(0, rng.integers(1, 9, 4))).astype(float), loss))
    budget = 0.5 * sum(g.seconds[-1] for g in groups) + 0.2  # off whole and half numbers: the grid rounds times up
    every = itertools.product(range(5), repeat=4)
    fits = [c for c in every if sum(g.seconds[k] for g, k in zip(groups, c, strict=True)) <= budget]
    best = min(sum(g.loss[k] for g, k in zip(groups, c, strict=True)) for c in fits)
    found = allot(groups, budget)
    assert sum(g.loss[k] for g, k in zip(groups, found, strict=True)) == pytest.approx(best)
    assert tuple(found) in fits
    assert allot(groups, -1.0) is None


def test_layers_that_lose_the_same_do_not_go_by_place():
    groups = [SizeGroup((0, 6, 12), np.array([0.0, 1.0, 2.0]), np.array([2.0, 1.0, 0.0])) for _ in range(12)]
    drawn = [allot(groups, 13.1, seed) for seed in range(40)]
    assert all(sum(sizes) == 78 for sizes in drawn)
    kept = np.mean(drawn, axis=0)
    assert abs(kept[:6].sum() - kept[6:].sum()) < 12
    assert len({tuple(sizes) for sizes in drawn}) > 20


def test_a_sweep_is_the_greedy_search_written_out():
    rng = np.random.default_rng(1)
    g = rng.normal(size=(30, 70))
    fisher = g.T @ g
    order = np.argsort(np.diag(fisher)).tolist()
    off = order[:5]
    for i in order[5:]:
        more = [*off, i]
        off = min(([j for j in more if j != out] for out in more), key=lambda o: fisher[np.ix_(o, o)].sum())
    assert s.best_subset(fisher, tuple(sorted(order[:5])), order) == tuple(sorted(off))


@pytest.mark.parametrize("twins", [False, True])
def test_units_that_are_equal_in_mathematics_go_equally_often(twins):
    """Of 80 units none costs less than another, up to rounding; or each has a twin, and one of the two goes."""
    rows = np.eye(80) if twins else np.linalg.qr(np.random.default_rng(0).normal(size=(200, 80)))[0]
    if twins:
        rows[:, 40:] = rows[:, :40]
    fisher = rows.T @ rows
    gone = np.zeros(80)
    for seed in range(60):
        order = in_order(range(80), np.diag(fisher), seed)
        found = list(s.best_subset(fisher, tuple(sorted(order[:40])), order))
        assert not twins or len({i % 40 for i in found}) == 40
        gone[found] += 1
    assert abs(gone - 30).max() < 17  # 4.4 standard deviations


# tuning -------------------------------------------------------------------------------------------


def neuron_parts(clf, small):
    return [p.rows.fit + p.rows.held for p in text_layers(clf, small, DATA, None, None) if p.name == "W_2"]


def test_the_wanted_output_of_a_narrowed_block_is_the_whole_models(clf):
    """In the first layer, with all heads there, the two models differ by the block alone."""
    small = smaller(clf, clf.present, [range(0, 64, 2), range(64), range(64)])
    [m] = neuron_parts(clf, small)
    seen, wanted = [], []
    layer = clf.module("encoder.layer.0")
    for e in clf.encode(DATA.texts, DATA.pairs):
        inside = []
        hook = layer.intermediate.register_forward_hook(lambda *x, got=inside: got.append(x[2]))
        clf.logits(clf.collate([e]))
        hook.remove()
        seen.append(inside[0][0].double())
        wanted.append(torch.nn.functional.linear(inside[0][0], layer.output.dense.weight, layer.output.dense.bias))
    x, y = torch.cat(seen).numpy(), torch.cat(wanted).double().numpy()
    mine = np.column_stack([x[:, ::2], np.ones(len(x))])
    np.testing.assert_allclose(m.outer, mine.T @ mine, atol=1e-3)
    np.testing.assert_allclose(m.cross, mine.T @ y, atol=1e-3)


def test_tuning_brings_the_layers_nearer_to_the_whole_models(clf):
    work = FasterSteps(clf, DATA, FasterOptions(batch=2, length=8, repair="tune"))
    shape = Shape(clf.full_mask.without([(0, 0), (1, 1)]), (tuple(range(40)), tuple(range(30)), ()))
    small, error, _ = work.built(shape, work.options.repair)
    assert error["after"] <= error["before"]
    assert neurons(small) == [40, 30, 0]
    assert not {p.data_ptr() for p in small.model.parameters() if p.numel()} & {
        p.data_ptr() for p in clf.model.parameters()
    }


# times --------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_table_finds_what_each_part_costs(clf):
    table = timed_table(clf, Clock(clf, 2, 8))
    assert (table.whole, table.base) == (10 + 24 + 24, 10)
    np.testing.assert_allclose(table.of_neurons([0, 12, 64]), [0, 1.5, 8])
    before = headviz.prune(clf, clf.full_mask.without([(0, h) for h in range(4)]))
    for one in (table, timed_table(before, Clock(before, 2, 8))):
        np.testing.assert_allclose(one.of_heads([0, 1, 4]), [0, 2, 8])


def test_pairs_give_the_ratio_and_its_interval(clf):
    small = smaller(clf, clf.full_mask.without([(0, 0)]), [range(32)] * 3)
    found = measure_speed(clf, small, Clock(clf, 2, 8))
    assert found.speedup == found.low == found.high == pytest.approx(58 / 44)
    real = measure_speed(clf, small, Timer(clf, 2, 8))
    assert 0 < real.low <= real.speedup <= real.high


@pytest.mark.slow
@pytest.mark.parametrize(("target", "remove"), [(2.0, "both"), (1.3, "heads")])
def test_a_search_meets_its_target(clf, target, remove):
    timer = Clock(clf, 2, 8)
    search = Search(clf, unit_gradients(clf, DATA), timed_table(clf, timer), timer, remove)
    shape, speed = search.find(target)
    assert abs(speed.speedup / target - 1) < 0.1
    small = shape.cut(clf)
    assert remove == "both" or neurons(small) == neurons(clf)
    assert Shape.from_dict(json.loads(shape.to_json())) == shape
    if remove == "both":
        with pytest.raises(OptionError, match=r"7× is out of reach.*5\.80× as fast"):
            search.find(7)


# the whole ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_table_of_times_is_kept_for_models_of_one_shape(clf, tmp_path, monkeypatch):
    store, made = Store(tmp_path), []
    real = latency.timed_table
    monkeypatch.setattr(latency, "timed_table", lambda *given: (made.append(given), real(*given))[1])
    first = kept_table(clf, Clock(clf, 2, 8), store)
    assert kept_table(clf, Clock(clf, 2, 8), store) == first
    retrained = tiny_classifier(seed=7)
    assert retrained.digest != clf.digest
    assert kept_table(retrained, Clock(retrained, 2, 8), store) == first
    assert len(made) == 1
    others = clf, Clock(clf, 4, 8)
    assert kept_table(*others, store).batch == 4
    smaller = headviz.prune(clf, clf.full_mask.without([(0, 1)]))
    assert kept_table(smaller, Clock(smaller, 2, 8), store) != first
    kept_table(clf, Clock(clf, 2, 8))
    assert len(made) == 4


@pytest.mark.slow
def test_several_targets_and_a_training(clf, monkeypatch):
    monkeypatch.setattr("headviz.pruning.faster.Timer", Clock)
    first, second = headviz.prune_faster(
        clf, DATA, (1.2, 1.6), dev=DATA, batch=2, length=8, retrain=FinetuneOptions(epochs=1, batch=8)
    )
    assert (first.target, second.target) == (1.2, 1.6)
    assert sum(second.neurons_per_layer) + sum(second.heads_per_layer) < sum(first.neurons_per_layer) + sum(
        first.heads_per_layer
    )
    assert set(first.metrics) == set(first.baseline) == set(DATA.task.metrics)
    assert first.change["difference"] == pytest.approx(
        first.metrics[first.change["metric"]] - first.baseline[first.change["metric"]]
    )
    assert json.loads(first.to_json())["heads_per_layer"] == first.model.heads_per_layer
    assert first.plot().data[0].x[0] == first.speedup


@pytest.mark.slow
def test_what_classes_and_calibration_lose_is_that_of_paired(clf, monkeypatch):
    monkeypatch.setattr("headviz.pruning.faster.Timer", Clock)
    dev = make_data(60, "dev", seed=1)
    result = headviz.prune_faster(clf, DATA, 3, dev=dev, batch=2, length=8, repair="none")
    before, after = (headviz.evaluate(m, dev) for m in (clf, result.model))
    assert set(result.classes) == set(dev.label_names)
    for i, name in enumerate(dev.label_names):
        wanted = headviz.paired(dev.gold, before.predictions, after.predictions, f"f1_{i}")
        assert result.classes[name]["difference"] == pytest.approx(wanted.difference)
    wanted = headviz.paired(dev.gold, before.probabilities, after.probabilities, "neg_calibration_error")
    assert result.calibration["difference"] == pytest.approx(wanted.difference)
    assert result.ceiling == clf.cost(length=8).flops / result.model.cost(length=8).flops > 1


@pytest.mark.slow
@pytest.mark.parametrize("job", ["number", "labels", "tokens", "vector"])
def test_answers_are_the_same_as_a_whole(job, monkeypatch):
    """Of a text with many words, not of its words; numbers are hardly ever the same."""
    monkeypatch.setattr(faster, "Timer", Clock)
    one, data = model_of(job), data_of(job, repeat=4)
    asked = {"batch": 2, "length": 8, "samples": 12, "importance": "labels", "repair": "none"}
    result = headviz.prune_faster(one, data, 2, dev=data, **asked)
    before, after = (headviz.evaluate(m, data).predictions for m in (one, result.model))
    if job in ("number", "vector"):
        assert result.agreement is None
    else:
        same = [np.array_equal(a, b) for a, b in zip(before, after, strict=True)]
        assert result.agreement == pytest.approx(np.mean(same))
        assert np.mean(before == after) > np.mean(same)
    assert result.change["metric"] == data.task.primary_metric


def test_wrong_calls_are_one_clear_line(clf):
    for wrong in (1, 0.5, float("nan"), "2", True, [1.5, 0.9], []):
        with pytest.raises(OptionError):
            headviz.prune_faster(clf, DATA, wrong)
    for given in (
        {"batch": 0},
        {"length": 65},
        {"remove": "layers"},
        {"repair": "glue"},
        {"importance": "price"},
        {"runtime": "tensorflow"},
    ):
        with pytest.raises(OptionError):
            headviz.prune_faster(clf, DATA, 2.0, **given)
    with pytest.raises(ModelError, match="ALBERT"):
        headviz.prune_faster(tiny_classifier("albert"), DATA, 2.0)
    with pytest.raises(ModelError, match="no bias"):
        headviz.prune_faster(tiny_classifier("modernbert"), DATA, 1.3, batch=2, length=8, repair="bias")
    with pytest.raises(TaskError):
        headviz.prune_faster(clf, DATA.subset([]), 2.0)


# the command --------------------------------------------------------------------------------------


def call(capsys, *words):
    status = main(["prune", *map(str, words)])
    out, err = capsys.readouterr()
    return status, out, err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--faster 1 --task demo", "not a number above 1"),
        ("--faster 2,2 --task demo", "given once"),
        ("--faster 2", "needs the task"),
        ("--faster 2 --task demo --off 1.1", "Give one of the two"),
        ("--faster 2 --task demo --epochs 3", "add --retrain"),
        ("--off 1.1 --batch 8", "goes with --faster"),
    ],
)
def test_what_contradicts_itself_is_refused_before_the_model_is_loaded(words, said, tmp_path, capsys):
    status, _, err = call(capsys, "--model", tmp_path / "nowhere", "--out", tmp_path / "out", *words.split())
    assert (status, err.count("\n")) == (2, 1)
    assert said in err


@pytest.fixture
def common(tmp_path, monkeypatch):
    """Words of the command for a small model and data of its own."""
    monkeypatch.setattr(faster, "Timer", Clock)
    for split in ("train", "dev"):
        rows = [f"{x.text}\t{x.pair}\t{x.label}" for x in DATA]
        (tmp_path / f"{split}.tsv").write_text("\n".join(["one\ttwo\tlabel", *rows]) + "\n")
    base = tiny_folder(tmp_path / "base", labels=("entailment", "neutral", "contradiction"))
    task = ["--task", "custom", "--data", tmp_path, "--text-columns", "one,two", "--label-column", "label"]
    return ["--model", base, *task, "--device", "cpu", "--batch", 2, "--length", 8]


@pytest.mark.slow
def test_the_command_saves_what_it_reports(common, tmp_path, capsys):
    base, words = tmp_path / "base", common
    status, out, err = call(capsys, *words, "--faster", 1.5, "--out", tmp_path / "small", "--json")
    assert status == 0, err
    found = json.loads(out)
    assert found["speedup_low"] <= found["speedup"] <= found["speedup_high"]
    assert abs(found["speedup"] / 1.5 - 1) < 0.1
    small = headviz.load(tmp_path / "small")
    assert small.heads_per_layer == found["heads_per_layer"]
    dev = headviz.load_task("custom", data=tmp_path, text_columns=["one", "two"], label_column="label")
    assert headviz.evaluate(small, dev).metrics == pytest.approx(found["metrics"])
    assert headviz.evaluate(headviz.load(base), dev).metrics == pytest.approx(found["baseline"])
    drawn = tmp_path / "both.html"
    status, out, err = call(capsys, *words, "--faster", "1.2,1.5", "--out", tmp_path / "both", "--figure", drawn)
    assert status == 0, err
    assert "1.2×: heads per layer" in out
    page = drawn.read_text(encoding="utf-8")
    assert page.count('"name":"heads and neurons"') == 1
    assert page.count('"name":"heads and neurons: by arithmetic alone"') == 1
    assert headviz.load(tmp_path / "both" / "1.2x").heads_per_layer


@pytest.mark.slow
def test_a_search_with_training_goes_on_where_it_was_stopped(common, tmp_path, capsys, monkeypatch):
    words = [*common, "--retrain", "--epochs", 1, "--faster", 2, "--json", "--out"]
    status, out, err = call(capsys, *words, tmp_path / "whole")
    assert status == 0, err
    whole = json.loads(out)
    monkeypatch.setattr("headviz.progress.LONG", 0.0)
    trained, real = [], faster.fine_tune

    def stopped(*args, **how):
        if trained:
            raise KeyboardInterrupt
        trained.append(real(*args, **how))
        return trained[0]

    with monkeypatch.context() as patch:
        patch.setattr(faster, "fine_tune", stopped)
        status, _, err = call(capsys, *words, tmp_path / "parts")
    assert status != 0
    assert "the same command goes on" in err
    assert "note: training in 2 rounds takes about" in err
    assert re.search(r"1 of 2 rounds, about \d+ minutes left", err)
    assert "--learning-rate R" in err
    status, _, err = call(capsys, *words[:-3], 3, "--json", "--out", tmp_path / "parts")
    assert status == 2
    assert "another search" in err
    status, out, err = call(capsys, *words, tmp_path / "parts")
    assert status == 0, err
    assert json.loads(out)["metrics"] == whole["metrics"]
    assert headviz.load(tmp_path / "whole").digest == headviz.load(tmp_path / "parts").digest
    assert sorted(p.name for p in tmp_path.iterdir()) == ["base", "dev.tsv", "parts", "train.tsv", "whole"]


@pytest.mark.slow
@pytest.mark.parametrize("call_number", [1, 2])  # after a third of an epoch, and after a whole one
def test_a_stop_after_a_training_trains_nothing_anew(common, tmp_path, capsys, monkeypatch, call_number):
    words = [*common, "--retrain", "--epochs", 1, "--faster", 2, "--json", "--out"]
    rows = [f"{x.text}\t{x.pair}\t{x.label}" for x in make_data(100)]  # four updates, of which the first round does two
    (tmp_path / "train.tsv").write_text("\n".join(["one\ttwo\tlabel", *rows]) + "\n")
    calls, updates, speed, update = [], [], faster.measure_speed, Watch.on_step_end

    def stopped(*args, **how):
        calls.append(args)
        if len(calls) == call_number:
            raise KeyboardInterrupt
        return speed(*args, **how)

    def counted(self, args, state, control, **how):
        if self.saves:  # not those that tell how long a training takes
            updates.append(state.global_step)
        return update(self, args, state, control, **how)

    monkeypatch.setattr(Watch, "on_step_end", counted)
    status, _, err = call(capsys, *words, tmp_path / "whole")
    assert status == 0, err
    whole = updates.copy()
    updates.clear()
    with monkeypatch.context() as patch:
        patch.setattr(faster, "measure_speed", stopped)
        assert call(capsys, *words, tmp_path / "parts")[0] != 0
    status, _, err = call(capsys, *words, tmp_path / "parts")
    assert status == 0, err
    assert updates == whole
    assert headviz.load(tmp_path / "whole").digest == headviz.load(tmp_path / "parts").digest


@pytest.mark.slow
def test_learning_rates_are_tried_and_those_of_a_stopped_run_are_kept(clf, tmp_path, monkeypatch):
    monkeypatch.setattr(faster, "LEAST_VALIDATION", 6)
    monkeypatch.setattr(faster, "LEAST_TRIAL", 2)
    data, step = make_data(60), Round(1.5, True)
    options = FinetuneOptions(epochs=1, batch=8, learning_rate=1e-4)
    shape = Shape(clf.full_mask.without([(0, 0)]), (tuple(range(20)),) * 3)
    tried, real = [], faster.fine_tune

    def counted(small, train, options, *args, **how):
        tried.append(options.learning_rate)
        if len(tried) == stop:
            raise KeyboardInterrupt
        return real(small, train, options, *args, **how)

    seen = []

    def work(folder):
        faster_options = FasterOptions(batch=2, length=8, retrain=options)
        return FasterSteps(clf, data, faster_options, folder=folder, progress=lambda *report: seen.append(report))

    monkeypatch.setattr(faster, "fine_tune", counted)
    stop = 0
    whole, _, rates = work(None).built(shape, "refit", step, "whole")
    assert [row["rate"] for row in rates] == pytest.approx([1e-4, 3e-4, 1e-3])
    clock = [(done, total) for phase, done, total in seen if phase == TRAINS]
    assert clock == [(done, 13) for done in range(1, 14)]  # three trials of two updates, then the training of seven
    best = min(rates, key=lambda row: row["distance"])
    assert tried.pop() == best["rate"]
    tried.clear()
    stop = 3
    with pytest.raises(KeyboardInterrupt):
        work(tmp_path).built(shape, "refit", step, "both-1.5")
    stop = 0
    again, _, same = work(tmp_path).built(shape, "refit", step, "both-1.5")
    assert same == rates
    assert tried == pytest.approx([1e-4, 3e-4, 1e-3, 1e-3, best["rate"]])
    assert again.digest == whole.digest
    tried.clear()
    assert (
        work(tmp_path).built(shape, "refit", step, "both-1.5")[0].digest == whole.digest
    )  # stopped before it is saved
    assert tried == [best["rate"]]
    work(tmp_path).forget_training("both-1.5")
    assert not list(tmp_path.iterdir())


def test_no_text_says_when_its_own_training_stops(clf, monkeypatch):
    monkeypatch.setattr(faster, "LEAST_VALIDATION", 6)
    rows = [{"text": f"red {i // 2}", "label": CLASSES[i % 3]} for i in range(120)]  # each text twice
    named = {"text_columns": "text", "label_column": "label"}
    ranking = data_of("rank", repeat=32)
    for data in (headviz.load_task("custom", data=rows, **named), ranking):
        shuffled = data.subset(np.random.default_rng(1).permutation(len(data)))
        drawn = []
        for one in (data, shuffled):
            watched, rest = FasterSteps(clf, one, FasterOptions(batch=2, length=8))._validation_split
            assert 6 <= len(watched) <= 24
            assert not set(watched.texts) & set(rest.texts)
            drawn.append(set(watched.texts))
        assert drawn[0] == drawn[1]


@pytest.mark.parametrize(("factor", "batch"), [(1e39, 8), (1e25, 60)])  # the weights overflow, or the answers alone
def test_a_rate_that_diverges_is_not_taken(clf, monkeypatch, factor, batch):
    monkeypatch.setattr(faster, "LEAST_VALIDATION", 6)
    monkeypatch.setattr(faster, "LEAST_TRIAL", 3 if batch == 8 else 1)
    monkeypatch.setattr(faster, "FACTORS", (1.0, factor))
    retrain = FinetuneOptions(epochs=1, batch=batch, learning_rate=1e-4, max_grad_norm=1e30)
    work = FasterSteps(clf, make_data(60), FasterOptions(batch=2, length=8, retrain=retrain))
    _, _, rates = work.built(Shape(clf.full_mask.without([(0, 0)]), (tuple(range(20)),) * 3), "refit")
    assert rates[0]["distance"] > 0
    assert rates[1]["distance"] is None


def test_a_later_round_is_repaired_towards_the_whole_model(clf):
    """Also where the round before has left something else."""
    start = headviz.prune(clf, clf.full_mask.without([(0, 0)]))
    with torch.no_grad():
        for weight in start.model.parameters():
            weight.add_(0.05 * torch.randn(weight.shape, generator=torch.Generator().manual_seed(1)))
    work = FasterSteps(clf, DATA, FasterOptions(batch=2, length=8))
    work.begin(start)
    shape = Shape(start.present.without([(1, 1)]), (tuple(range(60)),) * 3)
    wanted = torch.tensor(headviz.evaluate(clf, DATA).logits)

    def distance(of):
        return float(torch.nn.functional.mse_loss(torch.tensor(headviz.evaluate(of, DATA).logits), wanted))

    assert distance(work.built(shape, "refit")[0]) < 0.7 * distance(shape.cut(start))


def test_a_training_that_makes_it_worse_is_not_taken(clf, monkeypatch):
    monkeypatch.setattr(faster, "LEAST_VALIDATION", 6)
    retrain = FinetuneOptions(epochs=1, batch=8, learning_rate=0.5)
    options = FasterOptions(batch=2, length=8, rate="given", retrain=retrain)
    shape = Shape(clf.full_mask.without([(0, 0)]), (tuple(range(60)),) * 3)
    trained = FasterSteps(clf, make_data(60), options).built(shape, "none")[0]
    plain = FasterSteps(clf, make_data(60), dataclasses.replace(options, retrain=None)).built(shape, "none")[0]
    assert trained.digest == plain.digest


# what a unit is worth -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("importance", "kind"), [("labels", "zero"), ("labels", "mean"), ("labels-mean", "zero"), ("answers-mean", "zero")]
)
def test_worths_are_derivatives_written_out(clf, importance, kind):
    """By the gates of heads and neurons one by one, closed towards what stands in or towards the unit's mean."""
    data = DATA.subset(range(6))
    clf = headviz.standing_in(clf, kind, data)
    loss, to_mean = IMPORTANCE[importance]
    whole = unit_gradients(clf, data, loss=loss)
    made = whole.to_mean if to_mean else whole
    means = [torch.tensor(m, dtype=torch.float32) * to_mean for m in whole.means]
    stands = (lambda layer, head: means[layer][head]) if to_mean else None
    for i, e in enumerate(clf.encode(data.texts, data.pairs)):
        gates = [torch.ones(n, requires_grad=True) for n in neurons(clf)]
        heads = tuple(torch.ones(4, requires_grad=True) for _ in range(3))
        hooks = [
            outer_map(clf, layer).register_forward_pre_hook(
                lambda m, args, g=gate, mean=means[3 + layer][:, 0]: (mean + (args[0] - mean) * g,)
            )
            for layer, gate in enumerate(gates)
        ]
        call = clf.call(edit_outputs=gated(clf, {h: heads[h.layer][h.head] for h in clf.present.kept}, stands))
        with torch.enable_grad():
            logits = clf.forward(clf.collate([e]), call)
            if loss == "labels":
                lost = torch.nn.functional.cross_entropy(logits, torch.tensor([int(data.labels[i])]))
            else:
                noise = np.random.default_rng(zlib.crc32(str(e.ids).encode())).standard_normal(logits.shape[1:])
                wanted = logits.detach() + torch.tensor(noise, dtype=torch.float32)
                lost = clf.answer.imitated(logits, wanted, SOFT)
            slopes = torch.autograd.grad(lost, [*heads, *gates])
        for hook in hooks:
            hook.remove()
        for layer in range(3):
            np.testing.assert_allclose(made.heads[i, layer], slopes[layer].flatten(), atol=1e-5)
            np.testing.assert_allclose(made.neurons[layer][i], slopes[3 + layer], atol=1e-5)


def test_means_are_those_of_the_tokens_that_the_loss_depends_on(clf):
    """All real tokens, and in the last layer the first one of each text."""
    seen = [[], [], []]
    for e in clf.encode(DATA.texts, DATA.pairs):
        hooks = [
            outer_map(clf, layer).register_forward_pre_hook(lambda m, args, at=layer: seen[at].append(args[0][0]))
            for layer in range(3)
        ]
        clf.logits(clf.collate([e]))
        for hook in hooks:
            hook.remove()
    means = unit_gradients(clf, DATA).means[3:]
    seen[2] = [states[:1] for states in seen[2]]
    for mean, states in zip(means, seen, strict=True):
        np.testing.assert_allclose(mean[:, 0], torch.cat(states).mean(dim=0), atol=1e-5)


def test_biases_take_up_the_mean_of_what_goes(clf):
    """In the first layer, whose inputs stay: there the mean of its result does not move."""
    shape = Shape(clf.full_mask.without([(0, 0), (0, 2)]), (tuple(range(64)),) * 3)
    work = FasterSteps(clf, DATA, FasterOptions(batch=2, length=8, repair="bias"))
    small, error, _ = work.built(shape, work.options.repair)
    assert error is None

    def mean(of):
        sums = []
        hook = of.projections(0).output.register_forward_hook(lambda m, args, out: sums.append(out.reshape(-1, 32)))
        for e in of.encode(DATA.texts, DATA.pairs):
            of.logits(of.collate([e]))
        hook.remove()
        return torch.cat(sums).mean(dim=0)

    np.testing.assert_allclose(mean(small), mean(clf), atol=1e-5)
    assert not torch.allclose(mean(shape.cut(clf)), mean(clf), atol=1e-4)


@pytest.mark.slow
def test_the_worth_is_chosen_by_other_train_examples(clf, monkeypatch):
    monkeypatch.setattr(faster, "LEAST_HELD_OUT", 4)
    data = make_data(60)
    work = FasterSteps(
        clf, data, FasterOptions(batch=2, length=8, samples=24), table=timed_table(clf, Clock(clf, 2, 8))
    )
    work.timer = Clock(clf, 2, 8)
    choice = work.choose(1.6, "both")
    assert choice.tried[0]["importance"] == "labels"
    distances = {(row["importance"], r): row[r]["distance"] for row in choice.tried for r in ("none", "bias", "refit")}
    assert (choice.importance, choice.repair) == min(distances, key=distances.__getitem__)
    work.options = dataclasses.replace(work.options, repair="bias")
    del work._repairs
    named = work.choose(1.6, "both")
    assert named.repair == "bias"
    assert named.importance == min(named.tried, key=lambda row: row["bias"]["distance"])["importance"]
    work.options = dataclasses.replace(work.options, repair="best")
    del work._repairs
    for row in choice.tried:
        assert set(row) == {"importance", "none", "bias", "refit"}
        assert 0 <= row["refit"]["agreement"] <= 1
    taken = {(e.text, e.pair) for e in work.sample}
    assert not taken & {(e.text, e.pair) for e in work.held_out}
    assert (
        Turn.from_dict(json.loads(Turn((1,), measure_speed(clf, clf, work.timer), choice).to_json())).choice == choice
    )
    assert work.choose(1.6, "both") == choice


# runtimes -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_table_is_timed_in_the_runtime_that_is_used(monkeypatch, tmp_path):
    """One file for each size, whatever the weights are; models without heads and neurons too."""
    pytest.importorskip("onnxruntime")
    from headviz.pruning import export

    whole, written, real = tiny_classifier(layers=1), [], export.export_onnx

    def export_onnx(one, file, *more):
        """The whole model and one without heads and neurons; others have the file of the first."""
        written.append(file)
        if len(written) == 1:
            real(one, tmp_path / "whole.onnx", *more)
        if any(one.heads_per_layer):
            return shutil.copy(tmp_path / "whole.onnx", file)
        return real(one, file, *more)

    monkeypatch.setattr(export, "export_onnx", export_onnx)
    monkeypatch.setattr(latency, "POINTS", 2)
    monkeypatch.setattr(export, "SESSIONS", 2)
    work = FasterSteps(whole, DATA, FasterOptions(batch=2, length=8, runtime="onnx-int8"))
    assert "ONNX Runtime" in work.table.device
    assert work.table.device.endswith("int8")
    assert work.table.whole > 0
    assert len(written) == 4  # two sizes of heads, one more of neurons, and nothing of both
    assert work.timer(tiny_classifier(layers=1, seed=7)) > 0
    assert len(written) == 4


@pytest.mark.slow
def test_the_loss_is_that_of_the_file_that_is_timed(monkeypatch):
    """An int8 model was judged by its weights before they were rounded."""
    pytest.importorskip("onnxruntime")
    from headviz.models.onnx import export_onnx
    from headviz.pruning import export

    clf = tiny_classifier(layers=1)
    rounded = tiny_classifier(layers=1, seed=9)  # in place of the rounded model, one whose answers are others
    monkeypatch.setattr(faster, "RuntimeTimer", lambda one, batch, length, int8: Clock(one, batch, length))
    monkeypatch.setattr(export, "quantise", lambda _, out: export_onnx(rounded, out))
    asked = {"dev": DATA, "batch": 2, "length": 8, "samples": 12, "runtime": "onnx-int8", "importance": "labels"}
    result = headviz.prune_faster(clf, DATA, 1.3, **asked)
    whole, small, judged = (headviz.evaluate(one, DATA).logits.argmax(1) for one in (clf, result.model, rounded))
    assert result.agreement == pytest.approx(float(np.mean(judged == whole)))
    assert np.mean(judged == whole) != np.mean(small == whole)


@pytest.mark.slow
@pytest.mark.parametrize("family", seeds(["modernbert", "gpt_neox"], ["phi3", "deberta"]))
def test_a_search_makes_models_of_other_families_smaller(family, monkeypatch, tmp_path):
    monkeypatch.setattr(faster, "Timer", Clock)
    whole = tiny_classifier(family)
    asked = {"batch": 2, "length": 8, "samples": 12, "importance": "labels"}
    result = headviz.prune_faster(whole, DATA, 1.3, **asked)
    assert ("refit" in result.tried[0]) == (family not in ("gpt_neox", "deberta"))
    small = result.model
    assert small.cost().parameters < whole.cost().parameters
    batch = whole.collate(whole.encode(DATA.texts[:4], DATA.pairs[:4]))
    again = headviz.load(small.save(tmp_path / "small"), device="cpu")
    np.testing.assert_array_equal(again.logits(batch).numpy(), small.logits(batch).numpy())
