"""What a sentence means, before it is said in either language: noun phrases and clauses as frozen trees."""

from __future__ import annotations

from dataclasses import dataclass

from .lexicon import Adjective, Adverb, Name, Noun, Verb

SUBJECT, OBJECT = "subject", "object"


@dataclass(frozen=True)
class Pronoun:
    """A person or group: (English subject, English object, grammatical person, plural)."""

    subject: str
    object: str
    person: int
    plural: bool


I = Pronoun("I", "me", 1, False)  # noqa: E741
WE = Pronoun("we", "us", 1, True)
HE = Pronoun("he", "him", 3, False)
SHE = Pronoun("she", "her", 3, False)
THEY = Pronoun("they", "them", 3, True)
PRONOUNS = (I, WE, HE, SHE, THEY)


@dataclass(frozen=True)
class Phrase:
    """A noun phrase. ``partner`` makes it a coordination: 'the dog and the cat'."""

    head: Noun | Name | Pronoun
    plural: bool = False
    definite: bool = True
    adjectives: tuple[Adjective, ...] = ()
    numeral: str | None = None
    owner: Phrase | None = None
    relative: Relative | None = None
    partner: Phrase | None = None

    @property
    def is_plural(self) -> bool:
        """Whether a verb agrees with it in the plural."""
        if self.partner is not None:
            return True
        return self.head.plural if isinstance(self.head, Pronoun) else self.plural

    @property
    def person(self) -> int:
        return self.head.person if isinstance(self.head, Pronoun) else 3


@dataclass(frozen=True)
class Relative:
    """'that chased the cat' or 'that the cat chased': a clause in which ``role`` is the noun it describes.

    The clause's own subject, or object, is empty in that place.
    """

    role: str
    verb: Verb
    tense: str
    other: Phrase | None  # the object of a subject relative (None for an intransitive verb), or its subject


@dataclass(frozen=True)
class Clause:
    """One clause. ``adjective`` makes it 'X is red', with ``than`` a comparison; else ``verb`` is its verb."""

    subject: Phrase
    tense: str
    verb: Verb | None = None
    object: Phrase | None = None
    recipient: Phrase | None = None
    to_phrase: bool = False  # English only: 'gave a book to the man' for 'gave the man a book'
    place: tuple[str, Phrase] | None = None
    time: Adverb | None = None
    time_first: bool = False  # English only: 'Yesterday the dog slept'
    negative: bool = False
    passive: bool = False  # ``subject`` is done to, by ``object``
    adjective: Adjective | None = None
    than: Phrase | None = None
    said: Clause | None = None  # 'that …'
    to_do: Clause | None = None  # 'to …'; its subject and tense are this clause's


@dataclass(frozen=True)
class Sentence:
    """A main clause, perhaps a question, perhaps joined to another by a conjunction ('and' joins two main clauses)."""

    main: Clause
    question: bool = False
    conjunction: str | None = None
    other: Clause | None = None
    other_first: bool = False  # English and Veshan: 'When …, …'
