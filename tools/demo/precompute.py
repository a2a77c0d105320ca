"""Score the shipped demo's heads once and for all: `python -m tools.demo.precompute` (some minutes).

The tables go into scores.json, so that the first page shows a full grid without importing torch. They are computed
on the training sample, as the pages themselves would; the cost that the first page shows on all dev examples; the
default score also on the pretrained encoder, averaged over fresh classification heads.
"""

import argparse
import json
import time
from typing import Any

from headviz.demo import DATA

# those that pages show before a plugin's or a search's: any other is computed when it is asked for
SHIPPED = (
    "conductance-spearman conductance-kendall conductance-pearson conductance-max attattr-max taylor ablation "
    "ablation-loss fisher magnitude random"
).split()
SAMPLES = 520  # 40 pairs per phenomenon
ON_DEV = "ablation-loss"  # the first page's cost
FRESH_SAMPLES = 130
FRESH_HEADS = 3


def tables(samples: int = SAMPLES, fresh_samples: int = FRESH_SAMPLES) -> list[dict[str, Any]]:
    """The shipped scores on the fine-tuned model, and the default one on the pretrained encoder."""
    from headviz.models.loading import load
    from headviz.scores import DEFAULT
    from headviz.scores.scoring import score_heads
    from headviz.tasks import load_task, sample
    from headviz.ui.parts.scoring import averaged

    classifier, train = load("demo", device="cpu"), load_task("demo", split="train")
    chosen = sample(train, samples, seed=0, lengths=classifier.tokenizer)  # as the page and the command draw it
    dev = load_task("demo", split="dev")
    out = []
    for name in SHIPPED:
        began = time.monotonic()
        out.append(
            {
                **score_heads(classifier, dev if name == ON_DEV else chosen, score=name).to_dict(),
                "weights": "fine-tuned",
            }
        )
        print(f"{name}: {time.monotonic() - began:.1f} s", flush=True)
    few = sample(train, fresh_samples, seed=0, lengths=classifier.tokenizer)
    fresh = [
        score_heads(
            load("demo-pretrained", device="cpu", fresh_labels=classifier.labels, seed=seed), few, score=DEFAULT
        )
        for seed in range(FRESH_HEADS)
    ]
    return [*out, {**averaged(fresh).to_dict(), "weights": "pre-trained"}]


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=SAMPLES)
    given = parser.parse_args()
    text = json.dumps({"scores": tables(given.samples)}, separators=(",", ":"))
    (DATA / "scores.json").write_text(text + "\n")
    print(f"scores.json: {len(text) / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
