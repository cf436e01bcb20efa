"""A real browser for the tests of pages: headless Chromium from the system's packages, driven by selenium.

    def test_a_page(browser: Browser) -> None:
        page = browser.open(path, width=390)
        assert not page.overflow and not page.broken_pictures and not page.foreign

Where the machine has no Chromium (`apt-get install chromium chromium-driver`) or selenium is not installed, the tests
that need it are skipped with the reason.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

LAPTOP = 1280
PHONE = 390
HEIGHT = 900

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--hide-scrollbars",
)
PROGRAMS = ("chromium", "chromium-browser", "google-chrome")

# A page's sideways overflow in CSS pixels: what it scrolls, and what sticks out although scrolling is cut off.
OVERFLOW = """
const root = document.documentElement;
return Math.max(root.scrollWidth, document.body.scrollWidth) - root.clientWidth;
"""
BROKEN = """
return [...document.images].filter(image => !image.complete || image.naturalWidth === 0).map(image => image.src);
"""
# Pictures that wait until they are scrolled to are fetched now, and waited for.
PICTURES = """
const done = arguments[arguments.length - 1];
const settled = [...document.images].map(image => {
  image.loading = "eager";
  return image.complete ? null : new Promise(next => { image.onload = image.onerror = next; });
});
Promise.all(settled).then(() => done(null));
"""


@dataclass(frozen=True)
class Page:
    """What the browser shows now: `driver` is selenium's, for whatever is not asked here."""

    driver: Chrome
    requests: tuple[str, ...]
    errors: tuple[str, ...]

    def run(self, script: str, *arguments: Any) -> Any:
        """The value that a piece of JavaScript returns in the page."""
        return self.driver.execute_script(script, *arguments)

    @property
    def text(self) -> str:
        """The text a reader sees."""
        return str(self.run("return document.body.innerText"))

    @property
    def overflow(self) -> int:
        """By how many pixels the page is wider than the window."""
        return max(0, int(self.run(OVERFLOW)))

    @property
    def broken_pictures(self) -> list[str]:
        """The addresses of pictures that did not load."""
        return list(self.run(BROKEN))

    @property
    def foreign(self) -> list[str]:
        """What the page asked of the network: everything that is neither a file nor inside the page or the browser."""
        return [url for url in self.requests if not url.startswith(("file:", "data:", "blob:", "about:", "chrome:"))]

    def save(self, path: Path) -> Path:
        """Writes a picture of the window."""
        self.driver.save_screenshot(str(path))
        return path


@dataclass(frozen=True)
class Browser:
    """One running Chromium; `open` shows a file in it."""

    driver: Chrome

    def open(self, path: Path, width: int = LAPTOP, height: int = HEIGHT, fragment: str = "") -> Page:
        """The file as a page in a window of that size, once it and its pictures are loaded."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.driver.get("about:blank")
        self._messages()  # those of the page before, and of the browser's own first page
        self.driver.get(path.resolve().as_uri() + fragment)
        self.driver.execute_async_script(PICTURES)
        sent = [message["params"] for message in self._messages() if message["method"] == "Network.requestWillBeSent"]
        console = [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]
        return Page(self.driver, tuple(params["request"]["url"] for params in sent), tuple(console))

    def _messages(self) -> list[dict[str, Any]]:
        return [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A Chromium for the whole session, with a profile of its own."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    control = shutil.which("chromedriver")
    if program is None or control is None:
        pytest.skip("no Chromium with its driver on this machine: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(executable_path=control))
    try:
        driver.set_page_load_timeout(60)
        driver.set_script_timeout(20)
        yield Browser(driver)
    finally:
        driver.quit()
