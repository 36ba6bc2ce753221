"""Text with styles, which a pipe prints without loading rich."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.text import Text


class StyledText:
    """Text whose spans have styles of rich, such as `bold red`.

    Attributes:
        spans: Text and style of each span.
    """

    __slots__ = ("spans",)

    def __init__(self, text: str = "", style: str = "") -> None:
        self.spans = [(text, style)] if text else []

    @classmethod
    def assemble(cls, *parts: str | tuple[str, str] | StyledText) -> StyledText:
        """Return one text of strings, texts, and pairs of text and style."""
        assembled = cls()
        for part in parts:
            if isinstance(part, StyledText):
                assembled.spans += part.spans
            else:
                text, style = (part, "") if isinstance(part, str) else part
                assembled.spans += [(text, style)] if text else []
        return assembled

    @property
    def plain(self) -> str:
        """Return the text without styles."""
        return "".join(text for text, _ in self.spans)

    def __len__(self) -> int:
        return len(self.plain)

    def __add__(self, added: str | StyledText) -> StyledText:
        return StyledText.assemble(self, added)

    def join(self, texts: Iterable[StyledText]) -> StyledText:
        """Return `texts` with this text between them."""
        parts: list[StyledText] = []
        for text in texts:
            parts += [self, text] if parts else [text]
        return StyledText.assemble(*parts)

    def to_rich(self) -> Text:
        """Return the text for a terminal."""
        from rich.text import Text

        return Text.assemble(*self.spans)
