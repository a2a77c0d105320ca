"""Generated passages about people, and questions whose answer is one span; dev has other people, towns and trades."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

import headviz

NAMES = (
    "Anna Bruno Clara David Elena Felix Greta Hugo Irene Jonas Karin Lukas Maria Nils Olga Peter Rosa Simon Tanja "
    "Viktor Alice Boris Celia Dario Edith Franz Gloria Henry Ines Julian Klara Leon Mona Oscar Paula Ralph Sonja Theo "
    "Vera Walter"
).split()
TOWNS = (
    "Bern Lyon Porto Turin Gent Graz Malmö Bergen Krakow Seville Dublin Leeds Basel Nantes Verona Utrecht Linz Aarhus "
    "Turku Gdansk Toledo Cork Bristol Lausanne Lille Parma Delft Salzburg Odense Tampere"
).split()
TRADES = (
    "baker carpenter dentist engineer gardener journalist librarian mechanic plumber tailor translator waiter "
    "architect butcher chemist driver electrician florist jeweller locksmith optician photographer surgeon welder"
).split()
FACTS = (
    ("{name} lives in {town}.", "Where does {name} live?", "town"),
    ("{name} works as a {trade}.", "What does {name} work as?", "trade"),
    ("In {year}, {name} bought a house.", "When did {name} buy a house?", "year"),
    ("The {trade} of the street is {name}.", "Who is the {trade} of the street?", "name"),
)
PEOPLE = 3  # of whom a passage speaks


def examples(count: int, split: str, seed: int = 0) -> list[dict[str, object]]:
    """Rows of question, context and answers, as SQuAD has them."""
    rng, rows = np.random.default_rng([seed, split == "dev"]), []
    half = 1 if split == "dev" else 0
    pools = {"name": NAMES[half::2], "town": TOWNS[half::2], "trade": TRADES[half::2]}
    for _ in range(count):
        drawn = {key: rng.choice(pool, PEOPLE, replace=False) for key, pool in pools.items()}
        drawn["year"] = rng.choice(np.arange(1950, 2020), PEOPLE, replace=False).astype(str)
        people = [{key: str(values[i]) for key, values in drawn.items()} for i in range(PEOPLE)]
        said = [(who, *FACTS[kind]) for who in people for kind in rng.permutation(len(FACTS))[:2]]
        said = [said[i] for i in rng.permutation(len(said))]
        who, fact, question, key = said[rng.integers(len(said))]
        texts = [sentence.format(**one) for one, sentence, *_ in said]
        at = next(i for i, one in enumerate(said) if one[0] is who and one[1] == fact)
        start = sum(len(text) + 1 for text in texts[:at]) + texts[at].index(who[key])
        answers = [{"text": who[key], "answer_start": start}]
        rows.append({"question": question.format(**who), "context": " ".join(texts), "answers": answers})
    return rows


def read(folder: Path, count: int, split: str) -> headviz.Dataset:
    """The examples as a file that is read as anybody's would be."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{split}-{count}.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in examples(count, split)), encoding="utf-8")
    return headviz.load_task("custom", data=path, split=split)
