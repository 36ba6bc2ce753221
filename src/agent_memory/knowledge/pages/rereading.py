"""`OnlyNew`: removes secrets from the lines that no page had before."""

from __future__ import annotations

import re
from itertools import groupby
from typing import TYPE_CHECKING, Final

from agent_memory.knowledge.topics.page import SOURCES
from agent_memory.redaction import Redaction, SecretRedactor

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_memory.redaction import Redactor

_SOURCES: Final = f"\n## {SOURCES}\n"
_PLACE: Final = re.compile(r"\([\w, -]{1,60} at \d{1,9}-\d{1,9}(?:, [\w-]{1,40})?\Z")
_MAX_PLACE_CHARS: Final = 140
_NUMBER: Final = re.compile(r"\[\^\d+\]")
_MOST_CHECKED: Final = 20_000
"""Lines of pages that are remembered at once: about 5 MB."""


class OnlyNew:
    """A redactor for a page that is made again.

    What was stored has been checked, and a long page is mostly that. An item on several pages is checked once.

    Args:
        before: The page as it was stored; lines that differ only in the numbers of footnotes are the same.
        redactor: Checks all other lines, those that follow each other as one text.
        checked: Lines of pages that were checked before; this page's lines are added.
    """

    def __init__(self, before: str, redactor: Redactor | None = None, checked: set[str] | None = None) -> None:
        self._known: set[str] = set() if checked is None else checked
        if len(self._known) > _MOST_CHECKED:
            self._known.clear()
        self._known.update(map(_key, before.split("\n")))
        self._redactor = redactor or SecretRedactor()

    def redact(self, text: str) -> Redaction:
        """See `Redactor.redact`."""
        kinds: dict[str, None] = {}
        claims, mark, notes = text.partition(_SOURCES)
        claims = self._clean(claims, kinds, lambda _: False)
        notes = self._clean(notes, kinds, lambda line: self._repeats(line, claims))
        clean_text = claims + mark + notes
        self._known.update(map(_key, clean_text.split("\n")))
        self._known.update(label for label, _ in filter(None, map(_read_footnote, notes.split("\n"))))
        return Redaction(clean_text, tuple(kinds))

    def _clean(self, text: str, kinds: dict[str, None], is_checked: Callable[[str], bool]) -> str:
        """Return lines without secrets, and add the kinds found to `kinds`."""
        parts: list[str] = []
        for is_known, lines in groupby(text.split("\n"), lambda line: _key(line) in self._known or is_checked(line)):
            part = "\n".join(lines)
            if not is_known:
                clean = self._redactor.redact(part)
                part = clean.text
                kinds |= dict.fromkeys(clean.kinds)
            parts.append(part)
        return "\n".join(parts)

    def _repeats(self, line: str, claims: str) -> bool:
        """Return True if a footnote quotes a checked claim from a source named before."""
        note = _read_footnote(line)
        return note is not None and note[0] in self._known and note[1] in claims


def _read_footnote(line: str) -> tuple[str, str] | None:
    """Return the label and the quote of a footnote that names its place in a source, else None."""
    head, mark, quote = line.rpartition('): "')
    number = _NUMBER.match(head)
    place = _PLACE.search(head, max(0, len(head) - _MAX_PLACE_CHARS))
    if not mark or number is None or place is None or not quote.endswith('"'):
        return None
    label = head[number.end() : place.start()]
    return (label, quote[:-1]) if label.startswith(": Extracted from ") else None


def _key(line: str) -> str:
    return _NUMBER.sub("[^]", line)
