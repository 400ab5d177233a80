"""What `heed inspect` shows of answers: the best ones, where they begin and end, and attention between both texts."""

from __future__ import annotations

import numpy as np
import pytest
from toy import unchecked_shapes
from toy_questions import tiny_reader
from wrong_arguments import refuses_what_is_no_text, refuses_wrong_tops

from heed.core.errors import UsageError
from heed.inspect import inspect_reader
from heed.tasks.predictor import Predictor
from heed.tasks.span.answering import Spans
from heed.text.readers.questions import Question

CONTEXT = "Ann lives in New York, house 7. Cem went to Oslo, house 3."


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Predictor:
    """A tiny reader with attention between the texts."""
    with unchecked_shapes():
        flow = {"model.kind": "attention_flow", "head.no_answer": True, "training.max_steps": 20}
        made: Predictor = tiny_reader(tmp_path_factory.mktemp("flow"), unanswered=0.3, **flow)
    return made


def test_marginals_are_sums_over_all_spans() -> None:
    dice = np.random.default_rng(1)
    spans = Spans(dice.normal(size=(5, 3)), no_answer=True)
    spans.scores[[4, 4, 3], [1, 2, 2]] = -np.inf  # beyond the context
    starts, ends, none = spans.marginals()
    total = np.exp(spans.scores).sum() + 1
    for word in range(5):
        assert starts[word] == pytest.approx(np.exp(spans.scores[word]).sum() / total)
        ending = [spans.scores[word - further, further] for further in range(3) if further <= word]
        assert ends[word] == pytest.approx(np.exp(ending).sum() / total)
    assert none == pytest.approx(1 / total) and starts.sum() + none == pytest.approx(1)
    assert Spans(spans.scores, no_answer=False).marginals()[2] == 0
    assert Spans.empty(0, 3, False).marginals()[2] == 1


def test_a_reading_has_answers_their_ends_and_attention(reader: Predictor) -> None:
    inspection = inspect_reader(reader, f"Where is Ann?\t{CONTEXT}")
    words = [word.text for word in inspection.target]
    spans = inspection.spans
    assert spans is not None and "".join(words) == f"Where is Ann?{CONTEXT}"
    context = words[spans.first : -1]
    assert "".join(context) == CONTEXT and len(context) == len(spans.starts) == len(spans.ends)
    assert sum(spans.starts) + spans.none == pytest.approx(1, abs=0.01)
    assert sum(spans.ends) == pytest.approx(sum(spans.starts), abs=0.01)
    assert [answer.text for answer in inspection.answers] == [
        answer.text for answer in reader.predict([f"Where is Ann?\t{CONTEXT}"], 5)[0]
    ]
    [attention] = inspection.attention
    assert [layer.name for layer in attention.layers] == ["alignment.self", "flow.self"]
    for layer in attention.layers:
        [weights] = layer.heads
        for row, line in enumerate(weights):
            other = line[spans.first :] if row < spans.first else line[: spans.first]
            assert sum(other) == pytest.approx(1, abs=0.02) == sum(line)
    assert inspection.to_json()["answers"][0]["start"] == inspection.answers[0].start


def test_a_context_in_several_windows_has_no_attention(reader: Predictor) -> None:
    long = inspect_reader(reader, "Where is Ann?\t" + " ".join([CONTEXT] * 40))
    assert not long.attention and long.spans is not None and len(long.spans.starts) == 40 * 17


def test_a_text_without_a_question_is_refused(reader: Predictor) -> None:
    with pytest.raises(UsageError, match="expected a question, a tab and its context"):
        inspect_reader(reader, "Where is Ann?")


def test_the_number_of_answers_is_checked(reader: Predictor) -> None:
    refuses_wrong_tops(reader.predict, [f"Where is Ann?\t{CONTEXT}"])
    refuses_wrong_tops(reader.extract, [Question(1, "Where is Ann?", CONTEXT)])


def test_what_is_no_question_is_not_answered(reader: Predictor) -> None:
    refuses_what_is_no_text(reader.read)
    for wrong, kind in (("Where is Ann?", "str"), ([None], "NoneType")):
        with pytest.raises(UsageError, match=f"extract takes .*Question objects, got {kind}: predict takes lines"):
            reader.extract(wrong)
    question = Question(1, "Where is Ann?", CONTEXT)
    assert reader.extract(iter([question])) == reader.extract(question) == reader.extract([question])
