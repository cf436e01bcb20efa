"""What every HTML page of this project has to be: balanced, of its own, with a name for every picture."""

from __future__ import annotations

import re
from html.parser import HTMLParser

VOID = {"meta", "br", "hr", "img", "link", "input"}


class Balance(HTMLParser):
    """Fails on a tag that is closed without having been opened; `open` holds what was never closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag, f"</{tag}> at {self.getpos()}"


def assert_complete(page: str) -> None:
    """The page is well-formed, has a title, needs nothing from elsewhere, and tells a screen reader of its pictures."""
    balance = Balance()
    balance.feed(page)
    assert balance.open == []
    assert re.search(r"<title>[^<]+</title>", page)
    elsewhere = re.search(r'(?:src|href)="(?!#)|@import|url\((?!#)|<script', page)
    assert not elsewhere, "the page must open without a network"
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids)), "an id is given twice"
    assert '<meta name="viewport" content="width=device-width' in page
    for svg in re.findall(r"<svg [^>]*>", page):
        assert 'role="img"' in svg and re.search(r'aria-label="[^"]+"', svg), svg
