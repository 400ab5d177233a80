"""Language codes and names: the language that `en`, `eng`, `en-US` or `English` refers to."""

from __future__ import annotations

import re

_TABLE = """
af afr afrikaans
am amh amharic አማርኛ
ar ara arabic العربية
az aze azerbaijani azərbaycan
be bel belarusian беларуская
bg bul bulgarian български
bn ben bengali বাংলা
bs bos bosnian bosanski
ca cat catalan català
cs ces cze czech čeština
cy cym wel welsh cymraeg
da dan danish dansk
de deu ger german deutsch allemand alemán tedesco
el ell gre greek ελληνικά
en eng english englisch anglais inglés inglese
eo epo esperanto
es spa spanish español castellano spanisch espagnol spagnolo
et est estonian eesti
eu eus baq basque euskara
fa fas per persian farsi فارسی
fi fin finnish suomi
fr fra fre french français französisch francés francese
ga gle irish gaeilge
gl glg galician galego
gu guj gujarati ગુજરાતી
ha hau hausa
he heb hebrew עברית
hi hin hindi हिन्दी हिंदी
hr hrv croatian hrvatski
hu hun hungarian magyar
hy hye arm armenian հայերեն
id ind indonesian
ig ibo igbo
is isl ice icelandic íslenska
it ita italian italiano
ja jpn japanese 日本語
ka kat geo georgian ქართული
kk kaz kazakh қазақша
km khm khmer ភាសាខ្មែរ
kn kan kannada ಕನ್ನಡ
ko kor korean 한국어
ku kur kurdish kurdî
ky kir kyrgyz кыргызча
la lat latin latina
lg lug luganda
ln lin lingala
lo lao ລາວ
lt lit lithuanian lietuvių
lv lav latvian latviešu
mg mlg malagasy
mk mkd mac macedonian македонски
ml mal malayalam മലയാളം
mn mon mongolian монгол
mr mar marathi मराठी
ms msa may malay melayu
mt mlt maltese malti
my mya bur burmese မြန်မာ
nb nob bokmål
ne nep nepali नेपाली
nl nld dut dutch nederlands
nn nno nynorsk
no nor norwegian norsk
ny nya chichewa
om orm oromo
pa pan punjabi ਪੰਜਾਬੀ
pl pol polish polski
ps pus pashto پښتو
pt por portuguese português
ro ron rum romanian română
ru rus russian русский
rw kin kinyarwanda
si sin sinhala සිංහල
sk slk slo slovak slovenčina
sl slv slovene slovenian slovenščina
so som somali soomaali
sq sqi alb albanian shqip
sr srp serbian српски
sv swe swedish svenska
sw swa swh swahili kiswahili
ta tam tamil தமிழ்
te tel telugu తెలుగు
tg tgk tajik тоҷикӣ
th tha thai ไทย
ti tir tigrinya ትግርኛ
tl tgl fil tagalog filipino
tr tur turkish türkçe
uk ukr ukrainian українська
ur urd urdu اردو
uz uzb uzbek o'zbek
vi vie vietnamese
wo wol wolof
xh xho xhosa isixhosa
yo yor yoruba yorùbá
zh zho chi chinese mandarin cmn 中文
zu zul zulu isizulu
"""
_ROWS = [row.split() for row in _TABLE.strip().splitlines()]
_CODES = {name: names[0] for names in _ROWS for name in names}


def code_of(name: str) -> str:
    """The two-letter code for a code (`en`, `eng`, `en-US`) or a name (`English`); empty for an unknown language."""
    plain = name.strip().casefold()
    return _CODES.get(plain) or _CODES.get(re.split(r"[-_(]", plain)[0].strip(), "")


_NAMES = {names[0]: next((name for name in names if len(name) > 3), names[1]).title() for names in _ROWS}
_RIGHT_TO_LEFT = {"ar", "fa", "he", "ps", "ur"}


def name_of(code: str) -> str:
    """The English name for a code, such as `German`; the code itself for an unknown language."""
    return _NAMES.get(code_of(code), code)


def is_right_to_left(code: str) -> bool:
    """Whether a language is written from right to left."""
    return code_of(code) in _RIGHT_TO_LEFT


def same_language(one: str, other: str) -> bool:
    """Whether two codes are one known language in one script, in any of its varieties: `en`, `en-GB`, `English`."""
    return bool(one) and (code_of(one) or one) == (code_of(other) or other) and same_script(one, other)


def same_script(one: str, other: str) -> bool:
    """Whether two codes may be in one script: `sr` and `sr-Latn`, but not `sr-Latn` and `sr-Cyrl`."""
    scripts = [{part for part in re.split("[-_]", code.lower())[1:] if len(part) == 4} for code in (one, other)]
    return scripts[0] == scripts[1] or not all(scripts)


def same_tag(language: str, tag: str) -> bool:
    """Whether a tag names a language or a variety of it: `en` accepts `en-US` and `EN_gb`, but not `eng`."""
    parts, of_language = (text.strip().lower().replace("_", "-").split("-") for text in (tag, language))
    return parts[: len(of_language)] == of_language


def with_code(tag: str) -> str:
    """A language tag with the two-letter code: `en-US` for `eng_US`. An unknown language keeps its code."""
    language, *rest = tag.strip().replace("_", "-").split("-")
    return "-".join([code_of(language) or language, *rest])
