"""Which modal verbs are there, and how do the two languages pair them?"""

from __future__ import annotations

from heed.text.synthetic import english
from heed.text.synthetic.clauses import Modal
from heed.text.synthetic.german import IRREGULAR_PRESENT, with_endings

CAN, MUST, MAY, WANT = (IRREGULAR_PRESENT[verb] for verb in ("können", "müssen", "dürfen", "wollen"))
SHOULD, LIKE = with_endings("sollte"), with_endings("möchte")
PAST_CAN, PAST_MUST, PAST_MAY, PAST_WANT = (with_endings(stem) for stem in ("konnte", "musste", "durfte", "wollte"))
MODALS = (
    Modal("can", "could", None, "", CAN, PAST_CAN, CAN),
    Modal("must", "", None, "", MUST, (), MAY),
    Modal("may", "", None, "", MAY, (), MAY),
    Modal("should", "", None, "", SHOULD, (), SHOULD),
    Modal("would", "", None, "like to", LIKE, (), LIKE),
    Modal("", "", english.conjugate("want"), "to", WANT, PAST_WANT, WANT),
    Modal("", "", english.conjugate("have", "had"), "to", MUST, PAST_MUST, MUST),
    Modal("be", "be", None, "allowed to", MAY, PAST_MAY, MAY),
)
LIKES_TO = Modal("", "", english.conjugate("like"), "to", (), (), (), adverb="gern")
