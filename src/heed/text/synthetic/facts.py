"""Which kinds of sentences give figures: ages, dates, prices, times of day, quantities? And which are set phrases?"""

from __future__ import annotations

from heed.text.synthetic import english, german
from heed.text.synthetic.clauses import Clause, Tense
from heed.text.synthetic.german import GEN
from heed.text.synthetic.lexicon import GREETINGS, MONTHS, PROVERBS, TAGGED, WEEKDAYS, Verb, Words
from heed.text.synthetic.naming import described, someone, where
from heed.text.synthetic.numerals import (
    english_clock,
    english_digits,
    english_number,
    german_clock,
    german_digits,
    german_number,
)
from heed.text.synthetic.phrases import THE, Phrase, noun_phrase
from heed.text.synthetic.scene import Scene
from heed.text.synthetic.wording import Sentence
from heed.text.synthetic.writing import BE, COST, LASTING, POSSIBLE, main_clause, write_clause

WEIGH = Verb(english.conjugate("weigh"), german.conjugate("wiegen", "gewogen"))
LAST = Verb(english.conjugate("last"), german.conjugate("dauern", "gedauert"))
OPEN = Verb(english.conjugate("open"), german.conjugate("öffnen", "geöffnet"))
CLOSE = Verb(english.conjugate("close"), german.conjugate("schließen", "geschlossen"))
HELD = next(verb for verb in POSSIBLE if verb.de.full_infinitive == "stattfinden")
LIVE, WORK = (next(verb for verb in POSSIBLE if verb.en.base == base) for base in ("live", "work"))
PUBLIC = ("museum", "library", "restaurant", "bakery", "supermarket", "zoo", "town_hall", "church", "café")


def in_words(number: int) -> Words:
    return Words(english_number(number), german_number(number))


def in_digits(value: int, decimals: int = 0) -> Words:
    return Words(english_digits(value, decimals), german_digits(value, decimals))


def age(scene: Scene) -> Sentence:
    """My brother is twenty-three years old."""
    person = someone(scene, role="known")
    young = person.noun is not None and "young" in person.noun.tags
    years = in_words(scene.dice.between(3, 15) if young else scene.dice.between(18, 95))
    said = Words(f"{years.en} years old", f"{years.de} Jahre alt")
    scene.show("number")
    tense = Tense.PRESENT if scene.dice.chance(0.8) else Tense.PAST
    return Sentence(*main_clause(scene, Clause(person, BE, tense=tense, predicate=said), lead=False))


def birth(scene: Scene) -> Sentence:
    """Anna was born on 3 May 1985 in Cologne: Anna wurde am 3. Mai 1985 in Köln geboren."""
    person = scene.first_name() if scene.dice.chance(0.5) else someone(scene, "adult", role="known")
    date, city = scene.date(past=True), scene.city()
    scene.show("passive")
    was, wurde = english.BE["past"][person.en_person], german.WURDE[person.person]
    en = f"{person.en} {was} born {date.en} in {city.en}"
    return Sentence(en, f"{person.de[0]} {wurde} {date.de} in {city.de} geboren")


def price(scene: Scene) -> Sentence:
    """The coat costs 129.50 euros: Der Mantel kostet 129,50 Euro."""
    tag, least, most = scene.dice.pick(PRICES)
    thing = described(scene, scene.noun((tag,)), owner=None, role="known")
    euros = scene.dice.between(least, most)
    if most < 1000 and scene.dice.chance(0.5):
        amount = in_digits(100 * euros + scene.dice.between(10, 99), 2)
    else:
        amount = in_words(euros) if euros < 100 else in_digits(euros)
    return measured_as(scene, thing, COST, Words(f"{amount.en} euros", f"{amount.de} Euro"))


# what is sold, and between how many euros its price lies
PRICES = (
    ("food", 2, 9),
    ("clothes", 12, 290),
    ("thing", 3, 95),
    ("furniture", 40, 4900),
    ("device", 25, 2400),
    ("instrument", 90, 9800),
    ("own", 3500, 48000),
    ("flat", 95000, 890000),
)


def weight(scene: Scene) -> Sentence:
    """The suitcase weighs 23.5 kilos: Der Koffer wiegt 23,5 Kilo."""
    noun = scene.noun(("furniture", "suitcase", "box", "dog", "pig", "bear", "piano"))
    amount = (
        in_digits(scene.dice.between(21, 999), 1) if scene.dice.chance(0.6) else in_words(scene.dice.between(2, 99))
    )
    thing = described(scene, noun, owner=None, role="known")
    return measured_as(scene, thing, WEIGH, Words(f"{amount.en} kilos", f"{amount.de} Kilo"))


def duration(scene: Scene) -> Sentence:
    """The concert lasts ninety minutes."""
    noun = scene.noun(("event", "film", "opera"))
    minutes = scene.dice.chance(0.5)
    amount = in_words(scene.dice.between(20, 95) if minutes else scene.dice.between(2, 12))
    unit = Words("minutes", "Minuten") if minutes else Words("hours", "Stunden")
    thing = described(scene, noun, owner=None, role="known")
    return measured_as(scene, thing, LAST, Words(f"{amount.en} {unit.en}", f"{amount.de} {unit.de}"))


def measured_as(scene: Scene, thing: Phrase, verb: Verb, amount: Words) -> Sentence:
    """Something costs, weighs, lasts so much."""
    scene.show("number")
    return Sentence(*main_clause(scene, Clause(thing, verb, predicate=amount), lead=False))


def population(scene: Scene) -> Sentence:
    """Vienna has 1,900,000 inhabitants: Wien hat 1.900.000 Einwohner."""
    city, people = scene.city(), in_digits(1000 * scene.dice.between(2, 3000))
    scene.show("number")
    return Sentence(f"{city.en} has {people.en} inhabitants", f"{city.de} hat {people.de} Einwohner")


def distance(scene: Scene) -> Sentence:
    """It is 585 kilometres from Berlin to Munich: Von Berlin nach München sind es 585 Kilometer."""
    first, second = scene.city(), scene.city()
    length = in_digits(scene.dice.between(60, 2400))
    scene.show("number", "verb_second")
    en = f"it is {length.en} kilometres from {first.en} to {second.en}"
    return Sentence(en, f"von {first.de} nach {second.de} sind es {length.de} Kilometer")


def share(scene: Scene) -> Sentence:
    """12.5 per cent of the pupils are sick: 12,5 Prozent der Schüler sind krank."""
    noun = scene.dice.pick(TAGGED["role"])
    people, adjective = noun_phrase(THE, noun, plural=True), scene.adjective(noun)
    assert adjective is not None  # there are adjectives for every person
    amount = in_digits(scene.dice.between(21, 990), 1)
    scene.show("number", "genitive")
    en = f"{amount.en} per cent of {people.en} are {adjective.en}"
    return Sentence(en, f"{amount.de} Prozent {people.de[GEN]} sind {adjective.de}")


def opening_hours(scene: Scene) -> Sentence:
    """The museum opens at half past nine; the bakery is open from Monday to Friday."""
    place = noun_phrase(THE, scene.noun(PUBLIC))
    scene.show("date")
    if scene.dice.chance(0.4):
        first, last = scene.dice.pick(WEEKDAYS[:3]), scene.dice.pick(WEEKDAYS[3:])
        en = f"{place.en} is open from {first.en} to {last.en}"
        return Sentence(en, f"{place.de[0]} ist von {first.de} bis {last.de} geöffnet")
    time, verb = scene.clock_time(), scene.dice.pick((OPEN, CLOSE))
    return Sentence(*main_clause(scene, Clause(place, verb, time=time), lead=False))


def appointment(scene: Scene) -> Sentence:
    """The meeting takes place on Monday at half past two: ... findet am Montag um halb drei statt."""
    event = described(scene, scene.noun(("event",)), owner=None, role="known")
    weekday = scene.dice.pick(WEEKDAYS)
    day = Words(f"on {weekday.en}", f"am {weekday.de}") if scene.dice.chance(0.5) else scene.date(past=False)
    hourly = day.en.startswith("on ") and scene.dice.chance(0.7)
    then = scene.clock_time() if hourly else where(scene, ("city",))
    scene.show("separable", "date")
    time = Words(f"{day.en} {then.en}", f"{day.de} {then.de}")
    clause = Clause(event, HELD, tense=scene.dice.pick((Tense.PRESENT, Tense.FUTURE)), time=time)
    return Sentence(*main_clause(scene, clause, lead=False))


def what_time(scene: Scene) -> Sentence:
    """It is half past two: Es ist halb drei. Today is Friday, 3 May: Heute ist Freitag, der 3. Mai."""
    if scene.dice.chance(0.3):
        hour, minute = scene.dice.between(1, 12), 5 * scene.dice.below(12)
        scene.show("clock_time")
        return Sentence(f"it is {english_clock(hour, minute)}", f"es ist {german_clock(hour, minute)}")
    day, month, number = scene.dice.pick(WEEKDAYS), scene.dice.pick(MONTHS), scene.dice.between(1, 28)
    scene.show("date")
    de = f"heute ist {day.de}, der {number}. {month.de}"
    return Sentence(f"today is {day.en}, {number} {month.en}", de)


def ever_since(scene: Scene) -> Sentence:
    """Anna has lived in Berlin for twelve years: Anna wohnt seit zwölf Jahren in Berlin."""
    person, city = someone(scene, "adult", role="known"), where(scene, ("city", "country"))
    kind = scene.dice.below(3)
    if kind == 0:
        year = scene.dice.between(1970, 2023)
        since = Words(f"since {year}", f"seit {year}")
    else:
        amount = in_words(scene.dice.between(2, 30))
        unit = scene.dice.pick((Words("years", "Jahren"), Words("months", "Monaten"), Words("weeks", "Wochen")))
        since = Words(f"for {amount.en} {unit.en}", f"seit {amount.de} {unit.de}")
    scene.show("number", "since")
    verb = scene.dice.pick((LIVE, WORK))
    has = "has" if person.en_person == english.THIRD else "have"
    en = f"{person.en} {has} {verb.en.participle} {city.en} {since.en}"
    return Sentence(en, f"{person.de[0]} {verb.de.present[person.person]} {since.de} {city.de}")


def temperature(scene: Scene) -> Sentence:
    """Yesterday it was minus five degrees in Vienna: Gestern waren es in Wien minus fünf Grad."""
    cold = scene.dice.chance(0.4)
    degrees = in_words(scene.dice.between(2, 15 if cold else 36))
    time, city = scene.time(Tense.PAST), scene.city()
    scene.show("number", "verb_second")
    en = f"{time.en} it was {'minus ' if cold else ''}{degrees.en} degrees in {city.en}"
    return Sentence(en, f"{time.de} waren es in {city.de} {'minus ' if cold else ''}{degrees.de} Grad")


def set_phrase(scene: Scene) -> Sentence:
    """A proverb, perhaps as somebody's saying, or a greeting."""
    scene.show("idiom")
    if scene.dice.chance(0.3):
        greeting, person = scene.dice.pick(GREETINGS), scene.titled() if scene.dice.chance(0.5) else scene.first_name()
        return Sentence(f"{greeting.en}, {person.en}", f"{greeting.de}, {person.de[0]}", scene.dice.pick(".!"))
    proverb, speaker = scene.dice.pick(PROVERBS), scene.first_name()
    return Sentence(f'"{proverb.en},"'.replace(".,", ",") + f" {speaker.en} always says", said(proverb.de, speaker))


def said(proverb: str, speaker: Phrase) -> str:
    return f"„{proverb.rstrip('.')}“, sagt {speaker.de[0]} immer"


def because_of(scene: Scene) -> Sentence:
    """Despite the rain Anna went for a walk; during the concert ...: trotz des Regens, während des Konzerts."""
    en, de, tags = scene.dice.pick(GENITIVE_PREPOSITIONS)
    noun = scene.noun(tags)
    adjective = scene.adjective(noun) if scene.dice.chance(0.3) else None
    phrase = noun_phrase(THE, noun, adjectives=(Words(adjective.en, adjective.de),) if adjective else ())
    clause = write_clause(scene, LASTING, tense=Tense.PAST, short=True, bare=True)
    clause.time = Words(f"{en} {phrase.en}", f"{de} {phrase.de[GEN]}")
    scene.show("genitive")
    return Sentence(*main_clause(scene, clause))


GENITIVE_PREPOSITIONS = (
    ("because of", "wegen", ("climate", "noise")),
    ("despite", "trotz", ("climate", "noise")),
    ("during", "während", ("event", "storm", "opera")),
)
