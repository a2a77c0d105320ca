"""The rows of the grid from which a plan removes heads: all, or those of one stack."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import OptionError

if TYPE_CHECKING:
    from ..models.classifier import Classifier
    from .plan import PruningPlan


def rows_of(plan: PruningPlan, clf: Classifier) -> range:
    """The rows whose heads may be removed; an ``OptionError`` for a stack that the model does not have."""
    if plan.stack is None:
        return range(clf.num_layers)
    if plan.stack not in clf.stacks:
        raise OptionError(f"'{clf.name}' has no stack '{plan.stack}'. Its stacks: {', '.join(clf.stacks)}.")
    return clf.stacks[plan.stack]
