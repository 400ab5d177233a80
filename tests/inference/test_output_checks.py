"""Output checks flag what cannot be right, and pass what can."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted import ScriptedModel

from heed.core.errors import DataError
from heed.decoding.hypothesis import Hypothesis
from heed.decoding.options import Constraints, Request, SearchOptions
from heed.inference.output_checks import Guard, OutputChecks, _Limit, fallback_searches, is_loop, no_repeat_size
from heed.inference.translator import ModelTranslator
from heed.text.normalise import Normaliser
from heed.text.tokenizers.byte_level import Byte
from heed.text.tokenizers.symbols import Character, CharBigram, Word

PLAIN = Guard()
RIGHT = {
    "A man walks.": "Ein Mann geht.",
    "She said that that was it.": "Sie sagte, dass das das war.",
    "very very very good": "sehr sehr sehr gut",
    "no no no no no": "nein nein nein nein nein",
    "Hahahaha!": "Hahahahaha!",
    "wait ..............": "warte ..............",
    "Name: - - - - -": "Name: - - - - -",
    "-- -- -- -- --": "-- -- -- -- --",
    "Sorry, sorry.": "Es tut mir leid, es tut mir leid.",
    "I'm sorry, I'm sorry.": "Es tut mir leid, es tut mir leid.",
    "I don't know. I don't know.": "Ich weiß es nicht. Ich weiß es nicht.",
    "Help me! Help me!": "Du musst mir helfen! Du musst mir helfen!",
    "他非常非常非常高兴。": "He is very, very, very happy.",
    "わかりません。わかりません。": "I do not know. I do not know.",
    '"Ha-ha-ha!"': '"Ha ha ha!"',
    "6,000,000,000 people": "6 000 000 000 Menschen",
    "IBAN DE00000000000000": "IBAN DE00 0000 0000 0000 00",
    "0100000000": "01 00 00 00 00",
    "Those are the women who open the door.": "Das sind die, die die Tür öffnen.",
    "one million": "1.000.000",
    "It costs 10000000000 euros.": "Es kostet 10000000000 Euro.",
    "https://example.org/a/b?c=d": "https://example.org/a/b?c=d",
    "a.b@example.org": "a.b@example.org",
    "3.14159 26535 89793 23846": "3.14159 26535 89793 23846",
    "John Smith, Mary Jones, New York": "John Smith, Mary Jones, New York",
    "Taxi": "Taxi",
    "OK OK": "OK OK",
    "🙂🙂🙂": "🙂🙂🙂",
    "Hotel Restaurant Bar": "Hotel Restaurant Bar",
    "": "",
    "   ": "",
}
WRONG = {
    ("A dog.", "Ein Hund Hund Hund."): "loop",
    ("A dog runs.", "der Hund und der Hund und der Hund und"): "loop",
    ("Yes.", "ja ja ja ja ja ja ja ja"): "loop",
    ("very good", "sehr sehr sehr gut"): "loop",
    ("no no no", "nein nein nein nein"): "loop",
    ("Yes.", "Ja, ja, ja, ja."): "loop",
    ("I'm sorry, I'm sorry.", "Es tut mir leid, es tut mir leid, es tut mir leid."): "loop",
    ("人人都很高兴。", "Everybody is very happy. Everybody is very happy."): "loop",
    ("6,000 people", "6 000 000 000 000 Menschen"): "loop",
    ("He had had enough of it.", "Er hatte genug davon gehabt. Er hatte genug davon gehabt."): "loop",
    ("讨论讨论。", "We talk about it now. We talk about it now."): "loop",
    ("Rooms 11 and 11", "Zimmer 1 1 1 1"): "loop",
    ("In 2000 there were 200", "Es waren 0 0 0 0 0 0"): "loop",
    ("A man in a red shirt.", "ein Mann in einem Hemd ein Mann in einem Hemd"): "loop",
    ("Ha.", "Hahahahahahahaha"): "loop",
    ("Hm.", "Hmmmmmmmmmmmm"): "loop",
    ("犬", "犬が走る犬が走る犬が走る犬が走る犬が走る"): "loop",
    ("the man is walking his dog", "the man is walking his dog"): "copy",
    ("The man is walking his dog.", "The man is walking his dog"): "copy",
    ("the man is walking his small dog", "the man is walking his kleiner dog"): "copy",
    ("THE MAN IS WALKING HIS DOG", "THE MAN IS WALKING HIS DOG"): "copy",
    ("男が犬を連れて歩いている", "男が犬を連れて歩いている"): "copy",
    ("A dog.", ""): "empty",
    ("A dog.", "  "): "empty",
}


@pytest.mark.parametrize(("source", "output"), RIGHT.items())
def test_plausible_outputs_pass(source: str, output: str) -> None:
    assert PLAIN.flags(source, output) == ()


@pytest.mark.parametrize(("pair", "flag"), WRONG.items())
def test_implausible_outputs_are_flagged(pair: tuple[str, str], flag: str) -> None:
    assert PLAIN.flags(*pair) == (flag,)


def test_a_copy_passes_within_one_language() -> None:
    assert Guard(same_language=True).flags("the man is walking his dog", "the man is walking his dog") == ()


def test_plausible_lengths_follow_the_validation_pairs() -> None:
    """The odd hundredth at each end does not count."""
    pairs = [("x" * 30, "y" * length) for length in range(20, 60)] * 5 + [("x" * 30, "y" * 500), ("x" * 500, "y")]
    guard = Guard.of_pairs(pairs)
    assert guard.shortest == pytest.approx((20 + 10) / (30 + 10) / 2)
    assert guard.longest == pytest.approx((59 + 10) / (30 + 10) * 2)
    source = " ".join(["word"] + [f"w{i}" for i in range(20)])
    assert guard.flags(source, "one two three") == ("short",)
    assert guard.flags("one two", " ".join(f"w{i}" for i in range(40))) == ("long",)
    assert guard.flags("one two", "eins zwei drei") == ()


def test_single_words_may_become_several_times_as_long() -> None:
    guard = Guard.of_pairs([("x" * length, "y" * length) for length in range(5, 60)])
    assert guard.flags("go", "weitergehen") == ()
    assert guard.flags("go", "weiter " * 1 + "und so fort, bis der Tag") == ("long",)


def test_copies_pass_where_references_are_copies() -> None:
    sentence = "the small dog is running home"
    assert Guard.of_pairs([(sentence, sentence)] * 2 + [(sentence, "der kleine Hund läuft nach Hause")] * 8).may_copy
    assert not Guard.of_pairs([(sentence, sentence)] + [(sentence, "der kleine Hund läuft nach Hause")] * 9).may_copy
    assert Guard.of_pairs([], same_language=True).may_copy


def test_repetition_in_the_source_excuses_as_much_and_no_more() -> None:
    assert not is_loop("ha ha ha ha", "ho ho ho ho")
    assert is_loop("ha ha ha ha", "ho ho ho ho ho ho")


def test_a_run_of_spaces_is_a_loop_unless_the_source_has_one() -> None:
    assert is_loop("A dog runs", "Ein" + 30 * " " + ".")
    assert not is_loop("A" + 30 * " " + "dog", "Ein" + 30 * " " + "Hund") and not is_loop("A dog", "Ein   Hund")


def test_a_loop_at_the_end_of_a_very_long_output_is_flagged() -> None:
    words = [f"w{i}" for i in range(1500)]
    assert not is_loop("a", " ".join(words))
    assert is_loop("a", " ".join([*words, *words[-20:]]))


WORDS = Word("abcdefgh")
A, B, C, D = WORDS.encode(["a b c d"])[0]
SCRIPT = {
    (A,): {(B, B, B, B): 0.5, (C, D): 0.3, (C,): 0.2},  # a loop, and what comes next
    (B,): {(C,): 0.6, (D, D, D): 0.4},
    (C,): {(D, D, D): 0.7, (A, A, A): 0.3},  # nothing but loops
    (D,): {(B, B, B, B): 0.5, (B, B, D): 0.06, (C, C, C, C): 0.4, (C, C, D): 0.04},  # a narrow beam has only loops
    (A, B, C, D): {(A, B, C, D): 0.5, (D, C): 0.3, (C,): 0.2},
}
GUARDED = OutputChecks(guard=Guard())
BEAM = SearchOptions(beam_size=3, length_penalty=0.0, max_tokens=8)


def translator(checks: OutputChecks | None = GUARDED) -> ModelTranslator:
    """A model that says what SCRIPT says."""
    return ModelTranslator(ScriptedModel(12, SCRIPT), WORDS, WORDS, Normaliser(), checks=checks)


def test_the_next_hypothesis_replaces_a_flagged_one() -> None:
    looping, sound, hopeless, copying = translator().translate(["a", "b", "c", "a b c d"], BEAM)
    assert (looping.text, looping.flags, looping.fallback) == ("c d", ("loop",), True)
    assert (sound.text, sound.flags, sound.fallback) == ("c", (), False)
    assert (hopeless.text, hopeless.flags, hopeless.fallback) == ("d d d", ("loop",), False)
    assert (copying.text, copying.flags, copying.fallback) == ("d c", ("copy",), True)


def test_if_the_whole_beam_loops_no_ngram_may_repeat() -> None:
    [actual] = translator().translate(["d"], BEAM.model_copy(update={"beam_size": 2}))
    assert (actual.text, actual.flags, actual.fallback) == ("b b d", ("loop",), True)
    [score] = translator().score(["b b d"], ["d"])
    assert actual.log_prob == pytest.approx(score.log_prob)
    [wide] = translator().translate(["d"], BEAM.model_copy(update={"beam_size": 2, "nbest": 2}))
    assert [other.text for other in wide.alternatives] == ["b b b b"]


def test_pairs_of_characters_may_repeat_where_tokens_are_characters() -> None:
    letters = Character("abcde")
    outputs = {"bc" * 6: 0.5, "bcbcbcbcb" + "dada": 0.06, "ea" * 6: 0.4, "eaeaeaeae" + "dbdb": 0.04}
    [source], encoded = letters.encode(["a"])[:1], letters.encode(list(outputs))
    script = {tuple(source): dict(zip(map(tuple, encoded), outputs.values(), strict=True))}
    model = ModelTranslator(ScriptedModel(9, script), letters, letters, Normaliser(), checks=GUARDED)
    [actual] = model.translate(["a"], SearchOptions(beam_size=2, length_penalty=0.0, max_tokens=20))
    assert (actual.text, actual.flags, actual.fallback) == ("bcbcbcbcbdada", ("loop",), True)
    kinds = [no_repeat_size(tokenizer) for tokenizer in (letters, Byte(), CharBigram(["ab"]), WORDS)]
    assert kinds == [8, 8, 4, 2]


def test_a_prefix_that_the_vocabulary_cannot_write_is_an_error() -> None:
    with pytest.raises(DataError, match="cannot write the prefix 'a zebra'"):
        translator().translate(["a", "b"], BEAM, [Constraints(), Constraints(prefix="a zebra ")])


def test_a_fallback_search_never_relaxes_no_repeat() -> None:
    actual = [search.no_repeat for search, _ in fallback_searches(BEAM.model_copy(update={"no_repeat": 1}))]
    assert actual == [1, 1]
    assert [search.no_repeat for search, _ in fallback_searches(BEAM)][1] > 1


def test_fallback_searches_of_a_diverse_beam_keep_its_groups() -> None:
    options = BEAM.model_copy(update={"beam_size": 4, "mbr": "chrf", "candidates": 4, "diversity": 0.5})
    [whole, greedy] = [search for search, _ in fallback_searches(options)]
    assert (whole.nbest, whole.diversity, greedy.width) == (4, 0.5, 1)
    groups = BEAM.model_copy(update={"nbest": 3, "diversity": 0.5})
    assert [search.width for search, _ in fallback_searches(groups)] == [3, 1]


def test_a_replacement_has_its_own_score() -> None:
    [actual] = translator().translate(["a"], BEAM)
    [score] = translator().score(["c d"], ["a"])
    assert actual.log_prob == pytest.approx(score.log_prob)


def test_without_the_guard_the_best_is_kept() -> None:
    for actual in (
        translator().translate(["a"], BEAM.model_copy(update={"guard": False})),
        translator(None).translate(["a"], BEAM),
    ):
        assert (actual[0].text, actual[0].flags) == ("b b b b", ())


def test_greedy_search_and_sampling_have_no_fallback() -> None:
    [actual] = translator().translate(["a"], BEAM.model_copy(update={"beam_size": 1}))
    assert (actual.text, actual.flags, actual.fallback) == ("b b b b", ("loop",), False)
    drawn = translator().translate(["c"], SearchOptions(sample=True, max_tokens=8))
    assert (drawn[0].flags, drawn[0].fallback) == (("loop",), False)


def test_an_n_best_list_keeps_its_length_and_the_replaced_hypothesis() -> None:
    [actual] = translator().translate(["a"], BEAM.model_copy(update={"nbest": 2}))
    assert [actual.text, *(other.text for other in actual.alternatives)] == ["c d", "b b b b"]
    [plain] = translator(None).translate(["a"], BEAM.model_copy(update={"nbest": 2}))
    assert [plain.text, *(other.text for other in plain.alternatives)] == ["b b b b", "c d"]


def test_a_fallback_does_not_depend_on_other_lines() -> None:
    lines = ["a", "b", "c", "a b c d"]
    together = translator().translate(lines, BEAM)
    assert together == [translator().translate([line], BEAM)[0] for line in lines]
    assert together[::-1] == translator().translate(lines[::-1], BEAM.model_copy(update={"batch_size": 2}))


def test_only_flagged_lines_are_searched_again() -> None:
    quiet, noisy = translator(), translator()
    quiet.translate(["b"], BEAM)
    noisy.translate(["a"], BEAM)
    unguarded = translator(None)
    unguarded.translate(["b"], BEAM)
    assert quiet.model.advanced == unguarded.model.advanced
    assert noisy.model.advanced.count((3, 1)) > 1
    assert len(noisy.model.advanced) > len(quiet.model.advanced)


def test_a_beam_of_which_nothing_ended_is_not_searched_for_another_output() -> None:
    script = {(A,): {(B,) * 9: 0.6, (C,) * 9: 0.4}, (B,): {(C, C, C, C): 0.9, (D,): 0.1}}
    model = ModelTranslator(ScriptedModel(12, script), WORDS, WORDS, Normaliser(), checks=GUARDED)
    asked: list[tuple[int, int, bool]] = []

    def searcher(requests: Sequence[Request], options: SearchOptions) -> dict[Request, Hypothesis]:
        asked.append((len(requests), options.nbest, bool(options.no_repeat)))
        return model.search_in_batches(requests, options)

    narrow = BEAM.model_copy(update={"beam_size": 2, "max_tokens": 6})
    cut_off, ended = model.searched_by(searcher).translate(["a", "b"], narrow)
    assert not cut_off.finished and (ended.text, ended.fallback) == ("d", True)
    assert asked == [(2, 1, False), (1, 2, False), (1, 1, True)]


def test_a_replacement_keeps_the_constraints() -> None:
    script = {(A,): {(B, B, B, B): 0.5, (C, D): 0.3, (B, D): 0.2}}
    model = ModelTranslator(ScriptedModel(12, script), WORDS, WORDS, Normaliser(), checks=GUARDED)
    [actual] = model.translate(["a"], BEAM, [Constraints(prefix="b")])
    assert (actual.text, actual.flags, actual.fallback) == ("b d", ("loop",), True)


@given(st.text("ab c", max_size=40), st.integers(1, 3), st.integers(0, 12), st.integers(1, 4))
def test_all_repeated_runs_are_found_at_once(text: str, shortest: int, further: int, times: int) -> None:
    """Of every period, the longest repetition, counted by comparing whole runs."""
    expected = []
    for period in range(shortest, shortest + further + 1):
        most = 1
        for begin in range(len(text)):
            count = 1
            while text[begin + count * period : begin + (count + 1) * period] == text[begin : begin + period] != "":
                if len(text) < begin + (count + 1) * period:
                    break
                count += 1
            most = max(most, count)
        if most > times:
            expected.append((period, most))
    assert list(_Limit(shortest, shortest + further, times).exceeded(text)) == expected
