"""The browser of the tests sees what is wrong with a page."""

from __future__ import annotations

import base64
from pathlib import Path

from tests.browser import LAPTOP, PHONE, Browser

DOT = base64.b64encode(
    b'<svg xmlns="http://www.w3.org/2000/svg" width="10" height="10"><rect width="10" height="10"/></svg>'
).decode()


def written(folder: Path, body: str) -> Path:
    page = folder / "page.html"
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    page.write_text(f"<!doctype html><html><head>{head}</head><body>{body}</body></html>", encoding="utf-8")
    return page


def test_a_page_that_is_right_has_nothing_to_complain_about(browser: Browser, tmp_path: Path) -> None:
    picture = f'<img loading="lazy" src="data:image/svg+xml;base64,{DOT}">'
    path = written(tmp_path, f"<p>Text <math><mi>x</mi></math></p>{picture}")
    for width in (LAPTOP, PHONE):
        page = browser.open(path, width)
        assert page.run("return window.innerWidth") == width
        assert "Text" in page.text
        assert (page.overflow, page.broken_pictures, page.foreign, page.errors) == (0, [], [], ())


def test_what_is_too_wide_is_seen_on_the_phone_alone(browser: Browser, tmp_path: Path) -> None:
    path = written(tmp_path, '<div style="width: 700px">wide</div>')
    assert browser.open(path, LAPTOP).overflow == 0
    assert browser.open(path, PHONE).overflow > 300


def test_a_picture_that_is_missing_is_seen(browser: Browser, tmp_path: Path) -> None:
    page = browser.open(written(tmp_path, '<div style="height: 9000px"></div><img loading="lazy" src="gone.png">'))
    assert [Path(address).name for address in page.broken_pictures] == ["gone.png"]


def test_a_request_to_another_host_is_seen(browser: Browser, tmp_path: Path) -> None:
    page = browser.open(written(tmp_path, '<link rel="stylesheet" href="http://127.0.0.1:9/style.css">'))
    assert page.foreign == ["http://127.0.0.1:9/style.css"]


def test_an_error_of_a_script_is_seen(browser: Browser, tmp_path: Path) -> None:
    page = browser.open(written(tmp_path, "<script>throw new Error('broken')</script>"))
    assert "broken" in " ".join(page.errors)
