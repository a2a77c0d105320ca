"""The study's page: made from its cells alone, and saying no more than they support."""

from __future__ import annotations

import re
from types import ModuleType


def test_every_cell_is_a_link_away(study: ModuleType) -> None:
    page = study.TARGET.read_text(encoding="utf-8")
    twins = [f"twins/{name}" for name, cell in study.read(study.TWINS).items() if "steps" in cell]
    assert sorted(set(re.findall(r"\(results/([^)]*)\.json\)", page))) == sorted([*study.read(), *twins])


def test_the_document_is_what_its_files_say(study: ModuleType) -> None:
    assert study.TARGET.read_text(encoding="utf-8") == study.page(study.read(), study.cells(), study.read(study.TWINS))
