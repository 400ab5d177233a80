"""Text stays text, wherever it is shown: hostile answers of a server, reports, errors and files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from browser.stand_in import REPORT, URL, StandIn, derivations, inspection, model, translated
from browser.test_translate_page import opened, translate
from heed.inspect.page_file import Languages, ModelCard, render

if TYPE_CHECKING:
    from playwright.sync_api import Page

EVIL = (
    "<img src=x onerror=alert(1)></script><script>alert(2)</script>javascript:alert(3)"
    "\"'><svg onload=alert(4)>{{7*7}}${alert(5)}\u202eesrever\u2066"
)
STRUCTURE = {"kind", "fate", "detail", "task", "abilities"}
"""Fields with fixed values."""


def poisoned(answer: Any, evil: str = EVIL) -> Any:
    """An answer with hostile text before each of its texts."""
    if isinstance(answer, dict):
        return {key: value if key in STRUCTURE else poisoned(value, evil) for key, value in answer.items()}
    if isinstance(answer, list):
        return [poisoned(each, evil) for each in answer]
    return evil + answer if isinstance(answer, str) else answer


def assert_nothing_ran(page: Page) -> None:
    """No text became an element. The fixture `page` checks dialogs, errors and requests."""
    made = page.evaluate(
        "() => [...document.querySelectorAll('img, iframe, object, embed, form, a, svg, script')].map(e => e.outerHTML)"
    )
    assert [html for html in made if not html.startswith(('<script type="', '<svg class="lines"'))] == []
    assert page.evaluate(
        "() => [...document.querySelectorAll('*')].every(e => [...e.attributes].every(a => !/^on/i.test(a.name)))"
    )


def test_every_field_of_every_answer_is_shown_as_text(page: Page) -> None:
    server = StandIn(changed=lambda answer: poisoned(answer))
    server.answers[f"/api/models/{EVIL}toy/report"] = REPORT
    opened(page, server)
    page.get_by_label("Text to translate").fill(EVIL)
    server.answers["/api/translate"] = lambda body: {**translated({**body, "text": "ba ce\ndi"}), "path": ["toy"]}
    server.answers["/api/inspect"] = lambda body: inspection("ba ce", None)
    page.keyboard.press("Control+Enter")
    page.get_by_role("group", name="translation").wait_for()
    for name in ("Attention", "Next word", "Alternatives", "Beam"):
        page.get_by_role("tab", name=name).click()
        page.get_by_role("group", name="translation").get_by_role("button").nth(1).click()
        assert_nothing_ran(page)
    assert EVIL[:4] in page.get_by_role("region", name="translation").inner_text()
    assert EVIL in page.locator("#tagline").inner_text()


def test_reports_and_errors_are_shown_as_text(page: Page, seen: Any) -> None:
    seen.expected = ("Failed to load resource",)
    cells = EVIL.replace("\n", " ").replace("|", "")
    inline = f"**{EVIL}** `{EVIL}` [{EVIL}](javascript:alert(6)) ![{EVIL}](x)"
    markdown = f"# {EVIL}\n\n- {inline}\n\n| {cells} |\n| --- |\n| {cells} |\n\n```{EVIL}\n{EVIL}\n```\n"
    server = StandIn({"/api/models/toy/report": markdown, "/api/translate": (400, {"error": {"message": EVIL}})})
    opened(page, server)
    page.get_by_role("button", name="About this model").click()
    page.get_by_role("dialog").get_by_role("cell").first.wait_for()
    assert_nothing_ran(page)
    page.keyboard.press("Escape")
    page.get_by_label("Text to translate").fill("ba")
    page.keyboard.press("Control+Enter")
    page.get_by_role("alert").get_by_text(EVIL[:4]).wait_for()
    assert_nothing_ran(page)


def test_derivations_are_shown_as_text(page: Page) -> None:
    server = StandIn(changed=lambda answer: poisoned(answer))
    server.answers["/api/models"]["models"] = [model("toy", abilities=["derive", "translate"])]
    server.answers["/api/translate"] = lambda body: {**translated({**body, "text": "ba"}), "path": ["toy"]}
    server.answers["/api/inspect"] = derivations("kan")
    opened(page, server)
    page.get_by_label("Text to translate").fill("ba")
    page.keyboard.press("Control+Enter")
    page.get_by_role("table").first.wait_for()
    assert EVIL[:4] in page.get_by_role("table").first.inner_text()
    assert_nothing_ran(page)


def test_generated_text_is_shown_as_text(page: Page) -> None:
    server = StandIn(changed=lambda answer: poisoned(answer)).on(page.context)
    server.answers["/api/models"]["models"] = [model("lm", "language-model")]
    server.answers["/api/inspect"] = lambda body: inspection("ba ce", None)
    page.goto(URL)
    page.get_by_label("Prompt").fill(EVIL)
    page.get_by_role("button", name="Write").click()
    page.get_by_text("Seed 17").wait_for()
    page.get_by_role("button", name="Inspect", exact=True).first.click()
    page.get_by_role("group", name="translation").wait_for()
    assert_nothing_ran(page)


def test_the_page_of_heed_inspect_shows_hostile_text_as_text(page: Page, tmp_path: Path) -> None:
    class Poisoned:
        def to_json(self) -> dict[str, Any]:
            answer: dict[str, Any] = poisoned({**inspection("ba ce", None), "flags": ["loop"]})
            return answer

    out = tmp_path / "page.html"
    out.write_text(render(Poisoned(), ModelCard(EVIL, EVIL, Languages(EVIL, EVIL))), encoding="utf-8")  # type: ignore[arg-type]
    page.goto(out.as_uri())
    for name in ("Attention", "Next word", "Alternatives", "Beam"):
        page.get_by_role("tab", name=name).click()
        assert_nothing_ran(page)
    assert EVIL[:20] in page.title()


def test_a_direction_override_affects_only_its_own_word(page: Page) -> None:
    server = StandIn(changed=lambda answer: poisoned(answer, "\u202e"))
    server.answers["/api/inspect"] = lambda body: inspection("ba ce", None)
    translate(opened(page, server), "ba")
    first = page.get_by_role("group", name="source").get_by_role("button").first
    assert first.inner_text() == "[U+202E]ba"
    page.get_by_role("tab", name="Alternatives").click()
    numbers = page.locator(".alternatives .number").all_inner_texts()
    assert all(text.startswith("score") for text in numbers)


def test_the_content_policy_blocks_inserted_scripts(page: Page, seen: Any) -> None:
    seen.expected = ("Content Security Policy", "Failed to load resource")
    opened(page, StandIn())
    page.evaluate(
        """() => { const script = document.createElement("script"), part = document.createElement("div");
        window.refused = 0; document.addEventListener("securitypolicyviolation", () => { window.refused += 1; });
        script.textContent = "window.ran = 1"; part.innerHTML = "<img src=x onerror='window.ran = 1'>";
        document.body.append(script, part); }"""
    )
    page.wait_for_function("() => window.refused >= 2")
    assert page.evaluate("() => window.ran") is None
