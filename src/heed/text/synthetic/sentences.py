"""Which kinds of sentences join clauses or say what happens: statements, subordination, reported speech, orders?"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from heed.text.synthetic import english, german
from heed.text.synthetic.clauses import (
    Clause,
    Negation,
    Tense,
    english_gerund,
    english_infinitive,
    english_statement,
    german_first,
    german_imperative,
    german_infinitive,
    german_main,
    german_second,
)
from heed.text.synthetic.lexicon import CLAUSE_VERBS, IMPERSONAL, INFINITIVE_VERBS, PROVERBS, Verb, Words
from heed.text.synthetic.modals import LIKES_TO, MODALS
from heed.text.synthetic.naming import described, someone
from heed.text.synthetic.phrases import PRONOUNS, Phrase, coordinate, join
from heed.text.synthetic.scene import Scene
from heed.text.synthetic.wording import Sentence, polish
from heed.text.synthetic.writing import (
    IDIOMS,
    LASTING,
    PERSONAL,
    WILLED,
    main_clause,
    predicate,
    subordinate,
    write_clause,
)


class Link(NamedTuple):
    """A subordinating conjunction, the tenses of its clause and of the main clause, and what the clause may be."""

    words: Words
    tenses: tuple[tuple[Tense, Tense], ...]
    first: bool = True  # may stand before the main clause
    quality: bool = False  # may say what somebody or something is like
    free: bool = False  # may be negated or habitual
    verbs: tuple[Verb, ...] = PERSONAL


EVENTFUL = tuple(verb for verb in PERSONAL if "stative" not in verb.properties)
INTENDED = tuple(verb for verb in EVENTFUL if "unwilled" not in verb.properties or "timed" in verb.properties)
STEADY = tuple(verb for verb in PERSONAL if "moment" not in verb.properties or "timed" in verb.properties)
MAIN_VERBS = {Tense.FUTURE: INTENDED, Tense.PRESENT: STEADY, Tense.PAST_PROGRESSIVE: LASTING}
SEEN_AFTERWARDS = ("forget", "find", "notice", "promise")  # verbs with a clause that are said of the past only
BOTH_PAST = (Tense.PAST, Tense.PAST)
BOTH_PRESENT = (Tense.PRESENT, Tense.PRESENT)
LINKS = (
    Link(Words("because", "weil"), (BOTH_PAST, BOTH_PRESENT), quality=True, free=True),
    Link(Words("because", "weil"), (BOTH_PAST, BOTH_PRESENT), quality=True, free=True),
    Link(Words("although", "obwohl"), (BOTH_PAST, BOTH_PRESENT), quality=True, free=True),
    Link(Words("when", "als"), (BOTH_PAST, (Tense.PAST, Tense.PAST_PROGRESSIVE)), verbs=EVENTFUL),
    Link(Words("while", "während"), ((Tense.PAST_PROGRESSIVE, Tense.PAST),), verbs=LASTING),
    Link(Words("if", "wenn"), ((Tense.PRESENT, Tense.FUTURE),), quality=True, verbs=INTENDED),
    Link(Words("before", "bevor"), (BOTH_PAST, (Tense.PRESENT, Tense.FUTURE)), verbs=EVENTFUL),
    Link(Words("after", "nachdem"), ((Tense.PLUPERFECT, Tense.PAST),), verbs=EVENTFUL),
    Link(Words("as soon as", "sobald"), ((Tense.PRESENT, Tense.FUTURE),), verbs=EVENTFUL),
    Link(Words("so that", "damit"), ((Tense.PRESENT, Tense.FUTURE),), first=False, verbs=WILLED),
)
THAT, WHETHER = Words("that", "dass"), Words("whether", "ob")
QUESTION_WORDS = (Words("when", "wann"), Words("why", "warum"), Words("where", "wo"))
CERTAINTIES = (
    Words("it is a pity", "es ist schade"),
    Words("it is clear", "es ist klar"),
    Words("it is strange", "es ist seltsam"),
    Words("it is true", "es stimmt"),
    Words("it is good", "es ist gut"),
)
CAN = MODALS[0]
GOING = tuple(
    verb for verb in INTENDED if verb.en.base in ("go", "run", "travel", "fly", "come", "stay", "move", "sit")
)
SOCIAL = tuple(verb for verb in INTENDED if any("person" in slot.tags for slot in verb.slots))
PLEASURES = tuple(verb for verb in LASTING if not verb.slots and not verb.de.reflexive)


def plain(scene: Scene) -> Sentence:
    """Yesterday the old woman bought a new coat."""
    return Sentence(*main_clause(scene, write_clause(scene)))


def idiom(scene: Scene) -> Sentence:
    """The boss has let the cat out of the bag."""
    tense = scene.dice.pick((Tense.PAST, Tense.PERFECT, Tense.FUTURE))
    return Sentence(*main_clause(scene, write_clause(scene, IDIOMS, tense=tense)))


def likes_doing(scene: Scene) -> Sentence:
    """The girl likes to swim: das Mädchen schwimmt gern."""
    clause = write_clause(scene, PLEASURES, tense=Tense.PRESENT, modal=LIKES_TO, bare=True)
    scene.show("gern")
    return Sentence(*main_clause(scene, clause, lead=False))


# the weather and the like


def impersonal(scene: Scene, tense: Tense) -> Clause:
    """It is raining, the telephone rang."""
    words, verb = scene.dice.pick(IMPERSONAL)
    subject = Phrase(words.en, words.en, (words.de, "", "", ""), german.ER, english.THIRD, german.NEUT)
    scene.show("impersonal")
    return Clause(subject, verb, tense=tense)


def weather(scene: Scene) -> Sentence:
    """Tomorrow it will snow."""
    tense = scene.dice.pick((Tense.PAST, Tense.FUTURE))
    clause = impersonal(scene, tense)
    clause.time = scene.time(tense)
    return Sentence(*main_clause(scene, clause))


# subordinate clauses


def linked(scene: Scene) -> Sentence:
    """Because it was too expensive, Anna did not buy the coat."""
    link = scene.dice.pick(LINKS)
    tense, main_tense = scene.dice.pick(link.tenses)
    main_verbs = MAIN_VERBS.get(main_tense, PERSONAL if link.free else EVENTFUL)
    future = main_tense is Tense.FUTURE
    modal = MODALS[scene.dice.below(4)] if future and scene.dice.chance(0.3) else None
    main_tense = Tense.PRESENT if modal else main_tense
    main = write_clause(
        scene, main_verbs, None, main_tense, modal, short=not link.free or scene.dice.chance(0.5), bare=not link.free
    )
    lower = dependent(scene, link, tense, main)
    before = link.first and not lower.subject.reference.startswith("it") and scene.dice.chance(0.35)
    if before and lower.subject is take_up(main.subject):
        lower.subject, main.subject = main.subject, lower.subject
    written = subordinate(scene, link.words, lower)
    if before:
        scene.show("verb_second")
        return Sentence(f"{written.en}, {english_statement(main)}", f"{written.de}, {german_first(main)}")
    words = main_clause(scene, main)
    return Sentence(f"{words.en} {written.en}", f"{words.de}, {written.de}")


def dependent(scene: Scene, link: Link, tense: Tense, main: Clause) -> Clause:
    """The subordinate clause, often about somebody or something in the main clause."""
    modal = CAN if link.words.en == "so that" else None
    kind = scene.dice.weighted(
        ((10, "weather"), (30, "subject"), (35 if link.quality else 0, "quality"), (30, "other"))
    )
    if kind == "weather" and not modal and tense is not Tense.PLUPERFECT:
        return impersonal(scene, Tense.PAST_PROGRESSIVE if tense is Tense.PAST else tense)
    if kind == "quality":
        return quality(scene, tense, main)
    subject = None
    if kind == "subject" and is_person(main.subject):
        subject = take_up(main.subject)
    verbs = STEADY if link.free and tense is Tense.PRESENT else link.verbs
    return write_clause(
        scene, verbs, subject, tense, modal, short=not link.free or scene.dice.chance(0.5), bare=not link.free
    )


def quality(scene: Scene, tense: Tense, main: Clause) -> Clause:
    """What the object, or else the subject, of the main clause is like: because it was too expensive."""
    direct = main.object("acc") or main.object("swap")
    thing = direct.phrase if direct else None
    if thing and thing.noun and thing.reference and "person" not in thing.noun.tags:
        adjective = scene.adjective(thing.noun)
        if adjective:
            scene.show("pronoun_agreement")
            return predicate(scene, PRONOUNS[thing.reference], tense, adjective)
    if not is_person(main.subject):
        return predicate(scene, someone(scene, "adult"), tense)
    return predicate(scene, take_up(main.subject), tense, about=main.subject.noun)


def is_person(phrase: Phrase) -> bool:
    """Whether a pronoun can take the phrase up as a grown-up, who may do whatever the verbs say."""
    return bool(phrase.reference) and (phrase.noun is None or "adult" in phrase.noun.tags)


def take_up(phrase: Phrase) -> Phrase:
    """The pronoun for somebody already named, or the same again where there is none."""
    return PRONOUNS.get(phrase.reference, phrase)


def reported(scene: Scene) -> Sentence:
    """Peter knows that his brother has arrived; it is a pity that ...; we asked whether ..."""
    scene.show("reported")
    if scene.dice.chance(0.15):
        return with_clause(scene, scene.dice.pick(CERTAINTIES), THAT, write_clause(scene, short=True))
    kind, verb = scene.dice.pick(CLAUSE_VERBS)
    past = verb.en.base in SEEN_AFTERWARDS or scene.dice.chance(0.5)
    upper = write_clause(scene, (verb,), tense=Tense.PAST if past else Tense.PRESENT, short=True, bare=True)
    opening = main_clause(scene, upper)
    return with_clause(scene, opening, WHETHER if kind == "whether" else THAT, content(scene, verb, past))


def content(scene: Scene, verb: Verb, past: bool) -> Clause:
    """What is said or known: what is hoped or promised is still to come, what was said was before."""
    if verb.en.base in ("hope", "promise"):
        return write_clause(scene, INTENDED, tense=Tense.CONDITIONAL if past else Tense.FUTURE, short=True, bare=True)
    if not past:
        return write_clause(scene, short=scene.dice.chance(0.6))
    if scene.dice.chance(0.4):
        return write_clause(scene, EVENTFUL, tense=Tense.PLUPERFECT, short=True, bare=True)
    return write_clause(scene, PERSONAL, tense=Tense.PAST, short=scene.dice.chance(0.5))


def with_clause(scene: Scene, opening: Words, conjunction: Words, lower: Clause) -> Sentence:
    """A main clause and the clause that it needs."""
    written = subordinate(scene, conjunction, lower)
    return Sentence(f"{opening.en} {written.en}", f"{opening.de}, {written.de}")


def indirect_question(scene: Scene) -> Sentence:
    """I do not know why the train has not arrived: ich weiß nicht, warum ..."""
    verb = next(verb for _, verb in CLAUSE_VERBS if verb.en.base == "know")
    clause = write_clause(scene, (verb,), tense=Tense.PRESENT, short=True, bare=True)
    clause.negation, clause.contracted = Negation.NOT, scene.contracted
    scene.show("negation", "indirect_question")
    word = scene.dice.pick(QUESTION_WORDS)
    lower = write_clause(scene, EVENTFUL, tense=Tense.PAST, short=True, bare=True)
    return with_clause(scene, Words(english_statement(clause), german_second(clause)), word, lower)


def infinitive(scene: Scene) -> Sentence:
    """Anna tried to call her mother: Anna hat versucht, ihre Mutter anzurufen. Or "in order to", "without"."""
    kind = scene.dice.weighted(((5, "to"), (3, "in order to"), (2, "without")))
    tense = Tense.PAST if kind == "to" or scene.dice.chance(0.6) else Tense.FUTURE
    verbs = {"to": INFINITIVE_VERBS, "in order to": GOING}.get(kind, LASTING)
    upper = write_clause(scene, verbs, someone(scene, "adult"), tense, short=True, bare=True)
    lower = write_clause(scene, WILLED if kind == "to" else SOCIAL, upper.subject, Tense.PRESENT, bare=True)
    scene.show("zu_infinitive")
    before = main_clause(scene, upper, lead=kind == "to")
    if kind == "without":
        return Sentence(f"{before.en} without {english_gerund(lower)}", f"{before.de}, ohne {german_infinitive(lower)}")
    um = "um " if kind == "in order to" else ""
    return Sentence(f"{before.en} {kind} {english_infinitive(lower)}", f"{before.de}, {um}{german_infinitive(lower)}")


def conditional(scene: Scene) -> Sentence:
    """If I had a car, I would drive to Berlin: Wenn ich ein Auto hätte, würde ich nach Berlin fahren."""
    have = next(verb for verb in PERSONAL if verb.de.infinitive == "haben" and not verb.de.fixed)
    subject = someone(scene, "adult")
    if scene.dice.chance(0.5):
        lower = write_clause(scene, (have,), subject, Tense.IRREAL, short=True, bare=True)
    else:
        lower = predicate(scene, subject, Tense.IRREAL)
    upper_subject = take_up(subject) if subject.reference else someone(scene, "adult")
    upper = write_clause(scene, INTENDED, upper_subject, Tense.CONDITIONAL, bare=True)
    written = subordinate(scene, Words("if", "wenn"), lower)
    scene.show("conditional", "verb_second")
    return Sentence(f"{written.en}, {english_statement(upper)}", f"{written.de}, {german_first(upper)}")


# coordination and speech


def joined(scene: Scene) -> Sentence:
    """Anna got up and opened the window; Anna got up but Peter ...; ... so she stayed at home (deshalb blieb sie)."""
    kind = scene.dice.weighted(((5, "and"), (4, "but"), (3, "so")))
    tense = scene.dice.pick((Tense.PAST, Tense.PAST, Tense.FUTURE))
    verbs = INTENDED if tense is Tense.FUTURE else EVENTFUL
    first = write_clause(scene, verbs, someone(scene, "adult"), tense, bare=True)
    if kind == "and":
        return same_subject(scene, first, verbs)
    words = main_clause(scene, first, lead=kind == "but")
    if kind == "but":
        second = write_clause(scene, verbs, tense=tense, short=scene.dice.chance(0.5))
        return Sentence(f"{words.en}, but {english_statement(second)}", f"{words.de}, aber {german_second(second)}")
    subject = take_up(first.subject) if first.subject.reference else someone(scene, "adult")
    second = write_clause(scene, verbs, subject, tense, short=scene.dice.chance(0.5))
    scene.show("verb_second")
    return Sentence(f"{words.en}, so {english_statement(second)}", f"{words.de}, deshalb {german_first(second)}")


def same_subject(scene: Scene, first: Clause, verbs: tuple[Verb, ...]) -> Sentence:
    """Two verbs with one subject, said once, and the auxiliary too: Anna hat gesungen und getanzt."""
    second = write_clause(scene, verbs, first.subject, first.tense, bare=True)
    second.time = None
    en, de = english_statement(second, subject=False), german_second(second, subject=False)
    scene.show("coordination")
    if second.tense is Tense.FUTURE:
        en = en.removeprefix("will ")
    finite = german_main(second).finite
    if finite == german_main(first).finite and german_main(first).others and german_main(second).others:
        de = de.removeprefix(finite).lstrip()
    return Sentence(f"{english_statement(first)} and {en}", f"{german_second(first)} und {de}")


def not_this_but_that(scene: Scene) -> Sentence | None:
    """Anna bought not the coat but the dress: nicht den Mantel, sondern das Kleid."""
    verb, subject = scene.dice.pick(CHOOSING), someone(scene, "adult")
    slot = verb.slots[0]
    tag = scene.dice.pick(slot.tags)
    first, second = scene.noun((tag,)), scene.noun((tag,))
    if first is second:
        return None
    left, right = (
        described(scene, noun, subject, role="worn" if "worn" in verb.properties else "known")
        for noun in (first, second)
    )
    for noun in (first, second):
        scene.combine("verb+object", verb.name, noun.en)
    pair = replace(
        coordinate(left, right),
        en_object=f"not {left.en_object} but {right.en_object}",
        de=("", f"nicht {left.de[german.ACC]} , sondern {right.de[german.ACC]}", "", ""),
    )
    clause = write_clause(scene, (verb,), subject, Tense.PAST, bare=True, gap=slot, theme=pair)
    clause.manner = None
    scene.show("negation", "sondern")
    return Sentence(english_statement(clause), german_second(clause))


CHOOSING = tuple(
    verb
    for verb in EVENTFUL
    if len(verb.slots) == 1 and verb.slots[0].role == "acc" and not verb.slots[0].en_preposition
)
SAYINGS = (Words("said", "sagte"), Words("answered", "antwortete"), Words("shouted", "rief"))


def direct_speech(scene: Scene) -> Sentence:
    """Anna's words, then who says them: „Ich bin müde“, sagte Anna."""
    speaker = scene.first_name() if scene.dice.chance(0.6) else described(scene, scene.noun(("adult",)), owner=None)
    saying = scene.dice.pick(SAYINGS)
    if scene.dice.chance(0.15):
        proverb = scene.dice.pick(PROVERBS)
        scene.show("idiom")
        en, de = proverb.en.rstrip("."), proverb.de.rstrip(".")
    else:
        subject = PRONOUNS[scene.dice.pick(("I", "we"))]
        clause = write_clause(scene, PERSONAL, subject)
        vocative = scene.vocative()
        en = polish(f"{english_statement(clause)} , {vocative.en}", "")
        de = polish(f"{german_second(clause)} , {vocative.de}", "")
    sagte = german.with_endings(saying.de)[speaker.person]
    scene.show("direct_speech")
    return Sentence(f'"{en}," {saying.en} {speaker.en}', f"„{de}“, {sagte} {speaker.de[0]}")


# orders


def order(scene: Scene) -> Sentence:
    """Please call your mother! Ruf bitte deine Mutter an! Do not forget the key! Vergiss den Schlüssel nicht!"""
    clause = write_clause(scene, ORDERS, scene.you(), Tense.PRESENT, bare=True)
    clause.time = scene.time(Tense.FUTURE) if scene.dice.chance(0.2) else None
    scene.show("imperative")
    start = ""
    known = all(one.phrase.definite for one in clause.objects if one.phrase)
    if known and not clause.manner and scene.dice.chance(0.2):
        clause.negation = Negation.NOT
        start = english.negate("do", scene.contracted)
        scene.show("negation")
    elif scene.dice.chance(0.6):
        clause.please, start = True, "please"
    form = FORMS.index(scene.addressee)
    return Sentence(join(start, english_infinitive(clause)), german_imperative(clause, form), scene.dice.pick(".!"))


def proposal(scene: Scene) -> Sentence:
    """Let us go to the park: Lass uns in den Park gehen."""
    clause = write_clause(scene, PROPOSALS, PRONOUNS["we"], Tense.PRESENT, bare=True)
    scene.show("imperative")
    en, de = english_infinitive(clause), german_infinitive(clause, zu=False)
    return Sentence(f"let us {en}", f"lass uns {de}", scene.dice.pick(".!"))


FORMS = ("du", "ihr", "Sie")
ORDERS = tuple(verb for verb in WILLED if "stative" not in verb.properties)
PROPOSALS = tuple(verb for verb in ORDERS if not verb.de.reflexive)
