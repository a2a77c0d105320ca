"""The folder of a training: which training it belongs to, and which of its checkpoints are complete."""

from __future__ import annotations

import hashlib
import json
import shlex
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ..errors import OptionError
from ..storage.paths import kind_at, opened, read_small
from ..storage.writing import replace_file
from .options import FinetuneOptions

if TYPE_CHECKING:
    import numpy as np

    from ..heads import HeadMask
    from ..models.classifier import Classifier
    from ..tasks import Dataset

WHOLE = "headviz-whole"  # a file in complete checkpoints: the digests of the others
FINGERPRINT = "training.json"


@contextmanager
def training_folder(folder: str | Path | None) -> Iterator[Path]:
    """The given folder, or a temporary one for None."""
    if folder is None:
        with tempfile.TemporaryDirectory(prefix="headviz-training-") as temporary:
            yield Path(temporary)
        return
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    yield place


def claim(
    place: Path,
    clf: Classifier,
    train: Dataset,
    options: FinetuneOptions,
    seed: int,
    order: np.ndarray | None,
    mask: HeadMask | None = None,
    teacher: Mapping[str, Any] | None = None,
) -> None:
    """Mark the folder as this training's; an ``OptionError`` if it belongs to another one.

    ``order`` is the model's output for each class of the task, which the digest of a model does not hold.
    """
    mine: dict[str, Any] = {
        "options": options.to_dict(),
        "seed": seed,
        "model": clf.digest,
        "order": None if order is None else order.tolist(),
        "data": hashlib.sha256(f"{train.digest}{clf.tokenizer_digest}".encode()).hexdigest(),
        **({} if mask is None else {"mask": mask.hex}),
        **({} if teacher is None else {"teacher": dict(teacher)}),
        **clf.reads_with,
    }
    path = place / FINGERPRINT
    check_own(place)
    if path.exists():
        try:
            # folders of earlier versions have no order
            recorded = {"order": mine["order"], **json.loads(read_small(path, 2**24))}
        except (ValueError, TypeError, RecursionError) as error:
            raise OptionError(f"'{path}' is damaged. Remove its folder, or choose another one.") from error
        if recorded != mine:
            changed = ", ".join(k for k in {**recorded, **mine} if recorded.get(k) != mine.get(k))
            raise OptionError(
                f"'{place}' holds checkpoints of another training (different {changed}). "
                f"Its own command goes on from there; {removal(place)} removes them."
            )
        return
    replace_file(path, json.dumps(mine))


def removal(place: Path) -> str:
    """The command that removes a training's folder."""
    return f"rm -r {shlex.quote(str(place))}"


def check_own(place: Path) -> None:
    """An ``OptionError`` if the folder holds something and has no training's record."""
    if kind_at(place) != "folder" or (place / FINGERPRINT).exists():
        return
    # a process that was killed may have left the record's temporary file
    if foreign := [p.name for p in place.iterdir() if not p.match(f".{FINGERPRINT}.*.tmp")]:
        raise OptionError(
            f"Checkpoints would go into '{place}', which holds something else ({foreign[0][:40]}). "
            "Move it away, or choose another name."
        )


def remove_training(place: Path) -> None:
    """Delete a training's checkpoints and record, and its folder unless something else lies in it."""
    if not (place / FINGERPRINT).is_file():
        return
    for checkpoint in place.glob("checkpoint-*"):
        shutil.rmtree(checkpoint, ignore_errors=True)
    with suppress(OSError):
        (place / FINGERPRINT).unlink()
        place.rmdir()


def seal(checkpoint: Path) -> None:
    """Mark a checkpoint as complete."""
    replace_file(checkpoint / WHOLE, json.dumps(_digests(checkpoint)))


def whole_checkpoint(place: Path) -> str | None:
    """The newest checkpoint that is as it was sealed; a damaged one is passed over."""
    numbered = {int(p.name.rsplit("-", 1)[1]): p for p in place.glob("checkpoint-*") if p.name[11:].isdecimal()}
    for _, checkpoint in sorted(numbered.items(), reverse=True):
        with suppress(OptionError, OSError, ValueError, RecursionError):
            if json.loads(read_small(checkpoint / WHOLE, 2**20)) == _digests(checkpoint):
                return str(checkpoint)
    return None


def _digests(checkpoint: Path) -> dict[str, str]:
    digests = {}
    for path in sorted(checkpoint.iterdir()):
        if path.name != WHOLE:
            with opened(path) as file:
                digests[path.name] = hashlib.file_digest(cast("Any", file), "sha256").hexdigest()
    return digests
