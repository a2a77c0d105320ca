"""Train the demo model: `python -m tools.demo.train --out FOLDER`.

Masked-language training with 6 layers (`small/`), the same grown to 12 (`pretrained/`), classification
(`classifier/`, with `checkpoints/` on the way), classification with heads that have a role (`with-roles/`), and the
same with short plain sentences among the pairs (`finetuned/`). Stop it at any moment and start it again with the same
options: it goes on from its last state, and ends with the same weights as an uninterrupted run with the same number of
threads. `--begin MODEL --roles FILE` takes the weights and roles of an earlier model and runs the last stage alone.
"""

import argparse
import json
import math
import time
from collections.abc import Iterator
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn.functional import cross_entropy
from transformers import AutoTokenizer, BertForMaskedLM, BertForSequenceClassification

from headviz.attention import NAME
from headviz.demo import DATA
from headviz.demo.reading import LABELS

from .accuracy import accuracy
from .batches import Batch, Dropped, drop_none, mask_words, no_lesson, stream
from .corpus import generate
from .network import LAYERS, HeadGates, configuration, fold, gated, grow
from .phenomena import PHENOMENA
from .recipe import Recipe
from .roles import Roles, as_tensor, choose, draw, per_pair, role_loss
from .tokenizer import SPECIALS, build_tokenizer, build_vocabulary
from .training_state import begin, learning_rate, load_state, optimizer_for, save_state, whole_folder, write_whole

STAGES = ("small", "pretrain", "finetune", "roles", "short")
FOLDERS = {
    "small": "small",
    "pretrain": "pretrained",
    "finetune": "classifier",
    "roles": "with-roles",
    "short": "finetuned",
}
_SEED_STRIDE = 1_000_003  # so that no two (seed, step) share a generator


class Trainer:
    """One training run in one folder."""

    def __init__(
        self,
        out: Path,
        recipe: Recipe,
        *,
        device: str = "cpu",
        report_every: int = 200,
        save_every: int = 500,
        checkpoint_every: int = 500,
        dev_pairs: int = 1300,
    ) -> None:
        self.out, self.recipe, self.device = out, recipe, torch.device(device)
        self.report_every, self.save_every, self.checkpoint_every = report_every, save_every, checkpoint_every
        out.mkdir(parents=True, exist_ok=True)
        chosen = out / "recipe.json"
        if chosen.exists() and json.loads(chosen.read_text()) != asdict(recipe):
            raise SystemExit(f"{out} holds a run with another recipe ({chosen}). Give it again, or another folder.")
        write_whole(chosen, json.dumps(asdict(recipe), indent=1) + "\n")
        if not (out / "tokenizer").exists():
            with whole_folder(out / "tokenizer", out / "writing") as folder:
                build_tokenizer(build_vocabulary(), folder)
        self.tokenizer: Any = AutoTokenizer.from_pretrained(out / "tokenizer")
        self.vocabulary = len(self.tokenizer)
        self._dev = list(generate("dev", dev_pairs, seed=1))
        self._short_dev = list(generate("dev", dev_pairs, seed=2, short=1.0))
        self._began = 0.0

    def run(self, stages: tuple[str, ...] = STAGES) -> None:
        """All stages that are not finished yet, in order."""
        for stage in STAGES:
            if stage in stages and not (self.out / FOLDERS[stage] / "config.json").exists():
                getattr(self, stage)()

    # --- masked language -----------------------------------------------------------------------------------------

    def small(self) -> None:
        """Masked-language training at half depth, where early transitions come at half the cost."""
        torch.manual_seed(self.recipe.seed)
        model = BertForMaskedLM(configuration(self.vocabulary, LAYERS // 2))
        recipe = self.recipe
        self._masked_language("small", model, recipe.small_steps, recipe.small_plan, recipe.small_rate)

    def pretrain(self) -> None:
        """Masked-language training at full depth."""
        torch.manual_seed(self.recipe.seed)
        model = grow(BertForMaskedLM.from_pretrained(self.out / "small"))
        steps = self.recipe.pretrain_steps
        self._masked_language("pretrain", model, steps, steps, self.recipe.pretrain_rate)

    def _masked_language(self, stage: str, model: Any, steps: int, plan: int, peak: float) -> None:
        recipe = self.recipe
        model.to(self.device).train()
        optimizer = optimizer_for(model.parameters(), recipe.weight_decay)
        losses, hits = [], []
        for step, batch in self._steps(stage, model, optimizer, steps, recipe.dropped_from_reading):
            generator = torch.Generator().manual_seed(recipe.seed * _SEED_STRIDE + step)
            ids, chosen = mask_words(batch, self.vocabulary, self.tokenizer.mask_token_id, len(SPECIALS), generator)
            inputs = batch._replace(ids=ids).inputs(self.device)
            chosen, gold = chosen.to(self.device), batch.ids[chosen].to(self.device)
            hidden = model.base_model(**inputs).last_hidden_state
            logits = model.cls(hidden[chosen])  # [chosen positions, vocabulary]
            loss = cross_entropy(logits, gold)
            self._update(model, optimizer, loss, learning_rate(step, plan, peak, recipe.warmup, recipe.fall))
            losses.append(loss.item())
            hits.append((logits.argmax(-1) == gold).float().mean().item())
            if (step + 1) % self.report_every == 0:
                self._log(f"{stage} {step + 1} loss {_mean(losses):.3f} hit {_mean(hits):.3f}")
                losses, hits = [], []
        self._write(model, FOLDERS[stage], steps)

    # --- classification ------------------------------------------------------------------------------------------

    def finetune(self) -> None:
        """Classification. Gates on the heads are learned on the way and folded into the weights before the end."""
        recipe, steps = self.recipe, self.recipe.finetune_steps
        torch.manual_seed(recipe.seed + 1)
        model = self._classifier("pretrained")
        both = nn.ModuleDict({"model": model, "gates": HeadGates()}).to(self.device).train()
        gates: Any = both["gates"]
        optimizer = optimizer_for(model.parameters(), recipe.weight_decay)
        optimizer.add_param_group({"params": list(gates.parameters()), "weight_decay": 0.0, "gates": True})
        losses = []
        for step, batch in self._steps("finetune", both, optimizer, steps, recipe.dropped_from_classification):
            gating = recipe.gate_price > 0 and recipe.gate_from <= step < recipe.gate_until
            if recipe.gate_price > 0 and step == recipe.gate_until:
                fold(model, gates.settled(recipe.gate_floor))
            generator = torch.Generator().manual_seed(recipe.seed * _SEED_STRIDE + step)
            drawn = gates.sampled(generator) if gating else None
            logits = model(**batch.inputs(self.device), headviz=gated(drawn)).logits
            loss = cross_entropy(logits, batch.labels.to(self.device))
            losses.append(loss.item())
            if gating:
                ramp = min(1.0, 2 * (step - recipe.gate_from) / (recipe.gate_until - recipe.gate_from))
                loss = loss + ramp * recipe.gate_price * gates.price()
            rate = learning_rate(step, steps, recipe.finetune_rate, recipe.warmup, recipe.finetune_fall)
            self._update(both, optimizer, loss, rate)
            if (step + 1) % self.report_every == 0 or step + 1 == steps:
                settled = gates.settled() if gating else None
                heads = int((gates.settled() > 0).sum())
                scores = accuracy(model, self.tokenizer, self._dev, settled)
                model.train()
                told = " ".join(f"{name[:8]} {value:.2f}" for name, value in scores.items())
                self._log(f"finetune {step + 1} loss {_mean(losses):.3f} open {heads} {told}")
                losses = []
            if self.checkpoint_every and (step + 1) % self.checkpoint_every == 0 and step + 1 < steps:
                self._write(model, f"checkpoints/step-{step + 1:05d}", step + 1)
        self._write(model, FOLDERS["finetune"], steps)

    def roles(self) -> None:
        """Classification goes on, and each phenomenon comes to depend on a few heads of its own."""
        recipe = self.recipe
        model = self._classifier(FOLDERS["finetune"])
        self._with_roles("roles", model, recipe.roles_steps, recipe.roles_rate, recipe.roles_fall)

    def short(self) -> None:
        """The same goes on, with short plain sentences among the pairs."""
        recipe = self.recipe
        model = self._classifier(FOLDERS["roles"])
        self._with_roles("short", model, recipe.short_steps, recipe.short_rate, recipe.short_fall, recipe.short_share)

    def _with_roles(self, stage: str, model: Any, steps: int, peak: float, fall: float, short: float = 0.0) -> None:
        recipe, names = self.recipe, tuple(PHENOMENA)
        model.to(self.device).train()
        table = as_tensor(self._chosen_roles(model, names), names)
        optimizer = optimizer_for(model.parameters(), recipe.weight_decay)
        losses = []
        for step, batch in self._steps(stage, model, optimizer, steps, drop_none, short):
            generator = torch.Generator().manual_seed(recipe.seed * _SEED_STRIDE + step)
            drawn = draw(table, batch.groups, generator)
            call = per_pair(drawn.gates.to(self.device))
            logits = model(**batch.inputs(self.device), headviz=call).logits
            loss = role_loss(logits, batch.labels.to(self.device), drawn.robbed.to(self.device), recipe.roles_smoothing)
            losses.append(loss.item())
            self._update(model, optimizer, loss, learning_rate(step, steps, peak, recipe.warmup, fall))
            if (step + 1) % self.report_every == 0 or step + 1 == steps:
                told = self._told_roles(model, table, names)
                if short:
                    told += " short " + self._told_short(model)
                self._log(f"{stage} {step + 1} loss {_mean(losses):.3f} {told}")
                losses = []
        self._write(model, FOLDERS[stage], steps)

    def _chosen_roles(self, model: Any, names: tuple[str, ...]) -> Roles:
        """Which heads have which role: chosen once, then kept beside the run."""
        path = self.out / "roles.json"
        if not path.exists():
            pairs = list(generate("train", self.recipe.roles_pairs * len(names), seed=self.recipe.seed))
            chosen = choose(model, self.tokenizer, pairs, names, self.recipe.roles_heads)
            write_whole(path, json.dumps(chosen) + "\n")
        result: dict[str, list[list[int]]] = json.loads(path.read_text())
        return {name: [(layer, head) for layer, head in heads] for name, heads in result.items()}

    def _told_roles(self, model: Any, table: torch.Tensor, names: tuple[str, ...]) -> str:
        """Accuracy overall, then for each phenomenon whole and without its heads, and the worst that others lose."""
        whole = accuracy(model, self.tokenizer, self._dev)
        told = [f"all {whole['all']:.3f}"]
        for row, name in enumerate(names):
            rest = accuracy(model, self.tokenizer, self._dev, 1 - table[row])
            worst = max((whole[other] - rest[other] for other in names if other != name), default=0.0)
            told.append(f"{name[:8]} {whole[name]:.2f}>{rest[name]:.2f} ({worst:.2f})")
        model.train()
        return " ".join(told)

    def _told_short(self, model: Any) -> str:
        """Accuracy on short dev pairs, overall and of each phenomenon."""
        scores = accuracy(model, self.tokenizer, self._short_dev)
        model.train()
        return " ".join(f"{name[:8]} {value:.2f}" for name, value in scores.items())

    # --- shared --------------------------------------------------------------------------------------------------

    def _classifier(self, folder: str) -> Any:
        return BertForSequenceClassification.from_pretrained(
            self.out / folder,
            attn_implementation=NAME,
            dtype=torch.float32,
            id2label=dict(enumerate(LABELS)),
            label2id={label: number for number, label in enumerate(LABELS)},
        )

    def _steps(
        self,
        stage: str,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        steps: int,
        dropped: Dropped,
        short: float = 0.0,
    ) -> Iterator[tuple[int, Batch]]:
        """The steps still to do, from a saved state on; saves one every so often."""
        path, first, spent = self.out / f"{stage}.state", 0, 0.0
        if path.exists():
            first, spent = load_state(path, model, optimizer)
            self._log(f"{stage} goes on from step {first}")
        self._began = time.monotonic() - spent
        recipe = self.recipe
        lesson_at = recipe.lesson if stage == "finetune" else no_lesson
        for step, batch in stream(self.tokenizer, recipe.batch, recipe.seed, stage, first, dropped, lesson_at, short):
            if step == steps:
                break
            yield step, batch
            if (step + 1) % self.save_every == 0:
                save_state(path, step + 1, model, optimizer, time.monotonic() - self._began)

    def _update(self, model: nn.Module, optimizer: torch.optim.Optimizer, loss: torch.Tensor, rate: float) -> None:
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_([p for p in model.parameters() if p.grad is not None], 1.0, foreach=True)
        for group in optimizer.param_groups:
            group["lr"] = self.recipe.gate_rate if group.get("gates") else rate
        optimizer.step()

    def _write(self, model: Any, name: str, steps: int) -> None:
        facts = {"steps": steps, "seconds": round(time.monotonic() - self._began), "threads": torch.get_num_threads()}
        with whole_folder(self.out / name, self.out / "writing") as folder:
            model.save_pretrained(folder)
            self.tokenizer.save_pretrained(folder)
            (folder / "facts.json").write_text(json.dumps(facts) + "\n")
        self._log(f"wrote {name} {facts}")

    def _log(self, text: str) -> None:
        line = f"{time.strftime('%H:%M:%S')} {text}"
        print(line, flush=True)
        with (self.out / "log.txt").open("a") as file:
            file.write(line + "\n")


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else math.nan


def main(arguments: list[str] | None = None) -> None:
    """The command line: every field of the recipe is an option."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--begin", type=Path, help="folder of a model to run the last stage on")
    parser.add_argument("--roles", type=Path, default=DATA / "roles.json", help="the roles of that model's heads")
    parser.add_argument("--stages", nargs="+", choices=STAGES, default=list(STAGES))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--report-every", type=int, default=200, help="steps between two measurements")
    parser.add_argument("--threads", type=int, help="CPU threads (default: torch's own)")
    for field in fields(Recipe):
        parser.add_argument(f"--{field.name.replace('_', '-')}", type=type(field.default), default=field.default)
    given = vars(parser.parse_args(arguments))
    if given["threads"]:
        torch.set_num_threads(given["threads"])
    recipe = Recipe(**{field.name: given[field.name] for field in fields(Recipe)})
    if given["begin"]:
        begin(given["out"], given["begin"], given["roles"])
    stages = ("short",) if given["begin"] else tuple(given["stages"])
    options = {"device": given["device"], "report_every": given["report_every"]}
    Trainer(given["out"], recipe, **options).run(stages)


if __name__ == "__main__":
    main()
