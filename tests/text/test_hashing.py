"""Hashes of texts, and a compact set that behaves as Python's."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from heed.text.hashing import HashSet, hash_pair, hash_text

# Many keys with the same low bits, so that they belong in the same slot.
KEY = st.integers(0, 2**64 - 1) | st.integers(0, 2000).map(lambda number: number << 40)


@given(keys=st.lists(KEY, max_size=300))
@example(keys=[2, 0, 0, 1023, 2**64 - 1])
def test_the_set_behaves_as_pythons_set(keys: list[int]) -> None:
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


def test_hashes_ignore_white_space_at_the_ends_and_depend_on_the_border_of_a_pair() -> None:
    assert hash_text(" a b\t") == hash_text("a b") != hash_text("a  b")
    assert hash_pair(" a", "b ") == hash_pair("a", "b")
    assert len({hash_pair("ab", "c"), hash_pair("a", "bc"), hash_pair("", "abc"), hash_pair("abc", "")}) == 4


@settings(max_examples=30)
@given(
    keys=st.lists(st.integers(1, 2**64 - 1), min_size=1, unique=True),
    crowd=st.integers(0, 1500),
    end=st.booleans(),
)
def test_the_set_keeps_many_hashes_that_belong_in_one_slot(keys: list[int], crowd: int, end: bool) -> None:
    """Also at the end of the table, where those that find no room continue at the beginning."""
    keys = [*keys, *(range(2**64 - crowd, 2**64) if end else range(1, crowd + 1))]
    ours = HashSet()
    theirs: set[int] = set()
    for key in keys:
        assert ours.add(key) == (key not in theirs)
        theirs.add(key)
    assert len(ours) == len(theirs)
    assert not any(ours.add(key) for key in keys)


def test_ten_thousand_members_take_at_most_15_bytes_each() -> None:
    ours = HashSet()
    sizes = []
    for number in range(30_000):
        ours.add(hash_text(str(number)))
        if number >= 10_000:
            sizes.append(8 * len(ours._slots) / len(ours))
    assert 11 < min(sizes) < max(sizes) < 15
