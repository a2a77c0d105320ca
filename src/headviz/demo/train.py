"""Train the demo model: `python -m headviz.demo.train --out FOLDER`.

Masked-language pretraining (6 layers, then grown to 12) gives `pretrained/`; classification gives `finetuned/`.
Stop it at any moment and start it again with the same options: it goes on from its last checkpoint, and ends
with the same weights as an uninterrupted run (on CPU, with the same number of threads).
"""

import argparse
import json
import math
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn.functional import cross_entropy
from transformers import AutoTokenizer, BertForMaskedLM, BertForSequenceClassification

from .batches import encode, mask_words, pad, stream
from .corpus import generate
from .example import LABELS
from .network import LAYERS, HeadGates, configuration, grow
from .tokenizer import SPECIALS, build_tokenizer, build_vocabulary


@dataclass(frozen=True)
class Recipe:
    """Everything that decides the weights."""

    seed: int = 0
    small_steps: int = 8000
    pretrain_steps: int = 8000
    finetune_steps: int = 4000
    batch: int = 64
    small_rate: float = 1e-3
    pretrain_rate: float = 1e-3
    finetune_rate: float = 4e-4
    weight_decay: float = 0.02
    coherent: float = 0.75
    gate_price: float = 0.0
    gate_rate: float = 0.02
    gate_from: float = 0.3
    gate_until: float = 0.8


STAGES = ("small", "pretrain", "finetune")


def learning_rate(step: int, steps: int, peak: float) -> float:
    """A short rise, a long plateau (transitions come late), a linear fall over the last quarter."""
    rise = min(300, max(1, steps // 20))
    return peak * min(1.0, (step + 1) / rise, (steps - step) / max(1, 0.25 * steps))


def optimizer_for(model: nn.Module, decay: float) -> torch.optim.AdamW:
    """AdamW that decays matrices only."""
    matrices = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() <= 1]
    groups = [{"params": matrices, "weight_decay": decay}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=0.0, betas=(0.9, 0.98), fused=True)


def save_state(path: Path, step: int, model: nn.Module, optimizer: torch.optim.Optimizer, extra: dict[str, Any]) -> None:
    """Weights, moments and step in one safetensors file, replaced in one go."""
    tensors = {f"model.{name}": tensor.contiguous() for name, tensor in model.state_dict().items()}
    tensors = {name: tensor.clone() for name, tensor in tensors.items()}
    for number, moments in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{number}.{name}": value for name, value in moments.items()}
    partial = path.with_suffix(".partial")
    save_file(tensors, partial, metadata={"step": str(step), "extra": json.dumps(extra)})
    os.replace(partial, path)


def load_state(path: Path, model: nn.Module, optimizer: torch.optim.Optimizer) -> tuple[int, dict[str, Any]]:
    """Put a saved state back; returns the step to go on from."""
    from safetensors import safe_open

    with safe_open(path, "pt") as file:
        metadata = file.metadata()
    tensors = load_file(path)
    model.load_state_dict({k.removeprefix("model."): v for k, v in tensors.items() if k.startswith("model.")})
    state: dict[int, dict[str, torch.Tensor]] = {}
    for key, value in tensors.items():
        if key.startswith("optimizer."):
            _, number, name = key.split(".", 2)
            state.setdefault(int(number), {})[name] = value
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
    return int(metadata["step"]), json.loads(metadata["extra"])


@torch.no_grad()
def accuracy(model: Any, tokenizer: Any, examples: list[Any], size: int = 128) -> dict[str, float]:
    """Accuracy overall and per phenomenon."""
    rows = encode(tokenizer, examples)
    order = sorted(range(len(rows)), key=lambda i: len(rows[i][0]))
    right: dict[str, list[bool]] = {}
    for at in range(0, len(order), size):
        some = order[at : at + size]
        batch = pad([rows[i] for i in some], [LABELS.index(examples[i].label) for i in some])
        logits = model(input_ids=batch.ids, token_type_ids=batch.segments, attention_mask=batch.attention).logits
        for i, ok in zip(some, (logits.argmax(-1) == batch.labels).tolist(), strict=True):
            right.setdefault(examples[i].phenomenon, []).append(ok)
    total = [ok for oks in right.values() for ok in oks]
    return {"all": sum(total) / len(total), **{name: sum(oks) / len(oks) for name, oks in sorted(right.items())}}


class Trainer:
    """One training run in one folder."""

    def __init__(self, out: Path, recipe: Recipe, report_every: int = 200, save_every: int = 500, stop_after: int = 0):
        self.out, self.recipe = out, recipe
        self.report_every, self.save_every, self.stop_after = report_every, save_every, stop_after
        self.taken = 0
        out.mkdir(parents=True, exist_ok=True)
        if not (out / "tokenizer" / "tokenizer.json").exists():
            build_tokenizer(build_vocabulary(), out / "tokenizer")
        self.tokenizer: Any = AutoTokenizer.from_pretrained(out / "tokenizer")
        self.vocabulary = len(self.tokenizer)
        (out / "recipe.json").write_text(json.dumps(asdict(recipe), indent=1))

    def log(self, text: str) -> None:
        line = f"{time.strftime('%H:%M:%S')} {text}"
        print(line, flush=True)
        with (self.out / "log.txt").open("a") as file:
            file.write(line + "\n")

    def run(self, stages: tuple[str, ...] = STAGES) -> None:
        """All stages that are not finished yet."""
        if "small" in stages:
            self.pretrain("small", self.recipe.small_steps, self.recipe.small_rate)
        if "pretrain" in stages:
            self.pretrain("pretrain", self.recipe.pretrain_steps, self.recipe.pretrain_rate)
        if "finetune" in stages:
            self.finetune()

    def _start(self, stage: str) -> BertForMaskedLM:
        torch.manual_seed(self.recipe.seed)
        if stage == "small":
            return BertForMaskedLM(configuration(self.vocabulary, LAYERS // 2))
        return grow(BertForMaskedLM.from_pretrained(self.out / "small"))

    def pretrain(self, stage: str, steps: int, peak: float) -> None:
        """Masked-language training of one depth."""
        if (self.out / stage / "config.json").exists():
            return
        model = self._start(stage).train()
        optimizer = optimizer_for(model, self.recipe.weight_decay)
        state, first, seen = self.out / f"{stage}.state", 0, {"seconds": 0.0}
        if state.exists():
            first, seen = load_state(state, model, optimizer)
        began, losses, hits = time.monotonic() - seen["seconds"], [], []
        for step, batch in stream(self.tokenizer, self.recipe.batch, self.recipe.seed, stage, first, self.recipe.coherent):
            if step == steps:
                break
            generator = torch.Generator().manual_seed(self.recipe.seed * 1_000_003 + step)
            ids, chosen = mask_words(batch, self.vocabulary, self.tokenizer.mask_token_id, len(SPECIALS), generator)
            hidden = model.bert(
                input_ids=ids, token_type_ids=batch.segments, attention_mask=batch.attention
            ).last_hidden_state
            logits = model.cls(hidden[chosen])  # [chosen positions, vocabulary]
            loss = cross_entropy(logits, batch.ids[chosen])
            losses.append(loss.item())
            hits.append((logits.argmax(-1) == batch.ids[chosen]).float().mean().item())
            self._step(model, optimizer, loss, learning_rate(step, steps, peak))
            if (step + 1) % self.report_every == 0:
                self.log(f"{stage} {step + 1} loss {_mean(losses):.3f} hit {_mean(hits):.3f}")
                losses, hits = [], []
            if (step + 1) % self.save_every == 0:
                save_state(state, step + 1, model, optimizer, {"seconds": time.monotonic() - began})
            self._count()
        self._write(model, stage, {"seconds": round(time.monotonic() - began), "steps": steps})

    def finetune(self) -> None:
        """Classification; gates on the heads are learned between two points of the run and then folded in."""
        recipe, steps = self.recipe, self.recipe.finetune_steps
        if (self.out / "finetuned" / "config.json").exists():
            return
        torch.manual_seed(recipe.seed + 1)
        model = BertForSequenceClassification.from_pretrained(
            self.out / "pretrained" if (self.out / "pretrained").exists() else self.out / "pretrain",
            id2label=dict(enumerate(LABELS)),
            label2id={label: number for number, label in enumerate(LABELS)},
        ).train()
        gates = HeadGates(model)
        optimizer = optimizer_for(model, recipe.weight_decay)
        optimizer.add_param_group({"params": [gates.log_alpha], "weight_decay": 0.0, "gate": True})
        both = nn.ModuleDict({"model": model, "gates": gates})
        state, first, seen = self.out / "finetune.state", 0, {"seconds": 0.0}
        if state.exists():
            first, seen = load_state(state, both, optimizer)
        dev = list(generate("dev", 1300, seed=1))
        gate_first, gate_last = int(recipe.gate_from * steps), int(recipe.gate_until * steps)
        began, losses = time.monotonic() - seen["seconds"], []
        for step, batch in stream(self.tokenizer, recipe.batch, recipe.seed, "finetune", first):
            if step == steps:
                break
            generator = torch.Generator().manual_seed(recipe.seed * 1_000_003 + step)
            gating = recipe.gate_price > 0 and gate_first <= step < gate_last
            if gating:
                gates.sample(generator)
            elif recipe.gate_price > 0 and step >= gate_last:
                with torch.no_grad():
                    gates.sample(None)
            logits = model(
                input_ids=batch.ids, token_type_ids=batch.segments, attention_mask=batch.attention
            ).logits
            loss = cross_entropy(logits, batch.labels)
            losses.append(loss.item())
            if gating:
                loss = loss + recipe.gate_price * gates.price() / gates.log_alpha.numel()
            self._step(both, optimizer, loss, learning_rate(step, steps, recipe.finetune_rate), recipe.gate_rate)
            if (step + 1) % self.report_every == 0 or step + 1 == steps:
                self.log(f"finetune {step + 1} loss {_mean(losses):.3f} open {self._open(gates)} {self._scores(model, gates, dev)}")
                losses = []
            if (step + 1) % self.save_every == 0:
                save_state(state, step + 1, both, optimizer, {"seconds": time.monotonic() - began})
            self._count()
        if recipe.gate_price > 0:
            gates.fold(model)
        self._write(model, "finetuned", {"seconds": round(time.monotonic() - began), "steps": steps})

    def _open(self, gates: HeadGates) -> int:
        return int((torch.sigmoid(gates.log_alpha) * 1.2 - 0.1 > 0).sum())

    def _scores(self, model: Any, gates: HeadGates, dev: list[Any]) -> str:
        with torch.no_grad():
            if self.recipe.gate_price > 0:
                gates.sample(None)
            scores = accuracy(model.eval(), self.tokenizer, dev)
            model.train()
        return " ".join(f"{name[:9]} {value:.2f}" for name, value in scores.items())

    def _step(self, model: nn.Module, optimizer: torch.optim.Optimizer, loss: torch.Tensor, rate: float, gate: float = 0.0) -> None:
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_([p for p in model.parameters() if p.grad is not None], 1.0, foreach=True)
        for group in optimizer.param_groups:
            group["lr"] = gate if group.get("gate") else rate
        optimizer.step()

    def _count(self) -> None:
        self.taken += 1
        if self.stop_after and self.taken >= self.stop_after:
            raise KeyboardInterrupt

    def _write(self, model: Any, name: str, facts: dict[str, Any]) -> None:
        model.save_pretrained(self.out / name)
        self.tokenizer.save_pretrained(self.out / name)
        (self.out / name / "facts.json").write_text(json.dumps(facts))
        self.log(f"wrote {name} {facts}")


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else math.nan


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--stages", nargs="+", choices=STAGES, default=list(STAGES))
    parser.add_argument("--threads", type=int, default=0)
    defaults = Recipe()
    for name, value in asdict(defaults).items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(value), default=value)
    given = vars(parser.parse_args())
    if given["threads"]:
        torch.set_num_threads(given["threads"])
    recipe = Recipe(**{name: given[name] for name in asdict(defaults)})
    Trainer(given["out"], recipe).run(tuple(given["stages"]))


if __name__ == "__main__":
    main()
