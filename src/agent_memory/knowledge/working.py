"""The background work on what one agent was given: which steps there are, in their order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.knowledge.items.stage import Items
from agent_memory.knowledge.pages.pages import Pages
from agent_memory.knowledge.pages.stage import Publishing
from agent_memory.models import EPISODE, RESOURCE
from agent_memory.service import NOBODY
from agent_memory.tasks.runner import Runner

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agent_memory.knowledge.llm.port import Asking
    from agent_memory.knowledge.records import Knowledge
    from agent_memory.service import Caller, MemoryService
    from agent_memory.tasks.stage import Stage


def runner_of(
    knowledge: Knowledge,
    service: MemoryService,
    caller: Caller = NOBODY,
    *,
    at_once: bool = False,
    more: Sequence[Stage] = (),
    asking: Mapping[str, Asking] | None = None,
) -> Runner:
    """Return what does the background work of an agent.

    Args:
        knowledge: What it was given.
        service: Its memories, where items go.
        caller: For events.
        at_once: Make every page of which something is new, however little: a person waits for it.
        more: Steps behind those of the items.
        asking: How a language model is asked, for each step that asks one, by its name; rules do the others.
    """
    caller, asks = caller.of_no_group(), asking or {}
    stages: list[Stage] = [
        Items(knowledge, service, kind.name, caller, asks.get(Items.name)) for kind in (RESOURCE, EPISODE)
    ]
    pages = Pages(knowledge, service, 1) if at_once else Pages(knowledge, service)
    last = [Publishing(knowledge, service, pages, caller, asks.get(Publishing.name), at_once=at_once)]
    lock, marks = knowledge.folder.tasks_lock, knowledge.marks
    return Runner(lock, marks, knowledge.of, [*stages, *more], knowledge.clock, after=knowledge.sweep, last=last)
