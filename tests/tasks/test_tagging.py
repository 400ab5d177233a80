"""The task of tagging: encoding, training, probabilities by enumeration, and what recipes refuse."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from command import call
from toy import events, unchecked_shapes
from toy_tags import TINY, conll, rows, tiny_tagger, write_conll
from wrong_arguments import refuses_what_is_no_text, refuses_wrong_tops

import heed
from heed.core.errors import DataError, UsageError
from heed.core.run_files import RunFiles
from heed.data.batch import divided
from heed.data.store import TokenStore
from heed.data.validation import read_valid
from heed.nn.crf import Chain
from heed.nn.reader_heads import ReaderWithHead
from heed.nn.tag_head import TAG_HEADS
from heed.tasks.tagging import reading as reading_module
from heed.tasks.tagging import tagger as tagger_module
from heed.tasks.tagging.batch import collate
from heed.tasks.tagging.data import TagData
from heed.tasks.tagging.evaluation import compared_scheme, statistics_of
from heed.tasks.tagging.labels import TagLabels, collect_labels, legal_steps
from heed.tasks.tagging.prepare import prepare_tagging
from heed.tasks.tagging.tagger import SpanMasses, cut, cuts_within
from heed.tasks.words import WordEncoder, Words, case_of, normalised
from heed.text.readers.conll import TaggedSentence
from heed.text.tag_schemes import LETTERS, converted, spans
from heed.text.tokenizers import TokenizerConfig, train_tokenizer
from heed.text.vocabulary import UNK_ID


@pytest.fixture(scope="module")
def tagger(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A tiny tagger that has learned the toy names."""
    with unchecked_shapes():
        return tiny_tagger(tmp_path_factory.mktemp("tagger"))


def test_a_tagger_learns_names_it_saw_and_some_it_did_not(tagger: Any) -> None:
    best = [event for event in events(tagger.run.folder) if event["event"] == "validation" and event["best"]]
    assert best[-1]["entity_f1"] > 95
    [[answer]] = tagger.predict(["Ann met the5 Oslo."])
    assert answer.tokens == ("Ann", "met", "the5", "Oslo", ".")
    assert answer.tags == ["I-PER", "O", "O", "I-LOC", "O"], "in the scheme of the file, IOB1"
    assert [(e.text, e.type, e.start, e.end) for e in answer.entities] == [
        ("Ann", "PER", 0, 3),
        ("Oslo", "LOC", 13, 17),
    ]
    assert all(0.5 < entity.probability <= 1 for entity in answer.entities)


def test_lists_of_words_and_texts_are_tagged_alike(tagger: Any) -> None:
    [[text]], [[words]] = (
        tagger.predict(["Bob Ray left a1 Rome !"]),
        tagger.predict([["Bob", "Ray", "left", "a1", "Rome", "!"]]),
    )
    assert text == words
    assert tagger.predict([""]) == [[type(text)("", 1.0)]]
    assert tagger.predict("Bob Ray") == tagger.predict(["Bob Ray"]), "a string is one text"
    assert len(tagger.token_vectors("Bob Ray")) == 1


def test_words_of_plain_text_keep_their_marks_as_in_a_file(tagger: Any) -> None:
    words = ["Bọ\u0301lá", "lọ", "sí", "Ẹ\u0300kọ\u0301", "."]
    [[text]], [[from_file]] = tagger.predict(["Bọ\u0301lá lọ sí Ẹ\u0300kọ\u0301."]), tagger.predict([words])
    assert text.tokens == tuple(words) and text.tags == from_file.tags


def test_neighbours_do_not_change_a_tagging(tagger: Any) -> None:
    texts = ["Ann met a7 Oslo .", "x", "Dan Lee saw the3 New York !", "Ann met"]
    together = tagger.predict(texts, top=2)
    for text, answers in zip(texts, together, strict=True):
        for answer, alone in zip(answers, tagger.predict([text], top=2)[0], strict=True):
            assert answer.text == alone.text and answer.probability == pytest.approx(alone.probability, rel=1e-4)


def test_vectors_of_words_are_what_the_head_reads_whatever_the_batch(
    tagger: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ["Ann met the5 Oslo.", "", "Oslo!", "Bob Ray saw a1 Rome ."]
    together = tagger.token_vectors(texts)
    assert [list(each.tokens) for each in together[:3]] == [["Ann", "met", "the5", "Oslo", "."], [], ["Oslo", "!"]]
    for text, found in zip(texts, together, strict=True):
        np.testing.assert_allclose(tagger.token_vectors([text])[0].vectors, found.vectors, atol=1e-6)
    source = tagger.tagger.encoder.source([Words(together[0].tokens)])
    with torch.no_grad():
        features = source.of_words(tagger.run.model.read(source))[0]
    np.testing.assert_allclose(together[0].vectors, features.numpy(), atol=1e-6)
    np.testing.assert_allclose(tagger.embed(texts)[0], features.numpy().mean(0), atol=1e-6)
    assert not tagger.embed("").any()
    assert tagger.neighbours("Oslo", 3)
    monkeypatch.setattr(tagger_module, "MAX_WORDS", 2)  # a long sentence is read in parts
    assert tagger.token_vectors(texts)[0].vectors.shape == together[0].vectors.shape


def test_several_taggings_are_in_the_order_of_their_probabilities(tagger: Any) -> None:
    [answers] = tagger.predict(["Ann Rome"], top=10_000)
    shares = [answer.probability for answer in answers]
    assert shares == sorted(shares, reverse=True) and sum(shares) == pytest.approx(1)
    assert len({answer.text for answer in answers}) > 3


def test_a_lattice_has_the_sums_over_all_taggings(tagger: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading_module, "IMPROBABLE", 0.0)
    reading = tagger.read("Ann Rome!")
    lattice, labels = reading.lattice, tagger.labels
    assert lattice.tags == labels.labels
    [taggings] = tagger.tagger.taggings([Words(["Ann", "Rome", "!"])], 100_000)
    marginals, steps = np.zeros((3, len(lattice.tags))), np.zeros((2, len(lattice.tags), len(lattice.tags)))
    for tagging in taggings:
        ids = [labels.tag_ids[tag] for tag in labels.of_file(tagging.tags)]
        marginals[range(3), ids] += tagging.probability
        for at in range(2):
            steps[at, ids[at], ids[at + 1]] += tagging.probability
    np.testing.assert_allclose(lattice.marginals, marginals, atol=1e-3)
    for step, expected in zip(lattice.steps, steps, strict=True):
        found = np.zeros_like(expected)
        for before, tag, share in step:
            found[before, tag] = share
        np.testing.assert_allclose(found, expected, atol=1e-3)
    assert labels.for_file([lattice.tags[tag] for tag in lattice.best]) == reading.answers[0].tags
    assert "".join(word.text for word in reading.words) == "Ann Rome!"
    monkeypatch.undo()
    few = tagger.read("Ann met the5 Oslo!").lattice
    assert len(few.tags) < len(lattice.tags) and len(few.marginals[0]) == len(few.tags)
    assert all(sum(row) == pytest.approx(1, abs=0.02) for row in few.marginals)
    monkeypatch.setattr(tagger_module, "MAX_WORDS", 2)
    parts = tagger.read("Ann Rome!").lattice
    assert len(parts.marginals) == 3 and len(parts.steps) == 2 and parts.steps[1] == ()


@pytest.mark.parametrize("scheme", ["iob2", "iobes"])
def test_probabilities_of_spans_are_sums_over_all_taggings(scheme: Any) -> None:
    letters = "BI" if scheme == "iob2" else "BIES"
    labels = ("O", *(f"{letter}-{type}" for letter in letters for type in "XY"))
    mask = torch.ones(1, 3, dtype=torch.bool)
    drawn = [torch.randn(shape).double() for shape in ((1, 3, len(labels)), (len(labels), len(labels)), (len(labels),))]
    chain = Chain.of(*drawn, drawn[2], mask, legal_steps(labels, scheme))
    masses = SpanMasses(chain, TagLabels(labels=labels, scheme=scheme, written=scheme))
    sums: dict[Any, float] = {}
    tags_of: dict[Any, tuple[int, ...]] = {}
    marginals = np.zeros((3, len(labels)))
    for ids in itertools.product(range(len(labels)), repeat=3):
        share = float((chain.scores(torch.tensor([ids])) - chain.log_partition()).exp())
        marginals[range(3), list(ids)] += share
        for span in spans([labels[tag] for tag in ids]) if share else []:
            sums[span] = sums.get(span, 0.0) + share
            tags_of[span] = ids
    for span, total in sums.items():
        assert masses.probability_of(0, tags_of[span], span.start, span.end) == pytest.approx(total)
    best = chain.best()[0][0].tags
    assert masses.of_tags(0, best) == pytest.approx(marginals[range(3), best])


def test_a_long_sentence_is_tagged_in_parts(tagger: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tagger_module, "MAX_WORDS", 6)
    words = ["Ann", "met", "a7", "Oslo", ".", "!", "Dan", "Lee", "saw", "the3", "New", "York", "!", "Cem"]
    assert [len(part.tokens) for part in cut(Words(words), [6, 12])] == [6, 6, 2]
    [[answer]] = tagger.predict([words])
    parts = tagger.predict([words[:6], words[6:12], words[12:]])
    assert answer.tags == [tag for [part] in parts for tag in part.tags]
    assert answer.probability == pytest.approx(np.prod([part.probability for [part] in parts]))
    assert [entity.text for entity in answer.entities] == [e.text for [part] in parts for e in part.entities]


def test_parts_have_no_more_pieces_than_a_model_has_positions(tagger: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cuts_within([2, 3, 5, 9, 10], 4) == [2, 3, 4]
    assert cuts_within([9, 10, 11], 4) == [1], "a word of more pieces is a part of its own"
    assert cuts_within([1, 2, 3], 3) == []
    words = ["Ann", "met", "a7", "Oslo", ".", "Cem"]
    config = tagger.run.model.reader.config.model_copy(update={})
    object.__setattr__(config, "max_len", 4)
    monkeypatch.setattr(tagger.run.model.reader, "config", config)
    [[answer]] = tagger.predict([words])
    monkeypatch.undo()
    assert answer.tags == [tag for [part] in tagger.predict([words[:3], words[3:]]) for tag in part.tags]


def test_the_store_has_the_words_and_tags_of_the_training_sentences(tagger: Any) -> None:
    run = tagger.run
    labels, store = tagger.labels, TokenStore.open(run.folder / "data" / "train")
    assert len(store) + len(read_valid(run.folder)) == 200 and (labels.written, labels.scheme) == ("iob1", "iobes")
    words = run.tokenizers["src"].decode([store.row("src", 0).tolist()])[0].split()
    assert len(words) == len(store.row("tags", 0)) == len(store.row("cases", 0)) == len(store.row("marks", 0))
    characters = ["", "?", *labels.characters]
    spelled = "".join(characters[id] or " " for id in store.row("chars", 0)).split()
    assert [word.lower()[:1] for word in spelled if "?" not in word] == [
        word[:1] for word, form in zip(words, spelled, strict=True) if "?" not in form
    ]
    pieces = run.tokenizers["src"].vocabulary.pieces
    counts: dict[str, int] = {}
    for row in range(len(store)):
        for id in store.row("src", row).tolist():
            counts[pieces[id]] = counts.get(pieces[id], 0) + 1
    once = {piece for piece, count in counts.items() if count == 1}
    assert set(pieces[len(pieces) - labels.num_singletons :]) == once


def test_no_word_of_another_runs_vocabulary_counts_as_rare(tagger: Any, tmp_path: Path) -> None:
    once = [f"{a}{b}" for a, b in itertools.product("abcdefghij", repeat=2)]
    (tmp_path / "x.conll").write_text(
        conll([[*row, f"{word} NN O"] for row, word in zip(rows(num_sentences=100), once, strict=True)])
    )
    data = tagger.run.recipe.data.model_copy(update={"conll": str(tmp_path / "x.conll")})
    tokenizer = TokenizerConfig(kind="word", vocab_size=300, min_frequency=1)
    other = train_tokenizer(tokenizer, iter([" ".join(once)]))
    for folder, reuse, rare in (("own", None, True), ("other", {"src": other}, False)):
        (tmp_path / folder).mkdir()
        prepare_tagging(data, tokenizer, 1, tmp_path / folder, 100, reuse, quiet=True)
        assert bool(TagLabels.read(RunFiles(tmp_path / folder)).num_singletons) == rare


def test_equal_sentences_are_held_out_together(tmp_path: Path) -> None:
    once = conll(rows(num_sentences=60))
    (tmp_path / "x.conll").write_text(once + once + once)
    with unchecked_shapes():
        heed.train(
            TINY | {"data.conll": str(tmp_path / "x.conll"), "training.max_steps": 1}, tmp_path / "run", quiet=True
        )
    times = Counter(text for text, _ in read_valid(tmp_path / "run"))
    assert times and all(number % 3 == 0 for number in times.values())


@pytest.mark.parametrize("kind", ["bpe", "word"])
def test_words_of_several_pieces_start_at_their_first(kind: Any) -> None:
    lines = ["internationalisation is long", "a b"] * 5
    tokenizer = train_tokenizer(TokenizerConfig(kind=kind, vocab_size=270, min_frequency=1), lines)
    encoder = WordEncoder(TagData(), tokenizer, TagLabels(labels=("O",), scheme="plain", written="plain"))
    columns = encoder.columns([Words(line.split()) for line in lines[:2]])
    for line, ids, starts in zip(lines, columns["src"], columns["starts"], strict=False):
        ends = [*starts[1:], len(ids)]
        pieces = [tokenizer.decode([ids[a:b]])[0].strip() for a, b in zip(starts, ends, strict=True)]
        assert pieces == line.split()


@pytest.mark.parametrize("uncased", [False, True])
@pytest.mark.parametrize("dropped", ["\ufe0f", "\u00ad", "\u200d", "\ufffd"])
def test_a_word_of_which_the_tokenizer_leaves_nothing_is_an_unknown_piece(dropped: str, uncased: bool) -> None:
    options = TokenizerConfig(kind="wordpiece", vocab_size=60, min_frequency=1, uncased=uncased)
    tokenizer = train_tokenizer(options, ["cat ab", "cat b a"] * 5)
    encoder = WordEncoder(TagData(), tokenizer, TagLabels(labels=("O",), scheme="plain", written="plain"))
    words = ["cat", dropped, "abba", "cat", dropped]
    columns = encoder.columns([Words(words)])
    [ids], [starts] = columns["src"], columns["starts"]
    pieces = [ids[a:b] for a, b in zip(starts, [*starts[1:], len(ids)], strict=True)]
    alone = tokenizer.encode(["cat", "abba"])
    assert len(alone[1]) > 1, "as many pieces as words"
    assert pieces == [alone[0], [UNK_ID], alone[1], alone[0], [UNK_ID]]


def test_halves_of_a_batch_have_its_rows(tagger: Any) -> None:
    store = TokenStore.open(tagger.run.folder / "data" / "train")
    ids = {side: [store.row(side, row) for row in range(5)] for side in store.sides}
    batch = collate(ids, range(5))
    first, second = divided(batch, 2)
    assert (len(first.rows), len(second.rows)) == (2, 3)
    assert first.num_targets + second.num_targets == batch.num_targets
    assert second.source.key(0) == batch.source.key(2) and batch.num_real <= batch.num_positions


@pytest.mark.parametrize(
    ("word", "case"),
    [("dog", 1), ("NASA", 2), ("Dog", 3), ("I", 3), ("McX", 4), ("12", 5), ("1-2", 6), (",", 7), ("犬", 1)],
)
def test_the_pattern_of_letter_case(word: str, case: int) -> None:
    assert case_of(word) == case


def test_odd_tokens_are_still_one_word() -> None:
    assert normalised("10 000", TagData()) == "10_000"
    assert normalised("\u00a0", TagData()) == normalised("\x07", TagData()) == "\ufffd"


def test_a_softmax_and_other_models_train_too(tmp_path: Path) -> None:
    with unchecked_shapes():
        run = tiny_tagger(
            tmp_path, head__kind="softmax", model__kind="bigru", model__characters="lstm", training__max_steps=20,
            training__label_smoothing=0.1, data__mark_column=2, model__mark_size=4,
        )  # fmt: skip
    assert run.run.recipe.model.kind == "bigru" and run.labels.marks == (".", "CD", "NNP", "VB")
    assert len(run.predict(["Ann met"])[0][0].tags) == 2


def test_plain_tags_are_scored_by_accuracy(tmp_path: Path) -> None:
    with unchecked_shapes():
        run = tiny_tagger(tmp_path, data__tag_column=2, training__max_steps=60)
    last = [event for event in events(run.run.folder) if event["event"] == "validation"][-1]
    assert last["tag_accuracy"] > 90 and "entity_f1" not in last
    assert run.run.recipe.training.stop_metric == "tag_accuracy" and run.run.recipe.head.kind == "softmax"
    assert run.predict(["Ann met"])[0][0].entities == ()


@pytest.mark.parametrize("scheme", ["iob1", "iob2", "bilou", "bmes"])
def test_tags_are_compared_in_the_scheme_of_the_references(scheme: Any) -> None:
    trained = [["I-PER", "I-PER", "B-PER", "O"], ["O", "I-LOC", "O", "I-LOC"], ["I-LOC", "I-LOC", "I-LOC", "O"]]
    outputs = [" ".join(tags) for tags in trained]
    references = [" ".join(converted(tags, scheme)) for tags in trained]
    references[1] = references[1].replace("LOC", "PER", 1)
    assert compared_scheme(references, "iob1") == scheme
    scores = {name: each.score(0).value for name, each in statistics_of(outputs, references, "iob1").items()}
    assert scores["tag_accuracy"] == pytest.approx(100 * 11 / 12)
    assert scores["entity_f1"] == pytest.approx(80)


def test_tags_without_spans_are_compared_as_they_are() -> None:
    assert compared_scheme(["O O"], "iob2") == "iob2" and compared_scheme(["B-X I-X"], "plain") == "plain"


def test_a_resumed_training_is_the_same(tmp_path: Path) -> None:
    with unchecked_shapes():
        keys = TINY | {
            "data.conll": str(write_conll(tmp_path)),
            "training.schedule": "constant",
            "training.max_steps": 60,
        }
        heed.train(keys, tmp_path / "whole", device="cpu", quiet=True)
        heed.train(keys | {"training.max_steps": 45}, tmp_path / "halves", device="cpu", quiet=True)
        resumed = call("train", "--resume", tmp_path / "halves", "--max-steps", 60)
    assert resumed.code == 0, resumed.err
    assert (tmp_path / "whole/model.safetensors").read_bytes() == (tmp_path / "halves/model.safetensors").read_bytes()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"training.label_smoothing": 0.1}, "a CRF has no label smoothing"),
        ({"training.r_drop": 1.0}, "training.r_drop requires"),
        ({"model.kind": "rnn", "model.character_features": None}, "got 'rnn'. 'rnn' is for task 'language-model'"),
        ({"data.conll": ""}, "data.conll is missing: give --conll F"),
    ],
)
def test_contradictory_settings_are_refused(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    given = TINY | {"data.conll": str(write_conll(tmp_path))} | changes
    keys = {key: value for key, value in given.items() if value is not None}
    with pytest.raises(UsageError, match=message):
        heed.train(keys, tmp_path / "run", device="cpu", quiet=True)


def test_an_average_of_checkpoints_tags(tagger: Any, tmp_path: Path) -> None:
    result = call("average", tagger.run.folder, "--last", "1", "--out", tmp_path / "run")
    assert result.code == 0, result.err
    assert heed.load(tmp_path / "run").predict(["Ann saw Rome ."])


@pytest.mark.parametrize("scheme", ["iobes", "bilou", "bmes", "iob2"])
def test_a_sentence_of_one_word_has_a_tag_though_training_had_longer_spans_alone(scheme: Any) -> None:
    sentences = [TaggedSentence(("New", "York", "Los", "Angeles"), ("B-X", "I-X", "B-Y", "I-Y"), ())]
    labels = collect_labels(sentences, "iob2", scheme)
    k = len(labels.labels)
    scores = (torch.zeros(shape) for shape in ((1, 1, k), (k, k), k, k))
    chain = Chain.of(*scores, torch.tensor([[True]]), labels.legal())
    found = {labels.labels[path.tags[0]] for path in chain.best(100)[0]}
    only = LETTERS[scheme][-1]
    assert found == {f"{only}-X", f"{only}-Y"}


def test_a_damaged_list_of_labels_is_refused(tagger: Any, tmp_path: Path) -> None:
    (tmp_path / "labels.json").write_text('{"labels": 3}')
    with pytest.raises(DataError, match=r"labels.json is damaged: .*Restore the run's original file"):
        TagLabels.read(RunFiles(tmp_path))
    assert "labels.json" in (tagger.run.folder / "manifest.json").read_text()


def test_a_reader_with_a_head_names_its_weights(tagger: Any) -> None:
    assert isinstance(tagger.run.model, ReaderWithHead) and type(tagger.run.model.head) is TAG_HEADS["crf"]
    assert {name.split(".")[0] for name, _ in tagger.run.model.named_parameters()} == {"reader", "head"}


def test_the_number_of_taggings_is_checked(tagger: Any) -> None:
    refuses_wrong_tops(tagger.predict, ["Bob Ray"])


def test_what_is_no_text_is_not_tagged(tagger: Any) -> None:
    refuses_what_is_no_text(tagger.read)
    for wrong, kind in ((["a", None], "NoneType"), ([["ba", None]], "NoneType"), (b"ba", "bytes"), ([[b"a"]], "bytes")):
        with pytest.raises(UsageError, match=f"expected texts or lists of words, got {kind} in the list"):
            tagger.predict(wrong)
    with pytest.raises(UsageError, match="expected a text or a list of texts, got NoneType in the list"):
        tagger.token_vectors(["a", None])
    assert tagger.predict([iter(["Bob", "Ray"])]) == tagger.predict([("Bob", "Ray")])
