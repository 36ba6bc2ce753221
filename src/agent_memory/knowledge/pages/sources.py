"""The texts that items were drawn from, many at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.errors import StorageError
from agent_memory.knowledge.facade.layers import Passage
from agent_memory.knowledge.facade.shapes import source_of
from agent_memory.models import EPISODE, RESOURCE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_memory.knowledge.records import Knowledge
    from agent_memory.models import Episode, Memory, Resource


async def sources_of(knowledge: Knowledge, memories: Sequence[Memory]) -> dict[str, Passage | None]:
    """Return for each id that one of the memories names as its source, the text; None for one that is gone.

    Raises:
        StorageError: The records cannot be read; a long text that is gone or damaged counts as gone.
    """
    named = dict.fromkeys(filter(None, map(source_of, memories)))
    turns = await knowledge.episodes.valid_among([one for one in named if one.startswith(EPISODE.prefix)])
    whole = {turn.conversation for turn in turns.values() if turn.conversation}
    resources = await knowledge.resources.valid_among(
        [*whole, *(one for one in named if one.startswith(RESOURCE.prefix))]
    )
    found: dict[str, Passage | None] = {}
    for one in named:
        turn = turns.get(one)
        resource = resources.get((turn.conversation or "") if turn is not None else one)
        found[one] = await _passage(knowledge, one, turn, resource)
    return found


async def _passage(
    knowledge: Knowledge, source: str, turn: Episode | None, resource: Resource | None
) -> Passage | None:
    record = turn or resource
    if record is None:
        return None
    try:
        text = await knowledge.text_of(record)
    except StorageError:
        return None
    label = f"{resource.resource_type} {resource.title}".strip() if resource is not None else "a turn"
    speaker, order = (turn.speaker or turn.role.title(), turn.order) if turn is not None else ("", 0)
    resource_id = resource.id if resource is not None else source
    return Passage(source, resource_id, text, label, record.trust, speaker, order=order)
