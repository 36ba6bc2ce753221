"""`OnlyNew`: takes secrets out of the lines of a page that its record did not have before."""

from __future__ import annotations

import re
from itertools import groupby
from typing import TYPE_CHECKING, Final

from agent_memory.redaction import Redaction, SecretRedactor

if TYPE_CHECKING:
    from agent_memory.redaction import Redactor

_NUMBER: Final = re.compile(r"\[\^\d+\]")


class OnlyNew:
    """A redactor for a page made anew: what was stored has been looked through, and a long page is mostly that.

    Args:
        before: The page as it was stored; lines that differ in the numbers of footnotes alone are the same.
        redactor: Looks through all other lines, those that follow each other as one text.
    """

    def __init__(self, before: str, redactor: Redactor | None = None) -> None:
        self._known = set(map(_key, before.split("\n")))
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
        return Redaction("\n".join(parts), tuple(kinds))


def _key(line: str) -> str:
    return _NUMBER.sub("[^]", line)
