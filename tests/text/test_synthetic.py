"""The built-in corpus: is its German right, is it the same everywhere, are its parts what they claim to be?"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import re
import subprocess
import sys
from collections import Counter
from itertools import islice
from pathlib import Path

import pytest

from heed.core.errors import StorageError, UsageError
from heed.text.synthetic import (
    Corpus,
    Draft,
    Pair,
    build_corpus,
    drafts,
    english,
    generate,
    german,
    is_held_out,
    lexicon,
    numerals,
    write_corpus,
)
from heed.text.synthetic import clauses as c
from heed.text.synthetic.clauses import Clause, Negation, Object, Tense
from heed.text.synthetic.lexicon import ADJECTIVES, NOUN, NOUNS, VERBS, Adjective, Verb, Words
from heed.text.synthetic.modals import LIKES_TO, MODALS
from heed.text.synthetic.phrases import (
    MANY,
    NO,
    PRONOUNS,
    THE,
    THIS,
    A,
    Determiner,
    Phrase,
    coordinate,
    genitive_tail,
    name_phrase,
    noun_phrase,
    owned_by,
    titled_name,
    with_preposition,
)
from heed.text.synthetic.scene import Combination

FIRST_1000 = "5a671f2ddd65fc73e0c8ac9ae5d0f73d17345743cc0a8325a1095beb2ff3db6c"
PHENOMENA = {
    "adjective", "argument_swap", "attribute", "clock_time", "comparative", "compound", "conditional", "contraction",
    "coordination", "dative", "dative_plural", "date", "direct_speech", "existence", "familiar", "familiar_plural",
    "future", "genitive", "gern", "idiom", "imperative", "impersonal", "indirect_question", "kein", "manner", "measure",
    "modal", "name", "negation", "number", "passive", "perfect_haben", "perfect_sein", "pluperfect", "polite",
    "possession", "predicate", "prepositional_object", "profession", "progressive", "pronoun_agreement", "question",
    "question_word", "reflexive", "relative_clause", "reported", "separable", "since", "sondern", "superlative",
    "two_way_preposition", "verb_final", "verb_second", "weak_noun", "zu_infinitive",
}  # fmt: skip


# known answers: words


@pytest.mark.parametrize(
    ("number", "en", "de"),
    [
        (0, "zero", "null"),
        (1, "one", "eins"),
        (7, "seven", "sieben"),
        (12, "twelve", "zwölf"),
        (16, "sixteen", "sechzehn"),
        (17, "seventeen", "siebzehn"),
        (20, "twenty", "zwanzig"),
        (21, "twenty-one", "einundzwanzig"),
        (30, "thirty", "dreißig"),
        (67, "sixty-seven", "siebenundsechzig"),
        (100, "one hundred", "einhundert"),
        (101, "one hundred and one", "einhunderteins"),
        (321, "three hundred and twenty-one", "dreihunderteinundzwanzig"),
        (1000, "one thousand", "eintausend"),
        (1016, "one thousand and sixteen", "eintausendsechzehn"),
        (9999, "nine thousand nine hundred and ninety-nine", "neuntausendneunhundertneunundneunzig"),
    ],
)
def test_numbers_are_said_as_by_hand(number: int, en: str, de: str) -> None:
    assert (numerals.english_number(number), numerals.german_number(number)) == (en, de)


def test_every_number_has_a_german_name_of_its_own() -> None:
    assert len({numerals.german_number(number) for number in range(10_000)}) == 10_000
    assert len({numerals.english_number(number) for number in range(10_000)}) == 10_000


def test_a_number_without_a_name_is_refused() -> None:
    with pytest.raises(UsageError, match="10000"):
        numerals.german_number(10_000)


@pytest.mark.parametrize(
    ("value", "decimals", "en", "de"),
    [(5, 0, "5", "5"), (1299, 0, "1,299", "1.299"), (35, 1, "3.5", "3,5"), (129905, 2, "1,299.05", "1.299,05"),
     (1200000, 0, "1,200,000", "1.200.000")],
)  # fmt: skip
def test_digits_change_point_and_comma(value: int, decimals: int, en: str, de: str) -> None:
    assert (numerals.english_digits(value, decimals), numerals.german_digits(value, decimals)) == (en, de)


@pytest.mark.parametrize(
    ("hour", "minute", "en", "de"),
    [
        (1, 0, "one o'clock", "ein Uhr"),
        (12, 0, "twelve o'clock", "zwölf Uhr"),
        (2, 30, "half past two", "halb drei"),
        (12, 30, "half past twelve", "halb eins"),
        (1, 15, "quarter past one", "Viertel nach eins"),
        (3, 45, "quarter to four", "Viertel vor vier"),
        (9, 20, "twenty past nine", "zwanzig nach neun"),
        (9, 25, "twenty-five past nine", "fünf vor halb zehn"),
        (9, 35, "twenty-five to ten", "fünf nach halb zehn"),
        (12, 50, "ten to one", "zehn vor eins"),
    ],
)
def test_clock_times_are_said_as_by_hand(hour: int, minute: int, en: str, de: str) -> None:
    assert (numerals.english_clock(hour, minute), numerals.german_clock(hour, minute)) == (en, de)


@pytest.mark.parametrize(
    ("verb", "present", "zu", "imperatives"),
    [
        ("anrufen", "rufe rufst ruft rufen ruft rufen", "anzurufen", "ruf ruft rufen"),
        ("lesen", "lese liest liest lesen lest lesen", "zu lesen", "lies lest lesen"),
        ("einladen", "lade lädst lädt laden ladet laden", "einzuladen", "lade ladet laden"),
        ("fahren", "fahre fährst fährt fahren fahrt fahren", "zu fahren", "fahr fahrt fahren"),
        ("waschen", "wasche wäschst wäscht waschen wascht waschen", "zu waschen", "wasch wascht waschen"),
        ("arbeiten", "arbeite arbeitest arbeitet arbeiten arbeitet arbeiten", "zu arbeiten",
         "arbeite arbeitet arbeiten"),
        ("öffnen", "öffne öffnest öffnet öffnen öffnet öffnen", "zu öffnen", "öffne öffnet öffnen"),
        ("lernen", "lerne lernst lernt lernen lernt lernen", "zu lernen", "lern lernt lernen"),
        ("lächeln", "lächle lächelst lächelt lächeln lächelt lächeln", "zu lächeln", "lächle lächelt lächeln"),
        ("wandern", "wandere wanderst wandert wandern wandert wandern", "zu wandern", "wandere wandert wandern"),
        ("besuchen", "besuche besuchst besucht besuchen besucht besuchen", "zu besuchen",
         "besuche besucht besuchen"),
        ("tanzen", "tanze tanzt tanzt tanzen tanzt tanzen", "zu tanzen", "tanz tanzt tanzen"),
    ],
)  # fmt: skip
def test_verbs_are_conjugated_as_by_hand(verb: str, present: str, zu: str, imperatives: str) -> None:
    forms = german_verb(verb).de
    assert (" ".join(forms.present), forms.zu_infinitive, " ".join(forms.imperatives)) == (present, zu, imperatives)


@pytest.mark.parametrize(
    ("base", "third", "past", "ing"),
    [("carry", "carries", "carried", "carrying"), ("plan", "plans", "planned", "planning"),
     ("watch", "watches", "watched", "watching"), ("write", "writes", "wrote", "writing"),
     ("travel", "travels", "travelled", "travelling"), ("visit", "visits", "visited", "visiting"),
     ("see", "sees", "saw", "seeing"), ("play", "plays", "played", "playing")],
)  # fmt: skip
def test_english_verbs_are_conjugated_as_by_hand(base: str, third: str, past: str, ing: str) -> None:
    forms = next(verb.en for verb in VERBS if verb.en.base == base)
    assert (forms.third, forms.past, forms.ing) == (third, past, ing)


@pytest.mark.parametrize(("phrase", "said"), [("old car", "an old car"), ("university", "a university"),
                                              ("hour", "an hour"), ("European town", "a European town")])  # fmt: skip
def test_a_and_an(phrase: str, said: str) -> None:
    assert english.a_or_an(phrase) == said


# known answers: noun phrases in the four cases


def german_verb(name: str) -> Verb:
    return next(verb for verb in VERBS if verb.name == name)


def adjective(en: str) -> Words:
    found = next(one for one in ADJECTIVES if one.en == en)
    return Words(found.en, found.de)


def the(noun: str, *adjectives: str, plural: bool = False, determiner: Determiner = THE) -> Phrase:
    return noun_phrase(determiner, NOUN[noun], plural, [adjective(one) for one in adjectives])


ANNA, PETER = (name_phrase(name) for name in lexicon.FIRST_NAMES if name.en in ("Anna", "Peter"))
TEACHER = the("teacher")


@pytest.mark.parametrize(
    ("phrase", "en", "de"),
    [
        (the("man", "old"), "the old man", "der alte Mann|den alten Mann|dem alten Mann|des alten Mannes"),
        (the("woman", "old", determiner=A), "an old woman",
         "eine alte Frau|eine alte Frau|einer alten Frau|einer alten Frau"),
        (the("student", "tired"), "the tired student",
         "der müde Student|den müden Studenten|dem müden Studenten|des müden Studenten"),
        (the("car", "expensive", determiner=A), "an expensive car",
         "ein teures Auto|ein teures Auto|einem teuren Auto|eines teuren Autos"),
        (the("tower", "high", determiner=NO), "a high tower",
         "kein hoher Turm|keinen hohen Turm|keinem hohen Turm|keines hohen Turmes"),
        (the("child", plural=True), "the children", "die Kinder|die Kinder|den Kindern|der Kinder"),
        (the("apple", "red", "sweet", plural=True, determiner=MANY), "many red sweet apples",
         "viele rote süße Äpfel|viele rote süße Äpfel|vielen roten süßen Äpfeln|vieler roter süßer Äpfel"),
        (the("wine", "good", determiner=Determiner("", "")), "good wine",
         "guter Wein|guten Wein|gutem Wein|guten Weins"),
        (the("kitchen", "dark", determiner=THIS), "this dark kitchen",
         "diese dunkle Küche|diese dunkle Küche|dieser dunklen Küche|dieser dunklen Küche"),
        (the("dog", determiner=owned_by(PRONOUNS["ihr"])), "your dog", "euer Hund|euren Hund|eurem Hund|eures Hundes"),
        (titled_name("Weber", female=False), "Mr Weber", "Herr Weber|Herrn Weber|Herrn Weber|Herrn Webers"),
        (noun_phrase(Determiner("Thomas's", "", german.genitive_name("Thomas")), NOUN["bicycle"], False,
                     [adjective("new")]),
         "Thomas's new bicycle",
         "Thomas' neues Fahrrad|Thomas' neues Fahrrad|Thomas' neuem Fahrrad|Thomas' neuen Fahrrads"),
        (noun_phrase(Determiner("the teacher's", "der"), NOUN["sister"], tail=genitive_tail(TEACHER)),
         "the teacher's sister",
         "die Schwester des Lehrers|die Schwester des Lehrers|der Schwester des Lehrers|der Schwester des Lehrers"),
    ],
)  # fmt: skip
def test_noun_phrases_are_declined_as_by_hand(phrase: Phrase, en: str, de: str) -> None:
    assert (phrase.en, "|".join(phrase.de)) == (en, de)


@pytest.mark.parametrize(
    ("preposition", "case", "phrase", "said"),
    [
        ("in", german.ACC, the("park"), "in den Park"),
        ("in", german.DAT, the("park"), "im Park"),
        ("in", german.ACC, the("museum", "old"), "ins alte Museum"),
        ("zu", german.DAT, the("wedding"), "zur Hochzeit"),
        ("von", german.DAT, the("teacher"), "vom Lehrer"),
        ("in", german.DAT, the("house", determiner=THIS), "in diesem Haus"),
        ("mit", german.DAT, the("girl", plural=True), "mit den Mädchen"),
    ],
)
def test_prepositions_contract_with_the_article(preposition: str, case: int, phrase: Phrase, said: str) -> None:
    assert with_preposition(preposition, case, phrase) == said


# known answers: clauses


def clause(subject: Phrase, verb: str, *objects: Phrase, **details: object) -> Clause:
    """A clause of a verb of the lexicon, its complements filled in order."""
    found = german_verb(verb)
    filled = []
    for slot, phrase in zip(found.slots, objects, strict=False):
        words = None
        if slot.role == "prep":
            words = Words(f"{slot.en_preposition} {phrase.en_object}".strip(),
                          with_preposition(slot.de_preposition, slot.case, phrase))  # fmt: skip
        filled.append(Object(slot, phrase, words))
    return dataclasses.replace(Clause(subject, found, filled), **details)  # type: ignore[arg-type]


def relative(noun: str, verb: str, subject: Phrase) -> Phrase:
    """The noun with a clause about what somebody has done to it."""
    found = german_verb(verb)
    slot = found.slots[0]
    inner = Clause(subject, found, [Object(slot, words=Words(slot.en_preposition, ""), gap=not slot.en_preposition)],
                   Tense.PAST)  # fmt: skip
    pronoun = german.RELATIVE[NOUN[noun].column][german.DAT if slot.role == "dat" else slot.case]
    which = f"{slot.de_preposition} {pronoun}".strip()
    tail = Words(f"that {c.english_statement(inner)}", f", {which} {c.german_final(inner)} ,")
    return noun_phrase(THE, NOUN[noun], tail=tail, clause=True)


ICH, HE, SHE, WE = (PRONOUNS[key] for key in ("I", "he", "she", "we"))
DU, SIE = PRONOUNS["du"], PRONOUNS["Sie"]
YESTERDAY = Words("yesterday", "gestern")
CAN, MUST, WANT = MODALS[0], MODALS[1], MODALS[5]
STATEMENT = (c.english_statement, c.german_second)
QUESTION = (c.english_question, c.german_first)
FINAL = (c.english_statement, c.german_final)
TO = (c.english_infinitive, c.german_infinitive)


@pytest.mark.parametrize(
    ("written", "order", "en", "de"),
    [
        (clause(the("woman", "old"), "anrufen", the("doctor"), tense=Tense.PAST, time=YESTERDAY), STATEMENT,
         "the old woman called the doctor yesterday", "die alte Frau hat gestern den Arzt angerufen"),
        (clause(the("woman", "old"), "anrufen", the("doctor"), tense=Tense.PAST), QUESTION,
         "did the old woman call the doctor", "hat die alte Frau den Arzt angerufen"),
        (clause(the("woman", "old"), "anrufen", the("doctor")), STATEMENT,
         "the old woman calls the doctor", "die alte Frau ruft den Arzt an"),
        (clause(the("woman", "old"), "anrufen", the("doctor")), FINAL,
         "the old woman calls the doctor", "die alte Frau den Arzt anruft"),
        (clause(the("woman", "old"), "anrufen", the("doctor")), TO, "call the doctor", "den Arzt anzurufen"),
        (clause(ANNA, "abholen", SHE, tense=Tense.FUTURE), STATEMENT,
         "Anna will pick her up", "Anna wird sie abholen"),
        (clause(HE, "geben", the("child"), the("book", determiner=A), tense=Tense.PAST), STATEMENT,
         "he gave the child a book", "er hat dem Kind ein Buch gegeben"),
        (clause(HE, "geben", the("child"), PRONOUNS["it n"], tense=Tense.PAST), STATEMENT,
         "he gave it to the child", "er hat es dem Kind gegeben"),
        (clause(ICH, "kaufen", the("coat"), tense=Tense.PAST, negation=Negation.NOT), STATEMENT,
         "I did not buy the coat", "ich habe den Mantel nicht gekauft"),
        (clause(ICH, "kaufen", the("coat", determiner=NO), tense=Tense.PAST, negation=Negation.NO, contracted=True),
         STATEMENT, "I didn't buy a coat", "ich habe keinen Mantel gekauft"),
        (clause(SHE, "lesen", the("letter"), tense=Tense.PERFECT, negation=Negation.NOT_YET), STATEMENT,
         "she has not read the letter yet", "sie hat den Brief noch nicht gelesen"),
        (clause(SHE, "lesen", the("letter"), tense=Tense.PROGRESSIVE), STATEMENT,
         "she is reading the letter", "sie liest gerade den Brief"),
        (clause(WE, "wandern", tense=Tense.PLUPERFECT), FINAL, "we had hiked", "wir gewandert waren"),
        (clause(DU, "öffnen", the("window"), modal=CAN), QUESTION,
         "can you open the window", "kannst du das Fenster öffnen"),
        (clause(SIE, "öffnen", the("window"), modal=WANT, tense=Tense.PAST), QUESTION,
         "did you want to open the window", "wollten Sie das Fenster öffnen"),
        (clause(HE, "verkaufen", the("house"), modal=MUST, negation=Negation.NOT), STATEMENT,
         "he must not sell the house", "er darf das Haus nicht verkaufen"),
        (clause(ANNA, "warten", the("train"), tense=Tense.PAST), STATEMENT,
         "Anna waited for the train", "Anna hat auf den Zug gewartet"),
        (clause(the("boy"), "sich erinnern", the("wedding")), STATEMENT,
         "the boy remembers the wedding", "der Junge erinnert sich an die Hochzeit"),
        (clause(the("boy"), "sich erinnern", the("wedding")), QUESTION,
         "does the boy remember the wedding", "erinnert sich der Junge an die Hochzeit"),
        (clause(DU, "sich ausruhen", tense=Tense.PAST), FINAL, "you rested", "du dich ausgeruht hast"),
        (clause(the("man"), "gefallen", the("picture")), STATEMENT,
         "the man likes the picture", "dem Mann gefällt das Bild"),
        (clause(ICH, "fehlen", PETER, tense=Tense.PAST), FINAL, "I missed Peter", "mir Peter gefehlt hat"),
        (clause(the("girl"), "schwimmen", modal=LIKES_TO), STATEMENT,
         "the girl likes to swim", "das Mädchen schwimmt gern"),
        (clause(the("house"), "bauen", tense=Tense.PAST, passive=True, company=Words("by workers", "von Arbeitern")),
         STATEMENT, "the house was built by workers", "das Haus wurde von Arbeitern gebaut"),
        (clause(the("guest", plural=True), "einladen", tense=Tense.PERFECT, passive=True), STATEMENT,
         "the guests have already been invited", "die Gäste sind schon eingeladen worden"),
        (clause(HE, "haben", the("car", determiner=A), tense=Tense.IRREAL), FINAL, "he had a car", "er ein Auto hätte"),
        (clause(SHE, "Klavier spielen", tense=Tense.CONDITIONAL), STATEMENT,
         "she would play the piano", "sie würde Klavier spielen"),
        (clause(coordinate(the("brother", determiner=owned_by(ICH)), ICH), "sich beeilen", tense=Tense.PAST), STATEMENT,
         "my brother and I hurried", "mein Bruder und ich haben uns beeilt"),
        (clause(ANNA, "lesen", relative("book", "kaufen", PETER), tense=Tense.PAST), STATEMENT,
         "Anna read the book that Peter bought", "Anna hat das Buch gelesen, das Peter gekauft hat,"),
        (clause(relative("bus", "warten", ANNA), "ankommen", tense=Tense.PAST), STATEMENT,
         "the bus that Anna waited for arrived", "der Bus, auf den Anna gewartet hat, ist angekommen"),
        (clause(the("horse"), "fressen", the("apple", determiner=A), tense=Tense.PAST,
                place=Words("in the garden", "im Garten")), STATEMENT,
         "the horse ate an apple in the garden", "das Pferd hat im Garten einen Apfel gefressen"),
        (clause(HE, "einschalten", the("light"), frequency=Words("often", "oft")), STATEMENT,
         "he often turns on the light", "er schaltet das Licht oft ein"),
    ],
)  # fmt: skip
def test_clauses_are_put_in_order_as_by_hand(written: Clause, order: tuple, en: str, de: str) -> None:  # type: ignore[type-arg]
    said_en, said_de = order[0](written), order[1](written)
    assert (said_en, said_de.replace(" ,", ",")) == (en, de)


@pytest.mark.parametrize(
    ("verb", "objects", "form", "said"),
    [
        ("anrufen", [the("doctor")], 0, "ruf bitte den Arzt an"),
        ("anrufen", [the("doctor")], 1, "ruft bitte den Arzt an"),
        ("anrufen", [PRONOUNS["he"]], 2, "rufen Sie ihn bitte an"),
        ("teilnehmen", [the("course")], 0, "nimm bitte am Kurs teil"),
    ],
)
def test_orders_are_given_as_by_hand(verb: str, objects: list[Phrase], form: int, said: str) -> None:
    assert c.german_imperative(clause(DU, verb, *objects, please=True), form) == said


# the lexicon


def test_the_lexicon_is_large_and_every_class_that_is_asked_for_has_members() -> None:
    asked = {tag for verb in VERBS for tag in verb.subjects}
    asked |= {tag for verb in VERBS for slot in verb.slots for tag in slot.tags} - {"city", "country"}
    asked |= {tag for one in ADJECTIVES for tag in one.tags}
    assert asked <= set(lexicon.TAGGED)
    assert len(NOUNS) >= 200
    assert len({verb.name for verb in VERBS}) >= 120
    assert sum(bool(verb.de.prefix) for verb in VERBS) >= 30
    assert len(ADJECTIVES) >= 80
    assert len(lexicon.FIRST_NAMES) >= 30
    assert len(lexicon.CITIES) >= 25


def test_an_english_noun_has_one_german_noun() -> None:
    assert len(NOUN) == len(NOUNS)


def test_a_graded_adjective_has_all_its_degrees() -> None:
    def degrees(one: Adjective) -> list[str]:
        return [one.en_comparative, one.en_superlative, one.de_comparative, one.de_superlative]

    assert all(all(degrees(one)) == any(degrees(one)) for one in ADJECTIVES)


# generation


def digest(pairs: list[Pair]) -> str:
    return hashlib.sha256("".join(f"{pair.src}\t{pair.tgt}\n" for pair in pairs).encode()).hexdigest()


def test_the_first_thousand_pairs_never_change() -> None:
    assert digest(list(islice(generate(1), 1000))) == FIRST_1000


def test_the_pairs_do_not_depend_on_the_hash_seed() -> None:
    program = (
        "import hashlib; from itertools import islice; from heed.text.synthetic import generate;"
        "pairs = islice(generate(3), 200);"
        "text = ''.join(p.src + p.tgt + ' '.join(sorted(p.phenomena)) for p in pairs);"
        "print(hashlib.sha256(text.encode()).hexdigest())"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    results = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**environment, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1")
    }
    assert len(results) == 1


def test_another_seed_gives_other_pairs() -> None:
    assert set(islice(generate(1), 50)) != set(islice(generate(2), 50))


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return build_corpus()


@pytest.fixture(scope="module")
def drawn() -> list[Draft]:
    """The drafts that the default corpus is drawn from, and some more."""
    return list(islice(drafts(1), 38_000))


@pytest.fixture(scope="module")
def combinations(drawn: list[Draft]) -> dict[str, tuple[Combination, ...]]:
    """The combinations in each English sentence."""
    return {draft.pair.src: draft.combinations for draft in drawn}


def test_the_parts_have_their_sizes_and_share_no_english_sentence(corpus: Corpus) -> None:
    parts = (corpus.train, corpus.valid, corpus.test, corpus.combinations)
    assert [len(part) for part in parts] == [30_000, 500, 500, 500]
    assert len({pair.src for part in parts for pair in part}) == 31_500


def test_an_english_sentence_has_one_translation(drawn: list[Draft]) -> None:
    translations: dict[str, str] = {}
    assert all(translations.setdefault(one.pair.src, one.pair.tgt) == one.pair.tgt for one in drawn)


def test_sentences_are_well_formed_and_of_moderate_length(corpus: Corpus) -> None:
    texts = [text for pair in corpus.train for text in (pair.src, pair.tgt)]
    assert not [text for text in texts if re.search(r"  | [,.?!]|,[,.?!]|^\W*[a-z]|\bNone\b|[^.?!]$", text)
                and not text.startswith(('"', "„"))]  # fmt: skip
    lengths = [len(text.split()) for text in texts]
    assert 3 <= min(lengths) <= max(lengths) <= 25
    assert 8 <= sum(lengths) / len(lengths) <= 11


def test_every_phenomenon_occurs_in_training_with_a_sensible_frequency(corpus: Corpus) -> None:
    shown = Counter(name for pair in corpus.train for name in pair.phenomena)
    assert set(shown) == PHENOMENA
    assert {name: count for name, count in shown.items() if not 150 <= count <= 20_000} == {}


def test_the_parts_other_than_combinations_come_from_one_distribution(corpus: Corpus) -> None:
    def share(part: tuple[Pair, ...], name: str) -> float:
        return sum(name in pair.phenomena for pair in part) / len(part)

    for name in ("verb_final", "separable", "question", "dative"):
        # four standard deviations of a share of 500 draws
        assert abs(share(corpus.train, name) - share(corpus.test, name)) < 4 * (0.25 / 500) ** 0.5


# held-out combinations


def test_held_out_combinations_occur_in_their_own_part_only(
    corpus: Corpus, combinations: dict[str, tuple[Combination, ...]]
) -> None:
    for part in (corpus.train, corpus.valid, corpus.test):
        assert not any(is_held_out(one) for pair in part for one in combinations[pair.src])
    for pair in corpus.combinations:
        assert any(is_held_out(one) for one in combinations[pair.src])


def test_all_three_kinds_are_held_out_and_their_parts_are_seen_in_training(
    corpus: Corpus, combinations: dict[str, tuple[Combination, ...]]
) -> None:
    seen: Counter[tuple[str, str, str]] = Counter()
    for pair in corpus.train:
        for one in combinations[pair.src]:
            seen[one.kind, "first", one.first] += 1
            seen[one.kind, "second", one.second] += 1
    held_out = {one for pair in corpus.combinations for one in combinations[pair.src] if is_held_out(one)}
    assert min(Counter(one.kind for one in held_out).values()) >= 10
    assert len({one.kind for one in held_out}) == 3
    rare = [one for one in held_out
            if min(seen[one.kind, "first", one.first], seen[one.kind, "second", one.second]) < 3]  # fmt: skip
    assert rare == []


def test_held_out_adjectives_never_stand_before_their_nouns_in_the_text_of_training(corpus: Corpus) -> None:
    neighbours = Counter(
        pair for text in corpus.train for pair in zip(text.src.split(), text.src.split()[1:], strict=False)
    )
    begins_another = {noun.en.split()[0] for noun in NOUNS if " " in noun.en}  # old town hall: not an old town
    nouns = [noun for noun in NOUNS if noun.en not in begins_another]
    possible = [(one.en, noun.en) for one in ADJECTIVES for noun in nouns if not noun.tags.isdisjoint(one.tags)]
    held_out = [pair for pair in possible if is_held_out(Combination("adjective+noun", *pair))]
    allowed = [(one, noun) for one, noun in possible if (one, noun) not in held_out and " " not in noun]
    assert len(held_out) > 50
    assert sum(neighbours[pair] for pair in held_out) == 0
    assert sum(neighbours[pair] > 0 for pair in allowed) > len(allowed) / 2


# files


def test_a_corpus_is_written_as_plain_lines(tmp_path: Path) -> None:
    corpus = build_corpus(num_train=20, num_valid=3, num_test=4, seed=5)
    write_corpus(tmp_path / "new", corpus)
    names = {path.name for path in (tmp_path / "new").iterdir()}
    assert names == {f"{part}.{side}" for part in ("train", "valid", "test", "combinations") for side in ("en", "de")}
    written = (tmp_path / "new" / "train.de").read_bytes()
    assert written.decode("utf-8") == "".join(f"{pair.tgt}\n" for pair in corpus.train)
    assert len((tmp_path / "new" / "combinations.en").read_bytes().splitlines()) == 4


def test_a_corpus_that_cannot_be_written_says_where(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageError, match="file"):
        write_corpus(tmp_path / "file", Corpus((), (), (), ()))


def test_a_negative_size_is_refused() -> None:
    with pytest.raises(UsageError, match="-1"):
        build_corpus(num_train=-1)
