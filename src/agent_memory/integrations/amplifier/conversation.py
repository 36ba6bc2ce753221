"""Conversation of one session: hooks, turn, context, events and texts."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_memory.capture.typed_text import has_pasted_part
from agent_memory.integrations.amplifier.identity import find_working_folder, get_delegate_name
from agent_memory.integrations.taint import (
    FILES,
    PASTED_TEXT,
    CalledTool,
    DelegateCalls,
    ModelWrites,
    Taint,
    ToolList,
    get_call_key,
)
from agent_memory.logs import get_logger
from agent_memory.memory import Caller
from agent_memory.memory.caller import OnEvent, ProposalBook
from agent_memory.memory.events import payload
from agent_memory.models import to_text, utc_now
from agent_memory.models.record import is_project_finding
from agent_memory.tools.consent import LOW_TRUST

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Sequence

    from agent_memory.errors import AgentMemoryError
    from agent_memory.integrations.taint import OutputKind
    from agent_memory.models import Memory

log = get_logger(__name__)

STEERING: Final = "orchestrator:steering_injected"
"""Event of a message that the user typed while the model works."""
_EARLY: Final = -1000
"""Hook priority: before any hook that asks for the turn."""
_MAX_RETURNED: Final = 500
_UNKNOWN_TEXT: Final = "text of unknown origin"
"""What brings untrusted text into a conversation when none of our hooks saw it arrive."""
_TEXT_KEYS: Final = ("output", "stdout", "content", "text", "message", "body", "result")
MOST_CHARS: Final = 40_000
"""Default limit for the length of a text."""
_MAX_DEPTH: Final = 6


@dataclass(slots=True)
class TurnState:
    """Current turn of a session.

    Attributes:
        prompt: Text that the user typed; empty in a child session, whose prompt is another agent's instruction.
        prompt_before: Prompt of the turn before.
        stored: Contents that the model stored by tool in this turn, except those of low trust.
        returned: Contents that our tools returned in this session, the newest last.
        is_heard: True if the session reported a prompt; one without has no user to ask.
    """

    prompt: str = ""
    prompt_before: str = ""
    stored: list[str] = field(default_factory=list)
    returned: list[str] = field(default_factory=list)
    is_heard: bool = False

    def begin(self, prompt: str) -> None:
        """Start a new turn."""
        self.prompt_before, self.prompt = self.prompt, prompt
        self.stored = []
        self.is_heard = True

    def note_returned(self, memories: Iterable[Memory]) -> None:
        """Note shown memories, so that capture does not store them again."""
        self.returned = [*self.returned, *(memory.content for memory in memories)][-_MAX_RETURNED:]


class SeenMessages:
    """Messages whose way into the conversation our hooks saw.

    Shared by the sessions of one root: a sub-session may begin with messages of its parent.

    Attributes:
        has_turn: True if a prompt came since the beginning, or since the conversation was emptied. What an assistant
            says without one is of another conversation.
        has_summary: True if the next text in place of earlier messages is a summary of trusted ones.
    """

    def __init__(self) -> None:
        self.has_turn = self.has_summary = False
        self._roles: dict[int, str] = {}  # by key of the message

    def add(self, role: str, content: Any) -> None:
        """Add a message."""
        self._roles[_get_message_key(role, content)] = role

    def has(self, role: str, content: Any) -> bool:
        """Return True if a message was added."""
        return _get_message_key(role, content) in self._roles

    def clear(self, *, is_tainted: bool) -> None:
        """Note that the conversation was emptied.

        Messages of a tainted one are unknown if they come back, except the configured one. The host may put a summary
        in place of trusted ones.
        """
        self.has_turn, self.has_summary = False, not is_tainted
        if is_tainted:
            self._roles = {key: role for key, role in self._roles.items() if role == "system"}


def _get_message_key(role: str, content: Any) -> int:
    return hash((role, content if isinstance(content, str) else repr(content)))


@dataclass(slots=True)
class UnseenTexts:
    """New texts of a context that our hooks did not see arrive.

    Attributes:
        calls: Name and input of each tool call whose result is there.
        prompts: Prompts of the same session in an earlier process.
        is_unknown: True if there is another text.
    """

    calls: list[tuple[str, Any]] = field(default_factory=list)
    prompts: list[str] = field(default_factory=list)
    is_unknown: bool = False


class ContextReader:
    """Reader of one session's context that finds unseen texts.

    Seen are the first system message, prompts, what the model says in a turn, results of its calls, and a summary in
    place of trusted messages.

    Args:
        seen: Messages that were seen.
        is_resumed: True if the session continues one of an earlier process, whose prompts are in the context.
    """

    def __init__(self, seen: SeenMessages, *, is_resumed: bool = False) -> None:
        self._seen, self._is_resumed = seen, is_resumed
        self._calls: dict[Any, tuple[str, Any]] = {}
        self._reported: Counter[str] = Counter()
        self._count, self._last = 0, None
        self._is_begun = self._is_configured = False
        self._unseen = UnseenTexts()

    def note_call(self, name: str) -> None:
        """Note a tool call that the host reports, with its result."""
        self._reported[name] += 1

    def read(self, messages: Sequence[Any]) -> UnseenTexts:
        """Return the unseen texts of messages that were not read before."""
        count, self._unseen = self._count, UnseenTexts()
        if not 0 < count <= len(messages) or messages[count - 1] != self._last:
            count = 0
        may_summarize = self._seen.has_summary and self._is_begun and count == 0
        for message in messages[count:]:
            is_known = isinstance(message, dict) and self._read_message(message)
            if not is_known and may_summarize and isinstance(message, dict):
                is_known, may_summarize = True, False
                self._seen.add(str(message.get("role")), message.get("content"))
            self._unseen.is_unknown |= not is_known
        if messages:
            self._seen.has_summary &= count > 0
            self._is_begun = self._is_configured = True
        self._count, self._last = len(messages), messages[-1] if messages else None
        return self._unseen

    def _read_message(self, message: dict[str, Any]) -> bool:
        """Return True if a message is known; note what is in it."""
        role, content = str(message.get("role")), message.get("content")
        is_seen = self._seen.has(role, content)
        for call_id, name, tool_input in iter_tool_calls([message]):
            self._calls[call_id] = name, tool_input
            if not self._seen.has_turn and not is_seen:  # of an earlier process, which may have had no hooks
                self._unseen.calls.append((name, tool_input))
        results = [self._read_result(call_id) for call_id in _list_results(message)]
        if role == "tool" or (role == "user" and results and len(results) == len(content or ())):
            return bool(results) and all(results)
        if not is_seen and self._is_own(message, role):
            self._seen.add(role, content)
            is_seen = True
        return is_seen and all(results)

    def _is_own(self, message: dict[str, Any], role: str) -> bool:
        """Return True for a message of model, configuration or earlier process."""
        content, metadata = message.get("content"), message.get("metadata")
        if isinstance(metadata, dict) and metadata.get("source") == "hook":
            return False
        if role == "system":
            is_configured, self._is_configured = self._is_configured, True
            return not is_configured
        is_earlier = self._is_resumed and not self._seen.has_turn
        if role == "user" and is_earlier and isinstance(content, str):
            self._unseen.prompts.append(content)
            return True
        return role == "assistant" and (is_earlier or self._seen.has_turn)

    def _read_result(self, call_id: Any) -> bool:
        """Return True if a result belongs to a call of the context."""
        if self._seen.has("tool", call_id):
            return True
        if call_id not in self._calls:
            return False
        name, tool_input = self._calls.pop(call_id)
        if self._reported[name]:
            self._reported[name] -= 1
        else:
            self._unseen.calls.append((name, tool_input))
        self._seen.add("tool", call_id)
        return True


class Conversation:
    """Conversation of one session, or of one sub-session.

    Args:
        coordinator: Coordinator of the host.
        root: Conversation of the root session, if this process has it.

    Attributes:
        turn: Current turn.
        proposals: Acts that wait for the user's yes; shared by the sessions of one root.
        taint: Untrusted text in the conversation; shared by the sessions of one root.
        model_writes: Times at which the model may have written scratchpad.yaml; shared as well.
        on_event: Takes each event of the service before the host does, with its memory.
        get_project: Returns the name of the current project.
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
        self.on_event: OnEvent | None = None
        self.get_project: Callable[[], str] = str
        self._tools, self._listed = ToolList(), frozenset[str]()
        self._doubtful: set[str] = set()  # calls that were not of the project when they began
        self._seen: SeenMessages = root._seen if root else SeenMessages()  # noqa: SLF001 - its own
        self._is_resumed = bool(getattr(getattr(coordinator, "session", None), "is_resumed", False))
        self._reader = ContextReader(self._seen, is_resumed=self._is_resumed)
        self._delegates: DelegateCalls = root._delegates if root else DelegateCalls()  # noqa: SLF001 - its own
        if root is not None:
            self._delegates.join(str(coordinator.parent_id), self._session_id, get_delegate_name(coordinator))

    def join(self, conversation: Conversation) -> None:
        """Share taint, messages and proposals with another handle of the same session."""
        self.taint, self.proposals = conversation.taint, conversation.proposals
        self._seen = conversation._seen
        self._reader = ContextReader(self._seen, is_resumed=self._is_resumed)

    def clear(self) -> None:
        """Clear the taint after the conversation was emptied."""
        self._seen.clear(is_tainted=self.taint.by is not None)
        self.taint.clear()

    def set_tools(self, tools: ToolList) -> None:
        """Set the tools that the configuration trusts or distrusts."""
        self._tools = tools

    def set_listed_tools(self, listed: Collection[str]) -> None:
        """Set the packages of tools that the user trusts by command."""
        self._listed = frozenset(listed)

    @property
    def of_user(self) -> TurnState:
        """Turn in which the user speaks: the root's, if in this process."""
        return (self._root or self).turn

    def caller(self, group: str | None = None, project: str = "") -> Caller:
        """Return the session as a caller, with trust and user's words."""
        turn = (self._root or self).turn
        if self.taint.is_of_project and self.taint.project != self.get_project():
            self.taint.note("output of another project")
        return Caller(
            self._session_id, self.emit, "medium" if self.taint.by is None else "low", turn.prompt, self.proposals,
            group, project=project, prompt_before=turn.prompt_before, on_event=self.on_event,
            origin=self.taint.origin,
        )  # fmt: skip

    def note_returned(self, memories: Iterable[Memory]) -> None:
        """Note memories that our tools returned; low trust taints the conversation."""
        memories = list(memories)
        self.turn.note_returned(memories)
        if any(memory.trust == "low" for memory in memories):
            self.note_shown(memories)

    def note_shown(self, memories: Iterable[Memory]) -> None:
        """Note memories that the model sees; low trust taints."""
        for memory in memories:
            if memory.trust == "low":
                self._taint(LOW_TRUST, is_of_project=is_project_finding(memory, self.get_project()))

    def model_at(self, moment: float) -> Caller | None:
        """Return the model as a caller if it may have saved scratchpad.yaml.

        Args:
            moment: Time of the save, in seconds since 1970.
        """
        root = self._root or self
        unseen = replace(root.caller(), proposals=ProposalBook())  # the user is shown no proposal for an edit
        return unseen if self.model_writes.wrote_at(moment, is_tainted=self.taint.by is not None) else None

    def listen(
        self, notice_edits: Callable[[], Awaitable[None]], hear: Callable[[str], Awaitable[None]]
    ) -> list[Callable[[], None]]:
        """Register the session's hooks; return their removers.

        Args:
            notice_edits: Takes over edits of the model, before another process takes them for a person's.
            hear: Takes a prompt before other hooks do; that of a sub-session is not the user's.
        """
        register = self._coordinator.hooks.register

        async def on_tool(_event: str, data: dict[str, Any]) -> None:
            is_doubtful = get_call_key(data) in self._doubtful
            self._doubtful.discard(get_call_key(data))
            tool = self._find_tool(get_text(data, "tool_name"), data.get("tool_input"))
            if not (tool.is_delegate and self._delegates.end(self._session_id, tool.arguments)):
                self._note_result(tool, is_doubtful=is_doubtful)  # else the sub-session has noted what it read
            if self.model_writes.end_call(data, self._session_id):
                await notice_edits()

        async def on_prompt(_event: str, data: dict[str, Any]) -> None:
            self._delegates.end_all(self._session_id)
            await self._note_message(data, hear)

        async def on_steering(_event: str, data: dict[str, Any]) -> None:
            stored = self.turn.stored
            await self._note_message(get_steering(data), hear)
            self.turn.stored = stored

        return [
            register("prompt:submit", on_prompt, priority=_EARLY, name="agent-memory-turn"),
            register(STEERING, on_steering, priority=_EARLY, name="agent-memory-steering"),
            register("tool:post", on_tool, priority=_EARLY, name="agent-memory-trust"),
            # A server writes any text into an error, too.
            register("tool:error", on_tool, priority=_EARLY, name="agent-memory-trust-error"),
            *self._listen_to_context(),
            *self.model_writes.listen(register, self._session_id, notice_edits, is_child=self._is_child),
        ]

    def _listen_to_context(self) -> list[Callable[[], None]]:
        """Register the hooks before calls and at ends; return their removers."""

        async def on_call(_event: str, data: dict[str, Any]) -> None:
            await self.read_context()
            tool = self._find_tool(get_text(data, "tool_name"), data.get("tool_input"))
            if tool.is_delegate:
                self._delegates.begin(self._session_id)
            if not self._is_settled and self._classify(tool) == "untrusted":
                self._doubtful.add(get_call_key(data))
            self._reader.note_call(tool.name)

        async def on_end(_event: str, _data: dict[str, Any]) -> None:
            await self.read_context()

        async def on_compaction(_event: str, _data: dict[str, Any]) -> None:
            self._seen.has_summary = self.taint.by is None

        handlers = {
            "tool:pre": on_call,
            "orchestrator:complete": on_end,
            "context:compaction": on_compaction,
            "context:post_compact": on_compaction,
        }
        register = self._coordinator.hooks.register
        return [
            register(event, handler, priority=_EARLY, name="agent-memory-context")
            for event, handler in handlers.items()
        ]

    async def emit(self, event: str, data: dict[str, Any]) -> None:
        """Emit an event to this session's hooks; log the host's errors."""
        try:
            await self._coordinator.hooks.emit(event, data)
        except Exception as error:  # noqa: BLE001 - whatever a host raises, memory must not fail because of it
            log.warning("event_not_emitted", name=event, error=type(error).__name__)

    async def report_degraded(self, component: str, error: AgentMemoryError) -> None:
        """Report by event and log that a component does not work."""
        log.warning("memory_degraded", component=component, code=error.code, error=error.message)
        fields = {"component": component, "code": error.code, "message": error.message}
        common = {"session_id": self._session_id, "timestamp": to_text(utc_now())}
        await self.emit("memory:degraded", payload("memory:degraded", {**fields, **common}))

    async def _note_message(self, data: dict[str, Any], hear: Callable[[str], Awaitable[None]]) -> None:
        """Record a message from the user's side; pass on only typed text."""
        self._seen.add("user", data.get("prompt"))
        await self.read_context()
        self._seen.has_turn = True
        is_own = is_typed(data)
        text = split_attached(data)[0]
        await self._begin_turn(text if is_own and isinstance(data.get("prompt"), str) else "")
        if not is_own:
            self.taint.note(get_text(data, "origin") or _UNKNOWN_TEXT)
        elif data.get("attachments") or not isinstance(data.get("prompt"), str):  # a block may be a file
            self.taint.note(PASTED_TEXT)
        await hear(text if is_own else "")

    async def _begin_turn(self, prompt: str) -> None:
        self.turn.begin("" if self._is_child else prompt)
        if self._is_child:
            return
        self.proposals.begin_turn(self.turn.prompt)
        if await asyncio.to_thread(has_pasted_part, prompt):
            self.taint.note(PASTED_TEXT)

    async def read_context(self) -> None:
        """Note text in the context that came without our hooks."""
        context = self._coordinator.get("context")
        if context is None:
            return
        try:
            unseen = self._reader.read(await context.get_messages())
        except Exception as error:  # noqa: BLE001 - another module raises errors of any class; memory goes on
            log.warning_once("context_unreadable", error=type(error).__name__)
            self.taint.note(_UNKNOWN_TEXT)
            return
        if unseen.is_unknown:
            self.taint.note(_UNKNOWN_TEXT)
        for name, tool_input in unseen.calls:
            self._note_result(self._find_tool(name, tool_input))
        if unseen.prompts and any(await asyncio.to_thread(lambda: list(map(has_pasted_part, unseen.prompts)))):
            self.taint.note(PASTED_TEXT)

    @property
    def _is_settled(self) -> bool:
        """True if no call can change the taint."""
        return self.taint.by is not None and not self.taint.is_of_project

    def _find_tool(self, name: str, tool_input: Any) -> CalledTool:
        return CalledTool.of(name, (self._coordinator.get("tools") or {}).get(name), tool_input)

    def _classify(self, tool: CalledTool) -> OutputKind:
        """Return the kind of a call's output as of now."""
        root = self._root or self
        try:
            if tool.package == FILES and self.model_writes.is_scratchpad(tool.path):
                return "trusted"
            folder = find_working_folder(self._coordinator) or Path.cwd()
            return root._tools.classify(tool, folder, root._listed)  # noqa: SLF001 - its own
        except (OSError, ValueError, RuntimeError):  # a working folder that is gone, or a path that no file has
            return "untrusted"

    def _note_result(self, tool: CalledTool, *, is_doubtful: bool = False) -> None:
        """Note the origin of a tool call's result.

        Args:
            tool: Tool of the call, with its arguments.
            is_doubtful: True if the call was not of the project when it began.
        """
        if self._is_settled:
            return
        kind = "untrusted" if is_doubtful else self._classify(tool)
        if kind != "trusted":
            self._taint(tool.name, tool.package, is_of_project=kind == "project")

    def _taint(self, by: str, package: str = "", *, is_of_project: bool) -> None:
        """Note untrusted text, and the project that it is of."""
        project = self.get_project()
        if self.taint.by is None:
            self.taint.project = project
        self.taint.note(by, package, is_of_project=is_of_project and self.taint.project == project)


def get_result_text(result: Any, most: int = MOST_CHARS) -> str:
    """Return the first `most` characters of a `tool:post` result.

    A failed call has none. loop-basic sends a string, loop-streaming `{success, output, error}`.
    """
    if isinstance(result, dict) and result.get("success") is False:
        return ""
    return _find_text(result, _MAX_DEPTH)[:most]


def get_content_text(content: Any, most: int = MOST_CHARS) -> str:
    """Return the text of a message's content: string or blocks."""
    if isinstance(content, str):
        return content[:most]
    if not isinstance(content, list):
        return ""
    texts = [_get_block_text(block) for block in content]
    return "\n\n".join(text for text in texts if text)[:most]


def split_attached(data: dict[str, Any], most: int = MOST_CHARS) -> tuple[str, str]:
    """Return a prompt's text without attached texts, and these."""
    text = get_content_text(data.get("prompt"), most)
    attachments = data.get("attachments")
    items = attachments if isinstance(attachments, list) else [attachments]
    texts = [item_text.strip() for item_text in (_find_text(item, _MAX_DEPTH) for item in items)]
    attached = [item_text for item_text in texts if len(item_text.split()) > 1 and item_text in text]
    for item_text in attached:
        text = text.replace(item_text, "\n")
    return text, "\n\n".join(attached)


def get_steering(data: Any) -> dict[str, Any]:
    """Return a message typed while the model works, as a prompt."""
    return {"prompt": data.get("content"), "origin": data.get("origin")} if isinstance(data, dict) else {}


def find_answer_text(messages: Any, most: int = MOST_CHARS) -> str:
    """Return the assistant's last message, empty if the user spoke later."""
    if not isinstance(messages, list):
        return ""
    for message in reversed(messages):
        role = message.get("role") if isinstance(message, dict) else None
        if role == "assistant":
            return get_content_text(message.get("content"), most)
        if role == "user":
            return ""
    return ""


def iter_tool_calls(messages: Iterable[Any]) -> Iterator[tuple[Any, str, Any]]:
    """Yield ID, name and input of each tool call in a conversation."""
    for message in messages:
        if not isinstance(message, dict):
            continue
        for call in (*(message.get("tool_calls") or ()), *_list_blocks(message)):
            if not isinstance(call, dict):
                continue
            inner = call["function"] if isinstance(call.get("function"), dict) else call
            name = inner.get("name") or inner.get("tool")
            if isinstance(name, str) and not _is_result(call):
                yield call.get("id"), name, inner.get("arguments") or inner.get("input")


def _list_results(message: dict[str, Any]) -> list[Any]:
    """Return the IDs of the calls whose results are in a message."""
    calls = [message.get("tool_call_id")] if message.get("role") == "tool" else []
    blocks = [block for block in _list_blocks(message) if isinstance(block, dict) and _is_result(block)]
    return [*calls, *(block.get("tool_use_id") or block.get("tool_call_id") for block in blocks)]


def _list_blocks(message: dict[str, Any]) -> list[Any]:
    content = message.get("content")
    return content if isinstance(content, list) else []


def _is_result(block: dict[str, Any]) -> bool:
    return str(block.get("type")).endswith("tool_result")


def get_text(data: Any, key: str) -> str:
    """Return a text field of an event's payload, else an empty text."""
    value = data.get(key) if isinstance(data, dict) else None
    return value if isinstance(value, str) else ""


def is_typed(data: Any) -> bool:
    """Return True unless the payload's `origin` says otherwise."""
    return isinstance(data, dict) and data.get("origin") in (None, "", "typed")


def _get_block_text(block: Any) -> str:
    if isinstance(block, str):
        return block
    kind = block.get("type") if isinstance(block, dict) else getattr(block, "type", None)
    text = block.get("text") if isinstance(block, dict) else getattr(block, "text", None)
    return text if kind == "text" and isinstance(text, str) else ""


def _find_text(value: Any, depth: int) -> str:
    if isinstance(value, str):
        return value
    if depth <= 0:
        return ""
    if isinstance(value, list):
        return "\n".join(text for item in value[:200] if (text := _find_text(item, depth - 1)))
    if isinstance(value, dict):
        return "\n".join(text for key in _TEXT_KEYS if key in value and (text := _find_text(value[key], depth - 1)))
    return ""
