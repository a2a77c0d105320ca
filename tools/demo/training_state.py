"""What a training run needs to be stopped and continued: optimizer, learning rate, saved states without pickle."""

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import nn


def learning_rate(step: int, steps: int, peak: float, rise: int, fall: float) -> float:
    """A rise over `rise` steps, a plateau (transitions come late), a linear fall over the last share `fall`."""
    up = (step + 1) / max(1, rise)
    down = (steps - step) / (fall * steps) if fall > 0 else 1.0
    return peak * min(1.0, up, down)


def optimizer_for(parameters: Iterable[nn.Parameter], decay: float) -> torch.optim.AdamW:
    """AdamW that decays matrices only."""
    own = list(parameters)
    groups = [
        {"params": [p for p in own if p.dim() > 1], "weight_decay": decay},
        {"params": [p for p in own if p.dim() <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=0.0, betas=(0.9, 0.98), fused=True)


@contextmanager
def whole_folder(path: Path, beside: Path) -> Iterator[Path]:
    """A folder to write into, which stands at `path` once all of it is written, and not before."""
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(parents=True)
    yield beside
    shutil.rmtree(path, ignore_errors=True)  # of a run that was stopped after this
    path.parent.mkdir(parents=True, exist_ok=True)
    os.replace(beside, path)


def write_whole(path: Path, text: str) -> None:
    """A text file, all of it or none."""
    partial = path.with_suffix(".partial")
    partial.write_text(text)
    os.replace(partial, path)


def save_state(path: Path, step: int, model: nn.Module, optimizer: torch.optim.Optimizer, seconds: float) -> None:
    """Weights, moments and the step to go on from, in one safetensors file, replaced in one go."""
    tensors = {f"model.{name}": value.detach().cpu().clone() for name, value in model.state_dict().items()}
    for number, moments in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{number}.{name}": value.cpu() for name, value in moments.items()}
    partial = path.with_suffix(".partial")
    save_file(tensors, partial, metadata={"at": json.dumps({"step": step, "seconds": seconds})})
    os.replace(partial, path)


def load_state(path: Path, model: nn.Module, optimizer: torch.optim.Optimizer) -> tuple[int, float]:
    """Put a saved state back; returns the step to go on from and the seconds spent so far."""
    weights: dict[str, torch.Tensor] = {}
    state: dict[int, dict[str, torch.Tensor]] = {}
    with safe_open(path, "pt") as file:
        at: dict[str, Any] = json.loads(file.metadata()["at"])
        for key in file.keys():  # noqa: SIM118  safe_open is no dict
            kind, name = key.split(".", 1)
            if kind == "model":
                weights[name] = file.get_tensor(key)
            else:
                number, field = name.split(".", 1)
                state.setdefault(int(number), {})[field] = file.get_tensor(key)
    model.load_state_dict(weights)
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
    return int(at["step"]), float(at["seconds"])


def begin(out: Path, weights: Path, roles: Path) -> None:
    """Take a model and the roles of its heads for what the stages before the last would have left in `out`."""
    if (out / "begun.json").exists():
        return
    out.mkdir(parents=True, exist_ok=True)
    for name in ("tokenizer", "with-roles"):
        with whole_folder(out / name, out / "writing") as folder:
            for path in weights.iterdir():
                if name == "with-roles" or path.name.startswith("tokenizer"):
                    shutil.copyfile(path, folder / path.name)
    write_whole(out / "roles.json", roles.read_text())
    digest = hashlib.sha256((weights / "model.safetensors").read_bytes()).hexdigest()
    write_whole(out / "begun.json", json.dumps({"weights": digest}) + "\n")
