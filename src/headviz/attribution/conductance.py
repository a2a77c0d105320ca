"""``headviz.conductance``: which attention connections carried the prediction, for all heads at once.

Attr(A)_ij = ∫ ∂F/∂A_ij · dA_ij/da da along the straight path of word embeddings from a baseline (padding in
place of every word) to the input; F is the logit of the target class. ``integration`` walks along the path, ``rules``
says where it stops and how the stops are weighted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Unpack, overload

from ..models.network import require_model
from ..progress import Cancel, Progress
from ..storage.exchange import MaskLike
from ..storage.store import Store
from .explaining import MAX_STEPS, Explainer, Label, MapsOptions, Texts, store_for
from .integration import Visited, room_for, room_on, sweep
from .maps import Maps
from .rules import AUTO, DEFAULT_RULE, DEFAULT_STEPS, ENOUGH, TOLERANCE, PathOptions

if TYPE_CHECKING:
    from ..models.classifier import Classifier


class ConductanceKeywords(MapsOptions, total=False):
    precision: str
    rough: Callable[[Maps], None] | None


@overload
def conductance(
    clf: Classifier, text: str, pair: str | None = None, **options: Unpack[ConductanceKeywords]
) -> Maps: ...
@overload
def conductance(
    clf: Classifier, text: Texts, pair: Texts | None = None, **options: Unpack[ConductanceKeywords]
) -> list[Maps]: ...
def conductance(
    clf: Classifier,
    text: str | Sequence[str],
    pair: str | Sequence[str] | None = None,
    *,
    steps: int | None = None,
    rule: str = DEFAULT_RULE,
    target: Label = "predicted",
    label: Label | Sequence[Label] | None = None,
    mask: MaskLike | None = None,
    tolerance: float | None = None,
    precision: str = AUTO,
    budget: int | None = None,
    cache: Store | bool = True,
    cancel: Cancel | None = None,
    progress: Progress | None = None,
    rough: Callable[[Maps], None] | None = None,
) -> Maps | list[Maps]:
    """Attention and attribution maps of one text or pair; for a list of texts, a list of maps.

    ``steps`` are the intervals of the path. Without them 16 are doubled until the estimated error is at most 10 %, or
    until they are 128. ``tolerance=0.02`` doubles until it is at most 2 %. ``target`` is "predicted" (by the model
    under the mask), "gold" (with ``label=``), or a class. ``rule="captum"`` gives what Captum's LayerConductance gives.
    ``precision="bfloat16"`` is a faster preview; by default it is float32, and on a GPU TF32 where that agrees on the
    first texts, which ``notes`` say. Peak memory stays near ``budget`` bytes besides the model, unless one node of one
    text needs more: by default 1 GiB, and on a GPU what is free. ``progress(done, total)`` counts points of the path;
    doubling the steps begins anew. ``rough(maps)`` is called before the steps are doubled, with what there is of the
    first text.

    An attribution of 0 does not mean that removing the head is free: ``headviz.ablate`` measures that.

    >>> import headviz
    >>> clf = headviz.load("demo", device="cpu")
    >>> maps = headviz.conductance(clf, "the small dog runs .", "the dog sleeps .", steps=4)
    >>> maps.attribution.shape == (12, 12, len(maps.tokens), len(maps.tokens))
    True
    """
    options = PathOptions(DEFAULT_STEPS if steps is None else steps, rule, precision)
    most = MAX_STEPS
    if steps is None and tolerance is None:
        tolerance, most = TOLERANCE, ENOUGH
    require_model(clf)
    budget = room_on(clf.device, budget)
    run = sweep if tolerance is None else partial(sweep, visited=Visited(room_for(budget), most))
    explainer = Explainer(clf, "conductance", run, mask, budget, store_for(cache), cancel, progress, rough)
    return explainer.explain(text, pair, label, target, options, tolerance, most)
