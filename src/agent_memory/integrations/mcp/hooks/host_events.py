"""Reports of hosts to their hooks, in one form.

Fields by the documentation of Claude Code, Codex, Gemini CLI and Cursor, as of November 2026.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_memory.integrations.taint import FILES, LOCAL_TOOLS, SEARCH, SHELL, CalledTool
from agent_memory.models.text import flatten

if TYPE_CHECKING:
    from collections.abc import Mapping

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
