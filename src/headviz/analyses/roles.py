"""What each head looks at: its share of attention on relations between tokens, against chance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..attribution.relations import (
    RELATIONS,
    Relation,
    Tokens,
    chance_of,
    grammar_chances,
    grammar_relations,
    linked_tokens,
)
from ..display.recipes import Code, call
from ..display.table import Table, columns
from ..display.views import Picture, View
from ..errors import OptionError
from ..heads import HeadId
from ..options import Option
from ..progress import Cancel, Progress, tracked
from ..results import Result
from ..statistics.significance import benjamini_hochberg
from ..ties import in_order
from .analysis import Analysis, explained
from .common import SIGNIFICANT
from .role_importance import RoleImportance, by_importance, importance_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plotly.graph_objects import Figure

    from ..models.classifier import Classifier, Encoding
    from ..tasks import Dataset
    from .given import Given

LEAST = 10  # examples that have a relation, below which it is not tested
TOKENS = 2048  # in one pass
SAMPLES, IMPORTANCE = 300, "taylor"  # where nothing else is asked for
CLARK = "Clark, Khandelwal, Levy, Manning 2019, “What Does BERT Look At?” (arXiv 1906.04341)"


@dataclass(frozen=True)
class Role(Result):
    """One relation of one head. ``share`` of the words' attention that goes there, ``baseline`` by chance."""

    name: str
    share: float
    baseline: float
    q: float  # Benjamini-Hochberg over all heads and relations; one-sided: more than by chance


@dataclass(frozen=True, eq=False)
class Roles(Result):
    """``share``, ``baseline`` and ``q`` [L, H, R]; NaN for removed heads and relations that the data hardly have."""

    relations: tuple[str, ...]
    share: NDArray[np.float64]
    baseline: NDArray[np.float64]
    q: NDArray[np.float64]
    examples: tuple[int, ...]  # by relation: how many examples have it
    n: int
    data: str
    importance: str = ""  # the score by which roles are compared
    by_importance: tuple[RoleImportance, ...] = ()

    def of(self, layer: int, head: int) -> tuple[Role, ...]:
        """The roles of a head that are told from chance, the largest excess first."""
        found = [
            Role(name, float(share), float(base), float(q))
            for name, share, base, q in zip(
                self.relations, self.share[layer, head], self.baseline[layer, head], self.q[layer, head], strict=True
            )
            if q < SIGNIFICANT
        ]
        return tuple(sorted(found, key=lambda role: role.baseline - role.share))

    def first(self) -> dict[HeadId, Role]:
        """The first role of every head that has one."""
        every = [HeadId(i, j) for i in range(self.share.shape[0]) for j in range(self.share.shape[1])]
        return {head: found[0] for head in every if (found := self.of(*head))}

    def against(self, score: str, values: NDArray[np.float64]) -> Roles:
        """The same with every role against a score of the heads' importance [L, H]."""
        firsts = {head: role.name for head, role in self.first().items()}
        return replace(self, importance=score, by_importance=by_importance(self.relations, firsts, values))

    def extra(self) -> dict[str, Any]:
        layers, heads = self.share.shape[:2]
        return {
            "heads": {
                HeadId(i, j).dotted: [
                    {
                        "role": name,
                        "share": float(self.share[i, j, r]),
                        "baseline": float(self.baseline[i, j, r]),
                        "q": float(self.q[i, j, r]),
                    }
                    for r, name in enumerate(self.relations)
                ]
                for i in range(layers)
                for j in range(heads)
            }
        }


def roles(
    clf: Classifier,
    data: Dataset,
    *,
    samples: int | None = None,
    importance: str | None = None,
    label_order: Sequence[str] | str | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> Roles:
    """Measure every relation for every head on these examples. Queries are words, not [CLS] or [SEP].

    Of more than ``samples`` examples so many are drawn, as ``load_task(limit=…)`` draws them. ``importance`` is a score
    on the same examples by which heads with a role are compared with the others.

    The test is one-sided over examples: the mean of share − baseline against 0, by Student's t. Not for finding out
    what a head is *for*: a head may look somewhere and write nothing that matters.

    >>> import headviz
    >>> found = headviz.roles(headviz.load("demo", device="cpu"), headviz.load_task("demo", limit=12))
    >>> found.share.shape == (12, 12, len(found.relations)), found.n
    (True, 12)
    """
    from scipy import stats

    from ..models.network import require_model
    from ..scores import score_heads
    from ..tasks.dataset import require_dataset
    from ..tasks.loading import grammar_of
    from ..tasks.sampling import limited, require_size

    require_model(clf)
    require_dataset(data)
    clf.check_maps()
    if samples is not None:
        require_size(samples)
        data = data.subset(limited(data, samples, seed=0))
    encodings = clf.encode(data.texts, data.pairs)
    if len(encodings) < LEAST:
        raise OptionError(f"Roles need at least {LEAST} examples; there are {len(encodings)}.")
    rare, known = rare_tokens(encodings), grammar_of(data.task)
    relations = RELATIONS if known is None else RELATIONS + grammar_relations(known[0])
    shares = np.full((len(encodings), len(relations), clf.num_layers, clf.num_heads), np.nan)
    bases = np.full_like(shares, np.nan)
    for members in tracked(_batches(encodings), progress, cancel):
        for i, attention in zip(members, _attention(clf, [encodings[i] for i in members]), strict=True):
            links = {}
            if known is not None:
                texts = (data.texts[i],) if data.pairs is None else (data.texts[i], data.pairs[i])
                links = linked_tokens(clf, len(encodings[i]), texts, known[1])
            shares[i], bases[i] = _one(attention, Tokens.of(encodings[i], rare, links), relations)
    with np.errstate(invalid="ignore"):
        there = np.isfinite(shares).any(axis=(2, 3)).sum(axis=0)  # [R]
    share, base, p = (np.full((clf.num_layers, clf.num_heads, len(relations)), np.nan) for _ in range(3))
    for r in range(len(relations)):
        if there[r] < LEAST:
            continue
        rows = np.isfinite(shares[:, r]).any(axis=(1, 2))
        mine, chance = shares[rows, r], bases[rows, r]
        share[..., r], base[..., r] = mine.mean(axis=0), chance.mean(axis=0)
        p[..., r] = _one_sided(mine - chance, stats)
    names = tuple(relation.name for relation in relations)
    q = benjamini_hochberg(p)
    found = Roles(names, share, base, q, tuple(int(n) for n in there), len(encodings), data.task.title)
    if importance is None:
        return found
    scored = score_heads(clf, data, importance, label_order=label_order, cancel=cancel)
    return found.against(importance, scored.values)


def _one_sided(excess: NDArray[np.float64], stats: Any) -> NDArray[np.float64]:
    """p of a mean over examples above 0; without any spread it is 0 or 1."""
    n = len(excess)
    mean, deviation = excess.mean(axis=0), excess.std(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = mean / (deviation / np.sqrt(n))
    p = stats.t.sf(t, n - 1)
    flat = deviation < 1e-12
    found: NDArray[np.float64] = np.where(flat, np.where(mean > 1e-9, 0.0, 1.0), p)
    return np.where(np.isnan(mean), np.nan, found)


def rare_tokens(encodings: Sequence[Encoding]) -> frozenset[int]:
    """The rarest kinds of token that together make up at most a tenth of the words of the data."""
    counts = Counter(i for e in encodings for i, special in zip(e.ids, e.special, strict=True) if not special)
    limit, seen, found = sum(counts.values()) / 10, 0, []
    for token, count in sorted(counts.items(), key=lambda item: (item[1], item[0])):
        seen += count
        if seen > limit:
            break
        found.append(token)
    return frozenset(found)


def _batches(encodings: Sequence[Encoding]) -> list[list[int]]:
    """Examples of like length together, so that little is padded."""
    order = sorted(range(len(encodings)), key=lambda i: len(encodings[i]))
    batches: list[list[int]] = [[]]
    for i in order:
        if batches[-1] and (len(batches[-1]) + 1) * len(encodings[i]) > TOKENS:
            batches.append([])
        batches[-1].append(i)
    return batches


def _attention(clf: Classifier, members: Sequence[Encoding]) -> list[NDArray[np.float64]]:
    """[L, H, T, T] of each example; NaN for heads that have been removed."""
    import torch

    call = clf.call(None, "eager", keep_probs=True)
    with torch.inference_mode():
        clf.forward(clf.collate(members), call)
    found = []
    for n, encoding in enumerate(members):
        size = len(encoding)
        maps = np.full((clf.num_layers, clf.num_heads, size, size), np.nan)
        for layer, probs in enumerate(call.probs):
            maps[layer, list(clf.present.kept_in(layer))] = probs[n, :, :size, :size].double().cpu().numpy()
        found.append(maps)
    return found


def _one(
    attention: NDArray[np.float64], tokens: Tokens, relations: Sequence[Relation]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Share and baseline [R, L, H] of one example, over the words that have such a key; NaN where none has."""
    shape = (len(relations), *attention.shape[:2])
    share, base = np.full(shape, np.nan), np.full(shape, np.nan)
    for r, relation in enumerate(relations):
        pairs = relation.pairs(tokens) & tokens.words[:, None]
        queries = int(pairs.any(axis=1).sum())
        if queries:
            own = relation.chance == "grammar"
            chances = grammar_chances(pairs, tokens) if own else (chance_of(relation, pairs, tokens),)
            share[r] = (attention * pairs).sum(axis=(2, 3)) / queries
            base[r] = np.max([(attention * chance).sum(axis=(2, 3)) / queries for chance in chances], axis=0)
    return share, base


# how it is shown ------------------------------------------------------------------------------


def run(given: Given) -> Roles:
    asked = _asked({name: given.option(name) for name in ("samples", "importance")})
    order, progress, cancel = given.label_order, given.progress, given.cancel
    return roles(given.clf, given.data, **asked, label_order=order, progress=progress, cancel=cancel)


def _asked(options: Mapping[str, Any]) -> dict[str, Any]:
    score = options.get("importance", IMPORTANCE)
    return {"samples": options.get("samples", SAMPLES), "importance": None if score == "none" else score}


def figure(found: Roles) -> Figure:
    """How much more than by chance each head looks at each relation."""
    from ..display.figures.heads import relation_map

    return relation_map(100 * (found.share - found.baseline), found.relations)


def view(found: Roles) -> View:
    heads = int(np.isfinite(found.share).any(axis=2).sum())
    firsts = list(found.first().items())
    best = in_order(firsts, [role.baseline - role.share for _, role in firsts], seed=0)
    rare = [name for name, n in zip(found.relations, found.examples, strict=True) if n < LEAST]
    clear = [head for head, role in best if role.share >= 0.5]
    first = ""
    if best:
        head, role = best[0]
        first = (
            f"{head} stands out most: {100 * role.share:.0f} % of the words' attention goes to “{role.name}”, "
            f"by chance {100 * role.baseline:.0f} %. "
        )
    return View(
        f"{first}{len(clear)} of {heads} heads {'spends' if len(clear) == 1 else 'spend'} at least half of the words' "
        "attention on the relation in which they stand out.",
        (
            Picture(
                "roles",
                lambda: figure(found),
                "Share of the words' attention minus chance, in points: blue more than by chance, orange less.",
                wide="64",
            ),
            Table(
                "roles_table",
                ("head", "looks at", *columns("%.1f", "share, %", "chance, %"), "q"),
                [[head, role.name, 100 * role.share, 100 * role.baseline, role.q] for head, role in best],
                "The relation of each head with the largest excess over chance.",
                shortened=20,
                height=400,
            ),
            *([importance_table(found.by_importance, found.importance)] if found.by_importance else []),
        ),
        about=(
            ("data", f"{found.data}, {found.n:,} examples"),
            ("tested", f"{int(np.isfinite(found.q).sum()):,} pairs of head and relation"),
            ("not tested, in too few examples", ", ".join(rare) or "none"),
        ),
        note="What chance is: for places, attention that is spread evenly over the tokens; for the same and for rare "
        "words, the head's own attention with the words in another order; for grammar, what the head gives to other "
        "words as far apart or, if that is more, what other words give to the same word.",
    )


def recipe(options: Mapping[str, Any]) -> str:
    return f"found = {call('headviz.roles', Code('clf'), Code('data'), **_asked(options))}"


ANALYSIS = Analysis(
    "roles",
    "What heads look at",
    "Which heads look at the token before, the same word, the delimiter, the other text?",
    "what each head looks at, against chance",
    CLARK,
    run,
    figure,
    view,
    recipe,
    options=(
        Option("samples", SAMPLES, "at most so many examples", least=1, metavar="N"),
        Option("importance", IMPORTANCE, "a score by which heads with a role are compared, or none", metavar="NAME"),
    ),
    fits=explained,
    command="roles",
    tells="looks",
)
