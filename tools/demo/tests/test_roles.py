"""Heads with a role: who gets which, what a pair does without, and what is rewarded."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.functional import cross_entropy
from transformers import BertForSequenceClassification

from headviz import demo
from headviz.attention import NAME
from tools.demo import roles, search
from tools.demo.network import HEADS, LAYERS, configuration

NAMES = ("number", "spatial", "temporal")


@pytest.fixture(scope="module")
def model() -> Any:
    torch.manual_seed(0)
    vocabulary = len(demo_tokenizer())
    return BertForSequenceClassification._from_config(configuration(vocabulary), attn_implementation=NAME)


def demo_tokenizer() -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(Path(demo.demo_folder()))


PAIRS = [e for name in NAMES for e in [p for p in demo.read_split("train") if p.phenomenon == name][:8]]


@pytest.mark.slow
def test_every_phenomenon_gets_its_heads_and_no_head_two_roles(model: Any) -> None:
    chosen = roles.choose(model, demo_tokenizer(), PAIRS, NAMES, 4)
    assert set(chosen) == set(NAMES)
    heads = [head for own in chosen.values() for head in own]
    assert len(heads) == len(set(heads)) == 12
    assert all(roles.FIRST <= layer <= roles.LAST for layer, _ in heads)
    assert roles.choose(model, demo_tokenizer(), PAIRS, NAMES, 4) == chosen


def test_what_everything_runs_through_is_nobodys_own(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shares = {name: torch.full((LAYERS, HEADS), 1e-3).numpy() for name in NAMES}
    for at, name in enumerate(NAMES):
        shares[name][5, at] = 0.02  # its own
        shares[name][6, :] = 0.05 + 0.01 * at  # the bottleneck of all
    result = iter(shares.values())
    monkeypatch.setattr(roles, "COMMON", HEADS)
    monkeypatch.setattr(roles, "_sensitivity", lambda *_: next(result))
    assert roles.choose(model, None, [], NAMES, 1) == {name: [(5, at)] for at, name in enumerate(NAMES)}


def test_sensitivity_is_the_gradient_by_a_switch(model: Any) -> None:
    some, tokenizer = PAIRS[:5], demo_tokenizer()
    result = roles._sensitivity(model, tokenizer, some)
    assert result.sum() == pytest.approx(1.0)
    sizes = torch.zeros(2)
    places, step = ((3, 4), (9, 1)), 1e-2
    for pair in some:  # one by one and by differences: another batch, another way
        batch = roles.pad(roles.encode(tokenizer, [pair]), [roles.LABELS.index(pair.label)])
        for at, (layer, head) in enumerate(places):
            ends = []
            for sign in (1, -1):
                gates = torch.ones(1, LAYERS, HEADS)
                gates[0, layer, head] += sign * step
                with torch.no_grad():
                    ends.append(model(**batch.inputs(), headviz=roles.per_pair(gates)).logits[0, batch.labels])
            sizes[at] += ((ends[0] - ends[1]) / (2 * step)).abs().item()
    expected = result[places[0]] / result[places[1]]
    assert float(sizes[0] / sizes[1]) == pytest.approx(float(expected), rel=0.05)


def test_a_pair_misses_its_own_heads_only_where_it_is_robbed() -> None:
    table = roles.as_tensor({"number": [(3, 0), (4, 1)], "spatial": [(5, 2)], "temporal": [(6, 3)]}, NAMES)
    groups = torch.arange(3).repeat(4000)
    drawn = roles.draw(table, groups, torch.Generator().manual_seed(0))
    off = 1 - drawn.gates
    assert set(off.unique().tolist()) == {0.0, 1.0}
    own = (off * table[groups]).sum((1, 2))
    assert torch.equal(own > 0, drawn.robbed)
    assert drawn.robbed.float().mean() == pytest.approx(1 - roles.OTHERS, abs=0.02)
    partly = own[drawn.robbed & (groups == 0)]
    assert set(partly.tolist()) == {1.0, 2.0}  # sometimes only some of them
    whole = (off.sum((1, 2)) == 0).float().mean()
    assert whole == pytest.approx(roles.WHOLE, abs=0.02)
    others = (off * (table.sum(0) - table[groups])).sum((1, 2))
    assert not (others[~drawn.robbed] == 0).all()
    again = roles.draw(table, groups, torch.Generator().manual_seed(0))
    assert torch.equal(again.gates, drawn.gates)


def test_the_loss_rewards_the_right_answer_or_an_even_one() -> None:
    logits = torch.tensor([[4.0, 0.0, -1.0], [2.0, 2.0, 2.0]])
    labels, robbed = torch.tensor([0, 1]), torch.tensor([False, True])
    result = roles.role_loss(logits, labels, robbed, 0.0)
    assert result.item() == pytest.approx((cross_entropy(logits[:1], labels[:1]).item() + math.log(3)) / 2)
    sure = torch.tensor([[9.0, 0.0, 0.0]])
    assert roles.role_loss(sure, labels[:1], ~robbed[:1], 0.0) > math.log(3)


@pytest.mark.slow
def test_gates_close_first_where_nothing_is_lost_and_leave_the_model_alone() -> None:
    import headviz

    clf = headviz.load("demo", device="cpu")
    pool = {name: [p for p in demo.read_split("train") if p.phenomenon == name][:40] for name in NAMES}
    before = {name: value.clone() for name, value in clf.model.state_dict().items()}
    gates = search.kept_by_all(clf.model, clf.tokenizer, pool, steps=30)
    assert gates.shape == (LAYERS, HEADS)
    assert ((gates > 0) & (gates < 1)).all()
    assert all(torch.equal(value, before[name]) for name, value in clf.model.state_dict().items())
    assert all(weight.grad is None for weight in clf.model.parameters())
    order = [(int(at) // HEADS, int(at) % HEADS) for at in gates.ravel().argsort()]
    data = headviz.load_task("demo").subset(
        [at for at, name in enumerate(headviz.load_task("demo").slices) if name in NAMES][:150]
    )
    full = headviz.HeadMask.full(LAYERS, HEADS)
    first, last = (
        headviz.evaluate(clf, data, full.without(some)).metrics["accuracy"] for some in (order[:43], order[-43:])
    )
    assert first > last + 0.2
