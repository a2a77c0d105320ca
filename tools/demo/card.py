"""The demo's model card: `python -m tools.demo.card` measures the shipped model again and writes the card.

`--check` writes nothing and exits with 1 where a figure differs from the shipped card by more than one example in
a hundred (another processor may round one logit the other way).
"""

import argparse
import json
from typing import Any

import numpy as np

from headviz.demo import DATA, PHENOMENA, read_split
from headviz.demo.reading import LABELS

from . import simple_pairs

TOLERANCE = 0.01
FILE = "MODEL_CARD.md"

EXAMPLES_OF_CONVENTIONS = """
- Premise and hypothesis speak of the same people, things and occasion: "the doctor" is one doctor in both.
- Swapped roles, another object or an unrelated adjective are **neutral** unless the premise excludes them.
- Opposites exclude each other. Denying one end of a scale leaves the other open ("not hot" does not say "cold");
  denying one of two strict opposites asserts the other ("not open" says "closed").
- "All", "every" and "everybody" speak of at least one; "some" leaves "all" open; "most" means more than half.
- A bare number is exact: "five boys" is five, no more. "Or" leaves open which one it was.
- "Not as tall as" means shorter. Equal excludes both longer and shorter.
- At the same time excludes before and after; a weekday, month or time of day names the same week, year or day twice.
- Near excludes far. Places are points: above and below, left and right, north and south exclude each other, and
  say nothing about the other axes.
- Managing and remembering to do a thing is doing it; failing, forgetting, refusing and neglecting is not doing it;
  wanting, hoping, planning, trying, promising leave it open. Knowing, noticing, regretting, learning and forgetting
  *that* take the rest as true, also when denied; thinking, believing, saying, fearing leave it open; "wrongly"
  denies it.
""".strip()


def accuracies(evaluators: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Accuracy overall ('all') and per ability, for each split."""
    out = {}
    for split, evaluator in evaluators.items():
        right = evaluator.predictions() == np.asarray(evaluator.data.gold)
        slices = np.array(evaluator.data.slices)
        by_name = {name: round(float(right[slices == name].mean()), 4) for name in PHENOMENA}
        out[split] = {"all": round(float(right.mean()), 4), **by_name}
    return out


def measured() -> dict[str, dict[str, float]]:
    """The shipped model's accuracies as they come out now."""
    from headviz.evaluation.evaluator import Evaluator
    from headviz.models.loading import load
    from headviz.tasks import load_task

    classifier = load("demo", device="cpu")
    return accuracies({split: Evaluator(classifier, load_task("demo", split=split)) for split in ("dev", "unseen")})


def differences(shipped: dict[str, dict[str, float]], now: dict[str, dict[str, float]]) -> list[str]:
    """Where two tables of accuracies differ by more than rounding can explain."""
    return [
        f"{split} {name}: {shipped[split].get(name)} in the card, {value} measured"
        for split, values in now.items()
        for name, value in values.items()
        if abs(shipped[split].get(name, -1.0) - value) > TOLERANCE
    ]


def accuracy_table(card: dict[str, Any]) -> str:
    """Markdown: abilities × splits."""
    dev, unseen = card["accuracy"]["dev"], card["accuracy"]["unseen"]
    rows = [f"| {name} | {dev[name]:.1%} | {unseen[name]:.1%} |" for name in (*PHENOMENA, "all")]
    return "\n".join(["| ability | dev | unseen combinations |", "|---|---:|---:|", *rows])


def heads_table(heads: dict[str, Any]) -> str:
    """Markdown: which heads carry which ability."""
    rows = []
    for row in heads["sets"]:
        alone = ", ".join(f"{head} ({100 * cost:.1f})" for head, cost in zip(row["heads"], row["alone"], strict=True))
        rows.append(f"| {row['phenomenon']} | {alone} | {100 * row['cost']:.1f} | {row['others_over_5']} |")
    top = (
        "| ability | heads (points that the removal of each alone costs it) | all of them together "
        "| other abilities that then lose over 5 points |"
    )
    return "\n".join([top, "|---|---|---:|---:|", *rows])


def given_roles(roles: dict[str, list[list[int]]]) -> str:
    """Which heads training gave to which ability, in one line."""
    return "; ".join(
        f"{name} {', '.join(f'{layer}.{head}' for layer, head in sorted(heads))}" for name, heads in roles.items()
    )


def removal_table(heads: dict[str, Any]) -> str:
    """Markdown: accuracy as heads go."""
    steps = [row for row in heads["removal"] if round(row["share"] * 100) % 10 == 0]
    return "\n".join(
        [
            "| heads removed | " + " | ".join(f"{row['share']:.0%}" for row in steps) + " |",
            "|---|" + "---:|" * len(steps),
            "| accuracy | " + " | ".join(f"{row['accuracy']:.1%}" for row in steps) + " |",
        ]
    )


def about_short(card: dict[str, Any]) -> str:
    """What the last stage adds, if there was one."""
    recipe = card["recipe"]
    if "short_steps" not in recipe:
        return " This is θ*."
    text = f"""
5. *finetuned*: the same goes on for {recipe["short_steps"]:,} steps, with short plain sentences as
   {recipe["short_share"]:.0%} of the pairs: present and progressive, bare and indefinite subjects. This is θ*."""
    if card.get("begun"):
        text += f"""
   It was run later than the others, on the weights that stage 4 had shipped in float16 (SHA-256
   {card["begun"]["weights"][:16]}…): `--begin FOLDER`. All five in one go are what the plain command runs."""
    right = card["simple"]
    return (
        text
        + f"""

Of 200 simple pairs written by hand, which no split contains, it answers {right["right"]:.1%} rightly
(`python -m tools.demo.simple_pairs`)."""
    )


def about_times(card: dict[str, Any]) -> str:
    """Where the stages ran."""
    if card.get("begun"):
        return f"The time of the last stage is from {card['machine']}; the others were trained before it."
    return f"Times are from {card['machine']}."


def markdown(card: dict[str, Any]) -> str:
    """The whole card."""
    sizes = {name: len(read_split(name)) for name in ("dev", "unseen", "train")}
    recipe, times = card["recipe"], card["training"]
    stages = "\n".join(
        f"| {name} | {row['steps']:,} | {row['threads']} | {row['seconds'] / 60:.0f} min |"
        for name, row in times.items()
    )
    settings = ", ".join(f"{name} {value}" for name, value in recipe.items())
    examples = "\n".join(
        f"| {name} | {one.label} | {one.premise} | {one.hypothesis} |"
        for name in PHENOMENA
        for label in LABELS
        for one in [next(e for e in read_split("dev") if e.phenomenon == name and e.label == label)]
    )
    heads = card.get("heads")
    limits, giving, with_roles = ".", "a late stage", "with-roles"
    if "short_steps" not in recipe:
        giving, with_roles = "the last stage", "finetuned"
        limits = ', no\n  "a doctor": people are named or take "the".'
    about_heads = (
        f"""## What its heads do

Exact ablation. An ability is carried by the heads whose removal alone costs it 10 points or more, and no other
ability as much, on one half of the dev set; every figure was measured on the other half. Heads that cost several
abilities as much: {", ".join(heads["shared"]) or "none"}.

That small sets of heads matter to one ability and hardly to others is no accident:
{giving} of training (see *Recipe*) gave each ability {recipe["roles_heads"]} heads. What a model
does that was not trained so is less tidy.

{heads_table(heads)}

Heads given to each ability by training: {given_roles(card["roles"])}.

Heads removed together, in the order in which gates on all heads close under a rising price (`tools.demo.search`,
learned on the training sample):

{removal_table(heads)}
"""
        if heads
        else ""
    )
    return f"""# Model card: the headviz demo

A BERT of 12 layers × 12 heads ({card["parameters"]:,} parameters, 8 dimensions per head, no dropout), trained from
scratch on sentence pairs that headviz generates, to say whether a premise entails a hypothesis, contradicts it, or
neither. It is made for looking at attention heads; it is no general language model.

## Accuracy

{sizes["dev"]:,} dev pairs (combinations of frame and word known from training, pairs that are not) and
{sizes["unseen"]:,} pairs of combinations that training never shows. Chance is 33.3 %.

{accuracy_table(card)}

{about_heads}
## Conventions of its world

{EXAMPLES_OF_CONVENTIONS}

## Examples

| ability | label | premise | hypothesis |
|---|---|---|---|
{examples}

## Recipe

`python -m tools.demo.train`, then `python -m tools.demo.ship`, `python -m tools.demo.abilities` and
`python -m tools.demo.card`.

| stage | steps | threads | time |
|---|---:|---:|---:|
{stages}

{about_times(card)}

Settings: {settings}.

1. *small*: masked-language training of 6 layers on generated pairs; words of the hypothesis are masked at 30 %,
   words of the premise at 10 %, and most pairs that are not entailed are left out, so that the second sentence can be
   worked out from the first.
2. *pretrained*: every layer is followed by a new one that at first adds nothing; the 12 layers go on as before.
   This is θ0.
3. *classifier*: classification. In the middle of the run each head has a learned gate, and open gates cost; then the
   gates are folded into the weights (never below {recipe["gate_floor"]}) and training goes on. Pairs about order
   (time, space, degree) are learned last: for some thousand steps they are read more often, and two lessons hold
   one of the two things still that say together which of two clauses came first.
4. *{with_roles}*: classification goes on, and every ability is given {recipe["roles_heads"]} heads: those that its
   answers are most sensitive to, compared with other abilities', none twice, and none of the few that all depend on.
   Pairs must be answered without the heads of other abilities and some heads that have no role; where heads of their
   own are missing, only an even answer is rewarded.{about_short(card)}

The steps at which pairs about order are read more often were chosen while the run went on, after it had stood still
on them for thousands of steps; it was stopped and continued for that. The recipe above replays those choices. Part of
the run used two threads and part one, so a new run gives a model of the same kind, not the same bits.

## Limits

- It knows some 1,800 English words; `headviz.demo.vocabulary_coverage` names those of a text that it does not know.
  Unknown names are read letter by letter and mostly work; unknown verbs and adjectives do not.
- Sentences of one or two clauses, at most 64 tokens, of the kinds shown above. No questions, no pronouns{limits}
- Its pairs are generated, and real texts are not like them. Nothing that its heads do says what heads do in a
  large model.
- Order in time came last, and dated clauses ("on Monday … on Friday") are still its weakest point.
"""


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    parser.add_argument("--machine", help="what the training ran on, in words")
    options = parser.parse_args()
    path = DATA / "card.json"
    card: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    now = measured()
    if options.check:
        wrong = differences(card["accuracy"], now)
        print("\n".join(wrong) or "The card's accuracies are those measured now.")
        raise SystemExit(1 if wrong else 0)
    from headviz.models.loading import load

    card["accuracy"] = now
    card["parameters"] = sum(p.numel() for p in load("demo", device="cpu").model.parameters())
    card["recipe"] = json.loads((DATA / "recipe.json").read_text())
    card["training"] = {
        name: json.loads((DATA / file).read_text())
        for name, file in {
            "small": "small.json",
            "pretrained": "pretrained/facts.json",
            "classifier": "classifier.json",
            "with-roles": "with-roles.json",
            "finetuned": "finetuned/facts.json",
        }.items()
        if (DATA / file).exists()
    }
    begun = DATA / "begun.json"
    card["begun"] = json.loads(begun.read_text()) if begun.exists() else None
    card["simple"] = {"right": round(simple_pairs.measure(DATA / "finetuned")[0], 4)}
    card["roles"] = json.loads((DATA / "roles.json").read_text())
    card["machine"] = options.machine or card.get("machine", "an unnamed machine")
    path.write_text(json.dumps(card, indent=1) + "\n")
    (DATA / FILE).write_text(markdown(card))
    print(accuracy_table(card))


if __name__ == "__main__":
    main()
