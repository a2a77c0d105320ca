"""Plans that cannot be carried out: one clear line, and nothing written."""

import pytest

import headviz
from headviz.errors import ModelError, OptionError, TaskError
from headviz.heads import HeadMask
from headviz.pruning import FinetuneOptions, State
from headviz.pruning.check import start
from headviz.pruning.context import base_of
from headviz.pruning.finetuning import examples_of, recipe_of
from headviz.pruning.job import run_plan
from headviz.pruning.trainer import Diverged
from headviz.tasks import Dataset, get_task
from support.jobs import data_of, model_of
from support.plain import evaluate
from support.pruning_plans import by_hash, context, make_data, plan
from support.tiny import tiny_classifier, tiny_folder


def refused(c, p, error, says):
    with pytest.raises(error, match=says):
        start(c, p)
    assert not c.folder.exists()


def test_heads_chosen_on_the_examples_that_they_are_judged_on_are_noted(tmp_path):
    """One file for both splits ran to its end without a word."""
    data = make_data(48)
    (note,) = start(context(tmp_path, train=data, dev=data), plan()).notes
    assert note.startswith("48 of 48 dev examples are among the training examples, too, so heads are chosen on what ")


def test_a_base_of_another_shape(tmp_path):
    other = tiny_folder(tmp_path / "other", layers=4, heads=2)

    def load_base(seed):
        return headviz.load(other, fresh_labels=("a", "b", "c"), seed=seed, device="cpu")

    says = "hidden layers 4 instead of 3, attention heads 2 instead of 4.*made from"
    refused(context(tmp_path, load_base=load_base), plan("igspp"), ModelError, says)
    # an algorithm that does not retrain never looks at it
    start(context(tmp_path, load_base=load_base), plan("iterative"))


def test_a_task_with_another_number_of_labels(tmp_path):
    two = Dataset(get_task("rte"), "dev", *_pairs(make_data(6)), [0, 1, 0, 1, 0, 1])
    c = context(tmp_path, train=two, dev=two)
    refused(c, plan(), TaskError, "not_entailment.*entailment, neutral, contradiction")
    four = tiny_classifier(labels=("entailment", "neutral", "contradiction", "other"))
    refused(context(tmp_path, clf=four), plan(), TaskError, "'demo' has 3 labels.*has 4 .*--label-order")


def _pairs(data):
    return data.texts, data.pairs


def test_too_few_examples_of_a_class(tmp_path):
    data = make_data(48)
    none = data.subset([i for i, y in enumerate(data.gold) if y != 1])
    says = r"no example of neutral.*lacks 8\. Give more training examples"
    refused(context(tmp_path, train=none), plan(), TaskError, says)
    refused(context(tmp_path), plan(samples=2), OptionError, "sample of 2 cannot hold .* each of 3 .* at least 3")
    narrow = plan(length_filter="std")
    refused(context(tmp_path, train=none), narrow, TaskError, r"\. Switch the length filter off .*or give more")
    few = data.subset([i for i, y in enumerate(data.gold) if y != 1] + [int((data.gold == 1).argmax())])
    state = start(context(tmp_path, train=few), plan(samples=24))
    assert state.notes == (
        "The scoring sample of seed 0 is not balanced: neutral has 1 of 8. Ask for fewer samples (3 can be balanced).",
    )


def test_a_diverging_training_leaves_what_was_computed(tmp_path):
    c = context(tmp_path)
    p = plan(
        "igspp", retrain_full=False, finetune=FinetuneOptions(epochs=1, batch=8, learning_rate=1e36, max_grad_norm=1e30)
    )
    with pytest.raises(Diverged, match="Lower the learning rate"):
        for _ in run_plan(p, c):
            pass
    state = State.load(c.folder)
    assert [r.step for r in state.records] == [0]
    assert state.reference.metrics["accuracy"] is not None


def test_a_model_that_has_been_pruned_already(tmp_path):
    mask = HeadMask.full(3, 4).without([(0, 0)])
    small = headviz.prune(context(tmp_path).clf, mask)
    refused(context(tmp_path, clf=small), plan(), ModelError, "pruned already: 1 of its heads")
    c = context(tmp_path)
    c.load_base = lambda seed: headviz.prune(context(tmp_path).base(seed), mask)
    refused(c, plan("igspp"), ModelError, "base model .* has been pruned already")


@pytest.mark.slow
def test_a_family_whose_heads_cannot_be_removed(tmp_path):
    albert = tiny_classifier("albert")
    refused(context(tmp_path, clf=albert), plan("igspp"), ModelError, "not really removed")
    refused(context(tmp_path, clf=albert), plan("iterative", repair="bias"), ModelError, "not really removed")
    *_, state = run_plan(plan("iterative"), context(tmp_path, clf=albert))  # masking works
    assert len(state.steps) == 3


@pytest.mark.slow
def test_a_family_whose_layers_must_keep_a_head(tmp_path):
    """Masked runs go to the last head; where models are really cut, the plan says so before the work, not amid it."""
    gpt = tiny_classifier("gpt2", layers=2, heads=4)
    c = context(tmp_path, layers=2, clf=gpt)
    *_, state = run_plan(plan("one-importance", until=1.0), c)
    assert [r.sparsity for r in state.records] == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert state.records[-1].metrics == evaluate(gpt, c.dev, HeadMask.from_hex("00", 2, 4)).metrics
    base = tiny_classifier("gpt2", layers=2, heads=4, seed=1)
    for name, options in (("isp", {}), ("one-importance", {"repair": "bias"})):
        c = context(tmp_path / name, layers=2, clf=gpt, load_base=lambda seed: base)
        refused(c, plan(name, until=0.5, **options), OptionError, "A layer may lose all its heads.*--keep-per-layer 1")
        start(c, plan(name, until=0.5, keep_per_layer=1, **options))
        start(c, plan(name, until=0.25, **options))  # fewer than a layer has


def test_a_missing_base_is_named_with_the_algorithms_that_need_one():
    p = plan("igspp", base=None, model="some/model")
    with pytest.raises(OptionError, match=r"--base.*igspf, igspp, isp, one-shot-isp"):
        base_of(p)
    assert base_of(plan("igspp", base=None, model="demo")) == "demo-pretrained"
    assert base_of(plan("iterative", base=None, model="some/model")) is None


def test_scores_of_another_shape_are_a_fault(tmp_path):
    def wrong(clf, data, score, **_):
        class T:
            values = by_hash(tiny_classifier(layers=2), data, score, mask=None, seed=0).values

        return T()

    with pytest.raises(ModelError, match=r"gave a table of \(2, 4\)"):
        for _ in run_plan(plan(), context(tmp_path, score=wrong)):
            pass


def test_a_models_own_recipe_is_its_default(tmp_path):
    folder = tiny_folder(tmp_path / "m")
    assert recipe_of(folder) is None
    (folder / "recipe.json").write_text('{"finetune": {"epochs": 7, "batch": 5}}')
    assert recipe_of(folder) == FinetuneOptions(epochs=7, batch=5)
    assert examples_of(folder) is None
    c = context(tmp_path, recipe=recipe_of(folder))
    assert start(c, plan("igspp", finetune=None)).finetune["epochs"] == 7
    assert start(c, plan("igspp")).finetune["epochs"] == 1
    (folder / "recipe.json").write_text('{"finetune": {}, "examples": 500}')
    assert examples_of(folder) == 500
    (folder / "recipe.json").write_text('{"finetune": {}, "examples": 0}')
    with pytest.raises(OptionError, match="examples"):
        examples_of(folder)
    # options of a training from scratch say nothing about fine-tuning
    (folder / "recipe.json").write_text('{"pretraining": {"epochs": 3}}')
    assert (recipe_of(folder), examples_of(folder)) == (None, None)
    for bad in ("[1]", '{"finetune": 3}', "no json", '{"finetune": {"epoch": 1}}'):
        (folder / "recipe.json").write_text(bad)
        with pytest.raises(OptionError):
            recipe_of(folder)


def test_a_repair_through_the_layers_for_texts_that_are_computed_apart(tmp_path):
    """It was planned and started, and failed at its first step."""
    data = data_of("vector", 4)
    c = context(tmp_path, clf=model_of("vector"), train=data, dev=data)
    refused(c, plan("one-importance", repair="refit"), ModelError, "encodes each text of a pair separately")
    start(c, plan("one-importance", repair="bias"))
