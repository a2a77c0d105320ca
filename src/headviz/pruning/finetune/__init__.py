"""Resumable fine-tuning of full and pruned models, and their recipes."""

from typing import TYPE_CHECKING

from ...compat.old_names import names_of

if not TYPE_CHECKING:
    __getattr__ = names_of(__name__, "training")
