"""Masks and scores of other tools: read from and written in the forms that people exchange.

A mask is hexadecimal digits, a list of heads, ``{layer: [heads that are off]}`` as ``prune_heads`` takes it, a
``config.json`` whose ``pruned_heads`` says the same, a table of ones (kept) and zeros, or headviz's own JSON. Scores
are a table, one row per layer, or headviz's own JSON. Files end in ``.json``, ``.npy`` or ``.txt``. ``restored`` reads
other results back from their JSON.
"""

from __future__ import annotations

import dataclasses
import io
import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import UnionType
from typing import Any, Protocol, TypeAlias, Union, get_args, get_origin, get_type_hints

import numpy as np

from ..errors import MaskError, OptionError, require_kind, shown
from ..heads import MOST, HeadId, HeadMask, HeadScores, head_of, parse_heads
from .paths import out_file, outside_path
from .writing import disk_errors, replace_file

FILES = (".json", ".npy", ".txt")
ZERO = "zero"  # nothing stands in the place of a head that is off
A_MASK = "A mask is a HeadMask, the heads that are off by layer such as {3: [5]}"
READING = "headviz.read_mask reads text and files."
LARGEST = 64 * 1024 * 1024  # bytes of a file that is read


class Array(Protocol):
    """numpy's arrays and torch's tensors."""

    @property
    def shape(self) -> Sequence[int]: ...
    def tolist(self) -> Any: ...


# what calls take as a mask: a HeadMask, the heads that are off by layer, or a table of ones (kept) and zeros
MaskLike: TypeAlias = (
    HeadMask | Mapping[int, Collection[int]] | Mapping[str, Collection[int]] | Sequence[Sequence[float]] | Array
)


def mask_of(source: Any, num_layers: int, num_heads: int, stacks: Mapping[str, range] | None = None) -> HeadMask:
    """The mask of a ``MaskLike`` argument; a ``MaskError`` for anything else."""
    if isinstance(source, HeadMask):
        HeadMask.full(num_layers, num_heads).check_grid(source)
        return source
    if isinstance(source, Mapping):
        return _from_object(source, num_layers, num_heads, stacks)
    shape = tuple(getattr(source, "shape", ()))
    rows = _listed(source) if shape == (num_layers, num_heads) else source
    rows = [row.tolist() if hasattr(row, "tolist") else row for row in rows] if isinstance(rows, list | tuple) else ()
    if len(rows) != num_layers or not all(_is_row(row, num_heads) for row in rows):
        other = " with other values" if shape == (num_layers, num_heads) else ""
        table = f"a table of shape {shape}{other}" if shape else shown(source)
        raise MaskError(
            f"{A_MASK}, or a table of {num_layers} rows of {num_heads}, each value 1 (kept) or 0 (off), not {table}. "
            f"{READING}"
        )
    return HeadMask.from_array(rows)


def own_mask(source: Any, shape: tuple[int, int] | None = None) -> HeadMask:
    """The mask that a call without a model was given. ``shape`` is its grid, which heads by layer do not say."""
    grid: Any = shape
    if shape is None and isinstance(source, HeadMask):
        return source
    if shape is None and isinstance(source, Mapping):
        grid = source.get("layers"), source.get("heads")  # of headviz's own JSON
        if None in grid:
            raise MaskError("A mask by layer needs its grid: give layers and heads in each as shape, such as (12, 12).")
    elif shape is None:
        grid = tuple(getattr(source, "shape", ())) or _sides(source)
        if len(grid) != 2:
            raise MaskError(f"{A_MASK}, or a table of ones (kept) and zeros (off), not {shown(source)}. {READING}")
    if not isinstance(grid, tuple | list) or len(grid) != 2:
        raise MaskError(f"shape is layers and heads in each, such as (12, 12), not {shown(grid)}.")
    return mask_of(source, HeadMask.full(*grid).num_layers, grid[1])


def _sides(rows: Any) -> tuple[int, ...]:
    """Rows and columns of a table in lists; an empty tuple for anything else."""
    is_table = isinstance(rows, list | tuple) and rows and hasattr(rows[0], "__len__")
    return (len(rows), len(rows[0])) if is_table else ()


def _listed(table: Any) -> Any:
    return (table if hasattr(table, "tolist") else np.asarray(table)).tolist()  # a DataFrame has no tolist


def read_mask(source: Any, num_layers: int, num_heads: int, stacks: Mapping[str, range] | None = None) -> HeadMask:
    """A mask from any of the forms above; a ``Path`` or a text with one of their endings names a file.

    With a model's ``stacks`` heads may be named by them (``cross.1.5``). A ``UserError`` for anything that is not such
    a mask, or is one of another grid.

    >>> import headviz
    >>> headviz.read_mask({"3": [5], "7": [0, 1]}, 12, 12).off == ((3, 5), (7, 0), (7, 1))
    True
    >>> headviz.read_mask("3.5, 7.0", 12, 12).off == ((3, 5), (7, 0))
    True
    """
    if _names_file(source):
        source = _content(source)
    if isinstance(source, str):
        return mask_from_text(source, num_layers, num_heads, stacks)
    if isinstance(source, list | tuple):
        return _from_list(source, num_layers, num_heads, stacks)
    return mask_of(source, num_layers, num_heads, stacks)


def pruned_heads(mask: MaskLike) -> dict[int, list[int]]:
    """The heads that are off, by layer: what ``prune_heads`` and a config's ``pruned_heads`` take.

    ``mask`` is a mask in any form that calls take.

    >>> import headviz
    >>> headviz.pruned_heads(headviz.HeadMask.full(12, 12).without("3.5, 3.7, 7.0"))
    {3: [5, 7], 7: [0]}
    """
    heads: dict[int, list[int]] = {}
    for layer, head in own_mask(mask, (MOST, MOST) if isinstance(mask, Mapping) else None).off:
        heads.setdefault(layer, []).append(head)
    return heads


def read_ablation(source: Any) -> str:
    """What stands in the place of the heads that a mask's JSON switches off; "zero" where it says nothing.

    It is what ``ablation=`` takes, and is not checked here.

    >>> import headviz, tempfile
    >>> mask = headviz.HeadMask.full(2, 4).without("1.3")
    >>> headviz.read_ablation(headviz.write_mask(mask, tempfile.mkdtemp() + "/mask.json", ablation="mean:64"))
    'mean:64'
    """
    if _names_file(source):
        source = _content(source)
    elif isinstance(source, str) and source.strip().startswith("{"):
        source = _json(source)
    ablation = source.get("ablation", ZERO) if isinstance(source, Mapping) else ZERO
    if not isinstance(ablation, str):
        raise MaskError(f"'ablation' in a mask's file is a word such as mean, not {shown(ablation)}.")
    return ablation


def mask_json(mask: HeadMask, *, model: str = "", digest: str = "", ablation: str = ZERO) -> str:
    """A mask as JSON, with the model it was made on and what stands in the place of heads that are off.

    ``read_mask`` and ``read_ablation`` read it back.
    """
    record = {
        "layers": mask.num_layers,
        "heads": mask.num_heads,
        "off": [h.dotted for h in mask.off],
        "hex": mask.hex,
        "pruned_heads": pruned_heads(mask),
        "model": model,
        "digest": digest,
        **({} if ablation == ZERO else {"ablation": ablation}),
    }
    return json.dumps(record, indent=1)


def write_mask(mask: MaskLike, path: str | Path, *, ablation: str = ZERO, shape: tuple[int, int] | None = None) -> Path:
    """Write a mask: ``.json`` with every form, ``.npy`` as a table of booleans (true = kept), ``.txt`` as digits.

    Only ``.json`` also keeps what stands in the place of the heads that are off. Heads by layer need the ``shape`` of
    the model's grid, layers and heads in each: ``write_mask({3: [5]}, path, shape=(12, 12))``.

    >>> import headviz, tempfile
    >>> mask = headviz.HeadMask.full(2, 4).without("1.3")
    >>> written = headviz.write_mask(mask, tempfile.mkdtemp() + "/mask.json")
    >>> headviz.read_mask(written, 2, 4) == mask
    True
    """
    mask = own_mask(mask, shape)
    if not isinstance(ablation, str):
        raise OptionError(f"ablation is a word such as mean, not {shown(ablation)}.")
    if ablation != ZERO and not str(path).strip().lower().endswith(".json"):
        raise OptionError(f"Only a .json file keeps '{ablation}' with its mask.")
    return _write(path, mask.array(), {".json": mask_json(mask, ablation=ablation), ".txt": mask.hex + "\n"})


def read_scores(source: Any, name: str = "imported") -> HeadScores:
    """Scores from a table [L, H] (lists, an array, a ``.json`` or ``.npy`` file), or from headviz's own JSON.

    High = keep; None and NaN are heads that were not measured. A table has no intervals.

    >>> import headviz
    >>> headviz.read_scores([[0.5, None], [0.1, 0.9]]).ranked()[0]
    HeadId(layer=1, head=1)
    """
    read = _content(source) if _names_file(source) else source
    record: Mapping[str, Any] = read if isinstance(read, Mapping) else {"values": read}
    values = _table(record.get("values"))
    missing = np.full_like(values, np.nan)
    low, high, stderr = (
        missing if record.get(key) is None else _table(record[key], values.shape)
        for key in ("interval_low", "interval_high", "stderr")
    )
    mask = record.get("mask")
    samples, undefined = (record.get(key, 0) for key in ("samples", "undefined"))
    stability = record.get("stability")
    if type(samples) is not int or type(undefined) is not int or not isinstance(stability, float | int | None):
        raise OptionError("These scores are not as headviz writes them: samples and undefined must be whole numbers.")
    return HeadScores(
        score=str(record.get("score", name))[:80],
        values=values,
        stderr=stderr,
        interval_low=low,
        interval_high=high,
        samples=samples,
        undefined=undefined,
        undefined_by_head=np.zeros(values.shape, dtype=np.int64),
        stability=float("nan") if stability is None else float(stability),
        mask=HeadMask.full(*values.shape) if mask is None else read_mask(mask, *values.shape),
        settings={},
    )


def write_scores(scores: HeadScores, path: str | Path) -> Path:
    """Write scores: ``.json`` with intervals and settings, ``.npy`` as the table alone.

    >>> import headviz, tempfile
    >>> scores = headviz.read_scores([[0.5, 0.2]])
    >>> headviz.read_scores(headviz.write_scores(scores, tempfile.mkdtemp() + "/scores.npy")).values.tolist()
    [[0.5, 0.2]]
    """
    require_kind(scores, HeadScores, "scores = headviz.score_heads(clf, data)")
    return _write(path, scores.values, {".json": scores.to_json(indent=1)})


def _names_file(source: Any) -> bool:
    return isinstance(source, Path) or (isinstance(source, str) and source.strip().lower().endswith(FILES))


def existing_file(source: str | Path) -> Path:
    """The path of a file of a mask or of scores; ``OptionError`` if it is not there."""
    path = outside_path(source, "the file")
    if not path.is_file():
        raise OptionError(f"There is no file {shown(str(path))}.")
    return path


def _content(source: str | Path) -> Any:
    """What a file holds: an array, what JSON reads, or a text."""
    path = existing_file(source)
    if path.stat().st_size > LARGEST:
        raise OptionError(f"'{path.name}' is larger than {LARGEST >> 20} MiB, which no mask or table of scores is.")
    try:
        if path.suffix.lower() == ".npy":
            with path.open("rb") as file:  # np.load would also take a zip file, or a pickle
                return np.lib.format.read_array(file, allow_pickle=False)
        text = path.read_text(encoding="utf-8-sig")
        return json.loads(text) if path.suffix.lower() == ".json" else text
    except (ValueError, EOFError, RecursionError, OverflowError, MemoryError) as error:
        raise OptionError(f"'{path.name}' cannot be read: it is not a whole {path.suffix} file.") from error


def _write(path: str | Path, table: np.ndarray, texts: Mapping[str, str]) -> Path:
    path = out_file(path, "file")
    ending = path.suffix.lower()
    if ending not in (".npy", *texts):
        raise OptionError(f"'{path.name}' must end in {', '.join(('.npy', *texts))}.")
    body: bytes | str
    if ending == ".npy":
        raw = io.BytesIO()
        np.save(raw, table, allow_pickle=False)
        body = raw.getvalue()
    else:
        body = texts[ending]
    with disk_errors(path, len(body)):
        replace_file(path, body)
    return path


def _table(source: Any, shape: tuple[int, ...] | None = None) -> np.ndarray:
    try:
        table = np.array(source, dtype=np.float64)  # None becomes NaN
    except (TypeError, ValueError):
        table = np.empty(0)
    if table.ndim != 2 or not table.size or max(table.shape) > MOST or (shape is not None and table.shape != shape):
        raise OptionError("Scores are a table of numbers with one row for each layer, all equally long.")
    return table


def mask_from_text(text: str, layers: int, heads: int, stacks: Mapping[str, range] | None = None) -> HeadMask:
    """A mask that a user typed or pasted. Unlike in ``read_mask``, a text never names a file."""
    text = text.strip()
    if not text:
        raise MaskError("There is no mask. Paste hexadecimal digits, a list such as 3.5,7.0, or headviz's JSON.")
    if text.startswith("{"):
        return _from_object(_json(text), layers, heads, stacks)
    if text.startswith("["):
        return _from_list(_json(text), layers, heads, stacks)
    digits = -(-layers * heads // 4)
    if "." in text or "·" in text:
        return HeadMask.full(layers, heads).without(parse_heads(text.replace("\n", ","), stacks))
    if len(text.lower().removeprefix("0x")) == digits or len(text) > 8:
        return HeadMask.from_hex(text, layers, heads)
    raise MaskError(
        f"'{text[:40]}' is neither a mask of {digits} hexadecimal digits nor a list of heads such as 3.5,7.0."
    )


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise MaskError("This JSON is not complete. Copy the whole text of the exported mask.") from error


def _from_object(read: Mapping[Any, Any], layers: int, heads: int, stacks: Mapping[str, range] | None) -> HeadMask:
    """headviz's own JSON, a config with ``pruned_heads``, or heads by layer."""
    if isinstance(read.get("off"), list):
        grid = read.get("layers", layers), read.get("heads", heads)
        if grid != (layers, heads):
            raise MaskError(f"This mask is for {grid[0]}×{grid[1]} heads, the model has {layers}×{heads}.")
        return _from_list(read["off"], layers, heads, stacks)
    by_layer = read.get("pruned_heads", read)
    off = []
    if not isinstance(by_layer, Mapping):
        raise MaskError('pruned_heads must be an object of layers, such as {"3": [5]}.')
    if "off" in read:
        raise MaskError('This mask has no list of heads. It needs {"off": ["3.5", "7.0"]} or {"3": [5], "7": [0]}.')
    for layer, heads_of_layer in by_layer.items():
        is_number = not isinstance(layer, bool) and len(str(layer)) <= 6 and str(layer).strip().isdecimal()
        if not is_number or int(layer) >= layers:
            raise MaskError(
                f"{shown(layer)} is not the number of a layer: they are 0 to {layers - 1}. "
                'A mask by layer is {3: [5], 7: [0]}, in JSON {"3": [5], "7": [0]}.'
            )
        if not isinstance(heads_of_layer, Collection) or isinstance(heads_of_layer, str | bytes | Mapping):
            raise MaskError(f'The heads of layer {int(layer)} must be a list of whole numbers, such as "3": [5].')
        off += [head_of((int(layer), head)) for head in heads_of_layer]
    return HeadMask.full(layers, heads).without(off)


def _from_list(source: Sequence[Any], layers: int, heads: int, stacks: Mapping[str, range] | None) -> HeadMask:
    """A table of the whole grid, or the heads that are off."""
    if len(source) == layers and all(_is_row(row, heads) for row in source):
        return HeadMask.from_array(source)
    off: list[HeadId] = []
    for item in source:
        if isinstance(item, str):
            off += parse_heads(item, stacks) or [HeadId.parse(item)]
        elif isinstance(item, list | tuple) and len(item) == 2 and all(type(x) is int for x in item):
            off.append(HeadId(*item))
        elif isinstance(item, list | tuple):
            raise MaskError(
                f"This table does not fit: {layers} rows of {heads} are needed, each value 1 (kept) or 0 (off)."
            )
        else:
            raise MaskError(f"'{str(item)[:40]}' is not a head. Write \"3.5\" or [3, 5].")
    return HeadMask.full(layers, heads).without(off)


def _is_row(row: Any, heads: int) -> bool:
    """A row of ones and zeros. Two heads of a layer with two heads would look like a pair; such a list is a table."""
    if not isinstance(row, list | tuple) or len(row) != heads:
        return False
    return all(not isinstance(v, str) and not getattr(v, "shape", ()) and v in (0, 1) for v in row)


def restored(kind: Any, value: Any, shape: tuple[int, int]) -> Any:
    """A value of a result's JSON as a ``kind``: the inverse of ``results.plain``.

    Null is NaN again where a number belongs. ``shape`` is layers × heads of the result's masks.
    """
    if get_origin(kind) in (Union, UnionType):
        return None if value is None else restored(get_args(kind)[0], value, shape)
    if kind is float:
        return float("nan") if value is None else float(value)
    if kind is HeadMask:
        return HeadMask.from_hex(value, *shape)
    if kind is HeadId:
        return HeadId.parse(value)
    if get_origin(kind) is np.ndarray:
        return np.array(value, dtype=float)
    if get_origin(kind) is tuple:
        inner = get_args(kind)
        kinds = [inner[0]] * len(value) if inner[-1] is Ellipsis else inner
        return tuple(restored(k, v, shape) for k, v in zip(kinds, value, strict=True))
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        hints = get_type_hints(kind)
        names = [f.name for f in dataclasses.fields(kind) if f.name in value]
        return kind(**{name: restored(hints[name], value[name], shape) for name in names})
    return value
