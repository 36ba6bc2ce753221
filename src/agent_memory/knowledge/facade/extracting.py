"""`Extraction`: draws items from resources, and keeps what an agent notes as one."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Final

from agent_memory.errors import CategoryExistsError, ExtractionError, ResourceNotFoundError, ValidationError
from agent_memory.knowledge.digest.model_digest import ask_statements, split_batches
from agent_memory.knowledge.facade.events import ItemsExtractedPayload, MemoryEventType
from agent_memory.knowledge.facade.shapes import MemoryItem, item_of
from agent_memory.knowledge.pages.filing import guessed, open_to
from agent_memory.knowledge.pages.page_items import unsaid
from agent_memory.knowledge.passages.items import is_passage
from agent_memory.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from agent_memory.knowledge.digest.passage_digest import PassageDigest
    from agent_memory.knowledge.facade.categories import CategoryLayer
    from agent_memory.knowledge.facade.consolidating import Consolidation
    from agent_memory.knowledge.facade.events import Events
    from agent_memory.knowledge.facade.layers import ItemLayer, ResourceLayer
    from agent_memory.knowledge.facade.shapes import Importance
    from agent_memory.knowledge.llm.language_model import Asking
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
        degraded: Sentence that says why a language model gave no statements; None if it did, or was not asked.
        by_model: How many are its statements.
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
        passage_digest: Checks and stores the model's statements.
    """

    def __init__(
        self,
        resources: ResourceLayer,
        items: ItemLayer,
        categories: CategoryLayer,
        consolidation: Consolidation,
        events: Events,
        asking: Asking,
        passage_digest: PassageDigest,
    ) -> None:
        self._resources, self._items, self._categories = resources, items, categories
        self._consolidation, self._events, self._asking = consolidation, events, asking
        self._passage_digest = passage_digest

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
            await self._digest(items)
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
        topic = category or (await guessed(self._items.service, [content], await self._categories.topics()))[0]
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
                found = await guessed(self._items.service, texts, open_to(group, topics))
                for at, name in zip(places, found, strict=True):
                    names[at] = name
        for values, topic in zip(drawn, names, strict=True):
            source = values["links"][0]["id"]
            item = MemoryItem("", values["content"], None, source, topic or None, _QUOTED, record.timestamp)
            fields = {name: values[name] for name in _PASSAGE_FIELDS if name in values}
            try:
                items.append(await self._items.store(item, **fields))
            except ValidationError as error:  # nothing but a secret, for instance
                items.warnings.append(error.message)

    async def _digest(self, items: Items) -> None:
        """Add a model's statements about the passages of a resource."""
        found = [await self._items.service.storage.get(item.item_id) for item in items]
        passages = [memory for memory in found if memory is not None and is_passage(memory)]
        for batch in split_batches(passages):
            outcome = await ask_statements(self._passage_digest, self._asking, batch, self._items.caller)
            items.warnings += outcome.warnings
            items.degraded = outcome.failure.sentence if outcome.failure else items.degraded
            items += [item_of(memory) for memory in outcome.stored]
            items.by_model += len(outcome.stored)
        if self._asking.model is not None:
            await self._asking.budget.report_problem(items.degraded, self._items.service, self._items.caller)

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
