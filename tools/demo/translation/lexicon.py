"""The words of the translation demo: English on the left, Veshan on the right.

Veshan is invented and perfectly regular. A noun has one of three genders, named after the vowel that its
article and adjectives take. The gender says nothing about the meaning and shows in no ending: it has to be learnt
word by word. All else follows from the rules in ``veshan.py``.
"""

from __future__ import annotations

from typing import NamedTuple

A, E, O = ("a", "e", "o")  # noqa: E741
PERSON, ANIMAL, THING, PLACE = "person", "animal", "thing", "place"


class Noun(NamedTuple):
    singular: str
    plural: str
    stem: str
    gender: str
    kind: str


class Name(NamedTuple):
    """A person's name; it is the same in both languages, but Veshan puts an article before it."""

    name: str
    gender: str


class Adjective(NamedTuple):
    english: str
    stem: str
    comparative: str | None
    only_living: bool = False


class Verb(NamedTuple):
    base: str
    third: str
    past: str
    participle: str
    stem: str


class Adverb(NamedTuple):
    english: str
    veshan: str
    tenses: tuple[str, ...]  # those it goes with


NOUNS = (
    Noun("teacher", "teachers", "rebag", E, PERSON),
    Noun("doctor", "doctors", "klam", A, PERSON),
    Noun("farmer", "farmers", "fokand", A, PERSON),
    Noun("painter", "painters", "klad", O, PERSON),
    Noun("student", "students", "klokak", E, PERSON),
    Noun("judge", "judges", "vetil", A, PERSON),
    Noun("nurse", "nurses", "klut", A, PERSON),
    Noun("baker", "bakers", "gram", E, PERSON),
    Noun("sailor", "sailors", "skumork", E, PERSON),
    Noun("singer", "singers", "penor", A, PERSON),
    Noun("king", "kings", "klimor", O, PERSON),
    Noun("queen", "queens", "sarik", E, PERSON),
    Noun("soldier", "soldiers", "vaf", O, PERSON),
    Noun("neighbour", "neighbours", "klimult", O, PERSON),
    Noun("girl", "girls", "zap", E, PERSON),
    Noun("boy", "boys", "stazirk", E, PERSON),
    Noun("woman", "women", "stot", A, PERSON),
    Noun("man", "men", "zidod", A, PERSON),
    Noun("child", "children", "vlikoz", E, PERSON),
    Noun("gardener", "gardeners", "fesik", E, PERSON),
    Noun("dog", "dogs", "grit", O, ANIMAL),
    Noun("cat", "cats", "tegen", O, ANIMAL),
    Noun("horse", "horses", "matep", E, ANIMAL),
    Noun("bird", "birds", "bemus", A, ANIMAL),
    Noun("fox", "foxes", "stud", E, ANIMAL),
    Noun("wolf", "wolves", "vlunog", E, ANIMAL),
    Noun("goat", "goats", "ploderk", A, ANIMAL),
    Noun("rabbit", "rabbits", "gemt", A, ANIMAL),
    Noun("mouse", "mice", "klemub", A, ANIMAL),
    Noun("owl", "owls", "kuvit", O, ANIMAL),
    Noun("book", "books", "sorolt", E, THING),
    Noun("letter", "letters", "pazip", E, THING),
    Noun("lamp", "lamps", "stekut", A, THING),
    Noun("chair", "chairs", "stusk", E, THING),
    Noun("bottle", "bottles", "plap", O, THING),
    Noun("basket", "baskets", "sekusk", E, THING),
    Noun("apple", "apples", "plem", A, THING),
    Noun("knife", "knives", "terib", A, THING),
    Noun("coat", "coats", "nozut", E, THING),
    Noun("key", "keys", "trit", A, THING),
    Noun("painting", "paintings", "makim", E, THING),
    Noun("ring", "rings", "krult", O, THING),
    Noun("map", "maps", "sag", E, THING),
    Noun("boat", "boats", "stegos", A, THING),
    Noun("cake", "cakes", "trozal", A, THING),
    Noun("stone", "stones", "harelt", O, THING),
    Noun("garden", "gardens", "segab", O, PLACE),
    Noun("house", "houses", "plagom", A, PLACE),
    Noun("forest", "forests", "bises", E, PLACE),
    Noun("river", "rivers", "grod", O, PLACE),
    Noun("bridge", "bridges", "sosk", E, PLACE),
    Noun("village", "villages", "dresub", E, PLACE),
    Noun("kitchen", "kitchens", "vlek", A, PLACE),
    Noun("market", "markets", "hog", O, PLACE),
    Noun("school", "schools", "disk", O, PLACE),
    Noun("tower", "towers", "brad", A, PLACE),
)

NAMES = (
    Name("Maria", A),
    Name("Anna", E),
    Name("Clara", A),
    Name("Lena", A),
    Name("Nora", O),
    Name("Paul", E),
    Name("Peter", O),
    Name("Simon", A),
    Name("Oscar", A),
    Name("Victor", E),
)

ADJECTIVES = (
    Adjective("old", "rusk", "older"),
    Adjective("young", "kisosk", "younger", only_living=True),
    Adjective("tall", "mup", "taller"),
    Adjective("small", "grek", "smaller"),
    Adjective("big", "vaman", "bigger"),
    Adjective("happy", "valak", "happier", only_living=True),
    Adjective("sad", "stigon", "sadder", only_living=True),
    Adjective("angry", "traren", "angrier", only_living=True),
    Adjective("quiet", "joz", "quieter"),
    Adjective("clever", "romat", "cleverer", only_living=True),
    Adjective("red", "birk", None),
    Adjective("green", "stasur", None),
    Adjective("white", "drakaf", None),
    Adjective("black", "morik", None),
    Adjective("heavy", "visult", "heavier"),
    Adjective("strange", "stibend", "stranger"),
    Adjective("rich", "fif", "richer", only_living=True),
    Adjective("poor", "naned", "poorer", only_living=True),
    Adjective("brave", "firk", "braver", only_living=True),
    Adjective("tired", "bind", None, only_living=True),
)

# acts of one person or animal alone, on anybody, on things; then verbs with a recipient, a clause, an infinitive
ALONE = (
    Verb("sleep", "sleeps", "slept", "slept", "nuseg"),
    Verb("wait", "waits", "waited", "waited", "jikir"),
    Verb("fall", "falls", "fell", "fallen", "dresep"),
    Verb("sing", "sings", "sang", "sung", "bam"),
    Verb("laugh", "laughs", "laughed", "laughed", "drorand"),
    Verb("rest", "rests", "rested", "rested", "skonur"),
    Verb("swim", "swims", "swam", "swum", "stes"),
    Verb("dance", "dances", "danced", "danced", "kemak"),
    Verb("run", "runs", "ran", "run", "bap"),
    Verb("work", "works", "worked", "worked", "vevosk"),
    Verb("stumble", "stumbles", "stumbled", "stumbled", "skir"),
    Verb("hide", "hides", "hid", "hidden", "dolob"),
)
ON_ANYBODY = (
    Verb("see", "sees", "saw", "seen", "nis"),
    Verb("find", "finds", "found", "found", "mar"),
    Verb("follow", "follows", "followed", "followed", "kimof"),
    Verb("hear", "hears", "heard", "heard", "brikesk"),
    Verb("help", "helps", "helped", "helped", "vladez"),
    Verb("call", "calls", "called", "called", "klalin"),
    Verb("touch", "touches", "touched", "touched", "lufek"),
    Verb("watch", "watches", "watched", "watched", "skumok"),
    Verb("chase", "chases", "chased", "chased", "pud"),
    Verb("know", "knows", "knew", "known", "hub"),
    Verb("love", "loves", "loved", "loved", "skun"),
    Verb("forget", "forgets", "forgot", "forgotten", "favig"),
)
ON_THINGS = (
    Verb("buy", "buys", "bought", "bought", "tob"),
    Verb("carry", "carries", "carried", "carried", "plult"),
    Verb("break", "breaks", "broke", "broken", "naduf"),
    Verb("clean", "cleans", "cleaned", "cleaned", "skuzop"),
    Verb("steal", "steals", "stole", "stolen", "fikerk"),
    Verb("paint", "paints", "painted", "painted", "brovid"),
    Verb("lose", "loses", "lost", "lost", "kregip"),
    Verb("draw", "draws", "drew", "drawn", "plik"),
    Verb("want", "wants", "wanted", "wanted", "bolam"),
    Verb("take", "takes", "took", "taken", "skosirk"),
)
GIVES = (
    Verb("give", "gives", "gave", "given", "zom"),
    Verb("send", "sends", "sent", "sent", "pab"),
    Verb("show", "shows", "showed", "shown", "posop"),
    Verb("bring", "brings", "brought", "brought", "tem"),
    Verb("sell", "sells", "sold", "sold", "fuzup"),
    Verb("offer", "offers", "offered", "offered", "sesk"),
)
SAYS = (
    Verb("say", "says", "said", "said", "brogalt"),
    Verb("think", "thinks", "thought", "thought", "skozend"),
    Verb("believe", "believes", "believed", "believed", "somas"),
    Verb("hope", "hopes", "hoped", "hoped", "vlig"),
    Verb("dream", "dreams", "dreamed", "dreamed", "kar"),
)
TO_DO = (
    Verb("try", "tries", "tried", "tried", "ninuf"),
    Verb("begin", "begins", "began", "begun", "talum"),
    Verb("learn", "learns", "learned", "learned", "navik"),
    Verb("refuse", "refuses", "refused", "refused", "mimet"),
    Verb("plan", "plans", "planned", "planned", "vaz"),
)

PREPOSITIONS = {
    "in": "grudand",
    "near": "zur",
    "behind": "brak",
    "under": "jolip",
    "beside": "trikilt",
    "before": "grovef",
}

ADVERBS = (
    Adverb("yesterday", "kult", ("past",)),
    Adverb("today", "gremond", ("past", "future", "perfect")),
    Adverb("tomorrow", "hudes", ("future",)),
    Adverb("now", "bozum", ("present", "perfect")),
    Adverb("again", "tibop", ("past", "future", "perfect")),
    Adverb("soon", "klisum", ("future",)),
)

CONJUNCTIONS = {"because": "dolt", "when": "klonurk", "after": "zen", "although": "hevark", "if": "hed"}

NUMERALS = {"two": "plip", "three": "drog", "four": "gatez", "five": "neb", "six": "buris"}
