"""`OnlyNew`: takes secrets out of the lines of a page that no page had before."""

from __future__ import annotations

import re
from itertools import groupby
from typing import TYPE_CHECKING, Final

from agent_memory.redaction import Redaction, SecretRedactor

if TYPE_CHECKING:
    from agent_memory.redaction import Redactor

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
        parts: list[str] = []
        for is_known, lines in groupby(text.split("\n"), key=lambda line: _key(line) in self._known):
            part = "\n".join(lines)
            if not is_known:
                clean = self._redactor.redact(part)
                part = clean.text
                kinds |= dict.fromkeys(clean.kinds)
            parts.append(part)
        clean_text = "\n".join(parts)
        self._known.update(map(_key, clean_text.split("\n")))
        return Redaction(clean_text, tuple(kinds))


def _key(line: str) -> str:
    return _NUMBER.sub("[^]", line)
