"""The page of an inspection is complete, contacts no host, and never runs code from its data."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import tomllib
from collections import Counter
from dataclasses import replace

import pytest
from random_models import half_trained
from word_translator import translator_of

from heed.decoding.options import SearchOptions
from heed.inspect import PAGE, Inspection, ModelCard, inspect_translation, render
from heed.inspect.page_file import SCRIPTS, STYLE, Languages

CARD = ModelCard("</title><script>alert(1)</script>", "a <b>model</b>", Languages("en", "de"))


@pytest.fixture(scope="module")
def inspected() -> Inspection:
    """Some inspection."""
    return inspect_translation(translator_of(half_trained("transformer")), "a b c", None, SearchOptions(nbest=3))


def elements(page: str, name: str) -> list[tuple[str, str]]:
    """Attributes and content of each element of a name."""
    return re.findall(rf"<{name}([^>]*)>(.*?)</{name}>", page, re.DOTALL)


def sha256(text: str) -> str:
    """The source expression of a policy."""
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def test_the_policy_allows_only_the_script_and_the_style_sheet_of_the_page(inspected: Inspection) -> None:
    page = render(inspected, CARD)
    [policy] = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    [(_, style)] = elements(page, "style")
    [script] = [text for attributes, text in elements(page, "script") if "module" in attributes]
    assert dict(rule.strip().split(" ", 1) for rule in policy.split(";")) == {
        "default-src": "'none'", "script-src": sha256(script), "style-src": sha256(style), "base-uri": "'none'",
        "form-action": "'none'",
    }  # fmt: skip


def test_the_page_names_no_host_and_loads_nothing(inspected: Inspection) -> None:
    page = render(inspected, CARD).replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?://|//[a-z]|@import|url\(|<link|<img|\bsrc=|fetch\(|XMLHttpRequest", page)


def test_the_data_is_in_the_page_and_contains_no_markup(inspected: Inspection) -> None:
    hostile = replace(inspected, flags=("</script><img src=x onerror=alert(1)>",))
    page = render(hostile, CARD)
    [data] = [text for attributes, text in elements(page, "script") if 'id="data"' in attributes]
    assert "<" not in data
    document = json.loads(data)
    assert document["inspection"] == json.loads(json.dumps(hostile.to_json()))
    assert document["model"]["name"] == CARD.name
    [(_, title)] = elements(page, "title")
    assert html.unescape(title) == f"heed inspect: {CARD.name}"
    assert "<script>alert" not in page


def test_each_script_imports_only_from_those_before_it() -> None:
    for place, name in enumerate(SCRIPTS):
        text = (PAGE / name).read_text(encoding="utf-8")
        imported = re.findall(r'^import [^;]* from "\./(.*)";$', text, re.MULTILINE)
        assert len(imported) == len(re.findall(r"^import ", text, re.MULTILINE))
        assert set(imported) <= set(SCRIPTS[:place])


def test_no_script_turns_text_into_markup() -> None:
    for path in [*PAGE.glob("*.js"), *PAGE.parent.parent.glob("serve/page/*.js")]:
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", path.read_text("utf-8")
        ), path


def test_the_files_of_the_pages_are_part_of_the_package() -> None:
    root = PAGE.parents[3]
    with (root / "pyproject.toml").open("rb") as file:
        patterns = tomllib.load(file)["tool"]["setuptools"]["package-data"]["heed"]
    package = root / "src" / "heed"
    packed = {path for pattern in patterns for path in package.glob(pattern)}
    assert {*PAGE.iterdir(), *(package / "serve" / "page").iterdir()} <= packed


def test_every_file_of_the_folder_is_part_of_the_page() -> None:
    assert {path.name for path in PAGE.iterdir()} == {*SCRIPTS, STYLE}


def test_no_two_scripts_of_the_page_declare_the_same_name() -> None:
    """They are concatenated, so a second declaration would stop the whole page."""
    declared = [
        name
        for script in SCRIPTS
        for name in re.findall(r"^(?:export )?(?:function|const|let) (\w+)", (PAGE / script).read_text(), re.MULTILINE)
    ]
    assert [name for name, count in Counter(declared).items() if count > 1] == []
