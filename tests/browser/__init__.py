"""Reports in a real browser: ``tox -e browser``, and ``python -m tests.browser REPORT IMAGE`` for a picture of one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

PROGRAMS = ("chromium-headless-shell", "chromium", "google-chrome")
VARIABLE = "OPENSTACK_PREP_BROWSER"


def program() -> str:
    """Return the path of Chromium; raises LookupError."""
    given = os.environ.get(VARIABLE)
    found = given or next(filter(None, map(shutil.which, PROGRAMS)), None)
    if not found:
        raise LookupError(f"none of {', '.join(PROGRAMS)} is on PATH; install Chromium, or name it by {VARIABLE}")
    return found


@contextmanager
def started() -> Iterator[Browser]:
    """Start Chromium without a window; its sandbox is not for root."""
    words = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program(), args=words)
        try:
            yield browser
        finally:
            browser.close()
