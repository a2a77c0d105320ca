"""The record of a pruned model in its configuration: written, read, checked, and applied to a model."""

from __future__ import annotations

from typing import Any

from ..attention import NAME
from ..errors import ModelError
from ..heads import CLASSIFICATION, TRANSLATION, HeadMask
from .as_described import unfilled
from .families import family_of
from .families.own_attention import put_in
from .feed_forward import sized_as_recorded
from .folder_check import KEPT, METHOD
from .network import Network, add_bias, has_own_bias
from .pruning import cut, require_even, settle

HOW, HOW_TO_LOAD = (
    "how_to_load",
    "This model has been pruned: its layers have different numbers of heads. pip install headviz, then write `import "
    "headviz` before from_pretrained. Never pass ignore_mismatched_sizes=True: it would fill the matrices at random.",
)


# what a portable folder has next to it: the sizes of all modules, for the file of modelling code that is named last
PORTABLE = SHAPES, POSITIONS, CODE_OF = ("shapes", "position_heads", "auto_map")


class Bare(Network):
    """A transformers model, to find its matrices by row. Nothing is run through it, and it has no tokenizer."""

    @property
    def kind(self) -> str:
        return TRANSLATION if self.family.has_decoder else CLASSIFICATION


def record(clf: Network, config: Any) -> None:
    """Write into a configuration which heads a model has."""
    forget(config)
    heads = [list(clf.present.kept_in(row)) for row in range(clf.num_layers)]
    biases = [row for row in range(clf.num_layers) if has_own_bias(clf.projections(row).output)]
    setattr(config, KEPT, {"quant_method": METHOD, "heads": heads, "biases": biases})
    setattr(config, HOW, HOW_TO_LOAD)


def forget(config: Any) -> None:
    """Our own models say in ``present`` which heads they have, so that equal weights have equal digests."""
    for name in ("pruned_heads", HOW, *(PORTABLE if hasattr(config, SHAPES) else ())):
        vars(config).pop(name, None)
    if recorded(config) is not None:
        delattr(config, KEPT)


def recorded(config: Any) -> dict[str, Any] | None:
    """The record in a configuration, None where there is none."""
    record = config.get(KEPT) if isinstance(config, dict) else getattr(config, KEPT, None)
    record = record if isinstance(record, dict) or record is None else record.to_dict()
    return record if record is not None and record.get("quant_method") == METHOD else None


def present_in(config: Any) -> HeadMask:
    """The heads of a model with this configuration: all of its family's grid, but those that it says are gone."""
    whole = HeadMask.full(*family_of(config.model_type).whole_grid(config))
    record = recorded(config)
    if record is None:
        pruned = getattr(config, "pruned_heads", None) or {}
        return whole.without([(int(row), head) for row, heads in pruned.items() for head in heads])
    rows = record.get("heads")
    if not isinstance(rows, list) or [_is_row(row, whole.num_heads) for row in rows] != [True] * whole.num_layers:
        raise ModelError(
            f"config.json: {KEPT}.heads lists for each of {whole.num_layers} layers the heads that it has, numbers "
            f"from 0 to {whole.num_heads - 1} in order. Save the pruned model again."
        )
    kept = [(row, head) for row, heads in enumerate(rows) for head in heads]
    return HeadMask.only(whole.num_layers, whole.num_heads, kept)


def _is_row(row: Any, heads: int) -> bool:
    return isinstance(row, list) and all(type(h) is int and 0 <= h < heads for h in row) and row == sorted(set(row))


def cut_as_recorded(model: Any) -> None:
    """Cut a whole model to the recorded heads and neurons, in place."""
    present = present_in(model.config)
    whole = Bare(model, None, HeadMask.full(present.num_layers, present.num_heads), type(model).__name__)
    if whole.family.own_attention is not None:
        put_in(model, whole.family.own_attention)
    with unfilled():
        smaller = cut(whole, present)
        sized_as_recorded(model)
        _room_for_biases(smaller)
    try:
        require_even(smaller, present)
    except ModelError:  # transformers' own attention cannot run these layers
        model.set_attn_implementation(NAME)


def _room_for_biases(clf: Network) -> None:
    """A bias for each W_O that has one by the record and none by the family: what stands in the place of heads."""
    for row in (recorded(clf.config) or {}).get("biases") or ():
        output = clf.projections(row).output
        if output.bias is None:
            add_bias(output, output.weight.new_zeros(output.out_features))


def settle_as_recorded(model: Any) -> None:
    """Bring what is not a weight to the recorded heads, in place: it is not in the file."""
    present = present_in(model.config)
    settle(Bare(model, None, present, type(model).__name__), present)
