"""A second opinion on every label of the demo corpus, from the two sentences alone.

Sentences are read back with their own small grammar into statements about possible worlds; all small worlds are
then tried. A hypothesis true in every world where the premise is true is entailed; true in none, contradicted.
Nothing here calls the generator's rules; only its word lists are shared.
"""

import re
from collections.abc import Callable, Iterable
from itertools import product
from typing import Any

from tools.demo import grammar
from tools.demo.phenomena import polarity
from tools.demo.words import adjectives, nouns, verbs

World = Any
Statement = Callable[[World], bool]


def verdict(worlds: Iterable[World], premise: Statement, hypothesis: Statement) -> str:
    """The label that the worlds give."""
    outcomes = {hypothesis(world) for world in worlds if premise(world)}
    assert outcomes, "no world makes the premise true"
    if outcomes == {True}:
        return "entailment"
    return "contradiction" if outcomes == {False} else "neutral"


# --- reading sentences -------------------------------------------------------------------------------------------

_AUXILIARIES = set("did does do will has have was were is are be been being".split())
_LEMMAS: dict[str, set[str]] = {}
_ALL_VERBS = {v.base: v for v in (*verbs.PERSON_VERBS, *verbs.LOOK_VERBS, *verbs.HANDLE_VERBS)}
_ALL_VERBS |= {a.verb.base: a.verb for a in (*verbs.ACTS_ALONE, *verbs.ACTS_ON_THINGS)}
for _table in (adjectives.VERB_SYNONYMS, adjectives.VERB_OPPOSITES):
    _ALL_VERBS |= {a.verb.base: a.verb for a, _ in adjectives.verb_pairs(_table)}
for _v in (*polarity._DONE, *polarity._NOT_DONE, *polarity._OPEN, *polarity._KNOWING, *polarity._THINKING):
    _ALL_VERBS[_v.base] = _v
for _base in ("like", "lend", "borrow", "give", "send", "get", "receive", "sell", "buy"):
    _ALL_VERBS[_base] = verbs.verb(_base)
for _v in _ALL_VERBS.values():
    for _form in _v:
        _LEMMAS.setdefault(_form, set()).add(_v.base)

_SETTINGS = sorted(
    {p.lower() for p in (*nouns.PAST_TIMES, *nouns.FUTURE_TIMES, *nouns.PLACES, *grammar.MANNERS)},
    key=len,
    reverse=True,
)
_ASIDE = "|".join(grammar.ASIDE_PEOPLE)
_EXTRA = "|".join((*adjectives.PERSON_EXTRAS, *adjectives.THING_EXTRAS, "new", "big", "little"))
_NOUNS = sorted(
    {*nouns.PEOPLE, *nouns.THINGS, *nouns.LANDMARKS, *(w for b in adjectives.BEARERS.values() for w in b)}
    | {w for _, w, _ in adjectives.pairs(adjectives.NOUN_SYNONYMS)},
    key=len,
    reverse=True,
)


def plain(text: str, settings: bool = True) -> str:
    """Lower case, without what decides nothing: full descriptions of people, settings, asides."""
    text = re.sub(r"n't\b", " not", text.lower().rstrip(".").replace("won't", "will not"))
    text = re.sub(rf"(?:, and|, but|\.) (?:{_ASIDE}) .*$", "", text)
    text = re.sub(rf"^(?:{_ASIDE}) .*?, and ", "", text)
    text = re.sub(r" (?:who|that) (?:lives next door|works here|came from abroad|looked tired)", "", text)
    text = re.sub(rf" from the (?:{'|'.join(nouns.HOMES)})(?= |$)(?<!the book from the)", _only_after_person, text)
    text = re.sub(r" with the (?:hat|bag|umbrella|stick|camera|beard)\b", "", text)
    text = re.sub(rf"\bthe (?:{_EXTRA}) (?=(?:{'|'.join(_NOUNS)})\b)", "the ", text)
    if settings:
        for phrase in _SETTINGS:
            text = re.sub(rf"^{phrase}, ", "", text)
            text = re.sub(rf" {phrase}$", "", text)
            text = re.sub(rf" {phrase}(?=, | and )", "", text)
    return text.strip()


def _only_after_person(match: re.Match[str]) -> str:
    before = match.string[: match.start()].split()
    return "" if len(before) > 1 and before[-1] in nouns.PEOPLE else match[0]


def read(clause: str) -> tuple[bool, str, str, str]:
    """(affirmed, subject, verb, the rest) of one clause; a passive is turned into its active."""
    words = clause.split()
    start = next(
        i
        for i, w in enumerate(words)
        if w in _AUXILIARIES
        or w == "never"
        or (i > 0 and words[i - 1] not in ("the", "every", "each") and w in _LEMMAS)
    )
    subject, group = " ".join(words[:start]), words[start:]
    affirmed = True
    passive = "by" in group and group[0] in _AUXILIARIES
    while group[0] in _AUXILIARIES or group[0] in ("not", "never"):
        if group[0] in ("not", "never"):
            affirmed = not affirmed
        group = group[1:]
    lemma = min(_LEMMAS[group[0]])
    rest = " ".join(group[1:])
    if passive:
        return affirmed, rest.removeprefix("by "), lemma, subject
    return affirmed, subject, lemma, rest


def atoms(*names: Any) -> list[dict[Any, bool]]:
    """All ways to make these atoms true or false."""
    unique = list(dict.fromkeys(names))
    return [dict(zip(unique, values, strict=True)) for values in product((False, True), repeat=len(unique))]


# --- one reading per phenomenon ----------------------------------------------------------------------------------

_CONVERSE = {"sell": "buy", "lend": "borrow", "give": "receive", "send": "get"}


def _fact(clause: str) -> tuple[bool, tuple[str, ...]]:
    affirmed, subject, lemma, rest = read(clause)
    if lemma in _CONVERSE and " to " in rest:
        thing, taker = rest.split(" to ")
        return affirmed, (taker, _CONVERSE[lemma], thing, subject)
    if lemma in _CONVERSE.values() and " from " in rest:
        thing, giver = rest.split(" from ")
        return affirmed, (subject, lemma, thing, giver)
    return affirmed, (subject, lemma, rest)


def role_swap(premise: str, hypothesis: str) -> str:
    p, h = _fact(plain(premise)), _fact(plain(hypothesis))
    return verdict(atoms(p[1], h[1]), lambda w: w[p[1]] == p[0], lambda w: w[h[1]] == h[0])


def relative_clause(premise: str, hypothesis: str) -> str:
    p, h = plain(premise), _fact(plain(hypothesis))
    head, marker, rest = re.match(r"(the \w+) (who|whom|that) (.*)", p).groups()  # type: ignore[union-attr]
    words = rest.split()
    facts = []
    for cut in range(1, len(words)):
        inner, outer = " ".join(words[:cut]), " ".join(words[cut:])
        try:
            matrix = read(f"{head} {outer}")
            if (words[cut] not in _AUXILIARIES and words[cut] not in _LEMMAS) or words[cut - 1] == "the":
                continue
            subject_reading = words[0] in _AUXILIARIES or words[0] in _LEMMAS
            if marker == "whom" or (marker == "that" and not subject_reading):
                clause = read(f"{inner} {head}")
                if clause[3] != head or inner.split()[-1] not in _LEMMAS or inner.split()[-1] in _AUXILIARIES:
                    continue
            else:
                clause = read(f"{head} {inner}")
                if not ((clause[3].startswith("the ") and len(clause[3].split()) == 2) or len(clause[3].split()) <= 1):
                    continue
            facts = [(matrix[0], matrix[1:]), (clause[0], clause[1:])]
            break
        except (StopIteration, KeyError, IndexError):
            continue
    assert facts, p
    return verdict(
        atoms(h[1], *(f[1] for f in facts)), lambda w: all(w[f[1]] == f[0] for f in facts), lambda w: w[h[1]] == h[0]
    )


def conjunction(premise: str, hypothesis: str) -> str:
    p, h = plain(premise), read(plain(hypothesis))
    who, what = h[1], f"{h[2]} {h[3]}".strip()
    acts_alike = what in _lemmatized(p) or (h[3] and f" {h[3]}" in p and h[2] in _lemmatized(p).split())
    if " or " in p or who not in p or not acts_alike:
        return "neutral"
    if " but " in p:
        first, second = p.split(" but ")
        place = who if _people_joined(p) else (h[3] if h[3] and f" {h[3]}" in p else what)
        holds = place in first or place in _lemmatized(first)
        assert holds != (place in second or place in _lemmatized(second)), p
    else:
        holds = "neither" not in p
    return "entailment" if holds == h[0] else "contradiction"


def _lemmatized(text: str) -> str:
    """Each verb form replaced by its base form."""
    return " ".join(min(_LEMMAS.get(word, {word})) for word in text.replace(",", "").split())


def _people_joined(premise: str) -> bool:
    """Whether 'but' stands between two people rather than between two acts or things."""
    second = premise.split(" but ")[1]
    if second.startswith("not "):
        noun = second.removeprefix("not ").split()
        word = noun[1] if noun[0] in ("the", "a", "an") else noun[0]
        return word in nouns.PEOPLE + nouns.ANIMALS or word.capitalize() in nouns.NAMES
    return second.split()[-1] == "not"


_SAME: dict[str, str] = {}
for _a, _b in [
    *((a, b) for table in (adjectives.SYNONYMS, adjectives.NOUN_SYNONYMS) for _, a, b in adjectives.pairs(table)),
    *((a.verb.base, b.verb.base) for a, b in adjectives.verb_pairs(adjectives.VERB_SYNONYMS)),
]:
    _old, _new = _SAME.setdefault(_b, _b), _SAME.setdefault(_a, _a)
    _SAME = {word: _new if group == _old else group for word, group in _SAME.items()}


def _copular(text: str) -> tuple[str, bool, list[str]] | None:
    """(subject, affirmed, adjectives) of 'the box was not red and heavy'; None for other sentences."""
    pattern = (
        r"(.*?) (?:(?:is|was|will)( not)?(?: be)?|(?:(?:did|does)( not) )?(?:seem|look|seems|looks|seemed|looked))"
        r" ((?:[\w-]+)(?: and [\w-]+)?)"
    )
    result = re.fullmatch(pattern, text)
    if not result:
        return None
    words = result[4].split(" and ")
    if any(word not in _ADJECTIVES for word in words):
        return None
    return re.sub(r"^(the \w+) of .*", r"\1", result[1]), not (result[2] or result[3]), words


_ADJECTIVES = {w for bearer in adjectives.OTHERS for w in adjectives.said_of(bearer)}


def synonym(premise: str, hypothesis: str) -> str:
    def parse(text: str) -> tuple[bool, list[tuple[str, ...]]]:
        if result := _copular(text):
            return result[1], [(result[0], _SAME.get(word, word)) for word in result[2]]
        affirmed, *content = read(text)
        words = " ".join(content).split()
        return affirmed, [tuple(_SAME.get(word, word) for word in words)]

    (given, facts), (said, (fact,)) = parse(plain(premise)), parse(plain(hypothesis))
    if fact not in facts:
        return "neutral"
    return "entailment" if given == said else "contradiction"


_OPPOSITE = {(k, a): b for t in (adjectives.SCALAR_OPPOSITES,) for k, a, b in adjectives.pairs(t)}
_STRICTLY = {(k, a): b for k, a, b in adjectives.pairs(adjectives.STRICT_OPPOSITES)}
_UNDO = {}
for _x, _y in adjectives.verb_pairs(adjectives.VERB_OPPOSITES):
    _UNDO.setdefault((_x.verb.base, _x.rest), set()).add((_y.verb.base, _y.rest))


def antonym(premise: str, hypothesis: str) -> str:
    p, h = _copular(plain(premise)), _copular(plain(hypothesis))
    if p and h:
        word = h[2][0]
        kind = next(k for k in adjectives.OTHERS if (k, word) in {**_OPPOSITE, **_STRICTLY} and _bears(k, h[0]))
        strict, opposite = (kind, word) in _STRICTLY, {**_OPPOSITE, **_STRICTLY}[kind, word]
        worlds = [(v, others) for v in ((-1, 1) if strict else (-1, 0, 1)) for others in (False, True)]

        def holds(world: tuple[int, bool], adjective: str) -> bool:
            return world[0] == 1 if adjective == word else world[0] == -1 if adjective == opposite else world[1]

        return verdict(worlds, lambda w: all(holds(w, a) for a in p[2]) == p[1], lambda w: holds(w, word) == h[1])
    affirmed, who, lemma, rest = read(plain(hypothesis))
    given = [read(piece if i == 0 else f"{who} {piece}") for i, piece in enumerate(plain(premise).split(" and "))]
    target = lemma, rest
    for said, subject, verb, what in given:
        assert subject == who
        if (verb, what) == target:
            return "entailment" if said == affirmed else "contradiction"
        if (verb, what) in _UNDO[target] and said:
            return "contradiction" if affirmed else "entailment"
    return "neutral"


def _bears(kind: str, subject: str) -> bool:
    noun = subject.split()[-1]
    if kind == "person":
        return noun in (*nouns.PEOPLE, "child") or noun.capitalize() in nouns.NAMES
    return noun in adjectives.BEARERS[kind]


_MEMBERS = {**{k: set(v) for k, v in nouns.KINDS.items()}}
for _kind, _top in nouns.ABOVE_KINDS.items():
    _MEMBERS.setdefault(_top, set()).update(_MEMBERS[_kind] | {_kind})
_ONE = {nouns.plural(n): n for n in {*_MEMBERS, *(m for v in _MEMBERS.values() for m in v)}}


def hypernym(premise: str, hypothesis: str) -> str:
    def parse(text: str) -> tuple[bool, list[str]]:
        affirmed = not re.search(r" not | no ", f" {text} ")
        result = re.findall(r"\b(?:an?|some|any|no) (?:\w+ )??(\w+)(?= and |$)", text)
        assert result, text
        return affirmed, [_ONE.get(word, word) for word in result]

    (given, some), (said, (noun,)) = parse(plain(premise)), parse(plain(hypothesis))
    mentioned = {*some, noun}
    leaves = sorted({leaf for word in mentioned for leaf in ({word} if word not in _MEMBERS else {f"other {word}"})})
    worlds = atoms(*leaves)

    def holds(world: dict[str, bool], word: str) -> bool:
        below = {leaf for leaf in leaves if leaf.removeprefix("other ") in _MEMBERS.get(word, set())}
        return any(world[leaf] for leaf in below | ({word, f"other {word}"} & set(leaves)))

    return verdict(worlds, lambda w: all(holds(w, x) == given for x in some), lambda w: holds(w, noun) == said)


_ANYONE = ("nobody", "no one", "somebody", "someone", "everybody", "everyone", "not everybody", "not everyone")


def negation(premise: str, hypothesis: str) -> str:
    def parse(text: str) -> tuple[Callable[[dict[Any, bool], list[str]], bool], tuple[str, str], str]:
        text, flip = plain(text), False
        if result := re.match(r"it is (not true|true|false) that (.*)", text):
            flip, text = result[1] != "true", result[2]
        text = re.sub(r"^not (every\w+)", r"not-\1", text).replace("no one", "no-one")
        affirmed, subject, lemma, rest = read(text)
        act = (lemma, rest)

        def truth(world: dict[Any, bool], persons: list[str]) -> bool:
            values = [world[person, act] for person in persons]
            if subject in ("nobody", "no-one"):
                value = not any(values)
            elif subject in ("somebody", "someone"):
                value = any(values)
            elif subject in ("everybody", "everyone"):
                value = all(values)
            elif subject.startswith("not-"):
                value = not all(values)
            else:
                value = world[subject, act]
            return (value == affirmed) != flip

        return truth, act, subject

    (p, act_p, who_p), (h, act_h, who_h) = parse(premise), parse(hypothesis)
    special = {w.replace(" ", "-") for w in _ANYONE}
    persons = [who for who in dict.fromkeys((who_p, who_h)) if who not in special] + ["another", "a third"]
    worlds = atoms(*product(persons, {act_p, act_h}))
    return verdict(worlds, lambda w: p(w, persons), lambda w: h(w, persons))


# what follows 'to' or 'that': True = so, False = not so, None = open; (under an affirmed verb, under a denied one)
_IMPLIES = {
    "manage": (True, False),
    "remember to": (True, False),
    "fail": (False, True),
    "forget to": (False, True),
    "refuse": (False, None),
    "neglect": (False, None),
}
_OPEN = set("want hope plan try promise offer decide expect think believe say guess fear claim".split())


def veridical(premise: str, hypothesis: str) -> str:
    p, h = plain(premise), read(plain(hypothesis))
    wrongly = " wrongly " in p
    p = p.replace(" wrongly ", " ")
    if " that " in p:
        outer, inner = p.split(" that ", 1)
        affirmed, _, lemma, _ = read(outer)
        inner = re.sub(r"\bhad not (\w+)", lambda m: f"did not {min(_LEMMAS[m[1]])}", inner)
        inside = read(inner.replace(" had ", " "))
        if wrongly:
            so: bool | None = False
        else:
            so = None if lemma in _OPEN else True
    else:
        outer, inner = p.split(" to ", 1)
        affirmed, subject, lemma, _ = read(outer)
        inside = read(f"{subject} {inner}")
        if lemma in _OPEN:
            so = None
        else:
            so = _IMPLIES[lemma if lemma in _IMPLIES else f"{lemma} to"][not affirmed]
    assert inside[1:] == h[1:], (inside, h)
    if so is None:
        return "neutral"
    return "entailment" if (inside[0] == so) == h[0] else "contradiction"


_COUNT_WORDS = {
    "all": ("all of the", "all the", "every", "each"),
    "most": ("most of the", "most"),
    "some": ("some of the", "some", "at least one"),
    "no": ("none of the", "not one of the", "no"),
    "not all": ("not all of the", "not all the", "not every"),
}
_SINGULAR = {nouns.plural(n): n for n in (*nouns.PEOPLE, *nouns.ANIMALS, "child", "pupil")}


def quantifier(premise: str, hypothesis: str) -> str:
    def parse(text: str) -> tuple[str, str, tuple[str, str]]:
        name, words = max(
            ((n, w) for n, all_words in _COUNT_WORDS.items() for w in all_words if text.startswith(w + " ")),
            key=lambda pair: len(pair[1]),
        )
        noun, rest = text.removeprefix(words + " ").split(" ", 1)
        _, _, lemma, what = read(f"they {rest}")
        return name, _SINGULAR.get(noun, noun), (lemma, what)

    def holds(name: str, k: int, n: int) -> bool:
        return {"all": k == n, "most": 2 * k > n, "some": k > 0, "no": k == 0, "not all": k < n}[name]

    parts = [parse(part) for part in plain(premise).split(", and ")]
    h = parse(plain(hypothesis))
    keys = list(dict.fromkeys((noun, act) for _, noun, act in [*parts, h]))
    worlds = [
        (n, dict(zip(keys, ks, strict=True))) for n in (1, 2, 3, 4, 5) for ks in product(range(n + 1), repeat=len(keys))
    ]
    return verdict(
        worlds,
        lambda w: all(holds(name, w[1][noun, act], w[0]) for name, noun, act in parts),
        lambda w: holds(h[0], w[1][h[1], h[2]], w[0]),
    )


def number(premise: str, hypothesis: str) -> str:
    pattern = re.compile(
        rf"(exactly |only |at least |at most |more than |fewer than |)\b({'|'.join(nouns.NUMBERS)}) (\w+)"
    )

    def parse(text: str) -> list[tuple[str, int, str]]:
        result = pattern.search(text)
        assert result, text
        frame = f"{text[: result.start()]}# {result[3]}{text[result.end() :]}"
        return [(result[1].strip(), nouns.NUMBERS.index(result[2]) + 1, frame)]

    def holds(form: str, n: int, k: int) -> bool:
        return {
            "": k == n,
            "exactly": k == n,
            "only": k == n,
            "at least": k >= n,
            "at most": k <= n,
            "more than": k > n,
            "fewer than": k < n,
        }[form]

    p = [part for piece in re.sub(r", but no \w+", "", plain(premise)).split(", and ") for part in parse(piece)]
    ((form, n, frame),) = parse(plain(hypothesis))
    frames = list(dict.fromkeys([frame, *(f for _, _, f in p)]))
    worlds = [dict(zip(frames, ks, strict=True)) for ks in product(range(16), repeat=len(frames))]
    return verdict(worlds, lambda w: all(holds(f, m, w[x]) for f, m, x in p), lambda w: holds(form, n, w[frame]))


_MOMENTS = ("in the morning", "at noon", "in the afternoon", "in the evening", "at midnight")


def temporal(premise: str, hypothesis: str) -> str:
    calendar = ([f"on {d.lower()}" for d in nouns.WEEKDAYS], [f"in {m.lower()}" for m in nouns.MONTHS], list(_MOMENTS))

    def event(text: str) -> tuple[str, str]:
        text = plain(text, settings=False).removesuffix(" too")
        when = ""
        for phrases in calendar:
            for phrase in phrases:
                if text.endswith(" " + phrase):
                    text, when = text.removesuffix(" " + phrase), phrase
        return str(read(text)), when

    def order(text: str) -> tuple[str, str, str]:
        text = text.rstrip(".")
        text = text[0].lower() + text[1:]
        for pattern, relation in (
            (r"it is true that (.*) and that (.*)", "?"),
            (r"before (.*), (.*)", ">"),
            (r"after (.*), (.*)", "<"),
            (r"while (.*), (.*)", "="),
            (r"first (.*), and (?:then|later) (.*)", "<"),
            (r"(.*), and then (.*)", "<"),
            (r"(.*), then (.*)", "<"),
            (r"(.*)\. later, (.*)", "<"),
            (r"(.*)\. earlier, (.*)", ">"),
            (r"(.*)\. also, (.*)", "?"),
            (r"(.*) before (.*)", "<"),
            (r"(.*) after (.*)", ">"),
            (r"(.*) earlier than (.*)", "<"),
            (r"(.*) later than (.*)", ">"),
            (r"(.*) while (.*)", "="),
            (r"(.*) at the same time as (.*)", "="),
            (r"(.*) on the same day as (.*)", "?"),
            (r"(.*), but (.*) too", "?"),
            (r"(.*), and (.*)", "&"),
            (r"(.*) and (.*)", "?"),
            (r"(.*)\. (.*)", "?"),
        ):
            if result := re.fullmatch(pattern, text, flags=re.IGNORECASE):
                (a, when_a), (b, when_b) = event(result[1]), event(result[2])
                if relation == "&":
                    relation = "?"
                    for phrases in calendar:
                        if when_a in phrases and when_b in phrases and when_a != when_b:
                            relation = "<" if phrases.index(when_a) < phrases.index(when_b) else ">"
                return a, relation, b
        raise AssertionError(text)

    p, h = order(premise), order(hypothesis)
    assert {p[0], p[2]} == {h[0], h[2]}, (p, h)
    tests = {"<": int.__lt__, ">": int.__gt__, "=": int.__eq__, "?": lambda a, b: True}
    worlds = [dict(zip((h[0], h[2]), t, strict=True)) for t in product(range(2), repeat=2)]
    return verdict(worlds, lambda w: tests[p[1]](w[p[0]], w[p[2]]), lambda w: tests[h[1]](w[h[0]], w[h[2]]))


_SPACE = {
    "above": ("z", 1),
    "over": ("z", 1),
    "below": ("z", -1),
    "under": ("z", -1),
    "beneath": ("z", -1),
    "to the left of": ("x", -1),
    "left of": ("x", -1),
    "to the right of": ("x", 1),
    "right of": ("x", 1),
    "in front of": ("y", -1),
    "behind": ("y", 1),
    "north of": ("n", 1),
    "south of": ("n", -1),
    "east of": ("e", 1),
    "west of": ("e", -1),
    "near": ("d", 0),
    "close to": ("d", 0),
    "next to": ("d", 0),
    "far from": ("d", 1),
    "far away from": ("d", 1),
}


def spatial(premise: str, hypothesis: str) -> str:
    relations = "|".join(sorted(_SPACE, key=len, reverse=True))

    def parse(text: str) -> tuple[str, str, int, str, bool]:
        result = re.fullmatch(rf"the (.*?) (?:is|was|are|were)( not)? ({relations}) the (.*)", text)
        assert result, text
        axis, side = _SPACE[result[3]]
        return result[1].split()[-1], axis, side, result[4].split()[-1], not result[2]

    parts, h = [parse(t) for t in plain(premise, False).split(", and ")], parse(plain(hypothesis, False))
    things = sorted({t for s in (*parts, h) for t in (s[0], s[3])})
    axes = sorted({s[1] for s in (*parts, h)})
    keys = [(t, a) for t in things for a in axes if a != "d"]
    pairs = [frozenset(p) for p in {frozenset((a, b)) for a in things for b in things if a < b}] if "d" in axes else []

    def holds(world: dict[Any, int], said: tuple[str, str, int, str, bool]) -> bool:
        one, axis, side, two, affirmed = said
        if axis == "d":
            return (world[frozenset((one, two))] == side) == affirmed
        return ((world[one, axis] - world[two, axis]) * side > 0) == affirmed

    spans = [range(3)] * len(keys) + [range(3)] * len(pairs)
    worlds = [dict(zip([*keys, *pairs], values, strict=True)) for values in product(*spans)]
    return verdict(worlds, lambda w: all(holds(w, s) for s in parts), lambda w: holds(w, h))


def comparative(premise: str, hypothesis: str) -> str:
    degree: dict[tuple[str, str], tuple[str, int]] = {}
    for more, less, up, down, bearer in adjectives.SCALES:
        for word, way in ((more, 1), (less, -1), (up, 1), (down, -1)):
            degree[bearer, word] = f"{more}/{less}", way

    def bearer_of(noun: str) -> str:
        if noun.split()[-1] in nouns.PEOPLE or noun.capitalize() in nouns.NAMES:
            return "person"
        return "thing" if noun.split()[-1] in scale_things else "landmark"

    scale_things = nouns.THINGS

    def parse(text: str) -> list[tuple[str, str, Callable[[int], bool], str]]:
        tense = r"(?:is|was|will)"
        if result := re.fullmatch(rf"(.*?) {tense}( not)?(?: be)? (?:much )?(\w+er) than (.*)", text):
            kind = bearer_of(result[1])
            if (kind, result[3]) not in degree:
                kind = "landmark" if kind == "thing" else "thing"
            scale, way = degree[kind, result[3]]
            return [(result[1], scale, lambda d: (d * way > 0) == (not result[2]), result[4])]
        if result := re.fullmatch(rf"(.*?) {tense}(?: be)? less (\w+) than (.*)", text):
            scale, way = _degree(degree, bearer_of(result[1]), result[2])
            return [(result[1], scale, lambda d: d * way < 0, result[3])]
        if result := re.fullmatch(rf"(.*?) {tense} not(?: be)? as (\w+) as (.*)", text):
            scale, way = _degree(degree, bearer_of(result[1]), result[2])
            return [(result[1], scale, lambda d: d * way < 0, result[3])]
        if result := re.fullmatch(rf"(.*?) {tense}(?: be)? as (\w+) as (.*)", text):
            scale, _ = _degree(degree, bearer_of(result[1]), result[2])
            return [(result[1], scale, lambda d: d == 0, result[3])]
        assert re.fullmatch(rf"(.*?) {tense}(?: be)? \w+(?: too)?", text), text
        return []

    parts = [s for t in plain(premise).split(", and ") for s in parse(t)]
    (h,) = parse(plain(hypothesis))
    keys = sorted({(t, s[1]) for s in (*parts, h) for t in (s[0], s[3])})
    worlds = [dict(zip(keys, v, strict=True)) for v in product(range(3), repeat=len(keys))]

    def holds(w: dict[Any, int], s: tuple[str, str, Callable[[int], bool], str]) -> bool:
        return s[2](w[s[0], s[1]] - w[s[3], s[1]])

    return verdict(worlds, lambda w: all(holds(w, s) for s in parts), lambda w: holds(w, h))


def _degree(table: dict[tuple[str, str], tuple[str, int]], bearer: str, word: str) -> tuple[str, int]:
    for kind in (bearer, "thing", "landmark", "person"):
        if (kind, word) in table:
            return table[kind, word]
    raise KeyError(word)


CHECKS = {
    "synonym": synonym,
    "hypernym": hypernym,
    "antonym": antonym,
    "role-swap": role_swap,
    "relative-clause": relative_clause,
    "conjunction": conjunction,
    "negation": negation,
    "veridical": veridical,
    "quantifier": quantifier,
    "number": number,
    "temporal": temporal,
    "spatial": spatial,
    "comparative": comparative,
}
