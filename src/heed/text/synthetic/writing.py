"""How is a random clause written? A verb is chosen, then who does it, to whom, when, how and where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from heed.text.synthetic import english
from heed.text.synthetic.clauses import (
    Clause,
    Modal,
    Negation,
    Object,
    Tense,
    english_statement,
    german_final,
    german_first,
    german_second,
)
from heed.text.synthetic.german import (
    ACC,
    DAT,
    ER,
    NOM,
    PLURAL,
    RELATIVE,
    SIE,
    conjugate,
)
from heed.text.synthetic.lexicon import (
    ADJECTIVES,
    FREQUENCIES,
    MANNERS,
    NOUNS,
    SENTENCE_ADVERBS,
    VERBS,
    Adjective,
    Noun,
    Slot,
    Verb,
    Words,
)
from heed.text.synthetic.modals import MODALS
from heed.text.synthetic.naming import PERSON_TAGS, RelativeClause, described, in_german, someone, where, whither
from heed.text.synthetic.phrases import NOTHING, Phrase, join
from heed.text.synthetic.scene import Scene

BE = Verb(english.conjugate("be", "was", "been"), conjugate("sein", "gewesen", takes_sein=True))
COST = Verb(english.conjugate("cost", "cost", "cost"), conjugate("kosten", "gekostet"))
COME = Verb(english.conjugate("come", "came", "come"), conjugate("kommen", "gekommen", takes_sein=True))
TOO = Words("too", "zu")
DEGREES = (NOTHING, Words("very", "sehr"), TOO, Words("quite", "ziemlich"))
PERSONAL_ADJECTIVES = tuple(one for one in ADJECTIVES if "person" in one.tags)

POSSIBLE = tuple(verb for verb in VERBS if "idiom" not in verb.properties)
IDIOMS = tuple(verb for verb in VERBS if "idiom" in verb.properties)
PERSONAL = tuple(verb for verb in POSSIBLE if set(verb.subjects) & set(PERSON_TAGS))
WILLED = tuple(verb for verb in PERSONAL if "unwilled" not in verb.properties)
LASTING = tuple(verb for verb in WILLED if not verb.properties & {"stative", "moment"})


# tense and modality


def choose_tense(scene: Scene, verb: Verb) -> tuple[Tense, Modal | None]:
    """A tense that goes with the verb's kind of action, and perhaps a modal."""
    stative, moment = "stative" in verb.properties, "moment" in verb.properties
    timeless = moment and "timed" not in verb.properties
    willed = "unwilled" not in verb.properties
    tense, modal = scene.dice.weighted(
        (
            (34, (Tense.PAST, False)),
            (50 if stative else 2 if timeless else 16, (Tense.PRESENT, False)),
            (0 if stative or moment else 15, (Tense.PROGRESSIVE, False)),
            (0 if stative else 2 if timeless and not willed else 11, (Tense.FUTURE, False)),
            (0 if stative else 9, (Tense.PERFECT, False)),
            (14 if willed else 0, (Tense.PRESENT, True)),
            (6 if willed else 0, (Tense.PAST, True)),
        )
    )
    return tense, choose_modal(scene, tense) if modal else None


def choose_modal(scene: Scene, tense: Tense) -> Modal:
    return scene.dice.pick([modal for modal in MODALS if tense is Tense.PRESENT or modal.de_past])


def choose_negation(scene: Scene, clause: Clause) -> None:
    """Negate now and then; an indefinite object will then say "kein"."""
    negatable = clause.tense not in (Tense.PROGRESSIVE, Tense.PAST_PROGRESSIVE) and not clause.frequency
    quantified = clause.subject.en.startswith(("every", "many", "some", "all"))
    if "noneg" in clause.verb.properties or clause.time or not negatable or quantified or not scene.dice.chance(0.22):
        return
    clause.negation = Negation.NOT_YET if clause.tense is Tense.PERFECT else Negation.NOT
    clause.contracted = scene.contracted
    scene.show("negation")


# clauses


def write_clause(
    scene: Scene,
    verbs: Sequence[Verb] = POSSIBLE,
    subject: Phrase | None = None,
    tense: Tense | None = None,
    modal: Modal | None = None,
    short: bool = False,
    bare: bool = False,
    gap: Slot | None = None,
    theme: Phrase | None = None,
) -> Clause:
    """A random clause.

    `short` leaves out adverbials and relative clauses, `bare` negation and habits ("often", "every day");
    `gap` is the complement that stands elsewhere or, given a `theme`, the one that is already known.
    """
    verb = scene.dice.pick(verbs)
    subject = subject or choose_subject(scene, verb, None if short else relative_clause)
    clause = Clause(subject, verb, modal=modal, to_receiver="to" in verb.properties and scene.dice.chance(0.4))
    if tense is None:
        clause.tense, clause.modal = choose_tense(scene, verb)
    else:
        clause.tense = tense
    if not bare:
        if clause.tense is Tense.PRESENT and not clause.modal and "stative" not in verb.properties:
            habit(scene, clause, short)
        choose_negation(scene, clause)
    for slot in verb.slots:
        if slot is gap and theme:
            clause.objects.append(Object(slot, theme))
        elif slot is gap:
            clause.objects.append(Object(slot, words=Words(slot.en_preposition, ""), gap=not slot.en_preposition))
        elif not slot.optional or (not short and scene.dice.chance(0.4)):
            clause.objects.append(fill(scene, clause, slot, short))
    settle_negation(clause)
    if not short:
        add_adverbials(scene, clause)
    mark(scene, clause)
    return clause


def choose_subject(scene: Scene, verb: Verb, relative: RelativeClause | None = None) -> Phrase:
    tag = verb.subjects[0] if len(verb.subjects) == 1 or scene.dice.chance(0.7) else scene.dice.pick(verb.subjects)
    if tag in ("person", "adult"):
        return someone(scene, tag, relative=relative)
    noun = scene.noun((tag,))
    return described(scene, noun, owner=None, relative=relative, role="subject" if "animal" in noun.tags else "known")


def habit(scene: Scene, clause: Clause, short: bool) -> None:
    """What is done in the present is done often, or at a time."""
    if short or scene.dice.chance(0.5):
        clause.frequency = scene.dice.pick(FREQUENCIES)
    else:
        clause.time = scene.time(Tense.PRESENT, timed="timed" in clause.verb.properties)


def fill(scene: Scene, clause: Clause, slot: Slot, short: bool) -> Object:
    """Choose what stands in a slot."""
    if slot.role == "loc":
        return Object(slot, words=where(scene, slot.tags))
    if slot.role == "dir":
        return Object(slot, words=whither(scene, slot.tags))
    phrase = choose_object(scene, clause, slot, short)
    if slot.role == "prep":
        scene.show("prepositional_object")
        if slot.case == ACC and phrase.noun and "person" in phrase.noun.tags:
            phrase = replace(phrase, contracts=False)  # in das Mädchen verliebt
        german_words = in_german(scene, slot.de_preposition, slot.case, phrase)
        return Object(slot, phrase, Words(join(slot.en_preposition, phrase.en_object), german_words))
    if slot.role == "swap":
        scene.show("argument_swap")
    if slot.role == "dat":
        scene.show("dative")
    if phrase.column == PLURAL and slot.role == "dat" and not phrase.pronoun and phrase.noun:
        scene.show("dative_plural")
    return Object(slot, phrase)


def choose_object(scene: Scene, clause: Clause, slot: Slot, short: bool) -> Phrase:
    """A person or thing of the slot's classes; only what comes last may have a relative clause.

    In a negated clause an indefinite object says "kein".
    """
    tag = scene.dice.pick(slot.tags)
    relative = relative_clause if not short and comes_last(clause.verb, slot) else None
    subject = clause.subject
    negated = slot.role == "acc" and clause.negation is not Negation.NONE
    if slot.role == "dat" and len(clause.verb.slots) == 1:
        negated = clause.negation is Negation.NOT
    if slot.role == "swap":
        phrase = described(scene, scene.noun((tag,)), owner=None, role="known")
    elif tag in PERSON_TAGS and scene.dice.chance(0.8):
        phrase = someone(scene, tag, subject, relative, negated)
    else:
        noun = scene.noun((tag,))
        roles = ("new", "worn") if slot.role == "acc" else ()
        role = next((role for role in roles if role in clause.verb.properties), "object")
        phrase = described(scene, noun, subject, relative, role, negated)
    if phrase.noun:
        scene.combine("verb+object", clause.verb.name, phrase.noun.en)
    return phrase


def comes_last(verb: Verb, slot: Slot) -> bool:
    """Whether the complement comes last in English, so that a relative clause after it cannot swallow another."""
    others = [one for one in verb.slots if one is not slot]
    return slot is verb.slots[-1] and not any(one.role == "dat" and one.en_preposition for one in others)


def settle_negation(clause: Clause) -> None:
    """Where the object says "kein", "nicht" is not said."""
    phrases = [one.phrase for one in clause.objects if one.phrase and one.slot.role in ("acc", "dat")]
    if any(phrase.de[DAT].startswith("kein") for phrase in phrases):
        clause.negation = Negation.NO_YET if clause.negation is Negation.NOT_YET else Negation.NO


def add_adverbials(scene: Scene, clause: Clause) -> None:
    """At most two of: when, how, where, with whom."""
    dice, properties = scene.dice, clause.verb.properties
    if any(one.phrase and one.phrase.relative for one in clause.objects):
        return  # what follows would seem to belong to the relative clause
    room = 2
    if clause.time is None and clause.tense is not Tense.PERFECT and "stative" not in properties:
        chance = {Tense.PAST: 0.6, Tense.FUTURE: 0.6, Tense.PRESENT: 0.0, Tense.PROGRESSIVE: 0.0}.get(clause.tense, 0.3)
        if clause.modal and clause.modal.de_present and clause.tense is Tense.PRESENT:
            chance = 0.25
        if dice.chance(chance):
            clause.time = scene.time(Tense.FUTURE if clause.modal and clause.tense is Tense.PRESENT else clause.tense)
            room -= 1
    if "alone" in properties and dice.chance(0.12):
        clause.company = with_someone(scene, clause.subject)
        room -= 1
    manners = [words for tag, words in MANNERS if tag in properties]
    if manners and clause.company is None and clause.negation is Negation.NONE and dice.chance(0.2):
        clause.manner = dice.pick(manners)
        scene.show("manner")
        room -= 1
    if "at" in properties and room and dice.chance(0.4):
        clause.place = where(scene)


def with_someone(scene: Scene, subject: Phrase) -> Words:
    """With Anna: mit Anna."""
    companion = someone(scene, apart_from=subject)
    return Words(f"with {companion.en_object}", in_german(scene, "mit", DAT, companion))


def mark(scene: Scene, clause: Clause) -> None:
    """Note what the clause shows."""
    verb = clause.verb.de
    if verb.prefix:
        scene.show("separable")
    if verb.reflexive:
        scene.show("reflexive")
    if "idiom" in clause.verb.properties:
        scene.show("idiom")
    if clause.modal:
        scene.show("modal" if clause.modal.de_present else "gern")
    elif clause.tense in (Tense.PAST, Tense.PAST_PROGRESSIVE, Tense.PERFECT) and not verb.preterite:
        scene.show("perfect_sein" if verb.takes_sein else "perfect_haben")
    shown = {Tense.PROGRESSIVE: "progressive", Tense.FUTURE: "future", Tense.PLUPERFECT: "pluperfect"}
    if clause.tense in shown:
        scene.show(shown[clause.tense])


def predicate(
    scene: Scene, subject: Phrase, tense: Tense, adjective: Adjective | None = None, about: Noun | None = None
) -> Clause:
    """Somebody or something is so: it was too expensive.

    Without an adjective, one that is said of people; `about` is then the noun that a pronoun stands for.
    """
    if adjective is None:
        said_before = [one.first for one in scene.combinations]
        adjective = scene.dice.pick([one for one in PERSONAL_ADJECTIVES if one.en not in said_before])
        noun = about or subject.noun
        if noun:
            scene.describe(adjective, noun)
    degree = scene.dice.pick(DEGREES) if adjective.graded else NOTHING
    if degree is TOO and adjective.en_comparative.startswith("more"):
        degree = NOTHING  # nothing is too interesting
    said = Words(join(degree.en, adjective.en), join(degree.de, adjective.de))
    scene.show("predicate")
    return Clause(subject, BE, tense=tense, predicate=said)


# putting clauses into words


def main_clause(scene: Scene, clause: Clause, lead: bool = True) -> Words:
    """A main clause, its subject in front or, by chance, an adverbial: then German inverts (verb second)."""
    front = choose_lead(scene, clause) if lead else None
    if front is None:
        return Words(english_statement(clause), german_second(clause))
    scene.show("verb_second")
    return Words(join(front.en, english_statement(clause)), join(front.de, german_first(clause)))


def choose_lead(scene: Scene, clause: Clause) -> Words | None:
    """Take the time or the place to the front, or a sentence adverb."""
    if clause.time and scene.dice.chance(0.45):
        front, clause.time = clause.time, None
    elif clause.place and scene.dice.chance(0.15):
        front, clause.place = clause.place, None
    elif scene.dice.chance(0.06):
        past = clause.tense is Tense.PAST
        return scene.dice.pick([words for tense, words in SENTENCE_ADVERBS if past or tense == "any"])
    else:
        return None
    comma = "," if len(front.en.split()) > 2 else ""
    return Words(front.en + comma, front.de)


def subordinate(scene: Scene, conjunction: Words, clause: Clause, kind: str = "") -> Words:
    """A conjunction and its clause, whose German verb comes last. The commas are the caller's.

    `kind` is the kind of clause where the conjunction does not say it.
    """
    scene.show("verb_final")
    if clause.verb.de.prefix:
        scene.combine("separable+clause", clause.verb.name, kind or conjunction.de)
    return Words(join(conjunction.en, english_statement(clause)), join(conjunction.de, german_final(clause)))


# relative clauses


def relative_clause(scene: Scene, noun: Noun, plural: bool) -> Words:
    """A relative clause in which the noun is the subject or an object. Empty if the sentence has one already."""
    if scene.relative_clauses:
        return NOTHING
    scene.relative_clauses += 1
    column = PLURAL if plural else noun.column
    frames = FRAMES[noun.en]
    kinds = (
        (4 if noun.tags & {"person", "animal"} else 0, "subject"),
        (4 if frames else 0, "object"),
        (2, "predicate"),
    )
    kind = scene.dice.weighted(kinds)
    written = {"subject": relative_subject, "object": relative_object, "predicate": relative_predicate}[kind](
        scene, noun, column
    )
    if not written.de:
        return written
    scene.show("relative_clause", "verb_final")
    return Words(written.en, f", {written.de} ,")


def relative_subject(scene: Scene, noun: Noun, column: int) -> Words:
    """who has bought the book: der das Buch gekauft hat."""
    who = "who" if "person" in noun.tags else "that"
    plural = column == PLURAL
    en_person, person = (english.PLURAL, SIE) if plural else (english.THIRD, ER)
    forms = RELATIVE[column]
    pronoun = Phrase(who, who, (forms[0], forms[1], forms[2], forms[3]), person, en_person, column)
    tense = scene.dice.pick((Tense.PAST, Tense.PAST, Tense.PRESENT))
    verbs = [verb for verb in VERBS_OF[noun.en] if tense is Tense.PAST or "stative" in verb.properties]
    if not verbs:
        return NOTHING
    clause = write_clause(scene, verbs, pronoun, tense, short=True)
    return subordinate(scene, NOTHING, clause, "relative")


def relative_object(scene: Scene, noun: Noun, column: int) -> Words:
    """that the man has bought, whom the man helps, that Anna is waiting for: den, dem, auf den ..."""
    verb, slot = scene.dice.pick(FRAMES[noun.en])
    stative = "stative" in verb.properties
    tense = scene.dice.pick((Tense.PAST, Tense.PRESENT if stative else Tense.PAST))
    clause = write_clause(scene, (verb,), None, tense, short=True, gap=slot)
    scene.combine("verb+object", verb.name, noun.en)
    pronoun = RELATIVE[column][slot.case]
    if slot.role == "dat":
        scene.show("dative")
    that = "whom" if "person" in noun.tags else "that"
    return subordinate(scene, Words(that, join(slot.de_preposition, pronoun)), clause, "relative")


def relative_predicate(scene: Scene, noun: Noun, column: int) -> Words:
    """that is very old, that is broken: der sehr alt ist, der kaputt ist."""
    chosen = scene.adjective(noun)
    if chosen is None:
        return NOTHING
    be, ist = ("are", "sind") if column == PLURAL else ("is", "ist")
    who = "who" if "person" in noun.tags else "that"
    very = Words("very", "sehr") if chosen.graded else NOTHING
    return Words(join(who, be, very.en, chosen.en), join(RELATIVE[column][NOM], very.de, chosen.de, ist))


def frames_of(noun: Noun) -> tuple[tuple[Verb, Slot], ...]:
    """The verbs that can say of a person what he does with the noun, and the slot where the noun would stand."""
    return tuple(
        (verb, slot)
        for verb in PERSONAL
        for slot in verb.slots
        if slot.role in ("acc", "dat", "prep") and not slot.optional and not noun.tags.isdisjoint(slot.tags)
        if slot.role != "dat" or len(verb.slots) == 1
    )


def verbs_of(noun: Noun) -> tuple[Verb, ...]:
    return tuple(verb for verb in POSSIBLE if not noun.tags.isdisjoint(verb.subjects))


FRAMES = {noun.en: frames_of(noun) for noun in NOUNS}
VERBS_OF = {noun.en: verbs_of(noun) for noun in NOUNS}
