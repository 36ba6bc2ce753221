"""Search source for passages, pages and turns of conversations.

Opens the files of knowledge at the first search, and only those that exist.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from agent_memory.files.layout import folder_of
from agent_memory.index.ranker import STRONG_SHARE
from agent_memory.knowledge.entities.merges import is_guessed_entity
from agent_memory.knowledge.intake.drafts import is_local
from agent_memory.knowledge.passages.sections import SEPARATOR
from agent_memory.language.text_forms import excerpt
from agent_memory.language.words import query_terms
from agent_memory.memory.search_sources import NAME_CHARS, SearchSource, WideRequest, build_hit
from agent_memory.memory.views import shorten_line
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
from agent_memory.models.clock import get_saying_metadata
from agent_memory.models.memory import SECTION

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from agent_memory.index import Hit
    from agent_memory.knowledge.pages.visible_topics import SeenTopics
    from agent_memory.knowledge.passages.forgotten_texts import ForgottenTexts
    from agent_memory.knowledge.records import Knowledge
    from agent_memory.memory import Caller, MemoryService
    from agent_memory.models import HitKind, Kind, Memory, MemorySearchResult, Resource, SearchResults

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
    """Add the agent's knowledge as a search source; return the service."""
    if service.settings.backend != "server":
        service.searcher.add_source(KnowledgeSource(service))
    return service


class KnowledgeSource(SearchSource):
    """Search source over documents, conversations and pages.

    Args:
        service: Service of the agent's memory.
    """

    def __init__(self, service: MemoryService) -> None:
        self._service = service
        self._knowledge: Knowledge | None = None
        self._forgotten: ForgottenTexts | None = None

    async def find(self, asked: WideRequest) -> SearchResults:
        """Return turns of conversations, and the best page."""
        results = await super().find(asked)
        if "talk" in asked.kinds and self._has(EPISODE):
            await self._add_turns(results, asked)
        if "page" in asked.kinds and self._has(TOPIC):
            await self._add_pages(results, asked)
        return results

    async def describe(self, hits: Sequence[MemorySearchResult], asked: WideRequest) -> list[MemorySearchResult]:
        """Add source and speaker to items; drop unrequested mail and web text."""
        if not self._has(RESOURCE):
            return await super().describe(hits, asked)
        sources = [link.id for hit in hits for link in hit.memory.links]
        resources = await self._find_resources(sources)
        described = []
        for hit in hits:
            linked = [resources[link.id] for link in hit.memory.links if link.id in resources]
            if linked and all(_is_unasked(resource, asked) for resource in linked):
                continue
            origin = _build_origin(hit, linked[0]) if linked else await self._find_hidden_origin(hit)
            described.append(hit.model_copy(update={"origin": origin, "memory": _with_trust(hit.memory, linked)}))
        forgotten = await self._get_forgotten().find_items([hit.memory for hit in described])
        return [hit for hit in described if hit.memory.id not in forgotten]

    async def _find_hidden_origin(self, hit: MemorySearchResult) -> HitOrigin:
        """Return the origin of an item whose documents are not current."""
        from agent_memory.knowledge.passages.items import list_source_ids
        from agent_memory.knowledge.passages.replaced_items import REPLACED_IN

        for source in list_source_ids(hit.memory):
            resource = (
                await self._open_knowledge().resources.get(source) if source.startswith(RESOURCE.prefix) else None
            )
            if resource is not None:
                newer = str(hit.memory.metadata.get(REPLACED_IN, ""))
                return replace(_build_origin(hit, resource), replaced_by=newer if newer != source else "")
        return hit.origin

    async def get(self, record_id: str, caller: Caller) -> MemorySearchResult | None:
        """Return a visible turn, page or document by its ID, or None."""
        if record_id.startswith(EPISODE.prefix) and self._has(EPISODE):
            turn = await self._open_knowledge().episodes.get(record_id)
            if (
                turn is None
                or not sees(caller.group, turn.facets)
                or not await self._get_forgotten().filter_turns([turn])
            ):
                return None
            resources = await self._find_resources([turn.id])
            return build_hit(_build_turn_text(turn), _build_turn_origin(turn, resources.get(turn.id)))
        if record_id.startswith(TOPIC.prefix) and self._has(TOPIC):
            topic = await self._open_knowledge().topics.get(record_id)
            page = None if topic is None else await self._page(topic, self._get_topics(caller))
            return None if topic is None or page is None else build_hit(page, HitOrigin("page", topic.name))
        if record_id.startswith(RESOURCE.prefix) and self._has(RESOURCE):
            resource = await self._open_knowledge().resources.get(record_id)
            if resource is None or not sees(caller.group, resource.facets):
                return None
            return await self._read_resource(resource)
        return None

    async def _read_resource(self, resource: Resource) -> MemorySearchResult:
        """Return a document or conversation as a hit, marked if not current."""
        kind: HitKind = "talk" if resource.resource_type == "conversation" else "passage"
        newer = await self._open_knowledge().resources.replaced_by([resource.id])
        is_expired = resource.is_expired(self._open_knowledge().clock())
        origin = HitOrigin(kind, _get_title(resource), is_expired=is_expired, replaced_by=newer.get(resource.id, ""))
        text = await self._get_forgotten().read_document(resource, resource.content)
        return build_hit(_with_trust(_build_text(resource, text), [resource]), origin)

    async def count(self, asked: WideRequest) -> dict[str, Any]:
        """Count documents, conversations and pages, and name people."""
        counts: dict[str, Any] = {}
        listing = Listing(filters=SearchFilters(include_items=True).within(asked.caller.group))
        if self._has(RESOURCE):
            resources = (await self._open_knowledge().resources.browse(listing)).records
            talks = sum(resource.resource_type == "conversation" for resource in resources)
            counts |= {"documents": len(resources) - talks, "conversations": talks}
            topics = await self._get_topics(asked.caller).topics()
            counts["pages"] = sum(topic.consolidated_at is not None for topic in topics)
        if self._has(ENTITY):
            entities = (await self._open_knowledge().entities.browse(listing)).records
            typed = [entity for entity in entities if entity.entity_type == "person" and entity.trust != "low"]
            people = [person for person in typed if not is_guessed_entity(person)]
            names = [shorten_line(visible(person.name), NAME_CHARS) for person in people if person.merged_into is None]
            counts["people"] = names[:_PEOPLE]
        return counts

    async def close(self) -> None:
        """Close the files of knowledge."""
        if self._knowledge is not None:
            await self._knowledge.close()

    # -- turns --------------------------------------------------------------------------------------------------------

    async def _add_turns(self, results: SearchResults, asked: WideRequest) -> None:
        from agent_memory.knowledge.passages.items import is_talk  # only for those who have conversations

        answer = await self._open_knowledge().episodes.answer(asked.elsewhere())
        turns = [turn for turn in answer.records if is_talk(turn) or asked.kinds != HIT_KINDS]
        turns = await self._get_forgotten().filter_turns(turns)
        resources = await self._find_resources([turn.id for turn in turns])
        shown = {turn.id: turn for turn in turns}
        for hit in answer.ranking.hits:
            if hit.id in shown:
                origin = _build_turn_origin(shown[hit.id], resources.get(hit.id))
                results.append(build_hit(_build_turn_text(shown[hit.id]), origin, hit))
        results.total_found += answer.ranking.total_found - len(answer.records) + len(turns)
        results.words = answer.ranking.words

    def _get_forgotten(self) -> ForgottenTexts:
        """Return the filter of forgotten texts."""
        from agent_memory.knowledge.passages.forgotten_texts import ForgottenTexts

        self._forgotten = self._forgotten or ForgottenTexts(self._open_knowledge(), self._service)
        return self._forgotten

    # -- pages --------------------------------------------------------------------------------------------------------

    async def _add_pages(self, results: SearchResults, asked: WideRequest) -> None:
        """Add the best page of a declared topic; all if asked for."""
        from agent_memory.knowledge.pages.subjects import is_derived  # only for those who have pages

        answer = await self._open_knowledge().topics.answer(asked.elsewhere())
        topics, most = self._get_topics(asked.caller), asked.request.limit if asked.kinds == {"page"} else 1
        results.words = results.words or answer.ranking.words
        for hit, topic in zip(answer.ranking.hits, answer.records, strict=True):
            is_wanted = most and (asked.kinds == {"page"} or not is_derived(topic))
            page = await self._page(topic, topics, answer.ranking.words) if is_wanted else None
            graded = None if page is None else _rate_page(hit, page.content, answer.ranking.words)
            if page is not None and graded is not None:
                results.append(build_hit(page, HitOrigin("page", topic.name), graded))
                results.total_found += 1
                most -= 1

    async def _page(
        self, topic: Topic, topics: SeenTopics, words: Mapping[str, float] | None = None
    ) -> FoundText | None:
        """Return the visible page of a topic without footnotes, or None.

        Args:
            topic: Record of the topic.
            topics: Topics that the caller may see.
            words: Words that choose the part of a long page.
        """
        from agent_memory.knowledge.pages.page import parse  # only for those who have pages

        seen = await topics.topic(topic.name)
        page = "" if seen is None else await topics.get_text(seen)
        text = _FOOTNOTE.sub("", page.partition(_RULE)[0]).strip()
        if not text:
            return None
        if words and len(text) > MAX_CONTENT_CHARS:
            text = excerpt(text, words, _LONG_CHARS)
        trust = "low" if any(claim.is_untrusted for claim in parse(page).claims) else topic.trust
        return _build_text(topic, text).model_copy(update={"trust": trust})

    def _get_topics(self, caller: Caller) -> SeenTopics:
        from agent_memory.knowledge.pages.pages import Pages
        from agent_memory.knowledge.pages.visible_topics import SeenTopics

        knowledge = self._open_knowledge()
        return SeenTopics(knowledge, Pages(knowledge, self._service), lambda: caller, self._get_forgotten())

    # -- records ------------------------------------------------------------------------------------------------------

    def _has(self, kind: Kind[Any]) -> bool:
        """Return True if a file has records of this kind."""
        return (folder_of(self._service.agent_id, self._service.settings.storage_root).path / kind.journal).exists()

    def _open_knowledge(self) -> Knowledge:
        from agent_memory.knowledge.records import Knowledge

        self._knowledge = self._knowledge or Knowledge(self._service.agent_id, self._service.settings)
        return self._knowledge

    async def _find_resources(self, sources: Iterable[str]) -> Mapping[str, Resource]:
        """Map IDs of resources and turns to their resources."""
        ids = list(sources)
        turns, resources = await self._open_knowledge().load_sources(ids)
        homes = {source_id: turns[source_id].conversation if source_id in turns else source_id for source_id in ids}
        return {source_id: resources[home] for source_id, home in homes.items() if home in resources}


def _is_unasked(resource: Resource, asked: WideRequest) -> bool:
    """Return True for mail or web text without a request for documents."""
    if resource.resource_type not in _MAIL_AND_WEB or asked.kinds != HIT_KINDS:
        return False
    names = {*query_terms(_DOCUMENT), *query_terms(resource.resource_type.replace("_", " "))}
    return names.isdisjoint(query_terms(asked.request.text))


def _with_trust(memory: Memory, resources: Sequence[Resource]) -> Memory:
    """Return a text with low trust if all its documents are foreign.

    Earlier versions stored texts of mails and web pages with medium trust.
    """
    is_foreign = resources and not any(is_local(resource.resource_type) for resource in resources)
    return memory.model_copy(update={"trust": "low"}) if is_foreign else memory


def _rate_page(hit: Hit, text: str, words: Mapping[str, float]) -> Hit | None:
    """Grade a page by its text, without footnotes; None without a match.

    A listing has no words, and its hits no grade.
    """
    if not words:
        return hit
    shared = len(words.keys() & set(query_terms(text))) / len(words)
    if not shared:
        return None
    return replace(hit, match="strong" if shared >= STRONG_SHARE else "weak", strength=shared)


def _build_origin(hit: MemorySearchResult, resource: Resource) -> HitOrigin:
    """Return the origin of an item from a resource."""
    speaker = hit.memory.metadata.get("speaker")
    name = speaker if isinstance(speaker, str) and not hit.memory.content.startswith(f"{speaker}: ") else ""
    kinds: Mapping[str, HitKind] = {"conversation": "talk", "feedback": "note"}
    section = hit.memory.metadata.get(SECTION)
    source = f"{_get_title(resource)}{SEPARATOR}{section}" if section else _get_title(resource)
    return HitOrigin(kinds.get(resource.resource_type, "passage"), visible(source), visible(name))


def _build_turn_origin(turn: Episode, resource: Resource | None) -> HitOrigin:
    speaker = turn.speaker or _ROLES.get(turn.role, turn.role)
    return HitOrigin("talk", "" if resource is None else _get_title(resource), visible(speaker))


def _get_title(resource: Resource) -> str:
    return shorten_line(visible(resource.title), _TITLE_CHARS) or resource.resource_type


def _build_turn_text(turn: Episode) -> FoundText:
    return _build_text(turn, turn.content)


def _build_text(record: Episode | Resource | Topic, text: str) -> FoundText:
    """Return a record in the form of a memory."""
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
        metadata=get_saying_metadata(record.metadata),
    )
