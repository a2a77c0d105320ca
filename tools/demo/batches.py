"""Training batches: pair number n of a stage is the same for every run with one seed, so a run can be resumed."""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from random import Random
from typing import Any, NamedTuple

import torch

from headviz.demo.reading import LABELS, Example

from .corpus import generate
from .lessons import lesson
from .phenomena import PHENOMENA
from .words.nouns import NAMES

BATCHES_PER_CHUNK = 64
UNKNOWN_NAMES = 0.05


# (step, example) -> the chance that the example is left out
Dropped = Callable[[int, Example], float]


def drop_none(step: int, example: Example) -> float:
    """Every example is read."""
    return 0.0


def no_lesson(step: int) -> str:
    """All pairs come from the corpus as it is."""
    return ""


class Batch(NamedTuple):
    """Token numbers [B, T], segments [B, T], attention mask [B, T], labels [B], numbers of phenomena [B]."""

    ids: torch.Tensor
    segments: torch.Tensor
    attention: torch.Tensor
    labels: torch.Tensor
    groups: torch.Tensor

    def inputs(self, device: torch.device | str = "cpu") -> dict[str, torch.Tensor]:
        """The model's arguments."""
        named = {"input_ids": self.ids, "token_type_ids": self.segments, "attention_mask": self.attention}
        return {name: tensor.to(device) for name, tensor in named.items()}


_NAME = re.compile(rf"\b(?:{'|'.join(NAMES)})\b")
_ONSETS, _VOWELS = tuple("b d f g k l m n p r s t v z br dr tr kr st sh".split()), tuple("aeiou")


def with_unknown_name(example: Example, rng: Random) -> Example:
    """The same pair with one of its names made up, so that words in pieces are met in training."""
    match = _NAME.search(example.hypothesis) or _NAME.search(example.premise)
    if match is None:
        return example
    name = "".join(rng.choice(_ONSETS) + rng.choice(_VOWELS) for _ in range(rng.choice((2, 2, 3)))).capitalize()
    swap = re.compile(rf"\b{match[0]}\b")
    return example._replace(premise=swap.sub(name, example.premise), hypothesis=swap.sub(name, example.hypothesis))


def encode(tokenizer: Any, examples: list[Example]) -> list[tuple[list[int], list[int]]]:
    """Token numbers and segments of every pair, unpadded."""
    coded = tokenizer([e.premise for e in examples], [e.hypothesis for e in examples], truncation=True, max_length=64)
    return list(zip(coded["input_ids"], coded["token_type_ids"], strict=True))


def pad(rows: list[tuple[list[int], list[int]]], labels: list[int], groups: Sequence[int] | None = None) -> Batch:
    """One batch, padded to its own longest row. Without groups all pairs count as phenomenon 0."""
    width = max(len(ids) for ids, _ in rows)
    ids = torch.zeros(len(rows), width, dtype=torch.long)
    segments, attention = torch.zeros_like(ids), torch.zeros_like(ids)
    for row, (tokens, sides) in enumerate(rows):
        ids[row, : len(tokens)] = torch.tensor(tokens)
        segments[row, : len(tokens)] = torch.tensor(sides)
        attention[row, : len(tokens)] = 1
    return Batch(
        ids, segments, attention, torch.tensor(labels), torch.tensor(groups or [0] * len(rows), dtype=torch.long)
    )


def _chunk(
    tokenizer: Any,
    size: int,
    seed: int,
    stage: str,
    number: int,
    dropped: Callable[[Example], float],
    taught: str,
    short: float,
) -> list[Batch]:
    """Batches of like lengths in random order.

    `dropped` gives the chance that a pair is left out; half of all pairs are of the lesson `taught`, if there is one;
    the share `short` is of short sentences.
    """
    rng = Random(f"{stage} {seed} {number}")
    wanted = size * BATCHES_PER_CHUNK
    stream_seed = rng.randrange(2**31)
    examples: list[Example] = []
    if taught:
        examples += lesson(taught, wanted // 2, stream_seed)
    for example in generate("train", 60 * wanted, stream_seed, short):
        share = dropped(example)
        if (share == 0 and example.label == LABELS[0]) or rng.random() >= share:
            examples.append(with_unknown_name(example, rng) if rng.random() < UNKNOWN_NAMES else example)
            if len(examples) == wanted:
                break
    rows, names = encode(tokenizer, examples), list(PHENOMENA)
    order = sorted(range(wanted), key=lambda i: (len(rows[i][0]), rng.random()))
    batches = [
        pad(
            [rows[i] for i in order[at : at + size]],
            [LABELS.index(examples[i].label) for i in order[at : at + size]],
            [names.index(examples[i].phenomenon) for i in order[at : at + size]],
        )
        for at in range(0, wanted, size)
    ]
    rng.shuffle(batches)
    return batches


def stream(
    tokenizer: Any,
    size: int,
    seed: int,
    stage: str,
    start: int = 0,
    dropped: Dropped = drop_none,
    lesson_at: Callable[[int], str] = no_lesson,
    short: float = 0.0,
) -> Iterator[tuple[int, Batch]]:
    """(step, batch) from step `start` on, without end. `dropped` and `lesson_at` are asked once per chunk, with its
    first step."""
    number, skip = divmod(start, BATCHES_PER_CHUNK)
    step = start
    while True:
        first = number * BATCHES_PER_CHUNK
        chunk = _chunk(tokenizer, size, seed, stage, number, partial(dropped, first), lesson_at(first), short)
        for batch in chunk[skip:]:
            yield step, batch
            step += 1
        number, skip = number + 1, 0


def mask_words(
    batch: Batch, vocabulary: int, mask_id: int, specials: int, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
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
