"""Lines about changes of memory: shown once, undone by words, muted by a setting."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from amplifier_core.testing import MockContextManager, MockCoordinator

from agent_memory.errors import StorageError
from agent_memory.integrations.amplifier import MemorySession
from agent_memory.memory import Caller
from agent_memory.memory.history import History
from agent_memory.memory.inbox_access import opened_inbox
from agent_memory.models import Observation, Source, utc_now
from amplifier_module_context_memory_scratchpad import mount as mount_context
from amplifier_module_hooks_memory_capture import mount as mount_capture
from tests.support import coordinator_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    Begin = Callable[..., Awaitable["Chat"]]

FACT = "We decided to use Postgres for the ledger."


class Display:
    """A display of a host."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def show_message(self, message: str, level: str, source: str = "hook") -> None:
        assert (level, source) == ("info", "agent-memory")
        if not message.startswith("Memory is on for "):  # the first notice has its own tests
            self.lines.append(message)


class Chat:
    """A session with capture and the scratchpad, with or without a display."""

    def __init__(self, root: Path, display: Display | None, session_id: str = "", **config: Any) -> None:
        self.coordinator: Any = coordinator_of(session_id) if session_id else MockCoordinator()
        self.coordinator.display_system = display
        self.config = {"agent_id": "bob", "storage_root": str(root), "embedder": "none", **config}
        self.cleanups: list[Any] = []

    async def begin(self) -> Chat:
        await self.coordinator.mount("context", MockContextManager())
        for mount in (mount_context, mount_capture):
            self.cleanups.append(await mount(self.coordinator, self.config))
        return self

    async def end(self) -> None:
        for cleanup in reversed(self.cleanups):
            await cleanup()
        self.cleanups = []

    @property
    def session(self) -> MemorySession:
        session = self.coordinator.get_capability("agent_memory.session")
        assert isinstance(session, MemorySession)
        return session

    async def say(self, prompt: str) -> str:
        """Say something and return what the request of this turn has about changes."""
        await self.coordinator.hooks.emit("prompt:submit", {"prompt": prompt})
        context = self.coordinator.get("context")
        await context.add_message({"role": "user", "content": prompt})
        view = await context.get_messages_for_request()
        injected = [message["content"] for message in view if "agent-memory: changes" in str(message["content"])]
        await context.add_message({"role": "assistant", "content": "ok"})
        await self.coordinator.hooks.emit("orchestrator:complete", {"status": "success"})
        drain = self.session.lines.drain
        assert drain is not None
        await drain()
        await self.session.lines.settle()
        return "\n".join(injected)

    async def list_contents(self) -> list[str]:
        return [memory.content async for memory in (await self.session.require()).storage.iter_all()]


@pytest.fixture
async def begin(root: Path) -> AsyncIterator[Begin]:
    begun: list[Chat] = []

    async def begin_chat(display: Display | None = None, **config: Any) -> Chat:
        begun.append(await Chat(root, display, **config).begin())
        return begun[-1]

    yield begin_chat
    for chat in begun:
        await chat.end()


async def test_change_is_shown_on_the_display_once(begin: Begin) -> None:
    display = Display()
    chat = await begin(display)
    await chat.say(FACT)
    assert display.lines == [f'Kept: "{FACT}" (say "undo that")']
    assert await chat.say("thanks") == ""
    assert len(display.lines) == 1


async def test_change_on_a_display_that_fails_is_injected(begin: Begin) -> None:
    class BrokenDisplay(Display):
        def show_message(self, message: str, level: str, source: str = "hook") -> None:
            raise ValueError("the window is closed")

    chat = await begin(BrokenDisplay())
    await chat.say(FACT)
    assert f'> Kept: "{FACT}" (say "undo that")' in await chat.say("thanks")
    assert await chat.list_contents() == [FACT]


async def test_change_without_a_display_is_injected_into_the_next_turn(begin: Begin) -> None:
    chat = await begin()
    assert await chat.say(FACT) == ""
    assert f'> Kept: "{FACT}" (say "undo that")' in await chat.say("thanks")
    assert await chat.say("and now?") == ""


async def test_typed_rule_is_shown_in_the_first_later_session_alone(begin: Begin) -> None:
    shown: list[str] = []
    for session_id in ("s-1", "s-2", "s-3"):
        chat = await begin(session_id=session_id)
        shown.append(await chat.say("Always run make lint before a commit.") + await chat.say("thanks"))
        rules = [memory async for memory in (await chat.session.require()).storage.iter_all() if not memory.is_item]
        await chat.end()
    (rule,) = rules
    line = f'> Using: "{rule.content}" (kept {rule.timestamp:%Y-%m-%d} from your words; '
    assert [line + f"undo: agent-memory undo {rule.id})" in lines for lines in shown] == [False, True, False]
    assert ["Using:" in lines for lines in shown] == [False, True, False]


@pytest.mark.parametrize(
    ("fields", "config"),
    [
        ({"trust": "high"}, {}),
        ({"source": {"kind": "assistant"}}, {}),
        ({"source": {"kind": "user", "detail": "command line"}}, {}),
        ({"category": "note"}, {}),
        ({}, {"show_changes": False}),
    ],
)
async def test_memory_that_is_no_typed_rule_or_muted_is_not_shown(
    begin: Begin, fields: dict[str, Any], config: dict[str, Any]
) -> None:
    chat = await begin(session_id="s-2", **config)
    rule = {"content": "Run make lint.", "category": "pattern", "trust": "medium", "source": {"kind": "user"}, **fields}
    await (await chat.session.require()).store(rule, Caller("s-1"))
    assert "Using:" not in await chat.say("hello")


async def test_line_of_a_stored_memory_reads_nothing(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    display = Display()
    chat = await begin(display)
    service = await chat.session.require()

    async def fail(*_: object, **__: object) -> None:
        raise AssertionError("the store is read again")

    for reader in ("get", "texts_of", "browse", "valid_among"):
        monkeypatch.setattr(service.admin, reader, fail)
        monkeypatch.setattr(service.storage, reader, fail)
    await service.store("Kim likes tea.", chat.session.caller)
    await chat.session.lines.settle()
    assert display.lines == ['Kept: "Kim likes tea." (say "undo that")']


async def test_line_of_a_text_deleted_before_it_is_not_shown(begin: Begin) -> None:
    chat = await begin()
    service = await chat.session.require()
    texts = ("Kim likes tea.", "Lee likes coffee.")
    kim, _ = [(await service.store(text, chat.session.caller)).memory for text in texts]
    await service.storage.forget_many([kim.id])
    injected = await chat.say("thanks")
    assert "Lee likes coffee." in injected
    assert "Kim" not in injected


@pytest.mark.parametrize("has_display", [True, False])
async def test_undo_that_takes_back_what_was_kept(begin: Begin, has_display: bool) -> None:
    display = Display() if has_display else None
    chat = await begin(display)
    await chat.say(FACT)
    injected = await chat.say("undo that")
    assert await chat.list_contents() == []
    assert f'Undone: "{FACT}" (was stored).' in (injected if display is None else display.lines[-1])


async def test_undo_that_keeps_change_of_another_session(begin: Begin) -> None:
    display = Display()
    chat = await begin(display)
    await chat.say(FACT)
    service = await chat.session.require()
    (memory,) = await service.list_recent(9)
    await service.forget(memory.id, Caller("another"))
    await chat.say("undo that")
    assert await chat.list_contents() == []
    assert f'Not undone: "{FACT}": another session changed it since' in display.lines[-1]


async def test_undo_that_brings_back_all_of_one_forget(begin: Begin) -> None:
    chat = await begin(Display())
    service = await chat.session.require()
    texts = [f"Fact {number} of the roof {number}." for number in range(3)]
    ids = [(await service.store(text, chat.session.caller)).memory.id for text in texts]
    await chat.say("Which facts of the roof do you know?")
    await service.writer.deletion.forget(ids[:2], chat.session.caller)
    await chat.session.lines.settle()
    assert await chat.list_contents() == texts[2:]
    await chat.say("undo that")
    assert sorted(await chat.list_contents()) == texts


@pytest.mark.parametrize("prompt", ["undo that refactoring", 'he said "undo that"', "should we undo that?"])
async def test_undo_within_other_words_takes_nothing_back(begin: Begin, prompt: str) -> None:
    chat = await begin()
    await chat.say(FACT)
    await chat.say(prompt)
    assert await chat.list_contents() == [FACT]


async def test_replaced_and_forgotten_memories_are_quoted(begin: Begin) -> None:
    display = Display()
    chat = await begin(display)
    service = await chat.session.require()
    old = (await service.store("I live in Paris", chat.session.caller)).memory
    new = (await service.store({"content": "I live in Berlin", "supersedes": old.id}, chat.session.caller)).memory
    await chat.session.lines.settle()
    assert f'Replaced "I live in Paris" ({old.timestamp.date()}) with "I live in Berlin".' in display.lines[-1]
    await service.update(new.id, {"supersedes": None}, chat.session.caller)
    await service.forget(new.id, chat.session.caller)
    await chat.session.lines.settle()
    assert display.lines[-1].startswith('Forgot "I live in Berlin".')
    until = utc_now() + timedelta(days=30)
    assert f'(say "undo that", until {until:%Y-%m-%d})' in display.lines[-1]


async def test_forget_line_without_restore_promises_none(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    display = Display()
    chat = await begin(display)
    service = await chat.session.require()
    memory = (await service.store("I live in Paris", chat.session.caller)).memory
    monkeypatch.setattr(type(service.storage), "grace", None)
    await service.forget(memory.id, chat.session.caller)
    await chat.session.lines.settle()
    assert display.lines[-1] == 'Forgot "I live in Paris".'


async def test_undo_that_without_a_change_says_so(begin: Begin) -> None:
    display = Display()
    chat = await begin(display)
    await chat.say("undo that")
    assert display.lines == ["Nothing to undo."]


async def test_request_that_fails_shows_its_recovery(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object) -> None:
        raise StorageError("The journal cannot be read.", recovery="Run agent-memory doctor.")

    chat = await begin()
    monkeypatch.setattr(History, "find_last", fail)
    await chat.say(FACT)
    assert "Memory: The journal cannot be read. Run agent-memory doctor." in await chat.say("undo that")


async def test_many_changes_are_counted(begin: Begin) -> None:
    chat = await begin()
    service = await chat.session.require()
    for number in range(5):
        await service.store(f"Server {number} is in rack {number}.", chat.session.caller)
    assert "> Kept 5 memories." in await chat.say("thanks")


async def test_muted_changes_are_not_shown(begin: Begin) -> None:
    display = Display()
    chat = await begin(display, show_changes=False)
    await chat.say(FACT)
    assert display.lines == []
    assert await chat.list_contents() == [FACT]


async def test_captured_sentence_reports_similar_memories(begin: Begin) -> None:
    chat = await begin(Display())
    service = await chat.session.require()
    old = (await service.store("The user lives in Paris, near the ledger office")).memory
    await chat.say("Remember that I live in Berlin, near the ledger office")
    [new] = [memory async for memory in service.storage.iter_all() if memory.id != old.id]
    injected = await chat.say("thanks")
    assert f'Kept {new.id} "I live in Berlin, near the ledger office". Similar: {old.id} ' in injected
    assert f"If {new.id} replaces one, call memory_update with supersedes." in injected


async def test_waiting_notes_are_counted_once_and_listed_on_request(begin: Begin) -> None:
    chat = await begin()
    async with opened_inbox(await chat.session.require()) as inbox:
        note = Observation(content="Ann likes tea.", category="note", confidence=0.9, source=Source(kind="user"))
        (note_id,) = (await inbox.hold([note], as_notes=True)).ids
    assert '> 1 note waits. Say "review" to decide.' in await chat.say("hello")
    assert await chat.say("hello again") == ""
    assert f"Waiting note {note_id} " in await chat.say("review")


async def test_end_of_a_session_says_how_many_notes_it_left(begin: Begin) -> None:
    display = Display()
    chat = await begin(display)
    await chat.say("I like small pull requests.")
    await chat.coordinator.hooks.emit("session:end", {})
    assert display.lines == ["1 note waits. Run agent-memory review to decide."]


async def test_what_was_kept_today_is_listed(begin: Begin) -> None:
    chat = await begin(Display())
    await chat.say(FACT)
    assert f'"{FACT}"' in await chat.say("What did you keep today?")
