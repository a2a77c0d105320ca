"""KL against torch's own; trainings that can be stopped; what each method starts from and learns."""

import dataclasses

import numpy as np
import pytest
import torch

from distillation.test_partition import copied
from headviz.errors import OptionError, TaskError, UserError
from headviz.extras.distillation.layer_removal import remove
from headviz.extras.distillation.plan import METHODS, DistillationPlan, PosteriorOptions, TrainingOptions
from headviz.extras.distillation.posterior import Divergence, MemoryIterates, Posterior, Prior, draw, starting_log_sd
from headviz.extras.distillation.problem import Batches, Classifying, RnnTranslating
from headviz.extras.distillation.removal import Removal
from headviz.extras.distillation.students import CHECKPOINT, Diverged, _Run, start_weights, train
from headviz.models.folders import fresh
from headviz.options import read_options
from headviz.tasks import Dataset, get_task
from support.marks import seeds
from support.tiny import PAIRS, TEXTS, tiny_classifier

FAST = TrainingOptions(steps=6, batch=4, every=2, learning_rate=1e-3)


def classifying(family="bert", copies=4):
    clf = tiny_classifier(family)
    texts, pairs = TEXTS * copies, PAIRS * copies
    labels = np.arange(len(texts)) % len(TEXTS) % 3  # a text has one label, so it can be learned
    data = Dataset(get_task("demo"), "train", tuple(texts), tuple(pairs), labels)
    return clf, Classifying(clf, data, data.subset(range(6)))


def noisy(model, count=5, spread=0.02, seed=0):
    g = torch.Generator().manual_seed(seed)
    return MemoryIterates(
        [{n: p + spread * torch.randn(p.shape, generator=g) for n, p in model.named_parameters()} for _ in range(count)]
    )


def prepared(text="heads:0.1+ffn:1", covariance="low-rank", **more):
    clf, problem = classifying()
    result = remove(clf, Removal.parse(text))
    posterior = Posterior(
        dict(clf.model.named_parameters()), noisy(clf.model), PosteriorOptions(covariance, shrinkage=0.5, **more)
    )
    return clf, problem, result.student, Prior(posterior, result.partition)


# the divergence --------------------------------------------------------------------------------


@pytest.mark.parametrize("covariance", ["low-rank", "diagonal"])
def test_the_divergence_is_that_of_dense_gaussians(covariance):
    class Small(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c = (torch.nn.Parameter(torch.randn(s)) for s in ((3, 2), (4,), (2,)))

    from headviz.extras.distillation.layer_removal import Entries, Partition

    torch.manual_seed(0)
    model = Small()
    weights = dict(model.named_parameters())
    shapes = {n: p.shape for n, p in weights.items()}
    part = Partition(shapes, {"a": Entries("a"), "b": Entries("b", 0, torch.tensor([0, 2]))}, (Entries("c"),))
    options = PosteriorOptions(covariance, shrinkage=0.5, scale=2.0)
    prior = Prior(Posterior(weights, noisy(model, 6, 0.5), options), part)
    blocks = [prior.block(n) for n in ("a", "b")]
    mean = torch.cat([b.mean.flatten() for b in blocks]).double()
    factor = torch.cat([b.factor.flatten(1) for b in blocks], 1).double()
    dense = torch.cat([b.diagonal.flatten() for b in blocks]).double().diag() + factor.T @ factor
    w = {"a": torch.randn(3, 2), "b": torch.randn(2)}
    log_sd = {"a": torch.randn(3, 2) / 2 - 1, "b": torch.randn(2) / 2 - 1}
    flat = torch.cat([w["a"].flatten(), w["b"]]).double()
    sd = torch.cat([log_sd["a"].flatten(), log_sd["b"]]).double().exp()
    normal = torch.distributions.MultivariateNormal
    want = torch.distributions.kl_divergence(normal(flat, sd.square().diag()), normal(mean, dense))
    result = Divergence(prior)(w, log_sd)
    torch.testing.assert_close(result.double(), want, rtol=1e-4, atol=1e-3)
    # zero where q is a diagonal prior itself, and where it starts from
    if covariance == "diagonal":
        start = {n: starting_log_sd(prior, n) for n in w}
        assert abs(float(Divergence(prior)(prior.mean(), start))) < 1e-3


def test_draws_are_reparameterised():
    mean, log_sd = (
        {"a": torch.full((20_000,), 2.0, requires_grad=True)},
        {"a": torch.full((20_000,), -1.0, requires_grad=True)},
    )
    torch.manual_seed(0)
    sample = draw(mean, log_sd)["a"]
    assert abs(float(sample.detach().mean()) - 2) < 0.02
    assert abs(float(sample.detach().std()) - np.exp(-1)) < 0.01
    sample.square().mean().backward()
    # d/dw E[x^2] = 2w, d/d log s E[x^2] = 2 s^2, each shared out over the entries
    assert abs(float(mean["a"].grad.sum()) - 4) < 0.05
    assert abs(float(log_sd["a"].grad.sum()) - 2 * np.exp(-2)) < 0.05


# starts ----------------------------------------------------------------------------------------


def test_starts_are_what_they_are_called():
    clf, problem, student, prior = prepared()
    weights = {
        name: dict(start_weights(student, problem, METHODS[name], prior, 1).named_parameters())
        for name in ("random", "copy", "conditional")
    }
    kept = copied(prior.partition, dict(clf.model.named_parameters()))
    assert all(torch.equal(w, kept[n]) for n, w in weights["copy"].items())
    mean = prior.mean()
    assert all(torch.equal(w, mean[n]) for n, w in weights["conditional"].items())
    assert prior.moved > 0
    for name, w in weights["random"].items():
        if w.numel() and w.ndim > 1:
            assert not torch.allclose(w, kept[name]), name
        elif "LayerNorm.weight" in name:
            assert bool((w == 1).all())
    again = dict(start_weights(student, problem, METHODS["random"], prior, 1).named_parameters())
    other = dict(start_weights(student, problem, METHODS["random"], prior, 2).named_parameters())
    matrix = "bert.encoder.layer.0.attention.self.query.weight"
    assert torch.equal(again[matrix], weights["random"][matrix])
    assert not torch.equal(other[matrix], weights["random"][matrix])


@pytest.mark.slow
@pytest.mark.parametrize("family", ["bert", "modernbert"])
def test_fresh_weights_do_not_know_the_old_ones(family):
    one = fresh(tiny_classifier(family, seed=0).model, 5)
    other = fresh(tiny_classifier(family, seed=9).model, 5)
    assert all(torch.equal(p, q) for p, q in zip(one.parameters(), other.parameters(), strict=True))


# trainings -------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", seeds(["variational", "kd"], [n for n in METHODS if n not in ("variational", "kd")]))
def test_every_method_learns(name):
    """Twelve texts can be learned by heart: the loss falls, and the caller's models stay."""
    clf, problem, student, prior = prepared(scale=4.0)
    before = clf.digest, student.digest
    options = dataclasses.replace(FAST, steps=60, every=20, batch=8, learning_rate=5e-3, kl_weight=1e-3, anneal=0.5)
    result = train(student, problem, METHODS[name], options, 0, prior=prior, teacher=clf.model)
    losses = [p.loss for p in result.curve[1:]]
    assert losses[-1] < losses[0] - 0.1
    assert [p.step for p in result.curve] == [0, 20, 40, 60]
    assert all(0 <= p.metrics["accuracy"] <= 1 for p in result.curve)
    assert (clf.digest, student.digest) == before
    assert (result.curve[-1].kl is not None) == (name == "variational")
    assert problem.measure(result.subject) == result.metrics
    assert result.subject.heads_per_layer == student.heads_per_layer


@pytest.mark.slow
def test_a_heavy_prior_holds_the_student():
    _, problem, student, prior = prepared()
    mean = prior.mean()

    def strayed(weight):
        options = dataclasses.replace(FAST, steps=8, every=8, learning_rate=5e-3, kl_weight=weight)
        result = train(student, problem, METHODS["variational"], options, 0, prior=prior)
        return sum(float((p - mean[n]).square().sum()) for n, p in result.subject.model.named_parameters())

    assert strayed(1000.0) < strayed(0.0) / 2


@pytest.mark.slow
def test_weight_decay_leaves_the_standard_deviations_alone():
    """It drew every log σ towards 0, a standard deviation of 1."""
    _, problem, student, prior = prepared()
    one, other = (
        _Run(student, problem, METHODS["variational"], dataclasses.replace(FAST, weight_decay=decay), 0, prior, None)
        for decay in (0.0, 10.0)
    )
    one.advance()  # both have the same gradients in the first step
    other.advance()
    assert all(torch.equal(one.log_sd[n], other.log_sd[n]) for n in one.log_sd)
    assert not torch.equal(one.weights["classifier.weight"], other.weights["classifier.weight"])


@pytest.mark.slow
def test_a_stopped_training_ends_with_the_same_weights(tmp_path):
    clf, problem, student, prior = prepared()
    given = {"prior": prior, "teacher": clf.model}
    whole = train(student, problem, METHODS["variational"], FAST, 3, **given)

    class Killed(Exception):
        pass

    def killed(step, model):
        if step == 5:
            raise Killed

    with pytest.raises(Killed):
        train(student, problem, METHODS["variational"], FAST, 3, folder=tmp_path / "t", at_step=killed, **given)
    again = train(student, problem, METHODS["variational"], FAST, 3, folder=tmp_path / "t", **given)
    assert again.subject.digest == whole.subject.digest
    bare = [dataclasses.replace(p, seconds=0) for p in again.curve]
    assert bare == [dataclasses.replace(p, seconds=0) for p in whole.curve]


@pytest.mark.slow
def test_checkpoints_of_others_and_damaged_ones(tmp_path):
    _, problem, student, _ = prepared()
    whole = train(student, problem, METHODS["copy"], FAST, folder=tmp_path)
    with pytest.raises(UserError, match="another training"):
        train(student, problem, METHODS["copy"], dataclasses.replace(FAST, learning_rate=1e-2), folder=tmp_path)
    (tmp_path / CHECKPOINT).write_bytes((tmp_path / CHECKPOINT).read_bytes()[:999])
    assert train(student, problem, METHODS["copy"], FAST, folder=tmp_path).subject.digest == whole.subject.digest


@pytest.mark.parametrize(
    ("every", "seen"), [(1, "the student's answers are not numbers"), (6, "its loss is not a number")]
)
def test_a_training_that_explodes_says_so(every, seen):
    """At a point of its curve its answers are seen first, between two points the next loss."""
    _, problem, student, _ = prepared()
    options = dataclasses.replace(FAST, every=every, learning_rate=1e30)
    with pytest.raises(Diverged, match=f"{seen} any more at step 1 of 6. Lower the learning rate"):
        train(student, problem, METHODS["copy"], options)


@pytest.mark.slow
def test_the_share_of_given_words_is_that_of_the_options():
    """A training with words of its own goes another way, is repeatable, and only a recurrent model has them."""
    from headviz.extras.translation.recurrent import RnnTranslator

    data = Dataset(get_task("custom-translation"), "train", ("a b c", "b c a", "c a b"), ("c b a", "a c b", "b a c"))
    teacher = RnnTranslator.new(data.texts, data.references, embedding=4, hidden=6, units=4)
    problem = RnnTranslating(teacher, data, data)
    options = [dataclasses.replace(FAST, batch=3, forcing=share) for share in (1.0, 0.3, 0.3, 0.0)]
    for name in ("copy", "kd"):
        result = [
            train(teacher, problem, METHODS[name], o, 0, teacher=teacher.model).subject.model.output.weight
            for o in options
        ]
        assert torch.equal(result[1], result[2])
        assert not torch.equal(result[0], result[1])
        assert not torch.equal(result[1], result[3])
    clf, classes = classifying()
    with pytest.raises(OptionError, match="Only recurrent"):
        train(clf, classes, METHODS["copy"], options[1])


def test_what_an_earlier_version_began_goes_on():
    """Later options at their defaults are not written: plans and checkpoints of version 0.1 keep their digests."""
    assert "forcing" not in TrainingOptions().to_dict()
    assert TrainingOptions(forcing=0.5).to_dict()["forcing"] == 0.5
    plan = DistillationPlan("demo", "demo", "layers:3", training=TrainingOptions(steps=7))
    assert plan.digest == "b6635467fc1dad93030c15baa4c35179c4b77a31c2a7f2645a6ffc8899947ff1"
    assert "beams" not in plan.to_dict()
    other = DistillationPlan("demo", "demo", "layers:3", training={"forcing": 0.5}, beams=4)
    assert DistillationPlan.from_dict(other.to_dict()) == other
    assert len({plan.digest, other.digest, dataclasses.replace(other, beams=5).digest}) == 3


# small things ----------------------------------------------------------------------------------


def test_every_example_is_seen_once_per_epoch():
    lengths = [i * 7 % 20 for i in range(20)]
    batches = Batches(lengths, 4, seed=7)
    seen = [i for step in range(5) for i in batches.at(step)]
    assert sorted(seen) == list(range(20))
    assert [batches.at(5 + step) for step in range(5)] != [batches.at(step) for step in range(5)]
    assert Batches(lengths, 4, seed=7).at(8) == batches.at(8)
    assert sorted(Batches([1, 2, 3], 8, 0).at(11)) == [0, 1, 2]
    # texts of similar length share a batch
    widths = [max(lengths[i] for i in batches.at(s)) - min(lengths[i] for i in batches.at(s)) for s in range(5)]
    assert widths == [3] * 5


def test_rates_and_weights_over_time():
    options = TrainingOptions(steps=100, learning_rate=1.0, warmup=0.1, anneal=0.5, kl_weight=2.0)
    assert options.rate_at(0) == pytest.approx(0.1)
    assert max(options.rate_at(s) for s in range(100)) == pytest.approx(1.0)
    assert options.rate_at(99) == pytest.approx(1 / 90)
    assert [options.kl_weight_at(s) for s in (0, 25, 50, 99)] == [0.0, 1.0, 2.0, 2.0]
    assert TrainingOptions(kl_weight=2.0).kl_weight_at(0) == 2.0
    assert read_options(TrainingOptions, dataclasses.asdict(options), "option") == options


@pytest.mark.parametrize(
    "wrong",
    [
        {"steps": 0},
        {"batch": 1.5},
        {"learning_rate": 0.0},
        {"anneal": 2.0},
        {"kl_weight": -1.0},
        {"schedule": "step"},
        {"forcing": 1.5},
    ],
)
def test_bad_options_get_one_clear_line(wrong):
    with pytest.raises(OptionError):
        TrainingOptions(**wrong)
    with pytest.raises(OptionError, match="Did you mean 'steps'"):
        read_options(TrainingOptions, {"step": 3}, "training option")


def test_unlabelled_and_foreign_data_are_refused():
    from headviz.extras.translation.recurrent import RnnTranslator

    clf, problem = classifying()
    bare = dataclasses.replace(problem.train, labels=None)
    with pytest.raises(TaskError, match="gold labels"):
        Classifying(clf, bare, problem.dev)
    teacher = RnnTranslator.new(["a"], ["b"], embedding=2, hidden=2, units=2)
    with pytest.raises(TaskError, match="has no reference translations"):
        RnnTranslating(teacher, problem.train, problem.dev)
