"""Texts that items were drawn from, many at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent_memory.errors import StorageError
from agent_memory.models import EPISODE, RESOURCE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_memory.knowledge.records import Knowledge


@dataclass(frozen=True, slots=True)
class SourceText:
    """Text of a resource, or of a turn that is part of one.

    Attributes:
        source, resource: ID of the text, and ID of its resource.
        text: Whole text.
        label: Type and title, for a reader.
        order: Place of a turn in its conversation.
        speaker: Name or role of who said a turn.
    """

    source: str
    resource: str
    text: str
    label: str
    order: int = 0
    speaker: str = ""


async def load_texts(knowledge: Knowledge, source_ids: Iterable[str]) -> dict[str, SourceText | None]:
    """Return the texts of sources by ID; None for a missing one.

    Raises:
        StorageError: The records cannot be read; a long text that is missing or damaged counts as missing.
    """
    ids = list(dict.fromkeys(filter(None, source_ids)))
    turns = await knowledge.episodes.valid_among([one for one in ids if one.startswith(EPISODE.prefix)])
    whole = {turn.conversation for turn in turns.values() if turn.conversation}
    resources = await knowledge.resources.valid_among(
        [*whole, *(one for one in ids if one.startswith(RESOURCE.prefix))]
    )
    texts: dict[str, SourceText | None] = {}
    for source in ids:
        turn = turns.get(source)
        resource = resources.get((turn.conversation or "") if turn is not None else source)
        texts[source], record = None, turn or resource
        if record is not None:
            try:
                text = await knowledge.text_of(record)
            except StorageError:
                continue
            home = resource.id if resource is not None else source
            label = f"{resource.resource_type} {resource.title}".strip() if resource is not None else "a turn"
            speaker, order = (turn.speaker or turn.role.title(), turn.order) if turn is not None else ("", 0)
            texts[source] = SourceText(source, home, text, label, order, speaker)
    return texts
