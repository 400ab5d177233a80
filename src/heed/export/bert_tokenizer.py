"""Tokenizers of BERT folders: those of heed with their special pieces, and WordPiece with BERT's.

A WordPiece tokenizer is `vocab.txt`, a piece a line, with its options in `tokenizer_config.json`, or it is a
`tokenizer.json`. BERT numbers its special pieces in its own way; the order of a tokenizer's ids names, for each of
heed's ids, that of BERT.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tokenizers import normalizers

from heed.core.config import show
from heed.core.errors import DataError
from heed.core.json_text import parse_json
from heed.export.hugging_face import TOKENIZER, read_json, write_json
from heed.models.encoder import EncoderConfig
from heed.run import Run
from heed.text.tokenizers import MAX_BYTES, TOKENIZERS, Tokenizer, parse_tokenizer
from heed.text.tokenizers.hugging_face import OfLibrary, parsed
from heed.text.tokenizers.wordpiece import BERT_MASK, BERT_PIECES, INSIDE, MAX_CHARACTERS, WordPiece, from_bert
from heed.text.vocabulary import SPECIAL_PIECES

VOCABULARY, OPTIONS = "vocab.txt", "tokenizer_config.json"


def is_portable(kind: str) -> bool:
    """Whether a kind of tokenizer is one of the library's."""
    return issubclass(TOKENIZERS[kind], OfLibrary)


def write_tokenizer(run: Run, config: EncoderConfig, folder: Path) -> None:
    """The tokenizer, which adds the begin and the ends of texts as the model reads them."""
    document = parse_json(run.files.read(TOKENIZER, MAX_BYTES))
    if run.recipe.tokenizer.kind == "wordpiece":
        pieces = [*BERT_PIECES, *run.tokenizers["src"].vocabulary.text_pieces, BERT_MASK]
        (folder / VOCABULARY).write_text("\n".join(pieces) + "\n", encoding="utf-8")
        options = document["normalizer"]
        names: dict[str, Any] = {
            "tokenizer_class": "BertTokenizer", "do_lower_case": options["lowercase"],
            "strip_accents": options["strip_accents"], "tokenize_chinese_chars": options["handle_chinese_chars"],
        }  # fmt: skip
        return write_json(folder / OPTIONS, names)
    document["post_processor"] = _template(config)
    write_json(folder / TOKENIZER, document)
    special = dict(zip(("pad_token", "cls_token", "sep_token", "unk_token"), SPECIAL_PIECES, strict=True))
    names = {"tokenizer_class": "PreTrainedTokenizerFast", **special, "mask_token": "<mask>"}
    write_json(folder / OPTIONS, {**names, "model_input_names": ["input_ids", "token_type_ids", "attention_mask"]})


def _template(config: EncoderConfig) -> dict[str, Any]:
    begin, end = SPECIAL_PIECES[1:3]
    first = [_special(begin, 0)] * config.begin
    one = [*first, _text("A", 0), _special(end, 0)]
    return {
        "type": "TemplateProcessing", "single": one, "pair": [*one, _text("B", 1), _special(end, 1)],
        "special_tokens": {
            piece: {"id": piece, "ids": [id], "tokens": [piece]} for id, piece in ((1, begin), (2, end))
        },
    }  # fmt: skip


def _special(piece: str, segment: int) -> dict[str, Any]:
    return {"SpecialToken": {"id": piece, "type_id": segment}}


def _text(which: str, segment: int) -> dict[str, Any]:
    return {"Sequence": {"id": which, "type_id": segment}}


def read_tokenizer(folder: Path) -> tuple[Tokenizer, Sequence[int]]:
    """The tokenizer of a folder, and the order of its ids. Raises MissingInputError or DataError.

    The template that adds begin and end is left out, since heed's batches add them.
    """
    if not (folder / TOKENIZER).is_file() and (folder / VOCABULARY).is_file():
        return _of_vocabulary(folder)
    path = folder / TOKENIZER
    document = read_json(path)
    try:
        if document.get("model", {}).get("type") == WordPiece.model:
            return _of_document(document)
        tokenizer = parse_tokenizer(json.dumps({**document, "post_processor": None}))
    except DataError as error:
        raise DataError(f"{path}: {error}") from error
    if "mask" not in tokenizer.vocabulary.tag_ids:
        raise DataError(f"{path} has no piece <mask>, which a masked language model needs.")
    return tokenizer, range(len(tokenizer.vocabulary))


def _of_vocabulary(folder: Path) -> tuple[Tokenizer, Sequence[int]]:
    path = folder / VOCABULARY
    options = read_json(folder / OPTIONS) if (folder / OPTIONS).is_file() else {}
    normalizer = normalizers.BertNormalizer(
        lowercase=bool(options.get("do_lower_case", True)),
        strip_accents=options.get("strip_accents"),
        handle_chinese_chars=bool(options.get("tokenize_chinese_chars", True)),
    )
    try:
        pieces = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
        return from_bert([piece.removesuffix("\r") for piece in pieces], normalizer)
    except (DataError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: {error}") from error


def _of_document(document: dict[str, Any]) -> tuple[Tokenizer, Sequence[int]]:
    """The tokenizer of a `tokenizer.json` with BERT's special pieces. Raises DataError for one that reads otherwise."""
    library = parsed(json.dumps(document))
    model = parse_json(library.to_str())["model"]
    parts = {
        "pre-tokenizer": ((document.get("pre_tokenizer") or {}).get("type"), "BertPreTokenizer"),
        "unk_token": (model["unk_token"], BERT_PIECES[3]),
        "continuing_subword_prefix": (model["continuing_subword_prefix"], INSIDE),
        "max_input_chars_per_word": (model["max_input_chars_per_word"], MAX_CHARACTERS),
    }
    for part, (got, needed) in parts.items():
        if got != needed:
            raise DataError(f"its {part}: got {show(got)}, but heed reads only {show(needed)}.")
    ids = library.get_vocab()
    return from_bert(sorted(ids, key=lambda piece: ids[piece]), library.normalizer)
