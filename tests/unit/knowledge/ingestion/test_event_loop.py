"""What reads a text runs in a worker thread: the event loop of a session goes on meanwhile."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

from agent_memory import ingestion
from agent_memory.ingestion import MemoryIngestor, runner_of
from agent_memory.knowledge import summaries
from agent_memory.knowledge.entities import entity_stage
from agent_memory.knowledge.entities import entity_stage as entities
from agent_memory.knowledge.intake import ingest
from agent_memory.knowledge.intake.ingest import Ingest
from agent_memory.knowledge.pages import assignment as filing
from agent_memory.knowledge.passages import item_stage as items
from tests.unit.knowledge.ingestion.test_contract import SAID, SESSION

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

    from agent_memory.knowledge.records import Knowledge
    from agent_memory.memory import MemoryService

READERS: tuple[tuple[Any, str], ...] = (
    (ingest, "parse_file"),
    (ingest, "draft_resource"),
    (ingest, "draft_episode"),
    (items, "drawn_from"),
    (items, "_leave_known"),
    (entity_stage, "extract_entities"),
    (entities, "resolve"),
    (summaries, "choose_quotes"),
    (filing, "_build_filing"),
)


async def test_ingest_readers_run_off_the_event_loop(
    knowledge: Knowledge, service: MemoryService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: dict[str, set[int]] = {}

    def watched(name: str, reader: Callable[..., Any]) -> Callable[..., Any]:
        def read(*args: Any, **more: Any) -> Any:
            threads.setdefault(name, set()).add(threading.get_ident())
            return reader(*args, **more)

        return read

    for owner, name in READERS:
        monkeypatch.setattr(owner, name, watched(name, getattr(owner, name)))
    page, chat = tmp_path / "page.md", tmp_path / "chat.jsonl"
    page.write_text(
        "# Harbour\n\n" + "".join(f"## Pier {n}\n\nAda Lovelace opens pier {n} at nine.\n\n" for n in range(40))
    )
    turns = [{"speaker": "Ada", "text": f"Tobias Reuter keeps {number} boxes of tea in Turin."} for number in range(40)]
    chat.write_text("\n".join(map(json.dumps, turns)))
    for path in (page, chat):
        await Ingest(knowledge, service.report).file(path)
    await runner_of(knowledge, service, at_once=True).run()
    async with MemoryIngestor(knowledge=knowledge, service=service) as ingestor:
        await ingestor.ingest_turn(ingestion.Turn("I met Ada Lovelace in Turin.", "Noted.", timestamp=SAID), SESSION)
        await ingestor.background.settle()
    assert threads.keys() == {name for _, name in READERS}
    on_the_loop = [name for name, idents in threads.items() if threading.get_ident() in idents]
    assert on_the_loop == []
