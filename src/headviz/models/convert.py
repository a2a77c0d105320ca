"""``headviz.convert``: the weights of a folder as safetensors, in today's format, whatever they lie in.

Pickle files are read by PyTorch's restricted reader, which makes tensors and nothing else.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zipfile import ZIP_STORED, BadZipFile, ZipFile

import huggingface_hub
import torch

from ..errors import ModelError, shown
from .adapters import is_adapter
from .folder_check import CONFIG, KEPT, LARGEST, check_config, check_entry, check_folder, naming, read_json
from .hub import existing_folder
from .loading import load
from .saving import RECORD, write_folder

PICKLE, PICKLES = "pytorch_model.bin", "pytorch_model.bin.index.json"
LARGEST_PICKLE = 128 * 2**30  # bytes
COPIED = {*LARGEST, ".md"}


def convert(folder: str | Path, out: str | Path) -> Path:
    """Rewrite a model's folder into the new folder ``out``, with its weights as safetensors; ``folder`` stays.

    ``pytorch_model.bin``, in one file or several, is read by ``torch.load`` with ``weights_only``: code in it never
    runs. Folders of earlier versions of headviz, and models that transformers 4 pruned, are saved in the format that
    transformers opens. An adapter of PEFT is merged. Raises ``UserError`` if there is nothing to convert.

    >>> import headviz
    >>> headviz.convert("old-model", "new-model")  # doctest: +SKIP
    PosixPath('new-model')
    """
    source = existing_folder(folder)
    if is_adapter(source):
        return load(source, device="cpu").save(out)
    with tempfile.TemporaryDirectory() as place:
        pickled = _is_pickled(source)
        plain = source
        if pickled:
            plain = write_folder(Path(place) / "plain", lambda into: _rewrite(source, into, folder))
        raw = read_json(plain / CONFIG, folder)
        check_config(raw, folder)
        if (plain / RECORD).exists() or (raw.get("pruned_heads") and KEPT not in raw):
            precision = str(raw.get("dtype") or raw.get("torch_dtype") or "float32")
            return load(plain, device="cpu", dtype=None if precision == "float64" else precision).save(out)
        if not pickled:
            raise ModelError(f"There is nothing to convert in '{folder}': headviz and transformers open it as it is.")
        check_folder(plain, folder)
        return write_folder(Path(out), lambda into: shutil.copytree(plain, into, dirs_exist_ok=True))


def _is_pickled(folder: Path) -> bool:
    return not any(folder.glob("*.safetensors")) and any((folder / name).exists() for name in (PICKLE, PICKLES))


def _rewrite(folder: Path, into: Path, name: object) -> None:
    """Weights as safetensors; settings and tokenizer as they are. One level of folders deep: sentence-transformers'."""
    if not (folder / CONFIG).is_file():
        raise ModelError(f"'{name}' has no {CONFIG}: it is not a model folder.")
    parents = (path.parent for path in folder.glob(f"*/{CONFIG}"))
    for source in (folder, *sorted(parent for parent in parents if not parent.is_symlink())):
        target = into / source.relative_to(folder)
        target.mkdir(exist_ok=True)
        for path in sorted(source.iterdir()):
            check_entry(path, name)
            if path.suffix in COPIED and path.is_file() and path.name != PICKLES:
                shutil.copyfile(path, target / path.name)
        if _is_pickled(source):
            huggingface_hub.save_torch_state_dict(dict(_weights(source, name)), target)


def _weights(folder: Path, name: object) -> Iterator[tuple[str, torch.Tensor]]:
    files = {PICKLE}
    if (folder / PICKLES).exists():
        weight_map = read_json(folder / PICKLES, name).get("weight_map")
        files = set(map(str, weight_map.values())) if isinstance(weight_map, dict) else set()
        if not files or any(Path(file).name != file or not file.endswith(".bin") for file in files):
            raise ModelError(f"{PICKLES} of '{name}' does not name .bin files of its folder. Download the model again.")
    for file in sorted(files):
        yield from _tensors(folder / file, name)


def _tensors(path: Path, name: object) -> Iterator[tuple[str, torch.Tensor]]:
    """What a pickle file holds, if that is tensors by name, none of them larger than what the file has of it."""

    def refused(why: str) -> ModelError:
        return ModelError(f"{path.name} of '{name}' {why}. Nothing was written.")

    if not path.is_file():
        raise refused("is not there")
    if path.stat().st_size > LARGEST_PICKLE:
        raise refused(f"is larger than {LARGEST_PICKLE:,} bytes")
    try:
        with ZipFile(path) as parts:
            if any(part.compress_type != ZIP_STORED for part in parts.infolist()):
                raise refused("is compressed, which PyTorch's files are not")
        in_place = True
    except BadZipFile:  # as PyTorch wrote it before 1.6
        in_place = False
    with naming(path.name, name):
        state: Any = torch.load(path, weights_only=True, map_location="cpu", mmap=in_place)
    if not isinstance(state, dict):
        raise refused("does not hold weights by name")
    for key, value in state.items():
        if not isinstance(key, str) or not isinstance(value, torch.Tensor) or value.layout != torch.strided:
            raise refused(f"holds {shown(key)}, which is not a tensor")
        if value.numel() * value.element_size() > value.untyped_storage().nbytes():
            raise refused(f"holds {shown(key)}, which says that it is larger than it is")
        yield key, value
