"""What is shown of a topic whose page was not made yet: its items, or what waits to be read."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from agent_memory.knowledge.facade.shapes import category_of
from agent_memory.knowledge.items.stage import Items
from agent_memory.knowledge.pages.pages import drafted
from agent_memory.knowledge.topics.rendering import render
from agent_memory.knowledge.working import runner_of

if TYPE_CHECKING:
    from agent_memory.knowledge.facade.groups import SeenTopics
    from agent_memory.knowledge.records import Knowledge
    from agent_memory.models import Topic
    from agent_memory.service import MemoryService


async def unmade(knowledge: Knowledge, service: MemoryService, seen: SeenTopics, topic: Topic) -> str:
    """Return a page of a topic that has none yet, which is written nowhere; without items it says what waits.

    Args:
        knowledge: What came in.
        service: Where items are.
        seen: The topics as who asks sees them: a session of a group is told no number, which others would be in.
        topic: It.

    Raises:
        StorageError: It cannot be read.
    """
    if members := await seen.members_of(topic):
        return render(replace(await drafted(knowledge, topic, members), consolidated_at=None))
    page = category_of(topic).markdown_content
    backlog = await runner_of(knowledge, service).backlog()
    unread = sum(each.due for each in backlog if each.stage == Items.name)
    unfiled = sum(each.due for each in backlog if each.stage != Items.name)
    if not unread and not unfiled:
        return page
    if seen.group is not None:
        return f"{page}\n\n*What came in last may not be filed yet; the background work does that.*"
    said = [f"{unread:,} turns or documents to be read"] if unread else []
    said += [f"{unfiled:,} items to be filed under topics"] if unfiled else []
    return f"{page}\n\n*Waiting for the background work: {', '.join(said)}.*"
