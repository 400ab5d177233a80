"""What a translator reads of a translation memory: related pairs, each once, and not the pair that it is fitted to."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from random_models import EOS, model_of

from heed.core.errors import DataError, UsageError
from heed.inference.translator import ModelTranslator
from heed.memory.store import TranslationMemory
from heed.models.nearest_neighbours import fit, interpolated
from heed.tasks.predictor import Combination, Predictor
from heed.tasks.translation import neighbours
from heed.tasks.translation.neighbours import Guide, RelatedPairs, open_memory
from heed.text.normalise import Normaliser
from heed.text.tokenizers.symbols import Word

WORDS = Word("abcdefgh")
PAIRS = [("a b c", "b a"), ("a b c", "c"), ("a b d", "d a"), ("e f", "f e"), (" ", "g")]


@pytest.fixture
def memory(tmp_path: Path) -> TranslationMemory:
    return TranslationMemory(tmp_path / "team.memory", ("en", "de"), create=True)


@pytest.fixture(name="related")
def related_pairs() -> RelatedPairs:
    translator = ModelTranslator(model_of("transformer"), WORDS, WORDS, Normaliser())
    related = RelatedPairs(translator)
    related.add(related.encoded(PAIRS))
    return related


def key(line: str) -> tuple[int, ...]:
    """The ids of a source with their end."""
    return (*WORDS.encode([line])[0], EOS)


def test_a_store_has_the_tokens_of_the_related_pairs_the_nearest_first(related: RelatedPairs) -> None:
    [near, far, none] = related.stores([key("a b c"), key("f"), key("g h")])
    expected = WORDS.encode(["b a", "c", "d a"])
    assert near.values.tolist() == [token for ids in expected for token in (*ids, EOS)]
    assert far.values.tolist() == [*WORDS.encode(["f e"])[0], EOS]
    assert near.keys.shape == (len(near.values), 16)
    assert none.keys.shape == (0, 16)


def test_sources_are_not_related_by_their_tag(related: RelatedPairs) -> None:
    [tag] = WORDS.encode(["h"])[0]
    translator = ModelTranslator(model_of("transformer"), WORDS, WORDS, Normaliser(), before_source=[tag])
    tagged = RelatedPairs(translator)
    tagged.add(tagged.encoded(PAIRS))
    keys = [key("a b c"), key("f"), key("g")]
    expected = [store.values.tolist() for store in related.stores(keys)]
    assert [store.values.tolist() for store in tagged.stores([(tag, *each) for each in keys])] == expected
    assert len(expected[0]) > 0 == len(expected[2])


def test_pairs_with_more_tokens_than_the_model_has_positions_are_left_out(memory: TranslationMemory) -> None:
    translator = ModelTranslator(model_of("transformer"), WORDS, WORDS, Normaliser(), max_positions=5)
    memory.add([("a b c d", "b a", ""), ("a b c d e", "c", "")])
    guide = Guide(translator, memory, [("a b e f", "b"), ("a b e f g", "e")])
    [store] = guide.stores([key("a b c")])
    assert store.values.tolist() == [*WORDS.encode(["b a"])[0], EOS]
    assert len(guide.related.validation) == 1


def test_what_is_forgotten_is_read_again(related: RelatedPairs, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [key("a b c"), key("e"), key("a b d")]
    before = related.stores(keys)
    monkeypatch.setattr(neighbours, "MAX_REMEMBERED", 0)
    for _ in range(2):
        for store, again in zip(before, related.stores(keys), strict=True):
            torch.testing.assert_close(store.keys, again.keys, rtol=1e-4, atol=1e-5)
            assert store.values.tolist() == again.values.tolist()
    assert len(related._read) == 4


def test_what_was_read_is_not_counted_again_in_each_search(related: RelatedPairs) -> None:
    """There may be 50,000 pairs."""

    class Uncountable(dict[Any, Any]):
        def values(self) -> Any:
            raise AssertionError

    related.stores([key("a b c")])
    related._read = Uncountable(related._read)
    assert len(related.stores([key("e")])[0].values) == 3
    assert related._num_positions == sum(len(dict.__getitem__(related._read, n)[1]) for n in range(4))


def test_threads_may_forget_what_others_need(related: RelatedPairs, monkeypatch: pytest.MonkeyPatch) -> None:
    """While one thread reads a pair, another forgets the pair that the first has found in memory."""
    keys, others = [key("a b c"), key("e")], [key("f")]
    expected = [store.values.tolist() for store in related.stores(keys)]
    related._read.pop(3)
    forced = related._forced

    def read_while_another_forgets(*given: Any) -> Any:
        monkeypatch.setattr(related, "_forced", forced)
        monkeypatch.setattr(neighbours, "MAX_REMEMBERED", 0)
        with ThreadPoolExecutor(1) as pool:
            pool.submit(related.stores, others).result()
        return forced(*given)

    monkeypatch.setattr(related, "_forced", read_while_another_forgets)
    assert [store.values.tolist() for store in related.stores(keys)] == expected


def test_a_pair_is_looked_up_without_the_pairs_of_its_source(related: RelatedPairs) -> None:
    """Word by word, the neighbours of the target of "a b c" are those that follow in "d a" alone."""
    tokens = related.looked_up(related.pairs[:1])
    assert len(tokens.log_prob) == 3
    assert (tokens.distances < 1e29).sum(dim=1).tolist() == [3, 3, 3]
    assert tokens.evidence.tolist() == [[pytest.approx(2 / 3), 0]] * 3
    ids, other = [*WORDS.encode(["b a"])[0], EOS], [*WORDS.encode(["d a"])[0], EOS]
    assert tokens.is_value[:, :3].sum(dim=1).tolist() == [other.count(token) for token in ids]


def test_the_fit_takes_features_in_bfloat16(memory: TranslationMemory) -> None:
    translator = ModelTranslator(model_of("transformer").to(torch.bfloat16), WORDS, WORDS, Normaliser())
    memory.add([(source, target, "") for source, target in PAIRS])
    guide = Guide(translator, memory, PAIRS)
    assert guide.model.head.interpolation != fit([])
    assert all(map(math.isfinite, guide.model.head.interpolation))


def test_what_people_add_approve_and_reject_counts_from_the_next_search_on(memory: TranslationMemory) -> None:
    guide = Guide(ModelTranslator(model_of("transformer"), WORDS, WORDS, Normaliser()), memory)

    def found(line: str) -> list[int]:
        return guide.stores([key(line)])[0].values.tolist()

    def ids(*lines: str) -> list[int]:
        return [token for line in WORDS.encode(lines) for token in (*line, EOS)]

    assert found("a b c") == []
    memory.add([("a b c", "b a", ""), ("e f", "f e", "")])
    assert (found("a b c"), found("e")) == (ids("b a"), ids("f e"))
    memory.add([("a b d", "b d", ""), ("a b", "https://b.example", "")])
    assert found("a b c") == ids("b a", "b d")
    memory.set_state([1], "rejected")
    memory.set_state([4], "approved")
    assert found("a b c") == ids("https://b.example", "b d")


def test_corrections_within_one_language_guide_a_translator(tmp_path: Path) -> None:
    path = tmp_path / "team.memory"
    TranslationMemory(path, ("en", "en"), create=True).add([("a b c d", "a b c d", "")])
    guide = Guide(ModelTranslator(model_of("transformer"), WORDS, WORDS, Normaliser()), open_memory(path, ("en", "en")))
    [store] = guide.stores([key("a b c d")])
    assert store.values.tolist() == [*WORDS.encode(["a b c d"])[0], EOS]
    TranslationMemory(path, ("en", "de")).add([("a b c d", "a b c d", "")])
    with pytest.raises(DataError, match="no usable translation from en to de"):
        open_memory(path, ("en", "de"))


def test_rejected_translations_hide_none_that_are_less_related(memory: TranslationMemory) -> None:
    guide = Guide(ModelTranslator(model_of("transformer"), WORDS, WORDS, Normaliser()), memory)
    memory.add([("a b c", "b a " + "c " * n, "") for n in range(70)], "rejected")
    memory.add([("a b d", "b d", "")], "approved")
    [store] = guide.stores([key("a b c")])
    assert store.values.tolist() == [*WORDS.encode(["b d"])[0], EOS]


def test_a_source_with_many_translations_is_compared_with_those_of_others(related: RelatedPairs) -> None:
    related.add(related.encoded([("a b c", "b a " + "c " * n) for n in range(1, 70)]))
    assert related.looked_up(related.pairs[:1]).evidence.tolist() == [[pytest.approx(2 / 3), 0]] * 3


def test_suggestions_of_known_translations_hide_nothing_and_take_no_room(memory: TranslationMemory) -> None:
    guide = Guide(ModelTranslator(model_of("transformer"), WORDS, WORDS, Normaliser()), memory)
    for _ in range(40):
        for target in ("b a", "c a"):
            memory.suggest("a b c", target)
            guide.stores([])
    [store] = guide.stores([key("a b c")])
    assert store.values.tolist() == [token for ids in WORDS.encode(["b a", "c a"]) for token in (*ids, EOS)]
    assert len(guide.related.pairs) == 2


def test_what_could_not_be_taken_from_the_memory_is_taken_later(
    memory: TranslationMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    guide = Guide(ModelTranslator(model_of("transformer"), WORDS, WORDS, Normaliser()), memory)
    memory.add([("a b c", "b a", "")])
    with monkeypatch.context() as patch, pytest.raises(MemoryError):
        patch.setattr(guide.related, "encoded", lambda pairs: (_ for _ in ()).throw(MemoryError))
        guide.stores([key("a b c")])
    assert len(guide.stores([key("a b c")])[0].values) == 3


def test_the_fit_follows_the_memory_as_it_grows(memory: TranslationMemory) -> None:
    guide = Guide(ModelTranslator(model_of("transformer"), WORDS, WORDS, Normaliser()), memory)
    fits = [guide.model.head.interpolation]
    for number in range(1, 9):
        memory.add([(f"a {'b ' * number}c", f"b {'c ' * number}", "")])
        guide.stores([key("a")])
        fits.append(guide.model.head.interpolation)
    assert [n for n in range(1, 9) if fits[n] is not fits[n - 1]] == [1, 2, 4, 8]


def test_a_source_is_compared_with_the_memory_and_with_validation_data() -> None:
    translator = ModelTranslator(model_of("transformer"), WORDS, WORDS, Normaliser())
    related = RelatedPairs(translator, [("g h", "a"), ("h c", "b")])
    related.add(related.encoded([("a b c", "b a"), ("a b d", "d a")]))
    [ours, theirs] = related.stores([key("a b"), key("c h")])
    assert ours.evidence[:, 1].unique().item() > 0 > theirs.evidence[:, 1].unique().item()


def test_validation_data_of_another_kind_is_predicted_better(memory: TranslationMemory) -> None:
    translator = ModelTranslator(model_of("transformer"), WORDS, WORDS, Normaliser())
    memory.add([(f"a {word}", word, "") for word in "bcdefgh"])
    alone, careful = Guide(translator, memory), Guide(translator, memory, [("a b c", "h"), ("a g f", "d")] * 5)
    tokens = careful.related.looked_up(careful.related.validation)
    before, after = (float(interpolated(tokens, each.model.head.interpolation).mean()) for each in (alone, careful))
    assert before + 0.1 < after


def test_a_run_that_writes_no_text_takes_no_memory() -> None:
    with pytest.raises(UsageError, match="--memory require runs that generate text"):
        Predictor(SimpleNamespace(folder="run", tag=None), Combination(memory=Path("team.memory")))
