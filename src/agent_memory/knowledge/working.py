"""Background work of an agent: its stages in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.knowledge.digest.model_digest import ModelDigest, ModelPermission
from agent_memory.knowledge.digest.passage_digest import PassageDigest
from agent_memory.knowledge.pages.page_stage import Publishing
from agent_memory.knowledge.pages.pages import Pages
from agent_memory.knowledge.passages.item_stage import ItemStage
from agent_memory.knowledge.pipeline.runner import Runner
from agent_memory.memory import NOBODY
from agent_memory.models import EPISODE, RESOURCE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_memory.knowledge.llm.language_model import Asking
    from agent_memory.knowledge.pipeline.stages import Stage, Whole
    from agent_memory.knowledge.records import Knowledge
    from agent_memory.memory import Caller, MemoryService


def runner_of(
    knowledge: Knowledge,
    service: MemoryService,
    caller: Caller = NOBODY,
    *,
    at_once: bool = False,
    more: Sequence[Stage] = (),
    asking: Asking | None = None,
    permission: ModelPermission | None = None,
) -> Runner:
    """Build the runner of an agent's background work.

    Args:
        knowledge: What it was given.
        service: Its memories, where items go.
        caller: For events.
        at_once: Make every page of which something is new, however little: a person waits for it.
        more: Stages that run after `ItemStage`.
        asking: Access to a language model that digests passages; None for none.
        permission: Conditions of its use; those of a program that hands over a model when omitted.
    """
    person, caller = caller, caller.of_no_group()
    stages: list[Stage] = [ItemStage(knowledge, service, kind.name, caller) for kind in (RESOURCE, EPISODE)]
    pages = Pages(knowledge, service, 1) if at_once else Pages(knowledge, service)
    last: list[Whole] = [Publishing(knowledge, service, pages, caller, at_once=at_once)]
    if asking is not None and asking.model is not None:
        permission = permission or ModelPermission(person)
        last.append(ModelDigest(knowledge, service, PassageDigest(knowledge, service), asking, permission))
    lock, marks = knowledge.folder.tasks_lock, knowledge.marks
    return Runner(lock, marks, knowledge.of, [*stages, *more], knowledge.clock, after=knowledge.sweep, last=last)
