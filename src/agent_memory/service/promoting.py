"""What may come into the scratchpad."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.errors import ValidationError

if TYPE_CHECKING:
    from agent_memory.storage import MemoryStorage


async def check_promotable(storage: MemoryStorage, memory_id: str) -> None:
    """Refuse what the scratchpad never shows; an unknown id passes.

    Raises:
        ValidationError: It came from an untrusted source, or was replaced.
    """
    memory = await storage.get(memory_id)
    if memory is not None and memory.trust == "low":
        raise ValidationError(
            f"{memory_id} came from an untrusted source and is never put into the scratchpad.",
            code="low_trust",
            recovery="If the user confirms it, store it again in their words.",
        )
    replacement = (await storage.superseded()).get(memory_id)
    if replacement is not None:
        raise ValidationError(
            f"{memory_id} was replaced by {replacement}, so the scratchpad does not show it.",
            code="superseded",
            recovery=f"Promote {replacement} instead.",
        )
