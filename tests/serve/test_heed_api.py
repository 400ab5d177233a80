"""heed's own API: its answers are what the models give without a server."""

from __future__ import annotations

import json
import math
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from serving import REQUEST, SENTENCE, Live, Runs, serving
from toy import pairs, prepared, with_weights, write_lines, write_pairs

import heed
from heed.core.errors import UsageError
from heed.data.validation import read_valid
from heed.decoding.options import Constraints, SearchOptions
from heed.serve.engine.catalogue import Catalogue, ServedModel
from heed.serve.engine.languages import sample_pairs
from heed.tasks.predictor import Predictor


def events(body: bytes) -> list[tuple[str, Any]]:
    """The events of a stream."""
    parsed = []
    for event in body.decode().split("\n\n")[:-1]:
        name, data = event.split("\n")
        parsed.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return parsed


def test_models_are_described(live: Live) -> None:
    answer = live.get("/api/models").json
    first, _, last = answer["models"]
    assert (first["name"], first["task"], first["kind"]) == ("en-de", "translation", "transformer")
    assert first["source"] == {"code": "en", "name": "English", "direction": "ltr"}
    assert first["attends"]
    assert first["parameters"] > 1000
    assert first["directions"] == [{"source": first["source"], "target": first["target"], "tag": ""}]
    assert (last["name"], last["source"], last["attends"], last["directions"]) == ("lm", None, False, [])
    assert first["drawing"] is None
    assert last["drawing"] == {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "max_tokens": 64}
    assert answer["languages"][0]["targets"] == ["de", "fr"]
    assert answer["limits"]["beam_size"] == 16


def test_a_model_of_several_languages_lists_its_directions(tmp_path: Path) -> None:
    src, tgt = write_pairs(tmp_path, "more", 40, 7)
    of_french = {"src": str(src), "tgt": str(tgt), "tag": "2fr", "tgt_lang": "fr"}
    synthetic = {"src": str(src), "tgt": str(tgt), "tag": "bt"}
    run = prepared(
        tmp_path, data__src_lang="en", data__tgt_lang="de", data__tag="2de", data__parts=[of_french, synthetic]
    )
    with serving([heed.load(with_weights(run).folder)]) as server:
        answer = server.get("/api/models").json
    [card] = answer["models"]
    directions = [(each["source"]["code"], each["target"]["name"], each["tag"]) for each in card["directions"]]
    assert directions == [("en", "German", "2de"), ("en", "French", "2fr")]
    assert (card["source"]["code"], card["target"]["code"]) == ("en", "de")
    assert [(each["code"], each["targets"]) for each in answer["languages"]] == [
        ("en", ["de", "fr"]), ("de", []), ("fr", []),
    ]  # fmt: skip


def test_the_languages_of_a_multilingual_model_are_detected(tmp_path: Path) -> None:
    answer = pairs(200, 7)
    src = write_lines(tmp_path / "more.aa", [source for source, _ in answer])
    tgt = write_lines(tmp_path / "more.cc", [target[::-1] for _, target in answer])
    of_czech = {"src": str(src), "tgt": str(tgt), "tag": "2cs", "tgt_lang": "cs"}
    run = with_weights(
        prepared(tmp_path, data__src_lang="en", data__tgt_lang="de", data__tag="2de", data__parts=[of_czech])
    )
    texts = {"en": "ba ce di fo", "de": "kan ler mis not", "cs": "nak rel sim ton"}
    with_data = Catalogue.of_runs([heed.load(run.folder)]).detector()
    assert {language: with_data.detect(text)[0].language for language, text in texts.items()} == {
        "en": "en", "de": "de", "cs": "cs",
    }  # fmt: skip
    (run.folder / "data" / "train" / "src.tok").write_bytes(b"")
    assert [pair for _, pair in sample_pairs(run)] == read_valid(run.folder), "only the validation data is left"
    shutil.rmtree(run.folder / "data" / "train")
    without = Catalogue.of_runs([heed.load(run.folder)]).detector()
    assert [without.detect(texts[language])[0].language for language in ("en", "de")] == ["en", "de"]
    assert {each.language for each in without.detect("")} == {"en", "de", "cs"}


def test_a_language_without_a_direction_is_not_detected(tmp_path: Path) -> None:
    src, tgt = write_pairs(tmp_path, "more", 40, 7)
    of_czech = {"src": str(src), "tgt": str(tgt), "tag": "2cs", "tgt_lang": "cs"}
    run = prepared(tmp_path, data__src_lang="en", data__tgt_lang="de", data__parts=[of_czech], data__default_tag="2cs")
    detector = Catalogue.of_runs([heed.load(with_weights(run).folder)]).detector()
    assert {each.language for each in detector.detect("kan ler")} == {"en", "cs"}


def test_a_run_that_replaces_unknown_words_is_not_served(tmp_path: Path) -> None:
    words = {"tokenizer__kind": "word", "tokenizer__vocab_size": 9, "decoding__unknown": "replace"}
    loaded = heed.load(with_weights(prepared(tmp_path, **words)).folder)
    with pytest.raises(UsageError, match="a server does not replace unknown words"):
        Catalogue.of_runs([loaded])


def test_a_report_is_sent_unchanged(live: Live, runs: Runs) -> None:
    answer = live.get("/api/models/lm/report")
    assert answer.headers["content-type"].startswith("text/markdown")
    assert answer.body == (runs.language_model / "report.md").read_bytes()
    for name in ("nothing", "..", "%2e%2e%2flm"):
        assert live.get(f"/api/models/{name}/report").status == 404


def test_hypotheses_have_scores_and_tokens(live: Live, loaded: list[Predictor]) -> None:
    body = {"text": f" {SENTENCE}.\n fo gu", "nbest": 3, "beam_size": 6, "length_penalty": 1.0}
    answer = live.post("/api/translate", body).json
    options = loaded[0].run.recipe.decoding.model_copy(update={"nbest": 3, "beam_size": 6, "length_penalty": 1.0})
    expected = loaded[0].hypotheses([f"{SENTENCE}.", "fo gu"], options)
    assert answer["path"] == ["en-de"]
    assert answer["text"] == f" {expected[0].text}\n {expected[1].text}"
    for sentence, best in zip(answer["sentences"], expected, strict=True):
        assert body["text"][sentence["start"] : sentence["end"]] == sentence["source"]
        for shown, hypothesis in zip(sentence["hypotheses"], (best, *best.alternatives), strict=True):
            assert shown["text"] == hypothesis.text
            assert shown["score"] == pytest.approx(hypothesis.score, rel=1e-4)
            assert sum(token["log_prob"] for token in shown["tokens"]) == pytest.approx(shown["log_prob"], rel=1e-4)
            assert "".join(token["text"] for token in shown["tokens"]) == shown["text"]


def test_a_prefix_can_be_forced(live: Live, loaded: list[Predictor]) -> None:
    answer = live.post("/api/translate", {"text": SENTENCE, "prefix": "zil zil"}).json
    options = loaded[0].run.recipe.decoding
    [expected] = loaded[0].translator.translate([SENTENCE], options, [Constraints("zil zil")])
    assert answer["text"] == expected.text
    assert answer["text"].startswith("zil zil")
    several = live.post("/api/translate", {"text": "ba. Di.", "prefix": "zil"})
    assert several.json["error"]["message"] == "A prefix requires a text of one sentence; this text has 2."


def test_a_report_that_is_a_link_is_not_sent(runs: Runs, tmp_path: Path) -> None:
    (tmp_path / "outside.txt").write_text("secret", encoding="utf-8")
    folder = tmp_path / "lm"
    shutil.copytree(runs.language_model, folder)
    (folder / "report.md").unlink()
    with serving([heed.load(folder)]) as live:
        for target in (tmp_path / "outside.txt", folder / "recipe.toml"):
            (folder / "report.md").symlink_to(target)
            assert live.get("/api/models/lm/report").status == 404
            assert live.get("/api/models").json["models"][0]["report"] is False
            (folder / "report.md").unlink()
        os.mkfifo(folder / "report.md")
        assert live.get("/api/models/lm/report").status == 404


ASKED: dict[str, Any] = {
    "/translate": {**REQUEST, "alternatives": 2},
    "/api/translate": {"text": SENTENCE},
    "/api/inspect": {"text": SENTENCE},
    "/api/next": {"model": "lm", "prefix": "the ba"},
    "/api/score": {"model": "lm", "text": "the ba sees"},
    "/api/generate": {"model": "lm", "prompt": "the ", "seed": 1, "max_tokens": 9},
}


def answers(live: Live) -> dict[str, Any]:
    """What the server answers, without the reports, which are read when they are asked for."""
    models = live.get("/api/models").json
    for model in models["models"]:
        del model["report"]
    completion = live.post("/v1/completions", {"model": "lm", "prompt": "the ", "seed": 1}).json
    found = {path: live.post(path, body) for path, body in ASKED.items()}
    assert {path: answer.status for path, answer in found.items()} == dict.fromkeys(ASKED, 200)
    of_paths = {path: live.get(path).json for path in ("/languages", "/health", "/ready")}
    completed = completion["choices"], completion["system_fingerprint"]
    return {"models": models, "completed": completed, **of_paths, **{p: answer.json for p, answer in found.items()}}


def test_a_server_answers_as_before_when_its_folders_are_deleted_or_replaced(
    live: Live, runs: Runs, tmp_path: Path
) -> None:
    """Before the first request, so that nothing has been read for it already."""
    ours = [tmp_path / folder.name for folder in (runs.translator, runs.second, runs.language_model)]
    for folder, original in zip(ours, (runs.translator, runs.second, runs.language_model), strict=True):
        shutil.copytree(original, folder)
    with serving([heed.load(folder) for folder in ours]) as other:
        for folder in ours:
            shutil.rmtree(folder)
        expected = answers(live)
        assert answers(other) == expected
        assert other.get("/api/models/lm/report").status == 404
        for folder in ours:
            shutil.copytree(runs.translator if folder == ours[-1] else runs.language_model, folder)
            (folder / "report.md").write_text("of another run", encoding="utf-8")
        assert answers(other) == expected
        assert other.get("/api/models/lm/report").status == 404, "the report of another model is not this one's"
        assert not [each for each in other.get("/api/models").json["models"] if each["report"]]
        shutil.rmtree(ours[-1])
        shutil.copytree(runs.language_model, ours[-1])
        assert other.get("/api/models/lm/report").body == (runs.language_model / "report.md").read_bytes()


def test_partial_translations_are_streamed(live: Live) -> None:
    body = {"text": f"{SENTENCE}. Fo gu ha.", "beam_size": 1}
    whole = live.post("/api/translate", body).json
    *partials, last = events(live.post("/api/translate", {**body, "stream": True}).body)
    assert last == ("done", whole)
    assert {name for name, _ in partials} == {"partial"}
    for number, sentence in enumerate(whole["sentences"]):
        seen = [partial["text"] for _, partial in partials if partial["sentence"] == number]
        assert seen
        assert all(sentence["hypotheses"][0]["text"].startswith(text.rstrip("\ufffd")) for text in seen)
        assert {partial["source"] for _, partial in partials if partial["sentence"] == number} == {sentence["source"]}


def test_a_failure_in_a_stream_is_an_event(live: Live) -> None:
    body = {"text": SENTENCE, "stream": True, "prefix": "x " * 2000}
    assert events(live.post("/api/translate", body).body)[-1][0] == "error"


def test_a_translation_through_a_third_language_names_its_models(live: Live) -> None:
    answer = live.post("/api/translate", {"text": SENTENCE, "source": "en", "target": "fr"}).json
    assert answer["path"] == ["en-de", "de-fr"]
    [sentence] = answer["sentences"]
    assert sentence["start"] is None
    assert sentence["source"] == live.post("/api/translate", {"text": SENTENCE, "target": "de"}).json["text"]


def test_a_model_can_be_chosen_by_name(live: Live) -> None:
    answer = live.post("/api/translate", {"text": SENTENCE, "model": "de-fr"}).json
    assert (answer["path"], answer["source"], answer["target"]) == (["de-fr"], "de", "fr")
    assert live.post("/api/translate", {"text": SENTENCE, "model": "lm"}).status == 400
    assert live.post("/api/translate", {"text": SENTENCE, "model": "no"}).status == 404
    assert live.post("/api/translate", {"text": SENTENCE, "model": "de-fr", "target": "en"}).status == 404
    assert live.post("/api/translate", {"text": SENTENCE, "source": "zz"}).status == 404


def test_an_inspection_has_attention_tree_and_probabilities(live: Live) -> None:
    answer = live.post("/api/inspect", {"source": SENTENCE, "nbest": 2}).json
    assert answer["task"] == "translation"
    given = live.post("/api/inspect", {"source": SENTENCE, "target": "kan ler"}).json
    assert given["task"] == "translation"
    text = live.post("/api/inspect", {"text": "the ba", "model": "lm"}).json
    assert text["task"] == "language-model"


@pytest.mark.parametrize("body", [{"diversity": 2.0, "nbest": 3, "beam_size": 4}, {"sample": True, "temperature": 5.0}])
def test_an_inspection_shows_the_translation_of_the_translate_route(
    live: Live, body: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    options = SearchOptions(**body)
    monkeypatch.setattr(ServedModel, "options", property(lambda _: options))
    for source in (
        "ba ce di fo",
        "fo ba fo ba fo ba fo ba fo",
        "ce ce di di ba ba fo fo ce di",
        "di" + " ce ba di" * 6,
    ):
        best = live.post("/api/translate", {"text": source, "model": "en-de"}).json["text"]
        assert live.post("/api/inspect", {"source": source, "model": "en-de"}).json["alternatives"][0]["text"] == best


def test_next_tokens_are_a_distribution(live: Live) -> None:
    for body in ({"source": SENTENCE, "prefix": "kan"}, {"prefix": "the"}):
        tokens = live.post("/api/next", {**body, "size": 100}).json["tokens"]
        probabilities = [token["probability"] for token in tokens]
        assert probabilities == sorted(probabilities, reverse=True)
        assert 0.5 < sum(probabilities) <= 1 + 1e-6
        assert all(math.exp(token["log_prob"]) == pytest.approx(token["probability"]) for token in tokens)


def test_what_follows_a_space_can_be_appended_to_it(live: Live) -> None:
    for kind in ("tokens", "words"):
        after, spaced = (
            live.post("/api/next", {"source": SENTENCE, "prefix": prefix}).json[kind] for prefix in ("kan", "kan ")
        )
        texts = [(each["text"], each["probability"]) for each in after if each["end"] or each["text"].startswith(" ")]
        assert [(each["text"], each["probability"]) for each in spaced] == [
            (text.lstrip(), probability) for text, probability in texts if text != " "
        ]  # fmt: skip


def test_scores_equal_those_without_a_server(live: Live, loaded: list[Predictor]) -> None:
    answer = live.post("/api/score", {"source": SENTENCE, "text": "kan ler"}).json
    [expected] = loaded[0].score(["kan ler"], [SENTENCE])
    assert loaded[0].score("kan ler", SENTENCE) == [expected], "a string is one text"
    assert answer["log_prob"] == pytest.approx(expected.log_prob, rel=1e-4)
    assert "".join(token["text"] for token in answer["tokens"]) == "kan ler"
    text = live.post("/api/score", {"text": "the ba\nthe di sees"}).json
    lines = loaded[2].score(["the ba", "the di sees"])
    assert text["log_prob"] == pytest.approx(sum(line.log_prob for line in lines), rel=1e-4)
    assert len(text["tokens"]) == sum(len(line.ids) for line in lines)
    body = {"source": SENTENCE, "text": "kan ler", "source_language": "en", "target_language": "de"}
    assert live.post("/api/score", body).json == answer
    assert live.post("/api/score", {**body, "target_language": "fr"}).status == 404
    assert live.post("/api/score", {"text": "a", "model": "en-de"}).status == 400
    assert live.post("/api/score", {"text": "a", "source": "b", "model": "lm"}).status == 400


def test_a_continuation_equals_that_without_a_server(live: Live, loaded: list[Predictor]) -> None:
    body = {"prompt": "the", "samples": 2, "seed": 3, "max_tokens": 6, "top_k": 5}
    answer = live.post("/api/generate", body).json
    options = SearchOptions(sample=True, beam_size=1, top_k=5, max_tokens=6, seed=3)
    assert answer["continuations"][0]["text"] == loaded[2].generate("the", options)[0]
    assert answer["seed"] == 3
    *partials, last = events(live.post("/api/generate", {**body, "stream": True}).body)
    assert last == ("done", answer)
    for index in range(2):
        assert [p["text"] for _, p in partials if p["index"] == index][-1] == answer["continuations"][index]["text"]
    *pieces, last = events(live.post("/api/generate", {**body, "stream": True, "pieces": True}).body)
    assert {name for name, _ in pieces} == {"piece"}
    for index in range(2):
        whole = "".join(piece["text"] for _, piece in pieces if piece["index"] == index)
        assert whole == last[1]["continuations"][index]["text"]


def test_a_language_model_obeys_the_search_options_of_its_recipe(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    body = {"prompt": "the ba", "model": "lm", "temperature": 0, "max_tokens": 12}
    completions = (
        lambda: live.post("/api/generate", body).json["continuations"][0]["text"],
        lambda: live.post("/v1/completions", body).json["choices"][0]["text"],
    )
    word = completions[0]().split()[0]
    assert all(word in complete() for complete in completions)
    usual = SearchOptions(ban=(word,), nbest=3, diversity=1.0, coverage_penalty=0.5)
    monkeypatch.setattr(ServedModel, "options", property(lambda _: usual))
    assert not any(word in complete() for complete in completions)
    monkeypatch.setattr(ServedModel, "options", property(lambda _: SearchOptions(stop=(word,))))
    assert not any(word in complete() for complete in completions)


def test_a_language_model_samples_with_the_options_of_its_recipe(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:

    def texts(**body: Any) -> list[tuple[str, int]]:
        """The text of each API, and its number of tokens."""
        body = {"prompt": "the ba", "model": "lm", **body}
        [own] = live.post("/api/generate", body).json["continuations"]
        openai = live.post("/v1/completions", body).json
        return [(own["text"], len(own["tokens"])), (openai["choices"][0]["text"], openai["usage"]["completion_tokens"])]

    usual = SearchOptions(temperature=0.01, top_p=0.01, min_tokens=90, max_tokens=90, presence_penalty=0.5)
    monkeypatch.setattr(ServedModel, "options", property(lambda _: usual))
    likeliest = texts(temperature=0)
    assert texts(seed=1) == texts(seed=2) == likeliest
    assert all(length >= 90 for _, length in likeliest)
    assert texts(seed=1, temperature=2, top_p=1) != likeliest
    monkeypatch.setattr(ServedModel, "options", property(lambda _: SearchOptions(min_tokens=100)))
    assert all(length >= 100 for _, length in texts(seed=1))
    assert all(length <= 21 for _, length in texts(seed=1, max_tokens=20)), "a given max_tokens overrides min_tokens"
    monkeypatch.setattr(ServedModel, "options", property(lambda _: SearchOptions(min_tokens=2000, max_tokens=5000)))
    assert all(1024 <= length <= 1025 for _, length in texts(seed=1)), "at most the limit of the server"


def test_languages_are_detected(live: Live) -> None:
    answer = live.post("/api/detect", {"text": "kan ler mis"}).json["languages"]
    assert sum(each["confidence"] for each in answer) == pytest.approx(100, abs=1)
    assert answer[0]["language"] in ("de", "fr")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("translate", {}),
        ("translate", {"text": SENTENCE, "beam_size": 10**6}),
        ("translate", {"text": SENTENCE, "nbest": 11}),
        ("translate", {"text": SENTENCE, "unknown": 1}),
        ("translate", {"text": "<p>ba</p><p>ce</p>", "format": "html", "prefix": "kan"}),
        ("translate", {"text": "x" * 10_001}),
        ("translate", {"text": SENTENCE, "glossary": [{"source": "ba", "target": " "}]}),
        ("translate", {"text": SENTENCE, "glossary": [{"source": w, "target": "z" * 150} for w in ("ba", "ce", "di")]}),
        ("inspect", {}),
        ("inspect", {"source": " "}),
        ("inspect", {"source": "a", "text": "b"}),
        ("inspect", {"text": "a", "target": "b", "model": "lm"}),
        ("next", {"size": 10**9}),
        ("score", {"text": 5}),
        ("generate", {"max_tokens": 10**9}),
        ("generate", {"temperature": float("nan")}),
        ("detect", {"text": ""}),
    ],
)
def test_invalid_requests_are_refused(live: Live, path: str, body: dict[str, Any]) -> None:
    answer = live.post(f"/api/{path}", body)
    assert answer.status == 400
    assert answer.json["error"]["code"] == "bad_request"
    assert answer.json["error"]["message"]


def test_predictions_equal_those_without_a_server(live: Live, loaded: list[Predictor]) -> None:
    answer = live.post("/api/predict", {"inputs": [SENTENCE, "fo gu"], "model": "en-de"}).json["outputs"]
    assert [[each["text"] for each in ranked] for ranked in answer] == [
        [each.text for each in ranked] for ranked in loaded[0].predict([SENTENCE, "fo gu"])
    ]
    assert live.post("/api/predict", {"inputs": ["a"], "model": "lm"}).status == 400
    assert live.post("/api/predict", {"inputs": []}).status == 400
