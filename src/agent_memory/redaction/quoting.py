"""What a caller gave, as an error may repeat it."""

from __future__ import annotations

from typing import Final

from agent_memory.redaction.labels import redact_label
from agent_memory.redaction.redactor import SecretRedactor

_LOOKED_AT: Final = 200
_SHOWN: Final = 40
_REDACTOR: Final = SecretRedactor()


def shortened(given: object) -> str:
    """Return the first 40 characters of what a caller gave, without secrets."""
    try:
        text = str(given)
    except ValueError:  # a number of more digits than Python writes, or one within
        text = f"a value of type {type(given).__name__}"
    return str(redact_label(text[:_LOOKED_AT], _REDACTOR)[0])[:_SHOWN]


def quoted(given: object) -> str:
    """Return the same in quotes, with what cannot be printed escaped."""
    return repr(shortened(given))
