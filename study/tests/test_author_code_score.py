"""Score ``thesis-2024-code`` against a literal re-implementation of what the author's code does."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch
from captum.attr import LayerConductance
from scipy.stats import spearmanr

from headviz import plugins
from headviz.attribution.rules import PathOptions
from headviz.errors import OptionError
from headviz.heads import ENCODER
from headviz.scores import SCORES
from headviz.scores.scoring import score_heads
from study import author_code_score
from study.author_code_score import TYPES, AuthorWalk, baseline, pad_of, swept
from support.marks import classifiers
from support.plugin_files import forget, nothing_stays
from support.scored_data import made
from support.tiny import ALL_FAMILIES, PAIRS, TEXTS, tiny_classifier, tiny_model

__all__ = ["nothing_stays"]


@pytest.fixture(autouse=True)
def loaded(nothing_stays: None) -> None:
    plugins.load([author_code_score.__file__])


def literal(data, width: int, steps: int, seed: int = 0, layers: int = 2) -> np.ndarray:
    """One example at a time, in the order of the published code, with transformers and Captum alone."""
    clf = tiny_classifier("bert", layers=layers, seed=seed)
    model, tokenizer = tiny_model("bert", layers=layers, seed=seed).eval(), clf.tokenizer
    model.set_attn_implementation("eager")
    words = model.get_input_embeddings()
    pad, cls, sep = tokenizer.pad_token_id, tokenizer.cls_token_id, tokenizer.sep_token_id
    out = np.zeros((len(data), clf.num_layers, clf.num_heads))
    for n in range(len(data)):
        given = tokenizer(
            data.texts[n],
            data.pairs[n],
            padding="max_length",
            max_length=width,
            return_tensors="pt",
            return_token_type_ids=True,
        )
        ids, mask = given["input_ids"], given["attention_mask"]
        reference = torch.tensor([[cls, *[pad] * (width - 2), sep]])

        def forward(embeddings: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            return model(inputs_embeds=embeddings, attention_mask=mask).logits.max(1).values

        with torch.no_grad():
            attentions = model(**given, output_attentions=True).attentions
        for layer in range(clf.num_layers):
            where = clf.family.place(clf.config, layer)
            module = model.base_model.get_submodule(clf.family.attention[ENCODER].module.format(**where))
            result = LayerConductance(forward, module).attribute(
                words(ids).detach(), words(reference).detach(), additional_forward_args=(mask,), n_steps=steps
            )[1]
            for head in range(clf.num_heads):
                one, other = attentions[layer][0, head].numpy(), result[0, head].detach().numpy()
                out[n, layer, head] = spearmanr(one.ravel(), other.ravel()).statistic
    return out.mean(axis=0)


@pytest.mark.parametrize("padded", [0, 30])
def test_the_preset_equals_a_literal_re_implementation(padded: int) -> None:
    clf, data = tiny_classifier("bert", layers=2), made(4)
    longest = max(len(e) for e in clf.encode(data.texts, data.pairs))
    result = score_heads(clf, data, score="thesis-2024-code", steps=6, padded=padded, cache=False)
    np.testing.assert_allclose(result.values, literal(data, padded or longest, 6), atol=2e-4)


class Whole(AuthorWalk):
    """The obvious way: the path is walked with all the padding."""

    def __init__(self, clf, encodings, targets, mask, width):
        super().__init__(clf, encodings, targets, mask, width)
        whole = dict(self.input)
        self.end, self.length = whole.pop("inputs_embeds"), width
        ids = torch.full((self.size, width), pad_of(clf))
        self.start = clf.model.get_input_embeddings()(baseline(clf, ids))
        self.batch = {k: v for k, v in whole.items() if k != TYPES}


@pytest.mark.parametrize("family", classifiers(ALL_FAMILIES))
def test_padding_that_is_not_walked_changes_nothing(family: str) -> None:
    clf, off = tiny_classifier(family, layers=2), [(0, 1), (1, 0), (1, 1)]
    encodings = clf.encode(TEXTS, PAIRS)
    longest = max(map(len, encodings))
    for width in (longest, longest + 7):
        given = (clf, encodings, PathOptions(6, "captum"), clf.full_mask.without(off), width)
        whole, cut = ([m for s in swept(*given, walk) for m in s.maps()()] for walk in (Whole, AuthorWalk))
        for one, other, encoding in zip(whole, cut, encodings, strict=True):
            assert one.attribution.shape[-1] == other.attribution.shape[-1] == width
            np.testing.assert_allclose(other.attention, one.attention, atol=1e-6)
            np.testing.assert_allclose(
                other.attribution, one.attribution, rtol=0, atol=1e-3 * np.abs(one.attribution).max()
            )
            np.testing.assert_allclose(other.logits, one.logits, atol=1e-5)
            assert not other.attribution[..., len(encoding) :].any()  # ranks tell a tie from a rounding error
            assert not other.attribution[..., len(encoding) :, :].any()


def test_it_is_another_score_than_the_text_s() -> None:
    clf, data = tiny_classifier("bert", layers=2), made(4)
    text = score_heads(clf, data, preset="thesis-2024", steps=6, cache=False)
    code = score_heads(clf, data, score="thesis-2024-code", steps=6, cache=False)
    assert np.abs(text.values - code.values).max() > 0.05
    wider = score_heads(clf, data, score="thesis-2024-code", steps=6, padded=40, cache=False)
    assert np.abs(wider.values - code.values).max() > 0.01  # padding counts


def test_one_example_without_a_value_voids_the_head(monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = sys.modules[SCORES["thesis-2024-code"].measure.__module__]
    own, counted = plugin.map_values, iter(range(3))

    def without_one(result, kept, names):
        (value,) = own(result, kept, names)
        table = value()["spearman"].copy()
        if next(counted) == 1:
            table[1, 2] = np.nan
        return [lambda: {"spearman": table}]

    monkeypatch.setattr(plugin, "map_values", without_one)
    result = score_heads(tiny_classifier("bert"), made(3), "thesis-2024-code", steps=4, cache=False)
    assert np.argwhere(np.isnan(result.values)).tolist() == [[1, 2]]


def test_its_options_are_checked() -> None:
    clf, data = tiny_classifier("bert"), made(3)
    with pytest.raises(OptionError, match="gauss-legendre"):
        score_heads(clf, data, "thesis-2024-code", rule="gauss-legendre")
    with pytest.raises(OptionError, match="below the 20 tokens of the longest text"):
        score_heads(clf, data, "thesis-2024-code", padded=3)
    with pytest.raises(OptionError, match="above the 64 tokens that this model reads"):
        score_heads(clf, data, "thesis-2024-code", padded=500)


def test_without_its_file_it_is_refused_with_the_way_to_name_one() -> None:
    forget()
    with pytest.raises(OptionError, match="--plugin"):
        score_heads(tiny_classifier("bert"), made(3), "thesis-2024-code")
