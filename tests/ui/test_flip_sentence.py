"""What Compare says a mask does to one answer."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from headviz.heads import HeadMask
from headviz.ui.pages.compare.columns import finding

FULL = HeadMask.full(12, 12)
CLF = SimpleNamespace(
    labels=("yes", "maybe", "no"), classes=("yes", "maybe", "no"), present=FULL, stacks={"encoder": range(12)}
)


@pytest.mark.parametrize(
    ("after", "said"),
    [
        ((0.34, 0.33, 0.33), "the model no longer knows: no 0.90 goes to yes 0.34, near chance (0.33 each)"),
        ((0.33, 0.33, 0.34), "the model no longer knows: no falls from 0.90 to 0.34, near chance (0.33 each)"),
        ((0.80, 0.10, 0.10), "the answer changes: no 0.90 becomes yes 0.80"),
        ((0.05, 0.054, 0.896), "the answer stays no (0.900 → 0.896)"),
    ],
)
def test_a_flip_is_told_from_an_answer_that_is_lost(after: tuple[float, ...], said: str) -> None:
    before = np.array([0.05, 0.05, 0.90])
    told = finding(CLF, FULL.without([(4, 10)]), before, np.array(after))
    assert told == f"Without L4·H10 {said}."
    assert finding(CLF, FULL.without_random(9), before, np.array(after)).startswith("Without 9 heads ")
