"""Build the page that needs no installation: ``make web``, or ``python web/build.py [FOLDER]``.

What the page shows or computes comes from where the dashboard has it: the demo's weights as an ONNX graph with the head
mask as an input, its tokenizer, its recorded figures, the grid widget, the colours. ONNX Runtime Web comes from the npm
registry. The folder (``build/web``) can be served as it is.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import tomllib
from itertools import groupby
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

import headviz
from headviz.demo import card_figures, demo_folder, read_split
from headviz.demo.reading import DATA, PHENOMENA
from headviz.display.figures.style import scale_of_losses
from headviz.display.sentences import NEAR
from headviz.heads import HeadId
from headviz.models.classifier import Classifier
from headviz.models.onnx import export_onnx
from headviz.ui.parts.abilities import turning
from headviz.ui.parts.story import steps
from headviz.ui.shell.frame import LOGO, MARK

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
WIDGETS = ROOT / "src" / "headviz" / "ui" / "widgets"
BUILT = ROOT / "build"
SOURCES = ("index.html", "page.css", "page.js", "model.js", "wordpiece.js", "offline.js")

RUNTIME = "onnxruntime-web@1.30.0"
RUNTIME_SHA512 = "q0y+JrrtukXSzsBWEMccVfqX25LRmosXHF+CaRJmg8pZClzcV7svNc4rKY3jL02Vb7QmRMDs1SigqR4CXAfKYQ=="
RUNTIME_FILES = ("ort.wasm.bundle.min.mjs", "ort-wasm-simd-threaded.wasm")

EXAMPLES = 3  # of each ability
LARGEST = 25_000_000  # bytes of the whole page


def build(target: Path) -> None:
    """Write the page into ``target``, in place of what is there."""
    shutil.rmtree(target, ignore_errors=True)
    (target / "onnxruntime").mkdir(parents=True)
    runtime(target / "onnxruntime")
    for name in SOURCES:
        shutil.copy(HERE / name, target)
    code = [(WIDGETS / name).read_text(encoding="utf-8") for name in ("shared.js", "export.js", "grid.js")]
    (target / "grid.js").write_text("\n".join(code), encoding="utf-8")
    shutil.copy(WIDGETS / "grid.css", target)
    (target / "theme.css").write_text(theme(), encoding="utf-8")
    pictures(target)
    clf = headviz.load("demo")
    export_onnx(clf, target / "demo.onnx", head_mask=True)
    (target / "data.json").write_text(json.dumps(data(clf), separators=(",", ":")), encoding="utf-8")
    keep_offline(target)
    size = sum(path.stat().st_size for path in target.rglob("*") if path.is_file())
    if size > LARGEST:
        sys.exit(f"The page has {size:,} bytes, and may have {LARGEST:,}.")
    print(f"{target}: {size / 1e6:.1f} MB. Serve it: python -m http.server --directory {target}")


def runtime(target: Path) -> None:
    """Two files of ONNX Runtime Web, out of its package."""
    with tarfile.open(package()) as files:
        for name in RUNTIME_FILES:
            member = files.extractfile(f"package/dist/{name}")
            assert member is not None
            (target / name).write_bytes(member.read())


def package() -> Path:
    """The package of ONNX Runtime Web, which npm downloads unless it is there. Its digest is checked each time."""
    BUILT.mkdir(exist_ok=True)
    path = BUILT / f"{RUNTIME.replace('@', '-')}.tgz"
    if not path.exists():
        if (npm := shutil.which("npm")) is None:
            sys.exit("The page needs npm, which downloads ONNX Runtime Web. Debian: apt-get install nodejs npm")
        command = [npm, "pack", RUNTIME, "--silent", "--fetch-retries=1", "--pack-destination", str(BUILT)]
        subprocess.run(command, check=True)
    if base64.b64encode(hashlib.sha512(path.read_bytes()).digest()).decode() != RUNTIME_SHA512:
        raise ValueError(f"{path} is not the file that was expected. Delete it and build again.")
    return path


def theme() -> str:
    """The dashboard's colours and font, under the names that Streamlit gives them."""
    config = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))["theme"]

    def variables(part: str) -> str:
        names = {"".join(f"-{c.lower()}" if c.isupper() else c for c in key): v for key, v in config[part].items()}
        return "".join(f"--st-{name}:{value};" for name, value in names.items())

    return (
        f":root{{color-scheme:light dark;--st-font:{config['font']};{variables('light')}}}\n"
        f"@media (prefers-color-scheme:dark){{:root{{{variables('dark')}}}}}\n"
    )


def pictures(target: Path) -> None:
    (target / "logo.svg").write_text(LOGO, encoding="utf-8")
    (target / "icon.svg").write_text(MARK, encoding="utf-8")


def keep_offline(target: Path) -> None:
    """Write into the service worker which files there are, and a digest that changes with them."""
    files = sorted(p.relative_to(target).as_posix() for p in target.rglob("*") if p.is_file())
    digest = hashlib.sha256(b"".join((target / name).read_bytes() for name in files)).hexdigest()[:12]
    listed = ["./", *(name for name in files if name != "offline.js")]
    worker = (target / "offline.js").read_text(encoding="utf-8")
    worker = worker.replace("FILES = []", f"FILES = {json.dumps(listed)}").replace(
        'BUILD = ""', f'BUILD = "headviz-{digest}"'
    )
    (target / "offline.js").write_text(worker, encoding="utf-8")


def data(clf: Classifier) -> dict[str, Any]:
    """What the page knows besides the model: sizes, classes, tokenizer, abilities, recorded costs, colours."""
    heads = card_figures()["heads"]
    costs = {
        ability: [100 * heads["cost"][head.dotted][ability] for head in clf.full_mask.kept] for ability in PHENOMENA
    }
    scale = scale_of_losses([0.0, 1.0])
    return {
        "version": headviz.__version__,
        "rows": clf.num_layers,
        "heads": clf.num_heads,
        "classes": list(clf.labels),
        "tokenizer": tokenizer(),
        "words": sorted(json.loads(gzip.decompress((DATA / "words.json.gz").read_bytes()))),
        "start": [steps()[-1].view[text] for text in ("a", "b")],
        "abilities": [ability(clf, row) for row in heads["sets"]],
        "costs": costs,
        "examples": len(read_split("dev")) // 2,  # the half that the costs were measured on
        "near": NEAR,
        "colours": {"light": scale.light, "dark": scale.dark, "loss": True},
    }


def ability(clf: Classifier, row: dict[str, Any]) -> dict[str, Any]:
    """An ability, the heads that carry it, what it and others lose without them, and examples whose answer turns."""
    name, carriers = row["phenomenon"], [HeadId.parse(head) for head in row["heads"]]
    own = [e for e in read_split("dev") if e.phenomenon == name]
    texts = [[getattr(e, field) for e in own] for field in ("premise", "hypothesis", "label")]
    chosen = [own[i] for i in turning(clf, *texts, carriers)[:EXAMPLES]]
    return {
        "name": name,
        "heads": [head.layer * clf.num_heads + head.head for head in carriers],
        "lost": round(100 * row["cost"]),
        "others": round(100 * row["mean_other"], 1),
        "examples": [[example.premise, example.hypothesis] for example in chosen],
    }


def tokenizer() -> dict[str, Any]:
    """The demo's tokenizer as a table for ``wordpiece.js``."""
    folder = demo_folder("finetuned")
    whole = Tokenizer.from_file(str(folder / "tokenizer.json"))
    stored = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    names = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    places = whole.get_vocab()
    ranges, letters = characters(whole, set("".join(places)))
    return {
        "vocabulary": sorted(places, key=places.__getitem__),
        "special": [token["content"] for token in stored["added_tokens"]],
        "ranges": ranges,
        "letters": letters,
        "unknown": stored["model"]["unk_token"],
        "prefix": stored["model"]["continuing_subword_prefix"],
        "longestWord": stored["model"]["max_input_chars_per_word"],
        "longest": names["model_max_length"],
        "ends": [names["cls_token"], names["sep_token"]],
    }


def characters(whole: Tokenizer, alphabet: set[str]) -> tuple[list[tuple[int, int, str]], dict[str, str]]:
    """What the tokenizer does with every character: ranges of code points that vanish, are spaces, or are words of
    their own; and the letters that become other ones. A letter that the vocabulary lacks makes any word unknown,
    whatever it becomes, so it is left out."""
    kinds: list[tuple[int, str]] = []
    letters = {}
    for code in range(sys.maxunicode + 1):
        if 0xD800 <= code <= 0xDFFF:  # halves of a pair
            continue
        character = chr(code)
        words = whole.pre_tokenizer.pre_tokenize_str(whole.normalizer.normalize_str(f"a{character}a"))
        becomes = " ".join(word for word, _ in words)[1:-1]
        if becomes in ("", " "):
            kinds.append((code, "space" if becomes else "gone"))
        elif becomes != character and set(becomes) <= alphabet | {" "}:
            letters[character] = becomes
        elif becomes.startswith(" "):
            kinds.append((code, "alone"))
    grouped = groupby(enumerate(kinds), key=lambda item: (item[1][0] - item[0], item[1][1]))
    runs = [[code for _, (code, _) in group] + [kind] for (_, kind), group in grouped]
    return [(run[0], run[-2], run[-1]) for run in runs], letters


if __name__ == "__main__":
    build(Path(sys.argv[1]) if len(sys.argv) > 1 else BUILT / "web")
