"""Reading of a text by a classifier: its words, the answers with what they rest on, and the attention over the text."""

from __future__ import annotations

from typing import Any

import torch

from heed.nn.contract import Trace
from heed.tasks.classification.reading import outputs_of
from heed.tasks.reading import Reading, text_words
from heed.text.token_words import Word

MOST_ANSWERS = 20
"""Labels of a reading."""


def read(predictor: Any, texts: tuple[str, ...]) -> Reading:
    """A text, or a pair, as a classifier reads it. A linear model has words and no attention.

    The attention of a reader of documents, to their sentences and words, is part of the explanation.
    """
    [answers] = predictor.predict_texts([texts], MOST_ANSWERS)
    explanation = predictor.explain_texts(texts)
    if predictor.run.recipe.model.kind == "linear" or predictor.encoding.as_documents:
        words = tuple(Word(f"{word} ", "word", None, ()) for text in texts for word in text.split())
        return Reading(words, answers=tuple(answers), explanation=explanation)
    data, tokenizer = predictor.run.recipe.data, predictor.tokenizers["src"]
    [ids] = predictor.encoding.encode([tuple(map(data.normaliser.apply, texts))], tokenizer)
    trace = Trace()
    with torch.no_grad():
        outputs_of(predictor.run.model, predictor.encoding.source([ids]).to(predictor.run.device), trace=trace)
    words, places = text_words(tokenizer, ids, bool(predictor.run.model.reader.num_added))
    return Reading(words, places, trace, tuple(answers), explanation)
