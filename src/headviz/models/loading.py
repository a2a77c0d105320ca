"""``headviz.load``: the demo, a hub id, or a local folder becomes a ``Classifier``."""

from __future__ import annotations

import copy
import dataclasses
import re
import threading
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import torch

from ..attention import NAME, transformers
from ..errors import ModelError, unknown_choice
from ..heads import HeadMask
from ..storage.paths import kind_at, outside_path
from .base import CLASSIFICATION, TRANSLATION
from .classifier import Classifier
from .families import family_of
from .folder_check import CONFIG, LAYERS, check_folder, naming, read_json
from .folder_check import HEADS as MOST_HEADS
from .fresh_weights import renew_head
from .hub import download
from .kinds import HEADS, auto_class, forget_pruned_heads, full_grid, kind_of, wanted_kind, wrapped
from .named import NAMED
from .quiet import quiet
from .recurrent import RnnTranslator, is_rnn
from .saving import FORMAT, RECORD, WEIGHTS

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}

SAFE = {"trust_remote_code": False}

# transformers loads a family's modules at first use, and the weights of a fresh head come from one generator
_ONE_AT_A_TIME = threading.Lock()


def load(
    name: str | Path,
    *,
    revision: str | None = None,
    device: str | torch.device = "auto",
    dtype: str | torch.dtype | None = None,
    fresh_labels: tuple[str, ...] | None = None,
    masked_lm: bool = False,
    seed: int = 0,
) -> Classifier:
    """Load a sequence classifier, or a translation model: ``"demo"``, ``"demo-translation"``, a hub id, or a folder
    (transformers' or headviz' own). A folder with a recurrent translator gives a ``RnnTranslator``, which has no heads.

    ``device="auto"`` takes CUDA, MPS, CPU in that order. ``dtype=None`` computes in float32, whatever
    the file holds. ``fresh_labels`` puts a new, seeded classification head with these classes on the
    model, for fine-tuning a pre-trained encoder; ``masked_lm=True`` loads the masked-language head
    instead. Pickle files and code from a repository are never used.
    """
    folder = locate(name, revision)
    if is_rnn(folder):
        return _recurrent(folder, name, device, dtype, fresh_labels is not None or masked_lm)
    if not (folder / CONFIG).exists():
        raise ModelError(f"'{name}' has no {CONFIG}: it is not a model folder. {_models_inside(folder, name)}")
    _refuse_unsupported(read_json(folder / CONFIG, name), name)
    if not (folder / RECORD).exists():
        _weights_present(folder, name)
    raw = check_folder(folder, name)
    _check_activations(raw, name)
    kind = wanted_kind(raw, name, fresh_labels is not None, masked_lm)
    where = pick_device(device)
    precision = pick_dtype(dtype)
    tokenizer = _tokenizer(folder, name)
    if len(tokenizer) > int(raw.get("vocab_size", len(tokenizer))):
        raise ModelError(
            f"The tokenizer of '{name}' has {len(tokenizer):,} tokens, but the model knows {raw['vocab_size']:,}. "
            "Put the tokenizer that the model was trained with into its folder."
        )
    record_file = folder / RECORD
    if record_file.exists():
        if fresh_labels is not None:
            raise ModelError(f"'{name}' is a pruned model; a fresh head is put on a model with all its heads.")
        model, present, found = _load_pruned(folder, read_json(record_file, name), name)
        if found != kind:
            raise ModelError(f"'{name}' holds a {found} model.")
    elif raw.get("pruned_heads"):
        if fresh_labels is not None:
            raise ModelError(f"'{name}' is a pruned model; a fresh head is put on a model with all its heads.")
        _weights_present(folder, name)
        with naming(CONFIG, name):
            present = full_grid(transformers.AutoConfig.from_pretrained(folder, **SAFE), kind)
        model = _with_shapes(folder, present, kind, "model.safetensors", name)
    else:
        model = _load_plain(folder, name, raw, fresh_labels, kind, seed)
        present = full_grid(model.config, kind)
    forget_pruned_heads(model.config)
    _refuse_nan(model, name)
    model = model.to(device=where, dtype=precision)
    return wrapped(model, tokenizer, present, str(name), kind)


def _recurrent(folder: Path, name: object, device: Any, dtype: Any, head_asked: bool) -> Any:
    """A recurrent translator: no ``Classifier``, but evaluated and distilled alike."""
    if head_asked:
        raise ModelError(f"'{name}' is a recurrent translator: it translates, and takes no other head.")
    if pick_dtype(dtype) != torch.float32:
        raise ModelError(f"'{name}' is a recurrent translator, which computes in float32 only.")
    return dataclasses.replace(RnnTranslator.load(folder, pick_device(device)), name=str(name))


def wrap(model: torch.nn.Module, tokenizer: Any, name: str = "") -> Classifier:
    """A classifier from a transformers model you already have. The model is copied, not edited."""
    config = getattr(model, "config", None)
    if config is None or not hasattr(config, "model_type"):
        raise ModelError(
            "headviz.wrap needs a transformers sequence-classification or translation model and its tokenizer."
        )
    kind, name = kind_of(model), name or type(model).__name__
    _refuse_nan(model, name)
    own: Any = copy.deepcopy(model)
    own.set_attn_implementation(NAME)
    forget_pruned_heads(own.config)
    return wrapped(own, tokenizer, full_grid(config, kind), name, kind)


def locate(name: str | Path, revision: str | None = None) -> Path:
    """The local folder of a model, downloaded first if it is a hub id."""
    text = str(name)
    if text in NAMED:
        from ..demo import demo_folder

        return Path(demo_folder(NAMED[text]))
    path = outside_path(text, "the model")
    found = kind_at(path)
    if found == "folder":
        return path
    if found:
        raise ModelError(f"'{text}' is a file. Give the folder that holds config.json and the weights.")
    if not re.fullmatch(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?", text):
        raise ModelError(
            f"There is no folder '{text}', and it is not a hub id (such as 'textattack/bert-base-uncased-MNLI'). "
            f"Built-in models: {', '.join(NAMED)}."
        )
    try:
        return download(text, revision)
    except ModelError as error:
        near = [f"'{name}'" for name in get_close_matches(text, NAMED)]
        if not near:
            raise
        raise error.reworded(f"{error} Did you mean the built-in {' or '.join(near)}?") from error


def pick_device(device: str | torch.device) -> torch.device:
    """``auto`` is CUDA, MPS, CPU in that order; a device that is not there is an error."""
    if str(device) == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        if torch.backends.mps.is_available():
            return torch.device("mps")
        return torch.device("cpu")
    try:
        chosen = torch.device(device)
        if chosen.type not in ("cpu", "cuda", "mps"):  # "meta" computes nothing
            raise RuntimeError(f"{chosen.type} is not supported")
        torch.empty(0, device=chosen)
    except (RuntimeError, AssertionError, TypeError, ValueError, OverflowError) as error:
        given = str(device)[:40]
        raise ModelError(f"Device '{given}' is not available here. Choose one of: auto, cpu, cuda, mps.") from error
    return chosen


def pick_dtype(dtype: str | torch.dtype | None) -> torch.dtype:
    """float32 unless asked otherwise."""
    if dtype is None:
        return torch.float32
    name = str(dtype).removeprefix("torch.")
    if name not in DTYPES:
        raise ModelError(unknown_choice("dtype", name, DTYPES))
    return DTYPES[name]


def _models_inside(folder: Path, name: object) -> str:
    """Where the model may be: a folder with several exports is easily taken for one."""
    inside = sorted(p.parent.name for p in folder.glob("*/config.json"))
    if not inside:
        return "Give the folder that holds the model."
    return f"Did you mean {' or '.join(str(Path(str(name)) / i) for i in inside[:4])}?"


def _refuse_unsupported(raw: dict[str, Any], name: object) -> None:
    try:
        family_of(str(raw.get("model_type", "")))
    except ModelError:
        if "auto_map" in raw:
            raise ModelError(
                f"'{name}' needs code from its own repository, which headviz never runs. "
                "Use a model of a family that transformers ships."
            ) from None
        raise


def _check_activations(raw: dict[str, Any], name: object) -> None:
    known = transformers.activations.ACT2FN
    for key in ("hidden_act", "activation", "activation_function", "hidden_activation", "classifier_activation"):
        if raw.get(key) is not None and (not isinstance(raw[key], str) or raw[key] not in known):
            given = str(raw[key])[:40]
            raise ModelError(f"config.json of '{name}': {key} is '{given}'; choose one of {', '.join(sorted(known))}.")


def _weights_present(folder: Path, name: object) -> None:
    if (folder / "model.safetensors").exists() or (folder / "model.safetensors.index.json").exists():
        return
    if any(folder.glob("*.bin")) or any(folder.glob("*.pt")) or any(folder.glob("*.ckpt")):
        raise ModelError(
            f"'{name}' has its weights only as pickle files, which can run code when opened and are not loaded. "
            "Convert them to safetensors first (load and save the model once with transformers)."
        )
    raise ModelError(f"'{name}' holds no weights: a file model.safetensors is needed.")


def _load_plain(
    folder: Path, name: object, raw: dict[str, Any], fresh_labels: tuple[str, ...] | None, kind: str, seed: int
) -> Any:
    with naming(CONFIG, name):
        config = transformers.AutoConfig.from_pretrained(folder, **SAFE)
    if fresh_labels is not None:
        config.id2label = dict(enumerate(fresh_labels))
        config.label2id = {v: i for i, v in enumerate(fresh_labels)}
        config.problem_type = "regression" if len(fresh_labels) == 1 else "single_label_classification"
    options = {"use_safetensors": True, "weights_only": True, "attn_implementation": NAME, **SAFE}
    with _ONE_AT_A_TIME, torch.random.fork_rng(devices=[]), quiet():
        torch.manual_seed(seed)
        with naming("The weights", name):
            model, report = auto_class(kind).from_pretrained(
                folder,
                config=config,
                dtype=torch.float32,
                output_loading_info=True,
                ignore_mismatched_sizes=fresh_labels is not None,
                **options,
            )
    missing = sorted(report["missing_keys"])
    if fresh_labels is not None:
        inside = [k for k in missing if k.startswith(f"{model.base_model_prefix}.") and ".pooler." not in k]
        if inside:
            raise ModelError(f"'{name}' lacks weights of the encoder itself: {', '.join(inside[:3])}.")
        if not any(k for k in missing if not k.startswith(f"{model.base_model_prefix}.")):
            renew_head(model, seed)  # the file holds a trained head, which is not what was asked for
    elif missing:
        architecture = ", ".join(raw.get("architectures") or []) or "an encoder"
        remedy = {CLASSIFICATION: "Choose a fine-tuned classifier, or fine-tune it first."}
        raise ModelError(
            f"'{name}' ({architecture}) has no trained {HEADS[kind]}: {', '.join(missing[:3])} missing. "
            + remedy.get(kind, "Load a pre-trained model.")
        )
    return model


def _load_pruned(folder: Path, record: dict[str, Any], name: object) -> tuple[Any, HeadMask, str]:
    if record.get("format") != FORMAT:
        raise ModelError(
            f"'{name}' was saved in format {record.get('format')}; this version of headviz reads {FORMAT}."
        )
    present, kind = _recorded(record, name)
    return _with_shapes(folder, present, kind, WEIGHTS, name), present, kind


def _with_shapes(folder: Path, present: HeadMask, kind: str, weights: str, name: object) -> Any:
    """A model that has only the heads ``present``, with its weights from a file."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    from .layer_removal import hollow_like
    from .pruning import empty_like_pruned

    with _ONE_AT_A_TIME, torch.random.fork_rng(devices=[]), quiet(), naming(CONFIG, name):
        config = transformers.AutoConfig.from_pretrained(folder, **SAFE)
        model = auto_class(kind).from_config(config, attn_implementation=NAME, **SAFE)
        if kind == TRANSLATION:
            model.generation_config = transformers.GenerationConfig.from_pretrained(folder)
    everything = HeadMask.full(present.num_layers, present.num_heads)
    with naming(RECORD, name):
        shaped = wrapped(model, None, everything, "", kind)
        empty_like_pruned(model, present, shaped.head_size, shaped)
        hollow_like(model)
    try:
        state = load_file(folder / weights)
    except (SafetensorError, OSError) as error:
        raise ModelError(f"{weights} of '{name}' cannot be read: {error}. Save the pruned model again.") from error
    try:
        missing, unexpected = model.load_state_dict(state, strict=False)
    except RuntimeError as error:
        raise ModelError(
            f"The weights of '{name}' do not fit its record: {str(error).splitlines()[-1].strip()}"
        ) from error
    tied = {k for k in missing if _is_tied(model, k, state)}
    if unexpected or set(missing) - tied:
        raise ModelError(f"The weights of '{name}' do not fit its configuration. Save the pruned model again.")
    return model


def _recorded(record: dict[str, Any], name: object) -> tuple[HeadMask, str]:
    """Which heads a pruned model has, and its kind."""
    for key in ("present", "num_layers", "num_heads", "kind"):
        if key not in record:
            raise ModelError(f"{RECORD} of '{name}' lacks '{key}'. Save the pruned model again.")
    sizes = record["num_layers"], record["num_heads"]
    for key, size, most in zip(("num_layers", "num_heads"), sizes, (3 * LAYERS, MOST_HEADS), strict=True):
        if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= most:
            raise ModelError(f"{RECORD} of '{name}': {key} is a whole number from 1 to {most:,}.")
    kind = str(record["kind"])[:40]
    if kind not in HEADS:
        raise ModelError(f"{RECORD} of '{name}' names an unknown kind of model, '{kind}'. Update headviz.")
    return HeadMask.from_hex(str(record["present"]), *sizes), kind


def _is_tied(model: torch.nn.Module, key: str, state: dict[str, torch.Tensor]) -> bool:
    """Whether a weight missing from a file is another name of one that is there."""
    own = model.state_dict()
    return any(own[key].data_ptr() == own[k].data_ptr() for k in state if k in own)


VOCABULARIES = ("tokenizer.json", "vocab.txt", "vocab.json", "*.model")


def _tokenizer(folder: Path, name: object) -> Any:
    if not any(any(folder.glob(pattern)) for pattern in VOCABULARIES):
        # transformers would make an empty tokenizer, to which every word is unknown
        raise ModelError(
            f"'{name}' has no tokenizer: one of {', '.join(VOCABULARIES)} is needed. "
            "Save the tokenizer into the model's folder."
        )
    with _ONE_AT_A_TIME, quiet(), naming("The tokenizer", name):
        try:
            return transformers.AutoTokenizer.from_pretrained(folder, **SAFE)
        except ImportError as error:
            missing = re.search(r"requires the (\S+) library", str(error))
            if missing is None:
                raise
            raise ModelError(
                f"The tokenizer of '{name}' needs the package {missing[1].lower()}, which is not installed: "
                "pip install 'headviz[translation]'."
            ) from error


def _refuse_nan(model: torch.nn.Module, name: object) -> None:
    for key, weight in model.named_parameters():
        if not bool(torch.isfinite(weight).all()):
            raise ModelError(f"'{name}' has weights that are not finite numbers ({key}). Train or download it again.")
