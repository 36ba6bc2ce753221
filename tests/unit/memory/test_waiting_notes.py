"""Waiting notes are found below every confirmed match, marked, and only if they are asked for."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from agent_memory.memory import MemoryService
from agent_memory.memory.features import WaitingNotes
from agent_memory.memory.inbox import Inbox
from agent_memory.memory.views import view_brief_hit
from agent_memory.models import HIT_KINDS, Observation, Source
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from agent_memory.memory import Found
    from tests.support import FrozenClock

WAITING = "The staging database listens on port 5433."


@pytest.fixture
async def service(root: Path, clock: FrozenClock) -> AsyncIterator[MemoryService]:
    settings = ServiceSettings(embedder="none", storage_root=str(root))
    opened = MemoryService(FileStorage("bob", settings=settings, clock=clock), settings, clock=clock)
    opened.searcher.add_source(WaitingNotes(opened, clock))
    yield opened
    await opened.close()


@pytest.fixture
async def inbox(service: MemoryService, clock: FrozenClock) -> AsyncIterator[Inbox]:
    opened = Inbox(service, clock=clock)
    yield opened
    await opened.close()


async def hold(inbox: Inbox, content: str = WAITING) -> str:
    seen = Observation(content=content, category="note", confidence=0.8, source=Source(kind="user"), trust="high")
    return (await inbox.hold([seen], as_notes=True)).ids[0]


async def search(service: MemoryService, query: str | None, *, has_waiting: bool = True) -> Found:
    return await service.search(query, kinds=HIT_KINDS, has_waiting=has_waiting)


async def test_search_waiting_note_is_unconfirmed_and_last(service: MemoryService, inbox: Inbox) -> None:
    candidate = await hold(inbox)
    note = (await service.store("The production database has another port.")).memory
    found = await search(service, "which port does the staging database listen on")
    assert [hit.memory.id for hit in found] == [note.id, candidate]
    assert view_brief_hit(found.results[1])["status"] == "unconfirmed"
    assert "status" not in view_brief_hit(found.results[0])


async def test_search_finds_no_waiting_note_unasked(service: MemoryService, inbox: Inbox) -> None:
    await hold(inbox)
    query = "which port does the staging database listen on"
    assert list(await search(service, query, has_waiting=False)) == []
    assert list(await service.search(query)) == []
    assert list(await service.search(query, kinds={"passage", "page", "talk"}, has_waiting=True)) == []


async def test_search_finds_no_note_that_was_decided_or_waited_too_long(
    service: MemoryService, inbox: Inbox, clock: FrozenClock
) -> None:
    rejected, _ = await hold(inbox), await hold(inbox, "The canoe is in Bergen.")
    await inbox.reject([rejected])
    assert list(await search(service, "staging port")) == []
    assert len(await search(service, "canoe")) == 1
    clock.now += timedelta(days=service.settings.inbox_days + 1)
    assert list(await search(service, "canoe")) == []


async def test_overview_counts_waiting_notes(service: MemoryService, inbox: Inbox) -> None:
    await hold(inbox)
    assert (await search(service, None)).overview == {"memories": 0, "waiting": 1}
    assert (await search(service, None, has_waiting=False)).overview == {"memories": 0}
