"""Memories of a project that are older than its file allows go to the archive."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.care.archive import archive_expired

if TYPE_CHECKING:
    from tests.unit.care.conftest import House


async def test_old_project_memories_are_archived_and_restorable(house: House) -> None:
    old = await house.keep("The port is 8080.", days=8, project="kestrel")
    new = await house.keep("The port is 9090.", days=6, project="kestrel")
    pinned = await house.keep("Releases are tagged.", days=8, project="kestrel", pinned=True)
    elsewhere = await house.keep("The office is in Oslo.", days=900, project="heron")
    low = house.caller
    archived = await archive_expired(house.service, "kestrel", 7, house.clock(), low)
    assert [record.id for record in archived] == [old.id]
    assert set(await house.live()) == {new.id, pinned.id, elsewhere.id}
    assert "retain_days" in archived[0].why
    await house.archive.restore([old.id])
    assert old.id in await house.live()
    assert await archive_expired(house.service, "owl", 7, house.clock(), low) == []
