"""Demo memory: one invented year of a boat builder who writes software."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_memory.files.yaml_loader import load_yaml
from agent_memory.knowledge.intake.drafts import ReceivedDocument, ReceivedTurn
from agent_memory.knowledge.intake.ingest import Ingest
from agent_memory.knowledge.pipeline.background_work import runner_of
from agent_memory.knowledge.records import Knowledge
from agent_memory.memory.caller import Caller, ProposedAct, proposal_id
from agent_memory.memory.features import attach_features
from agent_memory.memory.inbox_access import opened_inbox
from agent_memory.memory.service import MemoryService, open_service
from agent_memory.models import Memory, Source, utc_now
from agent_memory.store.memory_storage import FileStorage

if TYPE_CHECKING:
    from agent_memory.settings import ServiceSettings

_TEXTS: Final[dict[str, Any]] = load_yaml(Path(__file__).with_suffix(".yaml").read_text("utf-8"))
"""Memories, conflicting pairs, a document and turns."""
_USER: Final = Source(kind="user")
_DAYS: Final = 24
"""Days between two invented memories."""


async def build_demo(agent_id: str, settings: ServiceSettings) -> None:
    """Write the invented year into the folder of the settings."""
    caller = Caller("demo-session", origin="typed")
    await _store_year(agent_id, settings, caller)
    service = attach_features(open_service(agent_id, settings))
    try:
        await _change_today(service, caller)
        await _hold_decisions(service, caller)
        await _ingest_texts(service, agent_id, settings, caller)
        await service.settle()
    finally:
        await service.close()


async def _store_year(agent_id: str, settings: ServiceSettings, caller: Caller) -> None:
    """Store each memory with a clock that shows its day."""
    now = utc_now()
    moment = now
    service = MemoryService(FileStorage(agent_id, settings=settings, clock=lambda: moment), settings)
    rows = [(text, category, project, "high", _USER) for text, category, project in _TEXTS["memories"]]
    rows.append((_TEXTS["untrusted"], "note", "", "low", Source(kind="tool")))
    try:
        for number, (text, category, project, trust, source) in enumerate(rows):
            moment = now - timedelta(days=max(2, _DAYS * (len(_TEXTS["memories"]) - number)))
            fields = {"category": category, "project": project, "trust": trust, "source": source, "timestamp": moment}
            memory = Memory.model_validate(
                {"agent_id": agent_id, "id": f"mem-de{number:010x}", "content": text, **fields}
            )
            await service.writer.import_memories([memory], lambda _: None, caller, trusted=True)
    finally:
        await service.close()


async def _change_today(service: MemoryService, caller: Caller) -> None:
    """Store, replace, change and forget memories today."""
    by_text: dict[str, Any] = {memory.content: memory.id for memory in await service.searcher.list_all()}
    moved = {"content": "The ledger is stored in PostgreSQL.", "category": "decision", "project": "tidewatch"}
    await service.store({**moved, "supersedes": by_text["The ledger is stored in MySQL."], "source": _USER}, caller)
    for older, newer in _TEXTS["pairs"]:
        project = (await service.get(by_text[older])).project
        await service.store({"content": newer, "project": project, "source": _USER}, caller)
    await service.update(by_text["Deploy on Tuesdays, never on Fridays."], {"pinned": True}, caller)
    await service.forget(by_text["My sister Marta lives in Trieste."], caller, reason="She moved")
    await service.writer.finder.compare_all(caller)


async def _hold_decisions(service: MemoryService, caller: Caller) -> None:
    """Add notes and a proposal to the inbox."""
    texts = ("The varnish needs three days between coats.", "Marta visits in the second week of June.")
    target = (await service.searcher.list_all())[0]
    act = ProposedAct(proposal_id("demo", target.id), "forget", target.content, memory_ids=(target.id,))
    async with opened_inbox(service) as inbox:
        for text in texts:
            await inbox.hold_store({"content": text, "source": _USER}, caller)
        await inbox.hold_act(act, caller)


async def _ingest_texts(service: MemoryService, agent_id: str, settings: ServiceSettings, caller: Caller) -> None:
    """Ingest a document and a conversation, and build their pages."""
    async with Knowledge(agent_id, settings) as knowledge:
        ingest = Ingest(knowledge, service.report)
        await ingest.resource(ReceivedDocument(_TEXTS["document"], "Launch of the Merganser"), caller=caller)
        talk = await ingest.conversation("demo-talk", title="Move of the ledger", said_at=utc_now(), caller=caller)
        turns = [ReceivedTurn(text, role, speaker, utc_now()) for role, speaker, text in _TEXTS["turns"]]
        await ingest.turns(turns, conversation=talk.record.id, caller=caller)
        await runner_of(knowledge, service, caller, at_once=True).run()
