"""Programs of earlier versions name other parts of the service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from agent_memory.memory import MemoryService

CALLS = {
    "admin": (
        "answer browse changed_after compact considered count embedding_status everything find_similar forgotten_with "
        "get gone_after health import_memories import_traces iter_all known_category linked_to linked_to_each nearest "
        "older_versions prepare replaced_by search surroundings tally texts_of transfer troubles valid_among vectors_of"
    ),
    "requests": "find_candidates preview preview_all forget forget_all one many get_restore_end",
    "disputes": "undecided how_many decide restore_decisions look look_behind",
    "past": "history forgotten restore bring_back restore_many load_changes",
    "alerts": "look_by look times",
    "watchers": "add remove tell",
    "sources": "add",
    "migration": "migrate rollback",
}


@pytest.mark.parametrize("part", CALLS)
def test_earlier_part_has_its_methods(service: MemoryService, part: str) -> None:
    assert [name for name in CALLS[part].split() if not callable(getattr(getattr(service, part), name))] == []


async def test_earlier_calls_do_what_they_did(service: Any) -> None:
    tea = (await service.store("Tea at four")).memory
    assert await service.admin.get(tea.id) == tea
    assert await service.admin.everything() == [tea]
    assert service.admin.backend == service.storage.backend
    assert service.admin.folder == service.storage.folder
    await service.requests.forget([tea.id])
    assert [memory.id for memory, _ in await service.past.forgotten()] == [tea.id]
    assert (await service.past.restore(tea.id)).what == "forgotten"


def test_unknown_names_are_refused(service: Any) -> None:
    with pytest.raises(AttributeError, match="'nothing'"):
        _ = service.nothing
    with pytest.raises(AttributeError, match="'nothing'"):
        _ = service.admin.nothing
