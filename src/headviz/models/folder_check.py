"""What a model's folder may hold, checked before transformers sees it. Imports no torch.

A folder from elsewhere is not trusted. Only plain files are opened, weights only if they are safetensors by name and by
content, and every JSON file is read here first, with bounds on its size, its nesting and the numbers that say how much
memory and time a model takes.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import stat
import struct
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ..answers.answer import Answer
from ..answers.catalogue import answer_in, answer_named, kind_named
from ..errors import ModelError, UserError, shown
from ..heads import HeadMask
from ..storage.paths import read_small

CONFIG, INDEX = "config.json", "model.safetensors.index.json"
ADAPTER = "adapter_config.json"  # of PEFT
# where the configuration of a pruned model has its heads: the name is transformers', and a method of ours stands there
KEPT, METHOD = "quantization_config", "headviz"
SMALL = 16 * 2**20  # bytes of a JSON file; one with 100,000 class names has 4 MB
# bytes of the other files by their endings, and of a file with any other ending; a published tokenizer.json has 35 MB
LARGEST = {".json": 64 * 2**20, **dict.fromkeys((".txt", ".model", ".spm", ".codes", ".bpe", ".jinja"), 16 * 2**20)}
UNKNOWN = 64 * 2**20
# what no tokenizer is read from: weights, of which a header is read, and what trainings leave behind
WEIGHTS = ".safetensors .bin .pt .pth .ckpt .h5 .msgpack .onnx .onnx_data .ot .gguf .tflite .mlmodel".split()
ANY_SIZE = {*WEIGHTS, *".data .npz .npy .log .zip .gz .tar .parquet .arrow .csv .tsv .jsonl .pdf .png .mp4".split()}
HEADER = 100 * 2**20  # bytes; safetensors' own limit

PARSING = 60  # seconds for a tokenizer

LAYERS, HEADS, WIDTH, WORDS, PLACES = 512, 1024, 2**17, 2**24, 2**24
PRUNED = 2**16  # heads that a configuration may list
# settings that say how much a model takes, by the names of all families -> the largest value
SIZES = {
    **dict.fromkeys(
        "num_hidden_layers n_layers num_layers num_decoder_layers encoder_layers decoder_layers num_hidden_groups "
        "inner_group_num n_layer".split(),
        LAYERS,
    ),
    **dict.fromkeys(
        "num_attention_heads n_heads num_heads encoder_attention_heads decoder_attention_heads "
        "relative_attention_num_buckets n_head num_key_value_heads".split(),
        HEADS,
    ),
    **dict.fromkeys(
        "hidden_size dim d_model d_kv embedding_size intermediate_size hidden_dim d_ff encoder_ffn_dim decoder_ffn_dim "
        "classifier_size n_embd n_inner head_dim true_hidden_size intra_bottleneck_size "
        "num_feedforward_networks".split(),
        WIDTH,
    ),
    **dict.fromkeys("vocab_size decoder_vocab_size type_vocab_size task_type_vocab_size".split(), WORDS),
    **dict.fromkeys(
        "max_position_embeddings n_positions global_attn_every_n_layers local_attention sliding_window".split(), PLACES
    ),
}
MAY_BE_ZERO = {"type_vocab_size"}
DTYPES = ("float32", "float16", "bfloat16", "float64")
WEIGHT_DTYPES = {"F32", "F16", "BF16", "F64"}
BUFFERS = ("position_ids", "token_type_ids")  # tables of whole numbers that some files hold next to the weights


def read_json(path: Path, name: object, limit: int = SMALL) -> dict[str, Any]:
    """A JSON object of a model's folder."""
    try:
        content = read_small(path, limit, path.name)
        parsed = json.loads(content, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else first_line(error)
        raise ModelError(f"{path.name} of '{name}' cannot be read: {why}. Download or save the model again.") from error
    if not isinstance(parsed, dict):
        raise ModelError(f"{path.name} of '{name}' is not a JSON object. Download or save the model again.")
    return parsed


MODULES = "modules.json"  # of a folder of sentence-transformers


def is_embedder(folder: Path, name: object) -> bool:
    """Whether sentence-transformers wrote the folder, for vectors of texts."""
    if not (folder / MODULES).is_file():
        return False
    return any("Pooling" in str(module.get("type")) for module in modules_of(folder, name))


def modules_of(folder: Path, name: object) -> list[dict[str, Any]]:
    try:
        modules = json.loads(read_small(folder / MODULES, SMALL, MODULES))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{MODULES} of '{name}' cannot be read: {error}. Download or save the model again.") from error
    if not isinstance(modules, list) or not all(isinstance(module, dict) for module in modules):
        raise ModelError(f"{MODULES} of '{name}' is no list of modules. Download or save the model again.")
    return modules


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is not a number that JSON knows")


_PARSE = """
import sys
from tokenizers import Tokenizer, normalizers
content, limit = sys.stdin.buffer.read(), int(sys.argv[2])
try:
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
except ImportError:
    pass  # Windows: what asks for too much still ends this process alone
try:
    normalizers.Precompiled(content) if sys.argv[1] == "normalizer" else Tokenizer.from_str(content.decode())
except MemoryError:
    raise
except Exception:
    pass  # reported better where the tokenizer is loaded
"""


_parsed: set[bytes] = set()  # digests of what was parsed without harm


def check_parsed(content: bytes, what: Literal["tokenizer", "normalizer"]) -> None:
    """Parse it in a process of its own, with a limit on memory: the tokenizers library ends the process that asks for
    more memory than there is. A ``ValueError`` if it does so.
    """
    digest = hashlib.sha256(what.encode() + content).digest()
    if digest in _parsed:
        return
    limit = 512 * 2**20 + 64 * len(content)  # tokenizers takes up to 40 times the size of a tokenizer.json
    one_thread = {"TOKENIZERS_PARALLELISM": "false", "RAYON_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"}
    command = [sys.executable, "-P", "-c", _PARSE, what, str(limit)]
    try:
        process = subprocess.run(
            command, input=content, env=os.environ | one_thread, capture_output=True, check=False, timeout=PARSING
        )
    except subprocess.TimeoutExpired:
        raise ValueError(f"the tokenizers library takes more than {PARSING} s for it") from None
    if process.returncode:
        lines = process.stderr.decode(errors="replace").strip().splitlines()
        raise ValueError(f"the tokenizers library ends on it ({lines[0][:200] if lines else 'no memory'})")
    _parsed.add(digest)


def check_folder(folder: Path, name: object) -> tuple[dict[str, Any], int]:
    """Refuse a folder with anything in it that headviz or transformers would stumble over.

    Returns its config.json, and how many numbers its weights hold.
    """
    for path in sorted((*folder.iterdir(), *folder.glob("*/*.jinja"))):
        check_entry(path, name)
    raw = read_json(folder / CONFIG, name)
    check_config(raw, name)
    return raw, _check_weights(folder, name)


def check_entry(path: Path, name: object) -> None:
    """Refuse what is no plain file or folder, and text files that are too large or not what their names say."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise ModelError(f"{path.name} of '{name}' cannot be read: {error.strerror}.") from error
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise ModelError(f"{path.name} in '{name}' is a device, pipe or socket. Give a folder of plain files.")
    if path.suffix in ANY_SIZE or not stat.S_ISREG(mode):
        return
    limit = SMALL if path.name in READ else LARGEST.get(path.suffix, UNKNOWN)
    if path.stat().st_size > limit:  # a file of holes is as large as it says
        raise ModelError(f"{path.name} of '{name}' is larger than {limit:,} bytes. Put the right file there.")
    if path.name in READ:
        read_json(path, name, limit)
    elif path.name.startswith("tokenizer") and path.suffix == ".json":
        read_json(path, name, limit)
        with naming(path.name, name):
            check_parsed(path.read_bytes(), "tokenizer")


# what transformers reads besides the configuration and the weights
READ = {
    "generation_config.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    INDEX,
    "headviz.json",
    "vocab.json",
    "processor_config.json",
    "preprocessor_config.json",
}


def check_config(raw: Mapping[str, Any], name: object) -> None:
    """Types and bounds of the settings that decide what is built."""

    def refused(key: str, why: str) -> ModelError:
        return ModelError(f"config.json of '{name}': {key} is {shown(raw[key])}; {why}.")

    def check_size(key: str, least: int, most: int) -> None:
        value = raw.get(key)
        if value is not None and (type(value) is not int or not least <= value <= most):
            raise refused(key, f"a whole number from {least} to {most:,} is needed")

    if not isinstance(raw.get("model_type", ""), str):
        raise refused("model_type", "a text is needed")
    for key, most in SIZES.items():
        check_size(key, int(key not in MAY_BE_ZERO), most)
    for key in ("dtype", "torch_dtype"):
        if raw.get(key) is not None and str(raw[key]).removeprefix("torch.") not in DTYPES:
            raise refused(key, f"one of {', '.join(DTYPES)} is needed")
    kept = raw.get(KEPT)
    if kept is not None and not (isinstance(kept, dict) and kept.get("quant_method") == METHOD):
        raise ModelError(f"'{name}' is quantised, which headviz does not load. Use the model's float weights.")
    for key, kind in (("architectures", list), ("id2label", dict), ("label2id", dict)):
        if raw.get(key) is not None and not isinstance(raw[key], kind):
            raise refused(key, f"a JSON {'array' if kind is list else 'object'} is needed")
    if not all(isinstance(architecture, str) for architecture in raw.get("architectures") or ()):
        raise refused("architectures", "names are needed")
    pruned = raw.get("pruned_heads") or {}
    if not isinstance(pruned, dict) or not all(isinstance(heads, list) for heads in pruned.values()):
        raise refused("pruned_heads", "lists of heads by layer are needed")
    if sum(map(len, pruned.values())) > PRUNED:
        raise refused("pruned_heads", f"at most {PRUNED:,} heads are possible")
    labels_of(raw, name)
    check_size("num_labels", 1, WIDTH)


def labels_of(raw: Mapping[str, Any], name: object) -> tuple[str, ...]:
    """The class names of a configuration in the order of the model's outputs; empty where it names none."""
    names = raw.get("id2label") or {}
    try:
        numbered = {int(key): value for key, value in names.items()}
    except ValueError:
        raise ModelError(f"config.json of '{name}': id2label has a key that is not a whole number.") from None
    if sorted(numbered) != list(range(len(names))):
        raise ModelError(f"config.json of '{name}': id2label does not number the classes 0, 1, 2, … without a gap.")
    for number, label in numbered.items():
        if isinstance(label, bool) or not isinstance(label, str | int | float):
            raise ModelError(f"config.json of '{name}': id2label[{number}] is {shown(label)}; a text is needed.")
    return tuple(str(numbered[i]) for i in range(len(numbered)))


STACKS = ("encoder", "cross", "decoder")  # of a translation model, in the order of the grid's rows


def names_sizes(raw: Mapping[str, Any]) -> bool:
    """Whether a configuration names layers and heads as most do; those of other models are known once it is loaded."""
    if not raw.get("is_encoder_decoder"):
        return "num_hidden_layers" in raw and "num_attention_heads" in raw
    classifies = any("ForSequenceClassification" in str(a) for a in raw.get("architectures") or ())
    return "encoder_layers" in raw and not classifies


def shape_of(folder: Path) -> tuple[HeadMask, tuple[str, ...], tuple[tuple[str, int], ...], str]:
    """All heads of a model that ``names_sizes``, its labels, its stacks where it has several, and its job; without
    torch."""
    raw = read_json(folder / CONFIG, folder)
    check_config(raw, folder)
    decoder = bool(raw.get("is_encoder_decoder"))
    try:
        sizes = [int(raw[f"{stack}_layers"]) for stack in ("encoder", "decoder", "decoder")] if decoder else []
        layers = sum(sizes) or int(raw["num_hidden_layers"])
        heads = int(raw["encoder_attention_heads" if decoder else "num_attention_heads"])
    except (ValueError, KeyError, TypeError) as error:
        raise ModelError(f"{CONFIG} of '{folder}' cannot be read. Give a folder that holds a model.") from error
    present, stacks = HeadMask.full(layers, heads), tuple(zip(STACKS, sizes, strict=False))
    if is_embedder(folder, folder):
        return present, ("similarity",), stacks, "vector"
    labels = () if decoder else labels_of(raw, folder)
    kinds = [kind for a in raw.get("architectures") or () if (kind := kind_named(str(a), decoder)) is not None]
    if not kinds or (not decoder and kinds[0] == answer_named("word").kind):  # a bare encoder is taken for a classifier
        return present, labels, stacks, "sentence" if decoder else "class"
    return present, labels, stacks, answer_in(kinds[0], raw, len(labels) or 2).job


@dataclass(frozen=True)
class Described:
    """A model by its configuration alone: enough to refuse an output that it does not have."""

    name: str
    answer: Answer
    labels: tuple[str, ...]

    @classmethod
    def read(cls, folder: Path, name: object, job: str | None = None) -> Described | None:
        """None where the configuration leaves it open what the outputs are: an adapter, an encoder without a head."""
        raw = read_json(folder / CONFIG, name) if (folder / CONFIG).is_file() else {}
        labels = labels_of(raw, name)
        kinds = [kind for a in raw.get("architectures") or () if (kind := kind_named(str(a), False)) is not None]
        if not labels or not kinds:
            return None
        return cls(str(name), answer_in(kinds[0], raw, len(labels)) if job is None else answer_named(job), labels)

    @property
    def job(self) -> str:
        return self.answer.job

    def check_classes(self) -> None:
        """A model that has none is refused once it is there."""


def _check_weights(folder: Path, name: object) -> int:
    """Every weights file must be safetensors by name and content; the count of numbers in all of them."""
    if (folder / INDEX).exists():
        files = read_json(folder / INDEX, name).get("weight_map")
        if not isinstance(files, dict) or not files:
            raise ModelError(f"{INDEX} of '{name}' has no weight_map. Download or save the model again.")
        for file in set(map(str, files.values())):
            if os.path.basename(file) != file or not file.endswith(".safetensors"):
                raise ModelError(
                    f"{INDEX} of '{name}' names {shown(file)}: only safetensors files of the folder itself are opened."
                )
            if not (folder / file).is_file():
                raise ModelError(f"{INDEX} of '{name}' names {file}, which is not there. Download the model again.")
    return sum(numbers_in(path, name) for path in sorted(folder.glob("*.safetensors")))


def numbers_in(path: Path, name: object) -> int:
    """How many numbers a safetensors file holds, by its header alone; refuses what is not one, or not whole."""
    if not path.is_file():
        raise ModelError(f"'{name}' has no file {path.name}. Download or save the model again.")

    def damaged(why: str) -> ModelError:
        return ModelError(f"{path.name} of '{name}' cannot be read: {why}. Download or save the model again.")

    size = path.stat().st_size
    with path.open("rb") as file:
        start = file.read(8)
        length = struct.unpack("<Q", start)[0] if len(start) == 8 else 0
        if not 2 <= length <= min(HEADER, size - 8):
            raise damaged("it is not a safetensors file")
        text = file.read(length)
    try:
        header = json.loads(text)
        tensors = {k: v for k, v in header.items() if k != "__metadata__"}
        ends = [v["data_offsets"][1] for v in tensors.values()]
        count = sum(_size(v["shape"]) for v in tensors.values())
        kinds = {k: str(v["dtype"]) for k, v in tensors.items()}
        whole = 8 + length + max(ends, default=0) == size
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as error:
        raise damaged("its header is damaged") from error
    if not whole:
        raise damaged("it is not complete")
    for key, kind in kinds.items():
        if kind not in WEIGHT_DTYPES and not key.endswith(BUFFERS):
            raise ModelError(f"{path.name} of '{name}': {key} has the type {kind}; weights are floating-point numbers.")
    return count


def _size(shape: list[int]) -> int:
    if any(int(n) < 0 for n in shape):
        raise ValueError("a tensor has a negative size")
    return math.prod(map(int, shape))


def first_line(error: BaseException) -> str:
    """What an error says, in one line of at most 300 characters."""
    lines = str(error).strip().splitlines()
    return (lines[0].rstrip(".")[:300] if lines else "") or type(error).__name__


@contextmanager
def naming(file: str, name: object) -> Iterator[None]:
    """Whatever a foreign file makes transformers throw becomes one line that names the file."""
    try:
        yield
    except UserError:
        raise
    except MemoryError as error:
        raise ModelError(f"There is not enough memory to load '{name}'. Free some, or use a smaller model.") from error
    except BaseException as error:
        # a panic of the tokenizers library is no Exception; everything else of that kind, such as a break, goes on
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise ModelError(
            f"{file} of '{name}' cannot be read: {first_line(error)}. Download or save the model again."
        ) from error
