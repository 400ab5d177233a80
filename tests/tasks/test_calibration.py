"""Calibration of confidences from good and defective outputs."""

from __future__ import annotations

import pytest

from heed.decoding.hypothesis import Hypothesis
from heed.tasks.translation.calibration import learn


@pytest.mark.parametrize(("num_flagged", "num_good"), [(0, 0), (5, 0), (5, 2)])
def test_the_confidence_of_defective_outputs_is_their_share_of_good_ones(num_flagged: int, num_good: int) -> None:
    found = [Hypothesis((), -at / 10, 0.0, (-at / 10, -0.1), text=f"a dog {at}") for at in range(60)]
    references = [h.text if at < 40 else "nothing of the kind" for at, h in enumerate(found)]
    flagged = [Hypothesis((), -0.1, 0.0, (-0.05, -0.05), flags=("loop",), text="a dog a dog")] * num_flagged
    references += [h.text if at < num_good else "something else" for at, h in enumerate(flagged)]
    confidence = learn([*found, *flagged], references, 5).confidence
    assert confidence.amiss_good == (1 + num_good) / (10 + num_flagged)
    assert confidence.of(found[0]) > 0.8 > 0.2 > confidence.of(found[-1])
