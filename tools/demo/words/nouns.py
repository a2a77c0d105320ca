"""Nouns of the demo corpus: people, names, things by kind, places and times."""

IRREGULAR_PLURALS = {
    "man": "men",
    "woman": "women",
    "child": "children",
    "fisherman": "fishermen",
    "policeman": "policemen",
    "seaman": "seamen",
    "thief": "thieves",
    "shelf": "shelves",
    "knife": "knives",
    "sheep": "sheep",
    "fish": "fish",
    "trout": "trout",
    "salmon": "salmon",
    "mouse": "mice",
    "goose": "geese",
    "wolf": "wolves",
    "calf": "calves",
    "leaf": "leaves",
    "potato": "potatoes",
    "tomato": "tomatoes",
    "piano": "pianos",
}


def plural(noun: str) -> str:
    """The plural of one noun."""
    if noun in IRREGULAR_PLURALS:
        return IRREGULAR_PLURALS[noun]
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return noun[:-1] + "ies"
    if noun.endswith(("s", "sh", "ch", "x")):
        return noun + "es"
    return noun + "s"


NAMES = tuple(
    "Anna Ben Clara David Emma Felix Grace Henry Irene Jack Karen Leo Maria Nick Olga Paul Rosa Simon Tina "
    "Victor Wendy Adam Bella Carl Diana Eric Fiona George Helen Ivan Julia Kevin Laura Martin Nora Oscar "
    "Peter Ruth Sam Sarah Tom Vera Walter Alice Bruno Daniel Lucy Mark".split()
)

PEOPLE = tuple(
    "man woman boy girl doctor nurse teacher student farmer baker driver pilot sailor soldier painter singer "
    "dancer writer lawyer judge king queen prince princess guard waiter cook tailor hunter fisherman gardener "
    "plumber engineer scientist artist actor neighbor visitor guest stranger uncle aunt cousin father mother "
    "butcher barber clerk coach dentist banker priest monk miner carpenter mayor tourist".split()
)

# Ordinary animals that can be subjects of "sleep" or "run" and objects of "see" or "feed".
ANIMALS = tuple("dog cat horse cow goat sheep pig donkey rabbit fox wolf bear lion camel monkey".split())

# kind -> its members; a member is always also one of the kind, and two members are never the same thing.
KINDS = {
    "flower": tuple("rose tulip lily daisy violet orchid".split()),
    "tree": tuple("oak pine maple birch willow".split()),
    "fruit": tuple("apple pear plum peach cherry banana lemon".split()),
    "vegetable": tuple("carrot onion potato cabbage pumpkin tomato".split()),
    "bird": tuple("eagle owl crow parrot pigeon sparrow swan".split()),
    "dog": tuple("poodle terrier spaniel beagle".split()),
    "insect": tuple("bee wasp beetle moth butterfly".split()),
    "reptile": tuple("snake lizard turtle crocodile".split()),
    "vehicle": tuple("car bus truck van tractor".split()),
    "boat": tuple("ferry canoe yacht".split()),
    "tool": tuple("hammer saw drill spade wrench".split()),
    "instrument": tuple("violin guitar piano flute trumpet drum".split()),
    "seat": tuple("chair sofa bench stool".split()),
    "building": tuple("church hotel castle hospital barn".split()),
    "container": tuple("box jar bottle basket bucket".split()),
    "weapon": tuple("sword spear rifle dagger".split()),
    "jewel": tuple("diamond ruby emerald pearl".split()),
    "toy": tuple("doll kite puppet balloon".split()),
    "book": tuple("novel diary dictionary atlas".split()),
    "shoe": tuple("boot sandal slipper".split()),
    "hat": tuple("cap helmet bonnet".split()),
    "fish": tuple("trout salmon shark".split()),
}

# Kinds whose members nobody carries home: they take only the verbs of looking.
BIG_KINDS = frozenset({"building", "tree"})

# Kinds of kinds, for a third level.
ABOVE_KINDS = {"dog": "animal", "bird": "animal", "insect": "animal", "reptile": "animal", "fish": "animal"}
ABOVE_KINDS |= {"flower": "plant", "tree": "plant"}

THINGS = tuple(
    "lamp box chair table clock mirror vase bottle basket bucket ladder piano carpet shelf picture ball book "
    "candle cup plate bowl knife bag suitcase umbrella radio bed desk stove drum bench statue barrel".split()
)

# Places that stand in the landscape, for compass directions and distances.
LANDMARKS = tuple(
    "church school station market hotel castle tower bridge river lake hill forest farm mill museum hospital "
    "harbor village factory airport".split()
)

PLACES = tuple(
    "in the garden|in the park|at the station|at the market|in the kitchen|at the farm|in the village|"
    "at the party|near the river|on the beach|in the library|at the office|in the forest|at the hotel|"
    "behind the church|near the lake|in the street|in the museum|at the airport|in the yard".split("|")
)

HOMES = tuple("village|city|island|farm|castle|north|south|mountains|hotel|school|harbor".split("|"))

WEEKDAYS = tuple("Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split())
MONTHS = tuple("January February March April May June July August September October November December".split())

PAST_TIMES = (
    "yesterday",
    "last night",
    "last week",
    "last month",
    "last year",
    "last summer",
    "this morning",
    "at noon",
    "at midnight",
    "in the morning",
    "in the evening",
    "in the afternoon",
    "in the winter",
    "during the war",
    "during the holidays",
    "during the storm",
    "a week ago",
    *(f"on {day}" for day in WEEKDAYS),
    *(f"in {month}" for month in MONTHS),
)
FUTURE_TIMES = (
    "tomorrow",
    "next week",
    "next month",
    "next year",
    "next summer",
    "tonight",
    "soon",
    "in the evening",
    "after the war",
    *(f"on {day}" for day in WEEKDAYS),
    *(f"in {month}" for month in MONTHS),
)

NUMBERS = tuple("one two three four five six seven eight nine ten eleven twelve".split())
