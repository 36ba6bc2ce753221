"""Topics as a session of a group sees them: names, descriptions, items and pages.

A topic is one record for all that an agent serves. A group sees what is its own or belongs to none: one that another
group declared, or that only items of others are filed under, does not exist for it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import CategoryNotFoundError, ValidationError
from agent_memory.knowledge.pages.filing import count_passages
from agent_memory.knowledge.pages.page_items import title_of, unsaid
from agent_memory.knowledge.pages.pages import page_for
from agent_memory.knowledge.pages.subjects import LEAST_SAID, PERSON, is_derived
from agent_memory.memory.trust import lowest
from agent_memory.models import Topic, sees

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from agent_memory.knowledge.pages.pages import Pages
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
        every = await self.pages.list_shown()
        if self.group is None:
            return every
        found = [(topic, await self.members_of(topic)) for topic in every]
        return [self.view(topic, members) for topic, members in found if self._is_there(topic, members)]

    async def topic(self, name: str) -> Topic | None:
        """Return one by its name, None if there is none."""
        topic = await self.pages.get_by_name(name)
        if topic is None or self.group is None:
            return topic
        members = await self.members_of(topic)
        return self.view(topic, members) if self._is_there(topic, members) else None

    async def required(self, name: str) -> Topic:
        """Return one by its name.

        Raises:
            CategoryNotFoundError: There is none; names those that there are, but for names of strangers.
        """
        topic = await self.topic(name)
        if topic is None:
            every = await self.topics()
            theirs = await self.of_strangers(every)
            passages = await count_passages(self.pages.service, name, self.group)
            raise CategoryNotFoundError(name, [each.name for each in every if each.name not in theirs], passages)
        return topic

    async def of_others(self, name: str) -> Topic | None:
        """Return the record of a topic that is there, though not for who asks."""
        return await self.pages.get_by_name(name) if await self.topic(name) is None else None

    @property
    def trust(self) -> Trust:
        """How far the words of who asks are trusted, the model's at most."""
        return lowest(self._asking().trust, "medium")

    async def members_of(self, topic: Topic) -> list[Memory]:
        """Return what is filed under a topic."""
        return [each for each in await self.pages.members_of(topic) if sees(self.group, each.facets)]

    async def how_many(self, topics: Collection[Topic]) -> dict[str, int]:
        """Return how many items are filed under each of some topics."""
        return {each.name: len(await self.members_of(each)) for each in topics}

    async def of_strangers(self, topics: Collection[Topic]) -> set[str]:
        """Return the names of those of some topics that strangers named, and of which they alone speak."""
        found = set[str]()
        for topic in topics:
            if topic.trust == "low" and all(each.trust == "low" for each in await self.members_of(topic)):
                found.add(topic.name)
        return found

    async def filed_under(self, name: str) -> frozenset[str]:
        """Return the ids of the items of which the page of a topic is made; none where it is not there."""
        topic = await self.topic(name)
        return frozenset(topic.item_ids if topic is not None else ())

    async def shown(self, topic: Topic) -> str:
        """Return the page of a topic; where not all of it is there for who asks, one made of what is.

        Lines that say a forgotten memory are left out.

        Raises:
            StorageError: It cannot be read.
        """
        every = await self.pages.members_of(topic)
        record = await self.pages.get_by_name(topic.name)
        members = [each for each in every if sees(self.group, each.facets)]
        is_own = self.group is None or topic.group in {"", self.group}
        if is_own and record is not None and len(members) == len(every) and set(record.item_ids) <= ids_of(members):
            return await self._forgotten.filter_page(await self.pages.shown(record))
        return await self._forgotten.filter_page(await page_for(self._knowledge, topic, members)) if members else ""

    def view(self, topic: Topic, members: Collection[Memory]) -> Topic:
        """Return a topic as it is told to who asks; `members` are those of its items that are there for them."""
        if self.group is None:
            return topic
        own = topic.description if is_derived(topic) or topic.group in {"", self.group} else ""
        description = _described(topic).get(self.group) or own or unsaid(title_of(topic))
        ids = [one for one in topic.item_ids if one in ids_of(members)]
        body = topic.body if own and ids == topic.item_ids else ""
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
    """Return what changes in a topic that a group declares which another one has declared before.

    The last groups' descriptions are kept, as many as a record holds; a topic of which more is said is told to the
    others as one that nobody described.

    Raises:
        ValidationError: The description is not of 10 to 500 characters.
    """
    Topic(agent_id=topic.agent_id, name=topic.name, description=description)
    if description == unsaid(topic.name.replace("_", " ")):
        return {}
    described = {name: text for name, text in _described(topic).items() if name != group} | {group: description}
    while len(json.dumps(described)) > _MOST_DESCRIBED and len(described) > 1:
        del described[next(iter(described))]
    return {"metadata": {**topic.metadata, _DESCRIBED: described}}


def is_described_by(group: str | None, topic: Topic) -> bool:
    """Return True if a group described a topic that another one declared."""
    return group in _described(topic)


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
    """Return what changes in a topic that a group gives up which is there for others, too; nothing if it is for none.

    It then belongs to one of these. Each keeps its own description.

    Args:
        group: Who gives it up; None for all.
        topic: What it declared or described.
        members: Everything that is filed there.
    """
    described = {name: text for name, text in _described(topic).items() if name != group}
    if group is not None and topic.group != group:
        return {"metadata": {**_public(topic), _DESCRIBED: described}}
    others = [*described, *(each.group for each in members if each.group and each.group != group)]
    if group is None or not others:
        return {}
    text = described.pop(others[0], unsaid(title_of(topic)))
    return {"group": others[0], "description": text, "metadata": {**_public(topic), _DESCRIBED: described}}


def ids_of(memories: Collection[Memory]) -> set[str]:
    """Return the ids of memories."""
    return {each.id for each in memories}


def _described(topic: Topic) -> dict[str, str]:
    found = topic.metadata.get(_DESCRIBED)
    return {name: str(text) for name, text in found.items()} if isinstance(found, dict) else {}


def _public(topic: Topic) -> dict[str, Any]:
    return {name: value for name, value in topic.metadata.items() if name != _DESCRIBED}
