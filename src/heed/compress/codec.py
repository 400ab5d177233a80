"""How does a language model compress a text, and get it back bit for bit?

What a model finds likely takes few bits: a token of probability p about -log2 p of them. The reader must see the very
probabilities that the writer saw, so both compute a token at a time in the same way (`lockstep.py`), and a file that
was written with another model, another PyTorch or on a processor with other instructions is refused before it is read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch

from heed.compress import container
from heed.compress.coder import Decoder, Encoder
from heed.compress.container import Header
from heed.compress.lockstep import CodedRow, Side, run
from heed.compress.transcript import Layout, Transcriber
from heed.core.environment import library_versions
from heed.core.errors import DataError, HeedError, UsageError
from heed.nn.contract import Autoregressive
from heed.nn.device import arithmetic
from heed.nn.packing import is_rounded
from heed.nn.weight_file import digest
from heed.run import Run
from heed.tasks.predictor import Predictor

Tell = Callable[[int], None]


@dataclass(frozen=True)
class Compressed:
    """A compressed text."""

    blob: bytes
    """The file."""
    num_payload_bytes: int
    """What the code takes of it."""
    num_tokens: int


def fingerprint(run: Run) -> str:
    """A SHA-256 of all that decides what a model says about a text."""
    found = hashlib.sha256(digest(run.weights()).encode())
    recipe = run.recipe
    for part in (run.tokenizers["tgt"].to_json(), recipe.model.model_dump_json(), recipe.data.text_as,
                 recipe.data.line_end, str(recipe.data.normaliser.collapse_spaces)):  # fmt: skip
        found.update(b"\0" + part.encode())
    return found.hexdigest()


def compress(loaded: Predictor, data: bytes, rows: int = 1, tell: Tell = lambda num_tokens: None) -> Compressed:
    """The text as a file. `rows`: so many parts of it are coded side by side, which is faster and costs some size.

    Raises UsageError where the run is no language model or not on a CPU, or `constriction` is missing, and HeedError
    where the tokens would not give the text back.
    """
    model = _predictor(loaded)
    transcriber = _transcriber(loaded.run)
    pieces, layout = transcriber.pieces(data, rows)
    if transcriber.data(pieces, layout) != data:
        raise HeedError("this text would not come back from the run's tokens as it is: nothing was written.")
    encoder = Encoder()
    side = Side(encoder, _stands_alone(loaded.run), len(data))
    given = [CodedRow(side, len(piece), piece) for piece in pieces]
    for group in _groups(given, rows):
        run(model, group, tell)
    payload = encoder.finish()
    coded = len(payload) < len(data)
    header = Header(
        heed=library_versions()["heed"], model=fingerprint(loaded.run), arithmetic=_arithmetic(loaded.run), coded=coded,
        num_bytes=len(data), sha256=container.checksum(data), rows=rows,
        lengths=None if side.ends else tuple(map(len, pieces)), num_lines=len(pieces) if side.ends else 0,
        unended=layout.unended, framed=layout.framed,
    )  # fmt: skip
    if not coded:
        payload = data
    return Compressed(container.written(header, payload), len(payload), sum(map(len, pieces)))


def decompress(loaded: Predictor, blob: bytes, tell: Tell = lambda num_tokens: None) -> bytes:
    """The text of a file. Raises DataError for what cannot be decoded exactly; what is returned is what was written."""
    header, payload = container.read(blob)
    require_same(header, loaded.run)
    data = _decoded(loaded, header, payload, tell) if header.coded else payload
    if len(data) != header.num_bytes or container.checksum(data) != header.sha256:
        raise DataError(
            "what was decoded is not what was compressed: the arithmetic here is another one than where the file was "
            f"written ({_listed(header.arithmetic)}). Decompress it there."
        )
    return data


def require_same(header: Header, run: Run) -> None:
    """Raises DataError unless this run, on this machine, is what the file was written with."""
    if header.model != fingerprint(run):
        raise DataError(
            f"the file was compressed with another model than {run.folder}, and only with that one it can be read "
            f"(fingerprint {header.model[:16]})."
        )
    here, theirs = _arithmetic(run), _of_one_process(header.arithmetic)
    if differing := {name: value for name, value in theirs.items() if here.get(name) != value}:
        found = _listed({name: here.get(name, "unknown") for name in differing})
        raise DataError(
            f"the file was compressed with {_listed(differing)}, here is {found}: the model's probabilities could "
            "differ in their last bits, and nothing would come back right. Decompress it where these are the same."
        )


def _decoded(loaded: Predictor, header: Header, payload: bytes, tell: Tell) -> bytes:
    stands_alone = _stands_alone(loaded.run)
    if stands_alone == (header.lengths is not None):
        raise DataError("the file's header does not belong to a model of this kind.")
    if header.num_lines + sum(header.lengths or ()) > header.num_bytes:
        raise DataError("the file's header tells of more tokens than its text can have.")
    lengths = (0,) * header.num_lines if header.lengths is None else header.lengths
    side = Side(Decoder(payload), stands_alone, header.num_bytes)
    rows = [CodedRow(side, length) for length in lengths]
    for group in _groups(rows, header.rows):
        run(_predictor(loaded), group, tell)
    layout = Layout(header.unended, header.framed)
    return _transcriber(loaded.run).data([row.piece for row in rows], layout)


def _groups(rows: Sequence[CodedRow], size: int) -> Iterator[Sequence[CodedRow]]:
    return (rows[begin : begin + size] for begin in range(0, len(rows), size))


def _predictor(loaded: Predictor) -> Autoregressive:
    loaded.require("compress", "compressing")
    if loaded.run.device.type != "cpu":
        raise UsageError("compress on a CPU: a GPU's sums need not be the same the next time.")
    if is_rounded(loaded.run.model):
        raise UsageError("compress with float32 or bfloat16: the file does not tell that weights are of eight bits.")
    return loaded.translator.model


def _stands_alone(run: Run) -> bool:
    """Whether the model reads each line by itself."""
    return bool(run.recipe.data.text_as == "lines")


def _transcriber(run: Run) -> Transcriber:
    data = run.recipe.data
    line_end = None if _stands_alone(run) else data.line_end
    return Transcriber(run.tokenizers["tgt"], line_end, may_frame=data.normaliser.collapse_spaces)


def _arithmetic(run: Run) -> dict[str, str]:
    """What probabilities depend on in their last bits. A counting model has no weights to be kept in a precision."""
    weight = next(run.model.parameters(), None)
    precision = "float64" if weight is None else str(weight.dtype).removeprefix("torch.")
    return {**_of_one_process(arithmetic(torch.device("cpu"))), "precision": precision}


def _of_one_process(facts: Mapping[str, str]) -> dict[str, str]:
    """Without how many processes there are: only one computes here, but older headers tell it."""
    return {name: value for name, value in facts.items() if name != "processes"}


def _listed(facts: object) -> str:
    assert isinstance(facts, dict)
    return ", ".join(f"{name} {value}" for name, value in facts.items())
