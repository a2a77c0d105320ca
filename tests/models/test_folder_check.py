"""Foreign model folders: every wrong file is one line that names it, before transformers sees the folder."""

from __future__ import annotations

import base64
import json
import os
import shutil
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import headviz
from headviz.errors import ModelError, UserError
from headviz.models.folder_check import check_folder, naming
from support.tiny import tiny_folder


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_folder(tmp_path_factory.mktemp("model") / "tiny", layers=2, heads=2, hidden=8)


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "tiny"))


def refused(folder: Path) -> str:
    start = time.perf_counter()
    with pytest.raises(UserError) as wrong:
        check_folder(folder, "it")
    assert time.perf_counter() - start < 5
    text = str(wrong.value)
    assert "\n" not in text
    assert len(text) < 400
    return text


DEEP = "[" * 100_000 + "]" * 100_000
SETTINGS: dict[str, list[Any]] = {
    "num_hidden_layers": [0, -1, 10**6, 10**18, 1.5, True, "2", [2], {}],
    "num_attention_heads": [0, -2, 10**6, "2"],
    "hidden_size": [0, 10**18, 2**17 + 1, "8"],
    "intermediate_size": [-1, 10**9],
    "vocab_size": [0, 10**18, "40"],
    "max_position_embeddings": [0, 10**18],
    "type_vocab_size": [-1, 10**12],
    "dtype": ["nn", "int64", "float128", 3, ["float32"]],
    "torch_dtype": ["load", "uint8"],
    "quantization_config": [{"quant_method": "bitsandbytes"}, [], "x"],
    "id2label": [{"0": None}, {"0": True}, {"x": "a"}, {"1": "a"}, {"0": "a", "7": "b"}, ["a"], "a", {"-1": "a"}],
    "label2id": [["a"], 3],
    "num_labels": [0, -1, 10**9, "2", True],
    "architectures": ["BertModel", [3], {}],
    "model_type": [3, None, ["bert"]],
}


@pytest.mark.parametrize("key", SETTINGS)
def test_a_wrong_setting_is_named(key: str, folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    for value in SETTINGS[key]:
        (folder / "config.json").write_text(json.dumps({**config, key: value}))
        assert key in refused(folder) or key == "quantization_config", value


JSONS = ["", "{", "[]", "3", "null", DEEP, '{"a": NaN}', '{"a": ' + "9" * 5000 + "}", "\udcff", "{}" * 2]


@pytest.mark.parametrize("file", ["config.json", "tokenizer_config.json", "headviz.json"])
def test_json_that_is_none_is_named(file: str, folder: Path) -> None:
    for text in JSONS:
        (folder / file).write_bytes(text.encode("utf-8", "surrogateescape"))
        assert file in refused(folder), text[:20]


@pytest.mark.parametrize("file", ["config.json", "tokenizer.json", "model.safetensors"])
def test_a_pipe_for_a_file_is_refused_without_waiting(file: str, folder: Path) -> None:
    (folder / file).unlink(missing_ok=True)
    os.mkfifo(folder / file)
    assert file in refused(folder)


def header(content: Any, length: int | None = None, tail: bytes = b"") -> bytes:
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + tail


WEIGHTS: dict[str, bytes] = {
    "empty": b"",
    "a pickle": b"\x80\x04\x95" + b"x" * 200,
    "a zip": b"PK\x03\x04" + b"x" * 200,
    "zeros": b"\0" * 500,
    "a huge length": header(b"{}", 2**63),
    "no JSON": header(b"nonsense!"),
    "a list": header([]),
    "nested": header(b"[" * 50_000 + b"]" * 50_000),
    "no offsets": header({"a": {"dtype": "F32", "shape": [1]}}),
    "cut": header({"a": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}, tail=b"\0" * 8),
    "whole numbers": header({"b.bias": {"dtype": "I64", "shape": [1], "data_offsets": [0, 8]}}, tail=b"\0" * 8),
}


def test_only_safetensors_by_content_are_opened(folder: Path) -> None:
    for what, content in WEIGHTS.items():
        (folder / "model.safetensors").write_bytes(content)
        assert "model.safetensors" in refused(folder), what


@pytest.mark.parametrize(
    "file", ["weights.bin", "../model.safetensors", "/tmp/model.safetensors", "gone.safetensors", 3, "a/b.safetensors"]
)
def test_an_index_leads_only_to_safetensors_of_the_folder(file: Any, folder: Path) -> None:
    (folder / "weights.bin").write_bytes(b"\x80\x04.")
    index = {"metadata": {}, "weight_map": {"bert.pooler.dense.bias": file}}
    (folder / "model.safetensors").rename(folder / "other.safetensors")
    shutil.copy(folder / "other.safetensors", folder.parent / "model.safetensors")  # what an index may not reach
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    assert "model.safetensors.index.json" in refused(folder)
    with pytest.raises(ModelError, match=r"model\.safetensors\.index\.json"):
        headviz.load(folder)


# each asks for more than 64 million numbers, of a model of some 10,000
LARGE_SETTINGS: list[tuple[str, dict[str, Any]]] = [
    ("bert", {"num_hidden_layers": 500, "hidden_size": 2**16}),
    ("bert", {"vocab_size": 10**7}),
    ("deberta-v2", {"position_buckets": 3 * 10**6}),
    ("deberta-v2", {"position_buckets": -1, "max_relative_positions": 3 * 10**6}),
    ("deberta-v2", {"pooler_hidden_size": 9000}),
    ("deberta-v2", {"conv_kernel_size": 100_001, "conv_act": "tanh"}),
    ("layoutlm", {"max_2d_position_embeddings": 2 * 10**6}),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "settings"), LARGE_SETTINGS, ids=lambda v: "-".join(v) if isinstance(v, dict) else v
)
def test_a_configuration_far_larger_than_its_weights_is_refused(
    family: str, settings: dict[str, Any], tmp_path: Path
) -> None:
    folder = tiny_folder(tmp_path / "it", family)
    change("config.json", **settings)(folder)
    with pytest.raises(ModelError, match="its files hold"):
        headviz.load(folder)


@pytest.mark.parametrize("record", [False, True])
@pytest.mark.parametrize("tensors", [{}, {"a": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}}])
def test_weights_that_hold_nothing_do_not_excuse_a_large_configuration(
    tensors: dict[str, Any], record: bool, folder: Path
) -> None:
    change("config.json", vocab_size=10**7)(folder)
    (folder / "model.safetensors").write_bytes(header(tensors))
    if record:
        sizes = {"num_layers": 2, "num_heads": 2, "present": "f"}
        (folder / "headviz.json").write_text(json.dumps({"format": 1, "kind": "classification", **sizes}))
    with pytest.raises(ModelError, match="its files hold 0"):
        headviz.load(folder)


@pytest.mark.parametrize("setting", ["units", "target_words"])
def test_a_recurrent_network_is_no_larger_than_its_weights(setting: str, tmp_path: Path) -> None:
    from headviz.extras.translation.recurrent import RnnTranslator

    folder = RnnTranslator.new(["a b"], ["c d"], embedding=4, hidden=4, units=4).save(tmp_path / "rnn")
    record = json.loads((folder / "rnn.json").read_text())
    change("rnn.json", config={**record["config"], setting: 10**6})(folder)
    with pytest.raises(ModelError, match="larger network"):
        headviz.load(folder)


@pytest.mark.parametrize("file", ["vocab.txt", "vocab.json", "spiece.model", "additional_chat_templates/a.jinja"])
def test_a_file_of_the_tokenizer_has_a_largest_size(file: str, folder: Path) -> None:
    (folder / file).parent.mkdir(exist_ok=True)
    with (folder / file).open("wb") as holes:
        holes.truncate(12 * 2**30)
    assert Path(file).name in refused(folder)


FORGED = b"\xff\xff\xff\xff" + bytes(300)  # says that 4 GiB follow, for which tokenizers reserves 8 GiB


@pytest.mark.parametrize("inside", [False, True])
def test_a_normalizer_that_says_it_is_larger_than_it_is_is_refused(inside: bool, folder: Path) -> None:
    forged = {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(FORGED).decode()}
    change("tokenizer.json", normalizer={"type": "Sequence", "normalizers": [forged]} if inside else forged)(folder)
    assert "tokenizer.json" in refused(folder)


def test_a_forged_normalizer_of_sentencepiece_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("google.protobuf")
    proto = pytest.importorskip("sentencepiece.sentencepiece_model_pb2").ModelProto()
    for i, word in enumerate(["<unk>", "<s>", "</s>", "▁a"]):
        proto.pieces.add(piece=word, score=-i, type=(2, 3, 3, 1)[i])
    proto.normalizer_spec.precompiled_charsmap = FORGED
    folder = tiny_folder(tmp_path / "it", "xlm-roberta")
    (folder / "tokenizer.json").unlink()
    (folder / "sentencepiece.bpe.model").write_bytes(proto.SerializeToString())
    change("tokenizer_config.json", tokenizer_class="XLMRobertaTokenizer")(folder)
    with pytest.raises(ModelError, match="cannot be read"):
        headviz.load(folder)


def no_unknown(folder: Path) -> None:
    result = json.loads((folder / "tokenizer.json").read_text())
    del result["model"]["vocab"]["[UNK]"]
    result["added_tokens"] = [t for t in result["added_tokens"] if t["content"] != "[UNK]"]
    (folder / "tokenizer.json").write_text(json.dumps(result))
    change("tokenizer_config.json", unk_token=None)(folder)


def large_number(folder: Path) -> None:
    result = json.loads((folder / "tokenizer.json").read_text())
    result["model"]["vocab"]["dog"] = 10**6
    (folder / "tokenizer.json").write_text(json.dumps(result))


@pytest.mark.parametrize(
    ("harm", "says"),
    [
        (no_unknown, "tokenizer"),
        (large_number, "tokens up to number"),
        *[(lambda f, n=n: change("tokenizer_config.json", model_max_length=n)(f), "model_max_length") for n in (-1, 0)],
        *[
            (lambda f, n=n: change("tokenizer_config.json", tokenizer_class=n)(f), "no tokenizer")
            for n in ("BertConfig", "RagModel", "AutoModel", "pipeline")
        ],
    ],
)
def test_a_tokenizer_that_would_fail_in_use_is_refused(harm: Callable[[Path], None], says: str, folder: Path) -> None:
    harm(folder)
    with pytest.raises(ModelError, match=says):
        headviz.load(folder)


def test_a_large_file_of_no_known_kind_is_refused_and_weights_are_not(folder: Path) -> None:
    for file, large in (("pytorch_model.bin", False), ("strange.xyz", True)):
        with (folder / file).open("wb") as holes:
            holes.truncate(12 * 2**30)
        if large:
            assert file in refused(folder)
        else:
            headviz.load(folder)


def test_a_million_pruned_heads_are_refused_at_once(folder: Path) -> None:
    change("config.json", pruned_heads={str(i): list(range(1000)) for i in range(1000)})(folder)
    assert "pruned_heads" in refused(folder)


def change(file: str, **values: Any) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        result = json.loads((folder / file).read_text())
        (folder / file).write_text(json.dumps({**result, **values}))

    return write


def text_in(file: str, text: str) -> Callable[[Path], None]:
    return lambda folder: (folder / file).write_text(text) and None


LOADING: dict[str, Callable[[Path], None]] = {
    "an unknown activation": change("config.json", hidden_act="no-such"),
    "an activation that is none": change("config.json", hidden_act=["gelu"]),
    "heads that do not divide": change("config.json", num_attention_heads=3),
    "a dropout of words": change("config.json", hidden_dropout_prob="much"),
    "a dropout of 7": change("config.json", hidden_dropout_prob=7),
    "an epsilon of words": change("config.json", layer_norm_eps="small"),
    "another width": change("config.json", hidden_size=16),
    "an unknown position": change("config.json", problem_type="none such"),
    "an unknown tokenizer": change("tokenizer_config.json", tokenizer_class="NoSuchTokenizer"),
    "a tokenizer class that is none": change("tokenizer_config.json", tokenizer_class=3),
    "a length that is none": change("tokenizer_config.json", model_max_length="long"),
    "a token that is none": change("tokenizer_config.json", pad_token=3),
    "an odd tokenizer": change("tokenizer.json", model={"type": "WordPiece"}),
    "an empty tokenizer": text_in("tokenizer.json", ""),
    "a tokenizer of zeros": text_in("tokenizer.json", "\0" * 300),
    "a nested tokenizer": text_in("tokenizer.json", DEEP),
    "a tokenizer that is a list": text_in("tokenizer.json", "[]"),
    "no model in the tokenizer": text_in("tokenizer.json", '{"version": "1.0"}'),
    "headviz.json of another format": text_in("headviz.json", '{"format": 99}'),
    "headviz.json without sizes": text_in("headviz.json", '{"format": 1}'),
    "headviz.json of huge sizes": text_in(
        "headviz.json",
        '{"format": 1, "kind": "classification", "num_layers": 1000000, "num_heads": 1000000, "present": "f"}',
    ),
    "headviz.json with words for sizes": text_in(
        "headviz.json", '{"format": 1, "kind": "classification", "num_layers": "two", "num_heads": 2, "present": "f"}'
    ),
    "headviz.json of an unknown kind": text_in(
        "headviz.json", '{"format": 1, "kind": ["x"], "num_layers": 2, "num_heads": 2, "present": "f"}'
    ),
    "headviz.json that does not fit": text_in(
        "headviz.json",
        '{"format": 1, "kind": "classification", "num_layers": 5, "num_heads": 7, "present": "7ffffffff"}',
    ),
}
HARMLESS = {
    "an unknown tokenizer",
    "an unknown position",
    "a token that is none",
    "a length that is none",
}  # may also load


@pytest.mark.parametrize("what", LOADING)
def test_whatever_transformers_throws_is_one_line(what: str, folder: Path) -> None:
    LOADING[what](folder)
    said = ""
    try:
        headviz.load(folder)
    except UserError as wrong:
        said = str(wrong)
    assert said or what in HARMLESS
    assert "\n" not in said
    assert not said or str(folder) in said or "mask" in said


def test_naming_lets_a_break_and_own_errors_through() -> None:
    with pytest.raises(KeyboardInterrupt), naming("x", "it"):
        raise KeyboardInterrupt
    with pytest.raises(ModelError, match="own"), naming("x", "it"):
        raise ModelError("own")
    with pytest.raises(ModelError, match="not enough memory"), naming("x", "it"):
        raise MemoryError
