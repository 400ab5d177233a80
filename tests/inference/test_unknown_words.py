"""Unknown words: never generated, kept, or replaced by what they translate."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hashed_model import HashedModel, Prefixes
from random_models import half_trained
from scripted import ScriptedModel
from toy import write_lines
from word_translator import WORDS, translator_of

from heed.core.errors import DataError, UsageError
from heed.decoding.options import Constraints, SearchOptions
from heed.inference.translator import ModelTranslator
from heed.nn.contract import Trace
from heed.text.normalise import Normaliser
from heed.text.tokenizers.byte_level import Byte
from heed.text.tokenizers.symbols import CharBigram
from heed.text.vocabulary import UNK_ID

A, B = WORDS.encode(["a b"])[0]
KEEP = SearchOptions(unknown="keep", beam_size=3)
COPY = SearchOptions(unknown="replace", beam_size=3)


class Attending(ScriptedModel):
    """Answers "a zz b" (zz is unknown) by "<unk> b <unk>" or by "b <unk>", with attention that is written down."""

    def __init__(self) -> None:
        source = (A, UNK_ID, B)
        super().__init__(12, {source: {(UNK_ID, B, UNK_ID): 0.6, (B, UNK_ID): 0.4}, (): {(): 1.0}})

    def advance(self, ids: torch.Tensor, state: Prefixes, trace: Trace | None = None) -> tuple[torch.Tensor, Prefixes]:
        """The first token attends to the second source token, the second to the first, the third to the end."""
        if trace is not None:
            width = len([id for id in state.rows[0] if id >= 0])
            rows = [[0.2, 0.5, 0.3, 0.0], [0.5, 0.1, 0.2, 0.2], [0.2, 0.0, 0.3, 0.5], [0.25] * 4]
            steps = torch.tensor(rows)[: ids.shape[1], :width]
            trace.record("decoder.cross", steps.expand(len(ids), 1, -1, -1))
        return super().advance(ids, state)


def translated(options: SearchOptions, line: str = "a zz b") -> str:
    """The translation by the model with known attention."""
    return translator_of(Attending()).translate([line], options)[0].text


def test_an_unknown_word_is_the_source_word_with_the_most_attention() -> None:
    """The end of the source has the most attention in the third step, but it is not a word."""
    assert translated(KEEP) == "<unk> b <unk>"
    assert translated(COPY) == "zz b b"


def test_a_dictionary_translates_the_source_word_and_what_it_lacks_is_copied(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "words.tsv", ["zz\tunlikely\t0.2", "zz\tZett\t0.7", "", "zz\tlast\t0.7", "a\tA"])
    assert translated(COPY.model_copy(update={"dictionary": str(path)})) == "Zett b b"


def test_words_are_replaced_in_all_hypotheses_and_scores_stay_those_of_the_search() -> None:
    translator = translator_of(Attending())
    kept, copied = (translator.translate(["a zz b"], each.model_copy(update={"nbest": 2}))[0] for each in (KEEP, COPY))
    assert [each.text for each in (kept, *kept.alternatives)] == ["<unk> b <unk>", "b <unk>"]
    assert [each.text for each in (copied, *copied.alternatives)] == ["zz b b", "b a"]
    assert (copied.ids, copied.score, copied.log_prob) == (kept.ids, kept.score, kept.log_prob)


def test_equal_requests_with_different_unknown_words_get_their_own_words() -> None:
    translator = translator_of(Attending())
    assert [each.text for each in translator.translate(["a zz b", "a yy b"], COPY)] == ["zz b b", "yy b b"]


def test_by_default_unknown_words_are_never_generated() -> None:
    plain = translator_of(HashedModel(12)).translate(["a b", "c"], SearchOptions(nbest=5))
    assert not any(UNK_ID in each.ids for best in plain for each in (best, *best.alternatives))
    assert translator_of(HashedModel(12)).translate(["a b", "c"], SearchOptions(nbest=5, unknown="never")) == plain
    kept = translator_of(HashedModel(12)).translate(["a b", "c"], SearchOptions(nbest=5, unknown="keep"))
    assert any(UNK_ID in each.ids for best in kept for each in (best, *best.alternatives))


@pytest.mark.parametrize("name", ["transformer", "rnn_attention"])
def test_the_batch_changes_no_replaced_word(name: str) -> None:
    translator = translator_of(half_trained(name))
    lines = ["a b xx", "c", "yy d e f", "g zz a b c d"]
    options = SearchOptions(unknown="replace", sample=True, nbest=4, max_tokens=8)
    together = translator.translate(lines, options)
    assert any(UNK_ID in each.ids for best in together for each in (best, *best.alternatives))
    for line, best in zip(lines, together, strict=True):
        [alone] = translator.translate([line], options)
        assert [alone.text, *(each.text for each in alone.alternatives)] == [
            best.text, *(each.text for each in best.alternatives),
        ]  # fmt: skip
        assert all(len(each.text.split(" ")) == len(each.ids) for each in (best, *best.alternatives) if each.ids)


def test_the_tag_of_a_source_is_not_one_of_its_words() -> None:
    tagged = ModelTranslator(Attending(), WORDS.with_tags(["x"]), WORDS, Normaliser(), before_source=[A])
    assert tagged.attended_words("zz b", [UNK_ID, B, UNK_ID]) == [0, 1, 1], "the tag has the most in the second step"


@pytest.mark.parametrize("tokenizer", [Byte(), CharBigram("abcdefgh")], ids=["bytes", "char-bigram"])
def test_other_vocabularies_have_no_unknown_words(tokenizer: Byte | CharBigram) -> None:
    model = HashedModel(len(tokenizer.vocabulary))
    with pytest.raises(UsageError, match='unknown = "keep" needs a vocabulary of whole words'):
        ModelTranslator(model, tokenizer, tokenizer, Normaliser()).translate(["a"], KEEP)


def test_without_attention_nothing_can_be_replaced() -> None:
    with pytest.raises(UsageError, match="no attention to its source"):
        translator_of(HashedModel(12)).translate(["a"], COPY)
    assert translator_of(HashedModel(12)).translate(["a"], KEEP)


def test_a_language_model_has_no_source_words_that_could_replace_unknown_ones() -> None:
    speaker = ModelTranslator(HashedModel(12), None, WORDS, Normaliser())
    with pytest.raises(UsageError, match="is for translators"):
        speaker.generate(["a"], SearchOptions(beam_size=1, unknown="replace"))
    samples = speaker.generate(["a", "b", "c", "d"] * 8, SearchOptions(sample=True, unknown="keep"))
    assert any("<unk>" in best.text for best, *_ in samples)


def test_options_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(UsageError, match='a dictionary replaces unknown words: set unknown = "replace"'):
        SearchOptions(unknown="keep", dictionary="words.tsv")
    with pytest.raises(UsageError, match="may write a word that ban forbids"):
        SearchOptions(unknown="replace", ban=("a",))


@pytest.mark.parametrize("line", ["a", "a\tb\tc", "a\tb\t2", "a\tb\tnan", "a\t", "a\tb\t0.1\tc"])
def test_a_malformed_line_of_a_dictionary_is_named(line: str, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "words.tsv", ["b\tB", line])
    with pytest.raises(DataError, match=r"words\.tsv, line 2: expected a word, a tab and its translation"):
        translated(COPY.model_copy(update={"dictionary": str(path)}))


def test_a_required_term_and_a_copied_word_can_be_in_one_output() -> None:
    translator = translator_of(half_trained("transformer"))
    [best] = translator.translate(["zz yy"], COPY, [Constraints(terms=("g",))])
    assert UNK_ID in best.ids
    words = best.text.split()
    assert "g" in words
    assert {"zz", "yy"} & {*words}
    assert "<unk>" not in words
