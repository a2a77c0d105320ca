"""Models with fewer neurons: the same answers as with zeros, on disk, in every way of running them."""

import json

import numpy as np
import pytest
import torch

import headviz
from headviz import HeadMask
from headviz.errors import ModelError
from headviz.models.feed_forward import NEURONS, neurons, outer_map, smaller
from headviz.models.onnx import EQUAL, NEEDED, disagreement, export_onnx
from headviz.models.pruning import prune
from support.marks import seeds
from support.plain import evaluate
from support.scored_data import made
from support.tiny import PAIRS, TEXTS, tiny_classifier

OFF = [(0, 1), (2, 0), (2, 3)]
each_known = pytest.mark.parametrize("family", ["bert", "distilbert", "modernbert"])


def cut(family="bert"):
    """The whole model, the smaller one, and which neurons stay."""
    clf = tiny_classifier(family)
    kept = [list(range(0, neurons(clf)[0], 3)), list(range(neurons(clf)[1])), []]
    return clf, smaller(clf, clf.full_mask.without(OFF), kept), kept


def logits(clf, mask=None):
    return clf.logits(clf.collate(clf.encode(TEXTS, PAIRS)), mask).numpy()


@each_known
def test_removed_neurons_are_those_that_the_outer_map_reads_as_zero(family):
    clf, small, kept = cut(family)
    before = logits(clf)
    assert neurons(small) == [len(k) for k in kept]
    for layer, places in enumerate(kept):
        weight = outer_map(clf, layer).weight
        gone = [i for i in range(weight.shape[1]) if i not in places]
        weight.data[:, gone] = 0
    np.testing.assert_allclose(logits(small), logits(clf, clf.full_mask.without(OFF)), atol=1e-5)
    assert not np.allclose(logits(clf), before)


@each_known
def test_a_saved_model_is_read_back_and_can_be_exported(family, tmp_path):
    _, small, kept = cut(family)
    again = headviz.load(small.save(tmp_path / "small"), device="cpu")
    assert (again.digest, neurons(again)) == (small.digest, [len(k) for k in kept])
    np.testing.assert_array_equal(logits(again), logits(small))
    plain = headviz.load(again.export_masked(tmp_path / "plain"), device="cpu")
    assert plain.present.is_full
    assert len(set(neurons(plain))) == 1
    assert not (tmp_path / "plain" / "headviz.json").exists()
    np.testing.assert_allclose(logits(plain), logits(small), atol=1e-5)


def test_neurons_alone_make_another_model():
    clf = tiny_classifier()
    same, less = (smaller(clf, clf.present, [range(64), range(64), range(n)]) for n in (64, 63))
    assert same.digest == clf.digest
    assert less.digest != clf.digest
    assert hasattr(less.config, NEURONS)
    assert not hasattr(clf.config, NEURONS)


def test_a_prune_after_it_keeps_the_neurons(tmp_path):
    _, small, kept = cut()
    less = headviz.prune(small, HeadMask.full(3, 4).without([(1, 1)]))
    assert neurons(headviz.load(less.save(tmp_path / "less"))) == [len(k) for k in kept]


def test_every_way_of_running_it_gives_its_own_logits():
    """The evaluator's fast stages, packed texts, conductance."""
    _, small, _ = cut()
    data = made(14)
    mask = small.full_mask.without([(1, 2)])
    plain = [evaluate(small, data, m).logits for m in (None, mask)]
    evaluator = headviz.Evaluator(small, data)
    for expected, m in zip(plain, (None, mask), strict=True):
        np.testing.assert_allclose(evaluator.evaluate(m).logits, expected, atol=1e-5)
    maps = headviz.conductance(small, TEXTS[0], PAIRS[0], steps=8)
    assert np.isfinite(maps.attribution[1]).all()
    assert np.isnan(maps.attribution[0, 1]).all()
    cost = small.cost(length=16)
    assert cost.parameters == sum(p.numel() for p in small.model.parameters())


def test_sizes_that_do_not_fit_are_refused(tmp_path):
    folder = cut()[1].save(tmp_path / "small")
    config = json.loads((folder / "config.json").read_text())
    for sizes in ([1, 2], [1, 2, 65], [1, -2, 3], [1, True, 3], "abc", [1.0, 2, 3]):
        config[NEURONS] = {"encoder": sizes}
        (folder / "config.json").write_text(json.dumps(config))
        with pytest.raises(ModelError, match=NEURONS):
            headviz.load(folder)


@pytest.mark.parametrize("none", [{}, []])
def test_a_record_without_sizes_leaves_all_neurons(none, tmp_path):
    clf = tiny_classifier("bert")
    folder = headviz.prune(clf, {0: [0]}).save(tmp_path / "small")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, NEURONS: none}))
    assert neurons(headviz.load(folder)) == neurons(clf)


@pytest.mark.parametrize("family", ["gpt2"])
def test_an_unknown_layout_is_refused_by_name(family):
    clf = tiny_classifier(family)
    assert neurons(clf) == []
    with pytest.raises(ModelError, match=f"neurons of {clf.family.title} cannot be removed.*BERT"):
        smaller(clf, clf.present, [])


def emptied(family):
    """No heads in the first and the third layer, no neurons in the second and the third; as far as these can go."""
    clf = tiny_classifier(family)
    if not clf.family.prunable or clf.family.why_not_empty:
        return clf
    mask = clf.full_mask.without([(row, head) for row in range(0, clf.num_layers, 2) for head in range(clf.num_heads)])
    if clf.family.why_no_neurons:
        return prune(clf, mask)
    return smaller(clf, mask, [range(neurons(clf)[0]), (), ()])


@pytest.mark.slow
@pytest.mark.parametrize("family", seeds(["bert"], ["gpt2", "esm", "mobilebert"]))
def test_nothing_without_entries_is_exported(family, tmp_path):
    """onnxruntime's quantisation by channels fails on a matrix of 32 × 0."""
    for name in NEEDED:
        pytest.importorskip(name)
    import onnx
    import onnxruntime
    from onnxruntime.quantization import quantize_dynamic

    small = emptied(family)
    with torch.no_grad():  # [PAD] as large as other tokens, so that one which is read would show
        small.model.get_input_embeddings().weight.normal_(generator=torch.Generator().manual_seed(0))
    path = export_onnx(small, tmp_path / "model.onnx")
    graph = onnx.shape_inference.infer_shapes(onnx.load(path)).graph
    assert [i.name for i in graph.initializer if 0 in i.dims] == []
    shapes = {
        v.name: [d.dim_value for d in v.type.tensor_type.shape.dim if d.HasField("dim_value")]
        for v in (*graph.value_info, *graph.input)
    }
    products = [node for node in graph.node if node.op_type in ("MatMul", "Gemm")]
    assert products
    assert not [name for node in products for name in node.input if 0 in shapes.get(name, [])]
    quantize_dynamic(path, tmp_path / "int8.onnx", per_channel=True)
    for texts, pairs in ((TEXTS, PAIRS), (TEXTS[:1], PAIRS[:1])):
        batch = small.collate(small.encode(texts, pairs))
        for file, equal in ((path, EQUAL), (tmp_path / "int8.onnx", None)):
            session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
            (result,) = session.run(None, {i.name: batch[i.name].numpy() for i in session.get_inputs()})
            assert np.isfinite(result).all()
            if equal is not None:
                assert disagreement(torch.from_numpy(result), small.logits(batch)) <= equal


@pytest.mark.slow
def test_a_file_that_the_runtime_cannot_run_is_not_kept(tmp_path, monkeypatch):
    for name in NEEDED:
        pytest.importorskip(name)
    from onnxruntime.capi.onnxruntime_pybind11_state import Fail

    def broken(*given):
        raise Fail("[ONNXRuntimeError] : 1 : FAIL\nmore")

    monkeypatch.setattr("headviz.models.onnx.difference", broken)
    with pytest.raises(ModelError, match=r"not kept: .* FAIL$"):
        export_onnx(tiny_classifier(layers=1), tmp_path / "model.onnx")
    assert not (tmp_path / "model.onnx").exists()


def test_onnx_without_its_packages_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr("headviz.models.onnx.find_spec", lambda name: None)
    with pytest.raises(ModelError, match=r"pip install 'headviz\[onnx\]'"):
        export_onnx(tiny_classifier(), tmp_path / "model.onnx")
    assert not (tmp_path / "model.onnx").exists()
