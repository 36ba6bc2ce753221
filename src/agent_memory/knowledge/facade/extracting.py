"""`Extraction`: draws items from resources, and keeps what an agent notes as one."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Final

from agent_memory.errors import CategoryExistsError, ExtractionError, ResourceNotFoundError, ValidationError
from agent_memory.knowledge.facade.events import ItemsExtractedPayload, MemoryEventType
from agent_memory.knowledge.facade.shapes import MemoryItem
from agent_memory.knowledge.items.by_model import MODEL, by_model
from agent_memory.knowledge.pages.filing import guessed, open_to
from agent_memory.knowledge.pages.paging import unsaid
from agent_memory.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from agent_memory.knowledge.facade.categories import CategoryLayer
    from agent_memory.knowledge.facade.consolidating import Consolidation
    from agent_memory.knowledge.facade.events import Events
    from agent_memory.knowledge.facade.layers import ItemLayer, ResourceLayer
    from agent_memory.knowledge.facade.shapes import Importance
    from agent_memory.knowledge.items.by_model import Drawn
    from agent_memory.knowledge.llm.port import Asking
    from agent_memory.models import Resource as ResourceRecord
    from agent_memory.models import Topic

log = get_logger(__name__)

_QUOTED: Final = 0.8
"""How sure it is that a resource says what is quoted from it: what a rule takes for a statement may be none."""
_NOTED: Final = 1.0
_PASSAGE_FIELDS: Final = ("source", "metadata", "observed_at", "trust", "tags", "links")


class Items(list[MemoryItem]):
    """Items, and what is to be told of them.

    Attributes:
        warnings: Why there are not more of them, and what was left out, in a sentence each.
        degraded: Why rules drew some that a language model was to draw, in a sentence; None if it drew all.
        by_model: How many it drew.
    """

    def __init__(self, items: Iterable[MemoryItem] = ()) -> None:
        super().__init__(items)
        self.warnings: list[str] = []
        self.degraded: str | None = None
        self.by_model = 0


class Extraction:
    """Draws items.

    Args:
        resources, items, categories: The layers.
        consolidation: Makes pages that are due.
        events: Gets what was done.
        asking: How a language model is asked, by whom it is wanted.
    """

    def __init__(
        self,
        resources: ResourceLayer,
        items: ItemLayer,
        categories: CategoryLayer,
        consolidation: Consolidation,
        events: Events,
        asking: Asking,
    ) -> None:
        self._resources, self._items, self._categories = resources, items, categories
        self._consolidation, self._events, self._asking = consolidation, events, asking

    async def of_resource(self, resource_id: str, hint: str | None, *, strict: bool, with_model: bool = False) -> Items:
        """Draw the items of a resource; see `MemoryManager.extract_and_store`."""
        began = time.perf_counter()
        record = await self._resources.record(resource_id)
        if record is None:
            raise ResourceNotFoundError(resource_id)
        if hint is not None:
            await self._declare(hint)
        topics = [] if hint is not None else await self._categories.topics()
        items = Items()
        await self._keep_passages(record, hint, topics, items)
        if with_model:
            harvest = await by_model(self._asking, await self._resources.passages(record), topics)
            items.warnings, items.degraded = [*items.warnings, *harvest.warnings], harvest.problem
            if self._asking.model is not None:
                await self._events.model_did(self._asking.budget, harvest.problem, self._items.caller)
            await self._keep(harvest.drawn, hint, topics, record, items)
        if not items:
            items.warnings.append(f"Nothing that states something was found in {resource_id}.")
            if strict:
                raise ExtractionError(items.warnings[-1])
            log.warning("nothing_extracted", resource_id=resource_id)
        await self._tell(record, items, began)
        return items

    async def noted(self, content: str, category: str | None, importance: Importance) -> MemoryItem:
        """Keep what an agent notes as an item of the said words; see `MemoryManager.remember`."""
        if category is not None:
            await self._declare(category)
        topic = category or (await self._guessed([content], await self._categories.topics()))[0]
        said = await self._resources.store(content, "feedback", {"context": "remember"}, self._items.caller)
        item = MemoryItem("", said.content, None, said.resource_id, topic or None, _NOTED, said.created_at, importance)
        kept = await self._items.store(item, source={"kind": "extraction", "detail": "remember"})
        await self._consolidation.make_due([kept.category] if kept.category else [])
        return kept

    async def _keep_passages(
        self, record: ResourceRecord, hint: str | None, topics: Sequence[Topic], items: Items
    ) -> None:
        """Store the passages of a resource."""
        drawn = await self._resources.cut(record)
        names = [hint or ""] * len(drawn)
        if hint is None:
            for group in sorted({values["group"] for values in drawn}):
                places = [at for at, values in enumerate(drawn) if values["group"] == group]
                texts = [drawn[at]["content"] for at in places]
                for at, name in zip(places, await self._guessed(texts, open_to(group, topics)), strict=True):
                    names[at] = name
        for values, topic in zip(drawn, names, strict=True):
            source = values["links"][0]["id"]
            item = MemoryItem("", values["content"], None, source, topic or None, _QUOTED, record.timestamp)
            fields = {name: values[name] for name in _PASSAGE_FIELDS if name in values}
            try:
                items.append(await self._items.store(item, **fields))
            except ValidationError as error:  # nothing but a secret, for instance
                items.warnings.append(error.message)

    async def _keep(
        self, drawn: Sequence[Drawn], hint: str | None, topics: Sequence[Topic], record: ResourceRecord, items: Items
    ) -> None:
        names = await self._filed(drawn, hint, topics)
        for one, topic in zip(drawn, names, strict=True):
            try:
                kept = await self._items.store(
                    MemoryItem("", one.text, None, one.passage.source, topic or None, _QUOTED, record.timestamp),
                    source={"kind": "extraction", "detail": one.rule},
                    metadata={"at": [one.start, one.end]},
                    observed_at=one.passage.said_at or record.observed_at,
                )
            except ValidationError as error:  # nothing but a secret, for instance
                items.warnings.append(error.message)
                continue
            items.append(kept)
            items.by_model += one.rule == MODEL

    async def _filed(self, drawn: Sequence[Drawn], hint: str | None, topics: Sequence[Topic]) -> list[str]:
        """Return the topic of each statement: as hinted, as a model said, or guessed among those open to its group."""
        if hint is not None:
            return [hint] * len(drawn)
        names = [one.category for one in drawn]
        for group in sorted({one.passage.group for one, name in zip(drawn, names, strict=True) if not name}):
            places = [at for at, one in enumerate(drawn) if not names[at] and one.passage.group == group]
            found = await self._guessed([drawn[at].text for at in places], open_to(group, topics))
            for at, name in zip(places, found, strict=True):
                names[at] = name
        return names

    async def _guessed(self, texts: Sequence[str], topics: Sequence[Topic]) -> list[str]:
        return await guessed(self._items.service, texts, topics)

    async def _declare(self, name: str) -> None:
        if await self._categories.topic(name) is None:
            with contextlib.suppress(CategoryExistsError):
                await self._categories.create(name, unsaid(name.replace("_", " ")))

    async def _tell(self, record: ResourceRecord, items: Items, began: float) -> None:
        names = sorted({item.category for item in items if item.category})
        spent = 1000 * (time.perf_counter() - began)
        payload = ItemsExtractedPayload(
            record.id, [item.item_id for item in items], len(items), names, spent, items.by_model
        )
        await self._events.send(MemoryEventType.ITEMS_EXTRACTED, payload, self._items.caller)
        await self._consolidation.make_due(names)
