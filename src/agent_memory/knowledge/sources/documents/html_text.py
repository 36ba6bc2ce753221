"""Words of an HTML page. Pure."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Final

from typing_extensions import override

_HIDDEN: Final = frozenset({"head", "noscript", "script", "style", "template"})
_BLOCKS: Final = frozenset({
    "address", "article", "aside", "blockquote", "br", "dd", "div", "dl", "dt", "figcaption", "footer", "form", "h1",
    "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "nav", "ol", "p", "pre", "section", "table", "tr", "ul",
})  # fmt: skip
_HEADING: Final = re.compile(r"h([1-6])")
_SPACES: Final = re.compile(r"[^\S\n]+")
_BREAKS: Final = re.compile(r" ?\n ?(?:\n ?)*")


class _WordCollector(HTMLParser):
    """Collects words with a line for each block, as in Markdown."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.title = ""
        self._hidden = 0
        self._is_title = False

    @override
    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin a line for a block."""
        self._hidden += tag in _HIDDEN
        self._is_title = tag == "title"
        if tag in _BLOCKS:
            heading = _HEADING.fullmatch(tag)
            mark = f"\n{'#' * int(heading[1])} " if heading else "- " if tag == "li" else ""
            self.parts.append(f"\n{mark}")
        elif tag in {"td", "th"}:
            self.parts.append(" | ")

    @override
    def handle_endtag(self, tag: str) -> None:
        """End the line of a block."""
        self._hidden = max(0, self._hidden - (tag in _HIDDEN))
        self._is_title = False
        if tag in _BLOCKS:
            self.parts.append("\n\n" if tag == "p" or _HEADING.fullmatch(tag) else "\n")

    @override
    def handle_data(self, data: str) -> None:
        """Add words that a reader sees."""
        if self._is_title:
            self.title += data
        elif not self._hidden:
            self.parts.append(data.replace("\n", " "))


def read_html(page: str) -> tuple[str, str]:
    """Return the title and the words of a page."""
    collector = _WordCollector()
    collector.feed(page)
    collector.close()
    words = _SPACES.sub(" ", "".join(collector.parts))
    text = _BREAKS.sub(lambda gap: "\n\n" if gap[0].count("\n") > 1 else "\n", words)
    return " ".join(collector.title.split()), text.strip()
