"""What each head looks at: its share of attention on relations between tokens, against chance.

``chance`` says what the share of attention on a relation is compared with:

- *place*: attention spread evenly over all tokens, for relations that the places alone decide;
- *words*: the same attention with the words of each text put into another order, for relations that hang on which
  word stands where. A head that looks at fixed places gains nothing by that.
- *grammar*: the larger of two, for relations whose words often stand in the same places: the same attention between
  other words of the text that are as far apart, and that of its other words on the same word.

Shape: T tokens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import scipy
import torch
from numpy.typing import NDArray

from ...analyses.analysis import IMPORTANCE, LOOKED_AT, Request, arguments
from ...analyses.common import SIGNIFICANT
from ...display.figures.heads import relation_map
from ...display.recipes import Code, call
from ...display.table import Column, Ends, Picture, Table, View, columns
from ...errors import OptionError
from ...evaluation.plain import cut_off_sentence
from ...heads import HeadId, in_order
from ...models.fast.linear import gpu_products
from ...models.network import require_model
from ...progress import Cancel, Progress, tracked
from ...results import Result
from ...scores.scoring import score_heads
from ...scores.statistics import mean
from ...statistics.significance import benjamini_hochberg
from ...tasks.dataset import require_dataset
from ...tasks.loading import grammar_of
from ...tasks.sampling import limited, require_size
from ...tasks.tokenizer_lock import alone_with

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from ...models.classifier import Classifier, Encoding
    from ...tasks import Dataset

Pairs = NDArray[np.bool_]  # [T, T]: query, key


@dataclass(frozen=True)
class Tokens:
    """What the relations are read from."""

    ids: NDArray[np.int64]
    types: NDArray[np.int64]
    special: NDArray[np.bool_]
    rare: NDArray[np.bool_]
    links: Mapping[str, Pairs] = field(default_factory=dict)  # relations of grammar that the text has

    @classmethod
    def of(cls, encoding: Encoding, rare: frozenset[int], links: Mapping[str, Pairs] | None = None) -> Tokens:
        special, types = np.array(encoding.special, dtype=bool), encoding.text_numbers
        ids = np.array(encoding.ids, dtype=np.int64)
        return cls(ids, types, special, np.isin(ids, list(rare)) & ~special, links or {})

    @property
    def words(self) -> NDArray[np.bool_]:
        return ~self.special


@dataclass(frozen=True)
class Relation:
    """One relation. Queries are words; keys are whatever the relation names."""

    name: str
    meaning: str
    pairs: Callable[[Tokens], Pairs]
    chance: Literal["place", "words", "grammar"] = "place"


def _place(shift: int) -> Callable[[Tokens], Pairs]:
    return lambda t: np.eye(len(t.ids), k=shift, dtype=bool)


def _keys(keys: Callable[[Tokens], NDArray[np.bool_]]) -> Callable[[Tokens], Pairs]:
    return lambda t: np.broadcast_to(keys(t)[None], (len(t.ids), len(t.ids))).copy()


def _first(t: Tokens) -> NDArray[np.bool_]:
    return np.arange(len(t.ids)) == 0


def _same_text(t: Tokens) -> Pairs:
    return (t.types[:, None] == t.types[None]) & t.words[None] & ~np.eye(len(t.ids), dtype=bool)


def _other_text(t: Tokens) -> Pairs:
    return (t.types[:, None] != t.types[None]) & t.words[None]


def _edge(last: bool) -> Callable[[Tokens], Pairs]:
    """The first, or the last, word of the query's own text."""

    def pairs(t: Tokens) -> Pairs:
        edge = np.zeros(len(t.ids), dtype=bool)
        for text in np.unique(t.types):
            words = np.flatnonzero(t.words & (t.types == text))
            if len(words):
                edge[words[-1 if last else 0]] = True
        return edge[None] & (t.types[:, None] == t.types[None])

    return pairs


def _equal(t: Tokens) -> Pairs:
    return (t.ids[:, None] == t.ids[None]) & t.words[None]


RELATIONS = (
    Relation("previous", "the token before", _place(-1)),
    Relation("next", "the token after", _place(1)),
    Relation("itself", "the token itself", _place(0)),
    Relation("[CLS]", "the first token of the input", _keys(_first)),
    Relation("delimiter", "[SEP] and the like", _keys(lambda t: t.special & ~_first(t))),
    Relation("first word", "the first word of its own text", _edge(False)),
    Relation("last word", "the last word of its own text", _edge(True)),
    Relation("own text", "other words of its own text", _same_text),
    Relation("other text", "words of the other text", _other_text),
    Relation("same word", "the same word again in its own text", lambda t: _equal(t) & _same_text(t), "words"),
    Relation("same word across", "the same word in the other text", lambda t: _equal(t) & _other_text(t), "words"),
    Relation("rare word", "words that are rare in the data", _keys(lambda t: t.rare), "words"),
)


def grammar_relations(meanings: Mapping[str, str]) -> tuple[Relation, ...]:
    """Relations whose pairs of tokens each text brings along."""

    def linked(name: str) -> Callable[[Tokens], Pairs]:
        return lambda t: t.links.get(name, np.zeros((len(t.ids), len(t.ids)), dtype=bool))

    return tuple(Relation(name, meaning, linked(name), "grammar") for name, meaning in meanings.items())


def linked_tokens(
    clf: Classifier, length: int, texts: tuple[str, ...], reader: Callable[[str], list[tuple[str, int, int]]]
) -> dict[str, Pairs]:
    """The tokens of the words that a reader of texts relates, both ways; a word of several tokens has its first."""
    with alone_with(clf.tokenizer):
        where = clf.tokenizer(*texts)
    links: dict[str, Pairs] = {}
    for number, text in enumerate(texts):
        for name, *places in reader(text):
            i, j = (where.char_to_token(0, begin, sequence_index=number) for begin in places)
            if i is not None and j is not None and max(i, j) < length:
                pairs = links.setdefault(name, np.zeros((length, length), dtype=bool))
                pairs[i, j] = pairs[j, i] = True
    return links


def grammar_chances(pairs: Pairs, tokens: Tokens) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """[T, T] twice: attention by these weights is that of other words as far apart, and of other words on the same."""
    same = (tokens.types[:, None] == tokens.types[None]) & tokens.words[:, None] & tokens.words[None] & ~pairs
    np.fill_diagonal(same, False)
    far = np.arange(len(tokens.ids))[None] - np.arange(len(tokens.ids))[:, None]
    unlinked, keys = np.zeros(pairs.shape), np.zeros(pairs.shape)
    for i, j in np.argwhere(pairs):
        for weights, others in ((unlinked, same & (far == j - i)), (keys, same & (np.arange(len(pairs))[None] == j))):
            if others.any():
                weights[others] += 1 / others.sum()
    return unlinked, keys


def chance_of(relation: Relation, pairs: Pairs, tokens: Tokens) -> NDArray[np.float64]:
    """[T, T] by which attention is weighted to give the relation's chance share.

    The mean of the relation over all orders: of the keys for *place*, of the words within each text for *words*.
    """
    weights = np.zeros(pairs.shape)
    if relation.chance == "place":
        weights[:] = pairs.mean(axis=1, keepdims=True)
        return weights
    groups = [np.flatnonzero(tokens.words & (tokens.types == text)) for text in np.unique(tokens.types)]
    for rows in groups:
        for others in groups:
            block = pairs[np.ix_(rows, others)]
            if rows is others:
                diagonal = np.eye(len(rows), dtype=bool)
                off = block[~diagonal].mean() if len(rows) > 1 else 0.0
                weights[np.ix_(rows, others)] = np.where(diagonal, np.diag(block).mean(), off)
            else:
                weights[np.ix_(rows, others)] = block.mean() if block.size else 0.0
    return weights


@dataclass(frozen=True)
class RoleImportance(Result):
    """Heads whose first role this is, against all others, by importance.

    ``difference``: mean rank of their importance, in per cent of all heads (100 = the most important), minus that of
    the others, with Welch's 95 % interval over heads; NaN below two heads on either side.
    """

    role: str
    heads: tuple[HeadId, ...]
    difference: float
    low: float
    high: float
    q: float  # Benjamini-Hochberg over the roles


def importance_by_role(
    relations: Sequence[str], firsts: Mapping[HeadId, str], values: NDArray[np.float64]
) -> tuple[RoleImportance, ...]:
    """Every role that some head has as its first, against a score of the heads' importance [L, H]."""
    measured = np.isfinite(values)
    ranks = np.full(values.shape, np.nan)
    ranks[measured] = 100 * scipy.stats.rankdata(values[measured]) / measured.sum()
    rows, p_values = [], []
    for name in relations:
        heads = tuple(head for head, role in firsts.items() if role == name and measured[head])
        if not heads:
            continue
        of_role = np.zeros(values.shape, dtype=bool)
        for head in heads:
            of_role[head] = True
        inside, outside = ranks[of_role], ranks[~of_role & measured]
        difference, low, high, p = (float("nan"),) * 4
        if min(len(inside), len(outside)) > 1:
            test = scipy.stats.ttest_ind(inside, outside, equal_var=False)
            ends = test.confidence_interval(0.95)
            difference, p = float(inside.mean() - outside.mean()), float(test.pvalue)
            low, high = float(ends.low), float(ends.high)
        rows.append(RoleImportance(name, heads, difference, low, high, float("nan")))
        p_values.append(p)
    q_values = benjamini_hochberg(p_values)
    return tuple(replace(row, q=float(q)) for row, q in zip(rows, q_values, strict=True))


def importance_table(result: Sequence[RoleImportance], score: str) -> Table:
    """The comparison for readers."""

    def ends(row: RoleImportance) -> Ends:
        return max(row.low, -100.0), min(row.high, 100.0)  # no two ranks are further apart

    return Table.of(
        "roles_importance",
        (
            Column("role", value=attrgetter("role")),
            Column("heads", value=lambda row: len(row.heads)),
            Column("which", value=attrgetter("heads")),
            Column("rank against others", "%+.0f", attrgetter("difference"), ends=ends),
            Column("q", value=attrgetter("q")),
        ),
        result,
        caption=f"Do heads with a role matter more? Every head is ranked by {score}, from 0 (matters least) to 100 "
        "(most). The table has the mean rank of these heads minus that of all others; above 0 they matter more.",
    )


LEAST = 10  # examples that have a relation, below which it is not tested
TOKENS = 2048  # in one pass


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
    cut_off: str = ""  # how many texts are cut to the model's length, in words

    def _all(self, layer: int, head: int) -> list[Role]:
        """Every relation of a head, whether it is significant or not."""
        tables = (table[layer, head].tolist() for table in (self.share, self.baseline, self.q))
        return [Role(*row) for row in zip(self.relations, *tables, strict=True)]

    def of(self, layer: int, head: int) -> tuple[Role, ...]:
        """The roles of a head that are significant, the largest excess first."""
        significant = [role for role in self._all(layer, head) if role.q < SIGNIFICANT]
        return tuple(sorted(significant, key=lambda role: role.baseline - role.share))

    def records(self) -> list[dict[str, Any]]:
        """One row for each head and relation."""
        return [
            {"layer": layer, "head": head, "relation": r.name, "share": r.share, "baseline": r.baseline, "q": r.q}
            for layer, head in np.ndindex(self.share.shape[:2])
            for r in self._all(layer, head)
        ]

    def first(self) -> dict[HeadId, Role]:
        """The first role of every head that has one."""
        heads = [HeadId(*place) for place in np.ndindex(self.share.shape[:2])]
        return {head: roles[0] for head in heads if (roles := self.of(*head))}

    def against(self, score: str, values: NDArray[np.float64]) -> Roles:
        """This result with the importance of each role's heads, by a score [L, H]."""
        firsts = {head: role.name for head, role in self.first().items()}
        return replace(self, importance=score, by_importance=importance_by_role(self.relations, firsts, values))

    def extra(self) -> dict[str, Any]:
        return {
            "heads": {
                HeadId(*place).dotted: [
                    {"role": r.name, "share": r.share, "baseline": r.baseline, "q": r.q} for r in self._all(*place)
                ]
                for place in np.ndindex(self.share.shape[:2])
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

    The test is one-sided over the data's units: the mean of share − baseline against 0, by Student's t. Not for finding
    out what a head is *for*: a head may look somewhere and write nothing that matters.

    >>> import headviz
    >>> result = headviz.roles(headviz.load("demo", device="cpu"), headviz.load_task("demo", limit=12))
    >>> result.share.shape == (12, 12, len(result.relations)), result.n
    (True, 12)
    """
    require_model(clf)
    require_dataset(data)
    clf.check_maps()
    if samples is not None:
        require_size(samples)
        data = data.subset(limited(data, samples, seed=0))
    encodings = clf.encode(data.texts, data.pairs)
    if len(encodings) < LEAST:
        raise OptionError(f"Roles need at least {LEAST} examples; there are {len(encodings)}.")
    rare, grammar = rare_tokens(encodings), grammar_of(data.task)
    relations = RELATIONS if grammar is None else RELATIONS + grammar_relations(grammar[0])
    shares = np.full((len(encodings), len(relations), clf.num_layers, clf.num_heads), np.nan)
    bases = np.full_like(shares, np.nan)
    for members in tracked(_batches(encodings), progress, cancel):
        for i, attention in zip(members, _attention(clf, [encodings[i] for i in members]), strict=True):
            links = {}
            if grammar is not None:
                texts = (data.texts[i],) if data.pairs is None else (data.texts[i], data.pairs[i])
                links = linked_tokens(clf, len(encodings[i]), texts, grammar[1])
            shares[i], bases[i] = _shares(attention, Tokens.of(encodings[i], rare, links), relations)
    having = np.isfinite(shares).any(axis=(2, 3))  # [n, R] which examples have a relation
    share, base, p = (np.full((clf.num_layers, clf.num_heads, len(relations)), np.nan) for _ in range(3))
    for r, rows in enumerate(having.T):
        if rows.sum() < LEAST:
            continue
        of_examples, by_chance = shares[rows, r], bases[rows, r]
        share[..., r], base[..., r] = of_examples.mean(axis=0), by_chance.mean(axis=0)
        p[..., r] = _one_sided(of_examples - by_chance, data.units[rows])
    names = tuple(relation.name for relation in relations)
    cut = cut_off_sentence(sum(e.truncated for e in encodings), 0)
    examples = tuple(having.sum(axis=0).tolist())
    result = Roles(names, share, base, benjamini_hochberg(p), examples, len(encodings), data.task.title, cut_off=cut)
    if importance is None:
        return result
    scored = score_heads(clf, data, importance, label_order=label_order, cancel=cancel)
    return result.against(importance, scored.values)


def _one_sided(excess: NDArray[np.float64], units: NDArray) -> NDArray[np.float64]:
    """p of a mean above 0, tested over units; without any spread it is 0 or 1."""
    summary = mean(excess, units)
    with np.errstate(divide="ignore", invalid="ignore"):
        p = scipy.stats.t.sf(summary.values / summary.stderr, summary.rows - 1)
    flat = summary.stderr * np.sqrt(summary.rows) < 1e-12
    p_values: NDArray[np.float64] = np.where(flat, np.where(summary.values > 1e-9, 0.0, 1.0), p)
    return np.where(np.isnan(summary.values), np.nan, p_values)


def rare_tokens(encodings: Sequence[Encoding]) -> frozenset[int]:
    """The rarest kinds of token that together make up at most a tenth of the words of the data."""
    counts = Counter(i for e in encodings for i, special in zip(e.ids, e.special, strict=True) if not special)
    limit, total, rare = sum(counts.values()) / 10, 0, []
    for token, count in sorted(counts.items(), key=lambda item: (item[1], item[0])):
        total += count
        if total > limit:
            break
        rare.append(token)
    return frozenset(rare)


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
    call = clf.call(None, "eager", keep_probs=True)
    with torch.inference_mode(), gpu_products(clf.device):
        clf.forward(clf.collate(members), call)
    rows = []
    for n, encoding in enumerate(members):
        size = len(encoding)
        maps = np.full((clf.num_layers, clf.num_heads, size, size), np.nan)
        for layer, probs in enumerate(call.probs):
            maps[layer, list(clf.present.kept_in(layer))] = probs[n, :, :size, :size].double().cpu().numpy()
        rows.append(maps)
    return rows


def _shares(
    attention: NDArray[np.float64], tokens: Tokens, relations: Sequence[Relation]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Share and baseline [R, L, H] of one example, over the words that have such a key; NaN where none has."""
    share, base = np.full((2, len(relations), *attention.shape[:2]), np.nan)
    for r, relation in enumerate(relations):
        pairs = relation.pairs(tokens) & tokens.words[:, None]
        queries = int(pairs.any(axis=1).sum())
        if queries:
            grammar = relation.chance == "grammar"
            chances = grammar_chances(pairs, tokens) if grammar else (chance_of(relation, pairs, tokens),)
            share[r] = (attention * pairs).sum(axis=(2, 3)) / queries
            base[r] = np.max([(attention * chance).sum(axis=(2, 3)) / queries for chance in chances], axis=0)
    return share, base


# how it is shown ------------------------------------------------------------------------------


def run(request: Request) -> Roles:
    score, order = _importance(request.option("importance")), request.label_order
    return roles(request.clf, request.data, importance=score, label_order=order, **arguments(request, "samples"))


def _importance(score: str) -> str | None:
    return None if score == "none" else score


def figure(result: Roles) -> Figure:
    """How much more than by chance each head looks at each relation."""
    return relation_map(100 * (result.share - result.baseline), result.relations)


def view(result: Roles) -> View:
    heads = int(np.isfinite(result.share).any(axis=2).sum())
    firsts = list(result.first().items())
    best = in_order(firsts, [role.baseline - role.share for _, role in firsts], seed=0)
    rare = [name for name, n in zip(result.relations, result.examples, strict=True) if n < LEAST]
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
                lambda: figure(result),
                "Share of the words' attention minus chance, in points: blue more than by chance, orange less.",
            ),
            Table(
                "roles_table",
                ("head", "looks at", *columns("%.1f", "share, %", "chance, %"), "q"),
                [[head, role.name, 100 * role.share, 100 * role.baseline, role.q] for head, role in best],
                "The relation of each head with the largest excess over chance.",
                shortened=20,
                height=400,
            ),
            *([importance_table(result.by_importance, result.importance)] if result.by_importance else []),
        ),
        about=(
            ("data", f"{result.data}, {result.n:,} examples"),
            ("tested", f"{int(np.isfinite(result.q).sum()):,} pairs of head and relation"),
            ("not tested, in too few examples", ", ".join(rare) or "none"),
        ),
        note="What chance is: for places, attention that is spread evenly over the tokens; for the same and for rare "
        "words, the head's own attention with the words in another order; for grammar, what the head gives to other "
        "words as far apart or, if that is more, what other words give to the same word.",
    )


def recipe(options: Mapping[str, Any]) -> str:
    samples, score = (options.get(option.name, option.default) for option in (LOOKED_AT, IMPORTANCE))
    code = call("headviz.roles", Code("clf"), Code("data"), samples=samples, importance=_importance(score))
    return f"result = {code}"
