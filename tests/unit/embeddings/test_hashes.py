"""Which texts are meant is known by the beginnings of their hashes."""

from __future__ import annotations

from agent_memory.embeddings import text_hash
from agent_memory.embeddings.cache import HashSet, get_hash_prefix


def test_what_was_put_in_is_in_and_nothing_else() -> None:
    keys = [text_hash(f"text {number}") for number in range(100)]
    hashes = HashSet.of(keys[:50])
    assert [key in hashes for key in keys] == [True] * 50 + [False] * 50
    assert (len(hashes), sorted(map(get_hash_prefix, keys[:50]))) == (50, list(hashes))
    assert "text 1" not in hashes
    assert keys[0] not in HashSet()
