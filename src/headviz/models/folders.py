"""What a model folder holds: tokenizer and weights, each read or refused with one clear line."""

from __future__ import annotations

import copy
import re
import threading
import warnings
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from ..answers.catalogue import kind_named
from ..attention import NAME, quiet, transformers
from ..errors import UNTRAINED, ModelError, shown
from ..heads import CLASSIFICATION, TRANSLATION, VECTOR, HeadMask
from .classifier import NUM_TEXTS
from .feed_forward import sized_as_recorded
from .folder_check import CONFIG, HEADS, INDEX, LAYERS, check_parsed, naming, read_json
from .kinds import AS_IT_IS, answer_to, auto_class, wrapped
from .network import add_bias
from .pruning import cut
from .recorded import present_in
from .saving import FORMAT, RECORD, WEIGHTS

SAFE = {"trust_remote_code": False}
TIMES = 64  # how much more a configuration may describe than its weights hold: a pruned model is built whole, then cut
SPARE = 64 * 2**20  # numbers; tiny weights may have a larger configuration
TOKENIZER = "tokenizer_config.json"
VOCABULARIES = ("tokenizer.json", "vocab.txt", "vocab.json", "*.model")

# transformers loads a family's modules at first use, and the weights of a fresh head come from one generator
_ONE_AT_A_TIME = threading.Lock()


def check_activations(raw: dict[str, Any], name: object) -> None:
    choices = transformers.activations.ACT2FN
    for key in ("hidden_act", "activation", "activation_function", "hidden_activation", "classifier_activation"):
        activation = raw.get(key)
        if key == "classifier_activation" and isinstance(activation, bool):
            continue  # MobileBERT: whether there is one
        if activation is not None and (not isinstance(activation, str) or activation not in choices):
            text = str(activation)[:40]
            raise ModelError(f"config.json of '{name}': {key} is '{text}'; choose one of {', '.join(sorted(choices))}.")


def weights_present(folder: Path, name: object) -> None:
    if (folder / "model.safetensors").exists() or (folder / INDEX).exists():
        return
    if any(any(folder.glob(pattern)) for pattern in ("*.bin", "*.pt", "*.ckpt")):
        raise ModelError(
            f"'{name}' has its weights only as pickle files, which can run code when opened and are not loaded. "
            "The command headviz convert writes them as safetensors."
        )
    raise ModelError(f"'{name}' holds no weights: a file model.safetensors is needed.")


def _config(folder: Path, kind: str, held: int, name: object) -> Any:
    """The configuration; refused if it describes far more than the ``held`` numbers of the folder's weights.

    On the meta device a model takes no memory.
    """
    with naming(CONFIG, name), quiet():
        config = transformers.AutoConfig.from_pretrained(folder, **SAFE)
        with torch.device("meta"):
            model = auto_class(kind).from_config(copy.deepcopy(config), attn_implementation=NAME, **SAFE)
    described = sum(tensor.numel() for tensor in (*model.parameters(), *model.buffers()))
    if described > TIMES * held + SPARE:
        raise ModelError(
            f"config.json of '{name}' describes a model of {described:,} weights, but its files hold {held:,}. "
            "Put the configuration that belongs to these weights there."
        )
    return config


# what comes out of pre-training; other architectures were trained for a job
PRETRAINED = re.compile(r"an encoder|Model|ForMaskedLM|ForPreTraining|LMHead|ForNextSentence|ForCausalLM")
UNKNOWN_HEAD = f"headviz reads no head of its kind; {AS_IT_IS}"


def load_plain(
    folder: Path,
    name: object,
    raw: dict[str, Any],
    held: int,
    fresh_labels: tuple[str, ...] | None,
    kind: str,
    seed: int,
) -> Any:
    with _ONE_AT_A_TIME:
        config = _config(folder, kind, held, name)
    if fresh_labels is not None:
        config.id2label = dict(enumerate(fresh_labels))
        config.label2id = {v: i for i, v in enumerate(fresh_labels)}
        config.problem_type = "regression" if len(fresh_labels) == 1 else "single_label_classification"
        if hasattr(config, NUM_TEXTS):  # the old head's: the data that the new one learns from may be others
            delattr(config, NUM_TEXTS)
    with _ONE_AT_A_TIME, torch.random.fork_rng(devices=[]), quiet():
        torch.manual_seed(seed)
        with naming("The weights", name):
            model, report = auto_class(kind).from_pretrained(
                folder,
                config=config,
                dtype=torch.float32,
                output_loading_info=True,
                ignore_mismatched_sizes=True,
                use_safetensors=True,
                weights_only=True,
                attn_implementation=NAME,
                **SAFE,
            )
    missing = sorted(report["missing_keys"])
    if kind == VECTOR:  # nobody reads its pooler
        missing = [key for key in missing if "pooler." not in key]
    if fresh_labels is not None:
        prefix = f"{model.base_model_prefix}."
        if encoder_keys := [key for key in missing if key.startswith(prefix) and ".pooler." not in key]:
            raise ModelError(f"'{name}' lacks weights of the encoder itself: {', '.join(encoder_keys[:3])}.")
        if all(key.startswith(prefix) for key in missing):
            renew_head(model, seed)  # the file holds a trained head, which is not what was asked for
        return model
    architecture = ", ".join(raw.get("architectures") or []) or "an encoder"
    trained_for_a_job = kind == CLASSIFICATION and not PRETRAINED.search(architecture)
    if mismatched := sorted(report["mismatched_keys"]):
        key, shape, described = mismatched[0]
        remedy = "Put the configuration that belongs to these weights there."
        if trained_for_a_job and kind_named(architecture, False) is None:
            remedy = UNKNOWN_HEAD
        raise ModelError(
            f"The weights of '{name}' ({architecture}) do not match its config.json: {key} is {list(shape)}, not "
            f"{list(described)}. {remedy}"
        )
    if missing:
        remedy = "Load a pre-trained model."
        if kind == CLASSIFICATION:
            remedy = UNKNOWN_HEAD if trained_for_a_job else "Choose a fine-tuned classifier, or fine-tune it first."
        answer: Any = answer_to(kind)
        raise ModelError(
            f"'{name}' ({architecture}) has no trained {answer.trained}: {', '.join(missing[:3])} missing. {remedy}",
            code=UNTRAINED,
        )
    return model


def load_pruned(folder: Path, record: dict[str, Any], held: int, name: object) -> tuple[Any, HeadMask, str]:
    """A folder of format 1, whose weights only headviz reads."""
    if record["format"] != 1:
        raise ModelError(
            f"'{name}' was saved in format {record['format']}; this version of headviz reads up to {FORMAT}."
        )
    present, kind = _recorded(record, name)
    return _with_shapes(folder, present, kind, WEIGHTS, held, name), present, kind


def load_pruned_by_transformers(folder: Path, kind: str, held: int, name: object) -> tuple[Any, HeadMask]:
    """A model whose configuration lists removed heads, as transformers 4 wrote it."""
    weights_present(folder, name)
    with naming(CONFIG, name):
        present = present_in(transformers.AutoConfig.from_pretrained(folder, **SAFE))
    return _with_shapes(folder, present, kind, "model.safetensors", held, name), present


def _with_shapes(folder: Path, present: HeadMask, kind: str, weights: str, held: int, name: object) -> Any:
    """A model that has only the heads ``present``, with its weights from a file."""
    with _ONE_AT_A_TIME, torch.random.fork_rng(devices=[]), quiet(), naming(CONFIG, name):
        config = _config(folder, kind, held, name)
        # the weights may be finer than the configuration says, as those of a model that was turned into float32
        model = auto_class(kind).from_config(config, dtype=torch.float32, attn_implementation=NAME, **SAFE)
        if kind == TRANSLATION:
            model.generation_config = transformers.GenerationConfig.from_pretrained(folder)
    with naming(RECORD, name):
        whole = wrapped(model, None, HeadMask.full(present.num_layers, present.num_heads), "", kind)
        cut(whole, present)
        sized_as_recorded(model)
    try:
        state = load_file(folder / weights)
    except (SafetensorError, OSError) as error:
        raise ModelError(f"{weights} of '{name}' cannot be read: {error}. Save the pruned model again.") from error
    for layer in range(present.num_layers):
        output = whole.projections(layer).output
        path = next(path for path, module in model.named_modules() if module is output)
        bias = state.get(f"{path}.bias")
        if output.bias is None and bias is not None and bias.shape == (output.out_features,):
            add_bias(output, torch.zeros_like(bias))  # what stands in the place of removed heads
    try:
        missing, unexpected = model.load_state_dict(state, strict=False)
    except RuntimeError as error:
        raise ModelError(
            f"The weights of '{name}' do not fit its record: {str(error).splitlines()[-1].strip()}"
        ) from error
    if unexpected or not all(_is_tied(model, key, state) for key in missing):
        raise ModelError(f"The weights of '{name}' do not fit its configuration. Save the pruned model again.")
    return model


def _recorded(record: dict[str, Any], name: object) -> tuple[HeadMask, str]:
    """Which heads a pruned model has, and its kind."""
    for key in ("present", "num_layers", "num_heads", "kind"):
        if key not in record:
            raise ModelError(f"{RECORD} of '{name}' lacks '{key}'. Save the pruned model again.")
    sizes = record["num_layers"], record["num_heads"]
    for key, size, most in zip(("num_layers", "num_heads"), sizes, (3 * LAYERS, HEADS), strict=True):
        if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= most:
            raise ModelError(f"{RECORD} of '{name}': {key} is a whole number from 1 to {most:,}.")
    kind = str(record["kind"])[:40]
    if answer_to(kind) is None:
        raise ModelError(f"{RECORD} of '{name}' names an unknown kind of model, '{kind}'. Update headviz.")
    return HeadMask.from_hex(str(record["present"]), *sizes), kind


def _is_tied(model: torch.nn.Module, key: str, state: dict[str, torch.Tensor]) -> bool:
    """Whether a weight missing from a file is another name of one that is there."""
    weights = model.state_dict()
    return any(weights[key].data_ptr() == weights[other].data_ptr() for other in state if other in weights)


def _check_sentencepiece(folder: Path) -> None:
    """Check the normalizers in the files that transformers turns into tokenizers of its Rust library."""
    files = sorted(folder.glob("*.model"))
    if not files:
        return
    try:
        damaged = import_module("google.protobuf.message").DecodeError
        read = import_module("transformers.convert_slow_tokenizer").import_protobuf().ModelProto.FromString
    except ImportError:
        return  # then transformers does not read them
    for path in files:
        with suppress(damaged):
            check_parsed(read(path.read_bytes()).normalizer_spec.precompiled_charsmap, "normalizer")


def has_vocabulary(folder: Path) -> bool:
    return any(any(folder.glob(pattern)) for pattern in VOCABULARIES)


def load_tokenizer(folder: Path, name: object, words: int | None = None) -> Any:
    """The tokenizer of a folder, for a model that knows so many ``words``."""
    if not has_vocabulary(folder):
        # transformers would make an empty tokenizer, to which every word is unknown
        raise ModelError(
            f"'{name}' has no tokenizer: one of {', '.join(VOCABULARIES)} is needed. "
            "Save the tokenizer into the model's folder."
        )
    with _ONE_AT_A_TIME, quiet(), naming("The tokenizer", name):
        _check_sentencepiece(folder)
        _check_class(folder)
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **SAFE)
        except ImportError as error:
            missing = re.search(r"requires the (\S+) library", str(error))
            if missing is None:
                raise
            raise ModelError(
                f"The tokenizer of '{name}' needs the package {missing[1].lower()}, which is not installed: "
                "pip install 'headviz[translation]'."
            ) from error
        _check_use(tokenizer, words)
        return tokenizer


def _check_class(folder: Path) -> None:
    """Refuse any other class of transformers in a tokenizer's place, before it is built."""
    for file in (CONFIG, TOKENIZER):
        named = read_json(folder / file, folder.name).get("tokenizer_class") if (folder / file).is_file() else None
        if not isinstance(named, str) or getattr(transformers, named, None) is None:
            continue
        if not re.search(r"(Tokenizer|TokenizerFast|Backend)$", named):
            raise ValueError(f"tokenizer_class of {file} is {shown(named)}, which is no tokenizer")


PROBE = "a \u00b2 \ue000"  # hardly a vocabulary has the last one


def _check_use(tokenizer: Any, words: int | None) -> None:
    """Refuse what loads and is no tokenizer of the model's ``words``, or fails on a text."""
    if not isinstance(tokenizer, transformers.PreTrainedTokenizerBase):
        raise ValueError(f"{type(tokenizer).__name__} is no tokenizer")
    length = tokenizer.model_max_length
    if isinstance(length, bool) or not isinstance(length, int | float) or not 4 <= length < float("inf"):
        raise ValueError(f"model_max_length is {shown(length)}; a number of tokens from 4 up is needed")
    largest = max((*tokenizer.get_vocab().values(), *tokenizer(PROBE)["input_ids"]), default=-1)
    if words is not None and largest >= words:
        raise ValueError(
            f"it has tokens up to number {largest:,}, but the model knows {words:,}; put the tokenizer that the model "
            "was trained with into its folder"
        )


MARK = "_is_hf_initialized"  # transformers leaves weights that carry it as they are


def fresh(model: Any, seed: int) -> Any:
    """A copy of a transformers model, with weights redrawn by its family's own rule; equal seeds give equal weights.

    Heads, layers and blocks that the model has lost stay lost.
    """
    redrawn = copy.deepcopy(model)
    _unmark(redrawn)
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        # an emptied feed-forward block has nothing to draw, and torch warns of that
        warnings.filterwarnings("ignore", message="Initializing zero-element tensors")
        torch.manual_seed(seed)
        redrawn.init_weights()
    return redrawn


def renew_head(model: Any, seed: int) -> None:
    """Redraw, in place, everything that is no part of the encoder."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for name, part in model.named_children():
            if name != model.base_model_prefix:
                _unmark(part)
                part.apply(model._init_weights)


def _unmark(module: Any) -> None:
    for part in (*module.modules(), *module.parameters(), *module.buffers()):
        if hasattr(part, MARK):
            delattr(part, MARK)
