"""What every command prints with ``--json`` meets the published schema; the commands run on tiny models."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import headviz
from docs.test_schema import SCHEMA, check
from headviz import cli
from headviz.commands import run as run_command
from headviz.commands.analyse import without_own_command
from headviz.models.onnx import NEEDED
from headviz.pruning import faster
from support import studio
from support.recorded_runs import ME, Runs, pruning
from support.timed import Clock

DOCS = Path(__file__).resolve().parents[2] / "docs"

TASK = "--task custom --data {place}/data --text-columns premise,hypothesis --label-column label"
MODEL = "--model {place}/model --device cpu"
BOTH = f"{MODEL} {TASK}"
PAIR = "--text 'a dog sleeps' --text-pair 'a cat runs'"
DONOR = "--donor 'a dog eats' --donor-pair 'a cat runs'"
TEACH = BOTH.replace(" --label-column", " --limit 24 --train-limit 24 --label-column")
# how a command is called -> its words; several for one command are several of its results. The schema defines each
CALLS = {
    "info": MODEL,
    "conductance": f"{MODEL} {PAIR} --steps 2 --out {{place}}/maps.npz",
    "patch": f"{MODEL} {PAIR} {DONOR}",
    "patch --paths": f"{MODEL} {PAIR} {DONOR} --paths",
    "patch --pairs": "--model demo --device cpu --pairs {place}/pairs.tsv",
    "tokens": f"{MODEL} {PAIR} --orders 2",
    "score": f"{BOTH} --score taylor --samples 12",
    "evaluate": f"{BOTH} --off 0.1",
    "evaluate --compare": f"{BOTH} --off 0.1 --compare --slice-column phenomenon",
    "ablate": BOTH,
    "analyse ablation": BOTH,
    "analyse by-slice": f"{BOTH} --slice-column phenomenon",
    "analyse all-but-one": f"{BOTH} --samples 12",
    "analyse cross-dataset": f"{BOTH} --other-data {{place}}/more",
    "analyse pruning-curves": f"{BOTH} --scores magnitude,oracle --step 0.5 --samples 12",
    "analyse speed": f"{MODEL} --length 16 --repeats 2 --batches 1",
    "analyse runtimes": f"{BOTH} --off 0.1 --batch 2 --length 16",
    "analyse dynamics": f"{TASK} --device cpu --checkpoints {{place}}/run --score magnitude --step 0.5 --samples 12",
    "analyse correlation": f"{BOTH} --base {{place}}/model --score conductance-pearson --heads 2 --samples 4",
    "analyse scatter": f"{MODEL} {PAIR} --head 1.1",
    "analyse redundant": f"{BOTH} --seconds 0.2",
    "analyse interactions": f"{BOTH} --seconds 0.2 --samples 8",
    "grade": f"{BOTH.replace('/model', '/graded').replace('/data', '/answered')} --scores magnitude --splits 1",
    "roles": f"{BOTH} --limit 12 --samples 12",
    "export": f"{BOTH} --precision int8 --batch 2 --length 16 --out {{place}}/onnx",
    "convert": "{place}/pickled --out {place}/converted",
    "finetune": f"{BOTH} --epochs 1 --batch 32 --out {{place}}/tuned",
    "prune": f"{MODEL} --off 0.1 --out {{place}}/small",
    "prune --faster": f"{BOTH} --faster 1.05 --batch 2 --length 16 --samples 12 --out {{place}}/faster",
    "distill": f"{TEACH} --remove heads:0.0 --init copy --steps 2 --batch 8 --out {{place}}/students",
    "run start --plan": f"{BOTH} --algorithm one-importance --score magnitude --samples 12 --step 0.25 --plan",
    "run sweep --plan": f"{BOTH} --algorithm one-importance --score magnitude,random --samples 12 --step 0.25 --plan",
    "run list": "",
    "run show": "{run}",
    "run report": "{run} --out {place}/report.json",
    "run save": "{run} --out {place}/saved",
    "run archive": f"{{run}} --user {ME}",
    "run delete": f"{{run}} --user {ME}",
    "cache show": "",
    "cache clear": "",
    "tickets": "{run}",
    "transfer": "{place}/transfer.json",
    "stacks": "--model {place}/translator --device cpu --task custom-translation --data {place}/pairs --score random"
    " --step 0.5",
}
# analyses that the schema does not define
OTHERS = {label: BOTH for name in without_own_command() if (label := f"analyse {name}") not in CALLS}
RESULTS = {"evaluate": "evaluation", "score": "scores", "ablate": "ablation", "run show": "run"}
MORE = {"evaluate --compare": "evaluation", "patch --paths": "patch", "cache show": "cache", "cache clear": "cache"}


def definition(label: str) -> str:
    return (RESULTS | MORE).get(label) or label.removeprefix("analyse ").replace(" --", "-").replace(" ", "-")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("place")
    for name in ("model", "run/checkpoint-1", "run/checkpoint-2"):
        studio.make_model(folder / name, layers=2, heads=2, seed=len(name))
    studio.make_data(folder / "data")
    studio.make_data(folder / "more", rows=40, seed=3)
    studio.make_model(folder / "graded", layers=3, heads=4)
    studio.answered(folder / "graded", folder / "data")
    own = {"model": str(folder / "model"), "base": str(folder / "model"), "task": "custom", "label_column": "label"}
    own |= {"data": str(folder / "data"), "text_columns": ["premise", "hypothesis"]}
    (folder / "transfer.json").write_text(json.dumps({"masks": {"mine": "e"}, "targets": {"own": own}}))
    return folder


# a busy machine may time a model so that no heads and neurons make it 1.05 times as fast
MARKS = {"analyse runtimes": [pytest.mark.soak]}  # many exports


@pytest.mark.slow
@pytest.mark.parametrize("label", [pytest.param(name, marks=MARKS.get(name, ())) for name in CALLS | OTHERS])
def test_what_a_command_prints_meets_it(
    label: str, place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = ""
    monkeypatch.setattr(faster, "Timer", Clock)  # a tiny model's own times scatter more than heads and neurons take
    for needed in NEEDED if label in ("export", "analyse runtimes") else ():
        pytest.importorskip(needed)
    call = (CALLS | OTHERS)[label]
    if "{run}" in call or label == "run list":
        run = Runs().put("done", "prune", pruning(place))
    if label == "convert":
        shutil.copytree(place / "model", place / "pickled")
        torch.save(load_file(place / "pickled" / "model.safetensors"), place / "pickled" / "pytorch_model.bin")
        (place / "pickled" / "model.safetensors").unlink()
    if label == "stacks":
        studio.make_translation(place)
    if label == "patch --pairs":
        rows = [(a.premise, a.hypothesis, b.premise, b.hypothesis) for a, b in headviz.minimal_pairs("negation", 3)]
        table = ["\t".join(row) for row in [("text", "text_pair", "donor", "donor_pair"), *rows]]
        (place / "pairs.tsv").write_text("\n".join(table) + "\n")
    words = [word for word in label.split() if not word.startswith("--")]
    words += shlex.split(call.format(place=place, run=run))
    status = cli.main([*words, "--json"])
    out, err = capsys.readouterr()
    assert status == 0, err
    if label in CALLS:
        check(definition(label), json.loads(out))
    if label.startswith("analyse ") and label != "analyse runtimes":  # whose exports take long
        figure = place / "figure.html"
        assert cli.main([*words, "--figure", str(figure)]) == 0
        text = capsys.readouterr().out
        assert len(text.splitlines()) >= 3
        assert not re.search(r"None|nan", text)
        assert f'"text":"{without_own_command()[words[1]].title}"' in figure.read_text(encoding="utf-8")


def test_every_command_is_called_and_every_definition_is_told() -> None:
    """Those of the formats page; what a run's other actions give is a run, too."""
    called = {label.partition(" --")[0] for label in CALLS | OTHERS}
    commands = {
        *cli.COMMANDS,
        *(f"analyse {name}" for name in without_own_command()),
        *(f"run {name}" for name in run_command.ACTIONS),
    }
    silent = {"serve", "analyse", "run", "cache", "run cancel", "run resume"}
    assert commands - called <= silent
    page = (DOCS / "formats.md").read_text(encoding="utf-8")
    told = re.findall(r"`([a-z-]+)`", "".join(re.findall(r"^\| (`.*?) \|", page.partition("| definition |")[2], re.M)))
    assert {definition(label) for label in CALLS} | {"paired", "mask"} == set(told)
    assert set(told) <= set(SCHEMA["$defs"])
