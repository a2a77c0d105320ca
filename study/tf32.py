"""How far products in TF32 move what is computed with a fine-tuned model on a GPU: correlations, Taylor scores, logits.

    python -m study.tf32 MODEL --data MRPC-FOLDER

TF32 keeps 10 of 23 bits of each factor. On a processor both are the same.
"""

import argparse

import numpy as np
import torch

import headviz

EXAMPLES = 60
SCORES = ("conductance-spearman", "taylor")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--data", required=True, help="folder with the files of MRPC")
    parser.add_argument("--device", default="cuda")
    args = parser.parse_args()
    clf = headviz.load(args.model, device=args.device)
    dev = headviz.load_task("mrpc", split="dev", data=args.data)
    some = headviz.sample(
        headviz.load_task("mrpc", split="train", data=args.data), EXAMPLES, seed=0, length_filter="quantile"
    )
    rows = []
    for precision in ("highest", "high"):
        torch.set_float32_matmul_precision(precision)
        tables = {name: headviz.score_heads(clf, some, name, cache=False).values for name in SCORES}
        rows.append({**tables, "logits": headviz.evaluate(clf, dev).logits})
    full, fast = rows
    for name, values in full.items():
        moved = float(np.nanmax(np.abs(values - fast[name])))
        print(f"{name}: moved by at most {moved:.5f}; the largest is {np.nanmax(np.abs(values)):.3f}")
    changed = int((full["logits"].argmax(1) != fast["logits"].argmax(1)).sum())
    print(f"answers changed: {changed} of {len(dev)}")


if __name__ == "__main__":
    main()
