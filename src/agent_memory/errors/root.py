"""The root of all errors of this project."""

from __future__ import annotations

from typing import ClassVar


class AgentMemoryError(Exception):
    """Root of all errors raised by this project.

    Args:
        message: What failed, and what still works.
        code: Stable machine-readable word; the class default when omitted.
        recovery: One sentence: what the reader can do now.
    """

    default_code: ClassVar[str] = "error"
    default_recovery: ClassVar[str] = "Run memory_status for details."
    number: ClassVar[str] = "MEM-000"
    suggestions: ClassVar[tuple[str, ...]] = ()

    def __init__(self, message: str, *, code: str | None = None, recovery: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.default_code
        self.recovery = recovery or self.default_recovery

    @property
    def name(self) -> str:
        """The name of its class."""
        return type(self).__name__

    @property
    def context(self) -> dict[str, object]:
        """What it is about, by name; nothing where the message says all."""
        return {}

    @property
    def recovery_suggestions(self) -> list[str]:
        """All that may help: the recovery, and what else is known for errors of this number."""
        return list(dict.fromkeys([self.recovery, *self.suggestions]))

    def as_dict(self) -> dict[str, str]:
        """Return `{"message", "code", "recovery"}`, the shape of a failed tool result."""
        return {"message": self.message, "code": self.code, "recovery": self.recovery}
