"""Training what is left of a model, resumable, and by which recipe."""

from typing import TYPE_CHECKING

from ...compat.old_names import names_of

if not TYPE_CHECKING:
    __getattr__ = names_of(__name__, "training")
