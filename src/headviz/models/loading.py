"""``headviz.load`` and ``headviz.wrap``: a name, a folder or a transformers model becomes one of headviz's models."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack, overload

import torch

from .. import plugins
from ..answers.catalogue import WORD, answer_named
from ..answers.vector import VECTOR
from ..errors import ModelError, seed_number, shown
from ..heads import CLASSIFICATION, TAGGING
from . import DEVICES, device_named, dtype_named
from .adapters import Adapter, is_adapter
from .as_described import is_peft, merged, refuse_parallel, require_described, without_wrappers
from .classifier import Classifier
from .families import family_of
from .folder_check import CONFIG, check_folder, is_embedder, labels_of, read_json
from .folders import (
    check_activations,
    has_vocabulary,
    load_plain,
    load_pruned,
    load_pruned_by_transformers,
    load_tokenizer,
    weights_present,
)
from .hub import MODELS, locate, require_model
from .kinds import kind_of, kind_to_load, set_job, use_our_attention, wrapped
from .recorded import forget, present_in, recorded
from .saving import FORMAT, RECORD, WEIGHTS
from .vector import Pooling


class LoadOptions(TypedDict, total=False):
    """Keywords of ``load`` that do not change what kind of model comes back."""

    revision: str | None
    device: str | torch.device
    dtype: str | torch.dtype | None
    seed: int
    class_names: tuple[str, ...] | None
    job: str | None


@overload
def load(name: Literal["demo", "demo-pretrained"], **options: Unpack[LoadOptions]) -> Classifier: ...
@overload
def load(name: Literal["demo-translation"], **options: Unpack[LoadOptions]) -> Any: ...
@overload
def load(name: str | Path, *, fresh_labels: tuple[str, ...], **options: Unpack[LoadOptions]) -> Classifier: ...
@overload
def load(name: str | Path, *, masked_lm: Literal[True], **options: Unpack[LoadOptions]) -> Classifier: ...
@overload
def load(
    name: str | Path, *, fresh_labels: tuple[str, ...] | None = None, **options: Unpack[LoadOptions]
) -> Classifier | Any: ...
def load(
    name: str | Path,
    *,
    revision: str | None = None,
    device: str | torch.device = "auto",
    dtype: str | torch.dtype | None = None,
    fresh_labels: tuple[str, ...] | None = None,
    masked_lm: bool = False,
    seed: int = 0,
    class_names: tuple[str, ...] | None = None,
    job: str | None = None,
) -> Classifier | Any:
    """Load a model: ``"demo"``, ``"demo-translation"``, a hub id, or a folder (transformers' or headviz's own).

    The folder decides what comes back: a ``Classifier``, a ``Translator``, or an ``RnnTranslator``, which has no
    attention heads.

    ``device="auto"`` takes CUDA, MPS, CPU in that order. ``dtype=None`` computes in float32, whatever
    the file holds. ``fresh_labels`` puts a new classification head with these classes on the model, drawn with
    ``seed``, for fine-tuning a pre-trained encoder. ``masked_lm=True`` loads the masked-language head instead.
    ``class_names`` says what the model's outputs mean, in their order, where its own names are only LABEL_0, LABEL_1.
    ``job`` is what the model answers with, as ``clf.job`` names it, where its configuration does not tell: "labels" for
    yes or no to each class, say. With ``fresh_labels`` it is the new head's.
    An adapter of PEFT (LoRA) is merged into the model that it names, if ``peft`` is installed.
    Pickle files, which ``headviz.convert`` rewrites, and code from a repository are never used. What cannot be loaded
    is a ``ModelError``.

    >>> import headviz
    >>> clf = headviz.load("demo", device="cpu")
    >>> clf.num_layers, clf.num_heads, clf.labels
    (12, 12, ('entailment', 'neutral', 'contradiction'))
    """
    for option, names in (("fresh_labels", fresh_labels), ("class_names", class_names)):
        if names is not None:
            _check_names(option, names)
    seed_number(seed)
    folder = locate(name, revision)
    require_model(folder, name)
    for format_ in MODELS.values():
        if (folder / format_.file).is_file():
            plain = fresh_labels is None and class_names is None and not masked_lm
            return plugins.function(format_.load)(
                folder, str(name), pick_device(device), pick_dtype(dtype), job if plain else "another"
            )
    if is_adapter(folder):
        if fresh_labels is not None:
            raise ModelError(f"'{name}' is an adapter; a fresh head is put on a model. Merge it: headviz convert.")
        job = WORD.job if masked_lm else job
        return _adapted(folder, name, pick_device(device), pick_dtype(dtype), job, class_names)
    _refuse_unsupported(read_json(folder / CONFIG, name), name)
    if not (folder / WEIGHTS).exists():
        weights_present(folder, name)
    raw, held = check_folder(folder, name)
    check_activations(raw, name)
    answer = WORD if masked_lm else None if job is None else answer_named(job)
    pooling, new_head = None, fresh_labels is not None
    if answer is VECTOR or (answer is None and not new_head and is_embedder(folder, name)):
        answer, pooling = VECTOR, Pooling.read(folder, name, new=new_head)
        fresh_labels = None  # there is no head to draw
    kind = kind_to_load(raw, name, answer, new_head)
    device, dtype = pick_device(device), pick_dtype(dtype)
    tokenizer = load_tokenizer(folder, name, raw.get("vocab_size"))
    pruned = recorded(raw) is not None
    if fresh_labels is not None and (pruned or (folder / WEIGHTS).exists() or raw.get("pruned_heads")):
        raise ModelError(f"'{name}' is a pruned model; a fresh head is put on a model with all its heads.")
    record = read_json(folder / RECORD, name) if (folder / RECORD).exists() else {}
    if record.get("format", FORMAT) != FORMAT:  # that of headviz 0.1, or one that is not known yet
        model, present, recorded_kind = load_pruned(folder, record, held, name)
        if recorded_kind != kind:
            raise ModelError(f"'{name}' holds a {recorded_kind} model.")
    elif raw.get("pruned_heads") and not pruned:
        model, present = load_pruned_by_transformers(folder, kind, held, name)
    else:
        model = load_plain(folder, name, raw, held, fresh_labels, kind, seed)
        present = present_in(model.config)
    forget(model.config)
    set_job(model.config, kind, answer, name)
    if class_names is not None:
        _name_classes(model.config, class_names, kind, name)
    _refuse_nan(model, name)
    model = model.to(device=device, dtype=dtype)
    clf: Any = wrapped(model, tokenizer, present, str(name), kind)
    return clf if pooling is None else replace(clf, pooling=pooling, cut_at=pooling.length)


def _adapted(
    folder: Path,
    name: object,
    device: torch.device,
    dtype: torch.dtype,
    job: str | None,
    class_names: tuple[str, ...] | None,
) -> Any:
    """The model that an adapter of PEFT names, with the adapter merged into its weights."""
    adapter = Adapter(folder, name)
    below = locate(*adapter.base)
    if is_adapter(below):
        raise ModelError(f"'{name}' is an adapter of an adapter. Merge {adapter.base[0]} first: headviz convert.")
    if adapter.outputs is None:
        base: Any = load(below, device="cpu", job=job)
    else:
        labels = labels_of(read_json(below / CONFIG, name), name)
        if len(labels) != adapter.outputs:
            labels = tuple(f"LABEL_{i}" for i in range(adapter.outputs))
        base = load(below, device="cpu", fresh_labels=labels, job=job)
    model = adapter.merged_into(base.model)
    if class_names is not None:
        _name_classes(model.config, class_names, base.kind, name)
    _refuse_nan(model, name)
    tokenizer = load_tokenizer(folder, name) if has_vocabulary(folder) else base.tokenizer
    return wrapped(model.to(device=device, dtype=dtype), tokenizer, base.present, str(name), base.kind)


def _check_names(option: str, names: object) -> None:
    texts = isinstance(names, list | tuple) and all(isinstance(text, str) and text for text in names)
    if not isinstance(names, list | tuple) or not names or not texts or len(set(names)) < len(names):
        raise ModelError(f"{option} are different names, such as ('no', 'yes'), not {shown(names)}.")


def _name_classes(config: Any, names: Sequence[str], kind: str, name: object) -> None:
    """Put the user's names for the outputs into the configuration of a model that was just read."""
    count = int(config.num_labels)
    if kind not in (CLASSIFICATION, TAGGING) or count < 2:
        raise ModelError(f"'{name}' has no classes to name.")
    if len(names) != count:
        raise ModelError(f"class_names names {len(names)} classes, but '{name}' has {count} outputs.")
    config.id2label = dict(enumerate(names))
    config.label2id = {label: i for i, label in enumerate(names)}


def wrap(model: torch.nn.Module, tokenizer: Any, name: str = "", job: str | None = None) -> Classifier | Any:
    """A transformers model that you already have, with its tokenizer. The model is copied, not edited.

    A …ForSequenceClassification or …ForMaskedLM model gives a ``Classifier``, a …ForConditionalGeneration model a
    ``Translator``. The adapters of a PEFT model are merged into the copy. ``job`` as
    for ``load``. Any other model, a family that headviz does
    not know, and quantised or parametrised weights or hooks that may change values are a ``ModelError``.

    >>> import headviz
    >>> from transformers import AutoModelForSequenceClassification, AutoTokenizer
    >>> from headviz.demo import demo_folder
    >>> folder = demo_folder("finetuned")
    >>> model = AutoModelForSequenceClassification.from_pretrained(folder)
    >>> clf = headviz.wrap(model, AutoTokenizer.from_pretrained(folder), "mine")
    >>> clf.name, clf.heads_per_layer[:3]
    ('mine', [12, 12, 12])
    """
    refuse_parallel(model)
    if is_peft(model):
        model = merged(model, name or type(model).__name__)
    name = name or type(model).__name__
    config = getattr(model, "config", None)
    if config is None or not hasattr(config, "model_type"):
        raise ModelError(
            "headviz.wrap needs a transformers sequence-classification or translation model and its tokenizer."
        )
    if not callable(tokenizer) or not hasattr(tokenizer, "convert_ids_to_tokens"):
        raise ModelError(f"headviz.wrap needs the model's tokenizer, of transformers, not {shown(tokenizer)}.")
    kind, answer = kind_of(model), None if job is None else answer_named(job)
    require_described(model, family_of(config.model_type), name)
    _refuse_nan(model, name)
    own: Any = copy.deepcopy(model)
    without_wrappers(own)
    use_our_attention(own)
    forget(own.config)
    set_job(own.config, kind, answer, name)
    return wrapped(own, tokenizer, present_in(config), name, kind)


def pick_device(device: str | torch.device) -> torch.device:
    """``auto`` is CUDA, MPS, CPU in that order; a device that is not there is an error."""
    name = str(device) if isinstance(device, str | torch.device) else shown(device)
    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    name = device_named(name)
    try:
        chosen = torch.device(name)
        torch.empty(0, device=chosen)
    except (RuntimeError, AssertionError, TypeError, ValueError, OverflowError) as error:
        raise ModelError(f"Device '{name}' is not available here. Choose one of: {', '.join(DEVICES)}.") from error
    return chosen


def pick_dtype(dtype: str | torch.dtype | None) -> torch.dtype:
    """float32 unless asked otherwise."""
    chosen: torch.dtype = getattr(torch, dtype_named(dtype))
    return chosen


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


def _refuse_nan(model: torch.nn.Module, name: object) -> None:
    for key, weight in model.named_parameters():
        if not bool(torch.isfinite(weight).all()):
            raise ModelError(f"'{name}' has weights that are not finite numbers ({key}). Train or download it again.")
