"""Verbs of the demo corpus with their forms, and the activities that they make with an object."""

from typing import NamedTuple


class Verb(NamedTuple):
    """The five forms of one verb."""

    base: str
    third: str
    past: str
    participle: str
    ing: str


_IRREGULAR = """
sleep slept slept|swim swam swum|sing sang sung|run ran run|leave left left|fall fell fallen|kneel knelt knelt
win won won|speak spoke spoken|wake woke woken|hit hit hit|bite bit bitten|teach taught taught|catch caught caught
see saw seen|hear heard heard|find found found|lose lost lost|buy bought bought|sell sold sold|feed fed fed
read read read|write wrote written|drive drove driven|hide hid hidden|break broke broken|sweep swept swept
ride rode ridden|build built built|draw drew drawn|steal stole stolen|cut cut cut|begin began begun|choose chose chosen
get got got|throw threw thrown|weep wept wept|shut shut shut|leap leapt leapt|forget forgot forgotten|know knew known
think thought thought|say said said|keep kept kept|bring brought brought|pay paid paid|beat beat beaten|eat ate eaten
drink drank drunk|wear wore worn|hold held held|seek sought sought|rise rose risen|light lit lit|give gave given
take took taken|learn learned learned|feel felt felt|understand understood understood|meet met met
send sent sent|forgive forgave forgiven
"""

_DOUBLING = frozenset("stop grab hug plan nod skip beg rob chop drop regret".split())

_FORMS = {
    line.split()[0]: tuple(line.split()[1:]) for row in _IRREGULAR.strip().splitlines() for line in row.split("|")
}


def verb(base: str) -> Verb:
    """All forms of a verb from its base form; irregular ones come from the table above."""
    if base.endswith(("s", "sh", "ch", "x", "o")):
        third = base + "es"
    elif base.endswith("y") and base[-2] not in "aeiou":
        third = base[:-1] + "ies"
    else:
        third = base + "s"
    if base in _DOUBLING or base in {"run", "swim", "win", "hit", "get", "cut", "shut", "begin", "forget"}:
        stem = base + base[-1]
    elif base.endswith("e") and not base.endswith(("ee", "oe")):
        stem = base[:-1]
    else:
        stem = base
    if base in _FORMS:
        past, participle = _FORMS[base]
    elif base in _DOUBLING:
        past = participle = stem + "ed"
    elif base.endswith("y") and base[-2] not in "aeiou":
        past = participle = base[:-1] + "ied"
    else:
        past = participle = (base if base.endswith("e") else base + "e") + "d"
    return Verb(base, third, past, participle, stem + "ing")


class Act(NamedTuple):
    """Something that a person does: a verb and what follows it."""

    verb: Verb
    rest: str

    @property
    def key(self) -> str:
        """One string that names this act, for reserving combinations."""
        return f"{self.verb.base} {self.rest}".strip()


# What people do without an object.
ACTS_ALONE = tuple(
    Act(verb(base), "")
    for base in (
        "sleep swim sing dance laugh cry shout run walk jump wait smile work rest leave arrive fall cough sneeze "
        "whistle pray kneel travel win complain stumble faint yawn wave nod snore skate sail hesitate apologize "
        "escape cheer stay relax"
    ).split()
)

_WITH_OBJECT = """
wash: car window shirt plate|clean: kitchen floor stable oven|paint: fence wall door boat bench|feed: goat horse cat pig
lock: door gate shop safe|open: window letter parcel box|read: letter book newspaper poem|write: letter report poem song
repair: roof fence coat bicycle|cook: dinner soup fish|bake: cake bread pie|drive: bus truck tractor van
sell: farm boat horse violin|hide: key coin map ring|find: key wallet ring map|lose: wallet ticket key glove
break: window vase cup plate|carry: basket suitcase ladder bucket|sweep: floor yard stairs|ride: horse bicycle camel
play: violin piano guitar flute|climb: tree hill ladder wall tower|cross: bridge river street field
visit: museum castle church zoo|build: house wall boat bridge|draw: map castle horse|burn: letter contract photograph
steal: ring painting car bicycle|return: book ladder umbrella|sign: letter contract form|fold: blanket shirt newspaper
fill: bottle bucket jar|cut: rope grass bread|move: table sofa box piano|water: garden tree lawn|eat: apple cake soup
drink: milk juice tea|order: pizza coffee salad|wear: coat scarf helmet|polish: mirror table boot|join: army club choir
hunt: deer wolf rabbit|milk: cow goat|decorate: room tree cake|drop: cup hammer parcel|study: map law poem
"""

ACTS_ON_THINGS = tuple(
    Act(verb(head.strip()), f"the {noun}")
    for row in _WITH_OBJECT.strip().splitlines()
    for head, nouns in (entry.split(":") for entry in row.split("|"))
    for noun in nouns.split()
)

# What one person does to another. None is symmetric, and none entails or excludes its own reversal.
PERSON_VERBS = tuple(
    verb(base)
    for base in (
        "thank help follow call visit greet praise push kiss hug chase catch warn invite blame watch hear see teach "
        "pay trick rescue hire arrest protect interview photograph paint accuse punish tease comfort ignore admire "
        "trust scare wake hit bite beat surprise obey criticize forgive remember describe copy support mention"
    ).split()
)

# Looking at or naming: fits anything. Handling: fits what can be carried or led away.
LOOK_VERBS = tuple(verb(base) for base in "see notice paint draw photograph describe mention admire choose".split())
HANDLE_VERBS = tuple(verb(base) for base in "buy sell find lose bring receive steal borrow keep want".split())
