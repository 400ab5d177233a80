"""Laws of every reader of bytes from strangers: only its own refusals, bounded work, linear growth, a kept corpus."""

from __future__ import annotations

from pathlib import Path

import pytest
from parsers import KEPT, PARSERS, grown, most_calls, parser_of

GROWING = [(name, number) for name, parser in PARSERS.items() for number in range(len(parser.grows))]


@pytest.mark.parametrize("name", PARSERS)
def test_every_kept_nasty_input_is_read_or_refused_with_bounded_work(name: str, tmp_path: Path) -> None:
    PARSERS[name].accepts(tmp_path, b"")  # what is compiled or imported once
    for path in KEPT:
        data = path.read_bytes()
        assert PARSERS[name].calls(tmp_path, data) <= most_calls(data), path.name


@pytest.mark.parametrize(("name", "number"), GROWING)
def test_twice_as_much_input_takes_twice_as_many_calls(name: str, number: int, tmp_path: Path) -> None:
    parser, sample = PARSERS[name], PARSERS[name].grows[number]
    parser.accepts(tmp_path, grown(name, sample, 2))  # what is compiled or imported once
    once, twice = (parser.calls(tmp_path, grown(name, sample, times)) for times in (100, 200))
    assert twice <= 2.1 * once + 200


@pytest.mark.parametrize(("name", "number"), GROWING)
def test_a_long_input_takes_linear_time(name: str, number: int, tmp_path: Path) -> None:
    """Quadratic time, which a step of C may take as well, would exceed the time limit of tests."""
    PARSERS[name].accepts(tmp_path, grown(name, PARSERS[name].grows[number], 2000))


def test_the_corpus_is_small_and_has_inputs_for_every_parser() -> None:
    assert all(path.stat().st_size <= 6000 for path in KEPT)
    assert {*map(parser_of, KEPT)} == PARSERS.keys()
