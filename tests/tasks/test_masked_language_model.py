"""The task masked-language-model: training, predictions at masks, pseudo-log-likelihoods, resuming, ranks."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from command import call
from toy import WORDS, events, unchecked_shapes, without_shape_checks, write_lines
from trainings import content
from wrong_arguments import refuses_what_is_no_text, refuses_wrong_tops

import heed
from heed.data.schedule import START
from heed.nn.contract import TokenSource
from heed.run import Run
from heed.text.normalise import Normaliser

__all__ = ["without_shape_checks"]

TINY = (
    "--model.d_model=32", "--model.d_ff=64", "--model.num_heads=2", "--model.num_layers=1", "--model.dropout=0.0",
    "--training.tokens_per_batch=512", "--training.warmup_steps=10", "--training.lr=1e-2",
    "--training.precision=float32", "--tokenizer.kind=word", "--quiet",
)  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of lines whose last word follows from the second one."""
    folder = tmp_path_factory.mktemp("masked")
    lines = [f"the {a} sees {n} {WORDS[a]}" for a in WORDS for n in ("one", "two", "three", "four", "five")]
    text = write_lines(folder / "text", lines)
    with unchecked_shapes():
        result = call(
            "train", "--task", "masked-language-model", "--text", text, "--out", folder / "run", *TINY,
            "--training.max_steps=300", "--training.eval_every=150", "--training.save_every=150", "--data.hold_out=8",
            "--data.mask_share=0.25", "--training.average=none",
        )  # fmt: skip
    assert result.code == 0, result.err
    return folder / "run"


def test_it_learns_and_predicts_the_words_at_masks(run: Path) -> None:
    result = call("predict", run, "--probabilities", stdin="the ba sees one <mask>\nthe [MASK] sees two sol\n")
    assert result.code == 0, result.err
    answers = [line.split("\t") for line in result.lines]
    assert [word for word, _ in answers] == ["kan", "ko"]
    assert all(float(probability) > 0.5 for _, probability in answers)


def test_several_masks_have_the_product_of_their_probabilities(run: Path) -> None:
    result = call("predict", run, "--json", "--top", "3", stdin="the <mask> sees <mask> sol\n")
    [line] = map(json.loads, result.lines)
    texts, probabilities = zip(*((each["text"], each["probability"]) for each in line["predictions"]), strict=True)
    assert all(text.startswith("ko ") for text in texts)
    assert {text.split()[1] for text in texts} <= {"one", "two", "three", "four", "five"}
    assert sorted(probabilities, reverse=True) == [*probabilities]


def test_a_reading_has_the_likely_words_at_each_word_and_mask(run: Path) -> None:
    predictor = heed.load(run)
    line = "the ba sees one kan"
    reading = predictor.read(line)
    assert [word.text for word in reading.words] == ["the ", "ba ", "sees ", "one ", "kan ", ""]
    for place, word in enumerate(line.split()):
        masked = " ".join("<mask>" if at == place else other for at, other in enumerate(line.split()))
        [[*likely]] = predictor.predict([masked], top=12)
        assert predictor.predict(masked, top=12) == [likely], "a string is one text"
        [token] = reading.words[place].tokens
        assert [choice.text.strip() for choice in token.choices] == [each.text for each in likely]
        assert [choice.prob for choice in token.choices] == pytest.approx([each.probability for each in likely], 1e-3)
        rank = [each.text for each in likely].index(word)
        assert token.rank == rank + 1
        assert reading.words[place].prob == token.prob == pytest.approx(likely[rank].probability, 1e-3)
    mask = predictor.read("the ba sees one <mask>").words[4]
    assert (mask.kind, mask.prob, mask.tokens[0].rank) == ("tag", None, None)
    assert mask.tokens[0].choices[0].text.strip() == "kan"
    assert sorted(reading.trace.weights) == ["encoder.0.self"]
    assert [place.stop for place in reading.places] == [1, 2, 3, 4, 5, 6]


def test_its_heads_are_compared_with_trees(run: Path, tmp_path: Path) -> None:
    heads = {1: (2, "det"), 2: (3, "nsubj"), 3: (0, "root"), 4: (5, "nummod"), 5: (3, "obj")}
    sentences = []
    for subject, verb in (("ba", "one"), ("ce", "two"), ("di", "three")):
        words = ["the", subject, "sees", verb, "kan"]
        rows = [f"{id}\t{word}\t_\tX\t_\t_\t{heads[id][0]}\t{heads[id][1]}\t_\t_" for id, word in enumerate(words, 1)]
        sentences += [*rows, ""]
    result = call("evaluate", run, "--trees", write_lines(tmp_path / "t.conllu", sentences), "--json")
    assert result.code == 0, result.err
    [report] = json.loads(result.out)
    assert report["num_sentences"] == 3
    assert all(row["head"].startswith("encoder.0 head ") for row in report["rows"])
    [attention] = heed.load(run).self_attention(["the ba sees one kan"])
    assert attention.weights.shape == (2, 5, 5)


def test_vectors_are_the_features_of_the_encoder_whatever_the_batch(run: Path) -> None:
    predictor, texts = heed.load(run), ["the ba sees one kan", "the", ""]
    vectors = predictor.embed(texts)
    ids = torch.tensor([[*predictor.tokenizers["src"].encode(texts[:1])[0], 2]])
    with torch.no_grad():
        features = predictor.run.model.read(TokenSource(ids, torch.ones_like(ids, dtype=torch.bool)))[0, :-1]
    np.testing.assert_allclose(vectors[0], features.mean(0).numpy(), atol=1e-6)
    for text, vector in zip(texts, vectors, strict=True):
        np.testing.assert_allclose(predictor.embed(text), vector, atol=1e-6)
    assert not vectors[2].any()


def test_a_line_without_a_mask_is_refused(run: Path) -> None:
    result = call("predict", run, stdin="the ba sees one kan\n")
    assert result.code == 2
    assert "'the ba sees one kan' has no mask: write <mask> (or [MASK])" in result.err


def test_a_mask_in_capitals_is_found_though_text_is_put_into_lower_case(run: Path) -> None:
    predictor: Any = heed.load(run)
    data = predictor.data.model_copy(update={"normaliser": Normaliser(lowercase=True)})
    vars(predictor.run)["recipe"] = predictor.run.recipe.model_copy(update={"data": data})
    first, second = predictor.predict(["the [MASK] sees one kan", "the <mask> sees one kan"])
    assert first == second


def test_scores_are_pseudo_log_likelihoods(run: Path) -> None:
    """Σ_t log P(w_t | W without w_t), each from a reading of its own (Salazar et al. 2020, equation 1)."""
    line, opened = "the ba sees one kan", Run(run)
    ids = opened.tokenizers["src"].encode([line])[0]
    mask = opened.tokenizers["src"].vocabulary.tag_ids["mask"]
    total = 0.0
    model: torch.nn.Module = opened.model
    for place, id in enumerate(ids):
        row = torch.tensor([[*ids[:place], mask, *ids[place + 1 :], 2]])
        features = model.read(TokenSource(row, torch.ones_like(row, dtype=torch.bool)))  # type: ignore[operator]
        total += float(model.head.log_probs(features[0, place])[id])  # type: ignore[union-attr, operator]
    result = call("score", run, stdin=f"{line}\n{line} {line}\n")
    assert result.code == 0, result.err
    assert float(result.lines[0]) == pytest.approx(total, abs=2e-4)
    assert f"pseudo-perplexity per token {math.exp(-total / 5):.3f}"[:28] in call("score", run, stdin=line).err


def test_evaluate_names_pseudo_scores_and_compares_them_with_no_others(run: Path, tmp_path: Path) -> None:
    text = write_lines(tmp_path / "test", ["the ba sees one kan", "the ce sees two ler"])
    result = call("evaluate", run, "--text", text)
    assert result.code == 0, result.err
    assert "pseudo-perplexity per word" in result.out and "pseudo|line" in result.out
    bigram = call("train", "--text", run.parent / "text", "--model.kind=bigram", "--out", tmp_path / "lm", "--quiet")
    assert bigram.code == 0, bigram.err
    refused = call("evaluate", run, tmp_path / "lm", "--text", text)
    assert refused.code == 2 and "cannot be compared with the other scores" in refused.err


def test_info_and_report_describe_the_run(run: Path) -> None:
    result = call("info", run)
    assert "masked-language-model" in result.out and "masked_accuracy" in result.out
    report = (run / "report.md").read_text()
    assert "a Transformer encoder (pre-norm)" in report and "pseudo-perplexity" in report
    best = [event["masked_perplexity"] for event in events(run) if event["event"] == "validation"]
    assert best[-1] < 4


def test_a_resumed_training_equals_one_that_was_never_interrupted(run: Path, tmp_path: Path) -> None:
    text = run.parent / "text"

    def train(out: str, steps: int) -> None:
        keys = (f"--training.max_steps={steps}", "--training.eval_every=3", "--training.save_every=3")
        words = ("train", "--task", "masked-language-model", "--text", text, "--out", tmp_path / out, *keys)
        result = call(*words, *TINY, "--model.dropout=0.2", "--data.hold_out=8")
        assert result.code == 0, result.err

    train("whole", 6)
    train("parts", 3)
    assert call("train", "--resume", tmp_path / "parts", "--max-steps", "6", "--quiet").code == 0
    assert content(tmp_path / "parts") == content(tmp_path / "whole")


def test_two_ranks_read_the_batches_of_one(run: Path) -> None:
    task = Run(run).task()
    loader = task.loader(64, seed=1)
    alone = loader.batches_from(START)
    ranks = [task.loader(64, seed=1, rank=rank, world_size=2).batches_from(START) for rank in range(2)]
    for _ in range(2 * loader.num_batches(0)):
        for rank in ranks:
            ours, theirs = next(alone)[1], next(rank)[1]
            assert ours.source.ids.equal(theirs.source.ids) and ours.chosen.equal(theirs.chosen)
    for each in (alone, *ranks):
        each.close()


def test_positions_must_hold_a_line(run: Path, tmp_path: Path) -> None:
    keys = ("--data.max_tokens=30", "--model.positions=learned", "--model.max_len=31", *TINY)
    result = call("train", "--task", "masked-language-model", "--text", run.parent / "text", "--out", tmp_path, *keys)
    assert result.code == 2 and "data.max_tokens = 30 needs 32 positions" in result.err


def test_only_a_vocabulary_with_a_mask_can_be_kept(run: Path, tmp_path: Path) -> None:
    text = run.parent / "text"
    assert call("train", "--text", text, "--model.kind=bigram", "--out", tmp_path / "lm", "--quiet").code == 0
    words = ("train", "--task", "masked-language-model", "--text", text, "--out", tmp_path / "new", *TINY[:-2])
    result = call(*words, "--tokenizer-of", tmp_path / "lm", "--quiet")
    assert result.code == 2 and "vocabulary has no <mask>" in result.err


def test_the_number_of_words_is_checked(run: Path) -> None:
    refuses_wrong_tops(heed.load(run).predict, ["the <mask> sees"])


def test_what_is_no_text_is_not_read(run: Path) -> None:
    refuses_what_is_no_text(heed.load(run).read)
