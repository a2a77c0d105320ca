"""Writing models to disk: ours after real pruning, transformers' own format otherwise."""

from __future__ import annotations

import copy
import dataclasses
import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from ..attention import quiet
from ..errors import ModelError, OptionError
from ..heads import HeadMask
from ..storage.exchange import MaskLike
from ..storage.paths import new_folder
from ..storage.writing import disk_errors
from .card import Measured, card
from .feed_forward import fill_up, require_known, uneven
from .network import Network, add_bias, added_bias, has_own_bias
from .portable import MODELLING, make_portable, require_equal
from .pruning import settle, zero_columns
from .recorded import record
from .slices import parts, weight_of, widen

RECORD = "headviz.json"
WEIGHTS = "pruned.safetensors"  # of format 1, which only headviz reads
FORMAT = 2


def save(clf: Network, folder: Path, portable: bool = False, measured: Measured | None = None) -> Path:
    """Save a model so that ``headviz.load`` gives equal logits in a fresh process. What stands in the place of heads
    that a mask switches off is not saved.

    With all heads present the folder is a plain transformers folder too. A pruned one is opened by transformers after
    ``import headviz``; with ``portable`` also without headviz, by ``trust_remote_code``. Its README.md is a model card,
    which says what was ``measured``.
    """
    clf.require_described()

    def write(into: Path) -> None:
        clf.tokenizer.save_pretrained(into)
        if clf.present.is_full and not uneven(clf.config):
            _save_plain(clf.model, into)
            return
        _save_plain(clf.model, into, clf, portable)
        # config.json has the heads
        about = {"format": FORMAT, "digest": clf.filled(None).digest, "source": Path(clf.name).name if clf.name else ""}
        (into / RECORD).write_text(json.dumps(about, indent=2) + "\n")
        (into / "README.md").write_text(card(clf, portable, measured), encoding="utf-8")

    return write_folder(folder, write, size_of(clf.model))


def export_masked(clf: Network, folder: Path, mask: MaskLike | None = None) -> Path:
    """Save all original shapes: removed heads and neurons come back as zeros, heads switched off get zeros in W_O.

    Any transformers version loads the folder and gives the masked logits. It saves no time and no
    memory: use ``prune`` and ``save`` for that.
    """
    if clf.family.shared_layers:
        raise ModelError(
            f"A masked export is not possible: {clf.family.why_not_prunable}. Masks given with each call work."
        )
    if uneven(clf.config):
        require_known(clf.family)
    require_bias(clf)
    under = clf.under(mask)
    whole = with_all_shapes(clf)
    for layer in range(clf.num_layers):
        heads = list(under.off_in(layer))
        if heads:
            output = whole.projections(layer).output
            if clf.fill is not None:
                _stand_in(clf, output, clf.fill.values[layer], heads)
            zero_columns(output, heads, clf.head_size)

    def write(into: Path) -> None:
        clf.tokenizer.save_pretrained(into)
        _save_plain(whole.model, into)

    return write_folder(folder, write, size_of(whole.model))


def require_bias(clf: Network) -> None:
    """Refuse a masked export of what stands in a head's place where plain transformers would not read it."""
    for layer in range(clf.num_layers):
        output = clf.projections(layer).output
        if has_own_bias(output) or (clf.fill is not None and output.bias is None):
            raise ModelError(
                f"{clf.family.title} has no bias behind its attention, so a masked export cannot hold what stands in "
                "a head's place: plain transformers would not read it. Prune for real, which headviz loads."
            )


def _stand_in(clf: Network, output: torch.nn.Linear, fill: torch.Tensor, heads: list[int]) -> None:
    """What stands in the place of these heads becomes a bias of W_O, in place."""
    rows = [h * clf.head_size + k for h in heads for k in range(clf.head_size)]
    add_bias(output, added_bias(weight_of(output), fill, torch.tensor(rows, device=clf.device)))


def with_all_shapes(clf: Network) -> Network:
    """A copy in which removed heads and neurons are back in shape, with zero weights: same logits, original sizes."""
    model = copy.deepcopy(clf.model)
    fill_up(model)
    whole = dataclasses.replace(clf, model=model, present=HeadMask.full(clf.num_layers, clf.num_heads))
    for row in range(clf.num_layers):
        if len(clf.present.kept_in(row)) == clf.num_heads:
            continue
        sizes = [len(part.index) for part in parts(whole, row, whole.present, whole.present)]
        for part, size in zip(parts(whole, row, whole.present, clf.present), sizes, strict=True):
            widen(part, size)
    settle(whole, clf.present)
    return whole


def write_folder(folder: Path, write: Callable[[Path], None], needed: int | None = None) -> Path:
    """Fill a new folder completely or not at all: written under a temporary name, then renamed.

    ``needed`` is about how many bytes it takes, for the message of a full disk.
    """
    try:
        folder = new_folder(folder)
    except OptionError as wrong:
        raise ModelError(str(wrong)) from wrong
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f".{folder.name[:40]}-", dir=folder.parent))
    except OSError as error:
        raise ModelError(f"Cannot write to '{folder.parent}': {error.strerror}. Choose another place.") from error
    try:
        with disk_errors(folder, needed):
            write(part)
            _open_as_usual(part)
            if folder.exists():
                folder.rmdir()
            part.rename(folder)
    except OSError as error:
        raise ModelError(f"Cannot write '{folder}': {error.strerror or error}. Nothing was kept.") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return folder


def size_of(model: torch.nn.Module) -> int:
    """Bytes of a model's weights."""
    return sum(w.numel() * w.element_size() for w in model.parameters())


def _open_as_usual(folder: Path) -> None:
    """Give all files the permissions of the umask. Temporary folders and safetensors files start private."""
    probe = folder / ".mode"  # asking for the umask would change it for the other threads
    probe.touch()
    mode = probe.stat().st_mode & 0o777
    probe.unlink()
    for path in folder.rglob("*"):
        path.chmod(_enterable(mode) if path.is_dir() else mode)
    folder.chmod(_enterable(mode))


def _enterable(mode: int) -> int:
    """The mode of a folder: whoever may read it may also enter it."""
    return mode | (mode & 0o444) >> 2


def _save_plain(model: Any, folder: Path, pruned: Network | None = None, portable: bool = False) -> None:
    own = copy.copy(model)  # the same weights; other threads use the model meanwhile
    own.config = plain_config(model.config)
    if pruned is not None:
        record(pruned, own.config)
        if portable:
            (folder / MODELLING).write_text(make_portable(pruned, own.config), encoding="utf-8")
    with quiet():
        own.save_pretrained(folder)
    if pruned is not None and portable:
        require_equal(pruned, folder)


def plain_config(config: Any) -> Any:
    """The configuration without our attention function, which plain transformers does not know."""
    plain = copy.deepcopy(config)
    plain._attn_implementation = None
    return plain
