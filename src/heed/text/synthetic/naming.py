"""Who and what does a sentence speak of? Random choice of noun phrases, places and adjectives."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from heed.text.synthetic import english
from heed.text.synthetic.german import ACC, DAT, GEN
from heed.text.synthetic.lexicon import ADJECTIVES_OF, COUNTRIES, PARTS, PLACES_OF, Noun, Place, Words
from heed.text.synthetic.numerals import english_number, german_number
from heed.text.synthetic.phrases import (
    ALL,
    BARE,
    EVERY,
    MANY,
    NO,
    NO_PLURAL,
    NOTHING,
    PRONOUNS,
    SOME,
    THE,
    THESE,
    THIS,
    A,
    Determiner,
    Phrase,
    coordinate,
    genitive_tail,
    noun_phrase,
    owned_by,
    with_preposition,
)
from heed.text.synthetic.scene import Scene

PERSON_TAGS = ("person", "adult", "kid")
RelativeClause = Callable[[Scene, Noun, bool], Words]  # "who lives here", ", der hier wohnt ,": what may follow a noun

ONLY_ONE = ("father", "mother", "grandfather", "grandmother", "boss")
# what a noun may have before it, by what it is in the sentence: "new" is what is made, bought, needed; "known" is
# what a figure or a judgement is about
DETERMINERS: dict[str, tuple[tuple[int, str], ...]] = {
    "subject": (
        *((44, "the"), (8, "a"), (6, "this"), (7, "the plural")),
        *((2, "number"), (2, "many"), (2, "every"), (12, "whose")),
    ),
    "object": (
        *((44, "the"), (18, "a"), (6, "this"), (7, "the plural"), (3, "plural")),
        *((2, "number"), (2, "many"), (2, "these"), (12, "whose")),
    ),
    "new": ((8, "the"), (40, "a"), (4, "this"), (12, "plural"), (7, "number"), (2, "many"), (8, "whose")),
    "worn": ((6, "the"), (4, "a"), (1, "this")),
    "known": ((50, "the"), (10, "this"), (10, "the plural"), (3, "these"), (12, "whose")),
}
MASS_DETERMINERS = {
    "subject": ((6, THE), (1, THIS)),
    "object": ((50, THE), (35, BARE), (6, THIS)),
    "new": ((10, THE), (35, BARE), (6, THIS)),
    "known": ((6, THE), (1, THIS)),
}
OWNED = {"goods", "text", "art", "room", "pet", "gift", "thought"}
HOME = (Words("at home", "zu Hause"), Words("home", "nach Hause"))


# people


def someone(
    scene: Scene,
    tag: str = "person",
    apart_from: Phrase | None = None,
    relative: RelativeClause | None = None,
    negated: bool = False,
    role: str = "",
) -> Phrase:
    """A person: a pronoun, a name or a noun phrase. `apart_from` is who must not be meant once more: the subject.

    The rest is as for `described`.
    """
    kinds = ((20, "pronoun"), (24, "name"), (5, "titled"), (32, "noun"), (12, "kin"), (5, "two"))
    kind = scene.dice.weighted(kinds)
    if kind == "pronoun":
        return some_pronoun(scene, apart_from)
    if kind == "name":
        return scene.first_name()
    if kind == "titled":
        return scene.titled()
    if kind == "kin":
        return relation(scene, apart_from)
    if kind == "two":
        return two_people(scene, apart_from)
    noun = scene.noun((tag,))
    if "kin" in noun.tags:
        return relation(scene, apart_from, noun)
    role = role or ("object" if apart_from else "subject")
    return described(scene, noun, None, relative, role, negated)


def some_pronoun(scene: Scene, apart_from: Phrase | None) -> Phrase:
    """A personal pronoun that does not mean the subject again."""
    speaker_taken = apart_from is not None and apart_from.reference in ("I", "we")
    listener_taken = apart_from is not None and apart_from.reference in ("du", "ihr", "Sie", "you")
    keys = ["he", "she", "they"]
    keys += [] if speaker_taken else ["I", "we", "I"]
    keys += [] if listener_taken else ["you"]
    key = scene.dice.pick(keys)
    return scene.you() if key == "you" else PRONOUNS[key]


def relation(scene: Scene, apart_from: Phrase | None, noun: Noun | None = None) -> Phrase:
    """Somebody's relative or friend: my brother, Anna's old neighbours."""
    noun = noun or scene.noun(("kin",))
    return described(scene, noun, owner=apart_from)


def two_people(scene: Scene, apart_from: Phrase | None) -> Phrase:
    """Anna and Peter, the teacher and his brother, my sister and I."""
    kind = scene.dice.below(3)
    if kind == 0:
        return coordinate(scene.first_name(), scene.first_name())
    if kind == 1 or (apart_from and apart_from.reference in ("I", "we")):
        first = noun_phrase(THE, scene.noun(("grown",)))
        return coordinate(first, described(scene, scene.noun(("kin",)), owner=first))
    return coordinate(noun_phrase(owned_by(PRONOUNS["I"]), scene.noun(("kin",))), PRONOUNS["I"])


# noun phrases


def described(
    scene: Scene,
    noun: Noun,
    owner: Phrase | None,
    relative: RelativeClause | None = None,
    role: str = "object",
    negated: bool = False,
) -> Phrase:
    """A noun with determiner and perhaps adjectives and a relative clause.

    `owner` is who may own it ("his"), `role` is a key of DETERMINERS, `negated` asks for "kein" in its place.
    """
    plural, determiner, tail = determine(scene, noun, owner, role)
    if negated and determiner is SOME:
        determiner = MANY
    if negated and determiner in (A, BARE):
        determiner = NO if determiner is A else NO_PLURAL
        scene.show("kein")
    adjectives = attributes(scene, noun, determiner, plural)
    clause = NOTHING
    if relative and not tail.de and determiner in (THE, A):
        if scene.dice.chance(0.22):
            clause = relative(scene, noun, plural)
        elif "role" in noun.tags and not plural and scene.dice.chance(0.15):
            tail = distinction(scene)
    return noun_phrase(determiner, noun, plural, adjectives, clause if clause.de else tail, clause=bool(clause.de))


def distinction(scene: Scene) -> Words:
    """Which of several people: from Berlin, with the red hat (mit dem roten Hut)."""
    scene.show("attribute")
    kind = scene.dice.below(4)
    if kind == 0:
        city = scene.city()
        return Words(f"from {city.en}", f"aus {city.de}")
    phrase = described(scene, scene.noun(("seen", "seen", "pet", "suitcase")), owner=None, role="worn")
    return Words(f"with {phrase.en}", in_german(scene, "mit", DAT, phrase))


def determine(scene: Scene, noun: Noun, owner: Phrase | None, role: str) -> tuple[bool, Determiner, Words]:
    """Number, determiner and genitive of a noun that nothing else has been said of."""
    dice = scene.dice
    if "kin" in noun.tags:
        plural = dice.chance(0.2) and noun.en not in ONLY_ONE
        return plural, *possession(scene, owner)
    if not noun.countable:
        return False, dice.weighted(MASS_DETERMINERS[role]), NOTHING
    kind = dice.weighted(DETERMINERS[role])
    if kind == "whose":
        if OWNED.isdisjoint(noun.tags):
            return False, THE, NOTHING
        return dice.chance(0.2), *possession(scene, owner)
    if kind == "number":
        return True, counted(scene), NOTHING
    if kind == "many":
        return True, dice.pick((MANY, SOME, ALL)), NOTHING
    determiner = {"a": A, "this": THIS, "plural": BARE, "every": EVERY, "these": THESE}.get(kind, THE)
    return kind in ("the plural", "plural", "these"), determiner, NOTHING


def counted(scene: Scene, many: float = 0.2) -> Determiner:
    """Two to twelve or, with the probability `many`, up to ninety-nine: "twenty-three", "dreiundzwanzig"."""
    number = scene.dice.between(13, 99) if scene.dice.chance(many) else scene.dice.between(2, 12)
    scene.show("number")
    return Determiner(english_number(number), "", german_number(number), definite=False)


def possession(scene: Scene, owner: Phrase | None) -> tuple[Determiner, Words]:
    """A possessive (his), a name in the genitive (Annas), or a noun in the genitive after it (des Lehrers)."""
    scene.show("possession")
    if owner and owner.possessive and scene.dice.chance(0.55):
        if owner.reference.startswith("it"):
            scene.show("pronoun_agreement")
        return owned_by(owner), NOTHING
    kind = scene.dice.weighted(((40, "pronoun"), (30, "name"), (20, "noun")))
    if kind == "pronoun":
        others = ["I", "we"] if owner is None or owner.person > 1 else ["he", "she", "they"]
        return owned_by(PRONOUNS[scene.dice.pick(others)]), NOTHING
    scene.show("genitive")
    if kind == "name":
        possessor = scene.first_name()
        return Determiner(english.genitive(possessor.en), "", possessor.de[GEN]), NOTHING
    possessor = noun_phrase(THE, scene.noun(("role",)))
    return Determiner(english.genitive(possessor.en), "der"), genitive_tail(possessor)


def attributes(scene: Scene, noun: Noun, determiner: Determiner, plural: bool) -> list[Words]:
    """The adjectives before a noun: mostly none, one or, with a colour, two; sometimes graded or an ordinal."""
    fitting = ADJECTIVES_OF[noun.en]
    if not fitting or noun.en in scene.described or not scene.dice.chance(0.42):
        return []
    chosen = scene.dice.pick(fitting)
    if chosen.kind == "ordinal" and (determiner is not THE or plural):
        return []
    scene.describe(chosen, noun)
    scene.show("adjective")
    if chosen.graded and determiner is THE and "person" not in noun.tags and scene.dice.chance(0.15):
        if scene.dice.chance(0.5):
            scene.show("superlative")
            return [Words(chosen.en_superlative, chosen.de_superlative)]
        scene.show("comparative")
        return [Words(chosen.en_comparative, chosen.de_comparative)]
    described_by = [Words(chosen.en, chosen.de)]
    colours = [one for one in fitting if one.kind == "colour"]
    if colours and chosen.kind == "quality" and scene.dice.chance(0.15):
        colour = scene.dice.pick(colours)
        scene.describe(colour, noun)
        described_by.append(Words(colour.en, colour.de))
    return described_by


def part_of_whole(scene: Scene) -> Phrase:
    """The roof of the house: das Dach des Hauses."""
    part, wholes = scene.dice.pick(PARTS)
    whole = noun_phrase(THE, scene.noun(wholes))
    scene.show("genitive")
    return noun_phrase(THE, part, tail=Words(f"of {whole.en}", whole.de[GEN]))


# places


def where(scene: Scene, tags: Sequence[str] = ()) -> Words:
    """A place to be: in Berlin, at home, in the park (im Park)."""
    return somewhere(scene, tags, whither=False)


def whither(scene: Scene, tags: Sequence[str] = ()) -> Words:
    """A place to go: to Berlin (nach Berlin), home (nach Hause), to the park (in den Park)."""
    return somewhere(scene, tags, whither=True)


def somewhere(scene: Scene, tags: Sequence[str], whither: bool) -> Words:
    if not tags:
        tags = scene.dice.weighted(((25, ("city",)), (15, ("home",)), (60, ("building", "room", "outdoors"))))
    tag = scene.dice.pick(tags)
    if tag == "city":
        city = scene.city()
        return Words(f"to {city.en}", f"nach {city.de}") if whither else Words(f"in {city.en}", f"in {city.de}")
    if tag == "country":
        country = scene.dice.pick(COUNTRIES)
        return Words(f"to {country.en}", country.whither) if whither else Words(f"in {country.en}", country.where)
    if tag == "home":
        return HOME[whither]
    place = scene.dice.pick(PLACES_OF[tag])
    scene.used.add(place.noun.en)
    return at_place(scene, place, whither)


def at_place(scene: Scene, place: Place, whither: bool) -> Words:
    """The place with its preposition, which in German asks for the dative of rest or the accusative of motion."""
    adjectives = []
    if scene.dice.chance(0.15):
        chosen = scene.adjective(place.noun, colour=False)
        adjectives = [Words(chosen.en, chosen.de)] if chosen else []
    phrase = noun_phrase(THE, place.noun, adjectives=adjectives)
    preposition = place.de_whither if whither else place.de_where
    case = ACC if whither and preposition != "zu" else DAT
    scene.show("two_way_preposition" if preposition != "zu" else "dative")
    en = f"{place.en_whither if whither else place.en_where} {phrase.en}"
    return Words(en, in_german(scene, preposition, case, phrase))


def in_german(scene: Scene, preposition: str, case: int, phrase: Phrase) -> str:
    """The German prepositional phrase, contracted where it is: marks what it shows."""
    words = with_preposition(preposition, case, phrase)
    if not words.startswith(f"{preposition} "):
        scene.show("contraction")
    if case == DAT:
        scene.show("dative")
    return words
