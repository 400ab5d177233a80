"""Lossless compression with a language model.

A token of probability p takes about -log2 p bits. The decoder needs exactly the probabilities that the encoder used, so
both run the same code: one token at a time, with the same rows in the same batch, so that every product has the same
shapes and every probability the same bits. A file that was written with another model, another PyTorch or on a
processor with other instructions is refused before it is decoded.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from heed.compress import container
from heed.compress.coder import NO_END, Coder, Decoder, Encoder, Literals, Probabilities
from heed.compress.container import Header
from heed.compress.tokenization import END, LITERAL, UNKNOWN, Item, Layout, LosslessTokenizer, Piece
from heed.core.environment import library_versions
from heed.core.errors import DataError, HeedError, UsageError
from heed.nn.contract import Autoregressive
from heed.nn.device import arithmetic
from heed.nn.packing import is_rounded
from heed.nn.weight_file import digest
from heed.run import Run
from heed.tasks.predictor import Predictor
from heed.text.vocabulary import BOS_ID

RESERVE = 1 << 12
"""Tokens for which a state may reserve memory."""
MAX_ROWS = 1 << 14
"""Parts of a text that are coded in parallel. The header has the length of each, and its own is limited."""

OnTokens = Callable[[int], None]
"""Called with the number of tokens of each step."""


@dataclass(frozen=True)
class Compressed:
    """A compressed text."""

    blob: bytes
    """The file."""
    num_payload_bytes: int
    """Size of the code alone."""
    num_tokens: int


def fingerprint(run: Run) -> str:
    """SHA-256 of everything that determines a model's probabilities for a text."""
    hashed = hashlib.sha256(digest(run.weights()).encode())
    recipe = run.recipe
    for part in (run.tokenizers["tgt"].to_json(), recipe.model.model_dump_json(), recipe.data.text_as,
                 recipe.data.line_end, str(recipe.data.normaliser.collapse_spaces)):  # fmt: skip
        hashed.update(b"\0" + part.encode())
    return hashed.hexdigest()


def compress(predictor: Predictor, data: bytes, rows: int = 1, on_tokens: OnTokens = lambda num: None) -> Compressed:
    """Compress a text. `rows`: parts of it that are coded in parallel, which is faster and costs some size.

    Raises UsageError if the run is not a language model or not on a CPU, for more than `MAX_ROWS` or if `constriction`
    is missing, and HeedError if the tokens would not give the text back.
    """
    if not 1 <= rows <= MAX_ROWS:
        raise UsageError(f"--rows must be from 1 to {MAX_ROWS:,}, got {rows}.")
    model = _model(predictor)
    tokenizer = _tokenizer(predictor.run)
    pieces, layout = tokenizer.encode(data, rows)
    if tokenizer.decode(pieces, layout) != data:
        raise HeedError(
            "this run's tokens do not give the text back exactly, so nothing was written. Please report this, with the "
            "text and the tokenizer."
        )
    encoder = Encoder()
    side = _Side(encoder, _reads_lines(predictor.run), len(data), _most_items(len(data), layout))
    _run(model, [_Row(side, len(piece), piece) for piece in pieces], rows, on_tokens)
    payload = encoder.finish()
    coded = len(payload) < len(data)
    header = Header(
        heed=library_versions()["heed"], model=fingerprint(predictor.run), arithmetic=_arithmetic(predictor.run),
        coded=coded, num_bytes=len(data), sha256=container.checksum(data), rows=rows,
        lengths=None if side.are_lines else tuple(map(len, pieces)), num_lines=len(pieces) if side.are_lines else 0,
        unended=layout.unended, framed=layout.framed, spaced=layout.spaced,
    )  # fmt: skip
    blob = container.pack(header, payload if coded else data)
    return Compressed(blob, len(payload if coded else data), sum(map(len, pieces)))


def decompress(predictor: Predictor, blob: bytes, on_tokens: OnTokens = lambda num: None) -> bytes:
    """The original text of a file. Raises DataError for a file that cannot be decoded exactly."""
    header, payload = container.unpack(blob)
    require_same(header, predictor.run)
    data = _decode(predictor, header, payload, on_tokens) if header.coded else payload
    if len(data) != header.num_bytes or container.checksum(data) != header.sha256:
        raise DataError(
            "the decoded text differs from the original: the arithmetic here is not that of the machine that wrote the "
            f"file ({_listed(header.arithmetic)}). Decompress it there."
        )
    return data


def require_same(header: Header, run: Run) -> None:
    """Raise DataError unless this run computes the same, on this machine, as the one that wrote the file."""
    if header.model != fingerprint(run):
        raise DataError(
            f"the file was compressed with another model than {run.folder}. Decompress it with the run that has "
            f"fingerprint {header.model[:16]}."
        )
    here, written = _arithmetic(run), _of_one_process(header.arithmetic)
    if differing := {name: value for name, value in written.items() if here.get(name) != value}:
        actual = _listed({name: here.get(name, "unknown") for name in differing})
        raise DataError(
            f"the file was compressed with {_listed(differing)}, but this machine has {actual}: probabilities could "
            "differ in their last bits and decode to another text. Decompress it where these are equal."
        )


def _decode(predictor: Predictor, header: Header, payload: bytes, on_tokens: OnTokens) -> bytes:
    reads_lines = _reads_lines(predictor.run)
    if reads_lines == (header.lengths is not None):
        raise DataError(
            "the header of the compressed file belongs to another kind of model. Use the run that compressed it."
        )
    layout = Layout(header.unended, header.framed, header.spaced)
    most = _most_items(header.num_bytes, layout)
    if header.num_lines + sum(header.lengths or ()) > most:
        raise DataError("the compressed file is damaged: its header declares more tokens than its text can have.")
    lengths = (0,) * header.num_lines if header.lengths is None else header.lengths
    side = _Side(Decoder(payload), reads_lines, header.num_bytes, most)
    rows = [_Row(side, length) for length in lengths]
    _run(_model(predictor), rows, header.rows, on_tokens)
    return _tokenizer(predictor.run).decode([row.piece for row in rows], layout)


def _most_items(num_bytes: int, layout: Layout) -> int:
    """Items of a text without an end: one a byte, and one for the space that the tokens of a line may begin with."""
    return num_bytes * (1 + layout.spaced)


def _model(predictor: Predictor) -> Autoregressive:
    predictor.require("compress", "compressing")
    predictor.run.recipe.data.require_forward()
    if predictor.run.device.type != "cpu":
        raise UsageError("compression needs a CPU: sums on a GPU may differ from one run to the next.")
    if is_rounded(predictor.run.model):
        raise UsageError("compression needs float32 or bfloat16: the file format does not record int8 weights.")
    return predictor.translator.model


def _reads_lines(run: Run) -> bool:
    """Whether the model reads each line by itself."""
    return bool(run.recipe.data.text_as == "lines")


def _tokenizer(run: Run) -> LosslessTokenizer:
    data = run.recipe.data
    line_end = None if _reads_lines(run) else data.line_end
    return LosslessTokenizer(run.tokenizers["tgt"], line_end, may_frame=data.normaliser.collapse_spaces)


def _arithmetic(run: Run) -> dict[str, str]:
    """Properties that the last bits of probabilities depend on. A count-based model has no weights with a precision."""
    weight = next(run.model.parameters(), None)
    precision = "float64" if weight is None else str(weight.dtype).removeprefix("torch.")
    return {**_of_one_process(arithmetic(torch.device("cpu"))), "precision": precision}


def _of_one_process(facts: Mapping[str, str]) -> dict[str, str]:
    """Without the number of processes: only one computes here, but older headers contain it."""
    return {name: value for name, value in facts.items() if name != "processes"}


def _listed(facts: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in facts.items())


# --- coding in step ------------------------------------------------------------------------------------------


class _Side:
    """The encoding or the decoding side.

    `are_lines`: a piece ends with an end of sentence rather than with its last item. `limit`: bytes of the whole text;
    `most_items`: of all of it, without an end.
    """

    def __init__(self, coder: Coder, are_lines: bool, limit: int, most_items: int) -> None:
        self.coder = coder
        self.are_lines = are_lines
        self.most_items = most_items
        self.literals = Literals(coder, limit)

    def code(self, probabilities: Probabilities, item: Item | None) -> Item:
        """Encode an item, or decode the next one, for which `item` is None."""
        token = self.coder.code(probabilities, None if item is None else item.token)
        if token not in (LITERAL, UNKNOWN):
            return Item(token)
        return Item(token, self.literals.code(None if item is None else item.literal))


class _Row:
    """A piece that is encoded, or decoded if `items` is None; `piece` has the items coded so far."""

    def __init__(self, side: _Side, length: int, items: Piece | None = None) -> None:
        self.side = side
        self.length = length
        self.items = items
        self.piece: Piece = []

    def code(self, probabilities: Probabilities) -> int | None:
        """Code items up to the next token that the model reads; returns that token, or None at the end."""
        while not self.is_over:
            item = self.side.code(probabilities, None if self.items is None else self.items[len(self.piece)])
            self.piece.append(item)
            if len(self.piece) > self.side.most_items + 1:
                raise DataError(NO_END)
            if item.token != LITERAL:
                return None if self.is_over else item.token
        return None

    @property
    def is_over(self) -> bool:
        if self.side.are_lines:
            return bool(self.piece) and self.piece[-1].token == END
        return len(self.piece) == self.length


def _run(model: Autoregressive, rows: Sequence[_Row], group_size: int, on_tokens: OnTokens) -> None:
    """Code all rows, `group_size` of them in parallel."""
    groups: Iterator[Sequence[_Row]] = (rows[i : i + group_size] for i in range(0, len(rows), group_size))
    for group in groups:
        _run_group(model, group, on_tokens)


@torch.inference_mode()
def _run_group(model: Autoregressive, rows: Sequence[_Row], on_tokens: OnTokens) -> None:
    """Code rows in parallel, each to its end; a row that has ended leaves the batch."""
    state = model.start(None, len(rows), reserve=RESERVE)
    ids = torch.full((len(rows), 1), BOS_ID)
    while rows:
        features, state = model.advance(ids, state)
        probabilities = model.head.log_probs(features[:, -1]).double().exp().numpy()
        tokens = [row.code(of_row) for row, of_row in zip(rows, probabilities, strict=True)]
        on_tokens(len(rows))
        active = [place for place, token in enumerate(tokens) if token is not None]
        if len(active) < len(rows):
            rows = [rows[place] for place in active]
            state = state.select(torch.tensor(active, dtype=torch.long))
        read = [BOS_ID if tokens[place] == END else tokens[place] for place in active]
        ids = torch.from_numpy(np.array(read, dtype=np.int64).reshape(-1, 1))
