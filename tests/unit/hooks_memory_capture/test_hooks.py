"""The capture hooks on amplifier-core's coordinator: what is heard, when it is stored, and that nothing ever raises."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from amplifier_core.testing import MockContextManager, MockCoordinator

from agent_memory.capture import Extractor
from agent_memory.errors import StorageError
from agent_memory.integrations.amplifier import MemorySession
from agent_memory.integrations.amplifier.hooks.capture_recorder import CaptureRecorder
from agent_memory.memory.inbox_access import opened_inbox
from amplifier_module_hooks_memory_capture.session_mount import STATISTICS_CAPABILITY, mount
from tests.support import plan

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from agent_memory.models import Candidate, Memory

    Begin = Callable[..., Awaitable["Talk"]]

FACT = "We decided to use Postgres for the ledger."
OTHER = "Remember that the staging cluster lives in Frankfurt."
OTHER_KEPT = "The staging cluster lives in Frankfurt."


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

    async def whole(self, prompt: str, answer: str = "ok") -> None:
        """Let the user say something, the assistant answer, and the session end."""
        await self.say(prompt)
        await self.answer(answer)
        await self.end()

    @property
    def session(self) -> MemorySession:
        """The session handle the modules share."""
        handle = self.coordinator.get_capability("agent_memory.session")
        assert isinstance(handle, MemorySession)
        return handle

    async def records(self) -> list[Memory]:
        """Return the memories that are stored."""
        return [memory async for memory in (await self.session.require()).storage.iter_all()]

    async def memories(self) -> list[str]:
        """Return the texts that are stored, in their order."""
        return sorted([memory.content for memory in await self.records()])

    async def waiting(self) -> list[Candidate]:
        """Return the notes that wait."""
        async with opened_inbox(await self.session.require()) as inbox:
            return await inbox.waiting()

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
async def begin(root: Path) -> AsyncIterator[Begin]:
    """Return a function that begins a session with some settings; all are cleaned up at the end."""
    begun: list[Talk] = []

    async def begin_talk(**config: Any) -> Talk:
        begun.append(await Talk(root, **config).begin())
        return begun[-1]

    yield begin_talk
    for talk in begun:
        await talk.cleanup()


@pytest.fixture
async def talk(begin: Begin) -> Talk:
    """Return a session with default settings."""
    return await begin()


async def test_what_the_user_says_is_stored_at_the_end_of_the_turn_and_not_before(talk: Talk) -> None:
    await talk.say(FACT)
    await asyncio.sleep(0.05)
    assert await talk.memories() == []
    await talk.answer("ok")
    await talk.end()
    assert await talk.memories() == [FACT]
    assert talk.statistics()["captured"] == 1
    [(event, data)] = talk.events
    assert (event, data["source"], data["category"]) == ("memory:captured", "user", "decision")


@pytest.mark.parametrize(("config", "heard"), [({}, 1), ({"observe_turn_completions": False}, 0)])
async def test_the_assistants_last_words_are_heard_unless_that_is_off(
    begin: Begin, config: dict[str, Any], heard: int
) -> None:
    talk = await begin(**config)
    await talk.whole("hello there", "As we agreed, the SOAP endpoint stays until the last customer has migrated.")
    assert (await talk.memories(), len(await talk.waiting())) == ([], heard)


COMMENT = "author: tess (member)\n--\nDecision: refresh tokens stay server-side.\n"


@pytest.mark.parametrize("result", [COMMENT, {"success": True, "output": COMMENT, "error": None}])
async def test_tool_results_are_heard_as_text_and_as_dict(talk: Talk, result: Any) -> None:
    await talk.say("look at the pull request")
    await talk.emit("tool:post", tool_name="bash", tool_input={}, result=result)
    await talk.answer("done")
    await talk.end()
    [note] = await talk.waiting()
    assert "server-side" in note.content
    assert await talk.memories() == []


@pytest.mark.parametrize(("config", "tool"), [({}, "memory_search"), ({"observe_tool_outputs": False}, "bash")])
async def test_our_own_tools_are_never_heard_nor_is_any_tool_when_that_is_off(
    begin: Begin, config: dict[str, Any], tool: str
) -> None:
    talk = await begin(**config)
    await talk.say("look it up")
    await talk.emit("tool:post", tool_name=tool, tool_input={}, result=COMMENT)
    await talk.answer("done")
    await talk.end()
    assert await talk.memories() == []


@pytest.mark.parametrize(
    ("stored", "end_of_turn", "memories", "reasons"),
    [
        ("They decided to use Postgres for the ledger", "answer", [], {"stored_by_tool": 1}),
        (FACT, "denied", [], {"stored_by_tool": 1}),
        ("nothing of the kind", "denied", [FACT], {}),
    ],
)
async def test_what_the_model_stored_by_tool_in_the_turn_is_not_stored_again_even_if_the_turn_was_denied(
    talk: Talk, stored: str, end_of_turn: str, memories: list[str], reasons: dict[str, int]
) -> None:
    await talk.say(FACT)
    talk.session.turn.stored.append(stored)
    await (talk.answer("stored") if end_of_turn == "answer" else talk.say("next, please look at the parser"))
    await talk.end()
    assert await talk.memories() == memories
    assert talk.reasons() == reasons


async def test_what_our_tools_returned_is_not_captured_when_it_is_said_again(talk: Talk) -> None:
    talk.session.turn.returned = ["As we agreed, the ledger stays on Postgres."]
    await talk.whole("hello", "As we agreed, the ledger stays on Postgres.")
    assert talk.reasons() == {"own_text": 1}


async def test_what_the_model_stored_after_untrusted_output_does_not_stand_for_what_the_user_said(talk: Talk) -> None:
    await talk.say(FACT)
    talk.session.taint.note("web_fetch")
    talk.session.turn.stored.append(FACT)
    await talk.answer("noted")
    await talk.end()
    assert await talk.memories() == [FACT]


async def test_a_fact_said_twice_is_stored_once(talk: Talk) -> None:
    for _ in range(2):
        await talk.say(FACT)
        await talk.answer("ok")
    await talk.end()
    assert await talk.memories() == [FACT]
    assert talk.reasons() == {"duplicate": 1}


async def test_a_forgotten_fact_does_not_come_back(begin: Begin, talk: Talk) -> None:
    await talk.whole(FACT)
    [memory] = await talk.records()
    await (await talk.session.require()).forget(memory.id)
    await talk.cleanup()
    again = await begin()
    await again.whole(FACT)
    assert await again.memories() == []
    assert again.reasons() == {"forgotten": 1}


async def test_the_session_limit_holds_and_is_told(begin: Begin) -> None:
    talk = await begin(max_captures_per_session=1)
    await talk.whole(f"{FACT}\n{OTHER}")
    assert len(await talk.memories()) == 1
    assert talk.reasons() == {"session_limit": 1}


async def test_synchronous_capture_has_stored_when_the_event_returns(begin: Begin) -> None:
    talk = await begin(async_capture=False)
    await talk.say(FACT)
    await talk.answer("ok")
    assert await talk.memories() == [FACT]


async def test_after_untrusted_output_the_assistants_words_have_low_trust(talk: Talk) -> None:
    await talk.say("look at this page")
    talk.session.taint.note("web_fetch")
    await talk.answer("As we agreed, the SOAP endpoint stays until the last customer has migrated.")
    await talk.end()
    assert [note.trust for note in await talk.waiting()] == ["low"]


async def test_capture_for_tenant_without_agent_writes_nothing(begin: Begin, root: Path) -> None:
    talk = await begin(agent_id=None)
    talk.coordinator.register_capability("tenant_id", "acme")
    await talk.whole(FACT)
    await talk.cleanup()
    assert not root.exists()
    assert talk.events == []


@pytest.mark.parametrize("mode", ["manual", "manuel"])
async def test_where_only_tools_may_write_nothing_is_captured_and_nothing_is_said(
    begin: Begin, root: Path, mode: str
) -> None:
    talk = await begin()
    talk.coordinator.config["session"] = plan(memory={"mode": mode})["session"]
    await talk.whole(FACT)
    await talk.cleanup()
    assert talk.events == []
    assert not root.exists()


async def test_capture_without_a_cue_waits(talk: Talk) -> None:
    await talk.whole("I like small pull requests. Never rebase the main branch.")
    assert await talk.memories() == ["Never rebase the main branch."]
    assert [note.content for note in await talk.waiting()] == ["I like small pull requests."]
    assert (await (await talk.session.require()).search("pull requests")).results == []


async def test_capture_of_a_waiting_text_with_a_cue_takes_it_out_of_waiting(talk: Talk) -> None:
    await talk.whole("I like small pull requests.")
    assert [note.is_note for note in await talk.waiting()] == [True]
    await talk.whole("Remember that I like small pull requests.")
    assert await talk.memories() == ["I like small pull requests."]
    assert await talk.waiting() == []


async def test_capture_without_an_inbox_skips_notes_and_says_so(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    talk = await begin()
    service = await talk.session.require()
    monkeypatch.setattr(service, "settings", service.settings.model_copy(update={"backend": "server"}))
    await talk.whole(f"{FACT} I like small pull requests.")
    assert await talk.memories() == [FACT]
    assert talk.reasons() == {"inbox_needs_files": 1}


async def test_capture_with_an_end_date_expires(talk: Talk) -> None:
    await talk.whole("Keep in mind that prod is frozen until 3 May 2099. Also run the linter.")
    [memory] = await talk.records()
    assert memory.content == "Prod is frozen until 3 May 2099."
    assert memory.expires_at is not None
    assert memory.expires_at.date().isoformat() in {"2099-05-03", "2099-05-04"}


async def test_capture_of_a_stored_text_ignores_the_cue(talk: Talk) -> None:
    service = await talk.session.require()
    await service.store("Remember that the staging cluster lives in Frankfurt.")
    await talk.whole(OTHER)
    assert await talk.memories() == [OTHER]
    assert talk.reasons() == {"duplicate": 1}


async def test_with_mode_ask_captures_wait_and_a_wish_to_remember_is_a_yes(begin: Begin) -> None:
    talk = await begin()
    talk.coordinator.config["session"] = plan(memory={"mode": "ask"})["session"]
    await talk.whole(FACT)
    await talk.whole(OTHER)
    assert await talk.memories() == [OTHER_KEPT]
    async with opened_inbox(await talk.session.require()) as inbox:
        (waiting,) = await inbox.waiting()
    assert (waiting.content, waiting.category, waiting.trust, waiting.via) == (FACT, "decision", "medium", "capture")
    assert talk.statistics() == {"captured": 1, "in_inbox": 1, "waiting": 0, "skipped": {}}
    assert (await (await talk.session.require()).search("ledger")).results == []


@pytest.mark.parametrize(
    ("memory", "kept", "skipped"),
    [
        ({"categories": {"decision": "manual"}}, [OTHER_KEPT], {"manual": 1}),
        ({"mode": "manual", "categories": {"decision": "autonomous"}}, [FACT], {"manual": 1}),
        ({"mode": "manual", "projects": {"kestrel": "autonomous"}}, [OTHER_KEPT, FACT], {}),
        ({"projects": {"Kestrel": "manual"}}, [], {}),
    ],
)
async def test_a_category_or_a_project_may_have_a_mode_of_its_own(
    begin: Begin, memory: dict[str, Any], kept: list[str], skipped: dict[str, int]
) -> None:
    talk = await begin(project="Kestrel")
    talk.coordinator.config["session"] = plan(memory=memory)["session"]
    await talk.whole(f"{FACT}\n{OTHER}")
    assert await talk.memories() == sorted(kept)
    assert talk.reasons() == skipped


async def test_where_no_inbox_can_be_nothing_is_captured_and_it_is_told(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk = await begin()
    talk.coordinator.config["session"] = plan(memory={"mode": "ask"})["session"]
    service = await talk.session.require()
    monkeypatch.setattr(service, "settings", service.settings.model_copy(update={"backend": "server"}))
    await talk.whole(FACT)
    assert await talk.memories() == []
    assert talk.reasons() == {"inbox_needs_files": 1}


async def test_a_wrong_setting_captures_nothing_and_does_not_raise(begin: Begin, root: Path) -> None:
    talk = await begin(min_confidence="much")
    await talk.say(FACT)
    await talk.end()
    assert talk.session.problem is not None
    assert not root.exists()


async def test_cleanup_stores_what_still_waits_and_may_be_called_again(begin: Begin) -> None:
    talk = await begin()
    await talk.say(FACT)
    await talk.cleanup()
    await talk.cleanup()
    again = await begin()
    assert await again.memories() == [FACT]


async def test_a_mount_and_its_cleanup_leave_no_file_and_no_hooks(talk: Talk, root: Path) -> None:
    await talk.cleanup()
    assert not root.exists()
    names = [name for handlers in talk.coordinator.hooks.list_handlers().values() for name in handlers]
    assert not [name for name in names if name.startswith("hooks-memory-capture")]


async def test_the_kernel_awaits_the_cleanup(begin: Begin) -> None:
    talk = await begin()
    talk.coordinator.register_cleanup(talk.cleanup)
    await talk.say(FACT)
    await talk.coordinator.cleanup()
    again = await begin()
    assert await again.memories() == [FACT]


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
    service, failing = await talk.session.require(), True

    async def capture(*args: Any) -> Any:
        if failing:
            raise StorageError("the disk is on fire")
        return await type(service).capture(service, *args)

    monkeypatch.setattr(service, "capture", capture)
    await talk.whole(FACT)
    failing = False
    await talk.whole(OTHER)
    assert await talk.memories() == [OTHER_KEPT]
    assert talk.reasons() == {"storage": 1}
    await talk.say(FACT)  # it could not be stored, so it is no repetition
    await talk.end()
    assert await talk.memories() == [OTHER_KEPT, FACT]
    assert [data["component"] for event, data in talk.events if event == "memory:degraded"] == ["capture"]


async def test_a_defect_of_ours_is_told_and_the_worker_survives(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patched:
        patched.setattr(Extractor, "examine", broken)
        await talk.say("first words that are heard")
        await talk.end()
    await talk.whole(FACT)
    assert await talk.memories() == [FACT]
    assert talk.reasons() == {"internal_error": 1}


async def test_a_drain_that_takes_too_long_ends_and_is_told(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    release = asyncio.Event()

    async def stuck(self: CaptureRecorder, item: Any) -> None:
        await release.wait()

    monkeypatch.setattr(CaptureRecorder, "_process", stuck)
    monkeypatch.setattr(CaptureRecorder.drain, "__defaults__", (0.01,))
    await talk.say(FACT)
    await talk.end()
    assert "drain_timeout" in talk.reasons()
    release.set()


async def test_what_a_full_queue_dropped_is_counted_and_told_at_the_end_of_the_turn(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(asyncio.Queue, "qsize", _full)
        await talk.say(FACT)
        assert talk.statistics()["skipped"] == {"queue_full": 1}
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


async def test_a_sub_sessions_instruction_is_not_captured(
    begin: Begin, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MockCoordinator, "parent_id", "parent")
    talk = await begin()
    await talk.whole(FACT, FACT)
    await talk.cleanup()
    assert not root.exists()


async def test_the_events_are_declared(talk: Talk) -> None:
    declared = await talk.coordinator.collect_contributions("observability.events")
    assert "memory:captured" in declared[0]
