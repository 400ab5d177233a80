"""OpenAI's embeddings API, for models that have vectors of texts.

The vector of a text is the one that `heed embed` writes: the mean of the vectors of its tokens.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from functools import partial

import numpy as np
from fastapi import APIRouter, Depends, Request

from heed.serve.apis.openai_schema import Embedding, EmbeddingRequest, Embeddings, EmbeddingUsage, OpenAIError
from heed.serve.apis.schema import errors, request_body
from heed.serve.engine.catalogue import ServedModel
from heed.serve.engine.job import SEPARATE_BATCH, Job
from heed.serve.errors import ApiError
from heed.serve.service import Service
from heed.tasks.embedding import Floats, TokenVectors


class EmbeddingsApi:
    """The route of one server."""

    def __init__(self, service: Service) -> None:
        self.service = service

    async def embeddings(self, request: Request) -> Embeddings:
        """Vectors of texts."""
        body = await self.service.read(request, EmbeddingRequest)
        texts = _texts(body)
        self.service.limits.require_texts(texts, "input")
        model = self.service.catalogue.model(body.model, "embed")
        return await self.service.jobs.run(request, lambda job: self._embedded(job, model, body, texts))

    def _embedded(self, job: Job, model: ServedModel, body: EmbeddingRequest, texts: Sequence[str]) -> Embeddings:
        self._require_short(model, texts)
        found: list[TokenVectors] = []
        for first in range(0, len(texts), SEPARATE_BATCH):  # in parts, so that other requests get turns
            found += job.call(partial(model.loaded.token_vectors, texts[first : first + SEPARATE_BATCH]))
        size = found[0].vectors.shape[1]
        if body.dimensions not in (None, size):
            text = f"The vectors of {model.name} always have {size:,} dimensions: leave out dimensions."
            raise ApiError(400, text, "dimensions")
        number = sum(len(each.tokens) for each in found)
        return Embeddings(
            data=[
                Embedding(index=index, embedding=_written(each.pooled(), body.encoding_format == "base64"))
                for index, each in enumerate(found)
            ],
            model=model.name,
            usage=EmbeddingUsage(prompt_tokens=number, total_tokens=number),
        )

    def _require_short(self, model: ServedModel, texts: Sequence[str]) -> None:
        """Raise ApiError for a text that would hold up the requests of other clients for too long."""
        tokenizer = model.run.tokenizers[model.run.sides[0]]
        longest, limit = max(map(len, tokenizer.encode(texts))), self.service.limits.sentence_tokens
        if longest > limit:
            raise ApiError(400, f"A text has {longest:,} tokens; the limit is {limit:,}.", "input")


def _texts(body: EmbeddingRequest) -> list[str]:
    """The texts of a request. Raises ApiError for token ids, which would be those of another model, and for no text."""
    texts = [body.input] if isinstance(body.input, str) else body.input
    if not all(isinstance(text, str) for text in texts):
        raise ApiError(400, "Send texts: token ids of other tokenizers mean nothing to this server's models.", "input")
    if not all(texts):
        raise ApiError(400, "An input is empty. Leave it out.", "input")
    return [text for text in texts if isinstance(text, str)]


def _written(vector: Floats, in_base64: bool) -> list[float] | str:
    if in_base64:
        return base64.b64encode(vector.astype("<f4").tobytes()).decode()
    return [float(number) for number in np.asarray(vector, dtype=np.float64)]


def routes(service: Service) -> APIRouter:
    """OpenAI's embeddings API of one server."""
    api = EmbeddingsApi(service)
    router = APIRouter(prefix="/v1", tags=["OpenAI"], dependencies=[Depends(service.admit_bearer)])
    router.add_api_route(
        "/embeddings", api.embeddings, methods=["POST"], openapi_extra=request_body(EmbeddingRequest),
        responses=errors(OpenAIError, 400, 401, 403, 404, 429, 503, 504),
    )  # fmt: skip
    return router
