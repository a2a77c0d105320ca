"""The README and the tables say what the code has."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_tables_are_those_of_the_code() -> None:
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        import readme_tables
    finally:
        sys.path.pop(0)
    for page, tables in readme_tables.PAGES.items():
        text = page.read_text(encoding="utf-8")
        assert readme_tables.filled(text, tables) == text, "run: python docs/readme_tables.py"


def test_the_heads_of_the_example_carry_what_it_says() -> None:
    """By the demo's card, which is measured on the shipped weights."""
    from headviz.demo import card_figures

    found = re.search(r"--off ([\d.]+),([\d.]+) .*# these two carry (\S+) and (.+)", README)
    assert found
    costliest = {row["phenomenon"]: row["heads"][0] for row in card_figures()["heads"]["sets"]}
    assert [costliest[found[3]], costliest[found[4].replace(" ", "-")]] == [found[1], found[2]]


def test_links_and_pictures_exist() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        if not target.startswith("http"):
            assert (ROOT / target).exists(), target


def test_the_first_picture_moves_and_is_small() -> None:
    name = re.search(r"!\[[^\]]+\]\(([^)]+)\)", README)[1]
    film = (ROOT / name).read_bytes()
    assert film.count(b"ANMF") > 50  # its pictures
    assert len(film) <= 2_000_000
