"""`Names`: which turn or document has the id that a program gave it. Read once, then what changed since."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_memory.lifecycle.facade.entries import EXTERNAL_ID

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_memory.models import Record
    from agent_memory.storage.record_storage import RecordStorage


class Names:
    """Finds records that are no memories by names of a program's own; a memory's id is made of its name."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._through: dict[str, int] = {}

    async def find(self, name: str, storages: Iterable[RecordStorage[Any]]) -> Record | None:
        """Return the record of this name that is there, whichever process stored it; None for none.

        Raises:
            StorageError: The records cannot be read.
        """
        for storage in storages:
            kind = storage.kind.name
            changed = await storage.changed_after(self._through.get(kind, 0))
            records = await storage.valid_among([one for _, one in changed.records]) if changed.records else {}
            for one, record in records.items():
                given = record.metadata.get(EXTERNAL_ID)
                if isinstance(given, str):
                    self._known[given] = one
            self._through[kind] = changed.last
            known = self._known.get(name)
            if known is not None and known.startswith(storage.kind.prefix):
                found: Record | None = await storage.get(known)
                return found
        return None
