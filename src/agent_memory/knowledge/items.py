"""`Items`: the step of background work that draws items from what came in, by rules.

An item is a memory with a link `from` its resource or episode, and in `metadata.at` the place of its words there. Its
id is made of the step, the source and its text.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import StorageError
from agent_memory.knowledge import drawing
from agent_memory.knowledge.extraction.claims import Passage
from agent_memory.knowledge.extraction.talk import claims_of_talk
from agent_memory.knowledge.shapes import FROM
from agent_memory.models import MEMORY, Episode, derived_id, may_stand_for, to_text

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from agent_memory.knowledge.records import Knowledge
    from agent_memory.models import Memory, Resource
    from agent_memory.service import Caller, MemoryService
    from agent_memory.tasks.stage import Batch

_OF_ONE: Final = frozenset({"blob_missing", "blob_damaged"})
"""Errors that are about one record, rather than about the disk."""
_SAID: Final = frozenset({"user", "assistant"})
"""Roles whose turns are talk; what tools answer and systems say is kept and not drawn from."""


class Items:
    """Draws items from the records of one kind. See `agent_memory.tasks.stage.Stage`.

    Args:
        knowledge: What came in.
        service: Stores items.
        source: Name of the kind: resources or episodes.
        caller: For events.

    Attributes:
        name, version, source: As in `Stage`.
    """

    name = "items"
    version = 1

    def __init__(self, knowledge: Knowledge, service: MemoryService, source: str, caller: Caller) -> None:
        self._knowledge, self._service, self.source, self._caller = knowledge, service, source, caller

    async def gone(self) -> Collection[str]:
        """See `Stage.gone`."""
        return await self._service.admin.derived.forgotten()

    async def do(self, batch: Batch) -> Mapping[str, str]:
        """See `Stage.do`."""
        began, failed = time.perf_counter(), dict[str, str]()
        drawn: list[dict[str, Any]] = []
        for record in batch.records:
            try:
                text = await self._knowledge.text_of(record)
            except StorageError as error:
                if error.code not in _OF_ONE:
                    raise
                failed[record.id] = error.code
                continue
            own = await asyncio.to_thread(drawn_from, record, text)
            drawn += await self._new_of(record.id, own, batch)
        done = await self._service.admin.derived.store(drawn, self._caller)
        await self._tell(done.stored, batch.records, began)
        return failed

    async def _new_of(self, source_id: str, own: list[dict[str, Any]], batch: Batch) -> list[dict[str, Any]]:
        """Return those of the items of one source that are to be stored; a new version replaces its predecessor's."""
        known = await self._service.admin.linked_to(source_id)
        said, ids = {each.content for each in known}, {each["id"] for each in own}
        stamp = {"timestamp": to_text(self._knowledge.clock())}
        new = [{**stamp, **each} for each in own if each["id"] not in batch.never and each["content"] not in said]
        if not batch.is_again:
            return new
        kept: list[dict[str, Any]] = []
        for each in new:
            older = [one for one in known if one.id not in ids and _overlap(one, each["metadata"]["at"])]
            theirs = [one for one in older if one.pinned or one.id != item_id(source_id, one.content)]
            if theirs or any(not may_stand_for(each["trust"], one.trust) for one in older):
                continue  # somebody said it otherwise
            kept.append({**each, "supersedes": older[0].id} if older else each)
        return kept

    async def _tell(self, stored: Sequence[Memory], records: Sequence[Any], began: float) -> None:
        """Report what was drawn, conversation by conversation."""
        whole = {each.id: (each.conversation or each.id) if isinstance(each, Episode) else each.id for each in records}
        groups: dict[str, list[Memory]] = {}
        for item in stored:
            source = next(link.id for link in item.links if link.rel == FROM)
            groups.setdefault(whole[source], []).append(item)
        spent = round((time.perf_counter() - began) * 1000, 3)
        for resource_id, items in groups.items():
            await self._service.report(
                "memory:items_extracted",
                self._caller,
                resource_id=resource_id,
                item_ids=[item.id for item in items],
                item_count=len(items),
                categories=sorted({item.topic for item in items if item.topic}),
                extraction_time_ms=spent,
            )


def drawn_from(record: Resource | Episode, text: str) -> list[dict[str, Any]]:
    """Return the items of a record as fields of memories; none of what is no talk and no document. Pure."""
    if isinstance(record, Episode):
        if record.role not in _SAID or record.content_type != "message":
            return []
        if record.speaker:  # people talk; without a name it is a user and an agent, whose orders are no courtesy
            return _said(record, text)
    elif record.resource_type == "conversation" and not record.chars:
        return []  # its turns are episodes
    is_talk = not isinstance(record, Episode) and record.resource_type == "conversation"
    found = drawing.statements_of(text, is_talk=is_talk)
    return [_item(record, each.text, (each.start, each.end), drawing.RULE) for each in found]


def _said(turn: Episode, text: str) -> list[dict[str, Any]]:
    passage = Passage(turn.id, text, turn.speaker, turn.role)
    found = {f"{turn.speaker}: {claim.text}": claim for _, claim in reversed(claims_of_talk([passage]))}
    return [
        _item(turn, content, (claim.start, claim.end), claim.rule) for content, claim in reversed(list(found.items()))
    ]


def item_id(source_id: str, content: str) -> str:
    """Return the id of an item of a source that says this."""
    return derived_id(MEMORY.prefix, Items.name, source_id, hashlib.sha256(content.encode()).hexdigest())


def _item(record: Resource | Episode, content: str, at: tuple[int, int], rule: str) -> dict[str, Any]:
    moment = record.observed_at or record.timestamp
    return {
        "id": item_id(record.id, content),
        "content": content,
        "observed_at": to_text(moment),
        "source": {"kind": "extraction", "detail": rule},
        "trust": record.trust,
        "links": [{"rel": FROM, "id": record.id}],
        "metadata": {"at": [*at]},
        "group": record.group,
    }


def _overlap(item: Memory, at: Sequence[int]) -> bool:
    own = item.metadata.get("at")
    if not (isinstance(own, list) and len(own) == 2 and all(isinstance(each, int) for each in own)):  # noqa: PLR2004
        return False
    begin, end = own
    return bool(begin < at[1] and at[0] < end)  # type: ignore[operator]
