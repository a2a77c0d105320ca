"""The README and the tables say what the code has."""

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
