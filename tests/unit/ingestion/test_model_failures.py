"""A model that is late, raises or answers nonsense takes nothing from what rules draw, and is asked again later."""

from __future__ import annotations

import asyncio
import itertools
import json
from typing import TYPE_CHECKING

import pytest

from agent_memory import ingestion
from agent_memory.ingestion import runner_of
from agent_memory.knowledge.intake.drafting import Turn
from agent_memory.knowledge.intake.ingest import Ingest
from agent_memory.knowledge.llm.port import Asking, ModelBudget
from agent_memory.tasks.inspection import of_marks

if TYPE_CHECKING:
    from agent_memory.knowledge.llm.port import LanguageModel
    from agent_memory.knowledge.records import Knowledge
    from agent_memory.service import MemoryService
    from agent_memory.tasks.stage import Backlog

TEXT = "Maria Gomez from Acme Corp asked about order ORD-48213 and PROJ-12 in Lisbon, and the tortoise was there."
BY_RULES = {"ORD-48213", "PROJ-12"}
PATIENT = ingestion.EntityExtractionConfig(timeout_ms=1)


async def late(_prompt: str) -> str:
    await asyncio.Event().wait()
    return "[]"


async def raising(_prompt: str) -> str:
    raise RuntimeError("no such model")


async def babbling(_prompt: str) -> str:
    return "Sure! Here you are."


async def healthy(_prompt: str) -> str:
    return json.dumps([{"name": "tortoise", "type": "product"}, {"name": "Lisbon", "type": "location"}])


def asking_of(model: LanguageModel) -> Asking:
    async def at_once(_seconds: float) -> None: ...

    return Asking(model, timeout=0.001, sleep=at_once, budget=ModelBudget())


async def say(knowledge: Knowledge, text: str) -> None:
    await Ingest(knowledge).turn(Turn(text), group="acme:1", is_live=True)


async def work(knowledge: Knowledge, service: MemoryService, asking: Asking) -> dict[str, Backlog]:
    """Do what is due; return what waits for a model, by step, of turns."""
    runner = runner_of(knowledge, service, config=ingestion.MemoryIngestionConfig(), asking=asking)
    assert (await runner.run()).failed == 0
    return {each.stage: each for each in await runner.backlog() if each.source == "episode" and each.for_model}


async def names_of(knowledge: Knowledge) -> set[str]:
    return {entity.name for entity in await knowledge.entities.valid()}


@pytest.mark.parametrize("model", [late, raising, babbling])
async def test_extract_failing_model_returns_what_rules_draw(model: LanguageModel) -> None:
    episode = ingestion.Episode("epi-0123456789ab", "acme:1", TEXT)
    asking = asking_of(model)
    by_rules = await ingestion.EntityExtractor().extract(episode)
    assert {each.name for each in by_rules.entities} >= BY_RULES
    assert await ingestion.EntityExtractor(PATIENT, asking).extract(episode) == by_rules
    assert sum(asking.budget.failures.values()) == 1


async def test_extract_model_adds_to_what_rules_draw() -> None:
    episode = ingestion.Episode("epi-0123456789ab", "acme:1", TEXT)
    result = await ingestion.EntityExtractor(PATIENT, asking_of(healthy)).extract(episode)
    assert {each.name for each in result.entities} >= BY_RULES | {"tortoise"}
    assert result.form == "model"


async def test_extract_jumping_clock_draws_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    episode = ingestion.Episode("epi-0123456789ab", "acme:1", TEXT)
    quiet = await ingestion.EntityExtractor(PATIENT).extract(episode)
    loop, jumps = asyncio.get_running_loop(), itertools.count(step=3600.0)
    base = loop.time()
    with monkeypatch.context() as patched:  # the end of the loop waits by its clock
        patched.setattr(loop, "time", lambda: base + next(jumps))
        loaded = await ingestion.EntityExtractor(PATIENT).extract(episode)
    assert (loaded, {each.name for each in loaded.entities} >= BY_RULES) == (quiet, True)


@pytest.mark.parametrize("model", [late, raising, babbling])
async def test_stage_failed_model_is_asked_again_and_adds(
    knowledge: Knowledge, service: MemoryService, model: LanguageModel
) -> None:
    await say(knowledge, TEXT)
    waiting = (await work(knowledge, service, asking_of(model)))["entities"]
    assert (waiting.for_model, waiting.due, waiting.failed) == (1, 0, 0)
    assert waiting.model_failures >= 1
    by_rules = await names_of(knowledge)
    assert by_rules >= BY_RULES
    assert "tortoise" not in by_rules
    (concern,) = of_marks(
        [mark for mark in await knowledge.marks.valid() if mark.stage == "entities" and mark.source_kind == "episode"]
    )
    assert concern.code == "tasks_for_model"
    assert "entities" not in await work(knowledge, service, asking_of(healthy))
    assert await names_of(knowledge) == by_rules | {"tortoise"}
    mentions = await knowledge.mentions.valid()
    mentioned = [entity_id for record in mentions for entity_id in record.entities]
    assert len(mentioned) == len(set(mentioned)) == len(by_rules) + 1


async def test_stage_dead_model_is_asked_twice_about_a_record(knowledge: Knowledge, service: MemoryService) -> None:
    prompts: list[str] = []

    async def dead(prompt: str) -> str:
        prompts.append(prompt)
        return "no"

    asking = asking_of(dead)
    await say(knowledge, TEXT)
    for _ in range(5):
        await work(knowledge, service, asking)
    about = [prompt for prompt in prompts if prompt.startswith("Name the entities")]
    assert len(about) == 2 * 2, "each time once more, since the answer could not be read"


async def test_items_of_failed_model_are_added_later(knowledge: Knowledge, service: MemoryService) -> None:
    said = "The harbour opens at nine. Is the tortoise asleep?"
    await say(knowledge, said)
    assert "items" in await work(knowledge, service, asking_of(raising))
    by_rules = {memory.content for memory in await service.admin.everything()}
    assert len(by_rules) == 1

    async def model(prompt: str) -> str:
        rows = [{"source": 1, "quote": quote, "text": quote} for quote in ("The harbour opens at nine",)]
        return json.dumps(rows) if "<texts>" in prompt else "[]"

    assert "items" not in await work(knowledge, service, asking_of(model))
    found = {memory.content for memory in await service.admin.everything()}
    assert found > by_rules
    assert len(found) == 2, "the passage stays, and the statement is added"
