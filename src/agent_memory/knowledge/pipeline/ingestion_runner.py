"""Background work of an agent: stages of `knowledge`, then of ingestion."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.knowledge import working
from agent_memory.knowledge.entities.entity_extractor import EntityExtractor
from agent_memory.knowledge.entities.entity_stage import EntityStage
from agent_memory.knowledge.pipeline.ingestion_config import MemoryIngestionConfig
from agent_memory.knowledge.summaries.summary_stage import Summaries
from agent_memory.memory import NOBODY
from agent_memory.models import EPISODE, RESOURCE

if TYPE_CHECKING:
    from agent_memory.knowledge.digest.model_digest import ModelPermission
    from agent_memory.knowledge.llm.language_model import Asking
    from agent_memory.knowledge.pipeline.runner import Runner
    from agent_memory.knowledge.pipeline.stages import Stage
    from agent_memory.knowledge.records import Knowledge
    from agent_memory.memory import Caller, MemoryService


def runner_of(
    knowledge: Knowledge,
    service: MemoryService,
    caller: Caller = NOBODY,
    config: MemoryIngestionConfig | None = None,
    asking: Asking | None = None,
    permission: ModelPermission | None = None,
    *,
    at_once: bool = False,
) -> Runner:
    """Build the runner of an agent's background work.

    Args:
        knowledge: What it was given.
        service: Its memories.
        caller: For events.
        config: Which steps there are; the defaults when omitted.
        asking: Access to a language model that digests passages; None for none.
        permission: Conditions of its use; those of a program that hands over a model when omitted.
        at_once: Make every page of which something is new: a person waits for it.
    """
    config = config or MemoryIngestionConfig()
    more: list[Stage] = []
    if config.entity_extraction_enabled and config.entity_extraction.enabled:
        extractor = EntityExtractor(config.entity_extraction)
        more += [EntityStage(knowledge, kind.name, config, extractor) for kind in (RESOURCE, EPISODE)]
    if config.summarization_enabled and config.summarization.enabled:
        more.append(Summaries(knowledge, config.summarization))
    return working.runner_of(
        knowledge, service, caller, at_once=at_once, more=more, asking=asking, permission=permission
    )
