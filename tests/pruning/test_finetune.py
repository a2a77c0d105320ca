"""Fine-tuning: exact resumption, no trace in the caller, options that do what they say, clear failures."""

import dataclasses
import json
import random

import numpy as np
import pytest
import torch

import headviz
from headviz.errors import Cancelled, OptionError, TaskError
from headviz.heads import HeadMask
from headviz.pruning import FinetuneOptions
from headviz.pruning.finetuning import fine_tune
from headviz.pruning.trainer import Diverged, Order, Teacher
from headviz.pruning.training_folder import FINGERPRINT, remove_training, seal, whole_checkpoint
from headviz.tasks import Dataset
from support.plain import evaluate
from support.pruning_plans import make_data
from support.tiny import tiny_classifier

O = FinetuneOptions(epochs=2, batch=8, learning_rate=1e-3)  # noqa: E741
TRAIN, DEV = make_data(48), make_data(40, "dev", seed=1)
MASK = HeadMask.full(3, 4).without([(0, 1), *((1, h) for h in range(4)), (2, 3)])


@pytest.fixture(scope="module")
def clf():
    return tiny_classifier()


@pytest.fixture(scope="module")
def pruned(clf):
    # one layer without any head, one with all
    return headviz.prune(clf, HeadMask.full(3, 4).without([(0, 1), *((1, h) for h in range(4))]))


def test_a_pruned_model_stays_pruned_and_its_layers_train(pruned):
    trained = fine_tune(pruned, TRAIN, O).classifier
    assert trained.present == pruned.present
    assert trained.heads_per_layer == [3, 0, 4]
    before, after = dict(pruned.model.named_parameters()), dict(trained.model.named_parameters())
    assert before.keys() == after.keys()
    changed = {k for k in before if before[k].numel() and not torch.equal(before[k], after[k])}
    assert {k for k in before if ".attention.output.dense.bias" in k} <= changed
    assert not any(p.requires_grad for p in after.values())
    assert trained.config.headviz_num_texts == 2
    assert not hasattr(pruned.config, "headviz_num_texts")


def test_the_callers_model_and_random_numbers_stay(clf):
    weights = {k: v.clone() for k, v in clf.model.state_dict().items()}
    torch.manual_seed(3), random.seed(3), np.random.seed(3)
    expected = torch.rand(1), random.random(), np.random.rand()
    torch.manual_seed(3), random.seed(3), np.random.seed(3)
    fine_tune(clf, TRAIN, O, seed=9)
    assert (torch.rand(1), random.random(), np.random.rand()) == expected
    assert all(torch.equal(v, clf.model.state_dict()[k]) for k, v in weights.items())
    assert not any(p.requires_grad for p in clf.model.parameters())
    assert not clf.model.training


@pytest.mark.parametrize("family", ["bert", "mpnet"])
def test_a_trained_model_is_known_by_the_same_digest_when_it_is_loaded_again(family, tmp_path):
    trained = fine_tune(tiny_classifier(family), TRAIN, dataclasses.replace(O, epochs=0.2)).classifier
    trained.save(tmp_path / "saved")
    assert headviz.load(str(tmp_path / "saved"), device="cpu").digest == trained.digest


def stopped_at(question, *args, **options):
    """A training that is cancelled when it asks for the so manieth time."""
    asked = iter(range(question))
    with pytest.raises(Cancelled):
        fine_tune(*args, cancel=lambda: next(asked, None) is None, **options)


@pytest.mark.slow
@pytest.mark.parametrize(("stop", "accumulation"), [(5, 1), (7, 2)])
def test_resumption_is_exact(pruned, tmp_path, stop, accumulation):
    options = dataclasses.replace(O, checkpoint_steps=2, accumulation=accumulation, evaluate_epochs=True)
    whole = fine_tune(pruned, TRAIN, options, 1, dev=DEV)
    stopped_at(stop, pruned, TRAIN, options, 1, dev=DEV, folder=tmp_path)
    again = fine_tune(pruned, TRAIN, options, 1, dev=DEV, folder=tmp_path)
    assert again.classifier.digest == whole.classifier.digest
    assert again.curve == whole.curve


def test_a_damaged_checkpoint_is_passed_over_and_pickled_arguments_are_never_read(pruned, tmp_path):
    """Whatever is damaged, the training goes on from an older one, or from the beginning."""
    options = dataclasses.replace(O, checkpoint_steps=3)
    stopped_at(7, pruned, TRAIN, options, 1, folder=tmp_path)
    older, newest = sorted(tmp_path.glob("checkpoint-*"), key=lambda p: int(p.name[11:]))[-2:]
    assert whole_checkpoint(tmp_path) == str(newest)
    for path in sorted(newest.iterdir()):
        sound = path.read_bytes()
        for damaged in (b"", sound[:-1], b"[" * 100_000, None):
            path.unlink()
            if damaged is not None:
                path.write_bytes(damaged)
            assert whole_checkpoint(tmp_path) == (str(newest) if damaged == sound else str(older)), path.name
            path.write_bytes(sound)
    (newest / "model.safetensors").write_bytes(b"x" * 99)
    bomb = older / "training_args.bin"
    assert bomb.exists()
    bomb.write_bytes(b"cos\nsystem\n(S'touch bombed'\ntR.")
    seal(older)
    whole = fine_tune(pruned, TRAIN, options, 1)
    assert fine_tune(pruned, TRAIN, options, 1, folder=tmp_path).classifier.digest == whole.classifier.digest


def test_a_folder_of_another_training_is_refused(clf, tmp_path):
    quick = dataclasses.replace(O, epochs=0.2)
    given = {"mask": MASK, "seed": 1, "train": TRAIN, "options": quick, "folder": tmp_path}
    fine_tune(clf, **given)
    for what, change in (
        ("seed", {"seed": 2}),
        ("data", {"train": make_data(24)}),
        ("mask", {"mask": None}),
        ("mask", {"mask": HeadMask.full(3, 4).without([(0, 1)])}),
    ):
        with pytest.raises(OptionError, match=rf"another training \(different {what}\)"):
            fine_tune(clf, **{**given, **change})


@pytest.mark.slow
def test_checkpoints_of_a_head_with_its_classes_in_another_order_are_not_gone_on_with(tmp_path):
    quick = dataclasses.replace(O, epochs=0.2)
    one, turned = (tiny_classifier(labels=labels) for labels in (TRAIN.label_names, TRAIN.label_names[::-1]))
    assert one.digest == turned.digest
    fine_tune(one, TRAIN, quick, 1, folder=tmp_path)
    with pytest.raises(OptionError, match=r"another training \(different order\)"):
        fine_tune(turned, TRAIN, quick, 1, folder=tmp_path)
    # another way to say the same order, and a folder of version 0.1, which does not hold it
    fine_tune(turned, TRAIN, quick, 1, label_order=TRAIN.label_names, folder=tmp_path)
    mark = tmp_path / FINGERPRINT
    mark.write_text(json.dumps({k: v for k, v in json.loads(mark.read_text()).items() if k != "order"}))
    fine_tune(one, TRAIN, quick, 1, folder=tmp_path)


@pytest.mark.slow
def test_accumulated_small_batches_are_one_large_batch(clf):
    """Without dropout and with equal batches the updates are the same but for the order of sums."""
    still = tiny_classifier(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    plain = dataclasses.replace(O, epochs=1, group_lengths=False)
    one = fine_tune(still, TRAIN, dataclasses.replace(plain, batch=8), 4)
    two = fine_tune(still, TRAIN, dataclasses.replace(plain, batch=4, accumulation=2), 4)
    assert one.updates == two.updates == 6
    others = dict(two.classifier.model.named_parameters())
    for name, a in one.classifier.model.named_parameters():
        # softmax takes a key's bias out again: its gradient is nothing but rounding, which AdamW makes full steps of
        if not name.endswith("key.bias"):
            torch.testing.assert_close(a, others[name], atol=1e-4, rtol=1e-4, msg=name)


def test_one_update_is_adamw_by_hand():
    still = tiny_classifier(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    options = FinetuneOptions(epochs=1, batch=48, learning_rate=1e-3, schedule="constant", max_grad_norm=0.5)
    trained = fine_tune(still, TRAIN, options, 0).classifier
    import copy

    model = copy.deepcopy(still.model).requires_grad_(True)
    batch = still.collate(still.encode(TRAIN.texts, TRAIN.pairs))
    loss = torch.nn.functional.cross_entropy(model(**batch).logits, torch.tensor(TRAIN.gold))
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    torch.optim.AdamW(model.parameters(), lr=1e-3, eps=1e-8, weight_decay=0.0).step()
    # AdamW's first step is the gradient's sign: where it is nearly 0, rounding decides
    for (name, a), b in zip(trained.model.named_parameters(), model.parameters(), strict=True):
        near = b.grad.abs() > 1e-4
        torch.testing.assert_close(a[near], b.detach()[near], atol=2e-5, rtol=1e-4, msg=name)


@pytest.mark.slow
def test_the_learning_rate_follows_its_schedule(clf):
    options = dataclasses.replace(O, warmup=0.5)
    rates = [p.learning_rate for p in fine_tune(clf, TRAIN, options).curve]
    assert rates.index(max(rates)) in (5, 6)
    assert max(rates) == pytest.approx(1e-3)
    plateau = dataclasses.replace(O, schedule="plateau", fall=0.5, warmup=0.25)
    rates = [p.learning_rate for p in fine_tune(clf, TRAIN, plateau).curve]
    assert rates[4:6] == pytest.approx([1e-3, 1e-3])  # 12 updates: 3 to rise, 3 level, 6 to fall
    assert rates[:3] == sorted(rates[:3])
    assert rates[6:] == sorted(rates[6:], reverse=True)
    assert rates[-1] < 3e-4
    half = 1e-3 * (1 + np.cos(np.pi * np.arange(1, 6) / 6)) / 2  # half a cosine
    assert rates[7:] == pytest.approx(half)


def test_a_plateau_needs_room():
    with pytest.raises(OptionError, match="no room"):
        FinetuneOptions(schedule="plateau", warmup=0.7, fall=0.6)
    FinetuneOptions(warmup=0.9)  # of other schedules the fall says nothing


@pytest.mark.slow
def test_looking_at_dev_changes_no_dropout():
    """It drew one random number, and all updates that followed were others."""
    loose = tiny_classifier(hidden_dropout_prob=0.2, attention_probs_dropout_prob=0.2)
    blind, looked = (
        fine_tune(loose, TRAIN, dataclasses.replace(O, evaluate_epochs=look), 3, dev=DEV).classifier
        for look in (False, True)
    )
    assert blind.digest == looked.digest


@pytest.mark.slow
def test_early_stopping_keeps_the_best_epoch(clf):
    options = FinetuneOptions(epochs=30, batch=8, learning_rate=3e-3, early_stopping=2)
    trained = fine_tune(clf, TRAIN, options, 0, dev=DEV)
    dev = [(p.epoch, p.metrics["accuracy"]) for p in trained.curve if p.metrics]
    best = max(value for _, value in dev)
    assert trained.epochs < 30
    assert trained.best_epoch == min(epoch for epoch, value in dev if value == best)
    assert evaluate(trained.classifier, DEV).metrics["accuracy"] == pytest.approx(best)
    assert len([e for e, _ in dev if e > trained.best_epoch]) == 2
    with pytest.raises(OptionError, match="needs a dev set"):
        fine_tune(clf, TRAIN, options)


def test_an_undefined_metric_never_counts_as_the_best():
    from types import SimpleNamespace

    from headviz.pruning.trainer import _measure

    def told(value):
        return _measure(lambda logits: {"pearson": value, "other": 0.5})(SimpleNamespace(predictions=np.ones((2, 1))))

    assert told(0.25)["primary"] == 0.25
    assert told(float("nan"))["primary"] == -1.0


@pytest.mark.slow
def test_bfloat16_trains_close_to_float32(clf):
    low = fine_tune(clf, TRAIN, dataclasses.replace(O, precision="bfloat16"))
    high = fine_tune(clf, TRAIN, O)
    assert low.classifier.dtype == torch.float32
    plain = headviz.wrap(low.classifier.model, clf.tokenizer)  # it also computes in float32, as a saved one does
    batch = clf.collate(clf.encode(TRAIN.texts[:2], None if TRAIN.pairs is None else TRAIN.pairs[:2]))
    assert torch.equal(low.classifier.logits(batch), plain.logits(batch))
    losses = [[p.loss for p in t.curve] for t in (low, high)]
    np.testing.assert_allclose(losses[0], losses[1], rtol=0.1)
    assert losses[0] != losses[1]
    if not torch.cuda.is_available():
        with pytest.raises(OptionError, match="float16 training needs a CUDA device"):
            fine_tune(clf, TRAIN, dataclasses.replace(O, precision="float16"))


def test_divergence_is_noticed_and_the_curve_stays_readable(clf):
    # at once: the second loss of twelve is the first that is not a number
    with pytest.raises(Diverged, match=r"diverged: its loss is not a number any more at update 1 of 12.*Lower") as e:
        fine_tune(clf, TRAIN, dataclasses.replace(O, learning_rate=1e36, max_grad_norm=1e30))
    (point,) = e.value.curve
    assert point.loss == pytest.approx(1.5, abs=1.0)


def test_what_cannot_be_trained(clf):
    with pytest.raises(TaskError, match="carries no labels"):
        fine_tune(clf, Dataset(TRAIN.task, "train", TRAIN.texts, TRAIN.pairs), O)
    with pytest.raises(TaskError, match="nothing to train on"):
        fine_tune(clf, TRAIN.subset([]), O)
    with pytest.raises(TaskError, match="contradiction"):
        fine_tune(tiny_classifier(labels=("entailment", "neutral")), TRAIN, O)


def test_the_order_of_an_epoch():
    lengths = [int(n) for n in np.random.default_rng(0).integers(3, 60, 1003)]
    order = Order(lengths, 8, seed=1, group=True)
    first = list(order)
    assert sorted(first) == list(range(1003))
    assert list(order) == first
    order.epoch = 1
    second = list(order)
    assert sorted(second) == list(range(1003))
    assert second != first
    assert list(Order(lengths, 8, seed=2, group=True)) != first

    def padding(order):
        groups = [[lengths[i] for i in order[a : a + 8]] for a in range(0, len(order), 8)]
        return sum(len(g) * max(g) - sum(g) for g in groups)

    assert padding(first) < 0.2 * padding(list(Order(lengths, 8, seed=1, group=False)))


def test_every_epoch_has_its_own_order_and_the_curve_the_loss_of_each_update():
    """Weights that do not move: each loss is the mean over the batch that the order says."""
    still = tiny_classifier(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    encodings = still.encode(TRAIN.texts, TRAIN.pairs)
    options = FinetuneOptions(epochs=2, batch=10, accumulation=2, learning_rate=1e-12)
    order, expected = Order([len(e) for e in encodings], 20, seed=3, group=True), []

    def loss(index):
        with torch.inference_mode():
            logits = still.logits(still.collate([encodings[i] for i in index]))
        return torch.nn.functional.cross_entropy(logits, torch.tensor(TRAIN.gold[index])).item()

    for order.epoch in (0, 1):
        drawn = list(order)
        small = [loss(drawn[a : a + 10]) for a in range(0, 48, 10)]
        expected += [np.mean(small[:2]), np.mean(small[2:4]), small[4]]
    found = [p.loss for p in fine_tune(still, TRAIN, options, 3).curve]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.slow
def test_early_stopping_goes_on_counting_where_it_was_interrupted(clf, tmp_path):
    options = FinetuneOptions(epochs=30, batch=8, learning_rate=3e-3, early_stopping=3)
    whole = fine_tune(clf, TRAIN, options, 0, dev=DEV)
    assert whole.epochs == 4  # the first epoch is the best: what follows has no better one
    stopped_at(13, clf, TRAIN, options, 0, dev=DEV, folder=tmp_path)
    again = fine_tune(clf, TRAIN, options, 0, dev=DEV, folder=tmp_path)
    assert (again.epochs, again.updates, again.best_epoch) == (4, 24, 1)
    assert again.classifier.digest == whole.classifier.digest
    assert again.curve == whole.curve
    # and once more from its last checkpoint, as if it had been killed before its model was used
    last = fine_tune(clf, TRAIN, options, 0, dev=DEV, folder=tmp_path)
    assert (last.epochs, last.updates, last.best_epoch) == (4, 24, 1)
    assert (last.classifier.digest, last.curve) == (whole.classifier.digest, whole.curve)


@pytest.mark.slow
def test_heads_that_are_masked_while_training_might_as_well_be_gone():
    """A head at zero has no gradient, and weight decay moves only what nothing reads. Hidden dropout draws alike."""
    still = tiny_classifier(hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.0)
    options = dataclasses.replace(O, weight_decay=0.1)
    masked = fine_tune(still, TRAIN, options, 1, mask=MASK).classifier
    gone = fine_tune(headviz.prune(still, MASK), TRAIN, options, 1).classifier
    assert masked.present.is_full
    before = evaluate(still, DEV, MASK).logits
    under, without = evaluate(masked, DEV, MASK).logits, evaluate(gone, DEV).logits
    assert np.abs(without - before).max() > 0.1
    np.testing.assert_allclose(under, without, atol=2e-3)
    assert np.abs(evaluate(masked, DEV).logits - without).max() > 0.01  # without the mask it is another model


def test_a_folder_with_something_else_is_neither_used_nor_emptied(clf, tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(OptionError, match=r"thesis\.txt"):
        fine_tune(clf, TRAIN, O, folder=tmp_path)
    for record in ("", "[]", "3", "[" * 100_000):
        (tmp_path / FINGERPRINT).write_text(record)
        with pytest.raises(OptionError, match="damaged"):
            fine_tune(clf, TRAIN, O, folder=tmp_path)
    (tmp_path / FINGERPRINT).write_text("{}")
    (tmp_path / "checkpoint-3").mkdir()
    (tmp_path / "checkpoint-3" / "weights").touch()
    for _ in range(2):  # only what a training made is removed
        remove_training(tmp_path)
        assert [p.name for p in tmp_path.iterdir()] == ["thesis.txt"]


@pytest.mark.slow
def test_a_teachers_answers_are_learned_whatever_the_labels_are(clf, pruned):
    alone = Teacher(clf, share=1.0, layers=0.0)
    turned = dataclasses.replace(TRAIN, labels=np.roll(TRAIN.labels, 1))
    one, other = (fine_tune(pruned, data, O, teacher=alone).classifier for data in (TRAIN, turned))
    assert one.digest == other.digest

    def distance(of):
        wanted, own = (torch.tensor(headviz.evaluate(m, DEV).logits) for m in (clf, of))
        return float(clf.answer.imitated(own, wanted, 1.0))

    assert distance(one) < min(distance(pruned), distance(fine_tune(pruned, TRAIN, O).classifier))


@pytest.mark.slow
def test_a_student_has_no_dropout(clf, pruned):
    loose = headviz.prune(tiny_classifier(hidden_dropout_prob=0.3, attention_probs_dropout_prob=0.3), pruned.present)
    one, other = (fine_tune(m, TRAIN, O, 3, teacher=Teacher(clf)).classifier.model for m in (loose, still(pruned)))
    assert all(torch.equal(w, other.state_dict()[name]) for name, w in one.state_dict().items())


def still(of):
    return headviz.prune(tiny_classifier(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0), of.present)


@pytest.mark.slow
def test_with_a_teacher_the_epoch_of_the_least_loss_is_kept(clf, pruned):
    """That of the teacher's answers: the accuracy of few examples is the same after several epochs."""
    alone = Teacher(clf, share=1.0, temperature=1.0, layers=0.0)
    wanted = torch.tensor(headviz.evaluate(clf, DEV).logits)

    def distance(of):
        return float(clf.answer.imitated(torch.tensor(headviz.evaluate(of, DEV).logits), wanted, 1.0))

    options = FinetuneOptions(epochs=4, batch=8, learning_rate=3e-3, schedule="constant", early_stopping=4)
    kept = fine_tune(pruned, TRAIN, options, 0, dev=DEV, teacher=alone)
    plain = dataclasses.replace(options, early_stopping=None)
    each = [
        distance(fine_tune(pruned, TRAIN, dataclasses.replace(plain, epochs=n), 0, teacher=alone).classifier)
        for n in range(1, 5)
    ]
    assert distance(kept.classifier) == pytest.approx(min(each))
    assert kept.best_epoch == 1 + int(np.argmin(each))


@pytest.mark.slow
def test_the_states_of_layers_come_nearer_to_the_teachers(clf, pruned):
    """After the first layer, which is followed by one with neurons; the caller's models stay as they are."""
    weights = {k: v.clone() for k, v in clf.model.state_dict().items()}

    def distance(of):
        states = []
        for one in (clf, of):
            batch = one.collate(one.encode(DEV.texts[:8], DEV.pairs[:8]))
            states.append(one.model(**batch, output_hidden_states=True).hidden_states[1])
        return float((states[0] - states[1])[batch["attention_mask"] == 1].square().mean())

    without, within = (
        distance(fine_tune(pruned, TRAIN, O, teacher=Teacher(clf, share=0.0, layers=layers)).classifier)
        for layers in (0.0, 100.0)
    )
    assert within < without
    assert all(torch.equal(v, clf.model.state_dict()[k]) for k, v in weights.items())


def test_checkpoints_with_another_teacher_are_another_trainings(clf, pruned, tmp_path):
    quick = dataclasses.replace(O, epochs=0.2)
    fine_tune(pruned, TRAIN, quick, teacher=Teacher(clf), folder=tmp_path)
    with pytest.raises(OptionError, match="teacher"):
        fine_tune(pruned, TRAIN, quick, teacher=Teacher(clf, share=0.5), folder=tmp_path)


def test_a_new_head_reads_what_it_learns_from_whatever_the_old_one_read(tmp_path):
    """A base that was trained on single texts refused pairs."""
    base = tiny_classifier()
    base.config.headviz_num_texts = 1
    base.save(tmp_path / "base")
    assert headviz.load(tmp_path / "base").num_texts == 1
    assert headviz.load(tmp_path / "base", fresh_labels=("no", "yes")).num_texts is None
