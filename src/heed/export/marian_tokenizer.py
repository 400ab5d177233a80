"""Tokenizers of Marian folders: SentencePiece as those of OPUS-MT, or heed's subwords as a `tokenizer.json`.

A folder of OPUS-MT has a SentencePiece model for each side, `source.spm` and `target.spm`, and `vocab.json`, which
numbers the pieces of both (with separate vocabularies: `target_vocab.json` for the target). A tag is written `>>de<<`
there, at the beginning of a source.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from heed.core.errors import DataError, MissingInputError
from heed.core.json_text import parse_json
from heed.core.own_files import read_own
from heed.export.hugging_face import TOKENIZER, read_json, write_json
from heed.run import Run
from heed.text.tokenizers import MAX_BYTES, TOKENIZERS, Tokenizer, parse_tokenizer
from heed.text.tokenizers.hugging_face import OfLibrary
from heed.text.tokenizers.sentence_piece import SPACE, SentencePiece
from heed.text.vocabulary import EOS_ID, SPECIAL_PIECES, Vocabulary, spelled_tag

MODELS = ("source.spm", "target.spm")
PIECES, TARGET_PIECES, OPTIONS = "vocab.json", "target_vocab.json", "tokenizer_config.json"
TARGET = "target"
"""Folder of the target's tokenizer, where each side has its own."""
_TAG = re.compile(r">>([A-Za-z0-9][A-Za-z0-9_-]*)<<")


@dataclass(frozen=True)
class MarianTokenizers:
    """The tokenizers of a folder, and for each of heed's ids that of the folder."""

    src: Tokenizer
    tgt: Tokenizer
    orders: tuple[Sequence[int], Sequence[int]]
    languages: Mapping[str, str] = field(default_factory=dict)
    """Keys of the `[data]` table."""

    @property
    def both(self) -> tuple[Tokenizer, Tokenizer]:
        """Those of source and target."""
        return self.src, self.tgt

    @property
    def joint(self) -> bool:
        """Whether both sides have the same one."""
        return self.src is self.tgt

    @property
    def kind(self) -> str:
        """The kind of both."""
        return next(kind for kind, tokenizers in TOKENIZERS.items() if tokenizers is type(self.src))


# --- export -------------------------------------------------------------------------------------------------


def write_tokenizers(run: Run, folder: Path, max_length: int) -> bool:
    """Write the tokenizers of a run; returns whether `transformers` has their kind."""
    src, tgt = run.tokenizers["src"], run.tokenizers["tgt"]
    if isinstance(src, SentencePiece) and isinstance(tgt, SentencePiece):
        _write_sentence_piece(run, src, tgt, folder, max_length)
    elif isinstance(src, OfLibrary) and isinstance(tgt, OfLibrary):
        _write_of_library(src, folder, max_length)
        if not run.files.has(TOKENIZER):
            (folder / TARGET).mkdir()
            _write_of_library(tgt, folder / TARGET, max_length)
    else:
        return False
    return True


def written_tag(run: Run, tag: str) -> str:
    """A tag as it is written before a source of a run whose tokenizers `transformers` has."""
    return f">>{tag}<<" if isinstance(run.tokenizers["src"], SentencePiece) else f"{spelled_tag(tag)} "


def _write_sentence_piece(run: Run, src: SentencePiece, tgt: SentencePiece, folder: Path, max_length: int) -> None:
    data = run.recipe.data
    for name, tokenizer in zip(MODELS, (src, tgt), strict=True):
        (folder / name).write_bytes(tokenizer.model)
    separate = src.vocabulary.pieces != tgt.vocabulary.pieces
    write_json(folder / PIECES, _numbered(src.vocabulary))
    if separate:
        write_json(folder / TARGET_PIECES, _numbered(tgt.vocabulary))
    pad, bos, eos, unk = SPECIAL_PIECES
    write_json(folder / OPTIONS, {
        "tokenizer_class": "MarianTokenizer", "separate_vocabs": separate, "model_max_length": max_length,
        "source_lang": data.src_lang or None, "target_lang": data.tgt_lang or None,
        "pad_token": pad, "bos_token": bos, "eos_token": eos, "unk_token": unk, "split_special_tokens": True,
    })  # fmt: skip


def _numbered(vocabulary: Vocabulary) -> dict[str, int]:
    tags = {f">>{tag}<<": id for tag, id in vocabulary.tag_ids.items()}
    first = len(vocabulary) - len(tags)
    return {**{piece: id for id, piece in enumerate(vocabulary.pieces[:first])}, **tags}


def _write_of_library(tokenizer: OfLibrary, folder: Path, max_length: int) -> None:
    """A `tokenizer.json` that ends each text, and reads tags as such."""
    document = parse_json(tokenizer.to_json())
    end = SPECIAL_PIECES[EOS_ID]
    document["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [{"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": end, "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": end, "type_id": 0}}],
        "special_tokens": {end: {"id": end, "ids": [EOS_ID], "tokens": [end]}},
    }
    for token in document["added_tokens"][len(SPECIAL_PIECES) :]:
        token["rstrip"] = True  # "<2de> a text" is the tag and "a text"
    write_json(folder / TOKENIZER, document)
    special = dict(zip(("pad_token", "bos_token", "eos_token", "unk_token"), SPECIAL_PIECES, strict=True))
    names = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": max_length, **special}
    inputs: dict[str, Any] = {"model_input_names": ["input_ids", "attention_mask"]}
    inputs["clean_up_tokenization_spaces"] = False
    if not tokenizer.vocabulary.tags:  # which are special pieces that a text spells
        inputs["split_special_tokens"] = True
    write_json(folder / OPTIONS, {**names, **inputs})


# --- import -------------------------------------------------------------------------------------------------


def read_tokenizers(folder: Path, config: Mapping[str, Any]) -> MarianTokenizers:
    """The tokenizers of a folder with this `config.json`. Raises MissingInputError or DataError."""
    if (folder / TOKENIZER).is_file() and not (folder / MODELS[0]).is_file():
        src = _of_library(folder / TOKENIZER)
        tgt = _of_library(folder / TARGET / TOKENIZER) if (folder / TARGET).is_dir() else src
        return MarianTokenizers(src, tgt, (range(len(src.vocabulary)), range(len(tgt.vocabulary))))
    options = read_json(folder / OPTIONS) if (folder / OPTIONS).is_file() else {}
    models = [_read_model(folder / name) for name in MODELS]
    tables = [read_json(folder / PIECES)]
    tables.append(read_json(folder / TARGET_PIECES) if options.get("separate_vocabs") else tables[0])
    sides = [
        _sentence_piece(model, table, config, options, folder) for model, table in zip(models, tables, strict=True)
    ]
    (src, src_order), (tgt, tgt_order) = sides
    if models[0] == models[1] and src.vocabulary.pieces == tgt.vocabulary.pieces:
        tgt = src
    languages = {
        key: value
        for key, name in (("src_lang", "source_lang"), ("tgt_lang", "target_lang"))
        if isinstance(value := options.get(name), str)
    }
    return MarianTokenizers(src, tgt, (src_order, tgt_order), languages)


def _of_library(path: Path) -> Tokenizer:
    document = {**read_json(path), "post_processor": None}
    for token in document.get("added_tokens", []):
        token["rstrip"] = False
    try:
        return parse_tokenizer(json.dumps(document, ensure_ascii=False, indent=2) + "\n")
    except DataError as error:
        raise DataError(f"{path}: {error}") from error


def _read_model(path: Path) -> bytes:
    if not path.is_file():
        raise MissingInputError(f"{path} is missing. A Marian folder has {', '.join(MODELS)} and {PIECES}.")
    where = path.resolve()  # downloaded models are often links
    return read_own(where.parent, where.name, MAX_BYTES)


def _sentence_piece(
    model: bytes, table: Mapping[str, Any], config: Mapping[str, Any], options: Mapping[str, Any], folder: Path
) -> tuple[SentencePiece, list[int]]:
    """The tokenizer with heed's order of pieces, and for each of them the folder's id."""
    ids = {piece: id for piece, id in table.items() if type(id) is int}
    pieces = {id: piece for piece, id in ids.items()}
    if len(pieces) < len(table) or sorted(pieces) != list(range(len(pieces))):
        raise DataError(f"{folder / PIECES}: the ids are not those of distinct pieces, without gaps.")
    unk = ids.get(str(options.get("unk_token", "<unk>")))
    pad, eos = config.get("pad_token_id"), config.get("eos_token_id")
    special = [pad, config.get("decoder_start_token_id", pad), eos, unk]
    if not all(type(id) is int and id in pieces for id in special) or len({pad, eos, unk}) < 3:
        raise DataError(f"{folder}: pad_token_id, eos_token_id, decoder_start_token_id or unk_token is not a piece.")
    tags = {match[1]: id for piece, id in ids.items() if (match := _TAG.fullmatch(piece))}
    taken = {*special, *tags.values()}
    text = [id for id in range(len(pieces)) if id not in taken]
    names = [pieces[id] + SPACE if pieces[id] in SPECIAL_PIECES else pieces[id] for id in text]
    try:
        return SentencePiece(model, names, [*tags]), [*special, *text, *tags.values()]
    except DataError as error:
        raise DataError(f"{folder}: {error}") from error
