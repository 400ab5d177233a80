"""In which order do the words of a clause stand, in English and in German?

A `Clause` says who does what to whom, when, how and where; it is put into words in one of several orders.
German is laid out in fields: what stands in front, the finite verb, the middle field, the other verb forms.
A main clause has its verb second ("Gestern hat er das Buch gelesen"), a question or an inverted clause first
("Hat er das Buch gelesen"), a subordinate one last ("dass er das Buch gelesen hat").
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from heed.text.synthetic import english, german
from heed.text.synthetic.german import ACC, DAT, NOM
from heed.text.synthetic.lexicon import Slot, Verb, Words
from heed.text.synthetic.phrases import NOTHING, Phrase, join


class Tense(Enum):
    PRESENT = "reads"  # liest
    PROGRESSIVE = "is reading"  # liest gerade
    PAST = "read"  # hat gelesen
    PAST_PROGRESSIVE = "was reading"  # hat gelesen
    PERFECT = "has already read"  # hat schon gelesen
    PLUPERFECT = "had read"  # hatte gelesen
    FUTURE = "will read"  # wird lesen
    CONDITIONAL = "would read"  # würde lesen
    IRREAL = "read, if"  # läse: only haben and sein (hätte, wäre)


class Negation(Enum):
    NONE = "reads"
    NOT = "does not read"  # nicht
    NO = "does not read a"  # the object says it: kein
    NOT_YET = "has not read yet"  # noch nicht
    NO_YET = "has not read a yet"  # noch, and the object: kein


GERMAN_NEGATION = {
    Negation.NONE: "",
    Negation.NOT: "nicht",
    Negation.NO: "",
    Negation.NOT_YET: "noch nicht",
    Negation.NO_YET: "noch",
}


EARLY = ("manchmal", "meistens")  # adverbs that stand before the objects, where others stand before "nicht"


class Modal(NamedTuple):
    """An English auxiliary, or a verb with "to", and the German verb it goes with; `negated` where that is another."""

    en_operator: str
    en_past: str
    en_verb: english.Forms | None
    en_tail: str
    de_present: tuple[str, ...]
    de_past: tuple[str, ...]
    de_negated: tuple[str, ...]
    adverb: str = ""  # instead of a German verb: gern


class English(NamedTuple):
    """The parts of an English predicate: operator (is, has, can), the rest, and whether it is the verb's own form."""

    operator: str
    rest: str
    finite: str


@dataclass(slots=True)
class Object:
    """A filled complement. `words` is the finished prepositional phrase or place, for all but bare cases."""

    slot: Slot
    phrase: Phrase | None = None
    words: Words | None = None
    gap: bool = False  # it stands elsewhere: asked for, or taken up by a relative pronoun


@dataclass(slots=True)
class Clause:
    subject: Phrase
    verb: Verb
    objects: list[Object] = field(default_factory=list)
    tense: Tense = Tense.PRESENT
    modal: Modal | None = None
    passive: bool = False
    negation: Negation = Negation.NONE
    contracted: bool = False  # isn't, won't
    to_receiver: bool = False  # gives the book to the man rather than gives the man the book
    time: Words | None = None
    frequency: Words | None = None
    manner: Words | None = None
    company: Words | None = None  # with Anna, by the workers
    place: Words | None = None
    predicate: Words | None = None
    please: bool = False

    def object(self, role: str) -> Object | None:
        """The complement in that role that stands in its place, if any."""
        return next((one for one in self.objects if one.slot.role == role and not one.gap), None)


# English


def english_main(clause: Clause) -> English:
    """The predicate without subject and complements; `operator` is empty where "do" would be needed."""
    verb, person, tense = clause.verb.en, clause.subject.en_person, clause.tense
    past = tense in (Tense.PAST, Tense.PAST_PROGRESSIVE)
    if clause.modal:
        return english_modal(clause, clause.modal)
    if clause.passive:
        return english_passive(tense, person, verb.participle)
    if tense in (Tense.PROGRESSIVE, Tense.PAST_PROGRESSIVE):
        return English(english.BE["past" if past else "present"][person], verb.ing, "")
    if tense is Tense.FUTURE:
        return English("will", verb.base, "")
    if tense is Tense.CONDITIONAL:
        return English("would", verb.base, "")
    if tense is Tense.PERFECT:
        return English("has" if person == english.THIRD else "have", verb.participle, "")
    if tense is Tense.PLUPERFECT:
        return English("had", verb.participle, "")
    if verb.base == "be":
        operator = "were" if tense is Tense.IRREAL else english.BE["past" if past else "present"][person]
        return English(operator, "", "")
    if past or tense is Tense.IRREAL:
        return English("", verb.base, verb.past)
    return English("", verb.base, verb.third if person == english.THIRD else verb.base)


def english_passive(tense: Tense, person: int, participle: str) -> English:
    if tense is Tense.FUTURE:
        return English("will", f"be {participle}", "")
    if tense is Tense.PERFECT:
        return English("has" if person == english.THIRD else "have", f"been {participle}", "")
    return English(english.BE["past" if tense is Tense.PAST else "present"][person], participle, "")


def english_modal(clause: Clause, modal: Modal) -> English:
    past, person = clause.tense is Tense.PAST, clause.subject.en_person
    rest = join(modal.en_tail, f"be {clause.verb.en.participle}" if clause.passive else clause.verb.en.base)
    if modal.en_verb is None:
        operator = modal.en_past if past else modal.en_operator
        return English(english.BE["past" if past else "present"][person] if operator == "be" else operator, rest, "")
    forms = modal.en_verb
    finite = forms.past if past else forms.third if person == english.THIRD else forms.base
    return English("", join(forms.base, rest), join(finite, rest))


def english_do(clause: Clause) -> str:
    if clause.tense in (Tense.PAST, Tense.IRREAL):
        return "did"
    return "does" if clause.subject.en_person == english.THIRD else "do"


def english_statement(clause: Clause, subject: bool = True) -> str:
    """The old woman has not read the book yet. Without the subject: what follows "who" or "that"."""
    main = english_main(clause)
    adverb = english_adverb(clause)
    if clause.negation is not Negation.NONE:
        operator = english.negate(main.operator or english_do(clause), clause.contracted)
        predicate = join(operator, adverb, main.rest)
    else:
        predicate = join(main.operator, adverb, main.finite or main.rest)
    return join(clause.subject.en if subject else "", predicate, english_rest(clause))


def english_question(clause: Clause) -> str:
    """Has the old woman read the book: what a question, or what follows its question word, looks like."""
    main = english_main(clause)
    operator = main.operator or english_do(clause)
    return join(operator, clause.subject.en, english_adverb(clause), main.rest, english_rest(clause))


def english_infinitive(clause: Clause) -> str:
    """Read the book: an imperative, or what follows "to"."""
    return join(clause.verb.en.base, english_rest(clause))


def english_gerund(clause: Clause) -> str:
    """Reading the book: what follows "without"."""
    return join(clause.verb.en.ing, english_rest(clause))


def english_adverb(clause: Clause) -> str:
    already = "already" if clause.tense is Tense.PERFECT and clause.negation is Negation.NONE else ""
    return join(already, clause.frequency.en if clause.frequency else "")


def english_rest(clause: Clause) -> str:
    """Everything after the verb: particle, objects, manner, place, time."""
    parts = english_objects(clause)
    after = [one.words.en for one in clause.objects if one.words and not one.gap]
    parts += [words.en for words in (clause.predicate, clause.manner) if words]
    parts += after
    parts += [words.en for words in (clause.company, clause.place, clause.time) if words]
    if clause.negation in (Negation.NOT_YET, Negation.NO_YET):
        parts.append("yet")
    return join(*parts)


def english_objects(clause: Clause) -> list[str]:
    """The verb's particle and its bare objects: picks up the child, picks her up, gives it to the man."""
    tail = clause.verb.en.tail
    direct = clause.object("acc") or clause.object("swap")
    receiver = clause.object("dat")
    if direct is None or direct.phrase is None:
        return [tail, english_object(receiver)]
    particle_last = direct.phrase.pronoun
    named = english_object(direct)
    placed = [named, tail] if particle_last else [tail, named]
    if receiver is None or receiver.phrase is None:
        return placed
    if receiver.slot.en_preposition:
        return [*placed, english_object(receiver)]
    if clause.to_receiver or direct.phrase.pronoun:
        return [*placed, f"to {english_object(receiver)}"]
    return [english_object(receiver), *placed]


def english_object(one: Object | None) -> str:
    if one is None or one.phrase is None:
        return ""
    return join(one.slot.en_preposition, one.phrase.en_object)


# German


class German(NamedTuple):
    """A German predicate: the finite form, its separable prefix if it has split off, and the other verb forms."""

    finite: str
    prefix: str
    others: tuple[str, ...]


def german_main(clause: Clause) -> German:
    """The verb forms of a clause in its tense, voice and modality."""
    verb, tense = clause.verb.de, clause.tense
    person = german_subject(clause).person
    if clause.modal and clause.modal.de_present:
        return German(german_modal(clause.modal, clause)[person], "", german_nonfinite(clause))
    if clause.passive:
        return german_passive(tense, person, verb.participle)
    if tense in (Tense.FUTURE, Tense.CONDITIONAL):
        auxiliary = german.WERDEN if tense is Tense.FUTURE else german.WUERDE
        return German(auxiliary[person], "", (verb.full_infinitive,))
    if tense is Tense.IRREAL:
        return German((german.HAETTE if verb.infinitive == "haben" else german.WAERE)[person], "", ())
    if tense in (Tense.PAST, Tense.PAST_PROGRESSIVE) and verb.preterite:
        return German(verb.preterite[person], "", ())
    if tense is Tense.PLUPERFECT:
        return German((german.WAR if verb.takes_sein else german.HATTE)[person], "", (verb.participle,))
    if tense in (Tense.PAST, Tense.PAST_PROGRESSIVE, Tense.PERFECT):
        return German((german.SEIN if verb.takes_sein else german.HABEN)[person], "", (verb.participle,))
    return German(verb.present[person], verb.prefix, ())


def german_modal(modal: Modal, clause: Clause) -> tuple[str, ...]:
    if clause.tense is Tense.PAST:
        return modal.de_past
    return modal.de_present if clause.negation is Negation.NONE else modal.de_negated


def german_nonfinite(clause: Clause) -> tuple[str, ...]:
    verb = clause.verb.de
    return (verb.participle, "werden") if clause.passive else (verb.full_infinitive,)


def german_passive(tense: Tense, person: int, participle: str) -> German:
    if tense is Tense.FUTURE:
        return German(german.WERDEN[person], "", (participle, "werden"))
    if tense is Tense.PERFECT:
        return German(german.SEIN[person], "", (participle, "worden"))
    return German((german.WURDE if tense is Tense.PAST else german.WERDEN)[person], "", (participle,))


def german_subject(clause: Clause) -> Phrase:
    """The phrase the German verb agrees with: for "I like it" that is "it"."""
    swapped = next((one.phrase for one in clause.objects if one.slot.role == "swap"), None)
    return swapped or clause.subject


def german_topic(clause: Clause) -> str:
    """What stands where the English subject stands: the subject, or the dative of a swapped verb (mir)."""
    return clause.subject.de[DAT if german_subject(clause) is not clause.subject else NOM]


def german_second(clause: Clause, subject: bool = True) -> str:
    """A main clause with its subject in front: Die Frau hat das Buch gelesen. Or only what follows the subject."""
    main = german_main(clause)
    topic = german_topic(clause) if subject else ""
    return german_fields(clause, [topic, main.finite, *german_middle(clause)], [main.prefix, *main.others])


def german_first(clause: Clause) -> str:
    """The verb first: a question, or what follows an adverb or a subordinate clause (Gestern ...)."""
    main, middle, topic = german_main(clause), german_middle(clause), german_topic(clause)
    if clause.verb.de.reflexive and not clause.subject.pronoun:
        middle = [middle[0], topic, *middle[1:]]  # gestern hat sich die Frau ...
    else:
        middle = [topic, *middle]
    return german_fields(clause, [main.finite, *middle], [main.prefix, *main.others])


def german_final(clause: Clause) -> str:
    """The verb last: what follows dass or weil, or a relative clause with its pronoun."""
    main = german_main(clause)
    return german_fields(
        clause, [german_topic(clause), *german_middle(clause)], [*main.others, main.prefix + main.finite]
    )


def german_infinitive(clause: Clause, zu: bool = True) -> str:
    """Das Buch zu lesen, die Mutter anzurufen; or das Buch lesen. "sich" agrees with the subject, which is not said."""
    verb = clause.verb.de
    return german_fields(clause, german_middle(clause), [verb.zu_infinitive if zu else verb.full_infinitive])


def german_imperative(clause: Clause, form: int) -> str:
    """An order to du, ihr or Sie (`form` 0 to 2): Ruf sie bitte an!"""
    verb = clause.verb.de
    polite = "Sie" if form == 2 else ""
    return german_fields(clause, [verb.imperatives[form], polite, *german_middle(clause)], [verb.prefix])


def german_fields(clause: Clause, before: list[str], bracket: list[str]) -> str:
    """Join the fields. A relative clause just before the last verb forms moves behind them: ... gelesen, das ..."""
    text, end = join(*before), join(*bracket)
    for one in clause.objects:
        relative = one.phrase.relative if one.phrase else ""
        if end and relative and text.endswith(relative):
            return join(text.removesuffix(relative).rstrip(), end, relative)
    return join(text, end)


def german_middle(clause: Clause) -> list[str]:
    """The middle field after the subject: pronouns, time, receiver, object, negation, manner, place, the rest."""
    verb = clause.verb.de
    direct, receiver, swapped = clause.object("acc"), clause.object("dat"), clause.object("swap")
    parts = [german.REFLEXIVES[clause.subject.person]] if verb.reflexive else []
    parts += [german_case(one) for one in (direct, receiver) if one and one.phrase and one.phrase.pronoun]
    parts += ["bitte"] if clause.please else []
    to_whom = [german_case(receiver)] if receiver and receiver.phrase and not receiver.phrase.pronoun else []
    when = [clause.time.de if clause.time else "", "gerade" if clause.tense is Tense.PROGRESSIVE else ""]
    when += [clause.frequency.de] if clause.frequency and is_early(clause) else []
    known = bool(receiver and receiver.phrase and receiver.phrase.definite)
    parts += [*to_whom, *when] if known else [*when, *to_whom]
    theme = swapped or direct
    named = [german_case(theme)] if theme and theme.phrase and not theme.phrase.pronoun else []
    particle = german_particle(clause)
    company, manner, place, said = (
        [words.de] if words else [] for words in (clause.company, clause.manner, clause.place, clause.predicate)
    )
    if theme is None or theme.phrase is None or theme.phrase.definite:
        parts += [*named, *particle, *company, *manner, *place, *said]
    else:  # something new comes after the circumstances: er hat im Park oft langsam ein Buch gelesen
        parts += [*company, *place, *particle, *manner, *named]
    parts.append(verb.fixed)
    parts += [one.words.de for one in clause.objects if one.words and not one.gap]
    return parts


def is_early(clause: Clause) -> bool:
    """Whether the adverb stands before the direct object even if that is known: er gibt dem Kind oft das Buch."""
    related = any(one.phrase and one.phrase.relative for one in clause.objects)
    return related or clause.object("dat") is not None or (clause.frequency or NOTHING).de in EARLY


def german_case(one: Object) -> str:
    assert one.phrase is not None
    return one.phrase.de[NOM if one.slot.role == "swap" else ACC if one.slot.role == "acc" else DAT]


def german_particle(clause: Clause) -> list[str]:
    """What stands at the place of "nicht", after what is known and before what is new: oft, gern, schon, nicht."""
    often = clause.frequency.de if clause.frequency and not is_early(clause) else ""
    gern = clause.modal.adverb if clause.modal else ""
    already = "schon" if clause.tense is Tense.PERFECT and clause.negation is Negation.NONE else ""
    return [often, gern, already, GERMAN_NEGATION[clause.negation]]
