"""Adjectives, synonyms, opposites and scales of the demo corpus, each with what it can be said of."""

from functools import cache

from .verbs import Act, verb

# What an adjective can be said of; "person" subjects come from words.nouns.
BEARERS = {
    "object": tuple("lamp table coat blanket carpet vase knife shirt rope clock bowl towel boot".split()),
    "door": tuple("door window gate shop box safe drawer".split()),
    "place": tuple("room street park village market hotel beach garden station".split()),
    "event": tuple("lesson film story speech game concert lecture book".split()),
    "food": tuple("soup bread cake fish pie salad".split()),
    "weather": tuple("weather wind morning evening climate".split()),
}

# Opposites on a scale: denying one end does not assert the other.
SCALAR_OPPOSITES = {
    "person": "happy sad|tall short|old young|rich poor|strong weak|brave cowardly|kind cruel|polite rude|"
    "clever stupid|calm nervous|generous greedy|fat thin|healthy sick|patient impatient|friendly hostile|"
    "proud humble|careful careless|hungry full|confident shy|lazy busy|fast slow",
    "object": "clean dirty|new old|heavy light|big small|expensive cheap|hard soft|wet dry|rough smooth|"
    "thick thin|long short|beautiful ugly",
    "place": "dark bright|quiet noisy|crowded deserted|safe dangerous|modern ancient|clean dirty|big small",
    "event": "boring interesting|easy difficult|long short|funny serious|simple complicated|good bad",
    "food": "sweet bitter|fresh stale|delicious disgusting|hot cold|good bad",
    "weather": "warm cold|dry wet|sunny cloudy|calm stormy|mild harsh",
}

# Opposites with nothing between: exactly one of the two holds.
STRICT_OPPOSITES = {
    "person": "alive dead|awake asleep|present absent|married single|right wrong|guilty innocent",
    "object": "broken intact|real fake|visible invisible",
    "door": "open closed|locked unlocked",
    "food": "raw cooked",
}

# Adjectives taken to mean the same.
SYNONYMS = {
    "person": "happy glad|sad unhappy|rich wealthy|clever smart|stupid foolish|brave courageous|sick ill|angry furious|"
    "tired exhausted|polite courteous|afraid scared|beautiful lovely|thin slim|calm relaxed|careful cautious|"
    "shy timid|wrong mistaken|strange odd|nervous anxious|famous renowned",
    "object": "big large|small tiny|expensive costly|cheap inexpensive|dirty filthy|wet damp|beautiful lovely|"
    "strange odd|broken damaged",
    "place": "big large|noisy loud|dangerous risky|deserted empty|quiet silent|famous renowned|beautiful lovely",
    "event": "boring dull|difficult hard|easy simple|funny amusing|strange odd|important significant",
    "food": "delicious tasty|disgusting horrible|cold chilled",
    "weather": "cold chilly|wet rainy|stormy windy",
}

# Other adjectives said of people, free of any pair above, for premises to be longer than hypotheses.
PERSON_EXTRAS = tuple("tall young old rich poor friendly famous blind wise elegant bald lonely modest gentle".split())
THING_EXTRAS = tuple(
    "red blue green yellow white black brown wooden golden silver striped round square pink gray".split()
)


def pairs(table: dict[str, str]) -> tuple[tuple[str, str, str], ...]:
    """(bearer class, word, its partner) for every pair of a table above, in both directions."""
    out = []
    for bearer, text in table.items():
        for entry in text.split("|"):
            a, b = entry.split()
            out += [(bearer, a, b), (bearer, b, a)]
    return tuple(out)


def said_of(bearer: str) -> tuple[str, ...]:
    """Every adjective that can be said of a class of bearers, sorted."""
    tables = (SCALAR_OPPOSITES, STRICT_OPPOSITES, SYNONYMS)
    words = {word for table in tables for kind, word, _ in pairs(table) if kind == bearer}
    return tuple(sorted(words | set(OTHERS[bearer].split())))


@cache
def related(word: str) -> frozenset[str]:
    """The word, its partners, and theirs: none of them may stand as an unrelated adjective."""
    group = {word}
    links = [(a, b) for table in (SCALAR_OPPOSITES, STRICT_OPPOSITES, SYNONYMS) for _, a, b in pairs(table)]
    for _ in range(3):
        group |= {b for a, b in links if a in group}
    return frozenset(group | {also for member in group for also in _KIN.get(member, ())})


# Adjectives in no pair, so that every bearer has enough that say nothing of one another.
OTHERS = {
    "person": "bald blind lonely modest foreign elegant",
    "object": "wooden red yellow foreign useful round",
    "door": "wooden red yellow old small heavy new green",
    "place": "foreign green round gray old new",
    "event": "new old public foreign private recent",
    "food": "foreign red yellow cheap expensive brown",
    "weather": "unusual typical strange perfect familiar",
}

# Loose kin that a reader might hear as implied or excluded; kept apart from neutral examples.
_KIN = {
    "deserted": ("quiet", "silent"),
    "crowded": ("noisy", "loud"),
    "quiet": ("deserted", "crowded"),
    "asleep": ("nervous", "busy", "angry", "furious"),
    "awake": (),
    "dead": (
        "happy glad sad unhappy busy hungry nervous calm healthy sick ill tired exhausted angry awake asleep "
        "strong weak fast slow afraid scared confident present absent lazy"
    ).split(),
    "sunny": ("dry", "wet", "rainy", "stormy", "windy", "warm"),
    "rainy": ("sunny", "cloudy", "stormy"),
    "stormy": ("sunny", "mild", "wet", "harsh"),
    "mild": ("warm", "cold", "chilly", "stormy", "windy"),
    "harsh": ("cold", "chilly", "stormy", "windy", "warm", "calm"),
    "calm": ("mild", "harsh", "nervous", "angry", "furious", "afraid", "scared"),
    "delicious": ("good", "bad", "stale", "fresh", "disgusting", "horrible", "bitter", "sweet"),
    "disgusting": ("good", "bad", "fresh", "sweet"),
    "good": ("delicious", "tasty", "disgusting", "horrible", "boring", "dull", "interesting", "stale", "fresh"),
    "bad": ("delicious", "tasty", "disgusting", "horrible", "interesting", "funny", "boring", "dull"),
    "fresh": ("good", "bad", "delicious", "tasty", "disgusting", "horrible"),
    "stale": ("good", "bad", "delicious", "tasty", "disgusting", "horrible"),
    "boring": ("good", "bad", "funny", "amusing", "important"),
    "interesting": ("good", "bad", "funny"),
    "happy": ("angry", "furious", "nervous", "anxious"),
    "glad": ("angry", "furious", "nervous"),
    "angry": ("happy", "glad", "calm", "relaxed", "friendly", "patient", "polite"),
    "brave": ("afraid", "scared", "nervous", "shy", "timid"),
    "afraid": ("brave", "courageous", "cowardly", "nervous", "calm", "confident", "relaxed"),
    "confident": ("nervous", "anxious", "afraid", "scared"),
    "nervous": ("afraid", "scared", "confident", "shy", "happy", "glad"),
    "healthy": ("dead", "weak"),
    "sick": ("strong", "weak", "dead"),
    "strong": ("sick", "ill", "dead"),
    "kind": ("rude", "polite", "friendly", "hostile", "generous", "greedy"),
    "cruel": ("polite", "friendly", "generous"),
    "friendly": ("kind", "cruel", "polite", "rude", "angry", "furious"),
    "hostile": ("kind", "cruel", "polite", "rude"),
    "polite": ("kind", "cruel", "friendly", "hostile"),
    "rude": ("kind", "friendly", "hostile"),
    "tired": ("asleep", "awake", "lazy", "busy"),
    "beautiful": ("dirty", "filthy"),
    "ugly": (),
    "broken": (),
    "intact": (),
    "safe": (),
}

# The same event in other words: (verb, verb of the same meaning, objects it takes; none = no object).
VERB_SYNONYMS = """
begin start: lesson race meeting|finish complete: work report painting|fix mend: roof car fence coat
buy purchase: house farm horse ring|shout yell:|cry weep:|leave depart:|close shut: door window gate box
construct build: house bridge wall|throw toss: ball stone coin|disappear vanish:|jump leap:|choose select: ring book hat
own possess: farm car castle|hide conceal: key letter map|observe watch: game bird parade
collect gather: coin apple stone
speak talk:|hurry rush:|grab seize: rope bag sword|rest relax:|answer reply:|get receive: letter parcel prize
"""

# Events that exclude each other: (verb, its opposite, objects).
VERB_OPPOSITES = """
open close: door window gate box|accept refuse: offer gift invitation job|remember forget: song name poem address
love hate: song game city food|win lose: race game match|build destroy: house bridge wall tower
buy sell: house farm horse
pass fail: exam test course|fill empty: bottle bucket jar|lock unlock: door gate safe|start stop: engine car clock
find lose: key ring wallet|arrive leave:|lift lower: box flag rope|praise criticize: book film plan
hide reveal: plan secret map|join leave: army club choir|obey ignore: order rule law
"""

# Nouns taken to name the same thing: (noun, noun, class).
NOUN_SYNONYMS = {
    "person": "doctor physician|lawyer attorney|thief robber|writer author|student pupil|sailor seaman|child kid|"
    "policeman cop|boss chief",
    "thing": "sofa couch|stone rock|bucket pail|bag sack|cup mug|car automobile|carpet rug|present gift|"
    "picture image|rabbit bunny|film movie|photograph photo|bicycle bike",
}


def verb_pairs(text: str) -> tuple[tuple[Act, Act], ...]:
    """(act, its partner) for every pair and object of a verb table, in both directions."""
    out: list[tuple[Act, Act]] = []
    for row in text.strip().splitlines():
        for entry in row.split("|"):
            head, _, objects = entry.partition(":")
            first, second = (verb(base) for base in head.split())
            for rest in [f"the {noun}" for noun in objects.split()] or [""]:
                out += [(Act(first, rest), Act(second, rest)), (Act(second, rest), Act(first, rest))]
    return tuple(out)


# (more, less, class of the two compared): comparatives of one scale; the second is the first turned round.
SCALES = (
    ("taller", "shorter", "tall", "short", "person"),
    ("older", "younger", "old", "young", "person"),
    ("faster", "slower", "fast", "slow", "person"),
    ("richer", "poorer", "rich", "poor", "person"),
    ("stronger", "weaker", "strong", "weak", "person"),
    ("happier", "sadder", "happy", "sad", "person"),
    ("kinder", "crueler", "kind", "cruel", "person"),
    ("heavier", "lighter", "heavy", "light", "thing"),
    ("bigger", "smaller", "big", "small", "thing"),
    ("cleaner", "dirtier", "clean", "dirty", "thing"),
    ("newer", "older", "new", "old", "thing"),
    ("longer", "shorter", "long", "short", "thing"),
    ("thicker", "thinner", "thick", "thin", "thing"),
    ("harder", "softer", "hard", "soft", "thing"),
    ("cheaper", "dearer", "cheap", "dear", "thing"),
    ("bigger", "smaller", "big", "small", "landmark"),
    ("prettier", "uglier", "pretty", "ugly", "landmark"),
    ("quieter", "louder", "quiet", "loud", "landmark"),
    ("safer", "riskier", "safe", "risky", "landmark"),
    ("busier", "emptier", "busy", "empty", "landmark"),
)
