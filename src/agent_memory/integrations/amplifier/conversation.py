"""`Conversation`: the host's hooks of one session, whose text came in by them, and the events sent to it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from agent_memory.integrations.amplifier.messages import text_of_content
from agent_memory.integrations.amplifier.model_writes import ModelWrites
from agent_memory.integrations.amplifier.strangers import LOW_TRUST, Strangers, Taint, calls_in
from agent_memory.integrations.amplifier.turn import TurnState, text_of
from agent_memory.logs import get_logger
from agent_memory.memory import Caller
from agent_memory.memory.events import payload
from agent_memory.memory.proposals import ProposalBook
from agent_memory.models import to_text, utc_now
from agent_memory.settings import KNOWLEDGE_TOOLS, TOOL_NAMES, ToolSettings

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from agent_memory.errors import AgentMemoryError
    from agent_memory.models import Memory, Trust

log = get_logger(__name__)

_EARLY: Final = -1000
"""Hook priority: before any hook that asks what turn it is."""


class Conversation:
    """The conversation of one session, or of one sub-session.

    Args:
        coordinator: Coordinator of the host.
        root: The conversation of its root session, if that is known in this process.

    Attributes:
        turn: The turn under way.
        proposals: Acts that wait for the user's yes; shared by the sessions of one root.
        taint: Untrusted text in the conversation, of this session or of another of the same root.
        model_writes: When the model may have written scratchpad.yaml; shared by the sessions of one root, too.
        on_event: Takes each event of ours before the host does.
    """

    def __init__(self, coordinator: Any, root: Conversation | None) -> None:
        self._coordinator, self._root = coordinator, root
        self._session_id: str = coordinator.session_id
        self._is_child = coordinator.parent_id is not None
        self.turn = TurnState()
        self.proposals: ProposalBook = (
            root.proposals if root else ProposalBook("" if self._is_child else self._session_id)
        )
        self.taint: Taint = root.taint if root else Taint()
        self.model_writes: ModelWrites = root.model_writes if root else ModelWrites()
        self.on_event: Callable[[str, dict[str, Any]], None] | None = None
        self._own_tools: frozenset[str] = frozenset()
        self._strangers = Strangers(ToolSettings().low_trust_tools, ToolSettings().trusted_tools)

    def join(self, handle: Conversation) -> None:
        """Share taint and proposals with another handle of the same session."""
        self.taint, self.proposals = handle.taint, handle.proposals

    def distrust(self, tool_patterns: Iterable[str], trusted: Iterable[str] = ()) -> None:
        """Name the tools (`fnmatch` patterns) whose output is a stranger's words, and those that look like it."""
        self._strangers = Strangers(tool_patterns, trusted)

    def speaks_for_itself(self, tools: Iterable[str]) -> None:
        """Name tools of ours that note themselves what they show, whatever a pattern makes of their names."""
        self._own_tools |= frozenset(tools)

    @property
    def of_user(self) -> TurnState:
        """The turn in which the user speaks: of a sub-session that of its root, where it is known."""
        return (self._root or self).turn

    def caller(self) -> Caller:
        """Return the session as the service's caller: whose words it brings, and what the user typed in this turn."""
        turn = self.of_user
        trust: Trust = "low" if self.taint.by else "medium"
        is_tainted = trust == "low" or self.taint.has_foreign_results
        caller = Caller(self._session_id, self.emit, trust, turn.prompt, self.proposals, is_tainted=is_tainted)
        return replace(caller, prompt_before=turn.prompt_before)

    def note_returned(self, memories: Iterable[Memory]) -> None:
        """Note what our tools showed the model; a memory of low trust brings its stranger's words back."""
        memories = list(memories)
        self.turn.note_returned(memories)
        if any(memory.trust == "low" for memory in memories):
            self.taint.note(LOW_TRUST)

    def model_at(self, moment: float) -> Caller | None:
        """Return the model as a caller if it may have saved scratchpad.yaml at that moment."""
        root = self._root or self
        unseen = replace(root.caller(), proposals=ProposalBook())  # the user is shown nothing of an edit
        return unseen if self.model_writes.wrote_at(moment, is_tainted=self.taint.by is not None) else None

    def listen(
        self, notice_edits: Callable[[], Awaitable[None]], hear: Callable[[str], Awaitable[None]]
    ) -> list[Callable[[], None]]:
        """Follow the session by its hooks; return how to end that.

        Args:
            notice_edits: Takes over what the model saved, before another process takes it for a person's.
            hear: Takes what the user typed, before other hooks do; not called in a sub-session.
        """
        register = self._coordinator.hooks.register

        async def on_tool(_event: str, data: dict[str, Any]) -> None:
            self._note_result(text_of(data, "tool_name"), data.get("tool_input"))
            if self.model_writes.end_call(data, self._session_id):
                await notice_edits()

        async def on_prompt(event: str, data: dict[str, Any]) -> None:
            await self._on_prompt(event, data)
            if not self._is_child:
                await hear(text_of_content(data.get("prompt")))

        return [
            register("prompt:submit", on_prompt, priority=_EARLY, name="agent-memory-turn"),
            register("tool:post", on_tool, priority=_EARLY, name="agent-memory-trust"),
            # A server writes what it likes into an error, too.
            register("tool:error", on_tool, priority=_EARLY, name="agent-memory-trust-error"),
            *self.model_writes.listen(register, self._session_id, notice_edits, is_child=self._is_child),
        ]

    async def emit(self, event: str, data: dict[str, Any]) -> None:
        """Emit an event to this session's hooks. A host that refuses it costs a log line, never the caller's work."""
        if self.on_event is not None:
            self.on_event(event, data)
        try:
            await self._coordinator.hooks.emit(event, data)
        except Exception as error:  # noqa: BLE001 - whatever a host raises, memory must not fail because of it
            log.warning("event_not_emitted", name=event, error=type(error).__name__)

    async def degraded(self, component: str, error: AgentMemoryError) -> None:
        """Report, by event and log, that something does not work."""
        log.warning("memory_degraded", component=component, code=error.code, error=error.message)
        fields = {"component": component, "code": error.code, "message": error.message}
        common = {"session_id": self._session_id, "timestamp": to_text(utc_now())}
        await self.emit("memory:degraded", payload("memory:degraded", {**fields, **common}))

    async def _on_prompt(self, _event: str, data: dict[str, Any]) -> None:
        is_first = not self.turn.is_heard
        self.turn.begin("" if self._is_child else text_of(data, "prompt"))
        if not self._is_child:
            self.proposals.begin_turn(self.turn.prompt)
        if is_first and not self._is_child:
            await self._look_back()

    async def _look_back(self) -> None:
        """Look through a conversation that was there before this session for what strangers said in it."""
        context = self._coordinator.get("context")
        for name, given in calls_in(await context.get_messages()) if context is not None else ():
            self._note_result(name, given)

    def _note_result(self, name: str, given: Any) -> None:
        """Note whose text the result of a tool call brings."""
        if not self._is_ours(name):
            self.taint.note_foreign_result()
        if self.taint.by is None and self._brings_strangers(name, given):
            self.taint.note(name)

    def _is_ours(self, name: str) -> bool:
        return name in TOOL_NAMES or name in KNOWLEDGE_TOOLS or name in self._own_tools

    def _brings_strangers(self, name: str, given: Any) -> bool:
        """Return True if a tool's answer holds a stranger's words: of its own, or out of the files of the agents.

        Our own tools say for themselves what they show.
        """
        if name in self._own_tools and not self._strangers.are_spelled_out(name):
            return False
        if self._strangers.speak_by(name, given):
            return True
        return not self._is_ours(name) and self.model_writes.names_records(given)
