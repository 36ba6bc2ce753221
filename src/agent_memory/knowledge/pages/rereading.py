"""`OnlyNew`: removes secrets from the lines that a page did not have before."""

from __future__ import annotations

import re
from itertools import groupby
from typing import TYPE_CHECKING, Final

from agent_memory.redaction import Redaction, SecretRedactor

if TYPE_CHECKING:
    from agent_memory.redaction import Redactor

_NUMBER: Final = re.compile(r"\[\^\d+\]")


class OnlyNew:
    """A redactor for a page that is made again.

    What was stored has been checked, and a long page is mostly that.

    Args:
        before: Text with the checked lines; lines that differ only in the numbers of footnotes are the same.
        redactor: Checks all other lines, those that follow each other as one text.
    """

    def __init__(self, before: str, redactor: Redactor | None = None) -> None:
        self._known = frozenset(map(_key, before.split("\n")))
        self._redactor = redactor or SecretRedactor()

    def redact(self, text: str) -> Redaction:
        """See `Redactor.redact`."""
        kinds: dict[str, None] = {}
        parts: list[str] = []
        for is_known, lines in groupby(text.split("\n"), lambda line: _key(line) in self._known):
            part = "\n".join(lines)
            if not is_known:
                clean = self._redactor.redact(part)
                part = clean.text
                kinds |= dict.fromkeys(clean.kinds)
            parts.append(part)
        return Redaction("\n".join(parts), tuple(kinds))


def _key(line: str) -> str:
    return _NUMBER.sub("[^]", line)
