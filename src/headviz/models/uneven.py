"""Pruned models in transformers' own format: what their configuration says, and how transformers builds their layers.

transformers lets a *quantiser* change a model between its construction and the reading of its weights. Ours cuts the
layers to the recorded heads and neurons; nothing is quantised. Afterwards the model is like any other: it trains,
moves and changes its precision, and ``save_pretrained`` writes the record again.
"""

from __future__ import annotations

from typing import Any

from transformers.quantizers import auto
from transformers.quantizers.base import HfQuantizer
from transformers.utils.quantization_config import QuantizationConfigMixin

from .folder_check import METHOD


class PrunedHeads(QuantizationConfigMixin):
    """The heads that each row of the grid has, and the rows whose W_O has a bias that the family does not have."""

    def __init__(self, heads: Any = None, biases: Any = (), **_: Any) -> None:
        self.quant_method = METHOD  # type: ignore[assignment]  # transformers lists its own in an enum
        self.heads, self.biases = heads, biases  # checked where they are applied


class Cutter(HfQuantizer):
    """Cuts a model that has no weights yet to the recorded heads and neurons."""

    requires_calibration = False

    def _process_model_before_weight_loading(self, model: Any, **_: Any) -> Any:
        from .recorded import cut_as_recorded

        if not getattr(model, "cut_by_itself", False):  # the class of a portable folder
            cut_as_recorded(model)
        return model

    def _process_model_after_weight_loading(self, model: Any, **_: Any) -> Any:
        from .recorded import settle_as_recorded

        if not getattr(model, "cut_by_itself", False):
            settle_as_recorded(model)
        # from here on it is a model like any other
        del model.hf_quantizer, model.quantization_method
        model.is_quantized = False
        for module in model.modules():
            if hasattr(module, "config"):
                vars(module.config).pop("_is_quantized", None)
        return model

    def is_serializable(self) -> bool:
        return True

    @property
    def is_trainable(self) -> bool:
        return True


if METHOD not in auto.AUTO_QUANTIZER_MAPPING:
    auto.register_quantization_config(METHOD)(PrunedHeads)
    auto.register_quantizer(METHOD)(Cutter)
