"""Parts of the training data: tags, repetitions, findings and records."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from toy import pairs, prepared, tiny_keys, trainer_of, write_lines, write_pairs

from heed.core.config import Document
from heed.core.errors import DataError, UsageError
from heed.data.line_hashes import LineHashes
from heed.data.store import TokenStore
from heed.data.validation import read_valid
from heed.decoding.options import SearchOptions
from heed.planner import Plan, Planner, TrainOptions
from heed.report.description import validated_on
from heed.report.page import write_report
from heed.run import Run
from heed.tasks.defaults import CorpusStats, Machine
from heed.tasks.prepare import LINES_SEEN
from heed.tasks.translation.data import PartConfig, TranslationData
from heed.tasks.translation.defaults import choose_translation
from heed.tasks.translation.task import TranslationTask
from heed.text.vocabulary import Vocabulary


def part(folder: Path, name: str, num_pairs: int, seed: int, **more: Any) -> dict[str, Any]:
    """A part of toy pairs."""
    src, tgt = write_pairs(folder, name, num_pairs, seed)
    return {"src": str(src), "tgt": str(tgt), **more}


def with_parts(folder: Path, **changes: Any) -> Run:
    """Main pairs without a tag, forty tagged `bt`, thirty tagged `2cc`, each three times."""
    parts = [part(folder, "more", 40, 7, tag="bt"), part(folder, "other", 30, 8, tag="2cc", repeat=3)]
    return prepared(folder, data__parts=parts, **changes)


def stored(run: Run) -> list[tuple[str, str, str]]:
    """(tag, source, target) of every row."""
    store, tags = TokenStore.open(run.folder / "data" / "train"), run.tokenizers["src"].vocabulary.tag_ids
    names = {id: name for name, id in tags.items()}
    found = []
    for i in range(len(store)):
        src, tgt = store.row("src", i).tolist(), store.row("tgt", i).tolist()
        assert not {*src[1:]} & {*names}
        texts = [run.tokenizers[side].decode([ids])[0] for side, ids in (("src", src), ("tgt", tgt))]
        found.append((names.get(src[0], ""), *texts))
    return found


def test_each_part_has_its_tag_and_its_repetitions(tmp_path: Path) -> None:
    run = with_parts(tmp_path)
    rows, held = stored(run), {*read_valid(run.folder)}
    main = [("", *pair) for pair in pairs() if pair not in held]
    more = [("bt", *pair) for pair in pairs(40, 7) if pair not in held]
    other = [("2cc", *pair) for pair in pairs(30, 8) if pair not in held]
    assert Counter(rows) == Counter(main) + Counter(more) + Counter(other * 3)
    assert run.tokenizers["src"].vocabulary.tags == ("bt", "2cc")


def test_held_out_sources_and_targets_occur_in_no_part(tmp_path: Path) -> None:
    first = prepared(tmp_path, "first")
    valid = read_valid(first.folder)
    src = write_lines(tmp_path / "leak.aa", [row[0] for row in valid] + ["pi pi pi"] * len(valid))
    tgt = write_lines(tmp_path / "leak.bb", ["zil zil"] * len(valid) + [row[1] for row in valid])
    run = prepared(tmp_path, "second", data__parts=[{"src": str(src), "tgt": str(tgt)}])
    assert read_valid(run.folder) == valid
    assert Counter(stored(run)) == Counter(stored(first))
    assert run.corpus["dropped"]["part 1: held out for validation"] == 2 * len(valid)


def test_the_files_words_and_lines_of_all_parts_are_recorded(tmp_path: Path) -> None:
    run = with_parts(tmp_path)
    assert {"src", "tgt", "part_1.src", "part_1.tgt", "part_2.src", "part_2.tgt"} == run.corpus["files"].keys()
    assert run.corpus["files"]["part_2.src"]["lines"] == 30
    known = LineHashes.open(run.files, LINES_SEEN)
    assert known is not None
    trained = [(src, tgt) for _, src, tgt in stored(run)]
    assert known.found(trained)["pair"].all()
    report = write_report(run).read_text(encoding="utf-8")
    assert "| `other.aa` | training, part 2 (`<2cc>`), each pair 3 times |" in report
    assert "part 1 (<bt>): 40 pairs" in report
    held, kept = {*read_valid(run.folder)}, Counter(tag for tag, _, _ in stored(run))
    assert run.corpus["num_by_part"] == [kept[""], kept["bt"], kept["2cc"] / 3]
    assert (
        f"  - `more.aa` and `more.bb`: tag `<bt>`, {sum(p not in held for p in pairs(40, 7))} pairs, each once"
        in report
    )
    assert validated_on(run) == "no tag"


def test_subword_dropout_does_not_affect_the_tag(tmp_path: Path) -> None:
    run = with_parts(tmp_path, tokenizer__dropout=0.5)
    tags, decode = run.tokenizers["src"].vocabulary.tag_ids, run.tokenizers["src"].decode
    rows, loader = stored(run), run.task().loader(256, seed=1)
    stream = loader.batches_from()
    seen: Counter[str] = Counter()
    for _ in range(loader.num_batches(0)):
        batch = next(stream)[1]
        assert batch.source is not None
        for row, ids in zip(batch.rows.tolist(), batch.source.ids.tolist(), strict=True):
            tag, src, _ = rows[row]
            assert ids[0] == tags[tag] if tag else ids[0] not in tags.values()
            assert decode([ids])[0] == src
            seen[tag] += 1
    stream.close()
    assert seen["bt"] > 30
    assert seen["2cc"] > 80


def test_validation_gets_the_tag_of_the_first_part_or_its_own(tmp_path: Path) -> None:
    parts = [part(tmp_path, "more", 40, 7, tag="2cc")]
    for name, own, expected in (("one", "", "2bb"), ("two", "2cc", "2cc")):
        run = prepared(tmp_path, name, data__tag="2bb", data__valid_tag=own, data__parts=parts)
        task = run.task()
        assert isinstance(task, TranslationTask)
        translator = task.translator(run.new_model())
        assert translator.before_source == [run.tokenizers["src"].vocabulary.tag_ids[expected]]


def test_the_tag_changes_the_translation_and_is_never_output(tmp_path: Path) -> None:
    run = with_parts(tmp_path)
    task = run.task()
    assert isinstance(task, TranslationTask)
    model = run.new_model()
    assert model.head is not None
    tags = list(run.tokenizers["tgt"].vocabulary.tag_ids.values())
    with torch.no_grad():
        model.head.bias[tags] = 50.0  # type: ignore[union-attr, index]
    translator = task.translator(model)
    found = translator.translate(["ba ce", "di fo"], run.recipe.decoding)
    assert all(set(hypothesis.ids).isdisjoint(tags) for hypothesis in found)
    translator.before_source = [run.tokenizers["src"].vocabulary.tag_ids["bt"]]
    sources = [row[0] for row in task.valid]
    plain = [s.log_prob for s in task.translator(model).score(sources, sources)]
    with_tag = [s.log_prob for s in translator.score(sources, sources)]
    assert not np.allclose(plain, with_tag)
    assert translator.score([""], [""])[0].ids == (Vocabulary.eos_id,)


def test_a_run_with_parts_trains(tmp_path: Path) -> None:
    run = with_parts(tmp_path, training__max_steps=3, training__eval_every=3, tokenizer__dropout=0.1)
    assert trainer_of(run).run().progress.step == 3


def test_the_tag_selects_the_target_language(tmp_path: Path) -> None:
    """Eight sentences by heart, twice: translated with one tag, as they are with the other."""
    few = pairs(8, seed=1, longest=3)
    src, tgt = (
        write_lines(tmp_path / name, lines) for name, lines in zip(("s", "t"), zip(*few, strict=True), strict=True)
    )
    keys = {
        "data__src": str(src), "data__tgt": str(tgt), "data__valid_src": str(src), "data__valid_tgt": str(tgt),
        "data__tag": "2bb", "data__parts": [{"src": str(src), "tgt": str(src), "tag": "2aa"}],
        "tokenizer__kind": "word", "tokenizer__min_frequency": 1, "model__d_model": 32, "model__d_ff": 64,
        "model__dropout": 0.0,
        "training__max_steps": 80, "training__eval_every": 80, "training__save_every": 80, "training__lr": 1e-2,
        "training__average": "none", "training__label_smoothing": 0.0,
    }  # fmt: skip
    run = prepared(tmp_path, **keys)
    trainer_of(run).run()
    sources = [src for src, _ in few]
    for tag, expected in (("2bb", [tgt for _, tgt in few]), ("2aa", sources)):
        found = Run(run.folder, tag=tag).predictor.translator.translate(
            sources, SearchOptions(beam_size=1, guard=False)
        )
        assert [hypothesis.text for hypothesis in found] == expected


def test_separate_vocabularies_have_tags_on_the_source_side_alone(tmp_path: Path) -> None:
    run = with_parts(tmp_path, tokenizer__joint=False, model__tie="target")
    assert run.tokenizers["src"].vocabulary.tags == ("bt", "2cc")
    assert run.tokenizers["tgt"].vocabulary.tags == ()
    assert {tag for tag, _, _ in stored(run)} == {"", "bt", "2cc"}


def test_findings_of_a_part_have_its_name(tmp_path: Path) -> None:
    src = write_lines(tmp_path / "bad.aa", ["ba ce"] * 300)
    tgt = write_lines(tmp_path / "bad.bb", [""] * 300)
    keys = tiny_keys(tmp_path, data__parts=[{"src": str(src), "tgt": str(tgt), "tag": "bt"}])
    plan = Planner(Document(), keys, TrainOptions(tmp_path / "run", device="cpu", quiet=True)).plan()
    [stop] = plan.diagnosis.stops
    assert stop.message.startswith("part 1 (<bt>): 300 of 300 pairs")
    assert plan.diagnosis.num_pairs == 300
    assert plan.diagnosis.num_in_parts == 300


ROWS = [
    (f"the dog is here and it is not {src}", f"der Hund ist hier und er ist nicht {tgt}") for src, tgt in pairs(300)
]  # fmt: skip
DIRECTION = " Only if it is meant as the other direction, set its src_lang and tgt_lang instead."


def plan_with(folder: Path, *parts: dict[str, Any]) -> Plan:
    """The plan of a training with these parts, from English to German."""
    keys = tiny_keys(folder, data__src_lang="en", data__tgt_lang="de", data__parts=[*parts])
    keys["data.src"], keys["data.tgt"] = two_files(folder, "main", ROWS[:150])
    return Planner(Document(), keys, TrainOptions(folder / "run", device="cpu", quiet=True)).plan()


def two_files(folder: Path, name: str, rows: list[tuple[str, str]]) -> list[str]:
    """Sources and targets, under names that tell no language."""
    src, tgt = zip(*rows, strict=True)
    return [str(write_lines(folder / f"{name}.{side}", [*its])) for side, its in (("x", src), ("y", tgt))]


def as_table(folder: Path, rows: list[tuple[str, str]]) -> str:
    return str(write_lines(folder / "part.tsv", ["\t".join(row) for row in rows]))


def as_jsonl(folder: Path, rows: list[tuple[str, str]]) -> str:
    return str(write_lines(folder / "part.jsonl", [json.dumps({"src": src, "tgt": tgt}) for src, tgt in rows]))


def as_memory(folder: Path, rows: list[tuple[str, str]]) -> str:
    unit = "<tu><tuv xml:lang='en'><seg>{}</seg></tuv><tuv xml:lang='de'><seg>{}</seg></tuv></tu>"
    text = f"<tmx><body>{''.join(unit.format(*row) for row in rows)}</body></tmx>"
    return str(write_lines(folder / "part.tmx", [text]))


@pytest.mark.parametrize(
    ("first", "save", "advice"),
    [
        ([], as_table, "the two columns"),
        ([("source", "target")], as_table, "the two columns"),
        ([], as_jsonl, "the two fields"),
        ([], as_memory, "correct xml:lang"),
    ],
)
def test_a_part_with_exchanged_sides_is_reported_with_advice_for_its_file(
    first: list[tuple[str, str]], save: Callable[..., str], advice: str, tmp_path: Path
) -> None:
    straight = ROWS[150:]
    crossed = [(tgt, src) for src, tgt in straight]
    part = {"pairs": save(tmp_path, first + crossed), "tag": "bt"}
    [stop] = plan_with(tmp_path, part).diagnosis.stops
    assert (stop.check, stop.message[:13]) == ("swapped", "part 1 (<bt>)")
    assert advice in stop.advice
    assert "--src-column" not in stop.advice
    others = plan_with(tmp_path, {**part, "src_lang": "de", "tgt_lang": "en"}).diagnosis
    assert stop.advice.endswith(DIRECTION) == (not others.stops)
    save(tmp_path, first + straight)
    assert not plan_with(tmp_path, part).diagnosis.stops


def test_a_part_of_two_exchanged_files_is_reported_with_advice_for_its_keys(tmp_path: Path) -> None:
    src, tgt = two_files(tmp_path, "more", ROWS[150:])
    [stop] = plan_with(tmp_path, {"src": tgt, "tgt": src}).diagnosis.stops
    assert stop.advice == f"Swap src and tgt of this part.{DIRECTION}"
    assert not plan_with(tmp_path, {"src": src, "tgt": tgt}).diagnosis.stops
    assert not plan_with(tmp_path, {"src": tgt, "tgt": src, "src_lang": "de", "tgt_lang": "en"}).diagnosis.stops


def test_a_part_that_cannot_be_read_completely_is_refused(tmp_path: Path) -> None:
    more = part(tmp_path, "more", 40, 7)
    write_lines(tmp_path / "more.bb", ["kan"] * 39)
    with pytest.raises(DataError, match="has 40 lines"):
        prepared(tmp_path, data__parts=[more])


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"data__tag": "a b"}, "'a b' is not a valid tag"),
        ({"data__tag": "s"}, "'s' is not a valid tag"),
        ({"data__valid_tag": "bt"}, r"data.valid_tag = 'bt' is not a tag of the training data \(it has none\)"),
        ({"data__tag": "2bb", "data__default_tag": "bt"}, r"data.default_tag = 'bt' is not a tag .*\(2bb\)"),
        ({"data__parts": [{"src": "x"}]}, "data.parts, number 1: needs src and tgt, or pairs, or tgt alone"),
        ({"data__parts": [{"src": "x", "tgt": "y", "pairs": "z"}]}, "data.parts, number 1"),
        ({"data__parts": [{}]}, "data.parts, number 1"),
        ({"data__parts": [{"src": "x", "tgt": "y", "repeat": 0}]}, "at least 1"),
        ({"data__parts": [{"src": "x", "tgt": "y", "times": 2}]}, "unknown key 'data.parts"),
    ],
)
def test_mistakes_in_tags_and_parts_are_reported(keys: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message):
        prepared(tmp_path, **keys)


def tagged(used: list[str], default: str = "") -> TranslationData:
    """The `[data]` table of parts with these tags."""
    first, *others = used
    parts = tuple(PartConfig(src="a", tgt="b", tag=tag) for tag in others)
    return TranslationData(src="x", tgt="y", tag=first, default_tag=default, parts=parts)


@pytest.mark.parametrize(
    ("used", "default", "requested", "found"),
    [
        ([""], "", None, ""),
        (["", "bt"], "", None, ""),
        (["", "bt"], "", "bt", "bt"),
        (["2de"], "", None, "2de"),
        (["2de", "2fr"], "2fr", None, "2fr"),
        (["2de", "2fr"], "2fr", "2de", "2de"),
        (["2de", "2fr"], "", "", ""),
    ],
)
def test_the_tag_to_use_follows_from_the_data_and_the_request(
    used: list[str], default: str, requested: str | None, found: str
) -> None:
    assert tagged(used, default).tag_to_use(("2de", "2fr", "bt"), requested) == found


def test_a_tag_is_required_if_every_source_had_one() -> None:
    with pytest.raises(
        UsageError, match=r'one with --tag \(2de, 2fr\), or from Python with heed.load\(RUN, tag="2de"\)'
    ):
        tagged(["2de", "2fr"]).tag_to_use(("2de", "2fr"), None)
    with pytest.raises(UsageError, match="--tag 2es: the tags of the run are 2de, 2fr"):
        tagged(["2de", "2fr"]).tag_to_use(("2de", "2fr"), "2es")
    with pytest.raises(UsageError, match="--tag bt: the run was trained without tags"):
        tagged([""]).tag_to_use((), "bt")


def test_the_languages_are_those_of_the_part_with_the_tag() -> None:
    parts = PartConfig(src="a", tgt="b", tag="2fr", tgt_lang="fr"), PartConfig(src="a", tgt="b", tag="bt")
    data = TranslationData(src="x", tgt="y", src_lang="en", tgt_lang="de", tag="2de", parts=parts)
    assert [data.languages(tag) for tag in ("", "2de", "2fr", "bt")] == [("en", "de")] * 2 + [
        ("en", "fr"),
        ("en", "de"),
    ]
    found = [(part.files.src_lang, part.files.tgt_lang) for part in data.train_parts()]
    assert found == [("en", "de"), ("en", "fr"), ("en", "de")]


def test_held_out_rows_depend_on_the_first_part_and_the_model_on_all_parts() -> None:
    machine = Machine("cpu", 2, 8 << 30, "bfloat16", 2.5)
    given = {"model.kind": "transformer"}
    alone, more = (choose_translation(CorpusStats(400, 60.0, extra), machine, given).values for extra in (0, 200_000))
    assert alone["data.hold_out"] == more["data.hold_out"] == 20
    assert (alone["tokenizer.vocab_size"], more["tokenizer.vocab_size"]) == (4000, 8000)


def test_a_language_model_has_no_tags(tmp_path: Path) -> None:
    options = TrainOptions(tmp_path / "run", device="cpu", quiet=True)
    keys = {"task": "language-model", "data.text": "x", "data.tag": "bt"}
    with pytest.raises(UsageError, match=r"data\.tag is not read for task 'language-model'"):
        Planner(Document(), keys, options).plan()
