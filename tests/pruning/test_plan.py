"""Plans and options: what is refused, in which words, and that JSON gives the same plan back."""

import json

import pytest

from headviz.answers import ANSWERS
from headviz.errors import OptionError, UserError
from headviz.pruning import FinetuneOptions, PruningPlan
from headviz.pruning.check import heads_off
from support.pruning_plans import plan


def test_json_gives_an_equal_plan():
    p = plan("isp", seeds=(0, 3), score_options={"steps": 8}, text_columns=["a", "b"], repair="bias")
    assert PruningPlan.from_dict(json.loads(json.dumps(p.to_dict()))) == p
    assert PruningPlan.from_dict(json.loads(json.dumps(p.to_dict()))).digest == p.digest
    assert plan("isp", seeds=(0, 4)).digest != p.digest


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"step": 0}, "never removes a head"),
        ({"step": -0.1}, "step is a share from 0 to 1"),
        ({"step": float("nan")}, "step is a share from 0 to 1"),
        ({"until": 0.0}, "removes nothing"),
        ({"until": 1.5}, "until is a share"),
        ({"algorithm": "igsp"}, "Did you mean 'igspp'|Did you mean 'isp'|Did you mean 'igspf'"),
        ({"repair": "biass"}, "Did you mean 'bias'"),
        ({"seeds": ()}, "at least one seed"),
        ({"seeds": (1, 1)}, "repeats one"),
        ({"seeds": (-1,)}, "whole number"),
        ({"seeds": (2**32,)}, "to 4,294,967,295"),
        ({"samples": 0}, "samples is a whole number of at least 1"),
        ({"keep_per_layer": -1}, "keep_per_layer"),
        ({"sparsities": (0.5, 0.3)}, "must rise"),
        ({"algorithm": "isp", "sparsities": (0.5,)}, "share of the remaining heads"),
        ({"finetune": {"epoch": 3}}, "Did you mean 'epochs'"),
        ({"model": " "}, "needs a model"),
    ],
)
def test_refused(options, says):
    with pytest.raises(OptionError, match=says):
        plan(**{"algorithm": "one-importance", **options})


def test_a_misspelt_option_is_answered_with_the_nearest():
    with pytest.raises(OptionError, match="Did you mean 'keep_per_layer'"):
        PruningPlan.from_dict({**plan().to_dict(), "keep_per_layers": 1})


@pytest.mark.parametrize(
    "options",
    [
        {"epochs": 0},
        {"batch": 0},
        {"batch": 1.5},
        {"learning_rate": 0},
        {"learning_rate": float("inf")},
        {"warmup": 2},
        {"accumulation": 0},
        {"precision": "fp16"},
        {"schedule": "step"},
        {"weight_decay": -1},
        {"early_stopping": 0},
        {"checkpoint_steps": 0},
        {"epsilon": -1e-8},
        {"max_grad_norm": 0},
    ],
)
def test_fine_tuning_options_are_checked(options):
    with pytest.raises(OptionError, match=next(iter(options))):
        FinetuneOptions(**options)


def test_the_default_score_depends_on_the_task_and_a_stored_plan_keeps_its_own():
    from headviz.scores.catalogue import DEFAULT, SCORES, TO_PRUNE_BY

    assert all(SCORES[TO_PRUNE_BY].fits(answer) for answer in ANSWERS.values())
    for task in ("demo", "a plugin's", "demo-translation"):
        assert PruningPlan(model="m", task=task, algorithm="iterative").score == TO_PRUNE_BY
    masked = PruningPlan(model="m", task="demo", algorithm="iterative", base="b", score_source="masked-lm")
    assert SCORES[masked.score].pretrained
    stored = PruningPlan(model="m", task="demo", algorithm="iterative", score=DEFAULT).to_dict()
    assert PruningPlan.from_dict(stored).score == DEFAULT  # as it was stored before the default was another


def test_a_stored_plan_of_before_the_choice_of_last_step_keeps_whole_steps_and_its_digest():
    new = PruningPlan(model="m", task="demo", algorithm="iterative", step=0.3, until=0.75)
    stored = {name: value for name, value in new.to_dict().items() if name != "last_step"}
    old = PruningPlan.from_dict(stored)
    assert (old.last_step, new.last_step) == ("full", "target")
    assert old.to_dict() == stored
    assert old.digest != new.digest
    assert (heads_off(old, 12, 12), heads_off(new, 12, 12)) == ([43, 86, 130], [43, 86, 108])
    assert PruningPlan.from_dict(new.to_dict()) == new
    assert PruningPlan.from_options(stored) == new
    with pytest.raises(OptionError, match="last_step"):
        PruningPlan.from_options({**stored, "last_step": "beyond"})


def test_a_plan_names_the_metrics_that_judge_it() -> None:
    plan = PruningPlan("demo", "demo", "one-importance", metrics=("f1_macro", "roc_auc"))
    assert plan.dataset("dev", limit=6).task.metrics == ("f1_macro", "roc_auc")
    record = plan.to_dict()
    assert PruningPlan.from_dict(record) == plan
    del record["metrics"]
    assert PruningPlan.from_dict(record).dataset("dev", limit=6).task.metrics == ("accuracy",)
    with pytest.raises(UserError, match="Did you mean 'roc_auc'"):
        PruningPlan("demo", "demo", "one-importance", metrics=("roc_auk",)).dataset("dev", limit=6)
