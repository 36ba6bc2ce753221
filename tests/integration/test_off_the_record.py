"""A request to store nothing holds for capture, for the tools and for ingestion at once, and ordinary words do not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from amplifier_core.testing import MockContextManager

import amplifier_module_hooks_memory_capture as capture
import amplifier_module_hooks_memory_ingestion as ingestion
import amplifier_module_tool_memory_semantic as tools
from agent_memory.knowledge.records import Knowledge
from agent_memory.settings import ServiceSettings
from tests.support import coordinator_of

if TYPE_CHECKING:
    from pathlib import Path

REQUESTS = (
    "Please don't store any of this conversation.",
    "Off the record, please.",
    "From now on, don't remember anything I say.",
    "Could you not save this chat, please?",
    "I don't want any of this remembered.",
    "Let's keep this off the record.",
    "Stop recording this conversation.",
    "Keep this conversation out of your memory.",
    "Speichere bitte nichts von diesem Gespräch.",
    "N'enregistre rien de cette conversation, s'il te plaît.",
    "No guardes nada de esta conversación.",
    "この会話は保存しないでください。",
)
ORDINARY = (
    "Review the off-the-record interview module.",
    "Do not store passwords in the repo.",
    "Don't save the file yet.",
    "Can you store again the parsed config in cache?",
    "Never keep this session in a cookie.",
    "I don't remember any of this code.",
    "Don't log the conversation id twice.",
    "Is this off the record feature tested?",
    "Make sure that nothing is stored in the browser.",
    "Speichere die Datei noch nicht.",
    "N'enregistre pas le fichier.",
    "No guardes nada en la caché.",
)
DECISION = "We decided to move to Kubernetes."
SETTINGS = {"agent_id": "bob", "embedder": "none"}


async def talk(root: Path, first: str) -> tuple[set[str], list[str], bool]:
    """Say something, then a decision; return what was captured, what was taken in, and whether the tool stored."""
    shared: dict[str, Any] = {**SETTINGS, "storage_root": str(root)}
    coordinator = coordinator_of("session-1")
    context = MockContextManager()
    await coordinator.mount("context", context)
    cleanups = [
        await tools.mount(coordinator, dict(shared)),
        await capture.mount(coordinator, {**shared, "async_capture": False}),
        await ingestion.mount(coordinator, {**shared, "background": False}),
    ]
    for text in (first, DECISION):
        await coordinator.hooks.emit("prompt:submit", {"prompt": text})
        await context.add_message({"role": "assistant", "content": f"Noted: {text}"})
        await coordinator.hooks.emit("orchestrator:complete", {"status": "success", "turn_count": 1})
    offered = coordinator.get("tools")
    assert offered is not None
    memories = (await offered["memory_list_recent"].execute({"limit": 10})).output["memories"]
    stored = await offered["memory_store"].execute({"content": "The salary is 80,000.", "category": "note"})
    await coordinator.hooks.emit("session:end", {})
    for cleanup in reversed(cleanups):
        await cleanup()
    knowledge = Knowledge("bob", ServiceSettings(embedder="none", storage_root=str(root)))
    episodes = [episode.content async for episode in knowledge.episodes.iter_all()]
    await knowledge.close()
    return {memory["content"] for memory in memories}, episodes, bool(stored.success)


@pytest.mark.parametrize("request_text", REQUESTS)
async def test_request_keeps_capture_tool_and_ingestion_from_storing(root: Path, request_text: str) -> None:
    assert await talk(root, request_text) == (set(), [], False)


@pytest.mark.parametrize("sentence", ORDINARY)
async def test_ordinary_sentence_stops_nothing(root: Path, sentence: str) -> None:
    memories, episodes, is_stored = await talk(root, sentence)
    assert DECISION in memories
    assert {sentence, DECISION} <= set(episodes)
    assert is_stored
