"""Which kinds of sentences say what somebody or something is, where it is, or what is done to it?"""

from __future__ import annotations

from heed.text.synthetic import english, german
from heed.text.synthetic.clauses import (
    Clause,
    Object,
    Tense,
    english_question,
    english_statement,
    german_first,
    german_second,
)
from heed.text.synthetic.german import ACC, DAT, PLURAL
from heed.text.synthetic.lexicon import (
    ADJECTIVES_OF,
    COUNTRIES,
    MEASURES,
    PROFESSIONS,
    TAGGED,
    Adjective,
    Slot,
    Verb,
    Words,
)
from heed.text.synthetic.modals import MODALS
from heed.text.synthetic.naming import (
    HOME,
    counted,
    described,
    in_german,
    part_of_whole,
    relation,
    someone,
    where,
)
from heed.text.synthetic.phrases import NOTHING, PRONOUNS, THE, A, Phrase, join, noun_phrase
from heed.text.synthetic.scene import Scene
from heed.text.synthetic.wording import Sentence, polish
from heed.text.synthetic.writing import (
    BE,
    COME,
    FRAMES,
    PERSONAL,
    POSSIBLE,
    add_adverbials,
    main_clause,
    mark,
    predicate,
    relative_clause,
    write_clause,
)

ALL_TAGS = ("person", "animal", "goods", "text", "art", "show", "food", "building", "room", "town", "nature", "thought")
COMPARABLE = (
    "adult",
    "animal",
    "vehicle",
    "furniture",
    "clothes",
    "text",
    "building",
    "food",
    "drink",
    "town",
    "thought",
)
PASSIVE = tuple(
    verb
    for verb in POSSIBLE
    if "passive" in verb.properties and verb.slots[0].role == "acc" and all(slot.optional for slot in verb.slots[1:])
)
PASSIVE_MODALS = tuple(modal for modal in MODALS if modal.en_operator in ("can", "must", "should"))
BECOME = Verb(
    english.conjugate("become", "became", "become"), german.conjugate("werden", "geworden", "wir", takes_sein=True)
)
HANDLING = tuple(
    verb
    for verb in PERSONAL
    if len(verb.slots) == 1 and verb.slots[0].role == "acc" and "person" not in verb.slots[0].tags
)
LIKE = next(verb for verb in POSSIBLE if verb.de.infinitive == "gefallen")
WORK = next(verb for verb in POSSIBLE if verb.en.base == "work")
DIRECTION = Slot("dir", ())
RECEIVED = Slot("acc", ())
LIE, STAND, HANG = (
    (
        Verb(english.conjugate("be", "was", "been"), german.conjugate(lies, lain)),
        Verb(english.conjugate("put", "put", "put"), german.conjugate(lays, laid)),
    )
    for lies, lain, lays, laid in (
        ("liegen", "gelegen", "legen", "gelegt"),
        ("stehen", "gestanden", "stellen", "gestellt"),
        ("hängen", "gehangen", "hängen", "gehängt"),
    )
)
# what it does: English preposition, German preposition, tags of what the thing is on, under, beside
SPOTS = {
    "lie": (
        ("on", "auf", ("surface",)),
        ("under", "unter", ("surface",)),
        ("in", "in", ("lid", "drawer", "cupboard")),
        ("next to", "neben", ("lamp", "bottle", "radio")),
        ("behind", "hinter", ("sofa", "door", "computer")),
    ),
    "stand": (
        ("on", "auf", ("table", "desk")),
        ("next to", "neben", ("furniture", "opening")),
        ("behind", "hinter", ("sofa", "door")),
        ("under", "unter", ("table", "window", "desk")),
    ),
    "furniture": (
        ("next to", "neben", ("furniture", "opening")),
        ("behind", "hinter", ("sofa", "door")),
        ("in front of", "vor", ("opening", "bookcase")),
    ),
    "hang": (
        ("on", "an", ("wall",)),
        ("over", "über", ("sofa", "bed", "desk")),
        ("next to", "neben", ("door", "window")),
    ),
}


def quality(scene: Scene) -> Sentence | None:
    """The old table is very heavy; the roof of the house was red; Anna likes the colour of the coat."""
    if scene.dice.chance(0.2):
        subject = part_of_whole(scene)
        if scene.dice.chance(0.4):
            clause = Clause(someone(scene, "adult"), LIKE, [Object(LIKE.slots[0], subject)])
            scene.show("argument_swap")
            return Sentence(*main_clause(scene, clause, lead=False))
        adjective = scene.adjective(subject.noun) if subject.noun else None
    else:
        noun = scene.noun(ALL_TAGS)
        adjective = scene.adjective(noun)
        subject = described(scene, noun, owner=None, relative=relative_clause, role="known")
    if adjective is None:
        return None
    tense = scene.dice.pick((Tense.PRESENT, Tense.PRESENT, Tense.PAST))
    return Sentence(*main_clause(scene, predicate(scene, subject, tense, adjective), lead=False))


def comparison(scene: Scene) -> Sentence | None:
    """The table is bigger than the chair, or as old as the chair; or so with people."""
    if scene.dice.chance(0.3):
        return between_people(scene)
    tag = scene.dice.pick(COMPARABLE)
    first = scene.noun((tag,))
    adjective = scene.adjective(first, graded=True)
    seconds = [
        one for one in TAGGED[tag] if adjective in ADJECTIVES_OF[one.en] and one is not first and "kin" not in one.tags
    ]
    if adjective is None or not seconds or "kin" in first.tags:
        return None
    second = scene.dice.pick(seconds)
    scene.describe(adjective, second)
    scene.used.add(second.en)
    left = described(scene, first, owner=None, role="known")
    right = described(scene, second, owner=None, role="known")
    return compared(scene, adjective, left, right)


def between_people(scene: Scene) -> Sentence:
    """Anna is taller than her brother."""
    adjective = scene.dice.pick([one for one in ADJECTIVES_OF["woman"] if one.graded])
    left = scene.first_name()
    right = relation(scene, left) if scene.dice.chance(0.5) else scene.first_name()
    if right.noun:
        scene.describe(adjective, right.noun)
    return compared(scene, adjective, left, right)


def compared(scene: Scene, adjective: Adjective, left: Phrase, right: Phrase) -> Sentence:
    """One is more so than the other, much more so, as much so, or not."""
    tense = scene.dice.pick((Tense.PRESENT, Tense.PRESENT, Tense.PAST))
    kind = scene.dice.weighted(((6, "more"), (2, "much more"), (2, "as"), (2, "not as")))
    scene.show("comparative")
    if kind in ("more", "much more"):
        much = Words("much", "viel") if kind == "much more" else NOTHING
        said = Words(
            join(much.en, adjective.en_comparative, "than", right.en),
            join(much.de, adjective.de_comparative, "als", right.de[0]),
        )
        return Sentence(*main_clause(scene, Clause(left, BE, tense=tense, predicate=said), lead=False))
    nicht = Words("not", "nicht") if kind == "not as" else NOTHING
    said = Words(
        join(nicht.en, "as", adjective.en, "as", right.en), join(nicht.de, "so", adjective.de, "wie", right.de[0])
    )
    return Sentence(*main_clause(scene, Clause(left, BE, tense=tense, predicate=said), lead=False))


def superlative(scene: Scene) -> Sentence | None:
    """This is the oldest church in the town; he is the bravest soldier in Poland."""
    noun = scene.noun(("sight", "restaurant", "hotel", "street", "school", "adult", "building"))
    adjective = scene.adjective(noun, graded=True)
    if adjective is None or "kin" in noun.tags:
        return None
    best = noun_phrase(THE, noun, adjectives=(Words(adjective.en_superlative, adjective.de_superlative),))
    place = where(scene, ("city", "town", "village", "country"))
    this = Phrase("this", "this", ("das", "das", "dem", ""), german.ER, english.THIRD, german.NEUT)
    subject = PRONOUNS[("he", "she")[noun.column]] if "person" in noun.tags else this
    scene.show("superlative")
    clause = Clause(subject, BE, predicate=Words(f"{best.en} {place.en}", f"{best.de[0]} {place.de}"))
    return Sentence(*main_clause(scene, clause, lead=False))


def profession(scene: Scene) -> Sentence:
    """Anna is a doctor: Anna ist Ärztin. His brother works as a cook. Peter comes from Italy."""
    subject = scene.first_name() if scene.dice.chance(0.5) else single_relation(scene)
    if scene.dice.chance(0.25):
        country = scene.dice.pick(COUNTRIES)
        city = scene.city()
        origin = Words(country.en, country.whence) if scene.dice.chance(0.5) else Words(city.en, f"aus {city.de}")
        come = Clause(subject, COME, place=Words(f"from {origin.en}", origin.de))
        return Sentence(*main_clause(scene, come, lead=False))
    job = scene.dice.pick(PROFESSIONS)
    de = job.woman if subject.column == german.FEM else job.man
    scene.show("profession")
    if scene.dice.chance(0.3):
        work = Clause(subject, WORK, place=Words(f"as {english.a_or_an(job.en)}", f"als {de}"))
        work.tense = scene.dice.pick((Tense.PRESENT, Tense.PAST))
        city = scene.city()
        work.time = Words(f"in {city.en}", f"in {city.de}")
        return Sentence(*main_clause(scene, work, lead=False))
    verb, tense = scene.dice.pick(((BE, Tense.PRESENT), (BE, Tense.PAST), (BECOME, Tense.PAST), (BECOME, Tense.FUTURE)))
    clause = Clause(subject, verb, tense=tense, predicate=Words(english.a_or_an(job.en), de))
    if verb is BECOME:
        clause.time = scene.time(tense) if scene.dice.chance(0.5) else None
    return Sentence(*main_clause(scene, clause))


def single_relation(scene: Scene) -> Phrase:
    """One relative, of known sex."""
    phrase = relation(scene, None)
    while phrase.column == PLURAL:
        phrase = relation(scene, None)
    return phrase


def position(scene: Scene) -> Sentence:
    """The book is on the table: liegt auf dem Tisch. Anna put it on the table: auf den Tisch gelegt."""
    kind = scene.dice.weighted(((5, "lie"), (5, "stand"), (2, "hang")))
    be, put = {"lie": LIE, "stand": STAND, "hang": HANG}[kind]
    thing = scene.noun((kind,))
    large = kind == "stand" and "thing" not in thing.tags
    en_preposition, de_preposition, tags = scene.dice.pick(SPOTS["furniture" if large else kind])
    spot = noun_phrase(THE, scene.noun(tags))
    moved = scene.dice.chance(0.45)
    de = in_german(scene, de_preposition, ACC if moved else DAT, spot)
    words = Words(f"{en_preposition} {spot.en}", de)
    scene.show("two_way_preposition")
    if not moved:
        subject = described(scene, thing, owner=None, role="known")
        clause = Clause(subject, be, [Object(DIRECTION, words=words)], scene.dice.pick((Tense.PRESENT, Tense.PAST)))
    else:
        subject = someone(scene, "adult")
        phrase = described(scene, thing, subject)
        tense = scene.dice.pick((Tense.PAST, Tense.PAST, Tense.FUTURE, Tense.PERFECT, Tense.PROGRESSIVE))
        clause = Clause(subject, put, [Object(RECEIVED, phrase), Object(DIRECTION, words=words)], tense)
        add_adverbials(scene, clause)
    mark(scene, clause)
    return Sentence(*main_clause(scene, clause))


def existence(scene: Scene) -> Sentence:
    """There are three old churches in the town: Es gibt drei alte Kirchen in der Stadt."""
    noun = scene.noun(("building", "restaurant", "museum", "animal", "room"))
    place_tags = {"room": ("house", "hotel", "castle"), "animal": ("forest", "zoo", "park")}
    tags = next((tags for tag, tags in place_tags.items() if tag in noun.tags), ("city", "village", "town", "country"))
    place = where(scene, tags)
    plural = scene.dice.chance(0.5)
    adjective = scene.adjective(noun) if scene.dice.chance(0.5) else None
    adjectives = (Words(adjective.en, adjective.de),) if adjective else ()
    thing = noun_phrase(counted(scene) if plural else A, noun, plural, adjectives)
    past = scene.dice.chance(0.3)
    is_, gibt = (("were" if plural else "was"), "gab") if past else (("are" if plural else "is"), "gibt")
    scene.show("existence")
    if scene.dice.chance(0.4):
        scene.show("verb_second")
        return Sentence(f"{place.en} there {is_} {thing.en}", f"{place.de} {gibt} es {thing.de[ACC]}")
    return Sentence(f"there {is_} {thing.en} {place.en}", f"es {gibt} {thing.de[ACC]} {place.de}")


def passive(scene: Scene) -> Sentence:
    """The house was built by the workers last year: Das Haus wurde letztes Jahr von den Arbeitern gebaut."""
    verb = scene.dice.pick(PASSIVE)
    tag = scene.dice.pick(verb.slots[0].tags)
    noun = scene.noun((tag,))
    subject = described(scene, noun, owner=None, role="subject")
    scene.combine("verb+object", verb.name, noun.en)
    tense = scene.dice.pick((Tense.PAST, Tense.PAST, Tense.PAST, Tense.PERFECT, Tense.FUTURE, Tense.PRESENT))
    clause = Clause(subject, verb, tense=tense, passive=True)
    if tense is Tense.PRESENT:
        clause.modal = scene.dice.pick(PASSIVE_MODALS)
        scene.show("modal")
    elif tense is not Tense.PERFECT and scene.dice.chance(0.6):
        clause.time = scene.time(tense)
    if tense is Tense.PAST and scene.dice.chance(0.4):
        agent = described(scene, scene.noun(verb.subjects), owner=None)
        clause.company = Words(f"by {agent.en_object}", in_german(scene, "von", DAT, agent))
    scene.show("passive")
    if verb.de.prefix:
        scene.show("separable")
    return Sentence(*main_clause(scene, clause))


def taken_up(scene: Scene) -> Sentence | None:
    """Anna bought a new table. It is very heavy: Er ist sehr schwer."""
    scene.show("pronoun_agreement")
    clause = write_clause(scene, HANDLING, tense=Tense.PAST, bare=True)
    thing = clause.objects[0].phrase
    adjective = scene.adjective(thing.noun) if thing and thing.noun else None
    if thing is None or not thing.reference or adjective is None:
        return None
    first = main_clause(scene, clause)
    tense = scene.dice.pick((Tense.PRESENT, Tense.PAST))
    second = predicate(scene, PRONOUNS[thing.reference], tense, adjective)
    return two_sentences(Sentence(*first), Sentence(*main_clause(scene, second, lead=False)))


def where_is_it(scene: Scene) -> Sentence:
    """Where is the red cup? I threw it away: Ich habe sie weggeworfen."""
    scene.show("pronoun_agreement")
    noun = scene.noun(("thing", "clothes", "text", "car", "bicycle", "pet"))
    frames = [one for one in FRAMES[noun.en] if one[1].role == "acc" and len(one[0].slots) == 1]
    verb, slot = scene.dice.pick([one for one in frames if one[0].de.infinitive != "haben"])
    thing = described(scene, noun, PRONOUNS["I"], role="known")
    question = Clause(thing, BE)
    asked = Sentence(f"where {english_question(question)}", f"wo {german_first(question)}", "?")
    if scene.dice.chance(0.4):
        place = HOME[0] if scene.dice.chance(0.1) else where(scene, ("building", "room", "outdoors"))
        here = Clause(PRONOUNS[thing.reference], BE, place=place)
        return two_sentences(asked, Sentence(*main_clause(scene, here, lead=False)))
    scene.combine("verb+object", verb.name, noun.en)
    answer = write_clause(scene, (verb,), None, Tense.PAST, short=True, gap=slot, theme=PRONOUNS[thing.reference])
    return two_sentences(asked, Sentence(english_statement(answer), german_second(answer)))


def two_sentences(first: Sentence, second: Sentence) -> Sentence:
    """One after the other; the last one's mark is set later."""
    en = f"{polish(first.en, first.mark)} {polish(second.en, '')}"
    return Sentence(en, f"{polish(first.de, first.mark)} {polish(second.de, '')}", second.mark)


def measured(scene: Scene) -> Sentence:
    """Anna drank two cups of coffee: zwei Tassen Kaffee."""
    measure = scene.dice.pick(MEASURES)
    noun = scene.dice.pick(measure.measured)
    plural = scene.dice.chance(0.5)
    verbs = [one for one, slot in FRAMES[noun.en] if slot.role == "acc" and len(one.slots) == 1]
    verb = scene.dice.pick(verbs)
    tail = Words(f"of {noun.en}", noun.de.singular[ACC])
    phrase = noun_phrase(counted(scene, many=0) if plural else A, measure.noun, plural, tail=tail)
    clause = write_clause(scene, (verb,), tense=Tense.PAST, bare=True, gap=verb.slots[0], theme=phrase)
    scene.combine("verb+object", verb.name, noun.en)
    scene.show("measure")
    return Sentence(*main_clause(scene, clause))
