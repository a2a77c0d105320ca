"""What a user keeps of a model between visits: saved masks, own texts, and the grades that the user measured.

A JSON file for each user and each model, named by digests: a model's name stays the same when its weights change. The
user's last view is in a file of its own, because it names the model.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ..errors import OptionError
from ..heads import HeadMask
from .paths import home, kind_at, read_small
from .strict_disk import private_folder
from .writing import disk_errors, replace_file

Text = tuple[str, str]
MOST_TEXTS = 40
LARGEST = 8 * 2**20  # bytes of a file
FORM, LAST = "headviz-workspace-1", "last"


@dataclass(frozen=True)
class Kept:
    """What is kept of one model: masks as hexadecimal digits by name, texts, newest first, and grades by their key."""

    title: str = ""  # what the model was called
    masks: Mapping[str, str] = field(default_factory=dict)
    texts: tuple[Text, ...] = ()
    grades: Mapping[str, Any] = field(default_factory=dict)

    def with_text(self, text: Text) -> Kept:
        """With this text as the newest; each is kept once."""
        return replace(self, texts=(text, *(t for t in self.texts if t != text))[:MOST_TEXTS])

    def merged_with(self, other: Kept) -> Kept:
        """What both have; of the same name, the entry of ``self``."""
        texts = tuple(dict.fromkeys((*self.texts, *other.texts)))[:MOST_TEXTS]
        masks = {**self.masks, **{name: mask for name, mask in other.masks.items() if name not in self.masks}}
        return Kept(self.title or other.title, masks, texts, {**other.grades, **self.grades})


def folder(user: str) -> Path:
    """The folder of one user. Its name is a digest, because a login name may not be a valid file name."""
    return home() / "workspace" / hashlib.sha256(user.encode()).hexdigest()[:16]


def kept(user: str, digest: str) -> Kept:
    """What this user keeps of a model; nothing where the file is missing or damaged."""
    content = _read(_file(user, digest))
    try:
        return _checked(content) if content else Kept()
    except OptionError:
        return Kept()


def change(user: str, digest: str, edit: Callable[[Kept], Kept]) -> Kept:
    """Change what is kept, and return it. What another visit wrote meanwhile stays."""
    before = kept(user, digest)
    after = edit(before)
    if after != before:
        _write(_file(user, digest), asdict(after))
    return after


def last_view(user: str) -> dict[str, str]:
    """The page and the query of the last view; empty without one."""
    return _view(_read(_file(user, LAST)))


def keep_view(user: str, page: str, query: str) -> None:
    _write(_file(user, LAST), {"page": page, "query": query})


def export_all(user: str) -> str:
    """Everything of a user as one JSON text, which ``import_all`` reads."""
    digests = sorted(file.stem for file in folder(user).glob("*.json") if file.stem != LAST)
    models = {digest: asdict(kept(user, digest)) for digest in digests}
    return json.dumps({"form": FORM, "models": models, LAST: last_view(user)}, ensure_ascii=False, indent=1)


def import_all(user: str, text: str) -> int:
    """Add what ``export_all`` wrote to what is kept here; returns for how many models. What is here stays."""
    try:
        read = json.loads(text)
        models = read["models"] if read.get("form") == FORM else None
    except (ValueError, TypeError, KeyError, AttributeError):
        models = None
    if not isinstance(models, dict):
        raise OptionError("This is no workspace of headviz. Choose a file that “Export all” has written.")
    imported = {digest: _checked(model) for digest, model in models.items() if _is_digest(digest)}
    for digest, model in imported.items():
        change(user, digest, lambda current, model=model: current.merged_with(model))  # type: ignore[misc]
    if (last := _view(read.get(LAST))) and not last_view(user):
        _write(_file(user, LAST), last)
    return len(imported)


def _view(read: Any) -> dict[str, str]:
    view = read if isinstance(read, dict) else {}
    return {name: text for name in ("page", "query") if isinstance(text := view.get(name), str)}


def _is_digest(text: Any) -> bool:
    return isinstance(text, str) and 8 <= len(text) <= 128 and text.isalnum()


def _checked(read: Mapping[str, Any]) -> Kept:
    """The content of a file; an ``OptionError`` where it has another form."""
    try:
        masks = {str(name)[:80]: str(mask) for name, mask in dict(read.get("masks", {})).items()}
        for mask in masks.values():
            int(mask.split(" ")[0], 16)
        texts = tuple((str(a), str(b)) for a, b in read.get("texts", ()))[:MOST_TEXTS]
        return Kept(str(read.get("title", ""))[:200], masks, texts, dict(read.get("grades", {})))
    except (ValueError, TypeError, AttributeError) as error:
        raise OptionError(f"A model's part of this workspace cannot be read: {error}.") from error


def _file(user: str, name: str) -> Path:
    return folder(user) / f"{name}.json"


def _read(file: Path) -> dict[str, Any] | None:
    if kind_at(file) != "file":
        return None
    try:
        read = json.loads(read_small(file, LARGEST))
    except (ValueError, OptionError):
        return None
    return read if isinstance(read, dict) else None


def _write(file: Path, content: Mapping[str, Any]) -> None:
    body = json.dumps(content, ensure_ascii=False)
    with disk_errors(file, len(body)):
        private_folder(file.parents[1])
        private_folder(file.parent)
        replace_file(file, body)


def fits(mask: str, present: HeadMask) -> bool:
    """Whether a kept mask has this model's number of digits."""
    return len(mask.split(" ")[0]) == len(present.hex)
