"""Storing what came in: as one change, once, long texts before the records that name them."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, Literal

from agent_memory.errors import ValidationError
from agent_memory.knowledge.intake.drafting import named
from agent_memory.models.kind import R

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agent_memory.knowledge.intake.drafting import Draft
    from agent_memory.knowledge.records import Knowledge
    from agent_memory.store.record_storage import RecordStorage

_ATTEMPTS: Final = 8


@dataclass(frozen=True, slots=True)
class Ingested(Generic[R]):
    """What became of one text.

    Attributes:
        record: The record that has it.
        outcome: `new`, or `known`: it was taken in before.
        redacted: Kinds of secrets that were taken out of it.
    """

    record: R
    outcome: Literal["new", "known"]
    redacted: tuple[str, ...] = ()


async def store_new(knowledge: Knowledge, storage: RecordStorage[R], drafts: Sequence[Draft[R]]) -> list[Ingested[R]]:
    """Store some drafts as one change, long texts first; what is there stays as it is.

    A cancelled call still finishes, so that long texts are given free for sweeping again; its result is dropped.

    Raises:
        StorageError: Nothing was stored, unless the message says that this is not known.
    """
    return await asyncio.shield(asyncio.ensure_future(_store(knowledge, storage, drafts)))


async def _store(knowledge: Knowledge, storage: RecordStorage[R], drafts: Sequence[Draft[R]]) -> list[Ingested[R]]:
    stored = await storage.get_many([draft.record.value.id for draft in drafts])
    placed = [await _placed(storage, draft, stored) for draft in drafts]
    new = [draft for draft, known in placed if known is None]
    with ExitStack() as held:
        texts = [draft.text for draft in new if draft.text]
        await asyncio.to_thread(held.enter_context, knowledge.blobs.keeping(texts))
        if new:
            await storage.store_many([draft.record for draft in new])
    return [
        Ingested(draft.record.value if known is None else known, "new" if known is None else "known", draft.redacted)
        for draft, known in placed
    ]


async def _placed(storage: RecordStorage[R], draft: Draft[R], stored: Mapping[str, R]) -> tuple[Draft[R], R | None]:
    """Return a draft with an id that is free, or the record that has its text in its place.

    Args:
        storage: Storage of the records.
        draft: Draft to place.
        stored: Stored records by the first IDs of the drafts.
    """
    kind, said = storage.kind, storage.kind.text_of(draft.record.value)
    own, known = draft, stored.get(draft.record.value.id)
    for attempt in range(1, _ATTEMPTS + 1):
        if known is None or draft.has_name or kind.text_of(known) == said:
            return own, known
        own = named(draft, kind.prefix, attempt)
        known = await storage.get(own.record.value.id)
    raise ValidationError("Nothing was stored: no id was free for it.", code="id_taken")
