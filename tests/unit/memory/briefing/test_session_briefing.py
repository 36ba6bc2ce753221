"""`SessionBriefing`: over memories and the conversations that are kept."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from agent_memory.knowledge.intake.ingest import Ingest
from agent_memory.knowledge.pipeline.background_work import ITEMS_ONLY, runner_of
from agent_memory.knowledge.records import Knowledge
from agent_memory.memory.briefing import SessionBriefing
from agent_memory.memory.features import attach_withdrawals
from agent_memory.models import SearchFilters
from tests.unit.memory.briefing.test_briefing import ASKED, TALK
from tests.unit.memory.conftest import Listener

if TYPE_CHECKING:
    from agent_memory.memory import MemoryService


async def taken_in(service: MemoryService, tmp_path: Path) -> Knowledge:
    """Take in `TALK` as a file, as `agent-memory ingest` does."""
    lines = [f'{{"role": "{role}", "content": "{text}"}}' for role, text in TALK]
    file = tmp_path / "talk.jsonl"
    file.write_text("\n".join(lines))
    knowledge = Knowledge("bob", service.settings)
    await Ingest(knowledge, service.report).file(file)
    return knowledge


async def test_conversations_that_were_taken_in_are_quoted_until_they_are_forgotten(
    service: MemoryService, tmp_path: Path
) -> None:
    knowledge = await taken_in(service, tmp_path)
    listener, briefings = Listener(), SessionBriefing(service)
    made = await briefings.make(ASKED, listener.caller)
    assert "- person: No, exactly seven attempts." in made.text
    assert await briefings.turns_stand(made)
    (told,) = listener.of("memory:briefed")
    assert (told["memories"], told["turns"], told["tokens"]) == (0, len(made.turns), made.tokens)
    assert "seven" not in str(told)
    await knowledge.episodes.delete(made.turns[0].id)
    assert not await briefings.turns_stand(made)
    await briefings.close()
    await knowledge.close()


async def test_briefing_quotes_no_turn_of_a_forgotten_item(service: MemoryService, tmp_path: Path) -> None:
    knowledge = await taken_in(service, tmp_path)
    await runner_of(knowledge, service, config=ITEMS_ONLY).run()
    attach_withdrawals(service)
    briefings = SessionBriefing(service)
    made = await briefings.make(ASKED)
    assert "exactly seven attempts" in made.text
    found = await service.search("exactly seven attempts", 10, SearchFilters(include_items=True))
    for hit in found:
        if "seven" in hit.memory.content:
            await service.forget(hit.memory.id)
    assert not await briefings.turns_stand(made)
    assert "exactly seven attempts" not in (await briefings.make(ASKED)).text
    await briefings.close()
    await knowledge.close()


async def test_without_conversations_none_are_opened(service: MemoryService) -> None:
    await service.store("The attempt budget of the Retrier is seven.")
    briefings = SessionBriefing(service)
    made = await briefings.make(ASKED)
    assert "is seven" in made.text
    assert made.turns == ()
    assert await briefings.turns_stand(made)
    assert not (Path(service.settings.storage_root) / "bob" / "episodes.yaml").exists()
    await briefings.close()
    await briefings.close()
