"""The capture hooks on amplifier-core's coordinator: what is heard, when it is stored, and that nothing ever raises."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from amplifier_core.testing import MockContextManager, MockCoordinator

from agent_memory.capture import Extractor
from agent_memory.errors import StorageError
from agent_memory.host import MemorySession
from amplifier_module_hooks_memory_capture import STATISTICS_CAPABILITY, mount
from amplifier_module_hooks_memory_capture.recorder import Recorder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

FACT = "We decided to use Postgres for the ledger."
OTHER = "Remember that the staging cluster lives in Frankfurt."


def is_there(path: Path) -> bool:
    """Tell whether anything was made at `path`."""
    return path.exists()


class Talk:
    """One session with the hooks mounted, and what it emitted."""

    def __init__(self, root: Path, **config: Any) -> None:
        self.coordinator = MockCoordinator()
        self.context = MockContextManager()
        self.config = {"agent_id": "bob", "storage_root": str(root), "embedder": "none", **config}
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.cleanup: Any = None

    async def begin(self) -> Talk:
        """Mount everything."""
        await self.coordinator.mount("context", self.context)
        for event in ("memory:captured", "memory:capture_skipped", "memory:degraded"):
            self.coordinator.hooks.register(event, self._note, name="test")
        self.cleanup = await mount(self.coordinator, self.config)
        return self

    async def _note(self, event: str, data: dict[str, Any]) -> None:
        self.events.append((event, data))

    async def emit(self, event: str, **data: Any) -> Any:
        """Emit an event of the host's."""
        return await self.coordinator.hooks.emit(event, data)

    async def say(self, prompt: str) -> None:
        """Let the user say something."""
        await self.emit("prompt:submit", prompt=prompt)

    async def answer(self, text: str) -> None:
        """Let the assistant answer, which ends the turn."""
        await self.context.add_message({"role": "assistant", "content": [{"type": "text", "text": text}]})
        await self.emit("orchestrator:complete", orchestrator="x", turn_count=1, status="success")

    async def end(self) -> None:
        """End the session."""
        await self.emit("session:end")

    @property
    def session(self) -> MemorySession:
        """The session handle the modules share."""
        handle = self.coordinator.get_capability("agent_memory.session")
        assert isinstance(handle, MemorySession)
        return handle

    async def memories(self) -> list[str]:
        """Return what is stored, oldest first."""
        service = await self.session.service()
        assert service is not None
        return sorted([memory.content async for memory in service.storage.iter_all()])

    def reasons(self) -> dict[str, int]:
        """Return the reasons of skipped candidates that were told."""
        told: dict[str, int] = {}
        for event, data in self.events:
            if event == "memory:capture_skipped":
                told[data["reason"]] = told.get(data["reason"], 0) + data["count"]
        return told

    def statistics(self) -> dict[str, Any]:
        """Return the module's counters."""
        result: dict[str, Any] = self.coordinator.get_capability(STATISTICS_CAPABILITY)()
        return result


@pytest.fixture
async def talk(root: Path) -> AsyncIterator[Talk]:
    """Return a session with default settings."""
    begun = await Talk(root).begin()
    yield begun
    await begun.cleanup()


async def test_what_the_user_says_is_stored_at_the_end_of_the_turn(talk: Talk) -> None:
    await talk.say(FACT)
    await talk.answer("ok")
    await talk.end()

    assert await talk.memories() == [FACT]
    assert talk.statistics()["captured"] == 1
    [(event, data)] = talk.events
    assert (event, data["source"], data["category"]) == ("memory:captured", "user", "decision")


async def test_before_the_turn_ends_nothing_is_stored(talk: Talk) -> None:
    await talk.say(FACT)
    await asyncio.sleep(0.05)

    assert await talk.memories() == []


async def test_the_assistants_last_words_are_heard(talk: Talk) -> None:
    await talk.say("hello there")
    await talk.answer("As we agreed, the SOAP endpoint stays until the last customer has migrated.")
    await talk.end()

    assert len(await talk.memories()) == 1


async def test_with_turn_completions_off_the_assistant_is_not_heard(root: Path) -> None:
    talk = await Talk(root, observe_turn_completions=False).begin()
    await talk.say("hello there")
    await talk.answer("As we agreed, the SOAP endpoint stays until the last customer has migrated.")
    await talk.end()

    assert await talk.memories() == []
    await talk.cleanup()


COMMENT = "author: tess (member)\n--\nDecision: refresh tokens stay server-side.\n"


@pytest.mark.parametrize("result", [COMMENT, {"success": True, "output": COMMENT, "error": None}])
async def test_tool_results_are_heard_as_text_and_as_dict(talk: Talk, result: Any) -> None:
    await talk.say("look at the pull request")
    await talk.emit("tool:post", tool_name="bash", tool_input={}, result=result)
    await talk.answer("done")
    await talk.end()

    [memory] = await talk.memories()
    assert "server-side" in memory


async def test_our_own_tools_are_never_heard(talk: Talk) -> None:
    await talk.say("look it up")
    await talk.emit("tool:post", tool_name="memory_search", tool_input={}, result=COMMENT)
    await talk.answer("done")
    await talk.end()

    assert await talk.memories() == []


async def test_with_tool_outputs_off_no_tool_is_heard(root: Path) -> None:
    talk = await Talk(root, observe_tool_outputs=False).begin()
    await talk.emit("tool:post", tool_name="bash", tool_input={}, result=COMMENT)
    await talk.end()

    assert await talk.memories() == []
    await talk.cleanup()


async def test_what_the_model_stored_by_tool_in_the_turn_is_not_stored_again(talk: Talk) -> None:
    await talk.say(FACT)
    talk.session.turn.stored.append("They decided to use Postgres for the ledger")
    await talk.answer("stored")
    await talk.end()

    assert await talk.memories() == []
    assert talk.reasons() == {"stored_by_tool": 1}


async def test_what_our_tools_returned_is_not_captured_when_it_is_said_again(talk: Talk) -> None:
    talk.session.turn.returned = ["As we agreed, the ledger stays on Postgres."]
    await talk.say("hello")
    await talk.answer("As we agreed, the ledger stays on Postgres.")
    await talk.end()

    assert talk.reasons() == {"own_text": 1}


async def test_what_the_model_stored_after_untrusted_output_does_not_stand_for_what_the_user_said(talk: Talk) -> None:
    await talk.say(FACT)
    talk.session.taint.note("web_fetch")
    talk.session.turn.stored.append(FACT)
    await talk.answer("noted")
    await talk.end()

    assert await talk.memories() == [FACT]


async def test_a_turn_that_was_denied_is_stored_with_the_next_prompt(talk: Talk) -> None:
    await talk.say(FACT)
    talk.session.turn.stored.append("nothing of the kind")
    await talk.say("next question, please look at the parser")
    await talk.end()

    assert await talk.memories() == [FACT]


async def test_a_denied_turns_own_stores_still_count_when_the_next_prompt_comes(talk: Talk) -> None:
    await talk.say(FACT)
    talk.session.turn.stored.append(FACT)
    await talk.say("hello again")
    await talk.end()

    assert talk.reasons() == {"stored_by_tool": 1}


async def test_a_fact_said_twice_is_stored_once(talk: Talk) -> None:
    for _ in range(2):
        await talk.say(FACT)
        await talk.answer("ok")
    await talk.end()

    assert await talk.memories() == [FACT]
    assert talk.reasons() == {"duplicate": 1}


async def test_a_forgotten_fact_does_not_come_back(talk: Talk, root: Path) -> None:
    await talk.say(FACT)
    await talk.answer("ok")
    await talk.end()
    service = await talk.session.service()
    assert service is not None
    [memory] = [memory async for memory in service.storage.iter_all()]
    await service.forget(memory.id)
    await talk.cleanup()

    again = await Talk(root).begin()
    await again.say(FACT)
    await again.answer("ok")
    await again.end()

    assert await again.memories() == []
    assert again.reasons() == {"forgotten": 1}
    await again.cleanup()


async def test_the_session_limit_holds_and_is_told(root: Path) -> None:
    talk = await Talk(root, max_captures_per_session=1).begin()
    await talk.say(f"{FACT}\n\n{OTHER}")
    await talk.answer("ok")
    await talk.end()

    assert len(await talk.memories()) == 1
    assert talk.reasons() == {"session_limit": 1}
    await talk.cleanup()


async def test_synchronous_capture_has_stored_when_the_event_returns(root: Path) -> None:
    talk = await Talk(root, async_capture=False).begin()
    await talk.say(FACT)
    await talk.answer("ok")

    assert await talk.memories() == [FACT]
    await talk.cleanup()


async def test_after_untrusted_output_the_assistants_words_have_low_trust(talk: Talk) -> None:
    await talk.say("look at this page")
    talk.session.taint.note("web_fetch")
    await talk.answer("As we agreed, the SOAP endpoint stays until the last customer has migrated.")
    await talk.end()

    service = await talk.session.service()
    assert service is not None
    assert [memory.trust async for memory in service.storage.iter_all()] == ["low"]


async def test_without_an_agent_nothing_is_written_and_nothing_is_said(root: Path) -> None:
    talk = await Talk(root, agent_id=None).begin()
    await talk.say(FACT)
    await talk.answer("ok")
    await talk.end()
    await talk.cleanup()

    assert not is_there(root)
    assert talk.events == []


async def test_a_wrong_setting_captures_nothing_and_does_not_raise(root: Path) -> None:
    talk = await Talk(root, min_confidence="much").begin()
    await talk.say(FACT)
    await talk.end()

    assert talk.session.problem is not None
    assert not is_there(root)
    await talk.cleanup()


async def test_mounting_touches_nothing_on_disk(root: Path) -> None:
    talk = await Talk(root).begin()
    await talk.cleanup()

    assert not is_there(root)


async def test_cleanup_stores_what_still_waits_and_may_be_called_again(root: Path) -> None:
    talk = await Talk(root).begin()
    await talk.say(FACT)
    await talk.cleanup()
    await talk.cleanup()

    again = await Talk(root).begin()
    assert await again.memories() == [FACT]
    await again.cleanup()


async def test_after_cleanup_the_hooks_are_gone(root: Path) -> None:
    talk = await Talk(root).begin()
    await talk.cleanup()

    names = [name for handlers in talk.coordinator.hooks.list_handlers().values() for name in handlers]
    assert not [name for name in names if name.startswith("hooks-memory-capture")]


async def test_the_kernel_awaits_the_cleanup(root: Path) -> None:
    talk = await Talk(root).begin()
    talk.coordinator.register_cleanup(talk.cleanup)
    await talk.say(FACT)
    await talk.coordinator.cleanup()

    again = await Talk(root).begin()
    assert await again.memories() == [FACT]
    await again.cleanup()


@pytest.mark.parametrize("event", ["prompt:submit", "tool:post", "orchestrator:complete", "session:end"])
@pytest.mark.parametrize(
    "data",
    [{}, {"prompt": None}, {"prompt": 7, "result": 7, "tool_name": 7}, {"tool_name": "x", "result": {"output": [[]]}}],
)
async def test_malformed_events_are_answered_with_continue(talk: Talk, event: str, data: dict[str, Any]) -> None:
    result = await talk.emit(event, **data)

    assert result.action == "continue"
    assert talk.events == []


async def test_a_failing_store_is_told_and_the_next_turn_still_works(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = await talk.session.service()
    assert service is not None
    failing = True

    async def capture(*args: Any) -> Any:
        if failing:
            raise StorageError("the disk is on fire")
        return await type(service).capture(service, *args)

    monkeypatch.setattr(service, "capture", capture)
    await talk.say(FACT)
    await talk.answer("ok")
    await talk.end()
    failing = False
    await talk.say(OTHER)
    await talk.answer("ok")
    await talk.end()

    assert await talk.memories() == [OTHER]
    assert talk.reasons() == {"storage": 1}
    await talk.say(FACT)  # it could not be stored, so it is no repetition
    await talk.end()
    assert await talk.memories() == [OTHER, FACT]
    assert [data["component"] for event, data in talk.events if event == "memory:degraded"] == ["capture"]


async def test_a_defect_of_ours_is_told_and_the_worker_survives(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patched:
        patched.setattr(Extractor, "examine", broken)
        await talk.say("first words that are heard")
        await talk.end()
    await talk.say(FACT)
    await talk.answer("ok")
    await talk.end()

    assert await talk.memories() == [FACT]
    assert talk.reasons() == {"internal_error": 1}


async def test_a_drain_that_takes_too_long_ends_and_is_told(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    release = asyncio.Event()

    async def stuck(self: Recorder, item: Any) -> None:
        await release.wait()

    monkeypatch.setattr(Recorder, "_deal_with", stuck)
    monkeypatch.setattr(Recorder.drain, "__defaults__", (0.01,))
    await talk.say(FACT)
    await talk.end()

    assert "drain_timeout" in talk.reasons()
    release.set()


async def test_a_full_queue_drops_and_counts(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asyncio.Queue, "qsize", _full)
    await talk.say(FACT)

    assert talk.statistics()["skipped"] == {"queue_full": 1}


async def test_what_a_full_queue_dropped_is_told_at_the_end_of_the_turn(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(asyncio.Queue, "qsize", _full)
        await talk.say(FACT)
    await talk.answer("ok")
    await talk.end()

    assert talk.reasons() == {"queue_full": 1}


async def test_the_end_of_a_turn_gets_into_a_full_queue(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    await talk.say(FACT)
    with monkeypatch.context() as patched:
        patched.setattr(asyncio.Queue, "qsize", _full)
        await talk.emit("orchestrator:complete", orchestrator="x", turn_count=1, status="success")
    await talk.end()
    assert await talk.memories() == [FACT]
    assert talk.reasons() == {}


async def test_a_context_that_cannot_be_read_is_told_and_the_users_words_are_kept(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unreadable() -> list[Any]:
        raise ConnectionError("the context lives elsewhere")

    await talk.say(FACT)
    monkeypatch.setattr(talk.context, "get_messages", unreadable)
    await talk.emit("orchestrator:complete", orchestrator="x", turn_count=1, status="success")
    await talk.end()

    assert await talk.memories() == [FACT]
    assert talk.reasons() == {"context_unreadable": 1}


def _full(*_: Any) -> int:
    return 1_000_000


class Child(MockCoordinator):
    """A coordinator of a sub-session."""

    @property
    def parent_id(self) -> str:
        """Return the parent's id."""
        return "parent"


async def test_a_sub_sessions_instruction_is_not_captured(root: Path) -> None:
    talk = Talk(root)
    talk.coordinator = Child()
    await talk.begin()
    await talk.say(FACT)
    await talk.answer(FACT)
    await talk.end()
    await talk.cleanup()

    assert not is_there(root)


async def test_the_events_are_declared(talk: Talk) -> None:
    declared = await talk.coordinator.collect_contributions("observability.events")

    assert "memory:captured" in declared[0]
