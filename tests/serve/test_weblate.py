"""Weblate's own class for LibreTranslate gets its translations from heed, with the codes that it hides.

Parts of Weblate that need its database are replaced. It is not installed with heed, as it needs a server of its own.
"""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from serving import SENTENCE, Live

from heed.tasks.predictor import Predictor

REPLACED = ("checks", "checks.utils", "lang", "lang.models", "machinery.forms", "utils.errors", "utils.hash",
            "utils.similarity", "utils.site", "utils.version")  # fmt: skip


@pytest.fixture
def machinery(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Weblate's class."""
    pytest.importorskip("weblate", reason="Weblate is not installed")
    pytest.importorskip("django", reason="Django is not installed")
    from django.conf import settings

    if not settings.configured:
        settings.configure(CACHES={"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}})
    for name in REPLACED:
        monkeypatch.setitem(sys.modules, f"weblate.{name}", MagicMock())
    sys.modules["weblate.utils.version"].USER_AGENT = "Weblate"  # type: ignore[attr-defined]
    sys.modules["weblate.utils.site"].get_site_url = lambda: "http://localhost"  # type: ignore[attr-defined]
    from weblate.machinery.libretranslate import LibreTranslateTranslation

    return LibreTranslateTranslation


def test_weblate_gets_languages_and_translations(machinery: Any, live: Live, loaded: list[Predictor]) -> None:
    service = machinery({"url": f"{live.url}/", "key": ""})
    assert service.download_languages() == ["en", "de", "fr"]
    answer = service.download_multiple_translations("en", "de", [(SENTENCE, None), ("ba ce", None)])
    assert [answer[text][0]["text"] for text in (SENTENCE, "ba ce")] == loaded[0].translate([SENTENCE, "ba ce"])


def test_codes_that_weblate_hides_come_back(machinery: Any, live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    service = machinery({"url": f"{live.url}/", "key": ""})
    codes = [(6, 9, "&x;", None), (10, 18, "<a id=1>", None)]
    monkeypatch.setattr(service, "get_highlights", lambda text, unit: codes)
    sent, hidden = service.cleanup_text("ba ce &x; <a id=1>di", SimpleNamespace())
    assert sent == "ba ce [X6X] [X10X]di"
    [[result]] = service.download_multiple_translations("en", "de", [(sent, None)]).values()
    service.uncleanup_results(hidden, [result])
    assert "&x;" in result["text"]
    assert "<a id=1>" in result["text"]
    assert "X" not in result["text"]
