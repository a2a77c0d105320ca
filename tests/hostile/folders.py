"""Hostile model folders: integer settings of every family, files of holes, tokenizers. What loads is used."""

from __future__ import annotations

import base64
import json
import random
import shutil
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from support.tiny import ALL_FAMILIES, tiny_folder

from .case import Case
from .files import changed
from .place import Place
from .values import JSONS, WORDS

SIZES = [-1, 0, 1, 3, 10**4, 10**6, 3 * 10**7, 2**31, 10**12, 10**18, 10**30]
EMPTY = struct.pack("<Q", 2) + b"{}"
CODE = ["auto_map", "custom_generate", "chat_template", "vocab_file", "tokenizer_file", "merges_file"]


@cache
def _sound(place: Path, family: str) -> Path:
    return tiny_folder(place / f"sound-{family}", family, layers=3, heads=2, hidden=8, labels=("no", "yes"))


@contextmanager
def copied(place: Place, family: str, seed: int) -> Iterator[Path]:
    """A folder of its own, which goes away."""
    folder = place.out / f"folder-{seed}"
    sound = _sound(place.folder.parent, family)
    shutil.copytree(sound, folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def use(folder: Path) -> None:
    """Load a folder, and explain a text of words that its tokenizer does not know."""
    import headviz

    clf = headviz.load(folder, device="cpu")
    headviz.conductance(clf, "a zebra ² 🙂 sleeps", steps=1, tolerance=None)


def setting_case(draw: random.Random, place: Place) -> Case:
    family, seed = draw.choice(ALL_FAMILIES), draw.randrange(10**9)

    def run() -> None:
        own = random.Random(seed)
        with copied(place, family, seed) as folder:
            config = json.loads((folder / "config.json").read_text())
            numbers = sorted(k for k, v in config.items() if type(v) is int)
            for key in own.sample(numbers, own.choice((1, 1, 2))):
                config[key] = own.choice(SIZES)
            if own.random() < 0.1:
                heads = own.choice((3, 1000))
                config["pruned_heads"] = {str(i): list(range(heads)) for i in range(heads)}
            (folder / "config.json").write_text(json.dumps(config))
            if own.random() < 0.2:
                (folder / "model.safetensors").write_bytes(EMPTY)
            use(folder)

    return Case("setting", f"{family}, seed {seed}", run)


HOLES = (
    "vocab.txt merges.txt vocab.json tokenizer.json tokenizer_config.json special_tokens_map.json added_tokens.json "
    "generation_config.json config.json headviz.json rnn.json adapter_config.json model.safetensors "
    "model.safetensors.index.json adapter_model.safetensors chat_template.jinja chat_templates/a.jinja "
    "additional_chat_templates/a.jinja spiece.model sentencepiece.bpe.model source.spm bpe.codes vocab.bpe dict.txt "
    "tekken.json tokenizer.model.v3 qwen.tiktoken processor_config.json README.md modules.json strange.xyz pickle.bin"
).split()


def holes_case(draw: random.Random, place: Place) -> Case:
    file, seed = draw.choice(HOLES), draw.randrange(10**9)
    size = draw.choice([200 * 2**20, 5 * 2**30, 12 * 2**30, 2**40])
    begin = draw.choice([b"", b"{", b'{"a": "', b"a\nb\n", b"PK\3\4", b"\x80\x04"])
    alone = draw.random() < 0.3

    def run() -> None:
        with copied(place, "bert", seed) as folder:
            if alone and file in ("vocab.txt", "vocab.json", "spiece.model"):
                (folder / "tokenizer.json").unlink()
            (folder / file).parent.mkdir(exist_ok=True)
            with (folder / file).open("wb") as holes:
                holes.write(begin)
                holes.truncate(size)
            use(folder)

    def read() -> None:
        import headviz

        ending = Path(file).suffix.lstrip(".")
        path = place.out / f"holes-{seed}.{ending if ending in ('json', 'txt') else 'csv'}"
        with path.open("wb") as holes:
            holes.write(begin)
            holes.truncate(size)
        try:
            if path.suffix == ".csv":
                headviz.load_task("custom", data=path, text_columns="text")
            else:
                headviz.read_mask(path, 2, 2)
        finally:
            path.unlink()

    other = draw.random() < 0.2
    return Case("holes", f"{file}, {size:,} bytes after {begin!r}, seed {seed}", read if other else run)


def _classes() -> list[str]:
    import transformers

    return sorted(n for n in dir(transformers) if n[:1].isupper())


def _tokenizer_class(folder: Path, draw: random.Random) -> None:
    _change(folder / "tokenizer_config.json", lambda c: c.update(tokenizer_class=draw.choice(_classes())))
    if draw.random() < 0.5:
        (folder / "tokenizer.json").unlink()
        (folder / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n")


def _large_ids(folder: Path, draw: random.Random) -> None:
    def change(found: Any) -> None:
        vocab = found["model"]["vocab"]
        for word in draw.sample(sorted(vocab), 3):
            vocab[word] = draw.choice([10**4, 10**7, 2**31, 2**32 - 1, 2**33, -1])

    _change(folder / "tokenizer.json", change)


def _no_unknown(folder: Path, draw: random.Random) -> None:
    def change(found: Any) -> None:
        del found["model"]["vocab"]["[UNK]"]
        found["added_tokens"] = [t for t in found["added_tokens"] if t["content"] != "[UNK]"]

    _change(folder / "tokenizer.json", change)
    _change(folder / "tokenizer_config.json", lambda c: c.pop("unk_token", None))


def _length(folder: Path, draw: random.Random) -> None:
    value = draw.choice([-1, 0, 1, 2, 10**30, -(10**30), "long", None, 1.5, True, [], {}, float("1e400")])
    _change(folder / "tokenizer_config.json", lambda c: c.update(model_max_length=value))


def _normalizer(folder: Path, draw: random.Random) -> None:
    size = draw.choice([0, 4, 2**10, 2**20, 2**31, 2**32 - 1])
    table = base64.b64encode(struct.pack("<I", size) + draw.randbytes(draw.choice([0, 4, 300]))).decode()
    forged: Any = {"type": "Precompiled", "precompiled_charsmap": draw.choice([table, "x", 3, None, [table]])}
    for _ in range(draw.choice([0, 0, 1, 50])):
        forged = {"type": "Sequence", "normalizers": [forged]}
    _change(folder / "tokenizer.json", lambda t: t.update(normalizer=forged))


def _part(folder: Path, draw: random.Random) -> None:
    for _ in range(draw.choice([1, 1, 3])):
        path = folder / draw.choice(["tokenizer.json", "tokenizer_config.json"])
        path.write_text(json.dumps(changed(json.loads(path.read_text()), draw)))


def _setting(folder: Path, draw: random.Random) -> None:
    key = draw.choice(
        [*CODE, "do_lower_case", "pad_token", "cls_token", "unk_token", "added_tokens_decoder", "backend"]
    )
    value = draw.choice([*JSONS, *WORDS, "/dev/zero", {"7": {"content": "a", "special": True}}, {"999999999": "a"}])
    _change(folder / "tokenizer_config.json", lambda c: c.update({key: value}))


TOKENIZERS = [_tokenizer_class, _tokenizer_class, _large_ids, _no_unknown, _length, _normalizer, _part, _part, _setting]


def tokenizer_case(draw: random.Random, place: Place) -> Case:
    what, seed = draw.choice(TOKENIZERS), draw.randrange(10**9)

    def run() -> None:
        with copied(place, "bert", seed) as folder:
            what(folder, random.Random(seed))
            use(folder)

    return Case("tokenizer", f"{what.__name__}, seed {seed}", run)


def _change(path: Path, change: Callable[[Any], object]) -> None:
    result = json.loads(path.read_text())
    change(result)
    path.write_text(json.dumps(result))
