"""Training batches: pair number n of a stage is the same for every run with one seed, so a run can be resumed."""

from collections.abc import Iterator
from random import Random
from typing import Any, NamedTuple

import torch

from .corpus import generate
from .example import LABELS, Example

BATCHES_PER_CHUNK = 64


class Batch(NamedTuple):
    """Token numbers [B, T], segments [B, T], attention mask [B, T], labels [B]."""

    ids: torch.Tensor
    segments: torch.Tensor
    attention: torch.Tensor
    labels: torch.Tensor


def encode(tokenizer: Any, examples: list[Example]) -> list[tuple[list[int], list[int]]]:
    """Token numbers and segments of every pair, unpadded."""
    coded = tokenizer([e.premise for e in examples], [e.hypothesis for e in examples], truncation=True, max_length=64)
    return list(zip(coded["input_ids"], coded["token_type_ids"], strict=True))


def pad(rows: list[tuple[list[int], list[int]]], labels: list[int]) -> Batch:
    """One batch, padded to its own longest row."""
    width = max(len(ids) for ids, _ in rows)
    ids = torch.zeros(len(rows), width, dtype=torch.long)
    segments, attention = torch.zeros_like(ids), torch.zeros_like(ids)
    for row, (tokens, sides) in enumerate(rows):
        ids[row, : len(tokens)] = torch.tensor(tokens)
        segments[row, : len(tokens)] = torch.tensor(sides)
        attention[row, : len(tokens)] = 1
    return Batch(ids, segments, attention, torch.tensor(labels))


def _chunk(tokenizer: Any, size: int, seed: int, stage: str, number: int, coherent: float) -> list[Batch]:
    """Batches of like lengths in random order. `coherent` is the chance that a pair that does not entail is dropped."""
    rng = Random(f"{stage} {seed} {number}")
    wanted = size * BATCHES_PER_CHUNK
    stream_seed = rng.randrange(2**31)
    examples: list[Example] = []
    for example in generate("train", 10 * wanted, seed=stream_seed):
        if example.label == LABELS[0] or rng.random() >= coherent:
            examples.append(example)
            if len(examples) == wanted:
                break
    rows = encode(tokenizer, examples)
    order = sorted(range(wanted), key=lambda i: (len(rows[i][0]), rng.random()))
    batches = [
        pad([rows[i] for i in order[at : at + size]], [LABELS.index(examples[i].label) for i in order[at : at + size]])
        for at in range(0, wanted, size)
    ]
    rng.shuffle(batches)
    return batches


def stream(
    tokenizer: Any, size: int, seed: int, stage: str, start: int = 0, coherent: float = 0.0
) -> Iterator[tuple[int, Batch]]:
    """(step, batch) from step `start` on, without end."""
    number, skip = divmod(start, BATCHES_PER_CHUNK)
    step = start
    while True:
        for batch in _chunk(tokenizer, size, seed, stage, number, coherent)[skip:]:
            yield step, batch
            step += 1
        number, skip = number + 1, 0


def mask_words(batch: Batch, vocabulary: int, mask_id: int, specials: int, generator: torch.Generator) -> tuple[
    torch.Tensor, torch.Tensor
]:
    """(corrupted token numbers, which positions to predict): words of the hypothesis more often than the premise's.

    Of the chosen, 8 in 10 become [MASK], 1 in 10 another word, and 1 in 10 stay, as in BERT.
    """
    share = torch.where(batch.segments == 1, 0.3, 0.1)
    usable = batch.ids >= specials
    chosen = (torch.rand(batch.ids.shape, generator=generator) < share) & usable
    if not chosen.any():
        chosen = usable & (usable.cumsum(1) == 1)
    draw = torch.rand(batch.ids.shape, generator=generator)
    other = torch.randint(specials, vocabulary, batch.ids.shape, generator=generator)
    corrupted = torch.where(chosen & (draw < 0.8), torch.tensor(mask_id), batch.ids)
    corrupted = torch.where(chosen & (draw >= 0.9), other, corrupted)
    return corrupted, chosen


