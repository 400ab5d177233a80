"""Built-in corpus: correct German, the same on every machine, and parts that do not overlap."""

from __future__ import annotations

import hashlib
import random
import re
from pathlib import Path

import pytest

from heed.core.errors import StorageError, UsageError
from heed.text.synthetic import Combination, Corpus, Pair, Sentence, build_corpus, write_corpus
from heed.text.synthetic import grammar as g
from heed.text.synthetic.words import ADJECTIVES, BE, NOTHING, NOUNS, THAT_VERBS, VERBS, Adjective, Noun, Verb, Words

DIGEST = "7905c75917b17a0102a8ff806720cf608b13997ca392e26333a6c672b888f9e5"


def noun(en: str) -> Noun:
    return next(one for one in NOUNS if one.en == en)


def adjective(en: str) -> Adjective:
    return next(one for one in ADJECTIVES if one.en == en)


def verb(name: str) -> Verb:
    return next(one for one in (*VERBS, *THAT_VERBS) if one.name == name)


def the(en: str, *adjectives: str, plural: bool = False, determiner: g.Determiner = g.THE) -> g.Phrase:
    return g.noun_phrase(determiner, [adjective(one) for one in adjectives], noun(en), plural)


@pytest.mark.parametrize(
    ("phrase", "en", "de"),
    [
        (the("man", "old"), "the old man", "der alte Mann|den alten Mann|dem alten Mann"),
        (the("woman", "old", determiner=g.A), "an old woman", "eine alte Frau|eine alte Frau|einer alten Frau"),
        (the("student", "tired"), "the tired student", "der müde Student|den müden Studenten|dem müden Studenten"),
        (the("car", "expensive", determiner=g.A), "an expensive car",
         "ein teures Auto|ein teures Auto|einem teuren Auto"),
        (the("key", "small", determiner=g.NO), "a small key",
         "kein kleiner Schlüssel|keinen kleinen Schlüssel|keinem kleinen Schlüssel"),
        (the("child", plural=True), "the children", "die Kinder|die Kinder|den Kindern"),
        (the("apple", "fresh", plural=True, determiner=g.MANY), "many fresh apples",
         "viele frische Äpfel|viele frische Äpfel|vielen frischen Äpfeln"),
        (the("kitchen", "dark", determiner=g.THIS), "this dark kitchen",
         "diese dunkle Küche|diese dunkle Küche|dieser dunklen Küche"),
        (the("dog", determiner=g.OUR), "our dog", "unser Hund|unseren Hund|unserem Hund"),
    ],
)  # fmt: skip
def test_noun_phrases_are_declined(phrase: g.Phrase, en: str, de: str) -> None:
    assert (phrase.en, "|".join(phrase.de)) == (en, de)


HE, SHE, WE = (g.PRONOUNS[key] for key in ("he", "she", "we"))
YESTERDAY = Words("yesterday", "gestern")


def clause(subject: g.Phrase, name: str, *objects: g.Phrase, tense: str = "present", negated: bool = False,
           time: Words = NOTHING) -> g.Clause:  # fmt: skip
    slots = tuple(zip(verb(name).slots, objects, strict=True))
    return g.Clause(subject, verb(name), slots, tense, negated, time)


@pytest.mark.parametrize(
    ("written", "order", "en", "de"),
    [
        (clause(the("woman", "old"), "anrufen", the("doctor"), tense="past", time=YESTERDAY), g.german,
         "the old woman called the doctor yesterday", "die alte Frau hat gestern den Arzt angerufen"),
        (clause(the("woman", "old"), "anrufen", the("doctor")), g.german,
         "the old woman calls the doctor", "die alte Frau ruft den Arzt an"),
        (clause(the("woman", "old"), "anrufen", the("doctor")), g.german_verb_last,
         "the old woman calls the doctor", "die alte Frau den Arzt anruft"),
        (clause(HE, "abholen", SHE, tense="future"), g.german, "he will pick her up", "er wird sie abholen"),
        (clause(HE, "geben", the("child"), the("book", determiner=g.A), tense="past"), g.german,
         "he gave a book to the child", "er hat dem Kind ein Buch gegeben"),
        (clause(WE, "kaufen", the("coat"), tense="past", negated=True), g.german,
         "we did not buy the coat", "wir haben den Mantel nicht gekauft"),
        (clause(WE, "kaufen", the("coat", determiner=g.NO), tense="past", negated=True), g.german,
         "we did not buy a coat", "wir haben keinen Mantel gekauft"),
        (clause(SHE, "warten", the("car"), tense="past", negated=True), g.german,
         "she did not wait for the car", "sie hat nicht auf das Auto gewartet"),
        (clause(the("girl", plural=True), "gehen", the("cinema"), tense="past"), g.german_verb_last,
         "the girls went to the cinema", "die Mädchen ins Kino gegangen sind"),
        (clause(HE, "Fußball spielen", tense="past"), g.german_verb_last,
         "he played football", "er Fußball gespielt hat"),
        (g.Clause(the("king"), BE, tense="past", predicate=Words("very poor", "sehr arm")), g.german_verb_last,
         "the king was very poor", "der König sehr arm war"),
    ],
)  # fmt: skip
def test_clauses_have_the_right_order(written: g.Clause, order: object, en: str, de: str) -> None:
    assert (" ".join(g.english(written).split()), " ".join(order(written).split())) == (en, de)  # type: ignore[operator]


def test_a_question_begins_with_the_verb() -> None:
    written = clause(the("woman"), "aufräumen", the("kitchen"), tense="past")
    assert g.english(written, question=True).split() == ["did", "the", "woman", "tidy", "up", "the", "kitchen"]
    assert g.german_verb_first(written).split() == ["hat", "die", "Frau", "die", "Küche", "aufgeräumt"]


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return build_corpus(num_train=8000)


def test_the_pairs_never_change() -> None:
    """Nor do they depend on Python's hash seed, which is another one in every run of the tests."""
    pairs = build_corpus(900, 50, 50).train
    assert hashlib.sha256("".join(pair.src + pair.tgt for pair in pairs).encode()).hexdigest() == DIGEST
    assert pairs != build_corpus(900, 50, 50, seed=2).train


def test_the_parts_have_their_sizes_and_share_no_english_sentence(corpus: Corpus) -> None:
    assert [len(part) for part in corpus] == [8000, 500, 500, 500]
    assert len({pair.src for part in corpus for pair in part}) == 9500


def test_every_word_of_the_other_parts_occurs_in_training(corpus: Corpus) -> None:
    def vocabulary(part: tuple[Pair, ...]) -> set[str]:
        return {word.lower() for pair in part for word in re.findall(r"\w+", f"{pair.src} {pair.tgt}")}

    unseen = [vocabulary(part) - vocabulary(corpus.train) for part in corpus[1:]]
    assert all(len(words) <= 2 for words in unseen)  # of more than a thousand: a rare form of a verb


def test_sentences_are_well_formed(corpus: Corpus) -> None:
    texts = [text for pair in corpus.train for text in pair]
    assert not [text for text in texts if not re.fullmatch(r"[A-ZÄÖÜ]((?!  | [,.?]|,[,.?]).)*[.?]", text)]
    lengths = [len(text.split()) for text in texts]
    assert 2 <= min(lengths) <= max(lengths) <= 35


def test_articles_agree_with_their_nouns(corpus: Corpus) -> None:
    allowed: set[tuple[str, str]] = set()
    for one in NOUNS:
        for case in range(3):
            allowed.add((g.ARTICLES[case][one.gender], g.decline(one, case, plural=False)))
            allowed.add((g.ARTICLES[case][3], g.decline(one, case, plural=True)))
    nouns = "|".join(sorted({word for _, word in allowed}, key=len, reverse=True))
    article_and_noun = re.compile(rf"(?<!, )\b([Dd]er|[Dd]ie|[Dd]as|[Dd]en|[Dd]em) (?:[a-zäöüß]+ )?({nouns})\b")
    seen = [match for pair in corpus.train for match in article_and_noun.findall(pair.tgt)]
    assert len(seen) > 4000
    assert {(article.lower(), noun) for article, noun in seen} <= allowed


def test_held_out_combinations_occur_in_their_own_part_only_and_their_members_in_training(corpus: Corpus) -> None:
    pairs = [(one.en, noun_.en) for one in ADJECTIVES for noun_ in NOUNS if noun_.kind in one.kinds]
    held_out = {" ".join(pair) for pair in pairs if Combination("adjective+noun", *pair).held_out}
    assert len(held_out) > 10
    pattern = re.compile(rf"\b({'|'.join(held_out)})\b")
    for part in (corpus.train, corpus.valid, corpus.test):
        assert not [pair.src for pair in part if pattern.search(pair.src)]
    assert {words for pair in corpus.combinations for words in pattern.findall(pair.src)} > set()
    words = {word for pair in corpus.train for word in pair.src.split()}
    assert all(set(combination.split()) <= words for combination in held_out)


def test_all_three_kinds_of_combinations_are_held_out() -> None:
    rng = random.Random(1)
    kinds = {one.kind for _ in range(1000) for one in Sentence(rng).combinations if one.held_out}
    assert kinds == {"adjective+noun", "verb+object", "separable+clause"}


def test_a_corpus_is_written_as_plain_lines(tmp_path: Path) -> None:
    corpus = build_corpus(num_train=20, num_valid=3, num_test=4, seed=5)
    write_corpus(tmp_path / "new", corpus)
    names = {path.name for path in (tmp_path / "new").iterdir()}
    assert names == {f"{part}.{side}" for part in ("train", "valid", "test", "combinations") for side in ("en", "de")}
    assert (tmp_path / "new" / "train.de").read_bytes().decode() == "".join(f"{pair.tgt}\n" for pair in corpus.train)
    assert len((tmp_path / "new" / "combinations.en").read_bytes().splitlines()) == 4


def test_a_corpus_replaces_files_with_other_text_on_request_only(tmp_path: Path) -> None:
    corpus = build_corpus(num_train=20, num_valid=3, num_test=4, seed=5)
    mine = tmp_path / "valid.de"
    mine.write_text("mine\n")
    with pytest.raises(UsageError, match=r"valid\.de is a file with other text"):
        write_corpus(tmp_path, corpus)
    assert [path.name for path in tmp_path.iterdir()] == ["valid.de"] and mine.read_text() == "mine\n"
    write_corpus(tmp_path, corpus, overwrite=True)
    write_corpus(tmp_path, corpus)  # the same text
    assert len(mine.read_text().splitlines()) == 3


def test_a_corpus_that_cannot_be_written_names_the_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageError, match="file"):
        write_corpus(tmp_path / "file", Corpus((), (), (), ()))


def test_a_negative_size_is_refused() -> None:
    with pytest.raises(UsageError, match="-1"):
        build_corpus(num_train=-1)
