"""Figures, in one style. No streamlit: reports and notebooks draw with the same functions."""

from typing import TYPE_CHECKING

from ..compat.old_names import names_of

if not TYPE_CHECKING:
    __getattr__ = names_of(__name__, "style", "answers", "histograms")
