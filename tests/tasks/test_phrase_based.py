"""Phrase-based and rule-based translators as runs: trained, used, evaluated and served like any other."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from command import call, call_without_pytorch
from serving import serving
from toy import pairs, tiny_keys, translate, write_lines

import heed
from heed.cli.options import Compute
from heed.core.config import Document
from heed.core.errors import DataError, MissingInputError, UsageError
from heed.core.run_files import WEIGHTS
from heed.data.line_hashes import LineHashes
from heed.data.validation import read_valid
from heed.decoding.hypothesis import Hypothesis
from heed.decoding.options import SearchOptions
from heed.evaluation.outputs import search_of, translated_by_ensemble
from heed.evaluation.test_set import read_parallel
from heed.execute import execute
from heed.inference.rescoring import NUM_CANDIDATES, WEIGHT, WORD
from heed.nn.weight_file import read_weights, save_weights
from heed.planner import Planner, TrainOptions
from heed.run import Run
from heed.serve.limits import Limits
from heed.tasks import open_without_pytorch
from heed.tasks.prepare import LINES_SEEN

KEYS: dict[str, Any] = {
    "data.hold_out": 60, "model.kind": "phrase_based", "model.aligner": "ibm1", "model.max_phrase": 3,
    "model.lm_order": 3, "model.distortion_limit": -1, "model.tuning_rounds": 2, "model.tuning_width": 5,
    "decoding.beam_size": 20,
}  # fmt: skip


RULE_KEYS = ("model.kind", "model.aligner", "model.rules")
SAID = {"phrase_based": ("phrase-based", "language model"), "rule_based": ("rule-based", "dictionary")}
"""What the report and `heed info` say of a run of each kind."""


def keys(folder: Path, **changes: Any) -> dict[str, Any]:
    """The keys of a run on toy pairs."""
    kept = {key: value for key, value in tiny_keys(folder).items() if key.startswith(("data.", "task"))}
    return {**kept, "data.src_lang": "en", "data.tgt_lang": "de", **KEYS, **changes}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A phrase-based run; tests must not change it."""
    folder = tmp_path_factory.mktemp("phrases")
    options = TrainOptions(folder / "run", device="cpu", quiet=True)
    execute(Planner(Document(), keys(folder), options).plan(), options)
    return folder / "run"


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A rule-based run with a rule that turns sentences of up to five words around."""
    folder = tmp_path_factory.mktemp("rules")
    write_lines(
        folder / "turn.toml",
        ['name = "turn"', "[[rules]]", 'name = "turn"', 'match = ["OTHER", "OTHER?", "OTHER?", "OTHER?", "OTHER?"]',
         "order = [5, 4, 3, 2, 1]"],
    )  # fmt: skip
    wanted = {**keys(folder), "model.kind": "rule_based", "model.rules": str(folder / "turn.toml")}
    wanted = {key: value for key, value in wanted.items() if not key.startswith("model.") or key in RULE_KEYS}
    heed.train(wanted, folder / "run", quiet=True)
    return folder / "run"


@pytest.fixture(params=["run", "rules"], ids=["phrase_based", "rule_based"])
def either(request: pytest.FixtureRequest) -> Path:
    """A run of each kind; tests must not change it."""
    folder: Path = request.getfixturevalue(request.param)
    return folder


def test_it_learns_words_and_their_order(either: Path) -> None:
    translator = heed.load(either)
    sources = [src for src, _ in pairs(30, seed=5, longest=4)]
    right = [translator.translate(src) == translate(src) for src in sources]
    assert sum(right) >= 27


def test_equal_trainings_give_equal_files(run: Path, tmp_path: Path) -> None:
    heed.train(keys(run.parent), tmp_path / "again", quiet=True)
    first, again = (read_weights(folder / WEIGHTS) for folder in (run, tmp_path / "again"))
    assert first.keys() == again.keys()
    assert all((first[name] == again[name]).all() for name in first)


@pytest.mark.parametrize("kind", ["phrase_based", "rule_based"])
def test_a_turkish_translation_begins_with_a_turkish_capital(kind: str, tmp_path: Path) -> None:
    words = {"people": "insanlar", "work": "iş", "man": "adam", "light": "ışık"}
    lines = [" ".join(line) for line in product(words, repeat=4)]
    write_lines(tmp_path / "src", [line.capitalize() for line in lines])
    write_lines(tmp_path / "tgt", [" ".join(map(words.__getitem__, line.split())) for line in lines])
    write_lines(tmp_path / "rules.toml", ['name = "none"'])
    changes = {
        "data.src": str(tmp_path / "src"), "data.tgt": str(tmp_path / "tgt"), "data.tgt_lang": "tr",
        "data.hold_out": 1, "model.kind": kind, "model.rules": str(tmp_path / "rules.toml"), "model.tuning_rounds": 0,
    }  # fmt: skip
    wanted = {**keys(tmp_path), **changes}
    other = RULE_KEYS if kind == "rule_based" else KEYS
    wanted = {key: value for key, value in wanted.items() if not key.startswith("model.") or key in other}
    heed.train(wanted, tmp_path / "run", quiet=True)
    translator = heed.load(tmp_path / "run")
    assert translator.translate(["People work", "Light people"]) == ["İnsanlar iş", "Işık insanlar"]


def test_text_in_the_target_language_alone_goes_into_the_language_model(run: Path, tmp_path: Path) -> None:
    text = write_lines(tmp_path / "text", ["qes zil yon", "", "yon qes"] * 5)
    changes = {"model.tuning_rounds": 0, "data.parts": [{"tgt": str(text)}]}
    heed.train(keys(run.parent, **changes), tmp_path / "run", quiet=True)
    more = Run(tmp_path / "run")
    words = [" ".join(each.tokenizers["tgt"].vocabulary.pieces) for each in (more, Run(run))]
    assert ["yon" in each for each in words] == [True, False]
    assert more.corpus["num_by_part"] == [more.corpus["num_rows"], 10]
    assert more.corpus["dropped"]["part 1: empty"] == 5
    assert more.corpus["files"]["part_1.tgt"]["lines"] == 15
    assert "- `text`: text in the target language, 10 lines." in (more.folder / "report.md").read_text()
    seen = LineHashes.open(more.files, LINES_SEEN)
    assert seen is not None
    assert seen.found([("yon qes",), ("yon zil",)])["tgt"].tolist() == [True, False]


def test_text_in_the_target_language_alone_that_is_left_out_is_counted(run: Path, tmp_path: Path) -> None:
    references = [row[1] for row in read_valid(run)]
    text = write_lines(tmp_path / "text", [*references, "yon " * 2000])
    changes = {"model.tuning_rounds": 0, "data.parts": [{"tgt": str(text)}]}
    heed.train(keys(run.parent, **changes), tmp_path / "run", quiet=True)
    more = Run(tmp_path / "run")
    dropped = more.corpus["dropped"]
    assert dropped["part 1: in the validation data"] == len(references)
    assert dropped["part 1: too long"] == 1
    assert more.corpus["num_by_part"][1] == 0
    assert f"- left out: {len(references)} (part 1: in the validation data)" in (more.folder / "report.md").read_text()


def test_text_in_the_target_language_alone_has_no_language_of_a_source(tmp_path: Path) -> None:
    text = write_lines(tmp_path / "text", ["qes"])
    wanted = {**keys(tmp_path), "data.parts": [{"tgt": str(text), "tgt_lang": "de"}]}
    Planner(Document(), wanted, TrainOptions(tmp_path / "run", quiet=True)).plan()
    wanted["data.parts"][0]["src_lang"] = "en"
    with pytest.raises(UsageError, match="number 1, has no src, and so no language of it: leave out src_lang"):
        Planner(Document(), wanted, TrainOptions(tmp_path / "run", quiet=True)).plan()


def test_text_in_the_target_language_alone_is_refused_by_models_of_pairs(tmp_path: Path) -> None:
    text = write_lines(tmp_path / "text", ["qes"])
    for kind in ("transformer", "rule_based"):
        wanted = {**keys(tmp_path), "model.kind": kind, "data.parts": [{"tgt": str(text)}]}
        kept = {
            key: value
            for key, value in wanted.items()
            if not key.startswith(("model.", "decoding.")) or key == "model.kind"
        }
        with pytest.raises(UsageError, match=f'number 1, has no src, and model.kind = "{kind}" learns from pairs'):
            Planner(Document(), kept, TrainOptions(tmp_path / "run", quiet=True)).plan()


def test_text_that_cannot_be_read_is_refused_before_an_earlier_run_is_replaced(tmp_path: Path) -> None:
    for content, kind, message in (
        (None, MissingInputError, "does not exist"),
        (b"\n \n", DataError, r"number 1: .*text has no lines to learn from\. Leave it out"),
        (b"qes\n\xff\n", DataError, "UTF-8"),
    ):
        if content is not None:
            (tmp_path / "text").write_bytes(content)
        wanted = keys(tmp_path, **{"data.parts": [{"tgt": str(tmp_path / "text")}]})
        with pytest.raises(kind, match=message):
            Planner(Document(), wanted, TrainOptions(tmp_path / "run", quiet=True)).plan()


def test_unknown_words_are_copied(either: Path) -> None:
    assert sorted(heed.load(either).translate("ba Xylophon").split()) == ["Xylophon", "kan"]


def test_n_best_lists_have_different_texts_and_falling_scores(run: Path) -> None:
    [best] = heed.load(run).hypotheses(["ba ce di"], SearchOptions(beam_size=20, nbest=5))
    every = [best, *best.alternatives]
    assert len({each.text for each in every}) == len(every) == 5
    assert [each.score for each in every] == sorted((each.score for each in every), reverse=True)


@pytest.fixture(scope="module")
def transformer(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny Transformer for the same languages, with a vocabulary of its own; tests must not change it."""
    folder = tmp_path_factory.mktemp("transformer")
    heed.train({**tiny_keys(folder), "data.src_lang": "en", "data.tgt_lang": "de"}, folder / "run", quiet=True)
    return folder / "run"


def test_a_translator_with_another_vocabulary_scores_what_it_derives(
    run: Path, transformer: Path, tmp_path: Path
) -> None:
    sources, options = ["ba ce di", "fo gu", "ba ba ha ji"], SearchOptions(beam_size=40, nbest=NUM_CANDIDATES)
    alone, other = heed.load(run), heed.load(transformer)
    proposed = [[best, *best.alternatives] for best in alone.hypotheses(sources, options)]
    expected: list[list[tuple[str, float]]] = []
    for source, every in zip(sources, proposed, strict=True):
        texts = [each.text for each in every]
        added = [scores.log_prob for scores in other.score(texts, [source] * len(texts))]
        totals = [
            each.score + WEIGHT * (more + WORD * len(text.split()))
            for each, text, more in zip(every, texts, added, strict=True)
        ]
        expected.append(sorted(zip(texts, totals, strict=True), key=lambda pair: -pair[1])[:5])
    assert any(
        [text for text, _ in best] != [h.text for h in every[:5]]
        for best, every in zip(expected, proposed, strict=True)
    )
    together = heed.load(run, ensemble=transformer)
    for best, wanted in zip(
        together.hypotheses(sources, options.model_copy(update={"nbest": 5})), expected, strict=True
    ):
        found = [best, *best.alternatives]
        assert [each.text for each in found] == [text for text, _ in wanted]
        assert [each.score for each in found] == pytest.approx([score for _, score in wanted], abs=1e-3)
    done = call("translate", run, "--ensemble", transformer, stdin="".join(f"{source}\n" for source in sources))
    assert (done.code, done.lines) == (0, [best[0][0] for best in expected])
    src, ref = write_lines(tmp_path / "test.en", sources), write_lines(tmp_path / "test.de", [*map(translate, sources)])
    test = read_parallel(src, ref)
    system = translated_by_ensemble([Run(run), Run(transformer)], test, SearchOptions(beam_size=40), quiet=True)
    assert list(system.outputs) == [best[0][0] for best in expected]
    assert search_of(system) == {"search": {"beam_size": 40}}
    done = call("evaluate", run, transformer, "--ensemble", "--src", src, "--ref", ref)
    assert done.code == 0
    assert "ensemble of 2" in done.out
    shown = together.derivations(sources[0], 40, 2)
    assert [each.score for each in shown] == pytest.approx([score for _, score in expected[0][:2]], abs=1e-3)


def test_both_are_served_and_a_glossary_is_honoured(run: Path, transformer: Path, tmp_path: Path) -> None:
    together, alone = heed.load(run, ensemble=transformer), heed.load(run)
    lines = [src for src, _ in pairs(6, seed=5)]
    expected = [best.score for best in together.hypotheses(lines)]
    assert expected != [best.score for best in alone.hypotheses(lines)]
    with serving([together]) as server:
        answers = [server.post("/api/translate", {"text": line}).json for line in lines]
    best = [answer["sentences"][0]["hypotheses"][0] for answer in answers]
    assert [each["score"] for each in best] == pytest.approx(expected, abs=1e-3)
    glossary = write_lines(tmp_path / "terms.tsv", ["ce\tNeuwort"])
    words = ("--ensemble", transformer, "--glossary", glossary)
    assert "Neuwort" in call("translate", run, *words, stdin="ba ce di\n").out


def test_threads_are_measured_on_the_model_that_needs_them(
    run: Path, transformer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[str] = []

    def faster_threads(model: Any, available: int) -> int:
        measured.append(model.config.kind)
        return 1

    monkeypatch.setattr("heed.nn.device.faster_threads", faster_threads)
    threads = torch.get_num_threads()
    try:
        Compute(threads=1, device="cpu").load(run)
        assert measured == []  # the search of phrases computes with one
        Compute(threads=1, device="cpu").load(run, ensemble=[transformer])
        assert measured == []  # and CTranslate2 scores with one
        Compute(threads=1, device="cpu").load(run, ensemble=[transformer], engine="torch")
        assert measured == ["transformer"]
    finally:
        torch.set_num_threads(threads)


def test_a_scorer_with_tags_uses_the_one_of_the_languages(run: Path, tmp_path: Path) -> None:
    wanted = {
        **tiny_keys(tmp_path), "data.src_lang": "en", "data.tgt_lang": "fr", "data.tag": "2fr",
        "data.parts": [
            {"src": str(tmp_path / "train.aa"), "tgt": str(tmp_path / "train.bb"), "tag": "2de", "tgt_lang": "de"}
        ],
    }  # fmt: skip
    heed.train(wanted, tmp_path / "tagged", quiet=True)
    options = SearchOptions(beam_size=20)
    [best] = heed.load(run, ensemble=tmp_path / "tagged").hypotheses(["ba ce di"], options)
    alone = {each.text: each.score for each in _n_best(run, "ba ce di")}
    [added] = heed.load(tmp_path / "tagged", tag="2de").score([best.text], ["ba ce di"])
    words = len(best.text.split())
    assert best.score == pytest.approx(alone[best.text] + WEIGHT * (added.log_prob + WORD * words), abs=1e-3)


def _n_best(run: Path, line: str) -> list[Hypothesis]:
    """All that would be scored of a line."""
    [best] = heed.load(run).hypotheses([line], SearchOptions(beam_size=40, nbest=NUM_CANDIDATES))
    return [best, *best.alternatives]


def test_what_cannot_score_derivations_is_refused(run: Path, rules: Path, transformer: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="only the first run may search over whole derivations"):
        heed.load(run, ensemble=[run])
    with pytest.raises(UsageError, match="Name it first"):
        heed.load(transformer, ensemble=run)
    with pytest.raises(UsageError, match="proposes a single translation of each line"):
        heed.load(rules, ensemble=transformer)
    other = copied(transformer, tmp_path / "fr", 'tgt_lang = "de"', 'tgt_lang = "fr"')
    with pytest.raises(UsageError, match="it translates from en to fr, and the other from en to de"):
        heed.load(run, ensemble=other)
    tokenised = copied(transformer, tmp_path / "tokenised", "tokenised = false", "tokenised = true")
    with pytest.raises(UsageError, match="it was trained on tokenised text, and the other was not"):
        heed.load(run, ensemble=tokenised)
    with pytest.raises(UsageError, match="the other was trained on tokenised text, and it was not"):
        heed.load(copied(run, tmp_path / "run", "tokenised = false", "tokenised = true"), ensemble=transformer)
    lower = copied(run, tmp_path / "lower", "lowercase = false", "lowercase = true")
    with pytest.raises(UsageError, match="these are in lower case, and its own are not"):
        heed.load(lower, ensemble=transformer)


def test_a_scorer_must_know_every_word(run: Path, tmp_path: Path) -> None:
    words = {**tiny_keys(tmp_path), "data.src_lang": "en", "data.tgt_lang": "de", "tokenizer.kind": "word"}
    heed.train({**words, "training.max_steps": 1, "training.eval_every": 1}, tmp_path / "words", quiet=True)
    with pytest.raises(UsageError, match="a single token for all words that it does not know"):
        heed.load(run, ensemble=tmp_path / "words")


def copied(run: Path, folder: Path, setting: str, other: str) -> Path:
    """A copy of a run with another setting in its recipe."""
    shutil.copytree(run, folder)
    recipe = folder / "recipe.toml"
    assert setting in recipe.read_text(encoding="utf-8")
    recipe.write_text(recipe.read_text(encoding="utf-8").replace(setting, other), encoding="utf-8")
    return folder


def test_what_its_search_cannot_do_is_refused(run: Path) -> None:
    translator = heed.load(run)
    for changes in ({"sample": True}, {"nbest": 2, "diversity": 1.0}, {"no_repeat": 2}, {"ban": ("kan",)}):
        with pytest.raises(UsageError, match=f"decoding.{list(changes)[-1]}: this translator searches over whole"):
            translator.translate("ba", SearchOptions.model_validate(changes))
    with pytest.raises(UsageError, match="cannot be combined with --lm or --memory"):
        heed.load(run, lm=run)
    with pytest.raises(UsageError, match="CTranslate2 does not have models of kind phrase_based"):
        heed.load(run, engine="ctranslate2")
    with pytest.raises(UsageError, match="calibration needs a run that can score"):
        translator.calibrate(SearchOptions())
    with pytest.raises(UsageError, match="searches over whole derivations has no probabilities"):
        translator.require_probabilities()
    with pytest.raises(UsageError, match="score needs a run that can score"):
        translator.score(["kan"], ["ba"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data.tag": "2de"}, "does not read tags"),
        ({"tokenizer.joint": False}, "set tokenizer.joint = true"),
        ({"tokenizer.kind": "word"}, 'set tokenizer.kind to "open-word"'),
        ({"decoding.sample": True}, "decoding.sample"),
    ],
)
def test_recipes_that_it_cannot_follow_are_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Planner(Document(), keys(tmp_path, **changes), TrainOptions(tmp_path / "run", quiet=True)).plan()


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_rules_about_words_are_refused_with_a_tokenizer_of_pieces(tmp_path: Path, kind: str) -> None:
    wanted = {key: value for key, value in keys(tmp_path).items() if not key.startswith("model.")}
    wanted |= {"model.kind": "rule_based", "tokenizer.kind": kind}
    with pytest.raises(UsageError, match="rules about whole words: set tokenizer"):
        Planner(Document(), wanted, TrainOptions(tmp_path / "run", quiet=True)).plan()


def test_mistakes_in_a_rule_file_are_found_before_anything_is_prepared(run: Path, tmp_path: Path) -> None:
    rules = write_lines(
        tmp_path / "my.toml", ['name = "x"', "[[rules]]", 'name = "y"', 'match = ["OTHER"]', "order = [2]"]
    )
    wanted = {key: value for key, value in keys(run.parent).items() if not key.startswith("model.")}
    wanted |= {"model.kind": "rule_based", "model.rules": str(rules)}
    with pytest.raises(UsageError, match=r"my.toml:2: .* rule 'y': order names element 2"):
        Planner(Document(), wanted, TrainOptions(tmp_path / "run", quiet=True)).plan()


def test_the_commands_treat_it_as_any_translator(either: Path, tmp_path: Path) -> None:
    in_report, in_info = SAID[Run(either).recipe.model.kind]
    sources = [src for src, _ in pairs(6, seed=9)]
    src = write_lines(tmp_path / "test.aa", sources)
    ref = write_lines(tmp_path / "test.bb", list(map(translate, sources)))
    assert len(call("translate", either, stdin="\n".join(sources) + "\n").lines) == 6
    [evaluation] = heed.evaluate(either, src=src, ref=ref)
    assert evaluation.scores["bleu"].value > 40
    report = (either / "report.md").read_text(encoding="utf-8")
    assert in_report in report
    proposes = f"heed translate {either.name} --ensemble OTHER" in report
    assert proposes == (Run(either).recipe.model.kind == "phrase_based")
    assert "weights of update" not in report and "length_penalty" not in report  # it has neither
    assert in_info in call("info", either).out


def test_it_is_served(either: Path) -> None:
    with serving([heed.load(either)]) as server:
        [card] = server.get("/api/models").json["models"]
        assert card["kind"] == Run(either).recipe.model.kind
        assert not card["attends"]
        answer = server.post("/api/translate", {"text": "ba ce"}).json
        assert answer["text"] == heed.load(either).translate("ba ce") == "ler kan"
        for path, body in (
            ("next", {"source": "ba"}),
            ("score", {"source": "ba", "text": "kan"}),
            ("inspect", {"source": "ba", "target": "kan"}),
        ):
            assert server.post(f"/api/{path}", body).status == 400
        refused = server.post("/api/translate", {"text": "ba ce", "prefix": "kan"})
        assert refused.status == 400
        assert "a prefix: this translator" in refused.json["error"]["message"]


def test_the_server_shows_the_derivations_that_the_command_shows(run: Path) -> None:
    shown = json.loads(call("inspect", run, "--src", "ba ce Xylophon", "--json").out)
    with serving([heed.load(run)], limits=Limits(sentence_tokens=40)) as server:
        assert server.post("/api/inspect", {"source": "ba ce Xylophon"}).json == shown
        assert len(server.post("/api/inspect", {"source": "ba ce", "nbest": 2}).json["derivations"]) == 2
        refused = server.post("/api/inspect", {"source": "ba" + " ba" * 40})
        assert refused.status == 400
        assert "41 tokens; the limit is 40" in refused.json["error"]["message"]


def test_an_inspection_shows_what_became_what(run: Path, tmp_path: Path) -> None:
    shown = json.loads(call("inspect", run, "--src", "ba ce Xylophon", "--json").out)
    best = shown["derivations"][0]
    assert best["text"] == heed.load(run).translate("ba ce Xylophon")
    assert sorted(step["source"] for step in best["steps"] if step["source"]) == ["Xylophon", "ba", "ce"]
    [copied] = [step for step in best["steps"] if step["note"] == "copied"]
    assert copied["target"] == "Xylophon"
    total = sum(shown["weights"][name] * value for step in best["steps"] for name, value in step["features"].items())
    assert best["score"] == pytest.approx(total, abs=0.01)
    page = tmp_path / "page.html"
    assert call("inspect", run, "--src", "ba ce", "--out", page).code == 0
    assert "derivationView" in page.read_text(encoding="utf-8")
    assert "Leave it out" in call("inspect", run, "--src", "ba ce", "--tgt", "ler").err


def test_a_rule_based_run_keeps_its_rules(run: Path, tmp_path: Path) -> None:
    rules = tmp_path / "turn.toml"
    rules.write_text(
        'name = "turn"\n[classes]\nB = ["ba"]\n[[rules]]\nname = "turn"\nmatch = ["OTHER", "B"]\norder = [2, 1]\n'
    )
    wanted = {**keys(run.parent), "model.kind": "rule_based", "model.rules": str(rules)}
    wanted = {key: value for key, value in wanted.items() if not key.startswith("model.") or key in RULE_KEYS}
    translator = heed.train(wanted, tmp_path / "run", quiet=True)
    rules.unlink()
    assert translator.translate(["ce ba", "ba ce"]) == ["kan ler", "kan ler"]
    assert call_without_pytorch("translate", tmp_path / "run", stdin="ce ba\n", counts=True).out == "kan ler\n"
    [shown] = json.loads(call("inspect", tmp_path / "run", "--src", "ce ba", "--json").out)["derivations"]
    assert [step["note"] for step in shown["steps"]] == ["turn", "turn"]


def test_a_glossary_determines_the_translation_of_its_terms(either: Path, tmp_path: Path) -> None:
    glossary = write_lines(tmp_path / "terms.tsv", ["ce\tNeuwort", "ji ko\tzwei Worte"])
    out = call("translate", either, "--glossary", glossary, stdin="ba ce di\nji ko ba\nba\n").lines
    assert out == ["mis Neuwort kan", "kan zwei Worte", "kan"]
    with serving([heed.load(either)]) as server:
        answer = server.post(
            "/api/translate", {"text": "ba ce", "glossary": [{"source": "ce", "target": "Neuwort"}]}
        ).json
        assert answer["text"] == "Neuwort kan"


def test_tags_stay_at_their_words_with_a_glossary(either: Path, tmp_path: Path) -> None:
    page = write_lines(tmp_path / "page.html", ["<p>ba <b>ce</b></p>"])
    glossary = write_lines(tmp_path / "terms.tsv", ["ce\tNeuwort"])
    assert call("translate-file", either, page, "--glossary", glossary).out == "<p><b>Neuwort</b> kan</p>\n"
    with serving([heed.load(either)]) as server:
        terms = [{"source": "ce", "target": "Neuwort"}]
        body = {"text": "<p>ba <b>ce</b></p>", "format": "html", "glossary": terms}
        assert server.post("/api/translate", body).json["text"] == "<p><b>Neuwort</b> kan</p>"


@pytest.mark.parametrize("name", ["table", "table.gz"])
def test_its_table_goes_out_and_in(run: Path, tmp_path: Path, name: str) -> None:
    table, new = tmp_path / name, tmp_path / "new"
    assert "phrase pairs" in call("export", run, "--to", "moses", "--out", table).err
    assert call("import", table, "--into", run, "--out", new).code == 0
    assert heed.load(new).translate(["ba ce", "di"]) == heed.load(run).translate(["ba ce", "di"])


@pytest.mark.parametrize(("name", "packed"), [("table", bytes), ("table.gz", gzip.compress)])
def test_a_table_from_elsewhere_is_read_also_if_it_is_compressed(
    run: Path, tmp_path: Path, name: str, packed: Callable[[bytes], bytes]
) -> None:
    (tmp_path / name).write_bytes(packed(b"ba ||| sol ||| 1 1 1 1 ||| 0-0\n"))
    assert call("import", tmp_path / name, "--into", run, "--out", tmp_path / "new").code == 0
    assert sorted(heed.load(tmp_path / "new").translate("ba di").split()) == ["di", "sol"]  # `di` is unknown now


def test_a_damaged_table_is_refused(run: Path, tmp_path: Path) -> None:
    weights = read_weights(run / WEIGHTS)
    for name in ("table.tgt_nodes", "weights", "language.words"):
        damaged = {
            key: value + 10_000 if key == name and name != "weights" else value for key, value in weights.items()
        }
        if name == "weights":
            damaged[name] = damaged[name][:3]
        save_weights(tmp_path / WEIGHTS, damaged, {})
        with pytest.raises(DataError):
            Run(run).new_model().load_state_dict(read_weights(tmp_path / WEIGHTS))


def test_it_translates_without_importing_pytorch(either: Path, tmp_path: Path) -> None:
    glossary = write_lines(tmp_path / "terms.tsv", ["ce\tNeuwort"])
    out = call_without_pytorch(
        "translate", either, "--json", "--alignment", "--glossary", glossary, stdin="ba ce\n", counts=True
    ).out
    assert [json.loads(out)[key] for key in ("translation", "alignment")] == ["Neuwort kan", "0-1 1-0"]
    page = write_lines(tmp_path / "page.html", ["<p>ba <b>ce</b></p>"])
    done = call_without_pytorch("translate-file", either, page, "--glossary", glossary, counts=True)
    assert done.out == "<p><b>Neuwort</b> kan</p>\n"


def test_opened_without_pytorch_it_translates_as_when_it_is_opened_in_full(run: Path) -> None:
    opened, loaded = open_without_pytorch("translate", run, None, "float32", "auto", 1), heed.load(run)
    sources, options = [src for src, _ in pairs(20, seed=3)], SearchOptions(beam_size=10, nbest=3)
    assert opened.line_translator(True).translate(sources, options) == loaded.hypotheses(sources, options)
    assert opened.decoding == loaded.decoding
    assert opened.not_usable == loaded.not_usable
    assert opened.word_links([("ba ce", "ba ce"), ("ba", "kan")]) == [[(0, 0), (1, 1)], []]


@pytest.mark.parametrize("file", ["recipe.toml", "model.safetensors", "tokenizer.json"])
def test_a_changed_run_is_opened_in_full(run: Path, tmp_path: Path, file: str) -> None:
    copy = Path(shutil.copytree(run, tmp_path / "run"))
    assert open_without_pytorch("translate", copy, None, "float32", "auto", 1) is not None
    assert open_without_pytorch("translate", copy, None, "float32", "ctranslate2", 1) is None
    content = (copy / file).read_bytes()
    (copy / file).write_bytes(content[:-2] + bytes([content[-2] ^ 1]) + content[-1:])
    assert open_without_pytorch("translate", copy, None, "float32", "auto", 1) is None
    (copy / file).unlink()
    assert open_without_pytorch("translate", copy, None, "float32", "auto", 1) is None


def test_outputs_have_links_and_a_score_and_no_probabilities_of_tokens(run: Path) -> None:
    assert call("translate", run, "--alignment", stdin="ba ce\n").out == "0-1 1-0\tler kan\n"
    assert call("translate", run, "--alignment", stdin="ba Xylophon\n").out == "0-1 1-0\tXylophon kan\n"
    record = json.loads(call("translate", run, "--json", stdin="ba ce\n").out)
    assert record["tokens"] == []
    assert record["score"] == record["log_prob"] < 0
