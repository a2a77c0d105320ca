"""Correlations at a masked place, against finite differences along the path written out."""

from typing import Any

import numpy as np
import pytest
import torch
from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING_NAMES

import headviz
from headviz.attribution.rules import PathOptions
from headviz.errors import ModelError, OptionError
from headviz.heads import HeadMask
from headviz.models.families import FAMILIES
from headviz.scores import masked_words
from headviz.scores.map_values import correlations
from headviz.scores.masked_words import hidden_places, masked_rows
from headviz.scores.statistics import mean_of
from headviz.tasks import Dataset
from headviz.tasks.catalogue import get_task
from support.analysed import texts
from support.marks import classifiers
from support.tiny import ALL_FAMILIES, PAIRS, TEXTS, tiny_classifier, tiny_model, tiny_tokenizer


@pytest.fixture(scope="module")
def mlm() -> Any:
    return headviz.wrap(tiny_model(layers=2, heads=2, hidden=16, spread=0.4, masked_lm=True), tiny_tokenizer())


def some(n: int) -> Dataset:
    a, b = texts(n, 0)
    return Dataset(get_task("mnli"), "train", a, b, np.zeros(n, dtype=np.int64))


def test_one_text_equals_the_path_written_out(mlm: Any) -> None:
    """trapezoid rule by hand: F is the true token's logit at the masked position."""
    data, steps = some(1), 6
    got = masked_rows(mlm, data, "pearson", options=PathOptions(steps, "trapezoid"))[0]
    encoding = mlm.encode(list(data.texts), list(data.pairs))[0]
    place = hidden_places(encoding, 0, 0)[0]
    ids = torch.tensor([encoding.ids])
    truth = int(ids[0, place])
    ids[0, place] = mlm.tokenizer.mask_token_id
    words = mlm.model.get_input_embeddings()
    stay = torch.tensor([encoding.special])
    start, end = words(torch.where(stay, ids, mlm.tokenizer.pad_token_id)), words(ids)
    types = torch.tensor([encoding.types])
    maps, grads = [], []
    for k in range(steps + 1):
        x = (start + k / steps * (end - start)).detach().requires_grad_(True)
        call = mlm.call(None, "eager", keep_probs=True)
        logits = mlm.model(inputs_embeds=x, token_type_ids=types, headviz=call).logits
        grads.append(torch.autograd.grad(logits[0, place, truth], call.probs))
        maps.append([p.detach() for p in call.probs])
    for layer in range(2):
        attr = sum(
            0.5 * (grads[k][layer] + grads[k + 1][layer]) * (maps[k + 1][layer] - maps[k][layer]) for k in range(steps)
        )
        expected = correlations(maps[-1][layer][0].flatten(1).numpy(), attr[0].flatten(1).numpy())["pearson"]
        np.testing.assert_allclose(got[layer], expected, atol=1e-4)


def test_texts_are_averaged_wherever_they_stand(mlm: Any) -> None:
    data = some(3)
    options = PathOptions(4, "trapezoid")
    whole = mean_of(masked_rows(mlm, data, options=options))
    alone = [masked_rows(mlm, data.subset([i]), options=options)[0] for i in range(3)]
    np.testing.assert_allclose(whole, np.mean(alone, axis=0), atol=1e-6)
    np.testing.assert_allclose(mean_of(masked_rows(mlm, data.subset([2, 0, 1]), options=options)), whole, atol=1e-6)


def test_copies_of_a_text_are_averaged(mlm: Any) -> None:
    data = some(2)
    options = PathOptions(4, "trapezoid")
    result = masked_rows(mlm, data, options=options, copies=3)
    encoding = mlm.encode(list(data.texts), list(data.pairs))[0]
    places = hidden_places(encoding, 0, 0, copies=3)
    assert len(set(places)) == 3
    alone = []
    for place in places:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(masked_words, "hidden_places", lambda *_, here=place: [here])
            alone.append(masked_rows(mlm, data.subset([0]), options=options)[0])
    np.testing.assert_allclose(result[0], np.nanmean(alone, axis=0), atol=1e-6)
    every = sum(not special for special in encoding.special)
    assert len(hidden_places(encoding, 0, 0, copies=99)) == every


def test_heads_that_are_off_have_no_value(mlm: Any) -> None:
    data = some(1)
    mask = HeadMask.full(2, 2).without([(0, 1)])
    (result,) = masked_rows(mlm, data, options=PathOptions(4, "trapezoid"), mask=mask)
    assert np.isnan(result[0, 1])
    assert np.isfinite(result[0, 0])


def test_special_tokens_are_never_hidden(mlm: Any) -> None:
    data = some(20)
    for e in mlm.encode(list(data.texts), list(data.pairs)):
        for place in hidden_places(e, 0, 0, copies=3):
            assert not e.special[place]


FILLING = [f for f in ALL_FAMILIES if f in MODEL_FOR_MASKED_LM_MAPPING_NAMES and not FAMILIES[f].has_decoder]


@pytest.mark.parametrize("family", classifiers(FILLING))
@torch.no_grad()
def test_embeddings_give_what_their_ids_give_alone_and_in_a_batch(family: str) -> None:
    mlm = headviz.wrap(tiny_model(family, masked_lm=True), tiny_tokenizer(FAMILIES[family].tiny.get("pad_token_id", 0)))
    assert mlm.kind == "masked-lm"
    encodings = mlm.encode(TEXTS, PAIRS)
    batch = mlm.collate(encodings)
    by_ids = mlm.forward(batch, mlm.call())
    words = mlm.model.get_input_embeddings()(batch.pop("input_ids"))
    by_words = mlm.forward({"inputs_embeds": words, **batch}, mlm.call())
    real = batch["attention_mask"] == 1
    torch.testing.assert_close(by_words[real], by_ids[real], atol=1e-5, rtol=1e-5)
    for row, encoding in zip(by_ids, encodings, strict=True):
        alone = mlm.forward(mlm.collate([encoding]), mlm.call())[0]
        torch.testing.assert_close(row[: len(alone)], alone, atol=3e-5, rtol=1e-5)


def test_where_embeddings_depend_on_hidden_tokens_there_is_no_path() -> None:
    tokenizer = tiny_tokenizer(1)
    hidden = {"mask_token_id": tokenizer.mask_token_id}
    mlm = headviz.wrap(tiny_model("esm", masked_lm=True, **hidden), tokenizer)
    with pytest.raises(ModelError, match="no path of embeddings"):
        masked_rows(mlm, some(1))
    clf = headviz.wrap(tiny_model("esm", **hidden), tokenizer)
    with pytest.raises(ModelError, match="no path of embeddings"):
        headviz.conductance(clf, f"the dog {tokenizer.mask_token}", "it sleeps")
    assert headviz.conductance(clf, "the dog sleeps", "it sleeps").attribution.shape[0] == clf.num_layers


def test_mistakes(mlm: Any) -> None:
    with pytest.raises(ModelError, match="masked_lm=True"):
        masked_rows(tiny_classifier(), some(1))
    with pytest.raises(OptionError, match="kendall"):
        masked_rows(mlm, some(1), "tau")
