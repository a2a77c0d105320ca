"""The demonstration: four views that show what their sentences say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headviz.demo import card_figures
from headviz.heads import HeadId, HeadMask
from headviz.ui.parts import abilities, story
from headviz.ui.shell import state
from headviz.ui.shell.frame import PAGES
from headviz.ui.shell.view import View, from_address, link_path, to_address


def test_each_step_is_a_link_that_restores_its_view() -> None:
    assert len(story.steps()) == 4
    for n, step in enumerate(story.steps(), 1):
        shown = step.shown()
        assert step.number == shown.story == n
        assert step.page in PAGES
        assert from_address(to_address(shown)) == (shown, [])
        assert f"story={n}" in link_path(step.page, shown)


def test_the_steps_switch_off_the_heads_that_their_sentences_name() -> None:
    first, second, third, own = story.steps()
    carriers = {name: one.heads for name, one in abilities.listed(View()).items()}
    wanted = HeadId.parse(card_figures()["heads"]["shared"][0]), carriers["role-swap"][0], carriers["negation"][0]
    for step, head in zip((first, second, own), wanted, strict=True):
        off = HeadMask.from_hex(step.view["mask"], 12, 12).off
        assert off == (head,)
        assert str(off[0]) in step.sentence
    gone = HeadMask.from_hex(third.view["mask"], 12, 12).off
    assert len(gone) == round(0.4 * 144)
    assert third.sentence.startswith(f"{len(gone)} of 144")


@pytest.mark.slow
def test_what_the_steps_claim_is_so() -> None:
    """The first answer turns, the second is lost, another head does neither, and 40 % cost less than two points."""
    import headviz
    from headviz.ui.pages.compare.answers import answer

    clf, full = headviz.load("demo", device="cpu"), HeadMask.full(12, 12)
    for step in story.steps()[:2]:
        text, pair = [step.view["a"]], [step.view["b"]]
        off = HeadMask.from_hex(step.view["mask"], 12, 12)
        before, after = answer(clf, text, pair, full)[0], answer(clf, text, pair, off)[0]
        assert before.max() > 0.9
        assert after.max() > 0.9 if step.number == 1 else after.max() < 0.45
        assert after.argmax() != before.argmax()
        other = full.without([HeadId(11, 11)])
        assert answer(clf, text, pair, other)[0].argmax() == before.argmax()
    third = HeadMask.from_hex(story.steps()[2].view["mask"], 12, 12)
    data = headviz.load_task("demo", limit=500)
    whole, less = (headviz.evaluate(clf, data, mask=m).metrics["accuracy"] for m in (full, third))
    assert whole - less < 0.02


@pytest.mark.parametrize("number", [1, 3])
def test_the_end_keeps_the_mask_and_the_text_only(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the third step the second grid of Scores showed the order that the step had set."""
    monkeypatch.setattr("streamlit.session_state", {})
    story.go(number)
    shown = state.view()
    story.go(0)
    left = state.view()
    assert left == replace(shown, story=0, beside=View().beside, tokens=View().tokens)
    assert left.mask
