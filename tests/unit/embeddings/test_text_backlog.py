"""Which waiting texts are embedded together."""

from __future__ import annotations

from agent_memory.embeddings.worker import TextBacklog, WorkerLimits


def fill(*texts: str, batch: int = 2, window: int = 4) -> TextBacklog:
    backlog = TextBacklog(WorkerLimits(batch=batch, window=window))
    backlog.texts.update({text.encode(): text for text in texts})
    return backlog


def test_take_prefers_texts_of_the_oldest_ones_length() -> None:
    backlog = fill("short", "a much longer text of several words", "brief", "another long text of several words")
    assert list(backlog.take().values()) == ["short", "brief"]
    assert len(backlog.take()) == 2
    assert backlog.pending == 2


def test_take_always_has_the_oldest_text() -> None:
    backlog = fill("a much longer text of several words", *(f"text {number}" for number in range(9)))
    taken = [list(backlog.take().values()) for _ in range(5)]
    assert "a much longer text of several words" in taken[0]
    assert sum(map(len, taken)) == 10


def test_take_looks_only_at_the_window() -> None:
    backlog = fill("one", "a longer text", "another longer text", "two", window=3)
    assert "two" not in backlog.take().values()
