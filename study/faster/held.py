"""Hold 5,000 examples of SST-2's train split out, before anything is trained.

    python -m study.faster.held GLUE/SST-2 HELD     # writes HELD/dev.tsv and HELD/train.tsv

Texts that are also among the 5,000 leave the train split.
"""

import argparse
import random
from pathlib import Path

COUNT, SEED = 5000, 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("out", type=Path)
    args = parser.parse_args()
    print(*held_out(args.source / "train.tsv", args.out))


def held_out(table: Path, out: Path) -> tuple[int, int]:
    """How many rows there were, and how many are left to train on."""
    head, *rows = table.read_text(encoding="utf-8").splitlines()
    random.Random(SEED).shuffle(rows)
    texts = {text_of(row) for row in rows[:COUNT]}
    rest = [row for row in rows[COUNT:] if text_of(row) not in texts]
    out.mkdir(parents=True, exist_ok=True)
    for name, part in (("dev", rows[:COUNT]), ("train", rest)):
        (out / f"{name}.tsv").write_text("\n".join([head, *part]) + "\n", encoding="utf-8")
    return len(rows), len(rest)


def text_of(row: str) -> str:
    return row.split("\t")[0].strip()


if __name__ == "__main__":
    main()
