"""The command line and what an agent was given."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from agent_memory.knowledge.records import Knowledge
from agent_memory.models import Resource
from agent_memory.settings import ServiceSettings

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.cli.conftest import Run


def test_compacting_now_removes_what_was_forgotten_of_documents_too(bob: Run, root: Path) -> None:
    async def give_and_forget() -> None:
        knowledge = Knowledge("bob", ServiceSettings(storage_root=str(root), embedder="none"))
        text = "The plans of the warehouse. " * 400
        with knowledge.blobs.keeping([text]) as (name,):
            await knowledge.resources.store(resource := Resource(agent_id="bob", content=text[:100], blob=name))
        await knowledge.resources.delete(resource.id)
        await knowledge.close()

    asyncio.run(give_and_forget())
    bob("compact", "-a", "bob")
    assert b"warehouse" in (root / "bob" / "knowledge.yaml").read_bytes()
    assert list((root / "bob" / "blobs").iterdir())
    bob("compact", "--now", "--yes", "-a", "bob")
    assert b"warehouse" not in (root / "bob" / "knowledge.yaml").read_bytes()
    assert not list((root / "bob" / "blobs").iterdir())
