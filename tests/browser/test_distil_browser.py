"""A translation model's distillation in a real browser: chosen on the grid, started, watched to its end."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.slow]

LONG = 240_000  # milliseconds that a run may take on a slow or busy machine


def test_a_part_is_chosen_students_are_trained_and_the_curves_come(visit: Callable[..., Any]) -> None:
    v = visit()
    v.go("runs", new="distill", model="demo-translation", task="demo-translation", limit="8")
    start = v.page.get_by_role("button", name="Start", exact=True)
    v.page.get_by_text("Choose what to remove").first.wait_for()
    assert not start.count()
    v.page.locator('.cell[aria-label^="cross 1·H3"]').first.click()
    v.settle()
    layers = v.page.locator(".st-key-w_layers")
    layers.get_by_role("button", name="decoder 2").click()
    v.settle()
    for label, value in (("Training steps", "2"), ("Training examples", "32"), ("Seeds", "0")):
        v.fill(label, value)
    v.page.locator(".st-key-distil_inits").get_by_role("button", name="copied weights, teacher's logits").click()
    v.settle()
    v.page.get_by_text(
        "Removes head cross.1.3 and layer decoder.2; trains 3 students of 2 steps each, 6 in all."
    ).wait_for()
    v.page.get_by_role("button", name="Plan", exact=True).click()
    v.page.get_by_text("of training on this machine").wait_for(timeout=LONG)
    v.settle()
    start.click()  # once: nothing may move away under the pointer
    v.page.wait_for_url(re.compile("[?&]run="))
    v.page.get_by_text("With one seed nobody can tell").wait_for(timeout=LONG)
    v.page.get_by_text("Means over seeds").first.wait_for(timeout=LONG)
    v.page.get_by_text("step 4 of 4").or_(v.page.get_by_text(re.compile("^took "))).first.wait_for(timeout=LONG)
    v.settle()
    assert v.page.get_by_text("failed").count() == 0
    assert v.page.locator(".st-key-distil_curves").count()
    v.page.get_by_role("button", name="Open a student").click()
    v.page.get_by_role("button", name="Use as the current model").click()
    v.page.wait_for_url(re.compile("[?&]model=.*students"))
    v.page.get_by_text("7×8 heads").wait_for()  # cross-attention and attention of a decoder layer are two rows
