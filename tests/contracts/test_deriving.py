"""Laws of translators that derive (`heed.statistical.derivation.Derives`), for every such model of the registry."""

from __future__ import annotations

import functools
from itertools import accumulate
from typing import Any

import pytest
import torch
from toy import pairs

from heed.core.errors import DataError
from heed.decoding.options import Constraints, SearchOptions
from heed.decoding.phrases import Glossary
from heed.inference.deriving_translator import DerivingTranslator
from heed.models import MODELS, build_model
from heed.models.model import DerivingModel
from heed.nn.contract import Vocabularies
from heed.statistical.derivation import Bitext, Derivation, Forced
from heed.text.normalise import Normaliser
from heed.text.tokenizers import Tokenizer, TokenizerConfig, train_tokenizer
from heed.text.tokenizers.byte_level import words_of_pieces

KINDS = [kind for kind, model in MODELS.items() if model.derives]
SMALL: dict[str, dict[str, Any]] = {"phrase_based": {"tuning_rounds": 1, "tuning_width": 3, "word_classes": 4}}
SOURCES = ["ba ce di", "ba", "Ba ce ba ce ba", "ji Unbekannt me"]

every_kind = pytest.mark.parametrize("kind", KINDS)


@functools.cache
def estimated(kind: str) -> tuple[DerivingModel, Tokenizer]:
    """A model of this kind that has seen toy pairs; no test changes it."""
    rows = pairs(80)
    config = TokenizerConfig(kind="open-word", vocab_size=500, min_frequency=1)
    tokenizer = train_tokenizer(config, [side for row in rows for side in row])
    sources, targets = (tokenizer.encode(list(side)) for side in zip(*rows, strict=True))
    ids = list(zip(sources, targets, strict=True))
    size = len(tokenizer.vocabulary)
    model: DerivingModel = build_model(MODELS[kind].Config(**SMALL.get(kind, {})), Vocabularies(size, size))
    model.estimate(Bitext(ids[20:], ids[:20], tokenizer, lambda _: None))
    return model, tokenizer


def derived(kind: str, line: str, number: int = 4) -> tuple[list[int], list[Derivation]]:
    """The tokens of a source, and its best derivations."""
    model, tokenizer = estimated(kind)
    [source] = tokenizer.encode([line])
    return source, model.derive(source, 10, number)


@every_kind
@pytest.mark.parametrize("line", SOURCES)
def test_each_source_token_is_translated_once_and_the_steps_are_the_target(kind: str, line: str) -> None:
    source, found = derived(kind, line)
    assert found
    for each in found:
        covered = sorted(place for step in each.steps for place in range(*step.source))
        assert covered == list(range(len(source)))
        assert [place for step in each.steps for place in range(*step.target)] == list(range(len(each.ids)))
        assert all(0 <= i < len(source) and 0 <= j < len(each.ids) for i, j in each.links)


@every_kind
@pytest.mark.parametrize("line", SOURCES)
def test_a_score_is_the_weighted_sum_of_the_features(kind: str, line: str) -> None:
    model, _ = estimated(kind)
    weights = model.weights_by_name()
    for each in derived(kind, line)[1]:
        total = sum(weights[name] * value for step in each.steps for name, value in step.features.items())
        assert each.score == pytest.approx(total, abs=1e-4)


@every_kind
def test_derivations_differ_and_fall_in_score(kind: str) -> None:
    _, found = derived(kind, SOURCES[0])
    assert len({each.ids for each in found}) == len(found)
    scores = [each.score for each in found]
    assert scores == sorted(scores, reverse=True)


@every_kind
def test_the_best_is_the_same_among_more(kind: str) -> None:
    assert derived(kind, SOURCES[0], 1)[1][0].ids == derived(kind, SOURCES[0], 4)[1][0].ids


@every_kind
def test_unknown_words_are_copied_exactly(kind: str) -> None:
    _, tokenizer = estimated(kind)
    _, [best, *_] = derived(kind, "ba Unbekannt, ce")
    assert "Unbekannt" in tokenizer.decode([best.ids])[0]


@every_kind
@pytest.mark.parametrize("line", ["ba ce di", "Ba Unbekannt di"])
def test_a_required_translation_is_as_written_and_linked_to_each_word_of_its_part(kind: str, line: str) -> None:
    model, tokenizer = estimated(kind)
    source, term = tokenizer.encode([line, " ler"])
    [best] = model.derive(source, 10, 1, [Forced(0, len(source) - 1, tuple(term))])
    target = tokenizer.decode([best.ids])[0].split()
    src, tgt = (words_of_pieces(tokenizer.bytes_of(ids)) for ids in (source, best.ids))
    assert {src[i] for i, j in best.links if tgt[j] == target.index("ler")} == {0, 1}


@every_kind
@pytest.mark.parametrize("line", ["ba Foo–Bar–Baz di", "Foo–Bar–Baz di"])
@pytest.mark.parametrize("terms", [["Foo"], ["Bar"], ["Baz"], ["Foo", "Bar"], ["Foo", "Baz"]])
def test_terms_in_one_unknown_word_are_all_required_and_the_rest_of_it_is_copied(
    kind: str, line: str, terms: list[str]
) -> None:
    model, tokenizer = estimated(kind)
    [source] = tokenizer.encode([line])
    bounds = [0, *accumulate(map(len, tokenizer.bytes_of(source)))]
    forced, expected = [], "Foo–Bar–Baz"
    for term in terms:
        begin = line.index(term)
        first, last = (len(line[:place].encode()) for place in (begin, begin + 3))
        [ids] = tokenizer.encode([" " * (not begin) + term.upper()])
        forced.append(Forced(bounds.index(first), bounds.index(last), tuple(ids)))
        expected = expected.replace(term, term.upper())
    [best] = model.derive(source, 10, 1, forced)
    assert expected in tokenizer.decode([best.ids])[0].split()


@every_kind
def test_there_is_a_space_before_the_translation_of_an_unknown_term(kind: str) -> None:
    model, tokenizer = estimated(kind)
    translator = DerivingTranslator(model, tokenizer, tokenizer, Normaliser())
    constraints = [Constraints.of("", Glossary({"xyz": "Wort"}).pairs_for("ba xyz di"))]
    [output] = translator.translate(["ba xyz di"], SearchOptions(beam_size=10, guard=False), constraints)
    assert sorted(output.text.lower().split()) == ["kan", "mis", "wort"]


@every_kind
def test_a_model_restored_from_its_weights_derives_the_same(kind: str) -> None:
    model, tokenizer = estimated(kind)
    size = len(tokenizer.vocabulary)
    again = build_model(model.config, Vocabularies(size, size))
    again.load_state_dict(model.state_dict())
    [source] = tokenizer.encode([SOURCES[0]])
    assert again.derive(source, 10, 4) == model.derive(source, 10, 4)


@every_kind
def test_nothing_is_derived_from_nothing(kind: str) -> None:
    assert estimated(kind)[0].derive([], 10, 1) == []


@every_kind
def test_a_missing_or_damaged_array_is_refused(kind: str) -> None:
    model, tokenizer = estimated(kind)
    size = len(tokenizer.vocabulary)
    again = build_model(model.config, Vocabularies(size, size))
    state = model.state_dict()
    for name, array in state.items():
        damaged = [array.reshape(-1)[0], array[None]]  # other dimensions
        if name != "rules":  # a shorter text may be a text too
            damaged.append(array[:-1])
        if not array.is_floating_point() and name not in ("rules", "texts"):
            damaged += [array.to(torch.int64) - 1_000, array.to(torch.int64) + 10**10, array.to(torch.float64)]
        if array.is_floating_point():
            damaged.append(torch.full_like(array, torch.nan))
            if not name.startswith(("language.", "classes.")):  # whose words may be impossible
                damaged.append(torch.full_like(array, -torch.inf))
        for other in damaged:
            with pytest.raises(DataError, match=r"not (a|an|the) "):
                again.load_state_dict({**state, name: other})
        with pytest.raises(DataError, match=r"not (a|an|the) "):
            again.load_state_dict({key: value for key, value in state.items() if key != name})
