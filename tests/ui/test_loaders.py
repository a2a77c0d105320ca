"""Models for the pages."""

from __future__ import annotations

from dataclasses import replace

import pytest

pytest.importorskip("streamlit")

from headviz.errors import ModelError
from headviz.ui.pages.compare import answers
from headviz.ui.shell import loaders
from headviz.ui.shell.view import View

TRANSLATOR = replace(View(), model="demo-translation", task="demo-translation", device="cpu")


def test_where_classes_are_needed_a_translation_model_is_refused_in_words() -> None:
    assert loaders.model(TRANSLATOR).classes is None
    with pytest.raises(ModelError, match="is a translation model and has no classes"):
        loaders.classifier(TRANSLATOR)


def test_a_translation_model_beside_a_classifier_is_refused_in_words() -> None:
    like = loaders.classifier(replace(View(), device="cpu"))
    with pytest.raises(ModelError, match="has no classes"):
        answers.other_model(replace(View(), other="demo-translation", device="cpu"), like)
