"""Which kinds of questions are there?"""

from __future__ import annotations

from heed.text.synthetic.clauses import Clause, Tense, english_question, english_statement, german_first, german_second
from heed.text.synthetic.german import ACC, DAT, NOM
from heed.text.synthetic.lexicon import Slot, Verb, Words
from heed.text.synthetic.modals import MODALS
from heed.text.synthetic.naming import PERSON_TAGS, described, someone
from heed.text.synthetic.phrases import PRONOUNS, THE, WHICH, WHO, Determiner, Phrase, join, noun_phrase, owned_by
from heed.text.synthetic.scene import Scene
from heed.text.synthetic.wording import Sentence
from heed.text.synthetic.writing import BE, COME, COST, PERSONAL, predicate, write_clause

HOW_MANY = Determiner("how many", "", "wie viele", definite=False)
DOING = tuple(verb for verb in PERSONAL if "stative" not in verb.properties)
ORDERLY = tuple(verb for verb in DOING if "unwilled" not in verb.properties)
GOING = tuple(verb for verb in PERSONAL if any(slot.role == "dir" for slot in verb.slots))
PLACED = tuple(verb for verb in PERSONAL if "at" in verb.properties)
OBJECTS = tuple(
    (verb, slot)
    for verb in PERSONAL
    for slot in verb.slots
    if slot.role in ("acc", "dat", "prep") and not slot.optional and len(verb.slots) == 1
)


def is_plain(verb: Verb, slot: Slot) -> bool:
    """Whether one German verb is meant even without the object: not so for "what did you make", "watch"."""
    return all(
        other.name == verb.name
        for other, its in OBJECTS
        if (other.en, its.en_preposition) == (verb.en, slot.en_preposition)
    )


ASKABLE = tuple((verb, slot) for verb, slot in OBJECTS if is_plain(verb, slot))
WHEN, WHY, WHERE, WHITHER = (
    Words("when", "wann"),
    Words("why", "warum"),
    Words("where", "wo"),
    Words("where", "wohin"),
)


def asked(scene: Scene, word: Words, clause: Clause) -> Sentence:
    """A question word and the clause it asks about, the finite verb first."""
    scene.show("question", "question_word")
    return Sentence(join(word.en, english_question(clause)), join(word.de, german_first(clause)), "?")


def subject_asked_about(scene: Scene) -> Phrase:
    return scene.you() if scene.dice.chance(0.35) else someone(scene, "adult", PRONOUNS["I"])


def yes_or_no(scene: Scene) -> Sentence:
    """Can you help me? Kannst du mir helfen?"""
    modal = scene.dice.chance(0.3)
    if modal:
        chosen = scene.dice.pick((MODALS[0], MODALS[0], MODALS[2], MODALS[4], MODALS[5]))
        subject = PRONOUNS[scene.dice.pick(("I", "we"))] if chosen is MODALS[2] else subject_asked_about(scene)
        clause = write_clause(scene, ORDERLY, subject, Tense.PRESENT, chosen, short=True, bare=True)
    else:
        clause = write_clause(scene, PERSONAL, subject_asked_about(scene), short=scene.dice.chance(0.4))
        if clause.negation.name != "NONE":
            return Sentence(english_statement(clause), german_second(clause))
    scene.show("question")
    return Sentence(english_question(clause), german_first(clause), "?")


def circumstance(scene: Scene) -> Sentence:
    """When, why, where did Anna ...? Wohin ist Anna gegangen?"""
    tense = scene.dice.pick((Tense.PAST, Tense.PAST, Tense.FUTURE))
    subject = subject_asked_about(scene)
    kind = scene.dice.below(5)
    if kind == 0:
        verb = scene.dice.pick(GOING)
        return asked(
            scene, WHITHER, write_clause(scene, (verb,), subject, tense, short=True, bare=True, gap=verb.slots[0])
        )
    word, verbs = ((WHERE, PLACED), (WHEN, DOING), (WHY, DOING), (WHY, DOING))[kind - 1]
    return asked(scene, word, write_clause(scene, verbs, subject, tense, short=True, bare=True))


def who_does(scene: Scene) -> Sentence:
    """Who has called the doctor? Wer hat den Arzt angerufen?"""
    clause = write_clause(scene, PERSONAL, WHO, scene.dice.pick((Tense.PAST, Tense.PERFECT, Tense.FUTURE)), bare=True)
    if clause.tense is not Tense.PAST and "stative" in clause.verb.properties:
        clause.tense = Tense.PRESENT
    scene.show("question", "question_word")
    return Sentence(english_statement(clause), german_second(clause), "?")


def whom_or_what(scene: Scene) -> Sentence:
    """Who did Anna help? Wem hat Anna geholfen? What are you thinking about? Worüber denkst du nach?"""
    verb, slot = scene.dice.pick(ASKABLE)
    tense = scene.dice.pick((Tense.PAST, Tense.PAST, Tense.FUTURE))
    if "stative" in verb.properties:
        tense = scene.dice.pick((Tense.PAST, Tense.PRESENT))
    clause = write_clause(scene, (verb,), subject_asked_about(scene), tense, bare=True, gap=slot)
    person = slot.role == "dat" or scene.dice.pick(slot.tags) in PERSON_TAGS
    return asked(scene, Words("who" if person else "what", question_pronoun(slot, person)), clause)


def question_pronoun(slot: Slot, person: bool) -> str:
    """Wen, wem, was, auf wen, worauf."""
    preposition = slot.de_preposition
    if person:
        case = DAT if slot.role == "dat" else slot.case
        return join(preposition, WHO.de[case])
    if not preposition:
        return "was"
    return f"wo{'r' if preposition[0] in 'aeiouäöü' else ''}{preposition}"


def which(scene: Scene) -> Sentence | None:
    """Which book did Anna read? How many apples have you bought?"""
    verb, slot = scene.dice.pick([one for one in OBJECTS if one[1].role == "acc"])
    tense = Tense.PRESENT if "stative" in verb.properties else Tense.PAST
    clause = write_clause(scene, (verb,), subject_asked_about(scene), tense, bare=True, gap=slot)
    noun = scene.noun([tag if tag not in PERSON_TAGS else "role" for tag in slot.tags])
    if not noun.countable:
        return None
    scene.combine("verb+object", verb.name, noun.en)
    many = scene.dice.chance(0.4)
    phrase = noun_phrase(HOW_MANY if many else WHICH, noun, plural=many)
    return asked(scene, Words(phrase.en, phrase.de[ACC]), clause)


def about_a_thing(scene: Scene) -> Sentence:
    """How much does the coat cost? How old is your brother? Where is the key? Whose car is that?"""
    scene.show("question", "question_word")
    kind = scene.dice.below(5)
    if kind == 0:
        thing = described(scene, scene.noun(("goods", "food")), owner=None, role="known")
        cost = Clause(thing, COST)
        return Sentence(f"how much {english_question(cost)}", f"wie viel {german_first(cost)}", "?")
    if kind == 1:
        be = Clause(someone(scene, "adult", PRONOUNS["I"]), BE)
        return Sentence(f"how old {english_question(be)}", f"wie alt {german_first(be)}", "?")
    if kind == 2:
        thing = described(scene, scene.noun(("thing", "clothes", "pet", "kin")), PRONOUNS["I"], role="known")
        be = Clause(thing, BE)
        return Sentence(f"where {english_question(be)}", f"wo {german_first(be)}", "?")
    if kind == 3:
        noun = scene.noun(("goods", "clothes", "pet"))
        return Sentence(f"whose {noun.en} is that", f"wessen {noun.de.singular[NOM]} ist das", "?")
    come = Clause(subject_asked_about(scene), COME)
    return Sentence(f"where {english_question(come)} from", f"woher {german_first(come)}", "?")


def is_it_so(scene: Scene) -> Sentence | None:
    """Is the castle old? Is your coat new?"""
    scene.show("question")
    noun = scene.noun(("building", "text", "clothes"))
    adjective = scene.adjective(noun)
    if adjective is None:
        return None
    yours = "building" not in noun.tags and scene.dice.chance(0.4)
    thing = noun_phrase(owned_by(scene.you()) if yours else THE, noun)
    clause = predicate(scene, thing, Tense.PRESENT, adjective)
    return Sentence(english_question(clause), german_first(clause), "?")
