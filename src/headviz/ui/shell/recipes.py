"""Views as library calls and command lines, so that what one sees can be had again without the page."""

from __future__ import annotations

import shlex

from ...heads import HeadMask
from .view import View


def load_call(view: View) -> str:
    more = ""
    if view.revision:
        more += f", revision={view.revision!r}"
    if view.device != "auto":
        more += f", device={view.device!r}"
    if view.dtype:
        more += f", dtype={view.dtype!r}"
    return f"clf = headviz.load({view.model!r}{more})"


def load_options(view: View) -> str:
    more = "".join(
        f" --{name} {shlex.quote(value)}"
        for name, value in (("revision", view.revision), ("dtype", view.dtype))
        if value
    )
    device = f" --device {shlex.quote(view.device)}" if view.device != "auto" else ""
    return f"--model {shlex.quote(view.model)}{more}{device}"


def task_call(view: View, split: str = "dev", name: str = "data") -> str:
    parts = [repr(view.task), f"split={split!r}"]
    if view.data:
        parts.append(f"data={view.data!r}")
    if view.limit:
        parts.append(f"limit={view.limit}")
    if view.columns:
        parts.append(f"text_columns={view.columns!r}")
    if view.label:
        parts.append(f"label_column={view.label!r}")
    if view.groups:
        parts.append(f"slice_column={view.groups!r}")
    if view.seed:
        parts.append(f"seed={view.seed}")
    return f"{name} = headviz.load_task({', '.join(parts)})"


def task_options(view: View) -> str:
    limit, seed = str(view.limit or ""), str(view.seed or "") if view.limit else ""
    options = [("task", view.task), ("data", view.data), ("limit", limit), ("limit-seed", seed)]
    options += [("text-columns", view.columns), ("label-column", view.label), ("slice-column", view.groups)]
    return " ".join(f"--{name} {shlex.quote(value)}" for name, value in options if value)


def mask_call(mask: HeadMask) -> str:
    without = f".without({[tuple(h) for h in mask.off]})" if mask.off else ""
    return f"mask = headviz.HeadMask.full({mask.num_layers}, {mask.num_heads}){without}"


def off_option(mask: HeadMask) -> str:
    return f" --off {','.join(h.dotted for h in mask.off)}" if mask.off else ""
