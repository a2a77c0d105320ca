"""The curves of study/distillation.md: students of three removals, from every start, over seeds.

    python -m study.distillation [--work FOLDER] [--parts rnn,rnn-total,rnn-paper,decoder,heads] [--seeds 0,1,2,3,4]

Stop it whenever you like and start it again with the same options: it goes on from its last checkpoint, and what is
done is not done again. The recurrent teachers are trained here; the other two are the models that headviz ships.
``--parts none`` computes nothing and writes the page anew from the files.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import platform
import sys
import time
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

import torch

import headviz
from headviz.errors import UserError
from headviz.extras.distillation.curves import steps_to
from headviz.extras.distillation.job import distil
from headviz.extras.distillation.pieces import teacher_updates
from headviz.extras.distillation.plan import (
    COPY,
    LIKELIHOOD,
    METHODS,
    DistillationPlan,
    IterateOptions,
    Method,
    PosteriorOptions,
    TrainingOptions,
)
from headviz.extras.distillation.posterior import FAR
from headviz.extras.distillation.problem import RnnTranslating
from headviz.extras.distillation.students import train
from headviz.extras.translation.recurrent import RnnTranslator
from study.plot import Curve, Panel, draw

HERE = Path(__file__).resolve().parent
FILES, PAGE = HERE / "students", HERE / "distillation.md"
LOSS = "training loss"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
INITS = ("random", "copy", "conditional", "variational", "kd")


@dataclasses.dataclass(frozen=True)
class Part:
    """One removal: title, the plan but for seeds and teacher, and what the text calls the teacher."""

    title: str
    about: str
    model: str
    task: str
    remove: str
    metric: str
    training: TrainingOptions
    iterates: IterateOptions
    posterior: PosteriorOptions
    dev_limit: int | None = None
    train_limit: int | None = None
    inits: tuple[str, ...] = INITS
    teacher: str = ""  # the part whose teacher is taken
    network: Mapping[str, Any] = field(default_factory=dict)  # of a recurrent teacher
    teaching: TrainingOptions | None = None  # of a recurrent teacher
    beams: int = 1
    longest: int | None = None  # train on so many of the longest pairs, and measure on long ones


SIZES = {"embedding": 32, "hidden": 64, "units": 32}
TEACHING = TrainingOptions(steps=2000, batch=32, learning_rate=6e-3, every=200, warmup=0.02)
# kept out of the files: what the page says of a part, and what the other fields say already
UNWRITTEN = ("title", "about", "inits", "teacher")
PARTS = {
    "rnn": Part(
        "LSTM encoder-decoder without its attention",
        f"The teacher is an LSTM encoder-decoder with Bahdanau attention (embedding {SIZES['embedding']}, hidden "
        f"{SIZES['hidden']}, attention {SIZES['units']}; the paper's is 512-512-512), trained here for "
        f"{TEACHING.steps:,} steps. The student reads the mean of the encoder's states instead.",
        "",
        "demo-translation",
        "attention",
        "bleu",
        TrainingOptions(steps=TEACHING.steps, batch=32, learning_rate=3e-3, every=200, anneal=0.3),
        IterateOptions(count=10, gap=10, batch=32, learning_rate=3e-4),
        # what the iterates support by themselves; left to itself, the library declines it and copies
        PosteriorOptions(scale=100.0, shrinkage=0.75),
        dev_limit=140,
        network=SIZES,
        teaching=TEACHING,
    ),
    "decoder": Part(
        "Transformer without a decoder layer",
        "The teacher is the shipped translation model; its last decoder layer but one goes.",
        "demo-translation",
        "demo-translation",
        "layers:decoder.1",
        "bleu",
        TrainingOptions(steps=300, batch=32, learning_rate=5e-4, every=50, anneal=0.3),
        IterateOptions(count=10, gap=10, batch=32, learning_rate=1e-4),
        PosteriorOptions(scale=100.0),
        dev_limit=280,
    ),
    "heads": Part(
        "BERT classifier without single heads",
        "The teacher is the shipped classifier; the heads of its third layer go.",
        "demo",
        "demo",
        "heads:" + ",".join(f"2.{h}" for h in range(12)),
        "accuracy",
        TrainingOptions(steps=300, batch=32, learning_rate=4e-4, every=50, anneal=0.3),
        IterateOptions(count=10, gap=10, batch=32, learning_rate=1e-4),
        PosteriorOptions(scale=100.0),
        dev_limit=500,
    ),
}


# the teacher's updates and a student's together, for a student that has no teacher
TOTAL = dataclasses.replace(
    PARTS["rnn"],
    title="The same, with random weights and as many updates as teacher and student have together",
    training=dataclasses.replace(PARTS["rnn"].training, steps=2 * TEACHING.steps, every=400),
    inits=("random",),
    teacher="rnn",
)
PAPER = dataclasses.replace(
    PARTS["rnn"],
    title="LSTM encoder-decoder without its attention, as in the paper",
    about="The same sizes, with what the paper has and the sections above have not: 10,000 pairs, the longest of the "
    "20,000; an output layer that reads the decoder's state alone (eq. 2.25); uniform weights; dropout; half of the "
    "target words the model's own while it learns; beam search. The shares and widths are ours. Teacher and students "
    "get more updates, because an output of the state alone learns more slowly.",
    task="custom-translation",
    training=dataclasses.replace(PARTS["rnn"].training, forcing=0.5, steps=8000, every=400),
    posterior=PosteriorOptions(scale=100.0),
    inits=("random", "copy", "conditional"),
    dev_limit=None,
    network={**SIZES, "reads": "state", "initialisation": "uniform", "dropout": 0.1},
    teaching=dataclasses.replace(TEACHING, forcing=0.5, steps=8000, every=400),
    beams=4,
    longest=10_000,
)
CELL = dataclasses.replace(
    PAPER,
    title="LSTM encoder-decoder without its attention, the paper's own cell",
    about="The same, with the paper's cell: a plain recurrent encoder (eq. 2.14), a decoder whose gates read the state "
    "and the context alone (eqs. 2.15 to 2.18), an attention asked by the LSTM's cell state (eq. 2.21). Such a decoder "
    "does not see the words before, so it makes no difference whose words they are while it learns, nor how many beams "
    "a search has. The starts are the two of the paper's table.",
    training=dataclasses.replace(PAPER.training, forcing=1.0),
    inits=("random", "copy"),
    network={**PAPER.network, "cell": "published"},
    teaching=dataclasses.replace(TEACHING, steps=8000, every=400),
    beams=1,
)
PARTS = {"rnn": PARTS["rnn"], "rnn-total": TOTAL, "rnn-paper": PAPER, "rnn-cell": CELL, **PARTS}
DEV = 140  # pairs that the students of the longest are measured on


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", default=str(HERE.parent / "cache" / "distillation"))
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--seeds", default="0,1,2,3,4")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    seeds = tuple(int(s) for s in args.seeds.split(","))
    for name in args.parts.split(",") if args.parts != "none" else ():
        try:
            result = run(name, PARTS[name], Path(args.work), seeds)
        except UserError as error:
            say(f"{name}: left out. {error}")
            continue
        keep(name, result)
    write()


def run(name: str, part: Part, work: Path, seeds: tuple[int, ...]) -> dict[str, Any]:
    data = None if part.longest is None else str(long_pairs(part.longest, work / f"{name}-data"))
    model = part.model or str(rnn_teacher(part, work / f"{part.teacher or name}-teacher", data))
    plan = DistillationPlan(
        model=model,
        task=part.task,
        remove=part.remove,
        inits=part.inits,
        seeds=seeds,
        training=part.training,
        iterates=part.iterates,
        posterior=part.posterior,
        dev_limit=part.dev_limit,
        train_limit=part.train_limit,
        data=data,
        beams=part.beams,
    )
    return distil(plan, work / f"{name}-students", Say(name))


def long_pairs(count: int, folder: Path) -> Path:
    """The longest training pairs of the demo, in their order, and every fifth of the longest dev pairs."""
    for split, most, every in (("train", count, 1), ("dev", 5 * DEV, 5)):
        data = headviz.load_task("demo-translation", split=split)
        pairs = list(zip(data.texts, data.references, strict=True))
        order = sorted(range(len(pairs)), key=lambda i: (-len(" ".join(pairs[i]).split()), i))
        lines = ["\t".join(pairs[i]) for i in sorted(order[:most])[::every]]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{split}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def rnn_teacher(part: Part, folder: Path, place: str | None = None) -> Path:
    """Trained once, checkpointed on the way."""
    if folder.exists():
        return folder
    assert part.teaching is not None
    data = headviz.load_task(part.task, split="train", data=place)
    dev = headviz.load_task(part.task, split="dev", limit=part.dev_limit, data=place)
    fresh = RnnTranslator.new(data.texts, data.references, seed=0, **part.network)
    trained = train(
        fresh,
        RnnTranslating(fresh, data, dev, part.beams),
        Method("as drawn", COPY, LIKELIHOOD),
        part.teaching,
        0,
        folder=folder.with_name(f"{folder.name}-training"),
        progress=lambda done, total: Say("teacher")("training", done, total),
    )
    for point in trained.curve:
        say(f"teacher, step {point.step}: {point.metrics}")
    dataclasses.replace(trained.subject).save(folder)
    return folder


class Say:
    """A line whenever something new begins, and every few seconds."""

    last: tuple[str, float] = ("", 0.0)

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, phase: str, done: int, total: int) -> None:
        was, when = Say.last
        if phase != was or time.monotonic() - when > 20:
            Say.last = (phase, time.monotonic())
            say(f"{self.name}: {phase} {done}/{total}")


def say(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


# results ---------------------------------------------------------------------------------------


def updates(part: Part) -> int | None:
    """What the teacher was trained with."""
    return teacher_updates(part.model) if part.model else part.teaching.steps if part.teaching else None


def keep(name: str, result: dict[str, Any]) -> None:
    """Figures only: no weights, no sentences."""
    part = PARTS[name]
    record = {
        "part": {k: v for k, v in dataclasses.asdict(part).items() if k not in UNWRITTEN},
        "teacher_updates": updates(part),
        "seeds": result["seeds"],
        "teacher": result["teacher"],
        "notes": result["notes"],
        "students": [{k: v for k, v in s.items() if k != "runs"} for s in result["students"]],
        "runs": {s["init"]: [r["metrics"] for r in s["runs"]] for s in result["students"]},
        "machine": {
            "torch": torch.__version__,
            "python": platform.python_version(),
            "threads": torch.get_num_threads(),
        },
    }
    FILES.mkdir(exist_ok=True)
    (FILES / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")
    (FILES / f"{name}.svg").write_text(picture(record, part.metric))
    (FILES / f"{name}-loss.svg").write_text(picture(record, LOSS))


def write() -> None:
    """Put the measured sections between the marks of study/distillation.md."""
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    PAGE.write_text(before + BEGIN + "\n" + sections() + END + after, encoding="utf-8")


def sections() -> str:
    """What stands between the marks: a section for each part that has been computed."""
    return "\n".join(section(name) for name in PARTS if (FILES / f"{name}.json").exists())


def section(name: str) -> str:
    part, record = PARTS[name], json.loads((FILES / f"{name}.json").read_text())
    metric, teacher = part.metric, record["teacher"]
    sizes = teacher["partition"]
    lines = [f"### {part.title}", "", part.about, ""]
    exact = "exact" if sizes["exact"] else "not exact"
    gap = sizes["difference"]
    lines += [
        f"Removed: `{part.remove}`. {sizes['kept']:,} weights kept, {sizes['zeroed']:,} zeroed, {sizes['useless']:,} "
        f"useless. Student with copied weights = teacher with zeros: {exact} (largest difference of logits "
        f"{gap['largest']:.2g}, {gap['changed']:.1%} of predictions differ). "
        + (f"{n} seeds; intervals are 95 %, Student's t." if (n := len(record["seeds"])) > 1 else "One seed."),
        "",
        budget(record),
        "",
        f"![Learning curves](students/{name}.svg)",
    ]
    told = "loss" in record["students"][0]["curve"][-1]  # files of earlier versions have no loss
    lines += [f"![Training loss](students/{name}-loss.svg)"] * told
    lines += [
        "",
        f"| model | {metric} | before training | steps to the random start's end | seconds per student |"
        + " training loss at the end |" * told,
        "|---|---|---|---|---|" + "---|" * told,
        f"| teacher | {teacher['metrics'][metric]:.3g} | | | |" + " |" * told,
    ]
    ends = {s["init"]: s["metrics"][metric] for s in record["students"]}
    for s in record["students"]:
        low, high = s["interval_low"][metric], s["interval_high"][metric]
        interval = "" if low is None else f" [{low:.3g}, {high:.3g}]"
        reached = None if "random" not in ends else steps_to(s["curve"], metric, ends["random"])
        lines.append(
            f"| {s['title']} | {s['metrics'][metric]:.3g}{interval} | {s['curve'][0]['metrics'][metric]:.3g} "
            f"| {'never' if reached is None else reached} | {s['seconds']:.0f} |"
            + (f" {s['curve'][-1]['loss']:.3g} |" if told else "")
        )
    return "\n".join([*lines, "", verdict(record, metric), how_far(record), ""])


def budget(result: dict[str, Any]) -> str:
    """Who was trained how long: students are only under equal conditions where both numbers are the same."""
    had, given = result["teacher_updates"], result["part"]["training"]["steps"]
    share = "as many" if had == given else f"{100 * given / had:.3g} % of that"
    return (
        f"Budget: the teacher had {had:,} updates, every student gets {given:,} ({share}), of "
        f"{result['part']['training']['batch']} examples."
    )


def how_far(result: dict[str, Any]) -> str:
    """Where the conditional mean lies, and who chose the shrinkage."""
    prior, given = result["teacher"]["prior"], result["part"]["posterior"]["shrinkage"]
    if prior is None:
        return ""
    of = f"rank {prior['rank']}, {prior['iterates']} iterates"
    if "declined" in prior:
        return (
            f"\nThe iterates support shrinkage {prior['declined']['shrinkage']:g} ({of}), but the conditional mean "
            f"would then lie {prior['declined']['moved']:.2g} times as far from the copied weights as those are long. "
            "It is declined: the covariance is taken as diagonal, and the conditional mean is the copied weights."
        )
    shrinkage = prior.get("shrinkage", given)
    if shrinkage == 1:
        return f"\nThe covariance is diagonal ({of}): the conditional mean is the copied weights."
    who = "chosen by what the iterates support" if given is None else "given by hand"
    end = " Left to itself, the library declines such a mean today and copies." if prior["moved"] > FAR else ""
    return (
        f"\nThe conditional mean lies {prior['moved']:.2g} times as far from the copied weights as those are long "
        f"({of}, shrinkage {shrinkage:g}, {who}): where "
        "that is not small, v2 = 0 lies far outside what the iterates span, and the conditional mean is an "
        f"extrapolation.{end}"
    )


def verdict(result: dict[str, Any], metric: str) -> str:
    """Whether the paper's order shows: the student from the teacher above the student from random weights."""
    bands = {
        s["init"]: (s["metrics"][metric], s["interval_low"][metric], s["interval_high"][metric])
        for s in result["students"]
    }
    if "random" not in bands:
        return ""
    base = bands["random"]
    parts = []
    for init, (mean, low, _) in bands.items():
        if init in ("random", "kd"):
            continue
        word = "above" if mean > base[0] else "not above"
        clear = ", intervals apart" if low is not None and base[2] is not None and low > base[2] else ""
        parts.append(f"{METHODS[init].title}: {word} random weights ({mean:.3g} against {base[0]:.3g}{clear})")
    if not parts:
        return ""
    order = "The published order is teacher > student from the teacher > student from random weights."
    return f"{order} Here: {'; '.join(parts)}."


Points = list[tuple[int, float, float | None, float | None]]  # step, mean, low, high


def points(student: dict[str, Any], metric: str) -> Points:
    """A student's curve of a metric, or of the training loss, which has no interval; undefined points left out."""
    if metric == LOSS:
        return [(p["step"], p["loss"], None, None) for p in student["curve"] if p["loss"] is not None]
    result = (
        (p["step"], *(p[k][metric] for k in ("metrics", "interval_low", "interval_high"))) for p in student["curve"]
    )
    return [point for point in result if point[1] is not None]


def picture(result: dict[str, Any], metric: str) -> str:
    """Curves of the students: mean over seeds with its interval, and each name with its end; the teacher is a level."""
    curves = []
    for student in result["students"]:
        steps, means, lows, highs = zip(*points(student, metric), strict=True)
        known = all(low is not None and high is not None for low, high in zip(lows, highs, strict=True))
        ends = [*zip(lows, highs, strict=True)] if known else []
        curves.append(Curve(f"{student['init']} {means[-1]:.3g}", steps, means, ends, stroke=student["init"]))
    last = result["students"][0]["curve"][-1]["step"]
    teacher = result["teacher"]["metrics"].get(metric)  # it has no training loss here
    levels = [] if teacher is None else [(teacher, f"teacher {teacher:.3g}")]
    ticks = [last * i // 4 for i in range(5)]
    panel = Panel(metric, curves, ticks, "training steps", levels, tell="{:,}".format, holds=(0,))
    return draw([panel], f"{metric} of each student by training steps, with its value at the end")


if __name__ == "__main__":
    main()
