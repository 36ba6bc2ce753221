"""Summaries of turns and of summaries: bounded, of one group, kept only where that is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.compat.focal import view_episode, view_summary
from agent_memory.ingestion import ConversationSummarizer, Episode, MemoryIngestor, SummarizationError, Turn
from agent_memory.knowledge import Asking
from agent_memory.knowledge.intake.withdrawal import undo
from agent_memory.knowledge.pages.assignment import PageStage
from agent_memory.knowledge.pages.pages import Pages
from agent_memory.knowledge.pipeline.background_work import runner_of
from agent_memory.knowledge.pipeline.ingestion_config import MetaConfig, SummarizationConfig, WindowConfig
from agent_memory.knowledge.pipeline.stages import StageCheckpoints
from agent_memory.memory import NOBODY
from agent_memory.memory.features import attach_withdrawals

if TYPE_CHECKING:
    from agent_memory.knowledge.records import Knowledge
    from agent_memory.memory import MemoryService

SAID = datetime(2026, 3, 14, 12, tzinfo=UTC)
GROUP = "acme:7f3a"
SMALL = SummarizationConfig(
    window=WindowConfig(turns_per_summary=4), meta=MetaConfig(summaries_per_meta=2, enabled_at_turn_count=8)
)


@dataclass
class Served:
    """A session of a tenant."""

    tenant_id: str = "acme"
    id: str = "7f3a"


async def talk(ingestor: MemoryIngestor, turns: int, session: Served | None = None) -> list[Episode]:
    """Take in turns of a user and an agent by turns."""
    said = []
    for number in range(turns // 2):
        at = SAID + timedelta(minutes=number)
        told = f"Shop {number} moved to Turin in May. Ada runs it. It has forty guests each day, and Ben bakes bread."
        turn = Turn(f"{told} The old shop in Milan was sold to a baker in June. Fine?", "Thanks!", timestamp=at)
        said.append(await ingestor.ingest_turn(turn, session or Served()))
    await ingestor.background.settle()
    return said


async def test_a_window_is_quoted_in_at_most_a_third_of_its_words_and_not_kept(
    ingestor: MemoryIngestor, knowledge: Knowledge
) -> None:
    said = await talk(ingestor, 12)
    made = await ConversationSummarizer(knowledge).summarize_window(said, GROUP)
    assert (made.content_type, made.source, made.group_id) == ("summary", "system", GROUP)
    assert made.metadata["summary_type"] == "window"
    assert made.metadata["episodes_covered"] == 6
    assert made.metadata["episode_ids"] == [each.id for each in said]
    assert len(made.content) <= 0.3 * sum(len(each.content) for each in said)
    whole = " ".join(each.content for each in said)
    assert all(line.partition(": ")[2] in whole for line in made.content.splitlines())
    assert await knowledge.summaries.count() == 0


async def test_what_is_due_is_kept_once_windows_first_and_then_summaries_of_them(
    ingestor: MemoryIngestor, knowledge: Knowledge
) -> None:
    await talk(ingestor, 12)
    summarizer = ConversationSummarizer(knowledge, SMALL)
    last = await summarizer.check_and_summarize_if_needed(GROUP)
    assert last is not None
    assert (last.content_type, last.metadata["summaries_covered"]) == ("meta_summary", 2)
    known = await knowledge.summaries.valid()
    assert sorted((each.level, len(each.covers)) for each in known) == [
        ("meta", 2),
        ("window", 4),
        ("window", 4),
        ("window", 4),
    ]
    assert await summarizer.check_and_summarize_if_needed(GROUP) is None
    assert await summarizer.check_and_summarize_if_needed("acme:other") is None
    meta = next(each for each in known if each.level == "meta")
    for one in meta.covers:
        window = await knowledge.summaries.get(one)
        assert window is not None
        assert any(line in meta.content for line in window.content.splitlines())


async def test_nothing_of_another_group_is_summarised(ingestor: MemoryIngestor, knowledge: Knowledge) -> None:
    own, others = await talk(ingestor, 4), await talk(ingestor, 4, Served("umbrella", "1"))
    summarizer = ConversationSummarizer(knowledge, SMALL)
    for episodes in (others, [*own, *others]):
        with pytest.raises(SummarizationError, match="not all of these") as caught:
            await summarizer.summarize_window(episodes, GROUP)
        assert "Shop" not in str(caught.value)
    with pytest.raises(SummarizationError, match="1 to 90"):
        await summarizer.summarize_window([], GROUP)
    with pytest.raises(SummarizationError, match="tenant and a session"):
        await summarizer.check_and_summarize_if_needed("everything")
    with pytest.raises(SummarizationError, match="not all of these are kept"):
        await summarizer.create_meta_summary(own, GROUP)


async def test_turns_that_state_nothing_have_no_summary(ingestor: MemoryIngestor, knowledge: Knowledge) -> None:
    said = [await ingestor.ingest_turn(Turn("Hi! How are you?", "Thanks!", timestamp=SAID), Served())]
    with pytest.raises(SummarizationError, match="nothing that states anything"):
        await ConversationSummarizer(knowledge).summarize_window(said, GROUP)


async def test_a_summary_goes_with_what_it_covers(
    ingestor: MemoryIngestor, knowledge: Knowledge, service: MemoryService
) -> None:
    await talk(ingestor, 12)
    await ConversationSummarizer(knowledge, SMALL).check_and_summarize_if_needed(GROUP)
    assert await knowledge.summaries.count() == 4
    (conversation,) = await knowledge.resources.valid()
    await undo(knowledge, service, [conversation.id], NOBODY)
    assert await knowledge.summaries.count() == 0


async def test_summary_of_program_with_asking_is_by_rules(ingestor: MemoryIngestor, knowledge: Knowledge) -> None:
    said = await talk(ingestor, 12)
    made = await ConversationSummarizer(knowledge, asking=Asking()).summarize_window(said, GROUP)
    assert made.content == (await ConversationSummarizer(knowledge).summarize_window(said, GROUP)).content


async def test_the_views_say_what_the_records_say(ingestor: MemoryIngestor, knowledge: Knowledge) -> None:
    said = await talk(ingestor, 12)
    await ConversationSummarizer(knowledge, SMALL).check_and_summarize_if_needed(GROUP)
    record = await knowledge.episodes.get(said[0].id)
    assert record is not None
    assert view_episode(record).content == said[0].content
    kept = next(each for each in await knowledge.summaries.valid() if each.level == "window")
    assert view_summary(kept).metadata["compression_ratio"] <= 0.3
    assert kept.source.detail == "quotes"


async def test_a_summary_goes_with_an_item_of_its_turns_and_comes_again_without_them(
    ingestor: MemoryIngestor, knowledge: Knowledge, service: MemoryService
) -> None:
    said = await talk(ingestor, 12)
    summarizer = ConversationSummarizer(knowledge, SMALL)
    await summarizer.check_and_summarize_if_needed(GROUP)
    attach_withdrawals(service)
    items = [each for each in await service.searcher.list_all() if said[0].id in {link.id for link in each.links}]
    before = {each.id: each for each in await knowledge.summaries.valid()}
    first = next(each for each in before.values() if said[0].id in each.covers)
    await service.writer.deletion.forget_many([each.id for each in items], NOBODY)
    left = {each.id for each in await knowledge.summaries.valid()}
    assert first.id not in left
    assert all(each.id not in left for each in before.values() if first.id in each.covers)
    await summarizer.check_and_summarize_if_needed(GROUP)
    assert not [each for each in await knowledge.summaries.valid() if said[0].id in each.covers]


async def run_background(knowledge: Knowledge, service: MemoryService) -> None:
    await runner_of(knowledge, service).run()


async def prepare_compaction(knowledge: Knowledge, service: MemoryService) -> None:
    await PageStage(knowledge, service, Pages(knowledge, service), NOBODY).finish_withdrawals()


@pytest.mark.parametrize("finish", [run_background, prepare_compaction])
async def test_forget_killed_before_withdrawal_ends_with_background_work_and_before_a_compaction(
    ingestor: MemoryIngestor, knowledge: Knowledge, service: MemoryService, finish: Any
) -> None:
    said = await talk(ingestor, 12)
    summarizer = ConversationSummarizer(knowledge, SMALL)
    await summarizer.check_and_summarize_if_needed(GROUP)
    items = [item for item in await service.searcher.list_all() if said[0].id in {link.id for link in item.links}]
    await service.writer.deletion.forget_many([item.id for item in items], NOBODY)  # no watcher: killed before that
    assert [summary for summary in await knowledge.summaries.valid() if said[0].id in summary.covers]
    await finish(knowledge, service)
    assert not [summary for summary in await knowledge.summaries.valid() if said[0].id in summary.covers]
    mark = await StageCheckpoints(knowledge.marks).of_name("withdrawal", "item")
    assert await service.storage.gone_after(mark.through) == set()
    await summarizer.check_and_summarize_if_needed(GROUP)
    assert not [summary for summary in await knowledge.summaries.valid() if said[0].id in summary.covers]
