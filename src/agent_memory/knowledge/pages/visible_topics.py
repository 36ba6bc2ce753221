"""Topics as visible to a session of a group.

A topic is one record for all that an agent serves. A group sees what is its own or belongs to none: one that another
group declared, or that only items of others are filed under, does not exist for it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import CategoryNotFoundError, ValidationError
from agent_memory.knowledge.pages.assignment import count_passages
from agent_memory.knowledge.pages.page_items import build_description, get_title
from agent_memory.knowledge.pages.pages import Pages, page_for
from agent_memory.knowledge.pages.subjects import LEAST_SAID, PERSON, is_derived
from agent_memory.memory.trust import lowest
from agent_memory.models import Topic, sees

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from agent_memory.knowledge.passages.forgotten_texts import ForgottenTexts
    from agent_memory.knowledge.records import Knowledge
    from agent_memory.memory import Caller
    from agent_memory.models import Memory, Trust


_MOST_DESCRIBED: Final = 6_000
"""Bytes of JSON: metadata holds 8 KiB, of which other fields have the rest."""
_DESCRIBED: Final = "described"
"""Name in a topic's metadata of the descriptions that groups gave it which found it declared by another one."""


class SeenTopics:
    """The topics that are there for who asks.

    Args:
        knowledge: Where topics and sources are.
        pages: Knows which items are filed where.
        asking: Returns the session that asks now.
        forgotten: Filter of lines that say a forgotten memory.
    """

    def __init__(
        self, knowledge: Knowledge, pages: Pages, asking: Callable[[], Caller], forgotten: ForgottenTexts
    ) -> None:
        self._knowledge, self.pages, self._asking = knowledge, pages, asking
        self._forgotten = forgotten

    @property
    def group(self) -> str | None:
        """The group of who asks."""
        return self._asking().group

    async def topics(self) -> list[Topic]:
        """Return all, by name."""
        all_topics = await self.pages.list_shown()
        if self.group is None:
            return all_topics
        with_members = [(topic, await self.list_members(topic)) for topic in all_topics]
        return [self.view(topic, members) for topic, members in with_members if self._is_there(topic, members)]

    async def topic(self, name: str) -> Topic | None:
        """Return a visible topic by name, or None."""
        topic = await self.pages.get_by_name(name)
        if topic is None or self.group is None:
            return topic
        members = await self.list_members(topic)
        return self.view(topic, members) if self._is_there(topic, members) else None

    async def require_topic(self, name: str) -> Topic:
        """Return one by its name.

        Raises:
            CategoryNotFoundError: It does not exist; lists trusted names.
        """
        topic = await self.topic(name)
        if topic is None:
            topics = await self.topics()
            theirs = await self.of_strangers(topics)
            passages = await count_passages(self.pages.service, name, self.group)
            raise CategoryNotFoundError(
                name, [visible.name for visible in topics if visible.name not in theirs], passages
            )
        return topic

    async def of_others(self, name: str) -> Topic | None:
        """Return a topic that exists and is not visible, or None."""
        return await self.pages.get_by_name(name) if await self.topic(name) is None else None

    @property
    def trust(self) -> Trust:
        """Trust of the session's words, at most medium."""
        return lowest(self._asking().trust, "medium")

    async def list_members(self, topic: Topic) -> list[Memory]:
        """Return the visible items of a topic."""
        return [member for member in await self.pages.list_members(topic) if sees(self.group, member.facets)]

    async def how_many(self, topics: Collection[Topic]) -> dict[str, int]:
        """Return the number of visible items by topic name."""
        return {topic.name: len(await self.list_members(topic)) for topic in topics}

    async def of_strangers(self, topics: Collection[Topic]) -> set[str]:
        """Return the names of topics that only untrusted sources mention."""
        names = set[str]()
        for topic in topics:
            if topic.trust == "low" and all(member.trust == "low" for member in await self.list_members(topic)):
                names.add(topic.name)
        return names

    async def filed_under(self, name: str) -> frozenset[str]:
        """Return the IDs of the items on a topic's page."""
        topic = await self.topic(name)
        return frozenset(topic.item_ids if topic is not None else ())

    async def get_text(self, topic: Topic) -> str:
        """Return the page of a topic, built of visible items if necessary.

        Lines that say a forgotten memory are left out.

        Raises:
            StorageError: It cannot be read.
        """
        all_members = await self.pages.list_members(topic)
        record = await self.pages.get_by_name(topic.name)
        members = [member for member in all_members if sees(self.group, member.facets)]
        is_own = self.group is None or topic.group in {"", self.group}
        if (
            is_own
            and record is not None
            and len(members) == len(all_members)
            and set(record.item_ids) <= get_ids(members)
        ):
            return await self._forgotten.filter_page(await self.pages.get_text(record))
        return await self._forgotten.filter_page(await page_for(self._knowledge, topic, members)) if members else ""

    def view(self, topic: Topic, members: Collection[Memory]) -> Topic:
        """Return a topic as visible to the session."""
        if self.group is None:
            return topic
        own_description = topic.description if is_derived(topic) or topic.group in {"", self.group} else ""
        description = _get_descriptions(topic).get(self.group) or own_description or build_description(get_title(topic))
        ids = [item_id for item_id in topic.item_ids if item_id in get_ids(members)]
        body = topic.body if own_description and ids == topic.item_ids else ""
        return topic.model_copy(
            update={"description": description[:500], "item_ids": ids, "body": body, "metadata": _public(topic)}
        )

    def _is_there(self, topic: Topic, members: Collection[Memory]) -> bool:
        if is_described_by(self.group, topic):
            return True
        if is_derived(topic):
            return len(members) >= (LEAST_SAID if topic.source.detail == PERSON else 1)
        return topic.group in {"", self.group} or bool(members)


def described_for(topic: Topic, group: str, description: str) -> dict[str, Any]:
    """Return changes by which a second group describes a topic.

    The last descriptions are stored, as many as a record holds; older groups see a default description.

    Raises:
        ValidationError: The description is not of 10 to 500 characters.
    """
    Topic(agent_id=topic.agent_id, name=topic.name, description=description)
    if description == build_description(topic.name.replace("_", " ")):
        return {}
    described = {name: text for name, text in _get_descriptions(topic).items() if name != group} | {group: description}
    while len(json.dumps(described)) > _MOST_DESCRIBED and len(described) > 1:
        del described[next(iter(described))]
    return {"metadata": {**topic.metadata, _DESCRIBED: described}}


def is_described_by(group: str | None, topic: Topic) -> bool:
    """Return True if a group described a topic that another one declared."""
    return group in _get_descriptions(topic)


def check_own(group: str | None, topic: Topic) -> None:
    """Refuse what changes a topic for others than who asks.

    Raises:
        ValidationError: The session is bound to a group, and that did not declare the topic.
    """
    if group is not None and (is_derived(topic) or topic.group != group):
        raise ValidationError(
            f"Nothing was changed: this session's group did not declare {topic.name}.",
            code="not_of_this_group",
            recovery="Change it from a session that is bound to no group, or declare a topic of another name.",
        )


def left_by(group: str | None, topic: Topic, members: Collection[Memory]) -> dict[str, Any]:
    """Return changes by which a group gives up a shared topic.

    It then belongs to one of these. Each keeps its own description.

    Args:
        group: Who gives it up; None for all.
        topic: What it declared or described.
        members: Everything that is filed there.
    """
    described = {name: text for name, text in _get_descriptions(topic).items() if name != group}
    if group is not None and topic.group != group:
        return {"metadata": {**_public(topic), _DESCRIBED: described}}
    groups = [*described, *(member.group for member in members if member.group and member.group != group)]
    if group is None or not groups:
        return {}
    text = described.pop(groups[0], build_description(get_title(topic)))
    return {"group": groups[0], "description": text, "metadata": {**_public(topic), _DESCRIBED: described}}


def get_ids(memories: Collection[Memory]) -> set[str]:
    """Return the ids of memories."""
    return {memory.id for memory in memories}


def _get_descriptions(topic: Topic) -> dict[str, str]:
    stored = topic.metadata.get(_DESCRIBED)
    return {name: str(text) for name, text in stored.items()} if isinstance(stored, dict) else {}


def _public(topic: Topic) -> dict[str, Any]:
    return {name: value for name, value in topic.metadata.items() if name != _DESCRIBED}
