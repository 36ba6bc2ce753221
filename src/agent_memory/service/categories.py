"""Which categories there are: one rule for the command line and whoever else takes one from a person."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from agent_memory.errors import ValidationError
from agent_memory.models import CATEGORIES

if TYPE_CHECKING:
    from agent_memory.storage import MemoryStorage


async def known_category(storage: MemoryStorage, name: str) -> str:
    """Return a category in lower case, if it is built in or a memory of this agent has it already.

    Others come in by import or through the library: a word that was mistyped should not begin one.

    Raises:
        ValidationError: There is no such category.
        StorageError: The memories cannot be read.
    """
    folded = name.strip().lower()
    if folded in CATEGORIES:
        return folded
    own = sorted({memory.category async for memory in storage.iter_all()} - set(CATEGORIES))
    if folded in own:
        return folded
    near = get_close_matches(folded, [*CATEGORIES, *own], 1)
    meant = f" Did you mean {near[0]!r}?" if near else ""
    raise ValidationError(
        f"There is no category {name[:64]!r}.{meant}",
        code="unknown_category",
        recovery=f"There are: {', '.join([*CATEGORIES, *own])}.",
    )
