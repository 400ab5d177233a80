"""A served tagger: entities with their places and probabilities."""

from __future__ import annotations

from pathlib import Path

from serving import serving
from toy import unchecked_shapes
from toy_tags import tiny_tagger


def test_a_tagger_answers_with_entities(tmp_path: Path) -> None:
    with unchecked_shapes():
        tagger = tiny_tagger(tmp_path)
    with serving([tagger]) as live:
        [card] = live.get("/api/models").json["models"]
        assert card["abilities"] == ["annotate", "embed", "predict", "read"] and card["task"] == "tagging"
        text = "Ann met the5 Oslo."
        [[best, second], [empty, *_]] = live.post("/api/predict", {"inputs": [text, " "], "top": 2}).json["outputs"]
        assert best["text"] == "I-PER O O I-LOC O" and best["tokens"] == ["Ann", "met", "the5", "Oslo", "."]
        assert best["probability"] > second["probability"]
        assert [text[each["start"] : each["end"]] for each in best["entities"]] == ["Ann", "Oslo"]
        assert all(0 < each["probability"] <= 1 for each in best["entities"])
        assert empty["text"] == "" and empty["entities"] == []
