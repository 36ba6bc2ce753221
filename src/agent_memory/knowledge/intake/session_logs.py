"""Readers of session logs: one for each format decides who speaks.

Known are the logs of Claude Code, Codex, Amplifier (`events.jsonl`), Gemini CLI and Cursor, messages of LangChain,
and lines with a `role` each. What a program wrote for itself is left out. What a tool answered is the tool's. A line
with an unknown key or value may be anybody's: new versions of a program add lines of tools and agents in this way.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from agent_memory.knowledge.intake.drafts import UNKNOWN, ReceivedTurn
from agent_memory.knowledge.intake.turns import (
    ROLES,
    clean_speaker,
    collect_text,
    get_first,
    has_inner_role,
    has_only,
    has_role,
    is_hidden,
    make_turns,
    parse_moment,
    read_message,
    split_keys,
    to_list,
    to_name,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    ReadTurns = Callable[[Iterable["Line"]], Iterator["KeyedTurn"]]

Line = dict[str, Any]
KeyedTurn = tuple[str, ReceivedTurn]
"""Key of a conversation in the file, and a turn of it."""

_KEYS: Final = ("conversation_id", "conversation", "session_id", "session", "thread_id")
_CODEX_TYPES: Final = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted"})
_TOOL_KEYS: Final = frozenset({
    "toolUseResult", "toolUseID", "toolUseId", "tool_use_id", "sourceToolUseID", "sourceToolUseId",
    "sourceToolAssistantUUID",
})  # fmt: skip
"""Keys of a Claude Code line with a tool's answer."""
_CLAUDE_LINE: Final = split_keys("""
    attributionMcpServer attributionMcpTool attributionPlugin attributionSkill classifierMetaLines costUSD cwd
    durationMs effort entrypoint forkedFrom gitBranch imagePasteIds logicalParentUuid message origin parentUuid
    permissionMode promptId promptSource queuePriority requestId sessionId session_id slug thinkingMetadata timestamp
    todos turnOrigin type userType uuid version
""")
_CLAUDE_MESSAGE: Final = split_keys("""
    container content context_management diagnostics id model role stop_details stop_reason stop_sequence type usage
""")
_CLAUDE_TYPED: Final[Mapping[str, frozenset[str]]] = {
    "entrypoint": frozenset(
        {"cli", "claude-vscode", "claude-desktop", "claude-jetbrains", "vscode", "jetbrains", "ide"}
    ),
    "promptSource": frozenset({"typed", "user", "queued"}),
    "turnOrigin": frozenset({"human"}),
    "userType": frozenset({"external", "ant"}),
}
"""Values under which a person typed a line of the user's."""
_CODEX_LINE: Final = frozenset({"timestamp", "type", "payload", "ordinal", "id"})
_CODEX_PROMPT: Final = split_keys("""
    client_id id images kind local_images message text_elements turn_id type
""")
_CODEX_MESSAGE: Final = split_keys("""
    content end_turn id internal_chat_message_metadata_passthrough phase role status turn_id type
""")
_CODEX_SOURCES: Final = frozenset({
    None, "cli", "vscode", "exec", "interactive", "ide", "app", "app-server", "app_server", "appServer", "desktop",
})  # fmt: skip
"""Programs in which a person starts a session. Others are agents."""
_GEMINI_LINE: Final = split_keys("""
    content displayContent id message messageId model sessionId thoughts timestamp tokens toolCalls type
""")
_EVENT_DATA: Final = frozenset({"prompt", "session_id", "timestamp", "turn", "turn_id", "images"})
_LANGCHAIN_ROLES: Final = {"human": "user", "ai": "assistant", "tool": "tool", "function": "tool", "system": "system"}
_LANGCHAIN_KEYS: Final = split_keys("""
    additional_kwargs content data function_call id invalid_tool_calls refusal response_metadata tool_calls type
    usage_metadata
""")
_GEMINI_ROLES: Final = {"user": "user", "gemini": "assistant"}


@dataclass(frozen=True, slots=True)
class LogFormat:
    """A format of session logs.

    Attributes:
        name: As it is kept with a conversation.
        matches: Returns True if a line is of this format and of no other.
        prepare: Scans all lines once if that is needed; returns the reader of their turns.
        has_keys: True if a file may hold several conversations.
    """

    name: str
    matches: Callable[[Line], bool]
    prepare: Callable[[Iterable[Line]], ReadTurns]
    has_keys: bool = False


class UnknownShapeError(ValueError):
    """Roles at an unknown place; `number` counts lines from 0."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def read_log(lines: Sequence[Line]) -> tuple[str, list[KeyedTurn]]:
    """Return the name of the lines' format and their turns.

    Raises:
        UnknownShapeError: A role is inside a line of no known format.
    """
    form = find_log_format(lines)
    return form.name, list(form.prepare(lines)(lines))


def find_log_format(lines: Sequence[Line]) -> LogFormat:
    """Return the format of lines, that of messages if none has them."""
    return next((form for form in _FORMATS if any(form.matches(line) for line in lines)), _MESSAGES)


def _read_messages(lines: Iterable[Line]) -> Iterator[KeyedTurn]:
    for number, line in enumerate(lines):
        message, value = line.get("message"), line
        if isinstance(message, dict) and (isinstance(message.get("role"), str) or isinstance(line.get("role"), str)):
            outer = {name: line[name] for name in line.keys() - {"message"}}
            value = outer | message
            if outer.get("role") not in (None, value["role"]):
                value["sender"] = outer["role"]  # two roles contradict each other
        elif not has_role(line) and has_inner_role(line):
            raise UnknownShapeError(number)
        key = get_first(line, *_KEYS)
        for turn in read_message(value):
            yield "" if key is None else str(key), turn


def _is_claude_code(line: Line) -> bool:
    message = line.get("message")
    return to_name(line.get("type")) in {"user", "assistant"} and isinstance(message, dict) and "role" in message


def _read_claude_code(lines: Iterable[Line]) -> Iterator[KeyedTurn]:
    for line in lines:
        message: Mapping[str, Any] = line["message"] if _is_claude_code(line) else {}
        if not message or is_hidden(line) or is_hidden(message) or line.get("agentId") or line.get("isApiErrorMessage"):
            continue
        role = line["type"] if _is_plain_claude_code(line) else UNKNOWN
        if get_first({**message, **line}, *_TOOL_KEYS) is not None:
            role = "tool"
        for turn in make_turns(message.get("content"), role, said_at=parse_moment(line.get("timestamp"))):
            yield "", turn


def _is_plain_claude_code(line: Line) -> bool:
    """Return True if a user typed it or a model answered it."""
    message, origin = line["message"], line.get("origin")
    return (
        message["role"] == line["type"]
        and has_only(line, _CLAUDE_LINE)
        and has_only(message, _CLAUDE_MESSAGE)
        and message.get("model") != "<synthetic>"
        and (origin is None or (isinstance(origin, dict) and origin.get("kind") == "human"))
        and (line["type"] != "user" or all(line.get(key) in (None, *typed) for key, typed in _CLAUDE_TYPED.items()))
    )


def _is_codex(line: Line) -> bool:
    return to_name(line.get("type")) in _CODEX_TYPES and isinstance(line.get("payload"), dict)


def _prepare_codex(lines: Iterable[Line]) -> ReadTurns:
    """Return the reader of a Codex log.

    The user's turns are those of `user_message` events, if it has such events. The items under
    the user's role hold also what Codex itself puts into the conversation.
    """
    has_prompts = has_answers = is_agents = False
    for line in filter(_is_codex, lines):
        payload, kind = line["payload"], line["type"]
        has_prompts = has_prompts or (kind == "event_msg" and payload.get("type") == "user_message")
        has_answers = has_answers or (kind == "response_item" and payload.get("role") == "assistant")
        is_agents = is_agents or (kind == "session_meta" and not _is_persons(payload))
    return partial(_read_codex, has_prompts=has_prompts, has_answers=has_answers, is_agents=is_agents)


def _read_codex(lines: Iterable[Line], *, has_prompts: bool, has_answers: bool, is_agents: bool) -> Iterator[KeyedTurn]:
    for line in filter(_is_codex, lines):
        payload, said_at = line["payload"], parse_moment(line.get("timestamp"))
        kind = payload.get("type")
        is_plain = not is_agents and has_only(line, _CODEX_LINE) and not is_hidden(payload)
        turns: list[ReceivedTurn] = []
        if line["type"] == "event_msg" and kind == "user_message":
            is_plain = is_plain and has_only(payload, _CODEX_PROMPT) and payload.get("kind") in (None, "plain")
            turns = make_turns(payload.get("message"), "user" if is_plain else UNKNOWN, said_at=said_at)
        elif line["type"] == "event_msg" and kind == "agent_message" and not has_answers:
            turns = make_turns(payload.get("message"), "assistant" if is_plain else UNKNOWN, said_at=said_at)
        elif line["type"] == "response_item" and kind == "message":
            role = ROLES.get(str(payload.get("role")), UNKNOWN)
            is_plain = is_plain and has_only(payload, _CODEX_MESSAGE)
            if role != "user" or not has_prompts:
                role = role if is_plain or role not in {"user", "assistant"} else UNKNOWN
                turns = make_turns(payload.get("content"), role, said_at=said_at)
        elif line["type"] == "response_item" and "output" in payload:
            turns = make_turns(collect_text(payload["output"]), "tool", said_at=said_at)
        yield from (("", turn) for turn in turns)


def _is_persons(session: Mapping[str, Any]) -> bool:
    """Return True if a person, not another agent, started a Codex session."""
    source = session.get("source")
    is_known = source is None or (isinstance(source, str) and source in _CODEX_SOURCES)
    return is_known and session.get("thread_source") in (None, "user")


def _is_amplifier_event(line: Line) -> bool:
    return isinstance(line.get("event"), str) and ":" in line["event"] and isinstance(line.get("data"), dict)


def _prepare_amplifier_events(lines: Iterable[Line]) -> ReadTurns:
    children = {
        str(line.get("session_id"))
        for line in filter(_is_amplifier_event, lines)
        if line["data"].get("parent_id") or line.get("parent_id")
    }
    return partial(_read_amplifier_events, children)


def _read_amplifier_events(children: Collection[str], lines: Iterable[Line]) -> Iterator[KeyedTurn]:
    for line in filter(_is_amplifier_event, lines):
        data, session, said_at = line["data"], line.get("session_id"), parse_moment(line.get("ts"))
        turns: list[ReceivedTurn] = []
        if line["event"] == "prompt:submit":
            is_plain = str(session) not in children and has_only(data, _EVENT_DATA)
            turns = make_turns(data.get("prompt"), "user" if is_plain else UNKNOWN, said_at=said_at)
        elif line["event"] == "prompt:complete":
            answer = get_first(data, "response", "response_preview")
            turns = make_turns(answer, UNKNOWN if str(session) in children else "assistant", said_at=said_at)
        elif line["event"] == "tool:post":
            text = collect_text(get_first(data, "result", "tool_response"))
            turns = make_turns(text, "tool", clean_speaker(str(data.get("tool_name") or "")), said_at)
        yield from (("" if session is None else str(session), turn) for turn in turns)


def _is_gemini(line: Line) -> bool:
    is_log = line.get("type") == "user" and {"sessionId", "messageId", "message"} <= line.keys()
    return is_log or (line.get("type") == "gemini" and "content" in line)


def _read_gemini(lines: Iterable[Line]) -> Iterator[KeyedTurn]:
    for line in lines:
        role, said_at = _GEMINI_ROLES.get(str(line.get("type"))), parse_moment(line.get("timestamp"))
        for call in to_list(line.get("toolCalls")):
            result = get_first(call, "result", "resultDisplay") if isinstance(call, dict) else None
            yield from (("", turn) for turn in make_turns(collect_text(result), "tool", said_at=said_at))
        if role is not None and not is_hidden(line):
            content, role = get_first(line, "content", "message"), role if has_only(line, _GEMINI_LINE) else UNKNOWN
            yield from (("", turn) for turn in make_turns(content, role, said_at=said_at, has_bare_parts=True))


def _is_langchain(line: Line) -> bool:
    data = line.get("data", line)
    return (
        to_name(line.get("type")) in {"human", "ai"}
        and isinstance(data, dict)
        and "content" in data
        and "role" not in line
    )


def _read_langchain(lines: Iterable[Line]) -> Iterator[KeyedTurn]:
    for line in lines:
        data = line.get("data", line)
        role = _LANGCHAIN_ROLES.get(str(line.get("type")), UNKNOWN)
        if not isinstance(data, dict) or role == "system":
            continue
        extra = data.get("additional_kwargs") or {}
        is_plain = isinstance(extra, dict) and has_only({**line, **data, **extra}, _LANGCHAIN_KEYS)
        is_plain = is_plain and data.get("type") in (None, line.get("type"))
        role = role if is_plain or role == "tool" else UNKNOWN
        yield from (("", turn) for turn in make_turns(data.get("content"), role))


_MESSAGES: Final = LogFormat("messages", lambda _: False, lambda _: _read_messages, has_keys=True)
_FORMATS: Final = (
    LogFormat("codex", _is_codex, _prepare_codex),
    LogFormat("claude_code", _is_claude_code, lambda _: _read_claude_code),
    LogFormat("amplifier_events", _is_amplifier_event, _prepare_amplifier_events, has_keys=True),
    LogFormat("gemini", _is_gemini, lambda _: _read_gemini),
    LogFormat("langchain", _is_langchain, lambda _: _read_langchain),
)
"""Formats with an own shape. Other lines are read as messages."""
