"""Fine-tune an encoder on a GLUE-style pair task, with plain transformers: real weights to measure on.

    python bench/finetune_pair.py MODEL_FOLDER TRAIN.tsv DEV.tsv OUT --texts "#1 String,#2 String" --label Quality

Prints the dev accuracy. The result is for measuring only and is not part of the project.
"""

import argparse
import csv
import random
import time

import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer, get_linear_schedule_with_warmup


def read(path: str, texts: list[str], label: str) -> list[tuple[str, str, int]]:
    with open(path, encoding="utf-8-sig") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [(r[texts[0]], r[texts[1]], int(r[label])) for r in rows]


def batches(tokenizer, rows, size, order):
    for start in range(0, len(order), size):
        part = [rows[i] for i in order[start : start + size]]
        batch = tokenizer(
            [r[0] for r in part],
            [r[1] for r in part],
            padding=True,
            truncation=True,
            max_length=128,
            return_tensors="pt",
        )
        yield batch, torch.tensor([r[2] for r in part])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("train")
    parser.add_argument("dev")
    parser.add_argument("out")
    parser.add_argument("--texts", default="#1 String,#2 String")
    parser.add_argument("--label", default="Quality")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--lr", type=float, default=5e-5)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    random.seed(0)

    tokenizer = AutoTokenizer.from_pretrained(args.model)
    model = AutoModelForSequenceClassification.from_pretrained(args.model, num_labels=2, attn_implementation="eager")
    texts = args.texts.split(",")
    train, dev = read(args.train, texts, args.label), read(args.dev, texts, args.label)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, eps=1e-8)
    steps = args.epochs * -(-len(train) // 32)
    schedule = get_linear_schedule_with_warmup(optimizer, steps // 10, steps)
    start = time.time()
    for epoch in range(args.epochs):
        model.train()
        order = sorted(range(len(train)), key=lambda i: len(train[i][0]) + random.random() * 40)
        parts = [order[i : i + 32] for i in range(0, len(order), 32)]
        random.shuffle(parts)
        for part in parts:
            for batch, labels in batches(tokenizer, train, 32, part):
                loss = model(**batch, labels=labels).loss
                loss.backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
        model.eval()
        with torch.inference_mode():
            right = sum(
                int((model(**b).logits.argmax(-1) == y).sum())
                for b, y in batches(tokenizer, dev, 64, list(range(len(dev))))
            )
        print(f"epoch {epoch + 1}: dev accuracy {right / len(dev):.3f} ({time.time() - start:.0f} s)", flush=True)
    model.save_pretrained(args.out)
    tokenizer.save_pretrained(args.out)


if __name__ == "__main__":
    main()
