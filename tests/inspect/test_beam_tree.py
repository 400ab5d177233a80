"""The tree shows what the beam search did, and recording it changes nothing."""

from __future__ import annotations

import pytest
import torch
from hashed_model import HashedModel
from random_models import EOS, half_trained
from scripted import ScriptedModel
from word_translator import TOKENS, WORDS, translator_of

from heed.decoding.options import SearchOptions
from heed.inference.translator import ModelTranslator
from heed.inspect.beam_tree import BeamRecorder, BeamTree, beam_tree

A, B, C = (TOKENS.index(word) for word in "abc")
BEAM = SearchOptions(beam_size=3, nbest=3, max_tokens=8, guard=False)


def tree_of(translator: ModelTranslator, line: str, options: SearchOptions = BEAM) -> tuple[BeamTree, tuple[int, ...]]:
    """The recorded tree of one line, and the best output with its end."""
    recorder = BeamRecorder(EOS)
    best = translator.watched(line, options, recorder.record)
    chosen = (*best.ids, EOS) if best.finished else best.ids
    tree = beam_tree(recorder, WORDS, chosen, options.width)
    assert tree is not None
    return tree, chosen


def prefix(tree: BeamTree, number: int) -> tuple[str, ...]:
    """The tokens from the root to a node."""
    node = tree.nodes[number]
    return (*(prefix(tree, node.parent) if node.parent >= 0 else ()), node.text)


def test_the_tree_of_a_known_distribution() -> None:
    script = {(A,): {(A, B): 0.6, (A, C): 0.3, (B,): 0.1}}
    tree, _ = tree_of(
        translator_of(ScriptedModel(len(TOKENS), script)), "a", BEAM.model_copy(update={"beam_size": 2, "nbest": 2})
    )
    nodes = {prefix(tree, number): (node.fate, node.prob, node.best) for number, node in enumerate(tree.nodes)}
    assert nodes["a",] == ("kept", 0.9, True)
    assert nodes["b",] == ("kept", 0.1, False)
    assert nodes["a", "b"] == ("kept", pytest.approx(0.6667, abs=1e-4), True)
    assert nodes["a", "c"][0] == "kept"
    assert nodes["b", ""][0] == "dropped"  # third best, of a beam of two
    assert nodes["a", "b", ""] == ("finished", 1.0, True)


@pytest.mark.parametrize(
    "model", [HashedModel(len(TOKENS)), half_trained("transformer")], ids=["hashed", "transformer"]
)
@pytest.mark.parametrize("line", ["a b c", "d", "h g f e"])
def test_the_output_is_a_path_of_the_tree_whose_log_probabilities_add_up(model: HashedModel, line: str) -> None:
    translator = translator_of(model)
    tree, chosen = tree_of(translator, line)
    best = [number for number, node in enumerate(tree.nodes) if node.best]
    assert [tree.nodes[number].depth for number in best] == list(range(1, len(chosen) + 1))
    assert prefix(tree, best[-1]) == tuple("" if id == EOS else TOKENS[id] for id in chosen)
    assert tree.nodes[best[-1]].log_prob == pytest.approx(
        translator.watched(line, BEAM, lambda *_: None).log_prob, abs=1e-3
    )
    for node in tree.nodes:
        before = tree.nodes[node.parent].log_prob if node.parent >= 0 else 0.0
        assert node.log_prob == pytest.approx(before + torch.tensor(node.prob).log().item(), abs=2e-3)


def test_at_most_beam_size_prefixes_are_kept_and_only_those_continue() -> None:
    tree, _ = tree_of(translator_of(HashedModel(len(TOKENS))), "a b c d")
    for depth in {node.depth for node in tree.nodes}:
        assert sum(node.depth == depth and node.fate == "kept" for node in tree.nodes) <= BEAM.beam_size
    assert all(tree.nodes[node.parent].fate == "kept" for node in tree.nodes if node.parent >= 0)


@pytest.mark.parametrize(
    "options",
    [BEAM, BEAM.model_copy(update={"diversity": 0.7}), BEAM.model_copy(update={"coverage_penalty": 0.3})],
    ids=["beam", "diverse", "coverage"],
)
def test_recording_changes_nothing(options: SearchOptions) -> None:
    translator = translator_of(half_trained("transformer"))
    recorder = BeamRecorder(EOS)
    watched = translator.watched("a b c d", options, recorder.record)
    [plain] = translator.translate(["a b c d"], options)
    assert recorder.considered
    assert watched.ids == plain.ids
    assert watched.token_log_probs == plain.token_log_probs
    assert [h.ids for h in watched.alternatives] == [h.ids for h in plain.alternatives]


@pytest.mark.parametrize("options", [BEAM.model_copy(update={"beam_size": 1, "nbest": 1}), SearchOptions(sample=True)])
def test_without_a_beam_there_is_no_tree(options: SearchOptions) -> None:
    recorder = BeamRecorder(EOS)
    translator_of(HashedModel(len(TOKENS))).watched("a b", options, recorder.record)
    assert beam_tree(recorder, WORDS, (), 1) is None
