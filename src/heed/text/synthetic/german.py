"""How are German words inflected? Declension and conjugation tables, with no choice in them.

Cases and genders index the tables: nominative, accusative, dative, genitive are 0 to 3; the columns of a
declension are masculine, feminine, neuter, plural, 0 to 3. The six persons of a conjugation are
ich, du, er, wir, ihr, sie; the polite "Sie" is the sixth.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

NOM, ACC, DAT, GEN = range(4)
MASC, FEM, NEUT, PLURAL = range(4)
ICH, DU, ER, WIR, IHR, SIE = range(6)

ARTICLE_COLUMN = {"der": MASC, "die": FEM, "das": NEUT}

# rows: columns m f n pl; entries: cases
DEFINITE = (("der", "den", "dem", "des"), ("die", "die", "der", "der"), ("das", "das", "dem", "des"))
DEFINITE_PLURAL = ("die", "die", "den", "der")
EIN_ENDINGS = (("", "en", "em", "es"), ("e", "e", "er", "er"), ("", "", "em", "es"), ("e", "e", "en", "er"))
DIESER_ENDINGS = (("er", "en", "em", "es"), ("e", "e", "er", "er"), ("es", "es", "em", "es"), ("e", "e", "en", "er"))
RELATIVE = (
    ("der", "den", "dem", "dessen"),
    ("die", "die", "der", "deren"),
    ("das", "das", "dem", "dessen"),
    ("die", "die", "denen", "deren"),
)
DER_WORDS = ("dies", "jed", "welch", "all")  # declined like der, weak adjectives after them
QUANTIFIERS = ("viel", "einig")  # declined like der, but strong adjectives after them
ADJECTIVE_ENDINGS = {
    "weak": (("e", "en", "en", "en"), ("e", "e", "en", "en"), ("e", "e", "en", "en"), ("en", "en", "en", "en")),
    "mixed": (("er", "en", "en", "en"), ("e", "e", "en", "en"), ("es", "es", "en", "en"), ("en", "en", "en", "en")),
    "strong": (("er", "en", "em", "en"), ("e", "e", "er", "er"), ("es", "es", "em", "en"), ("e", "e", "en", "er")),
}
ATTRIBUTIVE_STEMS = {"hoch": "hoh", "teuer": "teur", "dunkel": "dunkl"}

CONTRACTIONS = {
    ("in", "dem"): "im",
    ("in", "das"): "ins",
    ("an", "dem"): "am",
    ("zu", "dem"): "zum",
    ("zu", "der"): "zur",
    ("von", "dem"): "vom",
    ("bei", "dem"): "beim",
}
REFLEXIVES = ("mich", "dich", "sich", "uns", "euch", "sich")

HABEN = ("habe", "hast", "hat", "haben", "habt", "haben")
SEIN = ("bin", "bist", "ist", "sind", "seid", "sind")
WERDEN = ("werde", "wirst", "wird", "werden", "werdet", "werden")
IRREGULAR_PRESENT = {
    "haben": HABEN,
    "sein": SEIN,
    "werden": WERDEN,
    "mögen": ("mag", "magst", "mag", "mögen", "mögt", "mögen"),
    "wissen": ("weiß", "weißt", "weiß", "wissen", "wisst", "wissen"),
    "können": ("kann", "kannst", "kann", "können", "könnt", "können"),
    "müssen": ("muss", "musst", "muss", "müssen", "müsst", "müssen"),
    "dürfen": ("darf", "darfst", "darf", "dürfen", "dürft", "dürfen"),
    "wollen": ("will", "willst", "will", "wollen", "wollt", "wollen"),
}
# verbs, with their participles, whose English past is the German preterite; all others take the perfect
PRETERITE_STEMS = {
    ("haben", "gehabt"): "hatte",
    ("sein", "gewesen"): "war",
    ("wissen", "gewusst"): "wusste",
    ("gehören", "gehört"): "gehörte",
    ("stehen", "gestanden"): "stand",
    ("liegen", "gelegen"): "lag",
    ("hängen", "gehangen"): "hing",
    ("kosten", "gekostet"): "kostete",
}


def with_endings(stem: str) -> tuple[str, ...]:
    """The six forms of a preterite or conditional from its first person: war, warst, war, waren, wart, waren."""
    weak = stem.endswith("e")
    thou = stem + ("est" if stem.endswith(("t", "d")) else "st")
    you = stem + ("et" if stem.endswith(("t", "d")) else "t")
    we = stem + ("n" if weak else "en")
    return (stem, thou, stem, we, you, we)


HATTE, WAR, WURDE = with_endings("hatte"), with_endings("war"), with_endings("wurde")
HAETTE, WAERE, WUERDE = with_endings("hätte"), with_endings("wäre"), with_endings("würde")


class Forms(NamedTuple):
    """A verb's German: everything that is looked up when a clause is put in order."""

    infinitive: str  # without the prefix
    prefix: str  # separable, or empty
    fixed: str  # an object that belongs to the verb: "Klavier"
    reflexive: bool
    participle: str
    takes_sein: bool
    present: tuple[str, ...]
    preterite: tuple[str, ...] | None
    imperatives: tuple[str, str, str]  # du, ihr, Sie; the pronoun "Sie" is not in it

    @property
    def full_infinitive(self) -> str:
        return self.prefix + self.infinitive

    @property
    def zu_infinitive(self) -> str:
        return f"{self.prefix}zu{self.infinitive}" if self.prefix else f"zu {self.infinitive}"


def conjugate(dictionary_form: str, participle: str, changed_stem: str = "", takes_sein: bool = False) -> Forms:
    """All forms of "an-rufen", "sich aus-ruhen" or "Klavier spielen".

    `changed_stem` is the stem of the second and third person singular where it differs ("lies", "fähr").
    """
    words = dictionary_form.split()
    prefix, _, infinitive = words[-1].rpartition("-")
    reflexive = words[0] == "sich"
    fixed = " ".join(words[1 if reflexive else 0 : -1])
    stem = infinitive_stem(infinitive)
    present = IRREGULAR_PRESENT.get(infinitive) or present_forms(infinitive, changed_stem)
    past = PRETERITE_STEMS.get((infinitive, participle))
    preterite = with_endings(past) if past else None
    # e becomes i in the imperative too (lies!), a keeps no umlaut (fahr!)
    without_ge = participle.endswith("t") and not participle.removeprefix(prefix).startswith("ge")
    link = "e" if without_ge or infinitive in ("lösen", "planen", "reisen") else ""
    thou = changed_stem if "i" in changed_stem else imperative_stem(infinitive, stem, link)
    imperatives = (thou, present[IHR], infinitive)
    return Forms(infinitive, prefix, fixed, reflexive, participle, takes_sein, present, preterite, imperatives)


def infinitive_stem(infinitive: str) -> str:
    return infinitive[:-1] if infinitive.endswith(("eln", "ern")) else infinitive[:-2]


def needs_e(stem: str) -> bool:
    """Whether an e stands before the endings -st and -t: arbeit-e-t, öffn-e-t, but lern-t, wohn-t."""
    if stem.endswith(("t", "d")):
        return True
    return stem.endswith(("m", "n")) and stem[-2] not in "aeiouäöülrhmn"


def present_forms(infinitive: str, changed_stem: str = "") -> tuple[str, ...]:
    """The six present forms of a regular verb or of one whose vowel changes in du and er."""
    stem = infinitive_stem(infinitive)
    link = "e" if needs_e(stem) else ""
    first = f"{stem[:-2]}le" if infinitive.endswith("eln") else f"{stem}e"
    if changed_stem:
        thou = changed_stem + ("t" if changed_stem.endswith(("s", "ß", "z", "x")) else "st")
        third = changed_stem + ("" if changed_stem.endswith("t") else "t")
    else:
        thou = stem + ("t" if stem.endswith(("s", "ß", "z", "x")) else f"{link}st")
        third = f"{stem}{link}t"
    return (first, thou, third, infinitive, f"{stem}{link}t", infinitive)


def imperative_stem(infinitive: str, stem: str, link: str = "") -> str:
    """The imperative to a friend of a verb without change: kauf, arbeite, lächle, wandere; with `link`, besuche."""
    if infinitive.endswith("eln"):
        return f"{stem[:-2]}le"
    return f"{stem}e" if link or needs_e(stem) or infinitive.endswith("ern") else stem


@dataclass(frozen=True, slots=True)
class Declined:
    """A noun's forms: `singular` and `plural`, one per case."""

    singular: tuple[str, str, str, str]
    plural: tuple[str, str, str, str]


def decline(noun: str, genitive: str, plural: str, weak: bool = False) -> Declined:
    """The eight forms of a noun. A weak one has its plural form in the accusative and dative singular."""
    oblique = plural if weak else noun
    dative_plural = plural if plural.endswith(("n", "s")) else f"{plural}n"
    return Declined((noun, oblique, oblique, genitive), (plural, plural, dative_plural, plural))


@cache
def adjective(stem: str, pattern: str, column: int, case: int) -> str:
    """An adjective before a noun: `pattern` is "weak", "mixed" or "strong"; teuer + e is teure, müde + e is müde."""
    stem = ATTRIBUTIVE_STEMS.get(stem, stem).removesuffix("e")
    return stem + ADJECTIVE_ENDINGS[pattern][column][case]


@cache
def article(kind: str, column: int, case: int) -> str:
    """The form of a determiner given by its stem: der, ein, kein, mein, unser, dies, jed, welch, all, viel.

    Empty for "" and for the plural of "ein".
    """
    if not kind or (kind == "ein" and column == PLURAL):
        return ""
    if kind == "der":
        return DEFINITE_PLURAL[case] if column == PLURAL else DEFINITE[column][case]
    if kind in DER_WORDS or kind in QUANTIFIERS:
        return kind + DIESER_ENDINGS[column][case]
    ending = EIN_ENDINGS[column][case]
    return ("eur" if kind == "euer" and ending else kind) + ending


def pattern_after(kind: str) -> str:
    """Which adjective endings follow a determiner."""
    if kind == "der" or kind in DER_WORDS:
        return "weak"
    return "strong" if not kind or kind in QUANTIFIERS else "mixed"


def genitive_name(name: str) -> str:
    """Annas, Peters, but Thomas', Max'."""
    return f"{name}'" if name.endswith(("s", "ß", "x", "z")) else f"{name}s"
