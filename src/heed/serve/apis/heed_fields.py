"""Fields of heed's own API: models, tokens, outputs and sentences as answers, and images as requests."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any, TypeVar

from heed.core.errors import DataError
from heed.decoding.hypothesis import Hypothesis
from heed.documents.translation import Sentence as TranslatedSentence
from heed.memory.store import NearMatch, word_differences
from heed.serve.apis import heed_schema as schema
from heed.serve.engine.catalogue import Direction, ServedModel
from heed.serve.engine.probabilities import spell_one
from heed.serve.errors import ApiError

Output = TypeVar("Output", schema.Hypothesis, schema.Continuation)
DEFAULT_MAX_TOKENS = 64
"""Length of a generated text if neither the request nor the run's recipe has a limit."""
MAX_IMAGE_PIXELS = 12_000_000
"""Of an image that a client sends."""


def model_card(model: ServedModel, max_tokens: int) -> schema.ModelCard:
    """`max_tokens`: the server's limit."""
    run, options, generates = model.run, model.options, model.can("generate")
    fields = {
        "name": model.name, "task": run.recipe.task, "kind": run.recipe.model.kind, "parameters": model.num_parameters,
        "source": model.directions[0].source if model.directions else None, "target": model.language,
        "directions": model.directions, "attends": model.attends,
        "guided": any(direction.is_guided for direction in model.directions),
        "confidence": model.searches and model.translator.checks.confidence is not None,
        "report": model.has_report, "description": model.description,
        "decoding": options if model.searches else None,
        "drawing": options.of_text(DEFAULT_MAX_TOKENS, max_tokens, sample=True) if generates else None,
        "abilities": sorted(model.abilities),
    }  # fmt: skip
    return schema.ModelCard.model_validate(fields)


def tokens_of(model: ServedModel, ids: Sequence[int], log_probs: Sequence[float]) -> list[schema.Token]:
    """The tokens of an output. The end of the sentence has a log-probability and no id."""
    spelled = model.translator.detokenizer.token_bytes
    texts = [spell_one(spelled[id]) for id in ids]
    texts += [""] * (len(log_probs) - len(texts))
    return [schema.Token(text=text, log_prob=value) for text, value in zip(texts, log_probs, strict=False)]


def output_of(kind: type[Output], model: ServedModel | None, hypothesis: Hypothesis) -> Output:
    """An output of a model; without a model it has no tokens."""
    tokens = tokens_of(model, hypothesis.ids, hypothesis.token_log_probs) if model else []
    return kind.model_validate({**vars(hypothesis), "tokens": tokens})


def match_of(text: str, match: NearMatch) -> schema.MemoryMatch:
    """A match of a sentence, with what differs."""
    unit = match.unit
    pieces = [schema.Piece(text=piece, found_in=change) for piece, change in word_differences(text, unit.source)]
    return schema.MemoryMatch(source=unit.source, target=unit.target, similarity=match.similarity, pieces=pieces)


def sentence_of(path: Sequence[Direction], sentence: TranslatedSentence) -> schema.Sentence:
    """A sentence as the last model of a path read it."""
    is_direct = len(path) <= 1
    best = sentence.hypothesis or Hypothesis((), 0.0, 0.0, text=sentence.texts[-1])
    model = path[-1].model if path else None
    return schema.Sentence(
        start=sentence.start if is_direct else None,
        end=sentence.start + len(sentence.texts[0]) if is_direct else None,
        source=sentence.texts[-2] if len(sentence.texts) > 1 else sentence.texts[0],
        hypotheses=[output_of(schema.Hypothesis, model, each) for each in (best, *best.alternatives)],
    )


def pixels_of(model: ServedModel, image: str) -> Any:
    """The pixels of an image in base64. Raises ApiError for anything else."""
    try:
        content = base64.b64decode(image, validate=True)
        return model.loaded.image_pixels(content, "The image", MAX_IMAGE_PIXELS)
    except DataError as error:
        raise ApiError(400, str(error), "image") from error
    except ValueError as error:
        raise ApiError(400, "The image must be in base64.", "image") from error
