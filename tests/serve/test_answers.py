"""A served model that answers questions: answers with their places and probabilities."""

from __future__ import annotations

import json
from pathlib import Path

from serving import serving
from toy import unchecked_shapes
from toy_questions import tiny_reader


def test_a_question_is_answered_with_its_place(tmp_path: Path) -> None:
    with unchecked_shapes():
        reader = tiny_reader(tmp_path)
    context = "😀 Cem lives in Oslo,\nhouse 7. Dan Lee went to La Paz, house 12."
    with serving([reader]) as live:
        [card] = live.get("/api/models").json["models"]
        assert card["abilities"] == ["extract", "predict", "read"] and card["task"] == "span"
        asked = json.dumps({"question": "Where is Dan Lee?", "context": context})
        body = {"inputs": [asked, "Where is Cem?\tCem lives in Oslo."], "top": 2}
        [[best, second], [other, *_]] = live.post("/api/predict", body).json["outputs"]
        assert best["text"] == "La Paz" == context[best["start"] : best["end"]]
        assert 1 >= best["probability"] > second["probability"] > 0
        assert (other["text"], other["start"], other["end"]) == ("Oslo", 13, 17)
        refused = live.post("/api/predict", {"inputs": ["no tab"]})
        assert refused.status == 400
        assert "expected a question, a tab and its context" in refused.json["error"]["message"]
