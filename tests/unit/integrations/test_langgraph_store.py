"""The store of LangGraph, with or without its package."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.adapter_protocols import use_protocols

use_protocols("langgraph")

from langgraph.store.base import (  # noqa: E402 - it may be the stand-in
    GetOp,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
)

from agent_memory.integrations.langgraph_store import AgentMemoryStore  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support import FrozenClock

DOCS = ("docs",)


class LetterCounter:
    """Embeds a text as its counts of three letters."""

    calls = 0

    def __call__(self, texts: list[str]) -> list[list[float]]:
        self.calls += len(texts)
        return [[float(text.count(letter)) for letter in "xyz"] for text in texts]


@pytest.fixture
def store(root: Path, clock: FrozenClock) -> Iterator[AgentMemoryStore]:
    store = AgentMemoryStore("bob", root=root, clock=clock)
    yield store
    store.close()


def put(store: AgentMemoryStore, key: str, value: Any, namespace: tuple[str, ...] = DOCS, **options: Any) -> None:
    store.batch([PutOp(namespace, key, value, **options)])


def search(store: AgentMemoryStore, **options: Any) -> list[str]:
    (items,) = store.batch([SearchOp(DOCS, **options)])
    return [item.key for item in items]


def test_batch_reads_before_it_writes(store: AgentMemoryStore) -> None:
    put(store, "k", {"n": 1})
    before, _, found, missing = store.batch(
        [GetOp(DOCS, "k"), PutOp(DOCS, "k", {"n": 2}), SearchOp(()), GetOp(("docs", "k"), "")]
    )
    assert (before.value, before.namespace, before.key, missing) == ({"n": 1}, DOCS, "k", None)
    assert [item.value for item in found] == [{"n": 1}]
    (after,) = store.batch([GetOp(DOCS, "k")])
    assert after.value == {"n": 2}
    put(store, "k", None)
    assert store.batch([GetOp(DOCS, "k"), SearchOp(())]) == [None, []]


async def test_abatch_returns_times_of_both_writes(store: AgentMemoryStore, clock: FrozenClock) -> None:
    created = clock.now
    await store.abatch([PutOp(DOCS, "k", {"n": 1})])
    clock.advance(minutes=5)
    await store.abatch([PutOp(DOCS, "k", {"n": 2})])
    (item,) = await store.abatch([GetOp(DOCS, "k")])
    assert (item.created_at, item.updated_at) == (created, clock.now)


@pytest.mark.parametrize(
    ("wanted", "keys"),
    [
        ({"color": "red"}, ["a", "b"]),
        ({"n": {"$gt": 1, "$lte": 3}}, ["b", "c"]),
        ({"n": {"$gte": 3}}, ["c"]),
        ({"n": {"$lt": 2}}, ["a"]),
        ({"color": {"$ne": "red"}}, ["c", "d"]),
        ({"color": {"$eq": "green"}}, ["c"]),
        ({"deep": {"x": 1}}, ["d"]),
        ({"deep": {"x": {"$gt": 0}}}, ["d"]),
        ({"tags": ["p", "q"]}, ["d"]),
        ({"tags": ["p"]}, []),
        ({"missing": {"$gt": 0}}, []),
    ],
)
def test_search_filters_by_value(store: AgentMemoryStore, wanted: dict[str, Any], keys: list[str]) -> None:
    put(store, "a", {"color": "red", "n": 1})
    put(store, "b", {"color": "red", "n": 2})
    put(store, "c", {"color": "green", "n": 3})
    put(store, "d", {"deep": {"x": 1}, "tags": ["p", "q"]})
    put(store, "e", {"color": "red"}, ("elsewhere",))
    assert search(store, filter=wanted) == keys


def test_search_with_unknown_operator_fails(store: AgentMemoryStore) -> None:
    put(store, "a", {"n": 1})
    with pytest.raises(ValueError, match=r"Unsupported operator: \$in"):
        search(store, filter={"n": {"$in": [1]}})
    with pytest.raises(ValueError, match="Unknown operation"):
        store.batch([object()])


def test_search_by_meaning_ranks_indexed_items_first(root: Path) -> None:
    embed = LetterCounter()
    store = AgentMemoryStore("bob", root=root, index={"dims": 3, "embed": embed, "fields": ["text"]})
    put(store, "hidden", {"text": "xx"}, index=False)
    put(store, "x", {"text": "xxx", "title": "z"})
    put(store, "y", {"text": "yy"})
    put(store, "z", {"text": "x", "title": "zz"}, index=["title"])
    assert search(store, query="xx y")[0] == "x"
    assert search(store, query="z")[0] == "z"
    assert search(store, query="x")[-1] == "hidden"
    assert search(store, query="x", limit=1, offset=1) != search(store, query="x", limit=1)
    calls = embed.calls
    search(store, query="y")
    assert embed.calls == calls + 1
    (items,) = store.batch([SearchOp(DOCS, query="x")])
    assert [item.score for item in items if item.key in {"x", "hidden"}] == [pytest.approx(1), None]
    store.close()


def test_namespaces_match_ends_and_wildcards(store: AgentMemoryStore) -> None:
    for path in ("a/b/c", "a/d/c", "e", "a/b/f"):
        put(store, "k", {}, tuple(path.split("/")))

    def list_matching(*conditions: tuple[str, str], **options: Any) -> list[str]:
        matches = tuple(MatchCondition(kind, tuple(path.split("/"))) for kind, path in conditions)
        (namespaces,) = store.batch([ListNamespacesOp(matches, **options)])
        return ["/".join(namespace) for namespace in namespaces]

    assert list_matching() == ["a/b/c", "a/b/f", "a/d/c", "e"]
    assert list_matching(("prefix", "a/*/c")) == ["a/b/c", "a/d/c"]
    assert list_matching(("prefix", "a"), ("suffix", "b/*")) == ["a/b/c", "a/b/f"]
    assert list_matching(max_depth=2) == ["a/b", "a/d", "e"]
    assert list_matching(limit=1, offset=1) == ["a/b/f"]
    with pytest.raises(ValueError, match="Unsupported match type"):
        list_matching(("middle", "a"))


def test_item_expires_unless_it_is_read(store: AgentMemoryStore, clock: FrozenClock) -> None:
    put(store, "read", {"n": 1}, ttl=10)
    put(store, "unread", {"n": 2}, ttl=10)
    put(store, "forever", {"n": 3})
    clock.advance(minutes=8)
    store.batch([GetOp(DOCS, "read"), GetOp(DOCS, "unread", refresh_ttl=False)])
    clock.advance(minutes=8)
    assert search(store, refresh_ttl=False) == ["forever", "read"]
    assert store.batch([GetOp(DOCS, "unread")]) == [None]
    assert store.supports_ttl
    clock.advance(minutes=8)
    assert search(store) == ["forever"]


def test_item_of_another_process_is_found(store: AgentMemoryStore, root: Path) -> None:
    writer = AgentMemoryStore("bob", root=root)
    put(writer, "k", {"n": 1})
    writer.close()
    assert search(store) == ["k"]
