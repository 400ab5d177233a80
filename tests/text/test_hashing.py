"""Does the compact set behave as Python's, and do hashes tell texts apart?"""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from heed.text.hashing import HashSet, hash_pair, hash_text

# Many keys with the same low bits, so that they want the same slot.
KEY = st.integers(0, 2**64 - 1) | st.integers(0, 2000).map(lambda number: number << 40)


@given(keys=st.lists(KEY, max_size=300))
@example(keys=[2, 0, 0, 1023, 2**64 - 1])
def test_the_set_answers_as_pythons_set_does(keys: list[int]) -> None:
    ours, theirs = HashSet(), set[int]()
    for key in keys:
        assert ours.add(key) == (key not in theirs)
        theirs.add(key)
    assert len(ours) == len(theirs)


def test_the_set_keeps_all_its_members_when_it_grows() -> None:
    keys = [hash_text(str(number)) for number in range(20_000)]
    ours = HashSet()
    assert all(ours.add(key) for key in keys)
    assert not any(ours.add(key) for key in keys)
    assert len(ours) == len(set(keys)) == 20_000


def test_a_hash_is_the_same_in_every_process() -> None:
    assert hash_text("ein Haus") == 0x2266EA5A502BE87C
    assert hash_pair("ein Haus", "a house") == 0x2730C7C6AE8E8E24


def test_white_space_at_the_ends_does_not_count_and_the_border_of_a_pair_does() -> None:
    assert hash_text(" a b\t") == hash_text("a b") != hash_text("a  b")
    assert hash_pair(" a", "b ") == hash_pair("a", "b")
    assert len({hash_pair("ab", "c"), hash_pair("a", "bc"), hash_pair("", "abc"), hash_pair("abc", "")}) == 4
