"""Attention heads against trees, with hand-made attention whose agreement is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from random_models import model_of
from toy import write_lines

from heed.core.errors import DataError
from heed.evaluation import heads as module
from heed.evaluation.heads import (
    HeadReport,
    attachment,
    constituent_report,
    dependency_report,
    predicted_heads,
    word_attention,
)
from heed.tasks.embedding import TokenAttention, encoder_attention, generator_attention
from heed.text.tokenizers.symbols import Word
from heed.text.treebank import Tree, read_trees

ROWS = [
    "# text = (the dog's food)", "1\tthe\t_\tDET\t_\t_\t2\tdet\t_\t_", "2-3\tdog's\t_\t_\t_\t_\t_\t_\t_\t_",
    "2\tdog\t_\tNOUN\t_\t_\t4\tnmod:poss\t_\t_", "3\t's\t_\tPART\t_\t_\t2\tcase\t_\t_",
    "4\tfood\t_\tNOUN\t_\t_\t0\troot\t_\t_", "4.1\tx\t_\t_\t_\t_\t_\t_\t_\t_", "",
]  # fmt: skip


def test_conll_u_and_bracketed_trees_are_read(tmp_path: Path) -> None:
    [tree] = read_trees(write_lines(tmp_path / "a.conllu", ROWS))
    assert tree == Tree(("the", "dog", "'s", "food"), (1, 3, 1, -1), ("det", "nmod", "case", "root"))
    spaced = [line.replace("food", "1\u00a0000 g") for line in ROWS]
    assert read_trees(write_lines(tmp_path / "a.conllu", spaced))[0].words == ("the", "dog", "'s", "1_000_g")
    line = "wsj_1\t((S (NP-SBJ (DT the) (NN dog)) (VP (VBZ eats) (NP (-NONE- *T*-1)) (PP (IN at) (NN noon))) (. .)))"
    [tree] = read_trees(write_lines(tmp_path / "a.trees", [line]))
    assert tree.words == ("the", "dog", "eats", "at", "noon", ".") and tree.spans == ((0, 2), (2, 5), (3, 5))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["1\ta\tb"], "ten columns"),
        (["1\ta" + "\t_" * 4 + "\t2\tdet"], "one root"),
        (["(S (NP a)"], "not balanced"),
        ([""], "no trees"),
    ],
)
def test_wrong_trees_are_refused(tmp_path: Path, lines: list[str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_trees(write_lines(tmp_path / "trees", lines))


def test_attention_to_a_split_word_is_added_and_from_it_averaged() -> None:
    weights = np.array([[[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [0.5, 0.1, 0.4]]], dtype=np.float32)
    words = word_attention(TokenAttention(["h"], weights, [0, 0, 1]), 2)
    np.testing.assert_allclose(words, [[[0.45, 0.55], [0.6, 0.4]]], atol=1e-6)
    with pytest.raises(DataError, match="no token"):
        word_attention(TokenAttention(["h"], weights, [0, 0, 0]), 2)


def pointing(heads: tuple[int, ...], towards_dependent: bool = False) -> Any:
    """Attention of each word to its head, or of each head to its words."""
    table = np.full((len(heads), len(heads)), 0.01)
    for word, head in enumerate(heads):
        if head >= 0:
            table[(head, word) if towards_dependent else (word, head)] = 1.0
    return table


def test_both_directions_predict_heads_and_no_word_is_its_own() -> None:
    heads = (1, 3, 1, -1)
    both = predicted_heads(np.stack([pointing(heads) + np.eye(4) * 5, pointing(heads, True)]))
    assert both[0, 0, :3].tolist() == both[1, 1, :3].tolist() == [1, 3, 1]


def test_the_best_head_offset_tree_and_probe_of_known_attention(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MIN_COUNT", 1)
    monkeypatch.setattr(module, "_PROBE_STEPS", 60)
    trees, weights, noise = [], [], []
    random = np.random.default_rng(0)
    for number in range(20):
        size = 6
        heads = tuple(
            -1 if word == number % size else int(random.choice([h for h in range(size) if h != word]))
            for word in range(size)
        )
        heads = tuple(number % size if head != -1 and word % 2 else head for word, head in enumerate(heads))
        relations = tuple("root" if head < 0 else "even" if word % 2 == 0 else "odd" for word, head in enumerate(heads))
        trees.append(Tree(tuple("abcdef"), heads, relations))
        noise.append(random.random((2, size, size)))
        weights.append(np.stack([noise[-1][0], pointing(heads, towards_dependent=True)]))
    report = dependency_report(trees, weights, ["noise", "true"], noise)
    rows = {row.what: row for row in report.rows}
    assert rows["all"].head == "true, head to word" and rows["all"].right == 100 == rows["odd"].right
    assert rows["all"].offset_right < 60 and report.scores["probe of all heads"] == 100
    assert report.scores["probe of random weights"] < 60
    assert "true, head to word" in report.render() and report.to_json()["num_sentences"] == 20


def test_treebanks_without_short_sentences_or_without_dependents() -> None:
    def report(relation: str, size: int) -> HeadReport:
        tree = Tree(("a",) * size, (-1, *range(size - 1)), ("root", *[relation] * (size - 1)))
        weights = [np.ones((1, size, size))] * 2
        return dependency_report([tree, tree], weights, ["one"], weights)

    assert [*report("det", 31).scores] == ["tree of the best head"]
    with pytest.raises(DataError, match="no words besides their roots and punctuation"):
        report("punct", 2)


def test_attachment_leaves_out_the_root_and_punctuation() -> None:
    tree = Tree(("a", "b", "c", "."), (1, -1, 1, 1), ("det", "root", "obj", "punct"))
    assert attachment([tree], [[1, 0, 0, 0]]) == 50


def test_a_head_agrees_with_constituents_if_it_stays_inside_the_smallest() -> None:
    tree = Tree(("a", "b", "c", "d"), spans=((0, 2), (2, 4)))
    inside, outside = (pointing((1, 0, 3, 2)), pointing((2, 3, 0, 1)))
    report = constituent_report([tree, tree], [np.stack([outside, inside])] * 2, ["out", "in"])
    [row] = report.rows
    assert (row.head, row.right, row.count) == ("in", 100, 4) and row.offset_right == 50


def test_translators_and_language_models_give_the_attention_of_their_heads() -> None:
    tokenizer, cpu = Word(["a", "b", "c"]), torch.device("cpu")
    with torch.no_grad():
        of_encoder, _ = encoder_attention(model_of("transformer").encoder, tokenizer, ["a b c", "a"], cpu)
        alone, of_gpt = generator_attention(model_of("gpt"), tokenizer, ["b", "a b c"], cpu)
    assert alone.weights.shape == (4, 1, 1)
    assert of_encoder.weights.shape == of_gpt.weights.shape == (4, 3, 3)
    assert of_encoder.names[0] == "encoder.0 head 0" and of_gpt.names[3] == "decoder.1 head 1"
    assert not np.triu(of_gpt.weights, 1).any() and (of_encoder.weights.sum(axis=2) < 1).all()
