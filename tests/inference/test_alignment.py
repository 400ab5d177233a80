"""Word alignment by attention: each target word links to the source word that it attends to most."""

from __future__ import annotations

import pytest
import torch
from random_models import half_trained, model_of

from heed.inference.alignment import head_links, mean_attention, word_links
from heed.inference.translator import ModelTranslator
from heed.nn.contract import Trace
from heed.text.normalise import Normaliser
from heed.text.tokenizers.symbols import Character, Word

LETTERS = Character(" abcdefg")
WORDS = Word("abcdefgh")


class HandMade(ModelTranslator):
    """A translator whose attention is written down: one tensor `[T, S]` for each block, the same in both heads."""

    def __init__(self, blocks: list[list[list[float]]]) -> None:
        super().__init__(model_of("bigram"), LETTERS, LETTERS, Normaliser())
        self.blocks = blocks

    def trace(self, source: str, target: str) -> tuple[Trace, list[int], list[int]]:
        """The weights that were written down, in two calls of `advance`."""
        trace = Trace()
        for index, block in enumerate(self.blocks):
            weights = torch.tensor(block).expand(1, 2, -1, -1)
            trace.record(f"decoder.{index}.self", weights)
            for piece in weights.split([1, weights.shape[2] - 1], dim=2):
                trace.record(f"decoder.{index}.cross", piece)
        return trace, [], []


# "ab c" into "d ef": columns a, b, space, c, end; rows d, space, e, f, end.
CROSSED = [
    [0.1, 0.1, 0.0, 0.4, 0.4],
    [0.0, 0.0, 1.0, 0.0, 0.0],
    [0.1, 0.1, 0.0, 0.4, 0.4],  # either letter of "ab" has less than "c" on average, both together more
    [0.3, 0.3, 0.0, 0.3, 0.1],
    [0.0, 0.0, 0.0, 0.0, 1.0],
]
STRAIGHT = [[1.0, 0.0, 0.0, 0.0, 0.0]] * 2 + [[0.0, 0.0, 0.0, 1.0, 0.0]] * 3


def test_weights_are_summed_over_a_source_word_and_averaged_over_a_target_word() -> None:
    """d: ab 0.2, c 0.4. ef: ab (0.2 + 0.6) / 2, c (0.4 + 0.3) / 2. Ends and spaces have no links."""
    assert word_links(HandMade([CROSSED]), "ab c", "d ef") == [(1, 0), (0, 1)]


def test_only_the_upper_half_of_the_blocks_counts() -> None:
    assert word_links(HandMade([STRAIGHT, CROSSED]), "ab c", "d ef") == [(1, 0), (0, 1)]
    assert word_links(HandMade([CROSSED, STRAIGHT]), "ab c", "d ef") == [(0, 0), (1, 1)]
    twelve = [STRAIGHT] * 6 + [CROSSED] * 6  # sorted as text, block 10 would come before block 2
    assert word_links(HandMade(twelve), "ab c", "d ef") == [(1, 0), (0, 1)]
    torch.testing.assert_close(mean_attention(HandMade(twelve), "ab c", "d ef"), torch.tensor(CROSSED))


def test_without_words_there_are_no_links() -> None:
    assert word_links(HandMade([CROSSED]), "", "d ef") == []
    assert word_links(HandMade([CROSSED]), "  ", "d ef") == []
    assert word_links(HandMade([CROSSED]), "ab c", "") == []


@pytest.mark.parametrize("name", ["transformer", "rnn_attention"])
def test_a_network_gives_every_target_word_one_link(name: str) -> None:
    translator = ModelTranslator(half_trained(name), WORDS, WORDS, Normaliser())
    weights = mean_attention(translator, "a b c", "d e f g")
    assert weights.shape == (5, 4), "with the end of both sides"
    torch.testing.assert_close(weights.sum(1), torch.ones(5))
    links = word_links(translator, "a b c", "d e f g")
    assert [target for _, target in links] == [0, 1, 2, 3]
    assert {source for source, _ in links} <= {0, 1, 2}
    assert links == [(int(weights[row, :3].argmax()), row) for row in range(4)]


def test_a_language_model_has_no_links() -> None:
    language_model = ModelTranslator(model_of("bigram"), None, WORDS, Normaliser())
    with pytest.raises(ValueError, match="with a source"):
        word_links(language_model, "a", "b")


@pytest.mark.parametrize(("num_words", "num_links"), [(6, 1), (7, 0)])
def test_a_line_that_is_translated_in_sentences_has_no_links(num_words: int, num_links: int) -> None:
    model = half_trained("rnn_attention")
    translator = ModelTranslator(model, WORDS, WORDS, Normaliser())
    translator.longest = 6
    line = " ".join("abcdefg"[:num_words])
    assert len(word_links(translator, line, "a")) == num_links


def test_each_head_alone_links_by_its_own_attention() -> None:
    """The blocks of the hand-made translator have two equal heads."""
    links = head_links(HandMade([STRAIGHT, CROSSED]), "ab c", "d ef")
    straight, crossed = [(0, 0), (1, 1)], [(1, 0), (0, 1)]
    assert links == {(1, 1): straight, (1, 2): straight, (2, 1): crossed, (2, 2): crossed}
