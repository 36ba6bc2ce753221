"""Hooks of agent-memory in the settings of hosts.

Events and forms follow the hosts' documentation, as of November 2026. `plugins/` has the same hooks.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from agent_memory.integrations.hosts.host_files import HostFile, build_form_error
from agent_memory.integrations.hosts.json_edits import append_item, parse_json, remove_items, remove_member, set_member

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_KEY: Final = "hooks"
_PLUGINS: Final = "enabledPlugins"
_OWN_COMMAND: Final = re.compile(r"(?:^|[/'\"\s])agent-memory['\"]? hook [a-z-]+")
_SESSIONS: Final = "startup|resume|clear|compact"


@dataclass(frozen=True, slots=True)
class HookFile:
    """File of a host's hooks.

    Attributes:
        file: The file; it is JSON.
        events: Name of our hook and matcher, by event of the host.
        timeout: Time limit in the host's unit; 0 if its entries are commands alone, in a file with a version.
        end_timeout: Highest time limit at the end of a session; 0 for that of the other events.
        has_name: True if the command names the host. That of Claude Code does not: other hosts read its file.
        advice: What the user does next in the host.
    """

    file: HostFile
    events: Mapping[str, tuple[str, str]]
    timeout: int = 10
    end_timeout: int = 0
    has_name: bool = True
    advice: str = ""


HOOK_FILES: Final[Mapping[str, HookFile]] = {
    "claude-code": HookFile(
        HostFile("Claude Code", "~/.claude", "settings.json", "json", variable="CLAUDE_CONFIG_DIR"),
        {
            "SessionStart": ("session-start", _SESSIONS),
            "UserPromptSubmit": ("user-prompt", ""),
            "PostToolUse": ("post-tool-use", "*"),
            "PostToolUseFailure": ("post-tool-use", "*"),
            "PreCompact": ("pre-compact", "manual|auto"),
            "SessionEnd": ("session-end", ""),
        },
        has_name=False,
    ),
    "codex": HookFile(
        HostFile("Codex", "~/.codex", "hooks.json", "json", variable="CODEX_HOME"),
        {
            "SessionStart": ("session-start", _SESSIONS),
            "UserPromptSubmit": ("user-prompt", ""),
            "PostToolUse": ("post-tool-use", ".*"),
            "PreCompact": ("pre-compact", ""),
            "Stop": ("pre-compact", ""),
            "SessionEnd": ("session-end", ""),
        },
        end_timeout=3,  # it warns of a higher one in each session
        advice="Codex runs the hooks after you trust them: type /hooks there.",
    ),
    "cursor": HookFile(
        HostFile("Cursor", "~/.cursor", "hooks.json", "json"),
        {
            "sessionStart": ("session-start", ""),
            "beforeSubmitPrompt": ("user-prompt", ""),
            "postToolUse": ("post-tool-use", ""),
            "postToolUseFailure": ("post-tool-use", ""),
            "preCompact": ("pre-compact", ""),
            "sessionEnd": ("session-end", ""),
        },
        timeout=0,
    ),
    "gemini": HookFile(
        HostFile("Gemini CLI", "~/.gemini", "settings.json", "json"),
        {
            "SessionStart": ("session-start", ""),
            "BeforeAgent": ("user-prompt", ""),
            "AfterTool": ("post-tool-use", ".*"),
            "AfterAgent": ("pre-compact", ""),
            "PreCompress": ("pre-compact", "manual"),  # it reports an automatic one before each request
            "SessionEnd": ("session-end", ""),
        },
        timeout=10_000,
    ),
}
"""Files by the host's name. A host that hides some of what its model reads is left out: no report means trusted."""


def build_hooks(name: str, command: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return our entry for each event of a host.

    Args:
        name: Name of the host.
        command: Program and its options; the name of the hook comes after the first word.
    """
    hooks, entries = HOOK_FILES[name], {}
    for event, (hook, matcher) in hooks.events.items():
        host = ["--host", name] if hooks.has_name else []
        line = shlex.join([command[0], "hook", hook, *host, *command[1:]])
        if hooks.timeout:
            timeout = (hook == "session-end" and hooks.end_timeout) or hooks.timeout
            run = {"type": "command", "command": line, "timeout": timeout}
            entries[event] = {**({"matcher": matcher} if matcher else {}), "hooks": [run]}
        else:
            entries[event] = {"command": line}
    return entries


def write_hooks(name: str, text: str, command: Sequence[str] | None) -> str:
    """Return a host's text with our hooks, or without them.

    Args:
        name: Name of the host.
        text: Text of the file before the change.
        command: As for `build_hooks`; None removes the hooks.

    Raises:
        ConfigurationError: The text is not of the host's form.
    """
    hooks = HOOK_FILES[name]
    try:
        events = _read_events(hooks, text)
        new = {} if command is None or _has_plugin(text) else build_hooks(name, command)
        for event, entries in events.items():
            if [entry for entry in entries if _is_own(entry)] != ([new[event]] if event in new else []):
                text = remove_items(text, (_KEY, event), _is_own)
                if event not in new and not _read_events(hooks, text)[event]:
                    text = remove_member(text, (_KEY,), event)
            else:
                new.pop(event, None)
        for event, entry in new.items():
            text = append_item(text, (_KEY, event), entry)
        if new and not hooks.timeout and "version" not in parse_json(text):
            text = set_member(text, (), "version", 1)
        return remove_member(text, (), _KEY) if events and not parse_json(text)[_KEY] else text
    except (ValueError, RecursionError) as error:
        raise build_form_error(hooks.file, error) from None


def has_hooks(name: str, text: str) -> bool:
    """Return True if a host's text has a hook of ours.

    Raises:
        ConfigurationError: The text is not of the host's form.
    """
    hooks = HOOK_FILES[name]
    try:
        return any(_is_own(entry) for entries in _read_events(hooks, text).values() for entry in entries)
    except (ValueError, RecursionError) as error:
        raise build_form_error(hooks.file, error) from None


def _read_events(hooks: HookFile, text: str) -> dict[str, list[Any]]:
    """Return all entries by event.

    Raises:
        ValueError: The text is not of the host's form.
    """
    value = parse_json(text)
    events = value.get(_KEY, {}) if isinstance(value, dict) else None
    if not isinstance(events, dict):
        raise ValueError("hooks are not a mapping")  # noqa: TRY004 - a wrong text
    for event in hooks.events:
        if not isinstance(events.get(event, []), list):
            raise ValueError(f"hooks of {event} are not a list")  # noqa: TRY004 - a wrong text
    return {event: entries for event, entries in events.items() if isinstance(entries, list)}


def _is_own(entry: Any) -> bool:
    """Return True if an entry runs our hooks alone."""
    values = entry if isinstance(entry, dict) else {}
    runs = values["hooks"] if isinstance(values.get("hooks"), list) else [values]
    commands = [run.get("command") if isinstance(run, dict) else None for run in runs]
    return bool(commands) and all(isinstance(line, str) and _OWN_COMMAND.search(line) for line in commands)


def _has_plugin(text: str) -> bool:
    """Return True if our plugin, with the same hooks, is active."""
    plugins = parse_json(text).get(_PLUGINS)
    return isinstance(plugins, dict) and any(
        name.startswith("agent-memory@") and is_on for name, is_on in plugins.items()
    )
