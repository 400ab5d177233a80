"""Language identification, without any model to download.

Three methods, by the data that they require:

- `LanguageIdentifier` ranks languages of which it has sample text: naive Bayes over character n-grams.
- `evidence` measures the evidence for one language in a text, by its frequent words or its script.
- `similarity` compares two texts by their letter trigrams, without any data about their languages.
"""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from heed.text.language.codes import code_of
from heed.text.language.scripts import EAST_ASIAN, SCRIPT_OF_LANGUAGE, main_script

_FREQUENT_WORDS = """
af die van en het in is nie te dat vir hy met ek op om aan ons was sy wat jy as hulle maar ook sal kan daar by uit
bg и на да се в не за от са като по това той ще които тя до има беше съм при един или още само може във
ca de la que el i a en no per és un amb una les els es del al com més però seva aquest aquesta són va hi ho
cs a se v na je že to s z do i o by jsem si ale jako pro jsou byl tak po za jeho když není jen které také
da og i at det er en til af den på for som ikke de med han har jeg var et men vi fra sig der om ved hun mig
de der die und in den von zu das mit sich des auf für ist im dem nicht ein eine als auch es an er hat aus sie nach ich
el και το να του η της με που την από για είναι ο στο δεν τα σε θα οι τον στην τους μια ως αυτό αλλά
en the of and to in a is that for it was on with as he be at by this had not are but from or have an they which you
eo la de kaj en al ne estas mi li ke por kun sed oni tiu ĝi el pli kiu kiel aŭ ili vi pri
es de la que el en y a los se del las un por con no una su para es al lo como más pero sus le ya o este sí porque
et ja on ei see et ta ma kui oli mis ka oma aga siis või nii kes tema olen meie ole nagu
eu eta da ez zen bat du ere dira izan ziren bere hau zuen egin baina hori dut beste oso
fi ja on ei se että oli hän mutta ovat kun niin myös mitä sen minä tämä joka ole vain kuin olen hänen
fr de la le et les des en un du une que est pour qui dans a par plus pas au sur ne se ce il sont avec son nous je
ga agus an na a ar is tá i go sé ní bhí le don leis sin seo ach ag do
gl de a que o e en do da un os no na por con unha as para se ao máis como pero foi non
hr i u je se na da su za od s a iz kao koji ali što bio nije sam bi o ili kako već samo
hu a az és hogy nem is egy ez volt meg de van csak el már ha mint még azt én kell nagyon
id yang dan di itu dengan untuk tidak ini dari dalam akan pada juga saya ke karena tersebut bisa ada mereka kami
is og að í á er sem ekki það við um til með fyrir var en hann ég hún þau eru frá
it di e che la il un a per in una è non con i del si le da sono al come ma più della anche lo nel questo
la et in est non ad ut cum qui quod sed ex quae esse aut per si hoc enim atque
lt ir yra kad į iš su tai bet kaip ne buvo jis apie per tik dar nuo jau savo mes
lv un ir ka uz no ar tas par bet kā nav bija viņš es mēs arī lai šis ko
mk и на во да се за од е не со што ги како но тој беше ќе сум или по
ms yang dan di itu dengan untuk tidak ini dari dalam akan pada juga saya ke kerana boleh ada mereka
mt u li ta fil il ma hu kien mill dan biex għal jew minn huma din
nb og i er det som på en til av for at med ikke de har den jeg et var han om men vi fra seg
nl de en het van een in is dat te op die voor met zijn niet aan er om ook als bij maar dan ze door hij naar heb
no og i er det som på en til av for at med ikke de har den jeg et var han om men vi fra seg
pl w i z na nie się do to że jest o jak po co ale za od czy tak by jego był są przez dla już
pt de a o que e do da em um para é com não uma os no se na por mais as dos como mas foi ao ele das seu
ro și de în a la cu nu este pe că o un din să mai se care au fost sau ca dar lui ei
ru и в не на я быть он с что а по это она как к у но они мы весь за из от так же для вы
sk a sa v na je že to s z do aj o by som si ale ako pre sú bol tak po za jeho keď nie len ktoré
sl in je v na da se za so ki z pa ne od kot tudi bil po ali sem še
sq dhe në e të i një për me nuk është që nga ka ai ishte por si më kjo
sr и у је да се на су за од с а као који али што није сам би о
sv och i att det som en på är av för med till den inte har de jag ett om var han men vi från sig hon
sw na ya wa kwa ni katika la za cha kuwa hii hiyo yake lakini kama watu sana
tr ve bir bu da de için çok ne o ile gibi daha var ama kadar sonra mi ben olarak olan her
uk і в не на я що з він це як та до але вона за у від ми про так є його вони
uz va bu bir bilan uchun ham edi emas bo'lgan lekin men u
vi và của là có không một những được cho trong người này với các đã khi để tôi đó cũng như từ nhưng
zh 的 是 不 了 在 人 有 我 他 这 个 们 中 来 上 大 为 和 国 地 到 以 说 时 要 就 出 会
ja の に は を た が で て と し れ さ ある いる も する から な こと として い や れる など なっ ない この
ko 이 그 는 을 를 에 의 가 은 로 하다 있다 것 수 한 에서 으로 있는 하는
"""

FREQUENT_WORDS = {words[0]: frozenset(words[1:]) for words in map(str.split, _FREQUENT_WORDS.strip().splitlines())}
"""By language code: frequent short words, which identify a language without any sample of it."""

ORDER = 3
MAX_CHARACTERS = 2000
"""Characters of a text to identify that are used."""
MAX_SAMPLE = 300_000
"""Characters of a language's sample text that are counted."""
_SMOOTHING = 0.3

_TWO_SCRIPTS = {"sr", "uz"}
"""Languages that are written in Latin and in Cyrillic letters."""
MIN_EVIDENCE = 0.1
"""A text with less evidence than this is not in the language. Prose has 0.2 to 0.4."""
_PUNCTUATION = ".,;:!?\"'()«»„“”"

Profile = Counter[tuple[str, str, str]]
"""How often each trigram of characters occurs in a text."""


@dataclass(frozen=True)
class Detected:
    """A language, and the confidence in it from 0 to 100."""

    language: str
    confidence: float


class LanguageIdentifier:
    """Ranks the languages of its samples; it never returns any other language.

    Counts the n-grams of one to three letters of each language's samples, with a space around every word (Cavnar &
    Trenkle 1994 rank them; Dunning 1994 uses their probabilities, as here). Because n-grams overlap, the log-likelihood
    of a text is divided by the order before it becomes a probability.
    """

    def __init__(self, samples: Mapping[str, Iterable[str]]) -> None:
        """`samples`: texts of each language, by code."""
        self._counts = {language: _counted(texts) for language, texts in samples.items()}
        self._totals = {
            language: [counts.total() for counts in by_order] for language, by_order in self._counts.items()
        }
        self._num_types = [
            len(set().union(*(by_order[n] for by_order in self._counts.values()))) + 1 for n in range(ORDER)
        ]

    def detect(self, text: str) -> list[Detected]:
        """All languages, the most likely first; equally likely for a text without letters."""
        grams = [list(_grams(text[:MAX_CHARACTERS], n + 1)) for n in range(ORDER)]
        scores = {language: self._log_likelihood(language, grams) for language in self._counts}
        best = max(scores.values(), default=0.0)
        weights = {language: math.exp(score - best) for language, score in scores.items()}
        total = sum(weights.values())
        ranked = [Detected(language, round(100 * weight / total, 1)) for language, weight in weights.items()]
        return sorted(ranked, key=lambda detected: -detected.confidence)

    def _log_likelihood(self, language: str, grams: Sequence[Sequence[str]]) -> float:
        log_likelihood = 0.0
        for n, of_order in enumerate(grams):
            counts, size = self._counts[language][n], self._totals[language][n] + _SMOOTHING * self._num_types[n]
            log_likelihood += sum(math.log((counts[gram] + _SMOOTHING) / size) for gram in of_order)
        return log_likelihood / ORDER


def _counted(texts: Iterable[str]) -> list[Counter[str]]:
    counts: list[Counter[str]] = [Counter() for _ in range(ORDER)]
    num_left = MAX_SAMPLE
    for text in texts:
        if num_left <= 0:
            break
        num_left -= len(text)
        for n in range(ORDER):
            counts[n].update(_grams(text, n + 1))
    return counts


def _grams(text: str, n: int) -> Iterator[str]:
    """The runs of n letters of each word in lower case; for n > 1 a space at each end of a word counts as one."""
    letters = "".join(char if unicodedata.category(char)[0] in "LM" else " " for char in text.lower())
    for word in letters.split():
        padded = word if n == 1 else f" {word} "
        for begin in range(len(padded) - n + 1):
            yield padded[begin : begin + n]


def may_be_in(text: str, languages: Iterable[str]) -> float:
    """How well a text may be in one of some languages, from 0 to 1, by its script and its frequent words.

    It is 1 unless the text is in another script, or has at least two more of the frequent words of another language.
    """
    codes, script = set(map(code_of, languages)), main_script(text)
    in_latin = FREQUENT_WORDS.keys() - _TWO_SCRIPTS
    scripts = {SCRIPT_OF_LANGUAGE.get(code, "Latin" if code in in_latin else None) for code in codes}
    if script is not None and None not in scripts and script not in scripts:
        return 0.0
    if not codes <= FREQUENT_WORDS.keys():
        return 1.0
    words = {word.strip(_PUNCTUATION) for word in text[:MAX_CHARACTERS].lower().split()}
    counts = {code: len(words & frequent) for code, frequent in FREQUENT_WORDS.items()}
    most, own = max(counts.values()), max((counts[code] for code in codes), default=0)
    return own / most if most >= own + 2 else 1.0


def evidence(language: str, lines: Sequence[str], against: str = "") -> float | None:
    """The evidence for a language, from 0 to 1; None for a language without data.

    It is the share of the words that are frequent in the language and not in the language `against`. For a language
    without a list of frequent words, or without spaces, it is the share of the lines in its script.
    """
    code = code_of(language)
    script = SCRIPT_OF_LANGUAGE.get(code)
    if code in FREQUENT_WORDS and script not in (EAST_ASIAN, "Hangul"):
        frequent = FREQUENT_WORDS[code] - FREQUENT_WORDS.get(code_of(against), frozenset())
        words = [word.strip(_PUNCTUATION) for line in lines for word in line.lower().split()]
        return sum(word in frequent for word in words) / max(len(words), 1)
    if script is None:
        return None
    return sum(main_script(line) == script for line in lines) / max(len(lines), 1)


def look_exchanged(src: Sequence[str], tgt: Sequence[str], src_lang: str, tgt_lang: str) -> bool:
    """Whether source and target are in each other's language, judged by each language that either side shows."""
    if code_of(src_lang) == code_of(tgt_lang):
        return False
    verdicts = []
    for language, own, opposite, other in ((src_lang, src, tgt_lang, tgt), (tgt_lang, tgt, src_lang, src)):
        here, there = evidence(language, own, opposite), evidence(language, other, opposite)
        if here is not None and there is not None and max(here, there) >= MIN_EVIDENCE:
            verdicts.append(there >= 2 * here)
    return bool(verdicts) and all(verdicts)


def profile(lines: Iterable[str]) -> Profile:
    """The trigrams of characters of a text, in lower case."""
    counts: Profile = Counter()
    for line in lines:
        padded = f" {line.lower()} "
        counts.update(zip(padded, padded[1:], padded[2:], strict=False))
    return counts


def similarity(one: Profile, other: Profile) -> float:
    """The cosine of two profiles: above 0.9 in one language and domain, 0.6 across domains, below 0.4 for two."""
    shared = sum(count * other[gram] for gram, count in one.items() if gram in other)
    norms = math.sqrt(sum(count * count for count in one.values()) * sum(count * count for count in other.values()))
    return shared / norms if norms else 0.0


def are_crossed(src: Profile, tgt: Profile, known_src: Profile, known_tgt: Profile, margin: float = 0.0) -> bool:
    """Whether two sides are more similar to known text of the opposite side than to that of their own."""
    straight = similarity(src, known_src) + similarity(tgt, known_tgt)
    return similarity(src, known_tgt) + similarity(tgt, known_src) > straight + margin
