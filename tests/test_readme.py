"""The README and the tables say what the code has."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SITE = "https://headviz.github.io/headviz/"
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_tables_are_those_of_the_code() -> None:
    """In a process of its own: another test's plugins stay in the tables of this one."""
    program = str(ROOT / "docs/readme_tables.py")
    assert subprocess.run([sys.executable, program, "--check"]).returncode == 0, "run: python docs/readme_tables.py"


def test_the_heads_of_the_example_carry_what_it_says() -> None:
    """By the demo's card, which is measured on the shipped weights."""
    from headviz.demo import card_figures

    result = re.search(r"--off ([\d.]+),([\d.]+) .*# these two carry (\S+) and (.+)", README)
    assert result
    costliest = {row["phenomenon"]: row["heads"][0] for row in card_figures()["heads"]["sets"]}
    assert [costliest[result[3]], costliest[result[4].replace(" ", "-")]] == [result[1], result[2]]


def test_links_and_pictures_exist() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        if not target.startswith("http"):
            assert (ROOT / target).exists(), target


def test_links_of_the_built_package_are_whole_addresses_of_files_that_exist(tmp_path: Path) -> None:
    """A package index shows the README away from the repository."""
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE", "src/headviz/__init__.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    command = [sys.executable, "setup.py", "-q", "dist_info", "--output-dir", str(tmp_path)]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    (metadata,) = tmp_path.glob("*.dist-info/METADATA")
    shown = metadata.read_text(encoding="utf-8").partition("\n\n")[2]
    links = re.findall(r"\]\(([^)]+)\)", shown)
    assert len(links) == len(re.findall(r"\]\(", README)) > 20
    files, pictures = (
        re.compile(f"https://{place}/main/([^#]+)")
        for place in ("github.com/headviz/headviz/blob", "raw.githubusercontent.com/headviz/headviz")
    )
    for link in links:
        if link.startswith(SITE):
            assert (ROOT / link.removeprefix(SITE) / "index.html").exists(), link
            continue
        place = pictures if re.search(r"\.(webp|png)$", link) else files
        result = place.match(link)
        assert result, link
        assert (ROOT / result[1]).exists(), link


def shown(name: str) -> str:
    """What the cells of a notebook show, without tags."""
    cells = json.loads((ROOT / f"docs/notebooks/{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    result = [out.get("text", "") or out["data"].get("text/html", "") for c in cells for out in c.get("outputs", [])]
    return " ".join(re.sub(r"<[^>]+>", " ", " ".join("".join(f) for f in result)).split())


def test_the_findings_are_those_that_the_notebooks_show() -> None:
    said = " ".join(README.replace("−", "-").split())
    drawn = (ROOT / "docs/notebooks/demo.ipynb").read_text(encoding="utf-8").replace("−", "-")
    for ability, before in (("negation", "negation falls by"), ("role-swap", "role swaps by")):
        row = re.search(rf"{ability} (\d+) [\d.]+ [\d.]+ (\S+) (\S+) (\S+)", shown("demo"))
        examples, change, least, most = (float(value.replace("−", "-")) for value in row.groups())
        assert f"{before} {-change:.1f} " in said
        low, high = re.search(rf"{before} [^)]*?(-[\d.]+) to (-[\d.]+); {examples:.0f}", said).groups()
        assert f"[{low}, {high}]" in drawn  # as the figure beside the table has them, rounded outward
        assert -0.11 < float(low) - least < 0.01
        assert -0.01 < float(high) - most < 0.11
    table = shown("demo").replace("−", "-").partition("accuracy by slice.")[2].partition("as text")[0]
    rows = [[float(x) for x in row] for row in re.findall(r" \d+ [01]\.\d+ [01]\.\d+ (\S+) (\S+) (\S+) ", table)]
    others = [row for row in rows if row[0] > -20]
    assert len(others) == 11
    assert sum(row[0] == 0 for row in others) == 7
    assert all(low < 0 < high for _, low, high in others)
    assert "Of the other eleven abilities, seven keep their accuracy to the digit" in said
    curve = shown("pruning-curve")
    assert "50 % of the heads can go in the order of magnitude for a loss of at most 1.6 points" in curve
    assert "50 % of its heads can go by the size of their weights, and 30 % by the gradient" in said
    assert re.search(r"taylor 30 % of the heads magnitude 50 % of the heads random 0 %", curve)
    assert "in one random order none" in said
    assert re.search(r"accuracy changes by 0\.0 points \[[−-]3\.1, \+3\.1\]", shown("own-model"))
    assert "a loss of up to 3.1 points is possible" in said
