"""A real browser for the tests, and checks of what no page may do.

They need Chromium and the package `playwright`; without one of them they are skipped, with the reason.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from toy import without_shape_checks

if TYPE_CHECKING:
    from playwright.sync_api import (
        Browser,
        BrowserContext,
        ConsoleMessage,
        Dialog,
        Error,
        Page,
        Request,
        ViewportSize,
    )

__all__ = ["without_shape_checks"]

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
"""No sandbox, since tests may run as root; and no requests by the browser itself."""

VIEWPORT: ViewportSize = {"width": 1100, "height": 900}


@dataclass
class Seen:
    """Actions of a page that no page of heed may take."""

    errors: list[str] = field(default_factory=list)
    """Exceptions and error messages, including violations of the content policy."""
    dialogs: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    """URLs of other hosts."""
    expected: tuple[str, ...] = ()
    """Parts of messages that a test causes on purpose."""

    def console(self, message: ConsoleMessage) -> None:
        """Errors and warnings."""
        if message.type in ("error", "warning") and not any(part in message.text for part in self.expected):
            self.errors.append(message.text)

    def request(self, request: Request) -> None:
        """Record requests to other hosts than the server of the page, which is on the loopback address or a fake."""
        if not request.url.startswith(("http://127.0.0.1:", "http://page.test/", "file:///", "data:", "blob:")):
            self.foreign.append(request.url)

    def error(self, error: Error) -> None:
        """Record uncaught exceptions."""
        self.errors.append(str(error))

    def dialog(self, dialog: Dialog) -> None:
        """Record dialogs: no page opens one, but hostile text would."""
        self.dialogs.append(dialog.message)
        dialog.dismiss()


def executable() -> str | None:
    """The browser: HEED_BROWSER, or one that is installed."""
    return os.environ.get("HEED_BROWSER") or next(filter(None, map(shutil.which, NAMES)), None)


def missing() -> str:
    """Why these tests cannot run; empty if they can."""
    if find_spec("playwright") is None:
        return "no playwright: pip install playwright"
    if executable() is None:
        return "no browser: install chromium (`apt-get install chromium`), or name one in HEED_BROWSER"
    return ""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests of this folder if something is missing."""
    here = Path(__file__).parent
    if reason := missing():
        for item in items:
            if here in item.path.parents:
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """One for the tests of this folder. It ends with them, as its event loop would be in the way of those of others."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=executable(), args=list(FLAGS))
        yield started
        started.close()


@contextmanager
def new_context(browser: Browser) -> Iterator[BrowserContext]:
    """A fresh profile."""
    context = browser.new_context(viewport=VIEWPORT, reduced_motion="reduce")
    context.set_default_timeout(60_000)  # a busy machine is slow, and no test asserts on time
    yield context
    context.close()


@contextmanager
def observed(page: Page, seen: Seen) -> Iterator[Page]:
    """Record what a page does, and fail if it did something that it may not."""
    listeners = {"console": seen.console, "pageerror": seen.error, "dialog": seen.dialog, "request": seen.request}
    for event, listener in listeners.items():
        page.on(event, listener)  # type: ignore[call-overload]
    try:
        yield page
    finally:
        for event, listener in listeners.items():
            page.remove_listener(event, listener)
    assert seen.errors == []
    assert seen.dialogs == []
    assert seen.foreign == []


@pytest.fixture(scope="package")
def shared_page(browser: Browser) -> Iterator[Page]:
    """A page that tests use in turn: another one takes longer to make than most tests."""
    with new_context(browser) as context:
        yield context.new_page()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A fresh profile for a test that changes more than `page` restores, such as the clock."""
    with new_context(browser) as context:
        yield context


@pytest.fixture
def seen() -> Seen:
    """Forbidden actions of the page of this test."""
    return Seen()


@pytest.fixture
def fresh_page(context: BrowserContext, seen: Seen) -> Iterator[Page]:
    """A page in a fresh profile."""
    with observed(context.new_page(), seen) as page:
        yield page


@pytest.fixture
def page(shared_page: Page, seen: Seen) -> Iterator[Page]:
    """A page. Its routes, window and connection are restored after the test."""
    try:
        with observed(shared_page, seen) as page:
            yield page
    finally:
        shared_page.goto("about:blank")
        shared_page.context.unroute_all()
        shared_page.context.set_offline(False)
        shared_page.set_viewport_size(VIEWPORT)
        shared_page.emulate_media(color_scheme="light")
        shared_page.mouse.move(0, 0)
