"""Turns of a session as a listener hears them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from agent_memory.integrations.amplifier.hooks.capture_recorder import ListenerOptions, TurnListener
from tests.rows import check_rows


class RecordingSink:
    """Receiver that keeps what it gets."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    async def take(self, text: str, role: str, tool: str, *, is_low: bool) -> None:
        self.calls.append((role, tool, text, is_low))

    async def end_turn(self) -> None:
        self.calls.append(("end",))

    async def drain(self) -> None:
        self.calls.append(("drain",))

    def hears_tool(self, name: str) -> bool:
        return name == "bash"

    def count_miss(self, reason: str) -> None:
        self.calls.append(("miss", reason))


class PlainContext:
    """Context manager with fixed messages."""

    def __init__(self) -> None:
        self.messages: list[dict[str, str]] = []

    async def get_messages(self) -> list[dict[str, str]]:
        return self.messages


class HeardSession:
    """Listener with its sink, context and session."""

    def __init__(self, options: ListenerOptions = ListenerOptions()) -> None:  # noqa: B008 - an immutable value
        self.sink, self.context = RecordingSink(), PlainContext()
        self.session = SimpleNamespace(
            consent=SimpleNamespace(is_stopped=False), taint=SimpleNamespace(by=None), session_id="one"
        )
        coordinator = SimpleNamespace(get=lambda _point: self.context)
        session: Any = self.session
        self.listener = TurnListener(coordinator, session, self.sink, options)

    async def say(self, prompt: str) -> None:
        await self.listener.on_next_turn("prompt:submit", {})
        await self.listener.on_prompt("prompt:submit", {"prompt": prompt})

    async def answer(self, text: str) -> None:
        self.context.messages = [{"role": "user", "content": "?"}, {"role": "assistant", "content": text}]
        await self.listener.on_turn_end("orchestrator:complete", {})


async def test_turn_listener_answer_ended_twice_is_heard_once() -> None:
    heard = HeardSession()
    await heard.say("Where is the boat?")
    await heard.answer("At pier four.")
    await heard.answer("At pier four.")
    assert heard.sink.calls == [
        ("user", "", "Where is the boat?", False),
        ("assistant", "", "At pier four.", False),
        ("end",),
    ]


async def test_turn_listener_same_answer_to_next_prompt_is_heard() -> None:
    heard = HeardSession()
    for _ in range(2):
        await heard.say("Where is the boat?")
        await heard.answer("At pier four.")
    assert [call[0] for call in heard.sink.calls] == ["user", "assistant", "end"] * 2


async def test_turn_listener_denied_turn_ends_at_next_prompt() -> None:
    heard = HeardSession()
    await heard.say("first")
    await heard.say("second")
    await heard.listener.on_session_end("session:end", {})
    assert [call[0] for call in heard.sink.calls] == ["user", "end", "user", "end", "drain"]


async def test_turn_listener_after_untrusted_text_marks_all_but_prompts() -> None:
    heard = HeardSession()
    heard.session.taint.by = "web_fetch"
    await heard.say("hello")
    await heard.listener.on_tool("tool:post", {"tool_name": "bash", "result": "a page"})
    await heard.answer("noted")
    assert [call[-1] for call in heard.sink.calls[:3]] == [False, True, True]


@check_rows("name", ["memory_search", "grep", 7])
async def test_turn_listener_ignores_tool(name: Any) -> None:
    heard = HeardSession()
    await heard.listener.on_tool("tool:post", {"tool_name": name, "result": "text"})
    assert heard.sink.calls == []


async def test_turn_listener_off_the_record_takes_nothing() -> None:
    heard = HeardSession()
    heard.session.consent.is_stopped = True
    await heard.say("a secret")
    await heard.answer("a secret, too")
    assert heard.sink.calls == [("end",)]


@check_rows(
    ("answer_at_end", "roles"), [(True, ["user", "assistant", "end", "drain"]), (False, ["user", "end", "drain"])]
)
async def test_turn_listener_cut_off_answer_is_heard_by_option(answer_at_end: bool, roles: list[str]) -> None:
    heard = HeardSession(ListenerOptions(answer_at_end=answer_at_end))
    await heard.say("Where is the boat?")
    heard.context.messages = [{"role": "user", "content": "?"}, {"role": "assistant", "content": "At pier"}]
    await heard.listener.on_session_end("session:end", {})
    assert [call[0] for call in heard.sink.calls] == roles
