"""`KnowledgeSource`: passages with their origin, pages and turns of conversations, for the search over all kinds.

Opens the files of knowledge at the first search, and only those that exist.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from agent_memory.files.layout import folder_of
from agent_memory.models import (
    ENTITY,
    EPISODE,
    HIT_KINDS,
    MAX_CONTENT_CHARS,
    RESOURCE,
    TOPIC,
    Episode,
    FoundText,
    HitOrigin,
    Listing,
    SearchFilters,
    Topic,
    sees,
    visible,
)
from agent_memory.retrieval import excerpt, query_terms
from agent_memory.retrieval.match_grades import STRONG_SHARE
from agent_memory.service.overview import NAME_CHARS
from agent_memory.service.search_sources import SearchSource, hit_of
from agent_memory.service.shortening import shorten_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from agent_memory.knowledge.facade.groups import SeenTopics
    from agent_memory.knowledge.records import Knowledge
    from agent_memory.models import HitKind, Kind, Memory, MemorySearchResult, Resource, SearchResults
    from agent_memory.retrieval import Hit
    from agent_memory.service import Caller, MemoryService
    from agent_memory.service.search_sources import WideRequest

_MAIL_AND_WEB: Final = frozenset({"email", "mail", "web", "web_page", "webpage"})
"""Types of resources that other people wrote: found only by a search for documents."""
_DOCUMENT: Final = "document"
_ROLES: Final = {"user": "the user", "assistant": "the assistant"}
_TITLE_CHARS: Final = 60
_PEOPLE: Final = 3
_LONG_CHARS: Final = 2_000
"""Characters of a page that is too long for a hit."""
_FOOTNOTE: Final = re.compile(r" ?\[\^\d+\]")
_RULE: Final = "\n---\n"
"""Line of a page behind which its footnotes begin."""


def add_knowledge(service: MemoryService) -> MemoryService:
    """Add the agent's documents, pages and conversations to what a search finds; return the service."""
    if service.settings.backend != "server":
        service.sources.add(KnowledgeSource(service))
    return service


class KnowledgeSource(SearchSource):
    """What an agent was given, and the pages made of it.

    Args:
        service: Service of the agent's memory.
    """

    def __init__(self, service: MemoryService) -> None:
        self._service = service
        self._knowledge: Knowledge | None = None
        self._forgotten: list[Memory] | None = None

    async def find(self, asked: WideRequest) -> SearchResults:
        """Return turns of conversations, and the best page."""
        results = await super().find(asked)
        if "talk" in asked.kinds and self._has(EPISODE):
            await self._add_turns(results, asked)
        if "page" in asked.kinds and self._has(TOPIC):
            await self._add_pages(results, asked)
        return results

    async def describe(self, hits: Sequence[MemorySearchResult], asked: WideRequest) -> list[MemorySearchResult]:
        """Return hits with the title of their source and the speaker; mail and web text only if documents are asked."""
        if not self._has(RESOURCE):
            return await super().describe(hits, asked)
        sources = [link.id for hit in hits for link in hit.memory.links]
        resources = await self._resources_of(sources)
        described = []
        for hit in hits:
            linked = [resources[link.id] for link in hit.memory.links if link.id in resources]
            if linked and all(_is_unasked(resource, asked) for resource in linked):
                continue
            origin = _origin_of(hit, linked[0]) if linked else hit.origin
            described.append(hit.model_copy(update={"origin": origin}))
        return described

    async def get(self, record_id: str, caller: Caller) -> MemorySearchResult | None:
        """Return a turn, a page or a document by its ID; None if there is none or the caller may not see it."""
        if record_id.startswith(EPISODE.prefix) and self._has(EPISODE):
            turn = await self._opened().episodes.get(record_id)
            if turn is None or not sees(caller.group, turn.facets) or not await self._without_forgotten([turn]):
                return None
            resources = await self._resources_of([turn.id])
            return hit_of(_text_of_turn(turn), _origin_of_turn(turn, resources.get(turn.id)))
        if record_id.startswith(TOPIC.prefix) and self._has(TOPIC):
            topic = await self._opened().topics.get(record_id)
            page = None if topic is None else await self._page(topic, self._topics_of(caller))
            return None if topic is None or page is None else hit_of(page, HitOrigin("page", topic.name))
        if record_id.startswith(RESOURCE.prefix) and self._has(RESOURCE):
            resource = await self._opened().resources.get(record_id)
            if resource is None or not sees(caller.group, resource.facets):
                return None
            kind: HitKind = "talk" if resource.resource_type == "conversation" else "passage"
            return hit_of(_text_of(resource, resource.content), HitOrigin(kind, _title_of(resource)))
        return None

    async def count(self, asked: WideRequest) -> dict[str, Any]:
        """Return how many documents, conversations and pages there are, and names of people."""
        counts: dict[str, Any] = {}
        every = Listing(filters=SearchFilters(include_items=True, group=asked.caller.group))
        if self._has(RESOURCE):
            resources = (await self._opened().resources.browse(every)).records
            talks = sum(resource.resource_type == "conversation" for resource in resources)
            counts |= {"documents": len(resources) - talks, "conversations": talks}
            topics = await self._topics_of(asked.caller).topics()
            counts["pages"] = sum(topic.consolidated_at is not None for topic in topics)
        if self._has(ENTITY):
            entities = (await self._opened().entities.browse(every)).records
            people = [entity for entity in entities if entity.entity_type == "person" and entity.trust != "low"]
            names = [shorten_line(visible(person.name), NAME_CHARS) for person in people if person.merged_into is None]
            counts["people"] = names[:_PEOPLE]
        return counts

    async def close(self) -> None:
        """Close the files of knowledge."""
        if self._knowledge is not None:
            await self._knowledge.close()

    # -- turns --------------------------------------------------------------------------------------------------------

    async def _add_turns(self, results: SearchResults, asked: WideRequest) -> None:
        from agent_memory.knowledge.items.drawn import is_talk  # only for those who have conversations

        answer = await self._opened().episodes.answer(asked.elsewhere())
        turns = [turn for turn in answer.records if is_talk(turn) or asked.kinds != HIT_KINDS]
        turns = await self._without_forgotten(turns)
        resources = await self._resources_of([turn.id for turn in turns])
        shown = {turn.id: turn for turn in turns}
        for hit in answer.ranking.hits:
            if hit.id in shown:
                origin = _origin_of_turn(shown[hit.id], resources.get(hit.id))
                results.append(hit_of(_text_of_turn(shown[hit.id]), origin, hit))
        results.total_found += answer.ranking.total_found - len(answer.records) + len(turns)
        results.words = answer.ranking.words

    async def _without_forgotten(self, turns: Sequence[Episode]) -> list[Episode]:
        """Return turns without those that say what was forgotten: a turn stays as it was said until it is undone."""
        if not turns:
            return []
        from agent_memory.knowledge.intake.undoing import get_forgotten_sources, says_any
        from agent_memory.knowledge.items.drawn import sources_of

        if self._forgotten is None:  # by earlier versions; later ones note the sources
            self._forgotten = [memory for memory, _ in await self._service.past.forgotten()]
        sources = {source for memory in self._forgotten for source in sources_of(memory)}
        sources |= await get_forgotten_sources(self._opened())
        texts = [set(query_terms(memory.content)) for memory in self._forgotten]
        return [turn for turn in turns if turn.id not in sources and not says_any(turn, texts)]

    # -- pages --------------------------------------------------------------------------------------------------------

    async def _add_pages(self, results: SearchResults, asked: WideRequest) -> None:
        """Add the best page: its claims are found as passages, so that one page leads to the others."""
        answer = await self._opened().topics.answer(asked.elsewhere())
        topics, most = self._topics_of(asked.caller), asked.request.limit if asked.kinds == {"page"} else 1
        results.words = results.words or answer.ranking.words
        for hit, topic in zip(answer.ranking.hits, answer.records, strict=True):
            page = await self._page(topic, topics, answer.ranking.words) if most else None
            graded = None if page is None else _grade(hit, page.content, answer.ranking.words)
            if page is not None and graded is not None:
                results.append(hit_of(page, HitOrigin("page", topic.name), graded))
                results.total_found += 1
                most -= 1

    async def _page(
        self, topic: Topic, topics: SeenTopics, words: Mapping[str, float] | None = None
    ) -> FoundText | None:
        """Return the page of a topic without footnotes; None if it is empty or may not be seen.

        Args:
            topic: Record of the topic.
            topics: Topics that the caller may see.
            words: Words that choose the part of a long page.
        """
        from agent_memory.knowledge.topics.parsing import parse  # only for those who have pages

        seen = await topics.topic(topic.name)
        page = "" if seen is None else await topics.shown(seen)
        text = _FOOTNOTE.sub("", page.partition(_RULE)[0]).strip()
        if not text:
            return None
        if words and len(text) > MAX_CONTENT_CHARS:
            text = excerpt(text, words, _LONG_CHARS)
        trust = "low" if any(claim.is_untrusted for claim in parse(page).claims) else topic.trust
        return _text_of(topic, text).model_copy(update={"trust": trust})

    def _topics_of(self, caller: Caller) -> SeenTopics:
        from agent_memory.knowledge.facade.groups import SeenTopics
        from agent_memory.knowledge.pages.pages import Pages

        knowledge = self._opened()
        return SeenTopics(knowledge, Pages(knowledge, self._service), lambda: caller)

    # -- records ------------------------------------------------------------------------------------------------------

    def _has(self, kind: Kind[Any]) -> bool:
        """Return True if a file has records of this kind."""
        return (folder_of(self._service.agent_id, self._service.settings.storage_root).path / kind.journal).exists()

    def _opened(self) -> Knowledge:
        from agent_memory.knowledge.records import Knowledge

        self._knowledge = self._knowledge or Knowledge(self._service.agent_id, self._service.settings)
        return self._knowledge

    async def _resources_of(self, sources: Iterable[str]) -> Mapping[str, Resource]:
        """Return by the ID of a resource or turn the resource that it is or belongs to."""
        ids, knowledge = list(dict.fromkeys(sources)), self._opened()
        turns: dict[str, Episode] = {}
        if self._has(EPISODE):
            turns = await knowledge.episodes.valid_among([one for one in ids if one.startswith(EPISODE.prefix)])
        homes = {one: turns[one].conversation if one in turns else one for one in ids}
        resources = await knowledge.resources.valid_among(
            [home for home in homes.values() if home is not None and home.startswith(RESOURCE.prefix)]
        )
        return {one: resources[home] for one, home in homes.items() if home is not None and home in resources}


def _is_unasked(resource: Resource, asked: WideRequest) -> bool:
    """Return True if a resource is mail or web text, and no documents are asked for."""
    if resource.resource_type not in _MAIL_AND_WEB or asked.kinds != HIT_KINDS:
        return False
    names = {*query_terms(_DOCUMENT), *query_terms(resource.resource_type.replace("_", " "))}
    return names.isdisjoint(query_terms(asked.request.text))


def _grade(hit: Hit, text: str, words: Mapping[str, float]) -> Hit | None:
    """Return the hit of a page with the match of its text; None if only its footnotes share a word.

    A listing has no words, and its hits no grade.
    """
    if not words:
        return hit
    shared = len(words.keys() & set(query_terms(text))) / len(words)
    if not shared:
        return None
    return replace(hit, match="strong" if shared >= STRONG_SHARE else "weak", strength=shared)


def _origin_of(hit: MemorySearchResult, resource: Resource) -> HitOrigin:
    """Return the origin of an item that was drawn from a resource or from a turn of it."""
    speaker = hit.memory.metadata.get("speaker")
    name = speaker if isinstance(speaker, str) and not hit.memory.content.startswith(f"{speaker}: ") else ""
    kinds: Mapping[str, HitKind] = {"conversation": "talk", "feedback": "note"}
    return HitOrigin(kinds.get(resource.resource_type, "passage"), _title_of(resource), visible(name))


def _origin_of_turn(turn: Episode, resource: Resource | None) -> HitOrigin:
    speaker = turn.speaker or _ROLES.get(turn.role, turn.role)
    return HitOrigin("talk", "" if resource is None else _title_of(resource), visible(speaker))


def _title_of(resource: Resource) -> str:
    return shorten_line(visible(resource.title), _TITLE_CHARS) or resource.resource_type


def _text_of_turn(turn: Episode) -> FoundText:
    return _text_of(turn, turn.content)


def _text_of(record: Episode | Resource | Topic, text: str) -> FoundText:
    """Return a record in the form of a memory; `text` is cut to the length of one."""
    moment = record.consolidated_at if isinstance(record, Topic) else record.observed_at
    return FoundText(
        agent_id=record.agent_id,
        id=record.id,
        content=text[:MAX_CONTENT_CHARS],
        timestamp=record.timestamp,
        observed_at=moment,
        trust=record.trust,
        source=record.source,
        group=record.group,
        tags=record.tags,
    )
