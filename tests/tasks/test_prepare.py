"""Preparation of a corpus: held-out rows, filters, counts and ids."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toy import pairs, prepared, tiny_keys, write_lines, write_pairs

from heed.core.config import Document
from heed.core.errors import DataError, UsageError
from heed.data.store import TokenStore
from heed.data.validation import read_valid
from heed.execute import prepare_run
from heed.planner import Planner, TrainOptions
from heed.run import Run
from heed.tasks import prepare
from heed.tasks.prepare import chunks, distinct, is_held_out, limit_valid, short_enough, split_rows
from heed.tasks.translation.data import TranslationData
from heed.tasks.translation.prepare import filtered_pairs, prepare_translation
from heed.text.tokenizers import TokenizerConfig
from heed.text.tokenizers.byte_level import Byte


def stored_pairs(run: Run) -> list[tuple[str, ...]]:
    """The training pairs as text again."""
    store = TokenStore.open(run.folder / "data" / "train")
    sides = [
        run.tokenizers[side].decode([store.row(side, i).tolist() for i in range(len(store))]) for side in ("src", "tgt")
    ]
    return list(zip(*sides, strict=True))


def test_every_pair_is_either_held_out_or_trained_on(tmp_path: Path) -> None:
    run = prepared(tmp_path, data__hold_out=30)
    held, rest = read_valid(run.folder), stored_pairs(run)
    assert sorted(held + rest) == sorted(pairs())
    assert 15 <= len(held) <= 45


def test_no_side_of_a_held_out_pair_is_trained_on(tmp_path: Path) -> None:
    rows = pairs()
    src = write_lines(tmp_path / "train.aa", [src if third else f"{src} ba" for src, _ in rows for third in (0, 1)])
    write_lines(tmp_path / "train.bb", [tgt for _, tgt in rows for _ in (0, 1)])  # two variants of a source each
    run = prepared(tmp_path, data__hold_out=30, data__src=str(src), data__tgt=str(tmp_path / "train.bb"))
    held, rest = read_valid(run.folder), stored_pairs(run)
    assert held and rest
    assert not {text for row in held for text in row} & {text for row in rest for text in row}
    assert run.corpus["dropped"]["held out for validation"] > 0


def test_a_source_with_several_translations_is_on_one_side_of_the_split() -> None:
    rows = [(f"source {i % 100}", f"target {i}") for i in range(300)]
    held = list(split_rows(rows, 300, 60, seed=1, held=True))
    rest = list(split_rows(rows, 300, 60, seed=1, held=False))
    assert held
    assert rest
    assert not {src for src, _ in held} & {src for src, _ in rest}
    assert sorted(held + rest) == sorted(rows)


@given(st.text(max_size=20), st.integers(0, 2**32))
def test_held_out_texts_depend_on_text_and_seed_alone_and_grow_with_the_share(text: str, seed: int) -> None:
    held = [is_held_out(text, 1000, hold_out, seed) for hold_out in (0, 10, 100, 1000)]
    assert held == sorted(held)
    assert (held[0], held[-1]) == (False, True)


def test_another_seed_holds_out_other_rows() -> None:
    rows = [(str(i),) for i in range(1000)]
    one, other = (set(split_rows(rows, 1000, 100, seed, held=True)) for seed in (1, 2))
    assert len(one & other) < 40
    assert 60 < len(one) < 140


def test_holding_out_more_than_half_is_refused() -> None:
    with pytest.raises(DataError, match=r"data.hold_out = 1,000 would hold out more than half of the 300 rows"):
        split_rows([], 300, 1000, seed=1, held=True)


def test_validation_pairs_are_distinct_and_limited_and_others_are_reported(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = [("a", "1"), ("b", "2"), ("a", "3"), ("x", "y" * 5001), ("c", "4"), ("d", "5")]
    assert limit_valid(rows, 3, 5000, quiet=False) == [("a", "1"), ("b", "2"), ("c", "4")]
    assert capsys.readouterr().err == (
        "left out of validation: 1 (repeated source)\n"
        "left out of validation: 1 (longer than 5,000 characters (data.filter.max_characters))\n"
    )
    assert list(distinct(rows)) == [rows[0], rows[1], rows[3], rows[4], rows[5]]


def test_validation_pairs_that_are_all_too_long_are_not_called_missing() -> None:
    with pytest.raises(DataError, match=r"all 2 validation pairs are longer than 5,000 characters .* raise the limit"):
        limit_valid([("x" * 5001, "y")] * 2, 2000, 5000)


def test_validation_pairs_that_are_too_long_to_score_are_left_out_and_reported(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows, sides = [("a", "bcd"), ("abc", "d"), ("ab", "cd")], [Byte(), Byte()]
    assert short_enough(rows, sides, 2, quiet=False) == [("ab", "cd")]
    assert capsys.readouterr().err == "left out of validation: 2 (more than 2 tokens)\n"
    assert short_enough(rows, sides, 3) == rows
    assert short_enough([], sides, 3) == []
    with pytest.raises(DataError, match="all 3 validation lines have more than 1 tokens"):
        short_enough(rows, sides, 1)


def test_chunks_contain_all_items() -> None:
    assert list(chunks(range(7), 3)) == [[0, 1, 2], [3, 4, 5], [6]]
    assert list(itertools.islice(chunks(itertools.count(), 2), 1)) == [[0, 1]]


def test_filtered_pairs_are_counted_by_reason(tmp_path: Path) -> None:
    good = pairs(150)
    bad = [("", "kan"), ("ba ce", "   "), good[0], good[1], ("ba " * 20, "kan")]
    src = write_lines(tmp_path / "a", [src for src, _ in good + bad])
    tgt = write_lines(tmp_path / "b", [tgt for _, tgt in good + bad])
    dropped: Counter[str] = Counter()
    data = TranslationData(src=str(src), tgt=str(tgt))
    kept = list(filtered_pairs(data, data.train_files(), dropped))
    assert kept == good
    assert dropped == {"empty": 2, "duplicate": 2, "length ratio": 1}


def test_sentences_that_are_too_long_are_left_out_and_counted(tmp_path: Path) -> None:
    run = prepared(tmp_path, data__max_tokens=6)
    store = TokenStore.open(run.folder / "data" / "train")
    assert max(store.lengths("src").max(), store.lengths("tgt").max()) <= 6
    over_long = run.corpus["dropped"]["longer than 6 tokens (data.max_tokens)"]
    assert over_long > 0
    assert run.corpus["num_rows"] == len(store) == 300 - over_long - len(read_valid(run.folder))


def with_positions(folder: Path, number: int, **changes: Any) -> Run:
    """A prepared translator whose encoder has few positions."""
    keys = tiny_keys(folder, model__kind="encoder_decoder", **changes)
    del keys["model.encoder.hidden_size"]  # of a recurrent reader
    encoder = {"kind": "encoder", "d_model": 16, "num_layers": 1, "num_heads": 2, "d_ff": 16, "max_len": number}
    keys |= {f"model.encoder.{name}": value for name, value in encoder.items()}
    options = TrainOptions(folder / "run", device="cpu", quiet=True)
    return prepare_run(Planner(Document(), keys, options).plan(), options.out, quiet=True)


def test_validation_sources_that_the_encoder_has_no_positions_for_are_left_out(tmp_path: Path) -> None:
    """An encoder of 12 positions reads ten bytes, the tag and the end."""
    src = write_lines(tmp_path / "valid.aa", ["x" * 10, "x" * 11, "y"])
    tgt = write_lines(tmp_path / "valid.bb", ["ba", "be", "x" * 300])
    files = {"data__valid_src": str(src), "data__valid_tgt": str(tgt)}
    run = with_positions(tmp_path, 12, tokenizer__kind="byte", data__max_tokens=10, data__tag="2bb", **files)
    assert read_valid(run.folder) == [("x" * 10, "ba"), ("y", "x" * 300)]


def test_training_sources_that_the_encoder_has_no_positions_for_are_left_out(tmp_path: Path) -> None:
    """As in a candidate of `heed improve`, which adds a tag to a recipe that left no room for it."""
    src, tgt = write_lines(tmp_path / "src", ["x" * 10, "x" * 11]), write_lines(tmp_path / "tgt", ["ba", "be"])
    data = TranslationData(src=str(src), tgt=str(tgt), valid_src=str(src), valid_tgt=str(tgt), max_tokens=11, tag="bt")
    (tmp_path / "data").mkdir()
    corpus = prepare_translation(data, TokenizerConfig(kind="byte"), 1, tmp_path, 2, max_positions=12)
    assert (corpus.num_rows, corpus.num_valid) == (1, 1)
    assert corpus.dropped == {"longer than 10 tokens (data.max_tokens)": 1}


def test_sources_fit_the_positions_of_the_encoder_with_subword_dropout_too(tmp_path: Path) -> None:
    run = with_positions(tmp_path, 9, tokenizer__dropout=0.5, data__max_tokens=7, data__tag="2bb")
    loader = run.task().loader(10_000, seed=1)
    [batch] = [batch for _, batch in zip(range(loader.num_batches(0)), loader.batches_from(), strict=False)]
    assert batch[1].shape.src == 9


@pytest.mark.parametrize("held_out", [True, False])
def test_a_smaller_share_of_the_pairs_is_a_part_of_a_larger_one(tmp_path: Path, held_out: bool) -> None:
    valid = () if held_out else write_pairs(tmp_path, "valid", 20, seed=5)
    keys = {} if held_out else {"data__valid_src": str(valid[0]), "data__valid_tgt": str(valid[1])}
    quarter, half, whole = (prepared(tmp_path, f"{share}", data__share=share, **keys) for share in (0.25, 0.5, 1.0))
    stored = [set(stored_pairs(run)) for run in (quarter, half, whole)]
    assert stored[0] < stored[1] < stored[2]
    assert [len(pairs) / len(stored[2]) for pairs in stored] == [
        pytest.approx(share, abs=0.1) for share in (0.25, 0.5, 1)
    ]
    assert half.corpus["dropped"] == {"not in data.share": len(stored[2]) - len(stored[1])}
    assert read_valid(quarter.folder) == read_valid(whole.folder)


def test_a_side_without_tokens_is_left_out(tmp_path: Path) -> None:
    """Of characters seen once the character tokenizer makes <unk>; of control characters alone nothing is left."""
    found = [*pairs(200), ("\x07", "kan"), ("ba", "\x07")]
    src = write_lines(tmp_path / "train.aa", [src for src, _ in found])
    tgt = write_lines(tmp_path / "train.bb", [tgt for _, tgt in found])
    data = TranslationData(src=str(src), tgt=str(tgt), hold_out=5)
    data = data.model_copy(update={"filter": data.filter.model_copy(update={"drop_empty": False})})
    (tmp_path / "out" / "data").mkdir(parents=True)
    corpus = prepare_translation(data, TokenizerConfig(kind="byte"), 1, tmp_path / "out", len(found))
    assert corpus.dropped == {"no tokens": 2}


def test_joint_and_separate_tokenizers_are_in_the_run_folder(tmp_path: Path) -> None:
    joint = prepared(tmp_path, "joint")
    assert [path.name for path in joint.folder.glob("tokenizer*")] == ["tokenizer.json"]
    assert joint.tokenizers["src"] is joint.tokenizers["tgt"]
    apart = prepared(tmp_path, "apart", tokenizer__joint=False, model__tie="target")
    names = sorted(path.name for path in apart.folder.glob("tokenizer*"))
    assert names == ["tokenizer.src.json", "tokenizer.tgt.json"]
    src, tgt = (apart.tokenizers[side].vocabulary.pieces for side in ("src", "tgt"))
    assert "kan" in tgt
    assert "kan" not in src
    assert (apart.vocabularies.src_size, apart.vocabularies.tgt_size) == (len(src), len(tgt))
    apart.new_model()


def test_validation_files_are_used_whole_and_nothing_is_held_out(tmp_path: Path) -> None:
    valid = write_pairs(tmp_path, "valid", 20, seed=5)
    run = prepared(tmp_path, data__valid_src=str(valid[0]), data__valid_tgt=str(valid[1]))
    assert read_valid(run.folder) == pairs(20, seed=5)
    assert sorted(stored_pairs(run)) == sorted(pairs())


def test_a_run_records_its_files_and_the_dropped_rows(tmp_path: Path) -> None:
    run = prepared(tmp_path)
    src = run.corpus["files"]["src"]
    assert (src["name"], src["lines"], len(src["sha256"])) == ("train.aa", 300, 64)
    assert run.corpus["num_rows"] + run.corpus["num_valid"] == 300
    manifest = TokenStore.open(run.folder / "data" / "train").manifest
    assert manifest.fingerprint["vocabulary_src"] == run.tokenizers["src"].vocabulary.sha256
    assert (run.folder / "data" / "diagnosis.txt").read_text().startswith("train: 300 pairs")


def test_preparing_twice_gives_the_same_files(tmp_path: Path) -> None:
    one, two = prepared(tmp_path, "one"), prepared(tmp_path, "two")
    for name in ("tokenizer.json", "data/valid.jsonl", "data/train/src.tok", "data/train/tgt.tok", "recipe.toml"):
        assert (one.folder / name).read_bytes() == (two.folder / name).read_bytes(), name


def test_text_is_normalised_first(tmp_path: Path) -> None:
    src = write_lines(tmp_path / "train.aa", ["e\u0301te\x07 " + src for src, _ in pairs(120)])
    tgt = write_lines(tmp_path / "train.bb", ["\ufeff" + tgt for _, tgt in pairs(120)])
    run = prepared(tmp_path, data__src=str(src), data__tgt=str(tgt))
    assert all(src.startswith("\u00e9te ") for src, _ in stored_pairs(run))
    assert all(tgt[0].isalpha() for _, tgt in stored_pairs(run) + read_valid(run.folder))  # type: ignore[operator]


def test_an_empty_training_set_is_refused(tmp_path: Path) -> None:
    write_lines(tmp_path / "train.aa", ["ba ce"] * 300)
    write_lines(tmp_path / "train.bb", ["ler kan"] * 300)
    keys = tiny_keys(tmp_path, data__max_tokens=2)
    options = TrainOptions(tmp_path / "run", device="cpu", quiet=True)
    valid = write_pairs(tmp_path, "valid", 20, seed=5)
    keys |= {"data.valid_src": str(valid[0]), "data.valid_tgt": str(valid[1])}
    plan = Planner(Document(), keys, options).plan()
    with pytest.raises(DataError, match="no training data is left after filtering"):
        prepare_run(plan, options.out, quiet=True)


def test_a_missing_validation_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"give both data\.valid_src and data\.valid_tgt"):
        prepared(tmp_path, data__valid_src="valid.aa")


def test_data_paths_are_relative_to_their_folder() -> None:
    data = TranslationData(dir="there", src="a", tgt="/b")
    files = data.train_files()
    assert (str(files.src), str(files.tgt)) == ("there/a", "/b")
    assert TranslationData().resolve("a/b") == "a/b"
    with pytest.raises(UsageError, match="standard input cannot be read twice"):
        data.resolve("-")


@pytest.fixture
def learned_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """The lines that tokenizers are learned from, of rows (a0, b0), (a1, b1), ... when at most 10 are looked at."""
    monkeypatch.setattr(prepare, "MAX_SUBWORD_ROWS", 10)
    seen: list[str] = []
    monkeypatch.setattr(prepare, "train_tokenizer", lambda config, texts, tags: seen.extend(texts))
    monkeypatch.setattr(prepare, "save_in_run", lambda tokenizer, files, name: None)

    def learned(num_rows: int, sides: tuple[str, ...] = ("src", "tgt"), **config: Any) -> list[str]:
        seen.clear()
        rows = [tuple(f"{side}{i}" for side, _ in zip("ab", sides, strict=False)) for i in range(num_rows)]
        prepare.train_tokenizers(TokenizerConfig(**config), sides, lambda: iter(rows), num_rows, tmp_path, quiet=False)
        return list(seen)

    return learned


def test_subwords_of_a_small_corpus_are_learned_from_every_row(
    learned_from: Callable[..., list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert learned_from(10, ("tgt",)) == [f"a{i}" for i in range(10)]
    assert learned_from(10) == [f"{side}{i}" for i in range(10) for side in "ab"]
    assert capsys.readouterr().err == ""


def test_subwords_of_a_large_corpus_are_learned_from_a_sample(
    learned_from: Callable[..., list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    found = learned_from(25)
    rows = [int(text[1:]) for text in found[::2]]
    assert found == [f"{side}{i}" for i in rows for side in "ab"]
    assert [row // 3 for row in rows] == list(range(len(rows)))
    assert len(rows) <= 10
    assert len({row % 3 for row in rows}) > 1, "not every third: a corpus may have a pattern"
    assert found == learned_from(25)
    assert learned_from(25, joint=False) == [f"{side}{i}" for side in "ab" for i in rows]
    assert "learns its subwords from a sample of 10 of the 25 rows" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["word", "character", "char-bigram"])
def test_words_and_characters_are_counted_in_all_rows(learned_from: Callable[..., list[str]], kind: str) -> None:
    assert learned_from(25, ("tgt",), kind=kind) == [f"a{i}" for i in range(25)]


@given(st.integers(1, 300), st.integers(1, 60))
def test_the_size_of_a_sample_is_close_to_its_limit(num_rows: int, most: int) -> None:
    rows = [(str(i),) for i in range(num_rows)]
    found = list(prepare.sampled(rows, num_rows, most))
    assert num_rows // -(-num_rows // most) <= len(found) <= min(most, num_rows)
    assert found == [row for row in rows if row in set(found)]
