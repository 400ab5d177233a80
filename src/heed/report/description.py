"""Descriptions of a run: its model, the parts of its training data, its origin, and what to cite."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from heed.models import MODELS
from heed.report.markdown import code
from heed.run import RESTORING, Run

_TOKENIZERS = {
    "bpe": "byte-pair encoding", "unigram": "a unigram tokenizer", "sentencepiece": "SentencePiece",
    "wordpiece": "WordPiece", "word": "words", "open-word": "words and the bytes of rare ones",
    "character": "characters", "byte": "bytes", "char-bigram": "pairs of characters",
}  # fmt: skip
_TOKENIZER_PAPERS = {
    "bpe": "byte-pair encoding (Sennrich et al. 2016)",
    "unigram": "unigram subwords (Kudo 2018)",
    "sentencepiece": "SentencePiece (Kudo & Richardson 2018)",
    "wordpiece": "WordPiece (Schuster & Nakajima 2012)",
}
_SCORE_PAPERS = "sacreBLEU (Post 2018); chrF (Popović 2015); TER (Snover et al. 2006); intervals (Koehn 2004)"


@dataclass(frozen=True)
class PartFacts:
    """One part of a translator's training data."""

    files: Sequence[str]
    languages: str
    tag: str
    repeat: int
    pairs: int | None
    """Number of distinct training pairs (of text in the target language alone: lines); None if it is not recorded."""
    is_text: bool = False
    """Whether it is text in the target language alone."""

    def render(self, code: Callable[[str], str] = str, plain: Callable[[str], str] = str) -> str:
        """`a.en and a.fr: en → fr, tag <2fr>, 200 pairs, each 4 times in an epoch`.

        `code` formats names and tags, `plain` the languages.
        """
        often = f"each {self.repeat} times in an epoch" if self.repeat > 1 else "each once in an epoch"
        facts = [
            "text in the target language" if self.is_text else plain(self.languages),
            f"tag {code(f'<{self.tag}>')}" if self.tag else "",
            f"{self.pairs:,} {'lines' if self.is_text else 'pairs'}" if self.pairs is not None else "",
            "" if self.is_text else often,
        ]
        return f"{' and '.join(map(code, self.files))}: {', '.join(fact for fact in facts if fact)}"


def parts(run: Run) -> list[PartFacts]:
    """The parts of the training data; empty if it has only one."""
    data = run.recipe.data
    if not run.predictor.can("translate") or not data.parts:
        return []
    numbers = run.corpus.get("num_by_part", ())
    if len(numbers) != len(data.all_parts):
        numbers = [None] * len(data.all_parts)
    texts = data.target_texts()
    return [
        PartFacts(
            [Path(name).name for name in (part.src, part.tgt, part.pairs) if name],
            _direction(part.src_lang, part.tgt_lang), part.tag, part.repeat, number, place in texts,
        ) for place, (part, number) in enumerate(zip(data.all_parts, numbers, strict=True))
    ]  # fmt: skip


def directions(run: Run) -> str:
    """The language pairs of all parts of the training data, as far as they are known: `en → de, en → fr`."""
    data = run.recipe.data
    if not run.predictor.can("translate"):
        return str(data.tgt_lang)
    pairs = (_direction(part.src_lang, part.tgt_lang) for part in data.all_parts)
    return ", ".join(dict.fromkeys(filter(None, pairs)))


def validated_on(run: Run, code: Callable[[str], str] = str, plain: Callable[[str], str] = str) -> str:
    """Language pair and tag of the validation data, `en → de, tag <2de>`; empty for training data of one part."""
    data = run.recipe.data
    if not parts(run):
        return ""
    tag = data.tag_of_validation
    tag_text = f"tag {code(f'<{tag}>')}" if tag else "no tag" if data.tags else ""
    return ", ".join(filter(None, [plain(_direction(*data.languages(tag))), tag_text]))


def _direction(src_lang: str, tgt_lang: str) -> str:
    return f"{src_lang or '?'} → {tgt_lang or '?'}" if src_lang or tgt_lang else ""


def model_sentence(run: Run) -> str:
    """`a Transformer ... with byte-pair encoding, 4,000 pieces for both sides`."""
    kind = run.recipe.tokenizer.kind
    sizes = {side: len(tokenizer.vocabulary) for side, tokenizer in run.tokenizers.items()}
    if run.files.has("tokenizer.json"):
        pieces = f"{next(iter(sizes.values())):,} pieces" + (" for both sides" if len(sizes) > 1 else "")
    else:
        pieces = " and ".join(f"{size:,} pieces ({side})" for side, size in sizes.items())
    scored = f"; what it proposes is scored by {model_sentence(run.scorer)}" if run.scorer else ""
    return f"{run.recipe.model.summary()}; {_TOKENIZERS.get(kind, kind)}, {pieces}{scored}"


def origin(run: Run) -> str:
    """`fine-tuned from base, with its vocabulary`; empty if nothing came from another run."""
    init, tokenizer_of = run.corpus.get("init", ""), run.corpus.get("tokenizer_of", "")
    vocabulary = f"the vocabulary of {code(tokenizer_of)}" if tokenizer_of else "a new vocabulary"
    if init == RESTORING:
        return f"began by restoring masked sentences (Lewis et al. 2020), with {vocabulary}"
    if init:
        parts, backward = run.corpus.get("init_parts", "all"), run.corpus.get("init_backward", "")
        runs = " and ".join(map(code, filter(None, (init, backward))))
        how = "a student that began with the weights of" if run.corpus.get("is_student") else "fine-tuned from"
        began = f"initialised with the {parts} of {runs}" if parts != "all" else f"{how} {runs}"
        return f"{began}, with {'its vocabulary' if tokenizer_of == init else vocabulary}"
    return f"trained from scratch, with {vocabulary}" if tokenizer_of else ""


def methods(run: Run) -> str:
    """The papers of the model, the subwords and the scores."""
    papers = [MODELS[run.recipe.model.kind].papers, _TOKENIZER_PAPERS.get(run.recipe.tokenizer.kind, "")]
    if run.scorer is not None:
        papers += [MODELS[run.scorer.recipe.model.kind].papers, "scores of n-best lists (Och & Ney 2002)"]
    if run.predictor.can("translate"):
        papers.append(_SCORE_PAPERS)
    return "; ".join(paper for paper in papers if paper)
