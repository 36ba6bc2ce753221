"""Memories that are sealed in segments before they are searched: all of them, or most, with changes since."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from agent_memory.models import MEMORY, Memory
from agent_memory.store.segment_builder import seal_up

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent_memory.embeddings import EmbedderIdentity
    from agent_memory.memories import FileStorage
    from benchmarks.retrieval.data import SetItem

WAYS: Final = ("none", "all", "mixed")
_SHARES: Final = (32 / 63, 40 / 63, 42 / 63)
"""Where segments end: each is a quarter of the one before it, so that they are not merged, and a third is left over."""
_CHANGED: Final = 10
_FORGOTTEN: Final = 5
_CATEGORY: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")


def portions(items: Sequence[SetItem], way: str) -> list[Sequence[SetItem]]:
    """Return the batches that are sealed, then the unsealed rest.

    Args:
        items: In the order of storing.
        way: One of `WAYS`.
    """
    ends = {"none": [], "all": [1.0], "mixed": [*_SHARES]}[way]
    places = [0, *(round(end * len(items)) for end in ends), len(items)]
    return [items[begin:end] for begin, end in pairwise(places)]


async def filled(
    opened: Callable[[], FileStorage], items: Sequence[SetItem], way: str, identity: EmbedderIdentity | None
) -> tuple[FileStorage, dict[str, str]]:
    """Store memories and seal them; return a storage that is open, and the key of each id.

    With `mixed`, one in ten of the sealed was stored with a word more, and is changed after that; and one in five was
    stored twice, with a word more, of which the second is forgotten after that. So the memories are those of the other
    ways when they are searched.

    Args:
        opened: Opens the storage.
        items: What to store.
        way: One of `WAYS`.
        identity: Whose vectors are sealed; None for none.
    """
    keys: dict[str, str] = {}
    changed: dict[str, str] = {}
    forgotten: list[str] = []
    *sealed, rest = portions(items, way)
    for portion in sealed:
        storage, memories = opened(), list[Memory]()
        for number, item in enumerate(portion):
            draft = way == "mixed" and number % _CHANGED == 0
            memories.append(_memory(storage, item, item.text + " Draft" * draft))
            keys[memories[-1].id] = item.key
            if draft:
                changed[memories[-1].id] = item.text
            if way == "mixed" and number % _FORGOTTEN == 1:
                memories.append(_memory(storage, item, f"{item.text} Twice"))
                forgotten.append(memories[-1].id)
        await storage.store_many(memories)
        await storage.prepare()
        await storage.close()
        assert seal_up(storage.folder, MEMORY, identity, least=1) or not portion
    storage = opened()
    for one, text in changed.items():
        await storage.update(one, {"content": text})
    for one in forgotten:
        await storage.delete(one)
    memories = [_memory(storage, item, item.text) for item in rest]
    await storage.store_many(memories)
    keys |= {memory.id: item.key for memory, item in zip(memories, rest, strict=True)}
    await storage.prepare()
    return storage, keys


def _memory(storage: FileStorage, item: SetItem, text: str) -> Memory:
    return Memory(
        agent_id=storage.agent_id,
        content=text,
        timestamp=item.when,
        created_by_session=item.session,
        category=item.category if _CATEGORY.fullmatch(item.category) else "note",
    )
