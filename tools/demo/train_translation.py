"""Train the translation demo's model: ``python -m tools.demo.train_translation --out FOLDER``.

Stop it at any moment and start it again with the same options: it goes on from its last state. ``--ship`` packs a
finished run into the package, in float16, with its card.
"""

from __future__ import annotations

import argparse
import json
import shutil
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from transformers import AutoTokenizer, GenerationConfig, MarianConfig, MarianMTModel

from headviz.demo import DATA
from headviz.extras.translation.sentence import bleu

from .ship import write_model
from .training_state import learning_rate, load_state, optimizer_for, save_state
from .translation.card import write
from .translation.corpus import Pair, generate
from .translation.tokenizer import MAX_TOKENS, build_tokenizer

POOL = 16  # batches whose sentences are sorted by length together, so that little is padded
IGNORED = -100


@dataclass(frozen=True)
class Recipe:
    """Every choice that decides the weights; the defaults made the shipped model."""

    seed: int = 0
    layers: int = 3  # of the encoder, and of the decoder
    heads: int = 8
    width: int = 128
    inner: int = 256  # of a feed-forward block
    spread: float = 0.05  # of the first weights
    steps: int = 1000
    batch: int = 48
    rate: float = 1.2e-3
    warmup: int = 250
    fall: float = 0.5
    weight_decay: float = 0.01


def configuration(tokenizer: Any, recipe: Recipe) -> MarianConfig:
    """Marian with equally many encoder and decoder layers; no dropout, because no sentence comes twice."""
    return MarianConfig(
        vocab_size=len(tokenizer),
        d_model=recipe.width,
        encoder_layers=recipe.layers,
        decoder_layers=recipe.layers,
        encoder_attention_heads=recipe.heads,
        decoder_attention_heads=recipe.heads,
        encoder_ffn_dim=recipe.inner,
        decoder_ffn_dim=recipe.inner,
        max_position_embeddings=MAX_TOKENS,
        init_std=recipe.spread,
        scale_embedding=True,
        activation_function="gelu",
        dropout=0.0,
        attention_dropout=0.0,
        activation_dropout=0.0,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
        decoder_start_token_id=tokenizer.pad_token_id,
        forced_eos_token_id=None,
    )


def batches(tokenizer: Any, recipe: Recipe, first: int) -> Iterator[tuple[int, dict[str, Tensor]]]:
    """The steps from ``first`` on, each with its batch; a step's batch depends on the recipe alone."""
    pool = first // POOL
    while True:
        pairs = list(generate("train", POOL * recipe.batch, seed=recipe.seed * 1_000_003 + pool))
        pairs.sort(key=lambda p: (len(p.target.split()), len(p.source.split()), p.source))
        parts = [pairs[i : i + recipe.batch] for i in range(0, len(pairs), recipe.batch)]
        generator = torch.Generator().manual_seed(pool)
        order = torch.randperm(len(parts), generator=generator).tolist()
        for place, part in enumerate(order):
            step = pool * POOL + place
            if step >= first:
                yield step, collate(tokenizer, parts[part])
        pool += 1


def collate(tokenizer: Any, pairs: list[Pair]) -> dict[str, Tensor]:
    """Both sides as ids, padded."""
    sources = tokenizer([p.source for p in pairs], padding=True, return_tensors="pt")
    labels = tokenizer([p.target for p in pairs], padding=True, return_tensors="pt")
    return {
        "input_ids": sources["input_ids"],
        "attention_mask": sources["attention_mask"],
        "labels": labels["input_ids"].masked_fill(labels["attention_mask"] == 0, IGNORED),
    }


def train(out: Path, recipe: Recipe, report_every: int = 250, save_every: int = 50) -> None:
    """Train, or go on with, the run in a folder; nothing is done when it is finished."""
    out.mkdir(parents=True, exist_ok=True)
    chosen = out / "recipe.json"
    if chosen.exists() and json.loads(chosen.read_text()) != asdict(recipe):
        raise SystemExit(f"{out} holds a run with another recipe ({chosen}). Give it again, or another folder.")
    chosen.write_text(json.dumps(asdict(recipe), indent=1) + "\n")
    if (out / "model" / "config.json").exists():
        return
    build_tokenizer(out / "tokenizer")
    tokenizer: Any = AutoTokenizer.from_pretrained(out / "tokenizer")
    torch.manual_seed(recipe.seed)
    model: Any = MarianMTModel(configuration(tokenizer, recipe)).train()
    optimizer = optimizer_for(model.parameters(), recipe.weight_decay)
    state, first, spent = out / "state", 0, 0.0
    if state.exists():
        first, spent = load_state(state, model, optimizer)
        _log(out, f"goes on from step {first}")
    began = time.monotonic() - spent
    watched = list(generate("dev", 140, seed=1))
    losses: list[float] = []
    for step, batch in batches(tokenizer, recipe, first):
        if step == recipe.steps:
            break
        logits = model(**{k: v for k, v in batch.items() if k != "labels"}, **_shifted(model, batch)).logits
        loss = cross_entropy(logits.flatten(0, 1), batch["labels"].flatten(), ignore_index=IGNORED)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, recipe.steps, recipe.rate, recipe.warmup, recipe.fall)
        optimizer.step()
        losses.append(loss.item())
        if (step + 1) % report_every == 0:
            score = bleu(translate(model, tokenizer, watched), [p.target for p in watched]).value
            _log(out, f"step {step + 1} loss {sum(losses) / len(losses):.4f} BLEU {score:.1f}")
            losses = []
        if (step + 1) % save_every == 0:
            save_state(state, step + 1, model, optimizer, time.monotonic() - began)
    model.generation_config = GenerationConfig.from_model_config(model.config)
    model.save_pretrained(out / "model")
    tokenizer.save_pretrained(out / "model")
    facts = {
        "steps": recipe.steps,
        "seconds": round(time.monotonic() - began),
        "threads": torch.get_num_threads(),
        "parameters": sum(p.numel() for p in model.parameters()),
    }
    (out / "model" / "facts.json").write_text(json.dumps(facts) + "\n")
    _log(out, f"finished {facts}")


def _shifted(model: Any, batch: dict[str, Tensor]) -> dict[str, Any]:
    return {"decoder_input_ids": model.prepare_decoder_input_ids_from_labels(batch["labels"]), "use_cache": False}


@torch.no_grad()
def translate(model: Any, tokenizer: Any, pairs: list[Pair]) -> list[str]:
    """Greedy translations, for watching the training."""
    model.eval()
    batch = collate(tokenizer, pairs)
    ids = model.generate(
        input_ids=batch["input_ids"],
        attention_mask=batch["attention_mask"],
        max_new_tokens=MAX_TOKENS - 1,
        do_sample=False,
        num_beams=1,
    )
    model.train()
    texts: list[str] = tokenizer.batch_decode(ids, skip_special_tokens=True)
    return texts


def _log(out: Path, text: str) -> None:
    line = f"{time.strftime('%H:%M:%S')} {text}"
    print(line, flush=True)
    with (out / "log.txt").open("a") as file:
        file.write(line + "\n")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder of the run")
    for name, value in asdict(Recipe()).items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(value), default=value)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--ship", action="store_true", help="pack the finished run into the package")
    given = vars(parser.parse_args())
    torch.set_num_threads(given.pop("threads"))
    out, ship = given.pop("out"), given.pop("ship")
    train(out, Recipe(**given))
    if ship:
        folder = DATA / "translation"
        write_model(out / "model", folder)
        shutil.copyfile(out / "recipe.json", folder / "recipe.json")
        write(folder)
        print(f"{folder}: {sum(p.stat().st_size for p in folder.iterdir()) / 2**20:.1f} MiB")


if __name__ == "__main__":
    main()
