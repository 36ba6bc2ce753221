"""What a redactor is and what it answers. No detection here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol, runtime_checkable

MARKER_PREFIX: Final = "[redacted:"


@dataclass(frozen=True, slots=True)
class Redaction:
    """A text without its secrets, and what kinds were taken out of it (each once, in order of appearance)."""

    text: str
    kinds: tuple[str, ...] = ()


class Finding(NamedTuple):
    """One secret: `text[start:end]`, and its kind in kebab-case."""

    start: int
    end: int
    kind: str


@runtime_checkable
class Redactor(Protocol):
    """Anything that takes secrets out of text. Must be idempotent and must not raise on any string."""

    def redact(self, text: str) -> Redaction:
        """Return `text` with each secret replaced by `[redacted:<kind>]`."""
        ...
