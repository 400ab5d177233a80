"""How do the tests drive a real browser, and what must never happen on any page?

They need Chromium and the package `playwright`; without one of them they are skipped, and say so.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from toy import without_shape_checks

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Dialog, Page, Request

__all__ = ["without_shape_checks"]

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
"""No sandbox, since tests may run as root; and nothing that would ask hosts by itself."""


@dataclass
class Seen:
    """What a page did that no page of heed may do."""

    errors: list[str] = field(default_factory=list)
    """Exceptions and error messages; a refusal by the policy is one."""
    dialogs: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    """Addresses outside."""
    expected: tuple[str, ...] = ()
    """Parts of messages that a test means to cause."""

    def console(self, message: ConsoleMessage) -> None:
        """Errors and warnings."""
        if message.type in ("error", "warning") and not any(part in message.text for part in self.expected):
            self.errors.append(message.text)

    def request(self, request: Request) -> None:
        """The page's own server is on the loopback address, or is made up by the test."""
        if not request.url.startswith(("http://127.0.0.1:", "http://page.test/", "file:///", "data:", "blob:")):
            self.foreign.append(request.url)

    def dialog(self, dialog: Dialog) -> None:
        """Nothing here opens one, but hostile text would."""
        self.dialogs.append(dialog.message)
        dialog.dismiss()


def executable() -> str | None:
    """The browser of this machine; HEED_BROWSER names another."""
    return os.environ.get("HEED_BROWSER") or next(filter(None, map(shutil.which, NAMES)), None)


def missing() -> str:
    """What these tests need and is not here."""
    if find_spec("playwright") is None:
        return "no playwright: pip install playwright"
    if executable() is None:
        return "no browser: install chromium (`apt-get install chromium`), or name one in HEED_BROWSER"
    return ""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests of this folder, once for each file, where something is missing."""
    here = Path(__file__).parent
    if reason := missing():
        for item in items:
            if here in item.path.parents:
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One for all tests of a process."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=executable(), args=list(FLAGS))
        yield started
        started.close()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A fresh profile."""
    made = browser.new_context(viewport={"width": 1100, "height": 900}, reduced_motion="reduce")
    made.set_default_timeout(60_000)  # a busy machine is slow, and no test asserts on time
    yield made
    made.close()


@pytest.fixture
def seen() -> Seen:
    """What the page of this test did."""
    return Seen()


@pytest.fixture
def page(context: BrowserContext, seen: Seen) -> Iterator[Page]:
    """A page; at the end of the test it has done nothing that it may not."""
    made = context.new_page()
    made.on("console", seen.console)
    made.on("pageerror", lambda error: seen.errors.append(str(error)))
    made.on("dialog", seen.dialog)
    made.on("request", seen.request)
    yield made
    assert seen.errors == []
    assert seen.dialogs == []
    assert seen.foreign == []
