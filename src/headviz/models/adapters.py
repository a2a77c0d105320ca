"""Folders of PEFT: a LoRA adapter is merged into the model that it names, which is loaded first.

Its settings and its file come from elsewhere. Only settings that describe a plain LoRA are accepted, ranks are
bounded by the file's own tensors, and nothing but safetensors is opened.
"""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from safetensors.torch import load_file

from ..errors import ModelError, shown
from .as_described import merged
from .folder_check import ADAPTER, numbers_in, read_json

WEIGHTS = "adapter_model.safetensors"
MERGE = (
    "Merge it into its model first: peft.AutoPeftModelForSequenceClassification.from_pretrained(folder)"
    ".merge_and_unload().save_pretrained(merged)."
)
# settings of a plain LoRA; all others must have PEFT's default
PLAIN = (
    "r lora_alpha lora_dropout target_modules exclude_modules fan_in_fan_out bias use_rslora use_dora lora_bias "
    "modules_to_save init_lora_weights layers_to_transform layers_pattern rank_pattern alpha_pattern task_type"
).split()
MODULES = "target_modules exclude_modules modules_to_save rank_pattern alpha_pattern layers_pattern".split()  # of names
ABOUT = {"peft_type", "auto_mapping", "peft_version", "base_model_name_or_path", "revision", "inference_mode"}
NAME = re.compile(r"[\w.-]{1,200}", re.ASCII)  # PEFT reads names of modules as regular expressions


def is_adapter(folder: Path) -> bool:
    return (folder / ADAPTER).exists()


class Adapter:
    """An adapter's settings and tensors, checked."""

    def __init__(self, folder: Path, name: object) -> None:
        if find_spec("peft") is None:
            raise ModelError(f"'{name}' is an adapter of PEFT: pip install peft, and headviz merges it. {MERGE}")
        self.name, self.raw = name, read_json(folder / ADAPTER, name)
        if not (folder / WEIGHTS).exists():
            raise ModelError(
                f"'{name}' is an adapter without {WEIGHTS}, which is the only file that is opened. {MERGE}"
            )
        numbers_in(folder / WEIGHTS, name)
        self.state = load_file(folder / WEIGHTS)
        self.config = self._config()

    @property
    def base(self) -> tuple[str, str | None]:
        """The model below, and its revision."""
        base, revision = self.raw.get("base_model_name_or_path"), self.raw.get("revision")
        if not isinstance(base, str) or not base:
            raise ModelError(f"{ADAPTER} of '{self.name}' does not name its model. {MERGE}")
        return base, revision if isinstance(revision, str) else None

    @property
    def outputs(self) -> int | None:
        """How many outputs the classification head has that was trained with the adapter; None without one."""
        ends = ("classifier.weight", "out_proj.weight", "score.weight")
        heads = [w for key, w in self.state.items() if key.endswith(ends) and "lora_" not in key and w.ndim == 2]
        return len(heads[-1]) if heads else None

    def _config(self) -> Any:
        from peft import LoraConfig

        if self.raw.get("peft_type") != "LORA":
            raise ModelError(f"'{self.name}' is an adapter of the kind {shown(self.raw.get('peft_type'))}. {MERGE}")
        defaults = LoraConfig().to_dict()
        for key, value in self.raw.items():
            if key not in PLAIN and key not in ABOUT and value and value != defaults.get(key):
                raise ModelError(f"{ADAPTER} of '{self.name}' sets {shown(key)}, which headviz does not merge. {MERGE}")
        settings = {key: self.raw[key] for key in PLAIN if self.raw.get(key) is not None}
        sizes = [len(w) for key, w in self.state.items() if ".lora_A." in key and w.ndim == 2]
        ranks = [settings.get("r"), *dict(settings.get("rank_pattern") or {}).values()]
        values = (settings.get(key) or () for key in MODULES)
        names = [name for value in values for name in ([value] if isinstance(value, str) else value)]
        fits = (
            all(type(rank) is int and 1 <= rank <= max(sizes, default=0) for rank in ranks)
            and all(isinstance(name, str) and NAME.fullmatch(name) for name in names)
            and settings.get("init_lora_weights", True) in (True, False, "gaussian", "orthogonal")
        )
        if not fits:
            raise ModelError(f"{ADAPTER} of '{self.name}' is not that of a plain LoRA of its weights. {MERGE}")
        return LoraConfig(**{**settings, "init_lora_weights": False})

    def merged_into(self, model: Any) -> Any:
        """A copy of the model with the adapter in its weights."""
        from peft import get_peft_model, set_peft_model_state_dict

        try:
            peft_model = get_peft_model(model, self.config)
            report: Any = set_peft_model_state_dict(peft_model, self.state)
        except (ValueError, RuntimeError, KeyError) as error:
            raise ModelError(f"'{self.name}' does not fit its model {self.base[0]}: {error}"[:400]) from error
        missing = [key for key in report.missing_keys if "lora_" in key or "modules_to_save" in key]
        if keys := [*missing, *report.unexpected_keys]:
            raise ModelError(f"'{self.name}' does not fit its model {self.base[0]}: {', '.join(keys[:3])}.")
        return merged(peft_model, self.name)
