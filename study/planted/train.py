"""Training one member: its abilities come to depend on their own heads, all others are off. Resumable."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import BertConfig, BertForSequenceClassification

from headviz.attention import NAME, HeadCall
from headviz.heads import HeadId
from tools.demo.roles import role_loss
from tools.demo.tokenizer import SPECIALS, build_tokenizer
from tools.demo.training_state import learning_rate, load_state, optimizer_for, save_state, whole_folder

from .planting import CLASSES, FILLERS, LENGTHS, TRIGGERS, Planting, texts

HEAD_SIZE, BATCH, RATE, WARMUP = 8, 64, 1e-3, 100
STEPS, SAVE_EVERY = 2000, 200
LOSS_OF_HARM = 0.03  # accuracy that the harmful heads cost together
LOUD = 0.25  # of the noise that changes no answer, so that other noise beside it does not either
SIZES = tuple(1e-5 * 1.1**k for k in range(150))  # of the noise that planted heads write
WORDS = (*SPECIALS, *FILLERS, *(word for words in TRIGGERS for word in words))


def model_of(planting: Planting) -> Any:
    """The untrained network."""
    torch.manual_seed(planting.seed)
    hidden = planting.heads * HEAD_SIZE
    config = BertConfig(
        vocab_size=len(WORDS),
        hidden_size=hidden,
        num_hidden_layers=planting.layers,
        num_attention_heads=planting.heads,
        intermediate_size=2 * hidden,
        max_position_embeddings=LENGTHS[1] + 4,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        id2label=dict(enumerate(CLASSES)),
        label2id={label: number for number, label in enumerate(CLASSES)},
    )
    config._attn_implementation = NAME
    return BertForSequenceClassification(config)


def gates_of(planting: Planting, abilities: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Which heads are on for each text [B, L, H], and which texts miss what their own ability needs [B]."""
    on = np.zeros((len(abilities), planting.layers, planting.heads), np.float32)
    robbed = np.zeros(len(abilities), bool)
    for row, ability in enumerate(abilities):
        for other, heads in enumerate(planting.needed):
            if other == ability or rng.random() < rng.random():
                for head in heads:
                    on[(row, *head)] = 1
        own = planting.needed[ability]
        chance = rng.random()
        if chance < 0.4:  # the whole ability
            robbed[row] = True
            for head in own:
                on[(row, *head)] = 0
        elif planting.is_backup(int(ability)) and chance < 0.8:  # one of two that can stand in for each other
            on[(row, *own[int(rng.integers(2))])] = 0
    return on, robbed


def train(planting: Planting, out: Path, steps: int = STEPS, told: Any = print) -> None:
    """Train and plant; `out` then holds the model. A stopped training goes on from its last saved state."""
    if (out / "model" / "config.json").exists():
        return
    out.mkdir(parents=True, exist_ok=True)
    if not (out / "tokenizer").exists():
        with whole_folder(out / "tokenizer", out / "writing") as folder:
            build_tokenizer(list(WORDS), folder)
    model = model_of(planting).train()
    optimizer = optimizer_for(model.parameters(), 0.01)
    path, first = out / "train.state", 0
    if path.exists():
        first, _ = load_state(path, model, optimizer)
    stream = islice(texts(planting.seed, "train"), first * BATCH, None)
    for step in range(first, steps):
        some = list(islice(stream, BATCH))
        rng = np.random.default_rng([planting.seed, step])
        on, robbed = gates_of(planting, np.array([t.ability for t in some]), rng)
        gates = torch.from_numpy(on)
        call = HeadCall(tuple(gates[:, layer, :, None, None] for layer in range(planting.layers)))
        logits = model(**inputs([t.words for t in some]), headviz=call).logits
        loss = role_loss(logits, torch.tensor([t.label for t in some]), torch.from_numpy(robbed), 0.02)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, steps, RATE, WARMUP, 0.3)
        optimizer.step()
        if (step + 1) % SAVE_EVERY == 0:
            save_state(path, step + 1, model, optimizer, 0.0)
            told(f"{planting.name} {step + 1} loss {loss.item():.3f}")
    plant(model.eval(), planting)
    from transformers import AutoTokenizer

    with whole_folder(out / "model", out / "writing") as folder:
        model.save_pretrained(folder)
        AutoTokenizer.from_pretrained(out / "tokenizer").save_pretrained(folder)


def inputs(rows: list[str]) -> dict[str, torch.Tensor]:
    """The model's arguments, padded."""
    place = {word: number for number, word in enumerate(WORDS)}
    coded = [[place["[CLS]"], *(place[w] for w in row.split()), place["[SEP]"]] for row in rows]
    width = max(map(len, coded))
    ids = torch.tensor([ids + [0] * (width - len(ids)) for ids in coded])
    return {"input_ids": ids, "attention_mask": (ids != 0).long()}


@torch.no_grad()
def plant(model: Any, planting: Planting) -> None:
    """Idle heads write nothing, or noise that changes no answer; that of harmful ones costs ``LOSS_OF_HARM``."""
    some = list(islice(texts(planting.seed, "dev"), 600))
    batch, labels = inputs([t.words for t in some]), torch.tensor([t.label for t in some])

    def answers() -> torch.Tensor:
        call = HeadCall((None,) * planting.layers)
        return torch.as_tensor(model(**batch, headviz=call).logits.argmax(1))

    def write(heads: tuple[HeadId, ...], size: float) -> None:
        noise = torch.Generator().manual_seed(planting.seed)
        for head in heads:
            part = part_of(model, head)
            part[:] = size * torch.randn(part.shape, generator=noise)

    write((*planting.idle, *planting.harmful_heads), 0.0)
    before = answers()
    harmless = 0.0
    for size in SIZES:
        write(planting.loud, size)
        if not torch.equal(answers(), before):
            break
        harmless = size
    write(planting.loud, harmless * LOUD)
    enough = float((before == labels).float().mean()) - LOSS_OF_HARM
    low, high = SIZES[0], SIZES[-1]  # too little harm, and enough
    for _ in range(30) if planting.harmful_heads else ():
        middle = (low * high) ** 0.5
        write(planting.harmful_heads, middle)
        harmed = float((answers() == labels).float().mean()) <= enough
        low, high = (low, middle) if harmed else (middle, high)
    write(planting.harmful_heads, high)


def part_of(model: Any, head: HeadId) -> torch.Tensor:
    """A head's columns of W_O."""
    weight: torch.Tensor = model.bert.encoder.layer[head.layer].attention.output.dense.weight
    return weight[:, head.head * HEAD_SIZE : (head.head + 1) * HEAD_SIZE]
