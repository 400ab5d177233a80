"""Required terms are in every output, however they are tokenized."""

from __future__ import annotations

import random

import pytest
import torch
from hashed_model import HashedModel
from random_models import half_trained
from scripted import ScriptedModel

from heed.core.errors import DataError, UsageError
from heed.decoding.constraints import RequiredTerms, ends_word
from heed.decoding.options import Constraints, SearchOptions
from heed.decoding.phrases import is_boundary
from heed.inference.translator import ModelTranslator
from heed.nn.contract import Autoregressive
from heed.text.normalise import Normaliser
from heed.text.tokenizers import Tokenizer, TokenizerConfig, train_tokenizer
from heed.text.tokenizers.byte_level import Byte
from heed.text.tokenizers.symbols import Character, Word

BPE = train_tokenizer(
    TokenizerConfig(vocab_size=300, min_frequency=1), ["der Hund und die Katze sehen den Hundekuchen"] * 3
)
WORDS = Word("abcdefgh")
OPTIONS = SearchOptions(beam_size=4, max_tokens=24, guard=False)
DICE = random.Random(5)
LINES = [" ".join(DICE.choices("abcdefgh", k=length)) for length in (3, 1, 6, 2, 4)]


def translator_of(model: Autoregressive, tokenizer: Tokenizer) -> ModelTranslator:
    """From and to the pieces of one tokenizer."""
    return ModelTranslator(model, tokenizer, tokenizer, Normaliser())


def contains(term: str, text: str) -> bool:
    """Whether a text contains a term as whole words."""
    places = [place for place in range(len(text)) if text.startswith(term, place)]
    ends = [(text[place - 1 : place], text[place + len(term) : place + len(term) + 1]) for place in places]
    return any(is_boundary(before, term[0]) and is_boundary(term[-1], after) for before, after in ends)


@pytest.mark.parametrize(
    ("tokenizer", "terms"),
    [
        (BPE, ("Hund",)), (BPE, ("Katze", "sehen")), (BPE, ("die Katze",)), (BPE, ("xyz",)), (BPE, ("日本", "e.g.")),
        (Byte(), ("é!",)), (Byte(), ("ที", "a")), (WORDS, ("c", "a b")), (Character("abcdefgh "), ("hg", "a")),
    ],
)  # fmt: skip
def test_every_output_of_a_random_model_contains_the_terms(tokenizer: Tokenizer, terms: tuple[str, ...]) -> None:
    translator = translator_of(HashedModel(len(tokenizer.vocabulary), seed=2), tokenizer)
    [actual] = translator.translate(LINES[:1], OPTIONS, [Constraints(terms=terms)])
    assert all(contains(term, actual.text) for term in terms), actual.text


@pytest.mark.parametrize("name", ["transformer", "rnn_attention"])
def test_every_output_of_a_network_contains_the_terms_and_is_scored_as_written(name: str) -> None:
    translator = translator_of(half_trained(name), WORDS)
    constraints = [Constraints(terms=("h", "a b")[: 1 + number % 2]) for number in range(len(LINES))]
    actual = translator.translate(LINES, OPTIONS.model_copy(update={"nbest": 3}), constraints)
    assert sum(h.finished for best in actual for h in (best, *best.alternatives)) > len(LINES), "or little is shown"
    for line, wanted, best in zip(LINES, constraints, actual, strict=True):
        for h in (best, *best.alternatives):
            if h.finished:
                assert all(contains(term, h.text) for term in wanted.terms)
                [score] = translator.score([h.text], [line])
                assert score.log_prob == pytest.approx(h.log_prob, abs=1e-4)


def test_lines_without_terms_are_unaffected() -> None:
    translator = translator_of(half_trained("transformer"), WORDS)
    plain = translator.translate(LINES, OPTIONS)
    mixed = translator.translate(LINES, OPTIONS, [Constraints(terms=("h",) * (n == 2)) for n in range(len(LINES))])
    assert [h.text for h in mixed[:2] + mixed[3:]] == [h.text for h in plain[:2] + plain[3:]]
    assert contains("h", mixed[2].text)


def test_a_line_has_the_same_output_alone_and_in_any_batch() -> None:
    translator = translator_of(half_trained("transformer"), WORDS)
    wanted = [Constraints(terms=terms, prefix=prefix) for terms, prefix in
              [(("h",), ""), ((), "c d"), (("a b", "g"), ""), (("h",), "c"), ((), "")]]  # fmt: skip
    together = translator.translate(LINES, OPTIONS, wanted)
    alone = [translator.translate([line], OPTIONS, [one])[0] for line, one in zip(LINES, wanted, strict=True)]
    backwards = translator.translate(LINES[::-1], OPTIONS.model_copy(update={"batch_size": 2}), wanted[::-1])
    assert [h.text for h in together] == [h.text for h in alone] == [h.text for h in backwards[::-1]]


def test_a_term_that_the_model_writes_by_itself_counts() -> None:
    """The term is in the best output already, in other pieces than the tokenizer's; nothing is added to it."""
    [pieces] = BPE.encode(["der Hund"])
    spelled = [BPE.encode([letter])[0][0] for letter in "der"] + [BPE.encode([c])[0][0] for c in " Hund"]
    assert spelled != pieces
    [source] = BPE.encode(["ab"])
    script = {tuple(source): {tuple(spelled): 0.7, tuple(BPE.encode(["die"])[0]): 0.3}}
    translator = translator_of(ScriptedModel(len(BPE.vocabulary), script), BPE)
    [actual] = translator.translate(["ab"], OPTIONS, [Constraints(terms=("Hund",))])
    assert (actual.text, actual.ids) == ("der Hund", tuple(spelled))


def test_an_inflected_word_is_not_the_term() -> None:
    """The likeliest output has "Hundekuchen", the other one "Hund"."""
    [source], [longer], [shorter] = (BPE.encode([text]) for text in ("ab", "der Hundekuchen", "die Katze und Hund"))
    script = {tuple(source): {tuple(longer): 0.9, tuple(shorter): 0.1}}
    translator = translator_of(ScriptedModel(len(BPE.vocabulary), script), BPE)
    assert translator.translate(["ab"], OPTIONS)[0].text == "der Hundekuchen"
    [actual] = translator.translate(["ab"], OPTIONS, [Constraints(terms=("Hund",))])
    assert actual.text == "die Katze und Hund"


def test_more_terms_than_beams_are_placed_too() -> None:
    translator = translator_of(HashedModel(12), WORDS)
    wanted = Constraints(terms=tuple("abcdefgh"))
    [actual] = translator.translate(["a"], SearchOptions(beam_size=1, max_tokens=3, guard=False), [wanted])
    assert set(actual.text.split()) == set("abcdefgh")


@pytest.mark.parametrize("terms", [("a a a",), ("a b a b", "c"), ("b", "a b", "b a")])
def test_required_terms_may_repeat_an_ngram(terms: tuple[str, ...]) -> None:
    translator = translator_of(HashedModel(12, seed=2), WORDS)
    for size in (1, 2):
        options = OPTIONS.model_copy(update={"no_repeat": size, "max_tokens": 14})
        for actual in translator.translate(LINES[:2], options, [Constraints(terms=terms)] * 2):
            assert all(contains(term, actual.text) for term in terms), actual.text
        words = translator.translate(LINES[:1], options)[0].text.split()
        runs = [tuple(words[place : place + size]) for place in range(len(words) - size + 1)]
        assert len(set(runs)) == len(runs), "without terms nothing comes twice"


def test_a_term_that_the_vocabulary_lacks_is_an_error() -> None:
    with pytest.raises(DataError, match="this run's vocabulary cannot write the glossary term 'x y'"):
        translator_of(HashedModel(12), WORDS).translate(["a"], OPTIONS, [Constraints(terms=("x y",))])


@pytest.mark.parametrize("options", [{"sample": True}, {"diversity": 1.0, "nbest": 2}])
def test_terms_need_plain_beam_search(options: dict[str, object]) -> None:
    with pytest.raises(UsageError, match="need plain beam search"):
        translator_of(HashedModel(12), WORDS).translate(["a"], SearchOptions(**options), [Constraints(terms=("a",))])


def test_a_term_that_contains_a_banned_word_is_an_error() -> None:
    translator = translator_of(HashedModel(len(BPE.vocabulary)), BPE)
    for ban, term in (("hund", "der Hund"), ("Hund", "Hund"), ("der hund", "Der Hund")):
        with pytest.raises(UsageError, match=f"'{term}' is required in the output, but '{ban}' is banned"):
            translator.translate(["ab"], OPTIONS.model_copy(update={"ban": (ban,)}), [Constraints(terms=(term,))])
    options = OPTIONS.model_copy(update={"ban": ("hund",)})
    with pytest.raises(UsageError, match="'Der Hund' is required in the output, but 'hund' is banned"):
        translator.translate(["ab"], options, [Constraints(prefix="Der Hund")])
    options = OPTIONS.model_copy(update={"ban": ("ü",)})
    with pytest.raises(UsageError, match="is banned"):
        translator.translate(["ab"], options, [Constraints(prefix="u\u0308")])  # the same letter, decomposed
    options = OPTIONS.model_copy(update={"ban": ("hund",)})
    [actual] = translator.translate(["ab"], options, [Constraints(terms=("Hundekuchen",))])
    assert contains("Hundekuchen", actual.text)


def test_a_term_may_begin_an_output_that_has_no_room_for_more() -> None:
    [alone], [spaced] = BPE.encode(["Hundekuchen"]), BPE.encode([" Hundekuchen"])
    assert len(alone) > len(spaced), "otherwise the test shows nothing"
    options = SearchOptions(beam_size=4, max_tokens=1, guard=False)
    [source] = BPE.encode(["ab"])
    translator = translator_of(ScriptedModel(len(BPE.vocabulary), {tuple(source): {tuple(alone): 1.0}}), BPE)
    [actual] = translator.translate(["ab"], options, [Constraints(terms=("Hundekuchen",))])
    assert (actual.text, actual.finished) == ("Hundekuchen", True)


def test_progress_is_read_from_the_text() -> None:
    token_bytes = BPE.bytes_of(range(len(BPE.vocabulary)))
    terms = RequiredTerms(["Hund"], BPE, token_bytes)
    [pieces], [alone] = BPE.encode([" Hund"]), BPE.encode(["Hund"])
    assert terms.num_steps == len(pieces) + 1

    def next_after(text: str) -> list[bytes]:
        where = terms.read(BPE.encode([text])[0])
        return BPE.bytes_of(terms.next_tokens(*where))

    assert next_after("") == BPE.bytes_of(alone[:1])
    assert next_after("der") == BPE.bytes_of(pieces[:1]), "a space and its beginning"
    assert next_after("der Hu")[0] == b"nd"[: len(next_after("der Hu")[0])]
    assert next_after("der Hund") == []
    state, certain = terms.read(BPE.encode(["der Hund"])[0])
    assert terms.may_end(state, certain)
    assert terms.is_pending(state, certain)
    dot = BPE.encode(["."])[0][0]
    assert terms.steps_after(state, certain, dot) == terms.num_steps
    letter = BPE.encode(["e"])[0][0]
    assert terms.steps_after(state, certain, letter) == 0


def test_words_end_before_spaces_and_signs() -> None:
    actual = ends_word(
        [b"", b" a", b".", b"a", b"\xa9 ", b"\xe2\x80", "–".encode(), "é".encode(), b"\xc3\xa9", "日".encode()]
    )
    assert actual == [False, True, True, False, False, False, True, False, False, True]


def test_a_prefix_begins_the_output_and_is_part_of_its_score() -> None:
    translator = translator_of(half_trained("transformer"), WORDS)
    for options in (OPTIONS, OPTIONS.model_copy(update={"beam_size": 1}), SearchOptions(sample=True, max_tokens=14)):
        actual = translator.translate(LINES, options, [Constraints(prefix="h a ")] * len(LINES))
        assert any(h.finished for h in actual), "or their scores are not shown"
        for line, h in zip(LINES, actual, strict=True):
            assert h.text.split()[:2] == ["h", "a"]
            assert len(h.token_log_probs) == len(h.ids) + h.finished
            if h.finished:
                [score] = translator.score([h.text], [line])
                assert score.log_prob == pytest.approx(h.log_prob, abs=1e-4)
                assert list(score.log_probs) == pytest.approx(list(h.token_log_probs), abs=1e-4)


def test_a_prefix_is_read_in_one_step() -> None:
    model = HashedModel(12)
    translator_of(model, WORDS).translate(["a"], OPTIONS, [Constraints(prefix="a b c")])
    assert (4, 4) in model.advanced
    assert max(length for _, length in model.advanced) == 4


def test_the_best_output_does_not_change_if_its_own_prefix_is_forced() -> None:
    translator = translator_of(half_trained("transformer"), WORDS)
    options = OPTIONS.model_copy(update={"beam_size": 1})
    for line, free in zip(LINES[:3], translator.translate(LINES[:3], options), strict=True):
        words = free.text.split()
        for length in range(len(words) + 1):
            [forced] = translator.translate([line], options, [Constraints(prefix=" ".join(words[:length]))])
            assert forced.text == free.text
            assert forced.log_prob == pytest.approx(free.log_prob, abs=1e-4)


def test_a_prefix_longer_than_any_output_is_returned_unchanged() -> None:
    translator = translator_of(HashedModel(12), WORDS)
    for beam_size in (1, 4):
        options = SearchOptions(beam_size=beam_size, max_tokens=2, guard=False)
        [actual] = translator.translate(["a"], options, [Constraints(prefix="a b c d")])
        assert actual.text == "a b c d"


def test_lines_of_white_space_need_no_terms() -> None:
    [actual] = translator_of(HashedModel(12), WORDS).translate(["  "], OPTIONS, [Constraints("a", ("b",))])
    assert (actual.text, actual.ids) == ("  ", ())


def test_the_terms_of_one_row_do_not_affect_another() -> None:
    """Terms and positions of one source have nothing to do with another's in the same batch."""
    translator = translator_of(HashedModel(12, seed=7), WORDS)
    wanted = [Constraints(terms=(letter,)) for letter in "abcde"]
    actual = translator.translate(LINES, OPTIONS, wanted)
    assert all(one.terms[0] in h.text.split() for one, h in zip(wanted, actual, strict=True))
    assert torch.is_inference_mode_enabled() is False
