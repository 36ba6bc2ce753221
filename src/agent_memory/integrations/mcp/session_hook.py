"""Hooks of hosts: short commands with JSON on stdin and stdout.

They fail open: what goes wrong is on stderr, the host gets an empty answer, and the exit code is 0. Then the state of
the turn is dropped, so that the server trusts the conversation less. Fields of reports by the documentation of Claude
Code, Codex, Gemini CLI and Cursor, as of November 2026.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import IdentityError, ValidationError
from agent_memory.files.layout import agents_under, find_project_name, folder_of, read_used_agent, resolve_root
from agent_memory.files.names import TRUSTED_TOOLS
from agent_memory.integrations.mcp.turn_files import HookTurn, TurnFiles, find_project, is_host_limited
from agent_memory.integrations.taint import FILES, LOCAL_TOOLS, PASTED_TEXT, SEARCH, SHELL, CalledTool, ToolList
from agent_memory.memory.consent import ConsentFiles, ConsentState, find_own_folders
from agent_memory.models.identifiers import DEFAULT_AGENT, DEFAULT_ROOT
from agent_memory.models.text import flatten
from agent_memory.registry import load_handler

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

_MAX_NAME: Final = 60
_OWN_TOOL: Final = re.compile(r"(?:mcp__(?:plugin_agent-memory_)?agent[-_]memory__|mcp_agent-memory_)[a-z]+")
"""Name of a tool of our server, as hosts write it; Codex replaces the hyphen."""
_PATCHED_FILE: Final = re.compile(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+)$", re.MULTILINE)
_WRITERS: Final = ("Write", "Delete", "Edit", "MultiEdit", "NotebookEdit", "write_file", "replace", "apply_patch")
_NOTERS: Final = (
    "TodoWrite", "TaskCreate", "TaskUpdate", "WaitForMcpServers", "write_todos", "update_topic", "update_plan",
)  # fmt: skip
"""Tools that return nothing that another program or person wrote."""
_MENTION: Final = re.compile(r"(?<!\S)@(?:\"([^\"\n]+)\"|([^\s\"]*[./][^\s\"]*))")
"""File that a prompt names, such as `@docs/mail.txt`."""
_FILE_KEYS: Final = ("file_path", "notebook_path", "path", "absolute_path")
_HOST_TOOLS: Final[Mapping[str, tuple[str, str]]] = {
    **dict.fromkeys(("Read", "LS", "read_file", "list_directory"), ("read_file", FILES)),
    **dict.fromkeys(_WRITERS, ("edit_file", FILES)),
    **dict.fromkeys(("Grep", "grep_search", "search_file_content"), ("grep", SEARCH)),
    **dict.fromkeys(("Glob", "glob"), ("glob", SEARCH)),
    **dict.fromkeys(("Bash", "Shell", "shell", "run_shell_command"), ("bash", SHELL)),
    **dict.fromkeys(_NOTERS, ("todo", LOCAL_TOOLS[0])),
}
"""Name and package of the Amplifier tool that does the same, by the name of a host's own tool."""
_GEMINI_EVENTS: Final = frozenset({"BeforeAgent", "AfterTool", "AfterAgent", "PreCompress"})

UNKNOWN_TOOL: Final = CalledTool("unknown tool", "", None)
"""Tool of a report without a tool name."""


@dataclass(frozen=True, slots=True)
class HostEvent:
    """Report of a host.

    Attributes:
        host: Name of the host.
        session_id: ID of the session.
        folder: Folder that the session works in.
        prompt: Prompt of a user; empty if another program or agent wrote it.
        is_typed: True if a user typed the prompt; False for one of unknown form.
        tool: Tool that was called, or None.
        source: Way in which the session began; empty if unknown.
        files: Reads of the files that the prompt attaches or names after an @; the host reports no tool for them.
    """

    host: str
    session_id: str
    folder: Path
    prompt: str = ""
    is_typed: bool = True
    tool: CalledTool | None = None
    source: str = ""
    files: tuple[CalledTool, ...] = ()


def parse_event(values: Mapping[str, Any], host: str = "") -> HostEvent:
    """Return the report in a hook's input.

    Args:
        values: Input of the hook.
        host: Name of the host, if the command names it.
    """
    roots = values.get("workspace_roots")
    folder = values.get("cwd") or (roots[0] if isinstance(roots, list) and roots else "") or Path.cwd()
    prompt, name = values.get("prompt"), values.get("tool_name")
    is_child = bool(values.get("agent_id")) or os.environ.get("CLAUDE_CODE_ENTRYPOINT", "").startswith("sdk")
    return HostEvent(
        normalize_host(host or _find_host(values)),
        str(values.get("session_id") or values.get("conversation_id") or values.get("sessionId") or ""),
        Path(str(folder)),
        prompt if isinstance(prompt, str) else "",
        is_typed=isinstance(prompt, str) and not is_child,
        tool=_parse_tool(name, values.get("tool_input")) if isinstance(name, str) else None,
        source=str(values.get("source") or ""),
        files=tuple(
            _parse_tool("Read", {"file_path": path}) for path in _list_files(prompt, values.get("attachments"))
        ),
    )


def _list_files(prompt: Any, attachments: Any) -> list[str]:
    """Return paths that a prompt names; `/` for an attachment without one."""
    paths = [quoted or plain for quoted, plain in _MENTION.findall(prompt)] if isinstance(prompt, str) else []
    for attachment in attachments if isinstance(attachments, list) else []:
        values = attachment if isinstance(attachment, dict) else {}
        paths.append(str(values.get("file_path") or values.get("filePath") or values.get("path") or "/"))
    return paths


def normalize_host(name: str) -> str:
    """Return the name of a host from any name that it gives."""
    plain = re.sub(r"[^\w.-]+", "-", flatten(name).casefold()).strip("-.")[:_MAX_NAME]
    known = ("claude-code", "codex", "gemini", "cursor")
    return next((host for host in known if plain.startswith(host)), plain)


def _find_host(values: Mapping[str, Any]) -> str:
    transcript = str(values.get("transcript_path") or "")
    if "conversation_id" in values or "cursor_version" in values:
        return "cursor"
    if "hookEventName" in values:  # it runs the hooks of Claude Code, too
        return "visual-studio-code"
    is_gemini = "GEMINI_SESSION_ID" in os.environ or "/.gemini/" in transcript
    if is_gemini or values.get("hook_event_name") in _GEMINI_EVENTS:
        return "gemini"
    return "codex" if "turn_id" in values or "/.codex/" in transcript else "claude-code"


def _parse_tool(name: str, arguments: Any) -> CalledTool:
    """Return a host's tool as the equal tool of Amplifier.

    A tool of another MCP server has no package, so its output is untrusted.
    """
    if _OWN_TOOL.fullmatch(name):
        return CalledTool(name, "agent_memory", arguments)
    same, package = _HOST_TOOLS.get(name, (name, ""))
    called = CalledTool.of(same, None, arguments)
    values = called.arguments if isinstance(called.arguments, dict) else {}
    if name == "apply_patch":
        patch = str(values.get("command") or values.get("input") or "")
        values = {"paths": _PATCHED_FILE.findall(patch) or ["/"]}
    elif name in _WRITERS:  # the rest is what was written
        values = {"file_path": next((values[key] for key in _FILE_KEYS if key in values), "/")}
    return CalledTool(same if package else name, package, values)


TOKENS: Final = 500
"""Most tokens of the text at the start of a session."""
CAPTURE: Final = "capture"
"""Name of the command in the background that keeps what was typed."""
_CAPTURE_DUE: Final = "agent_memory.integrations.mcp.turn_capture:capture_due"
_EMPTY_STARTS: Final = frozenset({"", "startup", "clear"})
"""Ways in which a session begins without an earlier conversation."""
_ADVICE: Final = "The tools of agent-memory find more (search, context) and keep what later sessions need (store)."
_MAX_INPUT: Final = 4_000_000
_MAX_PROMPT: Final = 40_000


class SessionHook:
    """Hook of one report.

    Args:
        event: Report of the host.
        agent: Name of the agent; None for the chosen or only one.
        root: Folder of all agents.

    Raises:
        AgentMemoryError: The agent is unknown, or its folder cannot be used.
    """

    def __init__(self, event: HostEvent, agent: str | None, root: Path) -> None:
        self._event, self._root = event, root
        self._agent_id = agent or choose_hook_agent(root)
        self._folder = folder_of(self._agent_id, root)
        self._files = TurnFiles(self._folder.path)
        self._key = event.host, find_project(event.folder), event.session_id

    def start_session(self) -> dict[str, Any]:
        """Begin a session with the scratchpad."""
        consent = self._read_consent()
        if self._event.source in _EMPTY_STARTS:
            self._files.start(*self._key, is_cleared=self._event.source == "clear")
        self._files.note_seen(self._event.host, "hooks")
        if self._files.has_due():
            self._start_capture()
        answer = build_answer(self._build_context() if consent.is_enabled else "", self._event.host)
        if problem := self._files.take_problem():
            sys.stderr.write(f"agent-memory: {problem}\n")
            answer["systemMessage"] = f"agent-memory: {problem}"
        return answer

    def note_prompt(self) -> dict[str, Any]:
        """Note what the user typed."""
        from agent_memory.capture.typed_text import has_pasted_part  # its patterns are for this hook alone
        from agent_memory.capture.user_requests import find_storing_request
        from agent_memory.redaction import SecretRedactor

        event, consent = self._event, self._read_consent()
        prompt = self._remove_own_context(event.prompt) if event.is_typed else ""
        request = find_storing_request(prompt, self._agent_id)
        is_foreign = not event.is_typed or has_pasted_part(prompt)
        may_hold = consent.is_enabled and self._files.may_hold_text
        text = SecretRedactor().redact(prompt[:_MAX_PROMPT]).text if may_hold else ""
        self._files.note_seen(event.host, "hooks")
        outputs = self._list_outputs(event.files)
        with self._files.edit(*self._key) as turn:
            turn.is_stopped = request == "stop" if request is not None else turn.is_stopped
            if is_foreign:
                turn.note(PASTED_TEXT)
            is_captured = consent.may_capture(find_project_name(event.folder))
            turn.begin("" if turn.is_stopped else text, time.time(), is_captured=is_captured)
            for name, is_of_project in outputs:
                turn.note(name, is_of_project=is_of_project)
        return {}

    def note_tool(self) -> dict[str, Any]:
        """Note the origin of a tool's result.

        A session without a prompt may be the child of any open session.
        """
        for name, is_of_project in self._list_outputs([self._event.tool or UNKNOWN_TOOL]):
            with self._files.edit(*self._key) as turn:
                turn.note(name, is_of_project=is_of_project)
            if not turn.turns:
                note = partial(HookTurn.note, by=name, is_of_project=is_of_project)
                self._files.change_open(*self._key[:2], note)
        return {}

    def _list_outputs(self, tools: Iterable[CalledTool]) -> list[tuple[str, bool]]:
        """Return tools whose output taints, and if it is the project's."""
        kinds = [(tool.name, ToolList().classify(tool, self._event.folder, self._list_trusted())) for tool in tools]
        return [(name, kind == "project") for name, kind in kinds if kind != "trusted"]

    def drop_state(self) -> None:
        """Delete the state after a failure; the server then trusts less."""
        with contextlib.suppress(OSError):
            self._files.drop(self._event.host, self._event.session_id)

    def save_turns(self, *, is_ended: bool = False) -> dict[str, Any]:
        """Keep what was typed, before the conversation is cut or ends."""
        with self._files.edit(*self._key) as turn:
            turn.is_due, turn.is_ended = True, is_ended or turn.is_ended
            has_typed = bool(turn.typed)
        if has_typed:
            self._start_capture()
        return {}

    def _start_capture(self) -> None:
        """Start a process that captures; the host does not wait for it."""
        from agent_memory.files.processes import child_environment, python_module  # loads asyncio

        words = ["hook", CAPTURE, "--agent", self._agent_id, "--root", str(self._root)]
        null = subprocess.DEVNULL
        subprocess.Popen(  # noqa: S603 - our own program
            [*python_module("agent_memory.cli"), *words],
            stdin=null, stdout=null, stderr=null, start_new_session=True, env=child_environment(), cwd="/",
        )  # fmt: skip

    def _list_trusted(self) -> list[str]:
        if not (self._root / TRUSTED_TOOLS).exists():
            return []
        from agent_memory.files.person_lists import list_trusted_packages  # for those who trust a tool

        return list_trusted_packages(self._root, Path(self._key[1]))

    def _read_consent(self) -> ConsentState:
        folders = find_own_folders(str(self._root), self._agent_id)
        return ConsentState(ConsentFiles(host=self._event.host).read(folders, self._event.folder))

    def _remove_own_context(self, prompt: str) -> str:
        """Return a prompt without the text of `start_session`.

        `gemini -p` reports it as the first part of the prompt.
        """
        if self._event.host != "gemini" or not prompt.startswith("<hook_context>"):
            return prompt
        context = self._build_context().replace("<", "&lt;").replace(">", "&gt;")  # as Gemini CLI does
        return prompt.removeprefix(f"<hook_context>{context}</hook_context>\n\n")

    def _build_context(self) -> str:
        """Return the scratchpad as text, empty without one.

        It is read from `scratchpad.yaml`, which every change renders; no journal is opened.
        """
        path = self._folder.scratchpad
        if not path.exists():
            return ""
        from agent_memory.files.yaml_loader import load_yaml
        from agent_memory.memory.scratchpad_entries import render
        from agent_memory.models import visible
        from agent_memory.settings import ScratchpadSettings

        entries = load_yaml(path.read_text("utf-8")) or ()
        project = find_project_name(self._event.folder)
        is_limited = is_host_limited(self._root, self._event.host)
        memories = [
            _build_memory(self._agent_id, entry)
            for entry in entries
            if isinstance(entry, dict) and "id" in entry and not (is_limited and entry.get("project") != project)
        ]
        if not memories:
            return ""
        text = render(memories, self._agent_id, ScratchpadSettings(token_budget=TOKENS, briefing=False)).text
        return visible(f"{text}\n{_ADVICE}")


_HANDLERS: Final[Mapping[str, Callable[[SessionHook], dict[str, Any]]]] = {
    "session-start": SessionHook.start_session,
    "user-prompt": SessionHook.note_prompt,
    "post-tool-use": SessionHook.note_tool,
    "pre-compact": SessionHook.save_turns,
    "session-end": partial(SessionHook.save_turns, is_ended=True),
}


_USAGE: Final = (
    f"Usage: agent-memory hook {'|'.join(_HANDLERS)} [--host NAME] [--agent NAME] [--root FOLDER]\n"
    "A host runs it with its report as JSON on stdin, and reads JSON on stdout."
)


def run_hook(arguments: Sequence[str]) -> int:
    """Answer a hook of a host; return the exit code 0.

    Args:
        arguments: Name of the hook, then `--host NAME`, `--agent NAME` and `--root FOLDER` where needed.
    """
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # looking for them takes 10 ms
    name = arguments[0] if arguments else ""
    if name in {"", "-h", "--help"}:
        sys.stderr.write(f"{_USAGE}\n")
        return 0
    answer: dict[str, Any] = {}
    hook: SessionHook | None = None
    try:
        root = resolve_root(_read_option(arguments, "--root") or os.environ.get("AGENT_MEMORY_ROOT") or DEFAULT_ROOT)
        agent = _read_option(arguments, "--agent") or os.environ.get("AGENT_MEMORY_AGENT")
        if name == CAPTURE:
            load_handler(_CAPTURE_DUE)(agent or choose_hook_agent(root), root)
            return 0
        handle = _find_handler(name)
        event = parse_event(_read_input(sys.stdin.read(_MAX_INPUT)), _read_option(arguments, "--host"))
        hook = SessionHook(event, agent, root)
        answer = handle(hook)
    except Exception as error:  # noqa: BLE001 - a host must go on without its memory, whatever fails
        outcome = "this session starts without memory" if name == "session-start" else f"hook {name!r} failed"
        sys.stderr.write(f"agent-memory: {outcome}: {' '.join(str(error).split()) or type(error).__name__}\n")
        if hook is not None:
            hook.drop_state()
    sys.stdout.write(json.dumps(answer, ensure_ascii=False) + "\n")
    return 0


def build_answer(text: str, host: str) -> dict[str, Any]:
    """Return the answer at the start of a session.

    Cursor reads `additional_context`, the others `hookSpecificOutput`. Codex refuses fields that it does not know.
    """
    if not text:
        return {}
    output = {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": text}}
    return {**output, "additional_context": text} if host == "cursor" else output


def choose_hook_agent(root: Path) -> str:
    """Return the chosen, only or default agent.

    Raises:
        IdentityError: There are several, and none is chosen.
    """
    agents = agents_under(root)
    if (used := read_used_agent(root)) in agents:
        return used
    if len(agents) > 1:
        raise IdentityError(
            "There are several agents; choose one with `agent-memory agents use NAME`.", code="which_agent"
        )
    return agents[0] if agents else DEFAULT_AGENT


def _find_handler(name: str) -> Callable[[SessionHook], dict[str, Any]]:
    if name not in _HANDLERS:
        raise ValidationError(f"There is no hook {name[:40]!r}; there are: {', '.join(_HANDLERS)}.")
    return _HANDLERS[name]


def _build_memory(agent_id: str, entry: dict[str, Any]) -> Any:
    from agent_memory.models import Memory

    names = ("id", "content", "category", "tags", "pinned")
    fields = {name: entry[name] for name in names if name in entry}
    stored = {"timestamp": entry["stored"]} if "stored" in entry else {}
    return Memory.model_validate({"agent_id": agent_id, **fields, **stored})


def _read_option(arguments: Sequence[str], name: str) -> str:
    words = list(arguments)
    return words[words.index(name) + 1] if name in words[:-1] else ""


def _read_input(text: str) -> dict[str, Any]:
    value = json.loads(text) if text.strip() else {}
    return value if isinstance(value, dict) else {}
