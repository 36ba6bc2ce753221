"""Page of a topic: sections of claims with footnotes. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import date, datetime


_ID: Final = re.compile(r"[a-z]{3}-[0-9a-f]{12}")
SOURCES: Final = "Sources"
"""Title of the part that lists the footnotes; no section has it."""


@dataclass(frozen=True, slots=True)
class Footnote:
    """Place of the words of a claim.

    Attributes:
        source: Id of the episode or resource: `its text[start:end]` is the quote.
        start: First character of the quote there.
        end: Behind its last.
        quote: The very words; empty if the claim has them.
        label: What the source is, for a reader: "conversation with Lea".
        resource: Id of the resource that the source is part of; empty if it is one itself, or has none.
        item: Id of the item that the claim was; empty where no item is kept.
    """

    source: str
    start: int
    end: int
    quote: str
    label: str = ""
    resource: str = ""
    item: str = ""

    def __post_init__(self) -> None:
        """Check the ids and the place.

        Raises:
            ValueError: An ID or a place is invalid.
        """
        for name, needed in (("source", True), ("resource", False), ("item", False)):
            value = getattr(self, name)
            if (needed or value) and not _ID.fullmatch(value):
                raise ValueError(f"the {name} of a footnote is no id")
        if not 0 <= self.start <= self.end:
            raise ValueError("a footnote ends before it starts")

    @property
    def place(self) -> tuple[str, int, int]:
        """Source and characters, equal for the same words."""
        return self.source, self.start, self.end


@dataclass(frozen=True, slots=True)
class PageClaim:
    """One statement of a page.

    Attributes:
        text: Statement that can be read alone; in Markdown if a person wrote it.
        notes: Where it was said; at least one, unless a person wrote it on the page.
        said: On which day.
        is_edited: A person changed the words on the page: they stay as they are.
        is_untrusted: It has low trust: they are a stranger's words.
    """

    text: str
    notes: tuple[Footnote, ...] = ()
    said: date | None = None
    is_edited: bool = False
    is_untrusted: bool = False

    def __post_init__(self) -> None:
        """Check the text.

        Raises:
            ValueError: The text is empty.
        """
        if not self.text:
            raise ValueError("a claim has no text")

    @property
    def items(self) -> tuple[str, ...]:
        """The ids of the items it was made of."""
        return tuple(note.item for note in self.notes if note.item)

    @property
    def is_by_hand(self) -> bool:
        """True if a person wrote or changed it on the page."""
        return self.is_edited or not self.notes


@dataclass(frozen=True, slots=True)
class OwnText:
    """Lines of a person that are not claims, kept unchanged."""

    text: str


Line = PageClaim | OwnText


@dataclass(frozen=True, slots=True)
class Section:
    """Heading with its lines; only the first may be empty."""

    title: str
    lines: tuple[Line, ...] = ()

    @property
    def claims(self) -> tuple[PageClaim, ...]:
        """Its claims, in order."""
        return tuple(line for line in self.lines if isinstance(line, PageClaim))


@dataclass(frozen=True, slots=True)
class Page:
    """A topic's page, or one part of it.

    Attributes:
        title: Title for readers.
        sections: Sections in order.
        consolidated_at: When it was made; None as long as it never was.
        part: Which part, from 1.
        parts: Of how many.
        taken_out: Ids of items that a person took off the page: they do not come back.
        about: What the page covers, one line below its title; empty for none.
    """

    title: str
    sections: tuple[Section, ...] = ()
    consolidated_at: datetime | None = None
    part: int = 1
    parts: int = 1
    taken_out: tuple[str, ...] = ()
    about: str = ""

    def __post_init__(self) -> None:
        """Check the titles of the sections.

        Raises:
            ValueError: A section is called as the list of sources is or as another section, or has no title and is not
                the first or has no lines.
        """
        if len({section.title for section in self.sections}) < len(self.sections):
            raise ValueError("two sections of a page have the same title")
        if self.sections and not self.sections[0].title and not self.sections[0].lines:
            raise ValueError("a section of a page without a title has no lines")
        if any(section.title == SOURCES for section in self.sections):
            raise ValueError(f"no section of a page is called {SOURCES}")
        if any(not section.title for section in self.sections[1:]):
            raise ValueError("only the first section of a page has no title")

    @property
    def claims(self) -> tuple[PageClaim, ...]:
        """All claims, in order."""
        return tuple(claim for section in self.sections for claim in section.claims)

    @property
    def notes(self) -> tuple[Footnote, ...]:
        """All footnotes, in the order of their numbers."""
        return tuple(note for claim in self.claims for note in claim.notes)

    @property
    def items(self) -> tuple[str, ...]:
        """The ids of its items, each once."""
        return tuple(dict.fromkeys(item for claim in self.claims for item in claim.items))

    @property
    def resources(self) -> tuple[str, ...]:
        """IDs of resources, or of sources without a resource."""
        return tuple(dict.fromkeys(note.resource or note.source for note in self.notes))

    def lines(self) -> Iterator[tuple[str, Line]]:
        """Yield every line with the title of its section."""
        for section in self.sections:
            for line in section.lines:
                yield section.title, line


def with_lines(page: Page, lines: list[tuple[str, Line]]) -> Page:
    """Return a page with other lines, grouped by section title."""
    grouped: dict[str, list[Line]] = {}
    for title, line in lines:
        grouped.setdefault(title, []).append(line)
    return replace(
        page, sections=tuple(Section(title, tuple(section_lines)) for title, section_lines in grouped.items())
    )
