"""Laws of every reader of bytes from strangers: only its own refusals, bounded work, linear growth, a kept corpus."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from growth import require_linear_time
from parsers import COMPILED, KEPT, PARSERS, grown, in_a_thread, most_calls, parser_of

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


@pytest.mark.parametrize("name", PARSERS)
def test_an_input_that_grows_is_read_in_calls_that_grow(name: str, tmp_path: Path) -> None:
    """Otherwise the law of linear growth would be one of refusals, or of what is read in a single call."""
    parser, is_read, grows = PARSERS[name], False, False
    for sample in parser.grows:
        once, twice = (grown(name, sample, times) for times in (100, 200))
        if not grows and parser.accepts(tmp_path, once) and parser.accepts(tmp_path, twice):
            is_read, grows = True, parser.calls(tmp_path, twice) > 1.5 * parser.calls(tmp_path, once)
    assert (is_read, grows) == (True, name not in COMPILED)


@pytest.mark.parametrize(("name", "number"), GROWING)
def test_a_long_input_takes_linear_time(name: str, number: int, tmp_path: Path) -> None:
    """A step of C may be quadratic, too."""
    parser, sample = PARSERS[name], PARSERS[name].grows[number]
    in_a_thread(lambda: require_linear_time(lambda data: parser.attempt(tmp_path, data), partial(grown, name, sample)))


def test_the_corpus_is_small_and_has_inputs_for_every_parser() -> None:
    assert all(path.stat().st_size <= 6000 for path in KEPT)
    assert {*map(parser_of, KEPT)} == PARSERS.keys()
