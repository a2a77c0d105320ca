"""headviz.load: what it takes, what it refuses, and what identifies a model."""

import io
import json
import shutil
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForMaskedLM, AutoTokenizer, BertConfig, BertForMultipleChoice

import headviz
from headviz import HeadMask, cli
from headviz.errors import ModelError
from headviz.models import hub
from headviz.models.families import FAMILIES, REFUSED, UNKNOWN
from support.tiny import PAIRS, TEXTS, tiny_classifier, tiny_folder, tiny_model, tiny_tokenizer
from support.tiny_translation import HEADS, ROWS, SOURCES, TARGETS, sentences, tiny_seq2seq


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tiny_folder(tmp_path / "model")


def edit_config(folder: Path, **changes: Any) -> None:
    config = json.loads((folder / "config.json").read_text())
    config.update(changes)
    (folder / "config.json").write_text(json.dumps(config))


def test_a_local_folder(folder: Path) -> None:
    clf, reference = headviz.load(folder, device="cpu"), tiny_classifier()
    assert (clf.num_layers, clf.num_heads, clf.heads_per_layer) == (3, 4, [4, 4, 4])
    assert clf.labels == ("entailment", "neutral", "contradiction")
    batch = clf.collate(clf.encode(TEXTS, PAIRS))
    assert torch.equal(clf.logits(batch), reference.logits(batch))
    assert not clf.model.training
    assert not any(p.requires_grad for p in clf.model.parameters())


@pytest.mark.parametrize("inner", [1, 2])
def test_albert_groups(inner: int) -> None:
    """ALBERT runs each shared layer several times: every run is a layer of its own for a mask."""
    clf = tiny_classifier("albert", layers=4, num_hidden_groups=2, inner_group_num=inner)
    assert clf.num_layers == 4 * inner
    batch = clf.collate(clf.encode(TEXTS))
    outputs = {
        layer: clf.logits(batch, clf.full_mask.without([(layer, 0)])).tolist() for layer in range(clf.num_layers)
    }
    assert len({str(v) for v in outputs.values()}) == clf.num_layers
    assert clf.projections(0).output is clf.projections(inner).output
    assert clf.projections(0).output is not clf.projections(2 * inner).output


def test_the_digest_is_of_the_weights_not_of_the_name(folder: Path, tmp_path: Path) -> None:
    a = headviz.load(folder, device="cpu")
    shutil.copytree(folder, tmp_path / "renamed")
    edit_config(tmp_path / "renamed", _name_or_path="something/else")
    assert headviz.load(tmp_path / "renamed", device="cpu").digest == a.digest
    assert headviz.wrap(tiny_model("bert"), tiny_tokenizer(), name="x").digest == a.digest
    assert headviz.load(tiny_folder(tmp_path / "other", seed=1), device="cpu").digest != a.digest
    edit_config(tmp_path / "renamed", layer_norm_eps=1e-3)
    assert headviz.load(tmp_path / "renamed", device="cpu").digest != a.digest


def test_a_weight_changed_in_place_changes_the_digest(folder: Path) -> None:
    clf = headviz.load(folder, device="cpu")
    before, copied = clf.digest, headviz.load(folder, device="cpu").model.state_dict()
    with torch.no_grad():
        next(clf.model.parameters()).add_(1)
    changed = clf.digest
    assert changed != before
    assert clf.filled(None).digest == changed
    clf.model.load_state_dict(copied)
    assert clf.digest == before
    clf.model.double()
    assert clf.digest not in (before, changed)
    clf.model.float()
    assert clf.digest == before
    clf.model.config.layer_norm_eps *= 10
    assert clf.digest not in (before, changed)


def test_the_tokenizer_digest_ignores_padding_set_by_others(folder: Path) -> None:
    a, b = headviz.load(folder, device="cpu"), headviz.load(folder, device="cpu")
    b.tokenizer(TEXTS, padding=True, truncation=True, max_length=5)
    assert a.tokenizer_digest == b.tokenizer_digest
    c = headviz.wrap(tiny_model("roberta"), tiny_tokenizer(1))
    assert a.tokenizer_digest != c.tokenizer_digest


@pytest.mark.parametrize("architecture", ["BertForMultipleChoice", "MyOwnClassifier"])
def test_a_model_of_another_job_is_not_told_to_be_fine_tuned(tmp_path: Path, architecture: str) -> None:
    model = tiny_model("bert")
    model.bert.save_pretrained(tmp_path / "m")
    tiny_tokenizer().save_pretrained(tmp_path / "m")
    config = tmp_path / "m" / "config.json"
    own = json.loads(config.read_text()) | {"architectures": [architecture]}
    config.write_text(json.dumps(own))
    with pytest.raises(ModelError, match=r"headviz\.masked") as refusal:
        headviz.load(tmp_path / "m", device="cpu")
    assert architecture in str(refusal.value)
    assert "fine-tune" not in str(refusal.value)


def test_a_fresh_head_for_an_encoder(tmp_path: Path) -> None:
    source = tiny_model("bert")
    encoder = AutoModelForMaskedLM.from_config(source.config)
    encoder.bert.load_state_dict(source.bert.state_dict(), strict=False)
    encoder.save_pretrained(tmp_path / "m")
    tiny_tokenizer().save_pretrained(tmp_path / "m")
    with pytest.raises(ModelError, match="has no trained classification head"):
        headviz.load(tmp_path / "m", device="cpu")
    assert headviz.load(tmp_path / "m", device="cpu", fresh_labels=("no", "yes")).labels == ("no", "yes")
    masked_lm = headviz.load(tmp_path / "m", device="cpu", masked_lm=True)
    batch = masked_lm.collate(masked_lm.encode(TEXTS))
    assert masked_lm.logits(batch).shape[2] == masked_lm.config.vocab_size


@pytest.mark.parametrize(
    ("family", "labels"), [("bert", ("a", "b", "c")), ("roberta", ("a", "b")), ("distilbert", ("a", "b"))]
)
def test_a_fresh_head_takes_the_place_of_a_trained_one(tmp_path: Path, family: str, labels: tuple[str, ...]) -> None:
    """Of as many classes or of others: the head is new, the encoder is the file's."""
    folder = tiny_folder(tmp_path / "m", family)
    old = headviz.load(folder, device="cpu").model
    state = torch.random.get_rng_state()
    one, same, two = (headviz.load(folder, device="cpu", fresh_labels=labels, seed=s) for s in (1, 1, 2))
    assert torch.equal(state, torch.random.get_rng_state())
    assert one.digest == same.digest != two.digest
    inside = f"{old.base_model_prefix}."
    trained, new, other = (dict(m.named_parameters()) for m in (old, one.model, two.model))
    drawn = 0
    for name, weight in new.items():
        if name.startswith(inside):
            assert torch.equal(weight, trained[name]), name
        elif weight.ndim > 1:
            drawn += 1
            assert not torch.equal(weight, other[name]), name
            assert weight.shape != trained[name].shape or not torch.equal(weight, trained[name]), name
    assert drawn


def test_long_texts_are_cut_and_counted(folder: Path) -> None:
    clf = headviz.load(folder, device="cpu")
    encodings = clf.encode(["a dog " * 100, "a dog"], ["a cat", "a cat"])
    assert [e.truncated for e in encodings] == [True, False]
    assert len(encodings[0]) == clf.max_length == 64
    assert encodings[0].types.count(1) == 3  # the pair is kept whole: the longest text is cut
    clf.logits(clf.collate(encodings))


# bad input: one clear line ------------------------------------------------------------------------


def refused(what: Any, match: str, **options: Any) -> None:
    with pytest.raises(ModelError, match=match) as error:
        headviz.load(what, **{"device": "cpu", **options})
    assert "\n" not in str(error.value)


def cut_in_half(folder: Path) -> None:
    raw = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(raw[: len(raw) // 2])


def with_a_nan(folder: Path) -> None:
    model = tiny_model()
    model.classifier.weight.data[0, 0] = float("nan")
    model.save_pretrained(folder)


def without_tokenizer(folder: Path) -> None:
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).unlink()


def with_its_own_code(folder: Path) -> None:
    edit_config(folder, model_type="my-bert", auto_map={"AutoModel": "modeling.MyBert"})
    (folder / "modeling.py").write_text("raise SystemExit('this must never run')")


DAMAGES: list[tuple[Callable[[Path], Any], str]] = [
    (lambda folder: (folder / "config.json").write_text("{"), "config.json .* cannot be read"),
    (lambda folder: (folder / "model.safetensors").unlink(), r"no weights: a file model\.safetensors is needed"),
    (lambda folder: (folder / "model.safetensors").rename(folder / "pytorch_model.bin"), "only as pickle files"),
    (cut_in_half, "cannot be read"),
    (with_a_nan, r"not finite numbers \(classifier.weight\)"),
    (without_tokenizer, "has no tokenizer: one of tokenizer.json"),
    (lambda folder: edit_config(folder, vocab_size=50), "the model knows 50"),
    (with_its_own_code, "which headviz never runs"),
]


@pytest.mark.parametrize(("damage", "match"), DAMAGES, ids=[match for _, match in DAMAGES])
def test_a_damaged_folder(folder: Path, damage: Callable[[Path], Any], match: str) -> None:
    damage(folder)
    refused(folder, match)


def test_arguments_that_name_nothing(folder: Path) -> None:
    refused("./no/such/folder", "no folder './no/such/folder'.*Built-in models: demo")
    refused(folder / "config.json", "is a file. Give the folder")
    refused(folder, "Device 'warp' is not available", device="warp")
    refused(folder, "Did you mean 'float16'\\?", dtype="flaot16")
    refused("some/model-that-was-never-downloaded", "is not on this machine and the hub cannot be reached")
    refused("demo-trained", r"Did you mean the built-in 'demo-pretrained' or 'demo-translation'\?")


def test_a_folder_without_config(tmp_path: Path) -> None:
    refused(tmp_path, "no config.json.*Give the folder that holds the model")
    for name in ("pruned", "masked"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text("{}")
    refused(tmp_path, f"Did you mean {tmp_path}/masked or {tmp_path}/pruned")


def test_a_head_of_another_size_is_named(folder: Path, tmp_path: Path) -> None:
    """Of a class that we know, and of one that answers with something else."""
    clf = headviz.load(folder, device="cpu")
    config = json.loads((folder / "config.json").read_text())
    config |= {"id2label": {"0": "no", "1": "yes"}, "label2id": {"no": 0, "yes": 1}}
    assert len(clf.labels) != 2
    (folder / "config.json").write_text(json.dumps(config))
    refused(folder, r"config\.json: classifier\..*Put the configuration")
    another = BertForMultipleChoice(BertConfig(**clf.model.config.to_dict()))
    another.save_pretrained(tmp_path / "another")
    clf.tokenizer.save_pretrained(tmp_path / "another")
    refused(tmp_path / "another", r"config\.json: classifier\..*headviz\.masked")
    with pytest.raises(ModelError, match=r"headviz\.masked"):
        headviz.wrap(another, clf.tokenizer)


NO_HEADS = [None, [], [[0], [1]], [[0], [1], "2"], [[0], [1], [4]], [[0], [1], [1, 1]], [[0], [1], [True]], {"0": [1]}]


def test_heads_that_are_no_heads_of_the_model(folder: Path, tmp_path: Path) -> None:
    clf = headviz.load(folder, device="cpu")
    out = headviz.prune(clf, clf.full_mask.without([(0, 0)])).save(tmp_path / "pruned")
    record = json.loads((out / "config.json").read_text())["quantization_config"]
    for heads in NO_HEADS:
        edit_config(out, quantization_config={**record, "heads": heads})
        refused(out, "heads lists for each of 3 layers")
    edit_config(out, quantization_config={**record, "heads": [[0, 1, 2, 3], [1, 2, 3], [0, 1, 2, 3]]})
    refused(out, "mismatch|do not match")


def test_an_unsupported_family(folder: Path) -> None:
    """The reason, and what is supported, of the same catalogue as the documentation's."""
    for model_type, why in (("longformer", "windows"), ("rembert", "would be passed over"), ("my-own", UNKNOWN)):
        edit_config(folder, model_type=model_type)
        refused(folder, f"'{model_type}' are not supported: .*{why}.* Supported families: BERT, RoBERTa, .*, T5")
    assert not set(REFUSED) & set(FAMILIES)


def test_code_beside_a_supported_family_is_not_run(folder: Path) -> None:
    edit_config(folder, auto_map={"AutoModelForSequenceClassification": "modeling.MyBert"})
    (folder / "modeling.py").write_text("raise SystemExit('this must never run')")
    assert headviz.load(folder, device="cpu").num_layers == 3


# the hub, answered from a recording ----------------------------------------------------------------


def hub_error(kind: str, status: int) -> Exception:
    """An error as the hub's client raises it, with the HTTP library that it uses itself."""
    from huggingface_hub import errors

    http = pytest.importorskip(errors.HfHubHTTPError.__mro__[1].__module__.split(".")[0])
    request = http.Request("GET", "https://hub.invalid/api/models/some/model")
    return getattr(errors, kind)("recorded", response=http.Response(status, request=request))


def test_hub_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    for error, match in (
        (hub_error("RepositoryNotFoundError", 404), "no model 'some/model' on the hub, or it is private.*HF_TOKEN"),
        (hub_error("GatedRepoError", 403), "asks for your consent"),
        (hub_error("RevisionNotFoundError", 404), "no revision 'v9'"),
        (hub_error("HfHubHTTPError", 500), "was interrupted .*continues where it stopped"),
        (
            PermissionError(13, "Permission denied", "/readonly/hub"),
            r"cannot be written \(/readonly/hub\). Set HF_HOME",
        ),
        (ConnectionResetError("reset by peer"), "was interrupted .ConnectionResetError..*continues where it stopped"),
    ):

        def fail(*_: Any, error: Exception = error, **__: Any) -> str:
            raise error

        monkeypatch.setattr("huggingface_hub.snapshot_download", fail)
        refused("some/model", match, revision="v9")


def test_a_hub_model_is_fetched_at_its_revision_without_pickles_or_code(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {}

    def fetch(repo: str, **options: Any) -> str:
        asked.update(options, repo=repo)
        return str(folder)

    monkeypatch.setattr("huggingface_hub.snapshot_download", fetch)
    assert headviz.load("some/model", revision="v1.0", device="cpu").name == "some/model"
    assert (asked["repo"], asked["revision"]) == ("some/model", "v1.0")

    def wanted(name: str) -> bool:
        return any(fnmatch(name, p) for p in asked["allow_patterns"]) and not any(
            fnmatch(name, p) for p in asked["ignore_patterns"]
        )

    for file in ("model-00001-of-00002.safetensors", "vocab.txt", "source.spm", "generation_config.json"):
        assert wanted(file), file
    for never in ("pytorch_model.bin", "modeling_bert.py", "onnx/model.safetensors", "tf_model.h5"):
        assert not wanted(never), never
    assert "modeling" not in " ".join(hub.WANTED)


def test_outputs_without_names_are_named_by_the_user(tmp_path: Path) -> None:
    """Most published checkpoints call their classes LABEL_0, LABEL_1."""
    folder = tiny_folder(tmp_path / "m", labels=("LABEL_0", "LABEL_1", "LABEL_2"))
    names = ("no", "maybe", "yes")
    load = headviz.load
    bare, named = load(folder, device="cpu"), load(folder, device="cpu", class_names=names)
    assert named.labels == names
    assert named.digest == bare.digest  # the weights are the same
    named.save(tmp_path / "saved")
    assert load(tmp_path / "saved", device="cpu").labels == names
    for wrong, said in (
        (names[:2], "names 2 classes, but .* has 3 outputs"),
        (("no", "no", "yes"), "different names"),
        ("no,maybe,yes", "different names"),
    ):
        with pytest.raises(ModelError, match=said):
            load(folder, device="cpu", class_names=wrong)
    with pytest.raises(ModelError, match="no classes to name"):
        load("demo-translation", device="cpu", class_names=names)


def test_several_numbers_for_a_text_are_refused(folder: Path) -> None:
    """Taken for one answer, they would be evaluated by the wrong rule, in silence."""
    edit_config(folder, problem_type="regression")
    with pytest.raises(ModelError, match="gives several numbers"):
        headviz.load(folder, device="cpu")
    with pytest.raises(ModelError, match="gives several numbers"):
        headviz.wrap(tiny_model(problem_type="regression"), tiny_tokenizer())
    assert headviz.load(folder, device="cpu", job="class").job == "class"
    assert headviz.load(folder, device="cpu", fresh_labels=("no", "yes")).labels == ("no", "yes")
    edit_config(folder, problem_type="single_label_classification")
    assert headviz.load(folder, device="cpu").num_labels == 3


# the hub's Marian models bring two SentencePiece models, which want a package that headviz does not -


def folder_of(place: Path, source: bytes, target: bytes, vocab: dict[str, int]) -> Path:
    """A folder as the hub's Marian models have it."""
    numbers = {"pad_token_id": vocab["<pad>"], "decoder_start_token_id": vocab["<pad>"], "eos_token_id": 0}
    model = tiny_seq2seq("marian", vocab_size=len(vocab), forced_eos_token_id=None, **numbers)
    model.save_pretrained(place)
    (place / "source.spm").write_bytes(source)
    (place / "target.spm").write_bytes(target)
    (place / "vocab.json").write_text(json.dumps(vocab))
    about = {"source_lang": "en", "target_lang": "de", "tokenizer_class": "MarianTokenizer"}
    (place / "tokenizer_config.json").write_text(json.dumps(about))
    return place


def test_without_the_package_the_command_says_what_to_install(tmp_path, monkeypatch, capsys):
    pytest.importorskip("headviz.extras.translation")
    vocab = {"</s>": 0, "<unk>": 1, "a": 2, "<pad>": 3}
    place = folder_of(tmp_path / "marian", b"x", b"x", vocab)

    def refuse(*_: object, **__: object) -> None:  # what transformers says where it is not there
        raise ImportError("\nMarianTokenizer requires the SentencePiece library but it was not found.")

    monkeypatch.setattr(AutoTokenizer, "from_pretrained", refuse)
    with pytest.raises(ModelError, match=r"needs the package sentencepiece, which is not installed"):
        headviz.load(place)
    capsys.readouterr()
    assert cli.main(["info", "--model", str(place)]) == 2
    said = capsys.readouterr().err.strip().splitlines()
    assert len(said) == 1
    assert said[0].endswith("pip install 'headviz[translation]'.")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")
def test_with_it_such_a_model_is_evaluated_scored_pruned_and_reloaded(tmp_path):
    spm = pytest.importorskip("sentencepiece", reason="the extra 'translation' is not installed")
    trained = []
    for side in (SOURCES, TARGETS):
        made = io.BytesIO()
        spm.SentencePieceTrainer.train(
            sentence_iterator=iter(side * 20), model_writer=made, vocab_size=40, hard_vocab_limit=False, minloglevel=2
        )
        trained.append(made.getvalue())
    read = [spm.SentencePieceProcessor(model_proto=raw) for raw in trained]
    pieces = {p.id_to_piece(i) for p in read for i in range(p.get_piece_size())} - {"<s>", "</s>", "<unk>"}
    vocab = {piece: i for i, piece in enumerate(["</s>", "<unk>", *sorted(pieces), "<pad>"])}
    clf = headviz.load(folder_of(tmp_path / "marian", *trained, vocab), device="cpu")

    assert [clf.tokenizer.decode(e.target, skip_special_tokens=True) for e in clf.encode(SOURCES, TARGETS)] == TARGETS
    mask = HeadMask.full(ROWS, HEADS).without([(0, 1), (3, 2)])
    masked = headviz.evaluate(clf, sentences(), mask)
    assert headviz.score_heads(clf, sentences(), "taylor", cache=False).values.shape == (ROWS, HEADS)
    headviz.prune(clf, mask).save(tmp_path / "small")
    small = headviz.load(tmp_path / "small", device="cpu")
    assert small.present == mask
    assert headviz.evaluate(small, sentences()).translations == masked.translations
