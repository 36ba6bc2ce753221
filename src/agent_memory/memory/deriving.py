"""`Deriving`: items that background work draws from what came in, many in one change.

They are bounded, validated and redacted like everything that is stored. Their ids are made of their sources, so what is
there stays as it is: as somebody edited it, or gone, if somebody forgot it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import ValidationError
from agent_memory.index.scores import numpy_if_there
from agent_memory.models import MEMORY
from agent_memory.redaction.memo import RepeatedRedactor
from agent_memory.store.cleaning import make_record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agent_memory.memory.caller import Caller
    from agent_memory.memory.path import WritePath
    from agent_memory.models import Memory
    from agent_memory.store.cleaning import Redacted


_MANY: Final = 500


@dataclass(frozen=True, slots=True)
class Derived:
    """What became of drawn items.

    Attributes:
        stored: Those that are new.
        known: Ids of those that were there already, in whatever version.
        forgotten: Ids of those whose text was forgotten; they stay so.
        refused: By id, why one cannot be kept, as a code.
    """

    stored: list[Memory] = field(default_factory=list)
    known: list[str] = field(default_factory=list)
    forgotten: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)


class Deriving:
    """Stores drawn items.

    Args:
        writing: The write path to the storage.
    """

    def __init__(self, writing: WritePath) -> None:
        self._writing, self._storage = writing, writing.storage

    async def store(self, items: Sequence[Mapping[str, Any]], caller: Caller) -> Derived:
        """Keep items, fields of memories with an id, as one change; when this returns, they are on disk.

        Raises:
            StorageError: Nothing was stored.
        """
        done = Derived()
        drafts = await asyncio.to_thread(self._drafted, items, caller, done)
        if len(drafts) >= _MANY:  # they are sealed when they are stored: numpy, imported there, would hold the loop
            await asyncio.to_thread(numpy_if_there)
        stored_texts = await self._storage.texts_of([draft.value.id for draft in drafts])
        forgotten = await self._storage.forgotten_among([draft.value.content for draft in drafts])
        new: dict[str, Redacted[Memory]] = {}
        for draft in drafts:
            if draft.value.id in stored_texts:
                done.known.append(draft.value.id)
            elif draft.value.content in forgotten or self._writing.is_purged(draft.value.content, draft.value.id):
                done.forgotten.append(draft.value.id)
            else:
                new[draft.value.id] = draft
        if new:
            await self._storage.store_many(list(new.values()))
        done.stored.extend(draft.value for draft in new.values())
        return done

    async def update_many(self, changes: Mapping[str, Mapping[str, Any]], caller: Caller) -> None:
        """Change fields of items as one change, and report each.

        Raises:
            StorageError: Nothing was changed.
        """
        if changes:
            await self._storage.update_many(changes)
        for memory_id, fields in changes.items():
            await self._writing.changed(memory_id, sorted(fields), (), caller)

    async def forgotten(self) -> set[str]:
        """Return the ids of the items that were forgotten and that are known still, or were purged.

        Raises:
            StorageError: They cannot be read.
        """
        forgotten = {memory.id for memory, _ in await self._storage.forgotten() if memory.is_item}
        return forgotten | self._writing.purged_ids()

    def _drafted(self, items: Sequence[Mapping[str, Any]], caller: Caller, done: Derived) -> list[Redacted[Memory]]:
        drafts: list[Redacted[Memory]] = []
        redactor = RepeatedRedactor(self._writing.redactor)
        for values in items:
            fields = {**values, "created_by_session": caller.session_id}
            try:
                drafts.append(make_record(MEMORY, fields, self._storage.agent_id, redactor))
            except ValidationError as error:
                done.refused[str(values.get("id"))] = error.code
        return drafts
