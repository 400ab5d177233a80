"""Words of the built-in corpus: English, its German translation, and the forms of both that rules do not give."""

from __future__ import annotations

import re
from typing import NamedTuple

NOM, ACC, DAT = range(3)
PLURAL = 3  # the column of a declension after the genders: masculine, feminine, neuter


class Words(NamedTuple):
    """The same words in both languages."""

    en: str
    de: str


NOTHING = Words("", "")


class Noun(NamedTuple):
    kind: str
    en: str
    en_plural: str
    gender: int
    de: str
    de_plural: str
    weak: bool  # takes the form of the plural in all cases but the nominative: den Studenten


class Adjective(NamedTuple):
    kinds: tuple[str, ...]
    en: str
    de: str
    stem: str  # what the endings are added to: teur for teuer


class Slot(NamedTuple):
    """An object of a verb: its prepositions, its case, and the kinds of nouns that fit."""

    en: str
    de: str
    case: int
    kinds: tuple[str, ...]


class Verb(NamedTuple):
    en: str
    en_past: str
    particle: str  # the "up" of "tidy up"
    de: str
    prefix: str  # the "auf" of "aufräumen"; the "Fußball " of "Fußball spielen"
    de_third: str
    auxiliary: str
    participle: str
    slots: tuple[Slot, ...]

    @property
    def name(self) -> str:
        return self.prefix + self.de


def third_person(verb: str) -> str:
    return re.sub(r"(?<=[^aeiou])y$", "ie", verb) + ("es" if re.search(r"(s|x|ch|sh|o)$", verb) else "s")


def _noun(kind: str, entry: str) -> Noun:
    english, gender, german = entry.split()
    en, en_plural, *_ = *english.split("/"), third_person(english)  # the rule is the same
    de, de_plural = german.split("/")
    return Noun(kind, en, en_plural, "mfn".index(gender[0]), de, de_plural, gender.endswith("!"))


def _adjective(kinds: str, entry: str) -> Adjective:
    en, de, *stem = entry.split()
    return Adjective(tuple(kinds.split()), en, de, *(stem or [de]))


def _slot(text: str) -> Slot:
    en, de, case, *kinds = text.split()
    return Slot(en.strip("-"), de.strip("-"), {"acc": ACC, "dat": DAT}[case], tuple(kinds))


def _verb(line: str) -> Verb:
    english, german, *slots = line.split("|")
    forms, _, particle = english.strip().partition(" ")
    regular = re.sub(r"(?<=[^aeiou])y$", "i", forms).removesuffix("e") + "ed"
    en, past = forms.split("/") if "/" in forms else (forms, regular)
    infinitive, third, *auxiliary, perfect = german.split()
    prefix, _, de = infinitive.replace("_", " ").rpartition("+")
    return Verb(en, past, particle, de, prefix, third, (*auxiliary, "haben")[0], perfect, tuple(map(_slot, slots)))


# English[/plural] gender[!] German/plural; "!" marks weak nouns
NOUNS = tuple(_noun(kind, entry) for kind, table in {
    "person": """man/men m Mann/Männer, woman/women f Frau/Frauen, boy m! Junge/Jungen, girl n Mädchen/Mädchen,
        child/children n Kind/Kinder, teacher m Lehrer/Lehrer, doctor m Arzt/Ärzte, student m! Student/Studenten,
        farmer m! Bauer/Bauern, customer m! Kunde/Kunden, baker m Bäcker/Bäcker, waiter m Kellner/Kellner,
        actress f Schauspielerin/Schauspielerinnen, nurse f Krankenschwester/Krankenschwestern,
        king m König/Könige, queen f Königin/Königinnen, pilot m! Pilot/Piloten, musician m Musiker/Musiker""",
    "relative": """uncle m Onkel/Onkel, aunt f Tante/Tanten, brother m Bruder/Brüder, sister f Schwester/Schwestern,
        grandfather m Großvater/Großväter, grandmother f Großmutter/Großmütter,
        friend m Freund/Freunde, neighbour m! Nachbar/Nachbarn""",
    "animal": """dog m Hund/Hunde, cat f Katze/Katzen, horse n Pferd/Pferde, bird m Vogel/Vögel,
        mouse/mice f Maus/Mäuse, cow f Kuh/Kühe, rabbit n Kaninchen/Kaninchen, bear m! Bär/Bären""",
    "text": """book n Buch/Bücher, letter m Brief/Briefe, newspaper f Zeitung/Zeitungen,
        poem n Gedicht/Gedichte, story f Geschichte/Geschichten, novel m Roman/Romane, report m Bericht/Berichte""",
    "food": """apple m Apfel/Äpfel, soup f Suppe/Suppen, cake m Kuchen/Kuchen, egg n Ei/Eier, sausage f Wurst/Würste""",
    "garment": """coat m Mantel/Mäntel, shirt n Hemd/Hemden, hat m Hut/Hüte, dress n Kleid/Kleider,
        jacket f Jacke/Jacken, sweater m Pullover/Pullover, cap f Mütze/Mützen""",
    "machine": "lamp f Lampe/Lampen, computer m Computer/Computer, radio n Radio/Radios, camera f Kamera/Kameras",
    "vehicle": "car n Auto/Autos, bicycle n Fahrrad/Fahrräder, boat n Boot/Boote",
    "thing": """guitar f Gitarre/Gitarren, ball m Ball/Bälle, key m Schlüssel/Schlüssel, cup f Tasse/Tassen,
        knife/knives n Messer/Messer, bag f Tasche/Taschen, picture n Bild/Bilder, suitcase m Koffer/Koffer""",
    "furniture": "table m Tisch/Tische, chair m Stuhl/Stühle, bed n Bett/Betten",
    "room": "kitchen f Küche/Küchen, bathroom n Badezimmer/Badezimmer, office n Büro/Büros, cellar m Keller/Keller",
    "place": """garden m Garten/Gärten, park m Park/Parks, cinema n Kino/Kinos, museum n Museum/Museen,
        school f Schule/Schulen, forest m Wald/Wälder, castle n Schloss/Schlösser""",
}.items() for entry in table.split(","))  # fmt: skip

ADJECTIVES = tuple(_adjective(kinds, entry) for kinds, table in {
    "person relative animal": "tired müde müd, happy glücklich, hungry hungrig, lazy faul, clever klug, young jung",
    "person relative": "friendly freundlich, rich reich, poor arm, brave mutig, famous berühmt, polite höflich",
    "person relative animal text garment machine vehicle furniture thing room place": "old alt",
    "text garment machine vehicle furniture thing": "new neu, expensive teuer teur, cheap billig",
    "text": "long lang, boring langweilig, sad traurig, interesting interessant",
    "garment furniture thing vehicle": "red rot, blue blau, black schwarz, white weiß, heavy schwer",
    "animal garment furniture room place thing": "small klein, big groß",
    "room place": "dark dunkel dunkl, cold kalt, quiet ruhig",
    "food": "fresh frisch, hot heiß, delicious lecker",
}.items() for entry in table.split(","))  # fmt: skip

# English[/past] [particle] | German infinitive, third person, [sein] participle; then the objects in
# German order, each as English preposition, German preposition, case, kinds of nouns
VERBS = tuple(map(_verb, """
    read/read | lesen liest gelesen | - - acc text
    write/wrote | schreiben schreibt geschrieben | - - acc text
    buy/bought | kaufen kauft gekauft | - - acc text garment machine vehicle thing furniture food
    find/found | finden findet gefunden | - - acc text garment thing animal
    see/saw | sehen sieht gesehen | - - acc person relative animal vehicle place
    visit | besuchen besucht besucht | - - acc person relative place
    repair | reparieren repariert repariert | - - acc vehicle machine furniture
    clean | putzen putzt geputzt | - - acc room furniture
    eat/ate | essen isst gegessen | - - acc food
    call | an+rufen ruft angerufen | - - acc person relative
    pick up | ab+holen holt abgeholt | - - acc person relative
    invite | ein+laden lädt eingeladen | - - acc person relative
    tidy up | auf+räumen räumt aufgeräumt | - - acc room
    turn on | ein+schalten schaltet eingeschaltet | - - acc machine
    turn off | aus+schalten schaltet ausgeschaltet | - - acc machine
    throw/threw away | weg+werfen wirft weggeworfen | - - acc text garment thing food
    try on | an+probieren probiert anprobiert | - - acc garment
    help | helfen hilft geholfen | - - dat person relative animal
    give/gave | geben gibt gegeben | to - dat person relative | - - acc text thing garment food
    wait | warten wartet gewartet | for auf acc person relative vehicle
    talk | sprechen spricht gesprochen | about über acc person relative text animal
    go/went | gehen geht sein gegangen | to in acc place
    put/put | legen legt gelegt | - - acc text garment thing | on auf acc furniture
    arrive | an+kommen kommt sein angekommen
    get/got up | auf+stehen steht sein aufgestanden
    play football | Fußball_+spielen spielt gespielt
""".strip().splitlines()))  # fmt: skip
THAT_VERBS = (
    _verb("say/said | sagen sagt gesagt"),
    _verb("know/knew | wissen weiß gewusst"),
    _verb("find/found out | heraus+finden findet herausgefunden"),
)
BE = _verb("be/was | sein ist sein gewesen")
NAMES = {
    "she": ("Anna", "Julia", "Laura", "Emma", "Nina", "Clara", "Lena"),
    "he": ("Peter", "Paul", "David", "Martin", "Walter", "Robert", "Oliver"),
}


def _words(text: str) -> tuple[Words, ...]:
    return tuple(Words(*entry.strip().split("/")) for entry in text.split(","))


DATES = _words("""today/heute, on Monday/am Montag, on Friday/am Freitag, in summer/im Sommer, in winter/im Winter,
    on May 3rd/am 3. Mai, on June 12th/am 12. Juni, on August 21st/am 21. August""")
TIMES = {
    "present": DATES + _words("every day/jeden Tag, every morning/jeden Morgen, on Mondays/montags"),
    "past": DATES + _words("yesterday/gestern, last week/letzte Woche, last weekend/letztes Wochenende"),
    "future": DATES + _words("tomorrow/morgen, next week/nächste Woche, in two weeks/in zwei Wochen"),
}
CONJUNCTIONS = {
    "present": _words("because/weil, although/obwohl, when/wenn, before/bevor"),
    "past": _words("because/weil, although/obwohl, when/als, before/bevor"),
}
