"""Abbreviations of ten languages, and words that start sentences, to decide whether a full stop ends one.

The lists are short on purpose. A missing abbreviation cuts one sentence in two; a wrong entry joins sentences
everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Abbreviations:
    """The abbreviations of a language, written without their last full stop, and its sentence starters."""

    never: frozenset[str]
    """Never end a sentence: "Dr. Smith"."""
    seldom: frozenset[str]
    """End a sentence only before one of `starters`: "cats, dogs etc. The birds"."""
    numbered: frozenset[str]
    """Are abbreviations only before a number: "No. 5", but "I said no."."""
    starters: frozenset[str]
    """Words that, when capitalised, most likely start a sentence."""
    ordinals: bool
    """Whether "3." can mean "third"."""


def _abbreviations(never: str, seldom: str, numbered: str, starters: str, ordinals: bool = False) -> Abbreviations:
    return Abbreviations(
        frozenset(never.split()),
        frozenset(seldom.split()),
        frozenset(numbered.split()),
        frozenset(starters.split()),
        ordinals,
    )


ABBREVIATIONS: dict[str, Abbreviations] = {
    "en": _abbreviations(
        never="Dr Prof Mr Mrs Ms St Mt Gen Col Lt Sgt Capt vs cf Messrs Rev Hon Gov Sen Rep Pres Supt Det Cmdr Adm "
        "Maj Ft approx viz esp incl resp Fig Figs Eq ca e.g i.e",
        seldom="etc al Inc Ltd Corp Co Bros Jr Sr a.m p.m Ph.D Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct Nov Dec dept "
        "est Ave Blvd Rd ed eds",
        numbered="No Nos no nos Art art pp p Vol vol Ch ch Sec sec",
        starters="The This That These Those There Then They He She It We You I A An In On At By For From But And So If "
        "When While After Before As Although However What Who Where Why How His Her Its Our Their My Your No "
        "Not Yes Some Many",
    ),
    "de": _abbreviations(
        never="Dr Prof Mr Mrs Ms St Mt Gen Col Lt Sgt Capt vs cf Hr Hrn Fr Frl Dres Dipl Ing Mag bzw z.B d.h u.a "
        "z.T i.d.R v.a s.o s.u o.ä vgl sog geb gest evtl ggf inkl exkl ca zzgl abzgl bspw insb allg urspr Abb "
        "Tab Str Nr Kl Mio Mrd Tsd Tel Bd Hg Hrsg Univ Jan Feb Mär Apr Jun Jul Aug Sep Sept Okt Nov Dez",
        seldom="etc al Inc Ltd Corp Co Bros Jr usw Jh Jhd Chr e.V v.Chr n.Chr",
        numbered="nr Art art S Abs Kap Ziff",
        starters="Der Die Das Ein Eine Er Sie Es Wir Ihr Ich Man Und Aber Doch Wenn Als Dann Da So Dies Diese Dieser "
        "Dieses Im In Am An Auf Bei Mit Nach Für Von Vor Zu Was Wer Wo Wie Warum Nicht Nein Ja Auch Danach "
        "Dort Hier Heute",
        ordinals=True,
    ),
    "fr": _abbreviations(
        never="Dr Prof Mr Mrs Ms St Mt Gen Col Lt Sgt Capt vs cf M MM Mme Mmes Mlle Mlles Mgr Pr env p.ex c.-à-d av "
        "apr janv févr juil sept oct nov déc",
        seldom="etc al Inc Ltd Corp Co Bros Jr J.-C Cie",
        numbered="n no nos p pp vol chap art fig",
        starters="Le La Les Un Une Des Il Elle Ils Elles On Nous Vous Je Ce Cette Ces C'est Mais Et Puis Alors Quand "
        "Si Dans À En Au Aux Pour Par Qui Que Où Pourquoi Son Sa Ses Leur Notre Votre",
    ),
    "es": _abbreviations(
        never="Dr Prof Mr Mrs Ms St Mt Gen Col Lt Sgt Capt vs cf Sr Sra Srta Dra Sres Sras D Dª Dña Ud Uds Vd Vds "
        "pág págs p.ej aprox Av Avda Excmo Lic Arq tel núm",
        seldom="etc al Inc Ltd Corp Co Bros Jr S.A EE.UU a.C d.C Cía",
        numbered="n nº p pp vol cap art fig",
        starters="El La Los Las Un Una Él Ella Ellos Ellas Nosotros Yo Tú Usted Pero Y Cuando Si En A Para Por Con De "
        "Que Qué Quién Dónde Cómo No Sí Es Este Esta Ese Esa Su Sus Luego Entonces",
    ),
    "it": _abbreviations(
        never="Dr Prof Mr Mrs Ms St Mt Gen Col Lt Sgt Capt vs cf Sig Sigg Sigra Dott Avv Arch Geom Ing Rag pag pagg "
        "p.es tel",
        seldom="etc al Inc Ltd Corp Co Bros Jr ecc S.p.A S.r.l a.C d.C",
        numbered="n nn p pp vol cap art fig",
        starters="Il Lo La I Gli Le Un Una Lui Lei Noi Io Tu Ma E Quando Se In A Per Con Di Da Che Chi Dove Come Non "
        "Sì È Questo Questa Quello Quella Poi",
    ),
    "pt": _abbreviations(
        never="Dr Prof Mr Mrs Ms St Mt Gen Col Lt Sgt Capt vs cf Sr Sra Srs Sras Dra Exmo Exma Eng Arq pág págs "
        "p.ex aprox Av tel núm",
        seldom="etc al Inc Ltd Corp Co Bros Jr S.A Ltda a.C d.C Cia",
        numbered="n nº p pp vol cap art fig",
        starters="O A Os As Um Uma Ele Ela Eles Elas Nós Eu Tu Você Mas E Quando Se Em No Na Para Por Com De Que Quem "
        "Onde Como Não Sim É Este Esta Esse Essa Depois Então",
    ),
    "nl": _abbreviations(
        never="Dr Prof Mr Mrs Ms St Mt Gen Col Lt Sgt Capt vs cf dhr mevr drs mr ir bijv bv d.w.z m.a.w o.a t.a.v "
        "i.p.v resp zgn evt incl excl ong tel blz",
        seldom="etc al Inc Ltd Corp Co Bros Jr enz jl a.u.b N.V B.V",
        numbered="nr nrs p pp art afb hfst",
        starters="De Het Een Hij Zij Ze Wij We Ik Jij Je U Maar En Als Toen Dan Dit Dat Deze Die In Op Bij Met Na Voor "
        "Van Te Wat Wie Waar Hoe Waarom Niet Nee Ja Er Daar Hier",
    ),
    "cs": _abbreviations(
        never="Dr Prof Mr Mrs Ms St Mt Gen Col Lt Sgt Capt vs cf Mgr Ing MUDr JUDr PhDr RNDr např tzv tzn tj popř "
        "resp příp obr tab tel ul nám mj cca stol",
        seldom="etc al Inc Ltd Corp Co Bros Jr atd apod aj n.l",
        numbered="č čís s str čl odst",
        starters="Ten Ta To Ti Ty On Ona Ono Oni My Vy Já Ale A Když Pokud V Ve Na Po Pro S Z Že Kdo Kde Jak Proč Co "
        "Ne Ano Je Byl Byla Bylo Pak Potom",
        ordinals=True,
    ),
    "pl": _abbreviations(
        never="Dr Prof Mr Mrs Ms St Mt Gen Col Lt Sgt Capt vs cf mgr inż hab np tzn tzw tj m.in ul pl tel gen płk "
        "ks św godz",
        seldom="etc al Inc Ltd Corp Co Bros Jr itd itp n.e",
        numbered="nr s str art ust poz",
        starters="Ten Ta To Ci Te On Ona Ono Oni My Wy Ja Ale I Kiedy Gdy Jeśli W We Na Po Dla Z Że Kto Gdzie Jak "
        "Dlaczego Co Nie Tak Jest Był Była Było Potem Wtedy",
        ordinals=True,
    ),
    "ru": _abbreviations(
        never="г гг ул пр пл д им т.е т.к см ср напр проф акад доц тов табл кв руб коп тыс млн млрд обл св",
        seldom="др т.д т.п н.э",
        numbered="п пп ст гл с стр рис",
        starters="Он Она Оно Они Мы Вы Я Ты Но А И Когда Если В На По Для С Что Кто Где Как Почему Это Этот Эта Эти "
        "Тот Та Не Да Нет Был Была Было Потом Затем",
    ),
}

ALL_ABBREVIATIONS = Abbreviations(
    never=frozenset().union(*(words.never for words in ABBREVIATIONS.values())),
    seldom=frozenset().union(*(words.seldom for words in ABBREVIATIONS.values())),
    numbered=frozenset().union(*(words.numbered for words in ABBREVIATIONS.values())),
    starters=frozenset().union(*(words.starters for words in ABBREVIATIONS.values())),
    ordinals=True,
)
"""For text in an unknown language: the words of all of them."""
