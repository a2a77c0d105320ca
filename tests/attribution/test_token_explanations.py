"""Explanations of tokens against literal computations on plain transformers, their sums, curves and refusals."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats
import torch

import headviz
from headviz import UserError
from headviz.attribution.token_explanations import counts_of
from headviz.attribution.token_methods import METHODS
from headviz.models.families import FAMILIES
from support.command import call, mistake
from support.tiny import tiny_classifier, tiny_folder, tiny_model, tiny_tokenizer

TEXT, PAIR = "a dog sleeps .", "the red cat sees two birds"
READ_OUT = {
    "bert": ("bert.pooler.dense", torch.tanh, "classifier"),
    "roberta": ("classifier.dense", torch.tanh, "classifier.out_proj"),
    "electra": ("classifier.dense", torch.nn.functional.gelu, "classifier.out_proj"),
    "distilbert": ("pre_classifier", torch.relu, "classifier"),
}


class Plain:
    """A plain transformers model in float64, opened up: what each layer reads, and its modules."""

    def __init__(self, family: str) -> None:
        self.clf, self.model = tiny_classifier(family), tiny_model(family, attn_implementation="eager").double()
        self.family, self.base = FAMILIES[family], self.model.base_model
        self.batch = self.clf.collate(self.clf.encode([TEXT], [PAIR]))
        with torch.no_grad():
            out = self.model(**self.batch, output_hidden_states=True, output_attentions=True)
        self.states, self.probs, self.logits = [h[0] for h in out.hidden_states], out.attentions, out.logits[0]

    def modules(self, layer: int) -> tuple[Any, Any]:
        def get(path: str) -> Any:
            return self.base.get_submodule(path.format(**self.family.place(self.model.config, layer)))

        paths, norm = self.family.attention["encoder"], self.family.post_norm
        assert norm is not None
        projections = [get(p) for p in (paths.query, paths.key, paths.value, paths.output)]
        return projections, [get(p) for p in (norm.attention_norm, norm.inner, norm.outer, norm.output_norm)]


def linear(module: Any, x: torch.Tensor, relevance: torch.Tensor) -> torch.Tensor:
    """The rule of a linear map: shares in proportion to weight × input; the bias keeps its own."""
    z = x @ module.weight.T + module.bias
    return x * ((relevance / z) @ module.weight)


def norm(module: Any, x: torch.Tensor, relevance: torch.Tensor) -> torch.Tensor:
    """A layer norm as the linear map that it is once its divisor is a constant."""
    size = x.shape[-1]
    centre = torch.eye(size, dtype=torch.float64) - 1 / size
    out = []
    for row, rel in zip(x, relevance, strict=True):
        matrix = torch.diag(module.weight / torch.sqrt(row.var(unbiased=False) + module.eps)) @ centre
        out.append(row * ((rel / (matrix @ row + module.bias)) @ matrix))
    return torch.stack(out)


def literal_relevance(plain: Plain, target: int) -> np.ndarray:
    """AttnLRP from the answer down, rule by rule, without gradients."""
    dense, activation, last = READ_OUT[plain.model.config.model_type]
    dense, last = plain.model.get_submodule(dense), plain.model.get_submodule(last)
    first = plain.states[-1][:1]
    hidden = activation(first @ dense.weight.T + dense.bias)
    one = torch.zeros_like(plain.logits)
    one[target] = plain.logits[target]
    read = linear(dense, first, linear(last, hidden, one[None]))
    relevance = torch.zeros_like(plain.states[-1])
    relevance[0] = read[0]
    for layer in reversed(range(plain.clf.num_layers)):
        (q, k, v, o), (norm1, inner, outer, norm2) = plain.modules(layer)
        x, size = plain.states[layer], plain.clf.head_size
        query, key, value = (m(x).view(len(x), -1, size).transpose(0, 1) for m in (q, k, v))
        scores = query @ key.transpose(1, 2) / size**0.5
        probs = scores.softmax(-1)
        heads = probs @ value
        context = heads.transpose(0, 1).flatten(1)
        attended = o(context)
        state = norm1(x + attended)
        neurons = torch.nn.functional.gelu(inner(state))
        fed = outer(neurons)
        summed = norm(norm2, state + fed, relevance) / (state + fed)
        relevance = summed * state + linear(inner, state, linear(outer, neurons, summed * fed))
        summed = norm(norm1, x + attended, relevance) / (x + attended)
        of_context = linear(o, context, summed * attended).view(len(x), -1, size).transpose(0, 1)
        ratio = of_context / heads / 2  # each factor of a product gets half
        of_probs = probs * (ratio @ value.transpose(1, 2))
        of_value = value * (probs.transpose(1, 2) @ ratio)
        of_scores = scores * (of_probs - probs * of_probs.sum(-1, keepdim=True))
        ratio = of_scores / scores / 2 / size**0.5
        of_query, of_key = query * (ratio @ key), key * (ratio.transpose(1, 2) @ query)
        relevance = summed * x
        for module, part in ((q, of_query), (k, of_key), (v, of_value)):
            relevance = relevance + linear(module, x, part.transpose(0, 1).flatten(1))
    return relevance.sum(dim=1).detach().numpy()


@pytest.mark.parametrize("family", READ_OUT)
def test_attnlrp_equals_the_rules_applied_one_by_one(family: str) -> None:
    plain = Plain(family)
    with torch.no_grad():
        wanted = literal_relevance(plain, 1)
    result = headviz.token_explanations(plain.clf, TEXT, PAIR, methods=["attnlrp"], target=1, orders=1)
    np.testing.assert_allclose(result.values[0], wanted, rtol=1e-5, atol=1e-6)
    assert result.logit == pytest.approx(float(plain.logits[1]), abs=1e-5)


@pytest.mark.parametrize("family", ["bert", "roberta", "distilbert", "mpnet"])
def test_relevance_and_constants_sum_to_the_logit(family: str) -> None:
    clf = tiny_classifier(family)
    for off in ([], [(0, 1), (2, 0), (2, 1), (2, 2), (2, 3)]):
        mask = clf.full_mask.without(off)
        result = headviz.token_explanations(clf, TEXT, PAIR, methods=["attnlrp"], mask=mask, orders=1)
        logits = clf.logits(clf.collate(clf.encode([TEXT], [PAIR])), mask)[0]
        assert result.values[0].sum() + result.constants == pytest.approx(float(logits.max()), abs=1e-4)
        assert result.target == int(logits.argmax())


def test_half_precision_has_every_method() -> None:
    dtype = torch.bfloat16
    half, full = (headviz.wrap(tiny_model().to(dtype).to(to), tiny_tokenizer()) for to in (dtype, torch.float32))
    result, wanted = (headviz.token_explanations(clf, TEXT, PAIR, target=0, orders=1) for clf in (half, full))
    assert result.methods == tuple(METHODS)
    for name in ("rollout", "value-norm", "attnlrp"):
        at = result.methods.index(name)
        np.testing.assert_array_equal(result.values[at], wanted.values[at])


@pytest.mark.parametrize("family", ["bert", "distilbert"])
def test_rollout_and_norms_equal_products_of_matrices(family: str) -> None:
    plain = Plain(family)
    rolled, normed = (torch.eye(len(plain.states[0]), dtype=torch.float64) for _ in range(2))
    with torch.no_grad():
        for layer in range(plain.clf.num_layers):
            (_, _, v, o), _ = plain.modules(layer)
            x, probs, size = plain.states[layer], plain.probs[layer][0], plain.clf.head_size
            value = v(x)
            weighed = torch.zeros(len(x), len(x), dtype=torch.float64)
            for i in range(len(x)):
                for j in range(len(x)):
                    parts = [
                        probs[h, i, j] * (o.weight[:, h * size : (h + 1) * size] @ value[j, h * size : (h + 1) * size])
                        for h in range(plain.clf.num_heads)
                    ]
                    weighed[i, j] = torch.stack(parts).sum(dim=0).norm()
            eye = torch.eye(len(x), dtype=torch.float64)
            rolled = (eye + probs.mean(dim=0)) / 2 @ rolled
            normed = (eye + weighed / weighed.sum(dim=1, keepdim=True)) / 2 @ normed
    result = headviz.token_explanations(plain.clf, TEXT, PAIR, methods=["rollout", "value-norm"], orders=1)
    np.testing.assert_allclose(result.values, np.stack([rolled[0], normed[0]]), atol=1e-6)


def test_curves_equal_passes_of_the_model_with_padding_in_the_words_place() -> None:
    clf = tiny_classifier()
    result = headviz.token_explanations(clf, TEXT, PAIR, methods=["rollout"], target=2, orders=3, seed=5)
    batch = clf.collate(clf.encode([TEXT], [PAIR]))
    words = [i for i, special in enumerate(result.special) if not special]

    def answer(gone: list[int]) -> float:
        ids = batch["input_ids"].clone()
        ids[0, gone] = clf.tokenizer.pad_token_id
        return float(clf.logits({**batch, "input_ids": ids})[0].softmax(-1)[2])

    rng = np.random.default_rng(5)
    orders = [sorted(words, key=lambda i: -result.values[0, i])] + [list(rng.permutation(words)) for _ in range(3)]
    deletion, insertion = (
        np.vstack(pair)
        for pair in ((result.deletion, result.random_deletion), (result.insertion, result.random_insertion))
    )
    for order, fall, rise in zip(orders, deletion, insertion, strict=True):
        for k, count in enumerate(counts_of(len(words))):
            assert fall[k] == pytest.approx(answer(order[:count]), abs=1e-5)
            assert rise[k] == pytest.approx(answer(order[count:]), abs=1e-5)
    assert result.shares[0] == 0
    assert result.shares[-1] == 1


def test_areas_are_over_the_words_that_are_gone() -> None:
    """Of 17 words a tenth is rounded to 2, 1, 2, … words, so the points are not evenly spaced."""
    clf = tiny_classifier()
    result = headviz.token_explanations(clf, " ".join(["the cat sees"] * 5), "a dog", methods=["rollout"], orders=1)
    words = [round(17 * share) for share in result.shares]
    assert len({b - a for a, b in pairwise(words)}) > 1
    by_hand = sum(
        (b - a) / 17 * (first + second) / 2
        for (a, b), (first, second) in zip(pairwise(words), pairwise(result.deletion[0]), strict=True)
    )
    assert result.areas()["rollout"]["deletion"] == pytest.approx(by_hand, rel=1e-12)


def test_disagreement_is_a_rank_correlation_over_words() -> None:
    clf = tiny_classifier()
    result = headviz.token_explanations(clf, TEXT, PAIR, orders=2)
    assert result.methods == tuple(METHODS)
    words = ~np.array(result.special)
    signed = scipy.stats.spearmanr(result.values[2, words], result.values[3, words]).statistic
    sizes = scipy.stats.spearmanr(result.values[0, words], np.abs(result.values[3, words])).statistic
    assert result.rank_correlation[2, 3] == pytest.approx(signed)
    assert result.rank_correlation[0, 3] == pytest.approx(sizes)
    np.testing.assert_allclose(np.diag(result.rank_correlation), 1)
    alone = headviz.token_attributions(clf, TEXT, PAIR).values
    np.testing.assert_allclose(result.values[2], alone, atol=1e-6)


def test_masked_and_pruned_models_agree() -> None:
    clf = tiny_classifier()
    mask = clf.full_mask.without([(0, 1), (1, 0), (1, 1), (1, 2), (1, 3)])
    masked = headviz.token_explanations(clf, TEXT, PAIR, target=1, mask=mask, orders=2)
    pruned = headviz.token_explanations(headviz.prune(clf, mask), TEXT, PAIR, target=1, orders=2)
    np.testing.assert_allclose(masked.values, pruned.values, atol=1e-5)
    np.testing.assert_allclose(masked.deletion, pruned.deletion, atol=1e-5)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"methods": ["lime"]}, "lime"),
        ({"methods": []}, "at least one method"),
        ({"orders": 0}, "orders"),
        ({"target": "maybe"}, "maybe"),
        ({"text": "a", "pair": "."}, "at least 3 words"),
    ],
)
def test_mistakes_are_refused_in_one_line(options: dict[str, Any], why: str) -> None:
    with pytest.raises(UserError, match=why):
        headviz.token_explanations(tiny_classifier(), **{"text": TEXT, "pair": PAIR, **options})


def test_a_tagger_gets_the_methods_that_it_has(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The others are refused by name only where they are asked for by name."""
    tagger = tiny_folder(tmp_path / "m", labels=("O", "B-red"), head="AutoModelForTokenClassification")
    given = ("tokens", "--model", tagger, "--text", TEXT, "--orders", 2)
    result = call(capsys, *given)
    assert set(result["methods"]) | set(result["refused"]) == set(METHODS)
    assert result["methods"] == ["integrated-gradients"]
    assert "all tokens" in mistake(capsys, *given, "--methods", "rollout")
