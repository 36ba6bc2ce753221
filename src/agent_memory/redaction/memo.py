"""`RepeatedRedactor`: redacts labels that many records share once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from agent_memory.redaction.protocol import Redaction, Redactor

_SHORT: Final = 80
"""Characters of a text that is remembered; longer ones rarely come twice."""


class RepeatedRedactor:
    """A redactor that remembers the short texts of one change.

    Args:
        redactor: Reads each text the first time.

    Attributes:
        bare_words: Whether a word of a label is a secret, by word.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor, self._known = redactor, dict[str, "Redaction"]()
        self.bare_words = dict[str, bool]()

    def redact(self, text: str) -> Redaction:
        """See `Redactor.redact`."""
        if len(text) > _SHORT:
            return self._redactor.redact(text)
        redacted = self._known.get(text)
        if redacted is None:
            redacted = self._known[text] = self._redactor.redact(text)
        return redacted
