"""`AgentMemoryStore`: a store of LangGraph; needs the extra `langgraph`."""

from __future__ import annotations

import asyncio
import math
import operator
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from langgraph.store.base import (
    BaseStore,
    GetOp,
    IndexConfig,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
    ensure_embeddings,
    get_text_at_path,
)

from agent_memory.memory.loop_thread import LoopThread
from agent_memory.memory.verbatim_storage import VerbatimDraft, VerbatimStorage, load_value
from agent_memory.models import utc_now

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence
    from pathlib import Path

    from langchain_core.embeddings import Embeddings

    from agent_memory.models import Clock
    from agent_memory.models.verbatim import VerbatimRecord

_ADAPTER: Final = "langgraph"
_MAX_VECTORS: Final = 20_000
"""Vectors in memory; more are made again."""
_ORDERS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


class AgentMemoryStore(BaseStore):
    """Items by namespace and key, in the memory folder of an agent.

    The puts of a batch are one change. Several objects and processes may use one folder at the same time.

    Args:
        agent_id: Name of the agent whose folder has the items.
        root: Folder of all agents; that of the command line when omitted.
        index: Embedder and fields for searches by meaning; without it a query does not order the results.
        ttl: Default lifetime of items; see `TTLConfig`. Expired items are never returned.
        refuse_secrets: True to raise `ValidationError` for a secret instead of replacing it by a marker.
        clock: Source of the present.
    """

    supports_ttl = True

    def __init__(
        self,
        agent_id: str = "me",
        *,
        root: str | Path | None = None,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        refuse_secrets: bool = False,
        clock: Clock = utc_now,
    ) -> None:
        self.index_config, self.ttl_config, self._clock = index, ttl, clock
        self._storage = VerbatimStorage(agent_id, _ADAPTER, root, refuse_secrets=refuse_secrets, clock=clock)
        self._vectors = _VectorCache(ensure_embeddings(index["embed"])) if index else None
        self._loop = LoopThread()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations; reads come before the writes.

        Raises:
            ValidationError: An item is too long, or has a secret that may not be redacted; nothing was changed.
        """
        return self._loop.wait_for(self._run(list(ops)))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations as `batch` does."""
        return await self._loop.run(self._run(list(ops)))

    def close(self) -> None:
        """Close the files. Can be called more than once."""
        self._loop.wait_for(self._storage.close())
        self._loop.stop()

    async def _run(self, ops: list[Op]) -> list[Result]:
        results: list[Result] = []
        read: list[VerbatimRecord] = []
        for op in ops:
            match op:
                case GetOp():
                    record = await self._storage.find(op.namespace, op.key)
                    read += [record] if record is not None and op.refresh_ttl else []
                    results.append(None if record is None else Item(**_get_fields(record)))
                case SearchOp():
                    ranked = await self._search(op)
                    read += [record for record, _ in ranked if op.refresh_ttl]
                    results.append([SearchItem(**_get_fields(record), score=score) for record, score in ranked])
                case ListNamespacesOp():
                    results.append(_list_namespaces(op, await self._storage.list_in(())))
                case PutOp():
                    results.append(None)
                case _:
                    raise ValueError(f"Unknown operation type: {type(op)}")
        await self._write({(op.namespace, op.key): op for op in ops if isinstance(op, PutOp)}.values(), read)
        return results

    async def _write(self, puts: Collection[PutOp], read: Iterable[VerbatimRecord]) -> None:
        """Store and delete items, and extend the lifetime of read ones."""
        drafts = [self._draft(op) for op in puts if op.value is not None]
        removed = [self._storage.get_id(op.namespace, op.key) for op in puts if op.value is None]
        if drafts or removed:
            await self._storage.put(drafts, removed)
        now = self._clock()
        if expiries := {record.id: now + _get_lifetime(record) for record in read if "ttl" in record.metadata}:
            await self._storage.extend(expiries)

    def _draft(self, op: PutOp) -> VerbatimDraft:
        options = {"index": op.index, "ttl": op.ttl}
        return self._storage.draft(
            op.namespace,
            dict(op.value or {}),
            key=op.key,
            metadata={name: value for name, value in options.items() if value is not None},
            expires_at=None if op.ttl is None else self._clock() + timedelta(minutes=op.ttl),
        )

    async def _search(self, op: SearchOp) -> list[tuple[VerbatimRecord, float | None]]:
        """Return one page of matching items with their scores."""
        records = [
            record
            for record in await self._storage.list_in(op.namespace_prefix)
            if not op.filter or _matches(load_value(record), op.filter)
        ]
        ranked: list[tuple[VerbatimRecord, float | None]] = [(record, None) for record in records]
        if op.query and self._vectors is not None and records:
            texts = [self._list_texts(record) for record in records]
            scores = await asyncio.to_thread(self._vectors.score, op.query, texts)
            ranked = sorted(zip(records, scores, strict=True), key=_get_rank)
        return ranked[op.offset : op.offset + op.limit]

    def _list_texts(self, record: VerbatimRecord) -> list[str]:
        """Return the texts of an item that are indexed."""
        fields: Any = record.metadata.get("index")
        if fields is False or self.index_config is None:
            return []
        paths = self.index_config.get("fields") or ["$"] if fields is None else fields
        value = load_value(record)
        return [text for path in paths for text in get_text_at_path(value, path)]


class _VectorCache:
    """Vectors of texts, in memory.

    Args:
        embeddings: Embedder of texts and queries.
    """

    def __init__(self, embeddings: Embeddings) -> None:
        self._embeddings = embeddings
        self._vectors: dict[str, list[float]] = {}

    def score(self, query: str, texts: Sequence[Sequence[str]]) -> list[float | None]:
        """Return the highest cosine of each list of texts, or None."""
        unknown = list(dict.fromkeys(text for group in texts for text in group if text not in self._vectors))
        if unknown:
            if len(self._vectors) + len(unknown) > _MAX_VECTORS:
                self._vectors.clear()
                unknown = list(dict.fromkeys(text for group in texts for text in group))
            self._vectors |= dict(zip(unknown, map(_normalize, self._embeddings.embed_documents(unknown)), strict=True))
        vector = _normalize(self._embeddings.embed_query(query))

        def get_cosine(text: str) -> float:
            return math.fsum(map(operator.mul, vector, self._vectors[text]))

        return [max(map(get_cosine, group), default=None) for group in texts]


def _normalize(vector: Sequence[float]) -> list[float]:
    length = math.sqrt(sum(value * value for value in vector)) or 1.0
    return [value / length for value in vector]


def _get_rank(scored: tuple[VerbatimRecord, float | None]) -> float:
    """Return the sort key; items without a score come last."""
    return math.inf if scored[1] is None else -scored[1]


def _get_lifetime(record: VerbatimRecord) -> timedelta:
    minutes: Any = record.metadata["ttl"]
    return timedelta(minutes=minutes)


def _get_fields(record: VerbatimRecord) -> dict[str, Any]:
    """Return the fields of an item of LangGraph."""
    return {
        "namespace": tuple(record.namespace),
        "key": record.key,
        "value": load_value(record),
        "created_at": record.timestamp,
        "updated_at": record.moment,
    }


def _list_namespaces(op: ListNamespacesOp, records: Iterable[VerbatimRecord]) -> list[tuple[str, ...]]:
    """Return one page of the matching namespaces, sorted."""
    namespaces = {tuple(record.namespace) for record in records}
    conditions = op.match_conditions or ()
    matching = {
        namespace[: op.max_depth]
        for namespace in namespaces
        if all(_is_at_end(condition, namespace) for condition in conditions)
    }
    return sorted(matching)[op.offset : op.offset + op.limit]


def _is_at_end(condition: MatchCondition, namespace: tuple[str, ...]) -> bool:
    """Return True if a namespace begins or ends with a path."""
    path = condition.path
    if condition.match_type not in {"prefix", "suffix"}:
        raise ValueError(f"Unsupported match type: {condition.match_type}")
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[-len(path) :]
    return len(part) == len(path) and all(name in {"*", label} for name, label in zip(path, part, strict=True))


def _matches(value: Any, wanted: Any) -> bool:
    """Return True if a value meets a filter."""
    if isinstance(wanted, dict):
        if any(name.startswith("$") for name in wanted):
            return all(_meets(value, name, bound) for name, bound in wanted.items())
        return isinstance(value, dict) and all(_matches(value.get(name), part) for name, part in wanted.items())
    if isinstance(wanted, list | tuple):
        is_list = isinstance(value, list) and len(value) == len(wanted)
        return is_list and all(map(_matches, value, wanted))
    return bool(value == wanted)


def _meets(value: Any, name: str, bound: Any) -> bool:
    """Return True if a value meets one operator.

    Raises:
        ValueError: The operator is unknown.
    """
    if name in {"$eq", "$ne"}:
        return bool(value == bound) == (name == "$eq")
    if name not in _ORDERS:
        raise ValueError(f"Unsupported operator: {name}")
    return value is not None and _ORDERS[name](float(value), float(bound))
