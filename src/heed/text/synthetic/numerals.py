"""How are numbers, dates and clock times said in English and in German?"""

from __future__ import annotations

from heed.core.errors import UsageError

# fmt: off
ENGLISH_SMALL = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)
ENGLISH_TENS = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
GERMAN_SMALL = (
    "null", "eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn", "elf", "zwölf",
    "dreizehn", "vierzehn", "fünfzehn", "sechzehn", "siebzehn", "achtzehn", "neunzehn",
)
GERMAN_TENS = ("", "", "zwanzig", "dreißig", "vierzig", "fünfzig", "sechzig", "siebzig", "achtzig", "neunzig")
# fmt: on


def english_number(number: int) -> str:
    """A whole number from 0 to 9,999 in British English words: three hundred and twenty-one."""
    check_number(number)
    if number >= 1000:
        thousands, rest = divmod(number, 1000)
        joint = " and " if 0 < rest < 100 else " " if rest else ""
        return f"{english_number(thousands)} thousand{joint}{english_number(rest) if rest else ''}"
    if number >= 100:
        hundreds, rest = divmod(number, 100)
        return f"{ENGLISH_SMALL[hundreds]} hundred" + (f" and {english_number(rest)}" if rest else "")
    if number < 20:
        return ENGLISH_SMALL[number]
    tens, ones = divmod(number, 10)
    return ENGLISH_TENS[tens] + (f"-{ENGLISH_SMALL[ones]}" if ones else "")


def german_number(number: int) -> str:
    """A whole number from 0 to 9,999 in German words, one word: dreihunderteinundzwanzig."""
    check_number(number)
    if number >= 1000:
        thousands, rest = divmod(number, 1000)
        return f"{german_multiplier(thousands)}tausend{german_number(rest) if rest else ''}"
    if number >= 100:
        hundreds, rest = divmod(number, 100)
        return f"{german_multiplier(hundreds)}hundert{german_number(rest) if rest else ''}"
    if number < 20:
        return GERMAN_SMALL[number]
    tens, ones = divmod(number, 10)
    return (f"{german_multiplier(ones)}und" if ones else "") + GERMAN_TENS[tens]


def german_multiplier(number: int) -> str:
    """One to nine before -und-, -hundert, -tausend: "eins" loses its s there."""
    return "ein" if number == 1 else GERMAN_SMALL[number]


def check_number(number: int) -> None:
    if not 0 <= number <= 9999:
        raise UsageError(f"the number {number} cannot be put in words here: give a whole number from 0 to 9999")


def english_digits(value: int, decimals: int = 0) -> str:
    """Digits with a comma for thousands and a decimal point; (1299, 2) is 12.99."""
    whole, fraction = divmod(value, 10**decimals)
    return f"{whole:,}" + (f".{fraction:0{decimals}d}" if decimals else "")


def german_digits(value: int, decimals: int = 0) -> str:
    """Digits with a point for thousands and a decimal comma: (129950, 2) is 1.299,50."""
    return english_digits(value, decimals).translate(str.maketrans(",.", ".,"))


def english_ordinal(day: int) -> str:
    """1st, 2nd, 3rd, 4th, 11th, 23rd."""
    suffix = "th" if 10 < day % 100 < 14 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
    return f"{day}{suffix}"


def english_clock(hour: int, minute: int) -> str:
    """A time of day in words, hour 1 to 12, minute a multiple of five: half past two, twenty-five to three."""
    name, following = ENGLISH_SMALL[hour], ENGLISH_SMALL[hour % 12 + 1]
    if minute == 0:
        return f"{name} o'clock"
    if minute in (15, 30):
        return f"{'half' if minute == 30 else 'quarter'} past {name}"
    if minute == 45:
        return f"quarter to {following}"
    return f"{english_number(minute)} past {name}" if minute < 30 else f"{english_number(60 - minute)} to {following}"


def german_clock(hour: int, minute: int) -> str:
    """The same in German, which counts its halves towards the next hour: halb drei, fünf nach halb drei."""
    name, following = GERMAN_SMALL[hour], GERMAN_SMALL[hour % 12 + 1]
    if minute == 0:
        return "ein Uhr" if hour == 1 else f"{name} Uhr"
    if minute in (15, 45):
        return f"Viertel nach {name}" if minute == 15 else f"Viertel vor {following}"
    if minute == 30:
        return f"halb {following}"
    if minute in (25, 35):
        return f"fünf {'vor' if minute == 25 else 'nach'} halb {following}"
    return f"{german_number(minute)} nach {name}" if minute < 30 else f"{german_number(60 - minute)} vor {following}"
