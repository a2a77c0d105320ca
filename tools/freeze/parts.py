"""What is recorded of the library and the command line, one function per part."""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import random
import re
from collections.abc import Iterator
from typing import Any

from recording import Record, command, folder, plain, report

TEXT = "The old king did not sleep.", "The old king slept."
DONOR = "The old king slept.", "The old king slept."

RUN = "--samples 24 --length-filter none --step 0.25 --until 0.5 --device cpu"
TUNE = "--epochs 1 --batch 8 --learning-rate 1e-3"
DISTIL = "--steps 4 --batch 8 --every 2 --iterates 3 --gap 2"

# name: the command; {demo} {custom} {words} stand for model and data, {text} for two sentences
COMMANDS = """
info demo: info --model demo
info translator: info --model demo-translation
info missing: info --model /nowhere
conductance: conductance --model demo {text} --steps 8 --out {work}/maps.npz
patch: patch --model demo {text} --donor "{donor}" --positions first
paths: patch {tiny} {text} --donor "{donor}" --paths
tokens: tokens --model demo {text} --orders 4
score demo: score --model demo --task demo --samples 30 --score taylor
score tiny: score {custom} --samples 12
evaluate demo: evaluate {demo} --off 3.5,7.0,11.2 --compare
evaluate mean: evaluate {demo} --off 3.5,7.0,11.2 --ablation mean --reference 32
evaluate unseen: evaluate --model demo --task demo --split unseen --limit 60
evaluate translator: evaluate {words} --off cross.1.2 --compare
evaluate demo-translation: evaluate --model demo-translation --task demo-translation --limit 14
evaluate wrong: evaluate --model demo --task demo --split nonsense
ablate demo: ablate {demo}
ablate tiny: ablate {custom}
analyse ablation: analyse ablation {custom}
analyse by-slice: analyse by-slice {demo}
analyse all-but-one: analyse all-but-one {custom} --samples 30
analyse cross-dataset: analyse cross-dataset {all} --other-task custom --other-data {folder} --other-split train
analyse pruning-curves: analyse pruning-curves {demo} --scores taylor,magnitude --samples 30
analyse dynamics: analyse dynamics --task demo --limit 13 --checkpoints {checkpoints} --score magnitude --samples 12
analyse redundant: analyse redundant {custom} --seconds 600
analyse interactions: analyse interactions {custom} --samples 8 --seconds 600
analyse correlation: analyse correlation {custom} --base {base} --samples 12
analyse scatter: analyse scatter --model demo {text} --head 3.5
grade: grade {all} --split train --scores taylor,magnitude,random
roles: roles {demo} --samples 40
stacks: stacks {words} --limit 4 --score taylor --samples 4
finetune: finetune --model {base} {data} {tune} --out {work}/tuned
prune: prune --model demo --off 3.5,7.0,11.2 --out {work}/pruned
prune masked: prune --model demo --off 3.5 --masked --out {work}/masked
cache show: cache show
run plan: run start {all} {run} --algorithm one-importance --score taylor --plan
"""
TIMED = """
analyse speed: analyse speed {tiny} --remove 0.5 --repeats 2
prune --faster: prune {all} --faster 1.2 --samples 24 --out {work}/faster
"""


def names(record: Record) -> None:
    """The public names with their signatures; of classes those of their public members, too."""
    import headviz

    def signature(thing: Any) -> Any:
        if not callable(thing):
            return type(thing).__name__
        with contextlib.suppress(ValueError, TypeError):
            return re.sub(r"headviz(\.\w+)+\.", "", str(inspect.signature(thing)))

    for name in sorted(headviz.__all__):
        thing = getattr(headviz, name)
        members = [m for m in dir(thing) if not m.startswith("_")] if inspect.isclass(thing) else []
        shown = {"itself": signature(thing), **{m: signature(getattr(thing, m, None)) for m in members}}
        record.add(name, lambda shown=shown: shown)


def places(record: Record) -> dict[str, Any]:
    """A tiny model, its base, its data and a tiny translator; the words of commands that name them."""
    import headviz
    from support import real_runs, studio

    work = record.work
    tiny = real_runs.folders(work / "tiny")
    studio.make_translation(work)
    data = f"--task custom --data {tiny['data']} --text-columns text,pair --label-column label"
    return {
        **tiny,
        "work": work,
        "tiny": f"--model {tiny['model']}",
        "all": f"--model {tiny['model']} {data}",
        "custom": f"--model {tiny['model']} {data} --limit 24",
        "data": data,
        "folder": tiny["data"],
        "demo": "--model demo --task demo --limit 13",
        "words": f"--model {work}/translator --task custom-translation --data {work}/pairs",
        "text": f'--text "{TEXT[0]}" --text-pair "{TEXT[1]}"',
        "donor": DONOR[0],
        "checkpoints": headviz.demo_folder("checkpoints"),
        "run": RUN,
        "tune": TUNE,
    }


def listed(table: str, words: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for line in table.strip().splitlines():
        name, asked = line.split(": ", 1)
        yield name, asked.format(**words)


def commands(record: Record) -> None:
    words, work = places(record), record.work
    for name in re.findall(r"^  (\w+)  ", command("--help")["out"], re.MULTILINE):
        text = record.add(f"help {name}", lambda name=name: command(f"{name} --help"))["out"]
        block = re.search(r"positional arguments:(.*?)\n\n", text, re.DOTALL)
        for sub in (
            re.findall(r"^    ([\w-]+)\b", block[1], re.MULTILINE) if block and name in ("run", "analyse") else ()
        ):
            record.add(f"help {name} {sub}", lambda name=name, sub=sub: command(f"{name} {sub} --help"))
    for table in (COMMANDS, TIMED):
        for name, asked in listed(table, words):
            record.add(name, lambda asked=asked: command(asked), timed=table is TIMED)
    record.add("saved by prune", lambda: folder(work / "pruned"))
    made = record.run("run start", f"run start {words['all']} {RUN} --algorithm one-importance --score taylor --wait")
    for kind in ("html", "json", "csv", "tex"):
        file = work / f"report.{kind}"
        record.add(f"run report {kind}", lambda file=file: command(f"run report {made} --out {file}"))
        record.add(f"the report {kind}", lambda file=file: report(file))
    record.add("run save", lambda: command(f"run save {made} --out {work}/of_run"))
    record.add("saved by run", lambda: folder(work / "of_run"))
    record.add("run list", lambda: command("run list"))
    record.add("tickets", lambda: command(f"tickets {made}"))
    for doing in ("show", "cancel", "resume", "archive", "delete"):
        record.add(f"run {doing}", lambda doing=doing: command(f"run {doing} {made}"))
    record.add("cache clear", lambda: command("cache clear"))


def random_masks(clf: Any, count: int) -> Iterator[Any]:
    """Masks of all sizes, the same for the same grid."""
    draw, heads = random.Random(f"{clf.num_layers} {clf.num_heads}"), list(clf.present.kept)
    for _ in range(count):
        yield clf.present.without(draw.sample(heads, draw.randint(1, len(heads) - 1)))


def families() -> Iterator[tuple[str, Any, Any]]:
    """A tiny model of every family, with data: name, model, data."""
    from support import pruning_plans, tiny_translation, translation_plans
    from support import tiny as encoders

    data, pairs = pruning_plans.make_data(24, "dev"), translation_plans.pairs(6, "dev")
    for name in encoders.ALL_FAMILIES:
        yield name, encoders.tiny_classifier(name), data
    for name in tiny_translation.TRANSLATION_NAMES:
        yield f"{name} translator", tiny_translation.tiny_translator(name), pairs


def dataset(data: Any) -> dict[str, Any]:
    rows = hashlib.sha256(repr((data.texts, data.pairs, plain(data.labels), data.slices)).encode()).hexdigest()
    return {"rows": len(data), "digest": data.digest, "content": rows, "first": data.texts[:3], "origin": data.origin}


def masks(record: Record) -> None:
    """The demo's data; metrics and logits under 200 random masks of the demo, some of a model of every family."""
    import headviz

    def evaluation(made: Any) -> dict[str, Any]:
        texts = getattr(made, "translations", None)
        return {"metrics": made.metrics, "logits": made.logits if texts is None else None, "translations": texts}

    def under(clf: Any, data: Any, count: int, plainly: int = 1) -> dict[str, Any]:
        evaluator, kept = headviz.evaluator_of(clf, data), {}
        for i, mask in enumerate(random_masks(clf, count)):
            kept[mask.hex] = evaluation(evaluator.evaluate(mask))
            if i < plainly:
                kept[f"{mask.hex} plain"] = evaluation(headviz.evaluate(clf, data, mask=mask))
        return kept

    for task in ("demo", "demo-translation"):
        for split, limit in (("dev", None), ("dev", 100), ("unseen", None), ("train", None), ("train", 5000)):
            make = lambda t=task, s=split, n=limit: dataset(headviz.load_task(t, split=s, limit=n))  # noqa: E731
            record.add(f"{task} {split} {limit}", make)
    for name, count, limit in (("demo", 200, 100), ("demo-translation", 6, 28)):
        clf, data = headviz.load(name), headviz.load_task(name, limit=limit)
        record.add(name, lambda clf=clf, data=data, count=count: under(clf, data, count, 4))
    for name, clf, data in families():
        record.add(name, lambda clf=clf, data=data: under(clf, data, 6))


def saved(record: Record) -> None:
    """Models of every family, pruned and saved."""
    import headviz

    def pruned(name: str, clf: Any) -> dict[str, Any]:
        place = record.work / name.replace(" ", "-")
        headviz.prune(clf, next(random_masks(clf, 1))).save(place)
        return {"files": folder(place), "info": command(f"info --model {place}")}

    record.add("demo", lambda: pruned("demo", headviz.load("demo")))
    for name, clf, _ in families():
        record.add(name, lambda name=name, clf=clf: pruned(name, clf))


def scores(record: Record) -> None:
    """Every score on the demo and a model of each kind, few examples and steps; patching, maps, minimal pairs."""
    import headviz
    from headviz.scores.catalogue import SCORES

    def summed(maps: Any) -> dict[str, Any]:
        sums = {"attention": maps.attention.sum(-2), "attribution": maps.attribution.sum(-2)}
        return {**sums, "tokens": maps.tokens, "target": maps.target, "error": float(maps.error)}

    chosen = {
        "demo": (
            headviz.load("demo"),
            headviz.sample(headviz.load_task("demo", split="train"), 4, length_filter="quantile"),
        )
    }
    kinds = ("bert", "modernbert", "gpt2", "bart", "marian translator")
    chosen |= {name: (clf, data.subset(range(6))) for name, clf, data in families() if name in kinds}
    for kind, (clf, data) in chosen.items():
        for score in SCORES if kind != "demo" else [name for name in SCORES if name != "shapley"]:
            steps = {"steps": 4} if "gates" in score or score == "attattr-max" else {}
            if score == "gates-causal":
                steps = {"steps": 2}
            make = lambda c=clf, d=data, s=score, more=steps: headviz.score_heads(c, d, score=s, **more)  # noqa: E731
            record.add(f"{kind} {score}", make)
        record.add(f"{kind} patch", lambda c=clf: headviz.patch(c, TEXT, DONOR))
        if kind != "demo":  # the demo's take a minute
            record.add(f"{kind} paths", lambda c=clf: headviz.paths(c, [(TEXT, DONOR)]))
            record.add(f"{kind} tokens", lambda c=clf: headviz.token_explanations(c, *TEXT, orders=4))
        record.add(f"{kind} attattr", lambda c=clf: summed(headviz.attattr(c, *TEXT, steps=4)))
        for rule in ("richardson", "trapezoid", "captum"):
            make = lambda c=clf, r=rule: summed(headviz.conductance(c, *TEXT, steps=4, rule=r))  # noqa: E731
            record.add(f"{kind} conductance {rule}", make)
    for name in dict.fromkeys(headviz.load_task("demo").slices or ()):
        record.add(f"minimal pairs {name}", lambda name=name: headviz.minimal_pairs(name, 12))
    pairs = [((a[0], a[1]), (b[0], b[1])) for a, b in headviz.minimal_pairs("negation", 4)]
    record.add("patch pairs", lambda: headviz.patch_pairs(chosen["demo"][0], pairs))


def algorithms(record: Record) -> None:
    """One short run of each algorithm, on a tiny model; one of a translator."""
    from headviz.pruning import ALGORITHMS

    words = places(record)
    for name, entry in ALGORITHMS.items():
        score = "" if entry.only_score else "--score taylor"
        score += " --score-option steps=6" if name.startswith("gates") else ""
        record.run(
            name, f"run start {words['all']} {RUN} {TUNE} --base {words['base']} --algorithm {name} {score} --wait"
        )
    options = "--algorithm iterative --score taylor --repair none --wait"
    record.run("translator", f"run start {words['words']} {RUN} {options}")


def distillation(record: Record) -> None:
    """Students from every start, of a tiny model and a tiny translator."""
    words = places(record)
    asked = {
        "heads": "{all} --remove heads:0.1,1.2 --init random,copy,kd,kd-copy,conditional,variational",
        "layer": "{all} --remove layers:1 --init copy",
        "translator": "{words} --remove heads:cross.1.1 --init copy,conditional",
    }
    for name, options in asked.items():
        out = record.work / f"out-{name}"
        line = f"distill {options.format(**words)} {DISTIL} --out {out}"
        record.add(name, lambda line=line: command(line))
        record.add(f"{name} files", lambda out=out: folder(out))
