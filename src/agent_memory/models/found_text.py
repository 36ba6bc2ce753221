"""Texts that are not memories in the form of hits, and their origin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final, Literal, get_args

from pydantic import Field

from agent_memory.models.memory import Memory
from agent_memory.models.record import IdOf

HitKind = Literal["note", "passage", "page", "talk"]
"""What a hit is: a memory that was noted, a part of a document, the page of a topic, or a part of a conversation."""
HIT_KINDS: Final[frozenset[HitKind]] = frozenset(get_args(HitKind))
NOTES: Final[frozenset[HitKind]] = frozenset({"note"})


@dataclass(frozen=True, slots=True)
class HitOrigin:
    """Origin of the text of a hit.

    Attributes:
        kind: What the hit is.
        source: Title of the document, page or conversation; empty for a note.
        speaker: Who said it, by name or role; empty if that is not known.
        is_confirmed: False for a text that waits in the inbox for a person's yes.
        is_expired: True for a text that is shown by its ID alone, since it has expired or was withdrawn.
        replaced_by: ID of the version of the document that replaced this text; empty if none did.
    """

    kind: HitKind = "note"
    source: str = ""
    speaker: str = ""
    is_confirmed: bool = True
    is_expired: bool = False
    replaced_by: str = ""


class FoundText(Memory):
    """A turn, document or page in the form of a memory. Never stored."""

    id: Annotated[str, IdOf("epi|res|top")] = Field()
    supersedes: Annotated[str, IdOf("epi|res|top")] | None = None
