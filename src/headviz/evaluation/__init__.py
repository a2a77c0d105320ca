"""Metrics under one mask or many, for classifiers and translations, and the uncertainty of differences."""

from typing import TYPE_CHECKING

from ..compat.old_names import names_of

if not TYPE_CHECKING:
    __getattr__ = names_of(__name__, "plain", "dispatch")
