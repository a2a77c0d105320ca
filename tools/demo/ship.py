"""Pack a finished training run as the shipped demo: `python -m tools.demo.ship --run FOLDER`.

Weights are written as float16. The splits that open with the dashboard are gzipped JSON without a time stamp, which is
read without pyarrow; longer tables are Parquet. Packing twice gives the same bytes.
"""

import argparse
import gzip
import json
import re
import shutil
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from headviz.demo import DATA, FILES
from headviz.demo.reading import COLUMNS, Example
from headviz.extras.translation.tasks import Pair

from .corpus import MANY, generate
from .forms import noun_forms, verb_forms
from .minimal_pairs import minimal_pairs
from .phenomena import PHENOMENA
from .recipe import Recipe
from .retraining import retraining
from .translation import corpus as translations
from .translation.lexicon import ADJECTIVES, ALONE, NOUNS

# Pairs per phenomenon and split, and the seed that drew them.
PER_PHENOMENON = {"train": 200, "dev": 200, "unseen": 100}
SEED = 20_260
COUNTED_PAIRS = 200_000
MANY_SEED = 1  # of the many training pairs, for those who ask for more than the sample
MINIMAL = 200  # of each phenomenon
# a beginning, a middle and an end of the training; the others come back with the training's command
CHECKPOINTS = ["step-00500", "step-03500", "step-12000"]
LIMIT = 16 * 1024 * 1024  # unpacked; a wheel of it is under 15 MB


def write_data(folder: Path, short: float) -> None:
    """The three splits, many training pairs, the minimal pairs, and how often training meets each word."""
    for split, stem in FILES.items():
        rows = generate(split, PER_PHENOMENON[split] * len(PHENOMENA), SEED, short)
        _gzip(folder / f"{stem}.jsonl.gz", "".join(json.dumps(row._asdict()) + "\n" for row in rows))
    counts: Counter[str] = Counter()
    for example in generate("train", COUNTED_PAIRS, SEED, short):
        for text in (example.premise, example.hypothesis):
            counts.update(re.findall(r"[a-z]+", re.sub(r"n't\b", "n t", text.lower())))
    _gzip(folder / "words.json.gz", json.dumps(dict(sorted(counts.items()))))
    _gzip(folder / "forms.json.gz", json.dumps({"verbs": sorted(verb_forms()), "nouns": sorted(noun_forms())}))
    _parquet(folder / "train.parquet", Example._fields, many_pairs(short))
    _parquet(folder / "minimal_pairs.parquet", COLUMNS, all_minimal_pairs())


def many_pairs(short: float) -> list[Example]:
    return list(generate("train", MANY, MANY_SEED, short))


def all_minimal_pairs() -> list[tuple[str, ...]]:
    """A row of `COLUMNS` for each minimal pair."""
    return [(*one[:3], *other) for name in PHENOMENA for one, other in minimal_pairs(name, MINIMAL)]


def write_translations(folder: Path) -> None:
    """The splits of the translation demo, and the words that the dashboard lists."""
    folder.mkdir(parents=True, exist_ok=True)
    for split, count in translations.SHIPPED.items():
        _parquet(folder / f"{split}.parquet", Pair._fields, translations.generate(split, count))
    rows = "".join("\t".join(row) + "\n" for row in [("kind", "veshan", "english"), *word_list()])
    (folder / "words.tsv").write_text(rows, encoding="utf-8")


def word_list() -> list[tuple[str, str, str]]:
    return [
        *(("Nouns", noun.stem, noun.singular) for noun in NOUNS),
        *(("Verbs", f"{verb.stem}-", verb.base) for verb in ALONE),
        *(("Adjectives", f"{adjective.stem}-", adjective.english) for adjective in ADJECTIVES),
    ]


def short_share() -> float:
    """The share of short sentences in the corpus of the shipped model."""
    recipe: dict[str, float] = json.loads((DATA / "recipe.json").read_text(encoding="utf-8"))
    return recipe.get("short_share", 0.0)


def _parquet(path: Path, names: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    table = pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))
    repeated = [name for name in names if name in ("label", "other_label", "phenomenon", "construction")]
    options = {"compression": "zstd", "compression_level": 22, "data_page_size": 2**24, "write_statistics": False}
    pq.write_table(table, path, use_dictionary=repeated, **options)


def _gzip(path: Path, text: str) -> None:
    with path.open("wb") as raw, gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0, compresslevel=9) as file:
        file.write(text.encode())


def write_model(source: Path, target: Path) -> None:
    """One model folder, in float16."""
    import torch
    from safetensors.torch import load_file, save_file

    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for path in sorted(source.iterdir()):
        if path.suffix == ".json":
            shutil.copyfile(path, target / path.name)
    config = json.loads((source / "config.json").read_text())
    config["dtype"] = "float16"
    (target / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    tensors = {name: value.to(torch.float16) for name, value in load_file(source / "model.safetensors").items()}
    save_file(tensors, target / "model.safetensors", metadata={"format": "pt"})


def write_run(run: Path, out: Path, checkpoints: list[str]) -> None:
    """The models and facts of a run. What a run that began with shipped weights did not make stays as it is."""
    for kind in ("finetuned", "pretrained"):
        if (run / kind).exists():
            write_model(run / kind, out / kind)
    for name in ("recipe.json", "roles.json", "begun.json"):
        if (run / name).exists():
            shutil.copyfile(run / name, out / name)
    for stage in ("small", "classifier", "with-roles"):
        if (run / stage).exists():
            shutil.copyfile(run / stage / "facts.json", out / f"{stage}.json")
    recipe = Recipe(**json.loads((run / "recipe.json").read_text()))
    (out / "pretrained" / "recipe.json").write_text(json.dumps(retraining(recipe), indent=1) + "\n")
    (out / "finetuned" / "recipe.json").write_text(json.dumps({"steps": recipe.finetuning}) + "\n")
    if (run / "checkpoints").exists():
        shutil.rmtree(out / "checkpoints", ignore_errors=True)
        for path in sorted((run / "checkpoints").iterdir()):
            if path.name in checkpoints:
                write_model(path, out / "checkpoints" / path.name)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--run", type=Path, help="folder of a finished training run; without it only the data are written"
    )
    parser.add_argument("--out", type=Path, default=DATA)
    parser.add_argument("--checkpoints", nargs="*", default=CHECKPOINTS, help=f"to ship: {' '.join(CHECKPOINTS)}")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    short = short_share()
    if given.run:
        if not (given.run / "finetuned" / "config.json").exists():
            raise SystemExit(f"{given.run} holds no finished run.")
        short = json.loads((given.run / "recipe.json").read_text())["short_share"]
        write_run(given.run, given.out, given.checkpoints)
    write_data(given.out, short)
    write_translations(given.out / "translation")
    size = sum(path.stat().st_size for path in given.out.rglob("*") if path.is_file())
    print(f"{given.out}: {size / 2**20:.1f} MiB")
    if size > LIMIT:
        raise SystemExit(
            f"That is more than the {LIMIT >> 20} MiB that the package may carry: keep fewer --checkpoints."
        )


if __name__ == "__main__":
    main()
