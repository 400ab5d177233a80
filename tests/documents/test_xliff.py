"""XLIFF: targets are filled in and marked, translated ones stay, and codes move with their words."""

from __future__ import annotations

import pytest
from loud import given, translated

from heed.core.errors import DataError

V1 = """<?xml version="1.0" encoding="UTF-8"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
  <file original="a" source-language="en-US" datatype="plaintext"{declared}>
    <body>
      <trans-unit id="1">
        <source>Hello <g id="1">bold</g> dog<x id="2"/> &amp; {{name}}</source>{one}
      </trans-unit>
      <trans-unit id="2"><source>Done</source><target state="translated">Fertig</target></trans-unit>
      <trans-unit id="3"><source>New</source><target{new}</target></trans-unit>
      <trans-unit id="4" translate="no"><source>Left alone</source></trans-unit>
      <group translate="no"><trans-unit id="5"><source>Left alone</source></trans-unit></group>
      <trans-unit id="6" approved="yes"><source>Left alone</source><target>Left alone</target></trans-unit>
      <trans-unit id="7"><source>Has <bpt id="1">&lt;b></bpt>codes<ept id="1">&lt;/b></ept> and <mrk mtype="protected">\
Left alone</mrk></source><seg-source>x</seg-source>{seven}<alt-trans><source>Left alone</source><target>y</target>\
</alt-trans></trans-unit>
      <trans-unit id="8"><source><ph id="1">Left alone</ph></source></trans-unit>
    </body>
  </file>
</xliff>
"""
MARKED = ' state="needs-review-translation" state-qualifier="mt-suggestion"'
BEFORE = {"declared": "", "one": "", "new": ' state="new">New', "seven": ""}
AFTER = {
    "declared": ' target-language="de"',
    "one": f'\n        <target{MARKED}>HELLO <g id="1">BOLD</g> DOG<x id="2"/> &amp; {{name}}</target>',
    "new": f"{MARKED}>NEW",
    "seven": f'<target{MARKED}>HAS <bpt id="1">&lt;b></bpt>CODES<ept id="1">&lt;/b></ept> AND <mrk mtype="protected">'
    "Left alone</mrk></target>",
}
V2 = """<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en"{declared}>
 <file id="f1">
  <unit id="1">
   <segment{state}>
    <source>A <pc id="1">bold</pc> <ph id="2"/>dog <sc id="3"/>here<ec startRef="3"/></source>{one}
   </segment>
   <ignorable><source> left alone </source></ignorable>
   <segment state="final"><source>Done</source><target>Fertig</target></segment>
   <segment state="initial{two}</segment>
  </unit>
  <unit id="2" translate="no"><segment><source>Left alone</source></segment></unit>
 </file>
</xliff>
"""


@pytest.mark.parametrize("suffix", ["xliff", "xlf"])
def test_missing_targets_of_version_1_are_filled_in_and_marked(suffix: str) -> None:
    done = translated(f"a.{suffix}", V1.format(**BEFORE)).decode()
    assert done == V1.format(**AFTER)
    assert translated("a.xlf", done).decode() == done
    assert "Has codes and" in given("a.xlf", V1.format(**BEFORE))


def test_the_segments_of_a_source_are_kept_and_a_target_of_markup_alone_is_missing() -> None:
    def unit(target: str) -> str:
        return (
            '<xliff version="1.2"><file source-language="en" target-language="de"><body><trans-unit id="1">'
            '<source>A dog. A cat.</source><seg-source><mrk mtype="seg" mid="0">A dog.</mrk> '
            f'<mrk mtype="seg" mid="1">A cat.</mrk></seg-source>{target}</trans-unit></body></file></xliff>'
        )

    marked = '<mrk mtype="seg" mid="0">A DOG.</mrk> <mrk mtype="seg" mid="1">A CAT.</mrk>'
    empty = '<target><mrk mtype="seg" mid="0"/><mrk mtype="seg" mid="1"></mrk></target>'
    for target in ("", "<target/>", empty):
        assert translated("a.xlf", unit(target)).decode() == unit(f"<target{MARKED}>{marked}</target>")
    first = '<mrk mtype="seg" mid="0">Ein Hund.</mrk>'
    halves = f'{first} <mrk mtype="seg" mid="1">A CAT.</mrk>'
    for target in (f"<target>{first}</target>", f'<target>{first} <mrk mtype="seg" mid="1"/></target>'):
        done = translated("a.xlf", unit(target)).decode()
        assert done == unit(f"<target{MARKED}>{halves}</target>")
        assert translated("a.xlf", done).decode() == done
        assert given("a.xlf", unit(target)) == ["A cat."]
    other = '<target><mrk mtype="seg" mid="7">Ein Hund.</mrk></target>'
    for kept in (f'<target state="final">{first}</target>', other, "<target>Ein Hund.</target>"):
        assert translated("a.xlf", unit(kept)).decode() == unit(kept)


def test_tags_of_messages_are_codes() -> None:
    text = (
        '<xliff version="1.2"><file source-language="en" target-language="de"><trans-unit id="1"><source>See &lt;a '
        'href="x"&gt;our <g id="1">red</g> page&lt;/a&gt; &lt; 3&lt;br/&gt;Now</source></trans-unit></file></xliff>'
    )
    target = 'SEE &lt;a href="x"&gt;OUR <g id="1">RED</g> PAGE&lt;/a&gt; &lt; 3&lt;br/&gt;NOW'
    assert f"<target{MARKED}>{target}</target>" in translated("a.xlf", text).decode()


def test_missing_targets_of_version_2_are_filled_in_and_their_segments_translated() -> None:
    before = {"declared": "", "state": "", "one": "", "two": '"><source>Two</source><target></target>'}
    target = '<target>A <pc id="1">BOLD</pc> <ph id="2"/>DOG <sc id="3"/>HERE<ec startRef="3"/></target>'
    after = {
        "declared": ' trgLang="de"', "state": ' state="translated"', "one": f"\n    {target}",
        "two": '"><source>Two</source><target>TWO</target>',
    }  # fmt: skip
    expected = V2.format(**after).replace('state="initial"><source>Two', 'state="translated"><source>Two')
    assert translated("a.xliff", V2.format(**before)).decode() == expected
    assert translated("a.xliff", expected).decode() == expected


def test_a_file_with_a_prefix_and_line_ends_of_windows_keeps_them() -> None:
    text = (
        '<x:xliff version="1.2" xmlns:x="urn:oasis:names:tc:xliff:document:1.2"><x:file source-language="en" '
        'target-language="de-AT">\r\n<x:trans-unit id="1">\r\n<x:source>One</x:source>\r\n</x:trans-unit></x:file>'
        "</x:xliff>"
    )
    done = translated("a.xlf", text).decode()
    assert done == text.replace("</x:source>", f"</x:source>\r\n<x:target{MARKED}>ONE</x:target>")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<tmx/>", "the file starts with <tmx>, but XLIFF starts with <xliff>"),
        ("<xliff>", "not well-formed XML"),
        ('<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><xliff>&b;</xliff>', "it has a document type"),
        ('<xliff srcLang="fr"/>', "its source language is fr, but the model's is en"),
        ('<xliff><file source-language="en" target-language="fr"/></xliff>', "its target language is fr"),
    ],
)
def test_what_is_no_xliff_of_these_languages_is_refused(text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        translated("a.xliff", text)


@pytest.mark.parametrize("code", ['<x id="2" ctype="lb"/>', '<ph id="2" subType="xlf:lb"/>', "&lt;br/&gt;"])
def test_a_code_that_is_a_line_break_separates_two_texts(code: str) -> None:
    unit = f'<trans-unit id="1"><source><g id="1">One line{code}two</g> lines</source></trans-unit>'
    text = f'<xliff version="1.2"><file source-language="en"><body>{unit}</body></file></xliff>'
    assert given("a.xlf", text) == ["One line", "two lines"]
    assert f'<g id="1">ONE LINE{code}TWO</g> LINES</target>' in translated("a.xlf", text).decode()


def test_a_line_break_after_a_code_ends_a_sentence() -> None:
    source = 'See <x id="1"/>\n\nNext <g id="2"> \n<x id="3"/>\tone</g>.'
    unit = f'<trans-unit id="1" xml:space="preserve"><source>{source}</source></trans-unit>'
    text = V1.replace("<body>", f"<body>{unit}").format(**BEFORE)
    assert given("a.xlf", text)[:3] == ["See", "Next", "one."]
    assert f"{source}</target>" in translated("a.xlf", text, str).decode()
