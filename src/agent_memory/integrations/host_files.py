"""Configuration files of MCP hosts, our entry and our hooks in them.

Places, forms and events by the hosts' documentation, as of November 2026. `plugins/` has the same hooks.
"""

from __future__ import annotations

import difflib
import io
import os
import re
import shlex
import stat
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from agent_memory.errors import ConfigurationError
from agent_memory.files.atomic import make_private_folder, replace_file, translated
from agent_memory.integrations.json_edits import append_item, parse_json, remove_items, remove_member, set_member
from agent_memory.settings.installation import check_installed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NAME: Final = "agent-memory"
"""Name of our entry."""


@dataclass(frozen=True, slots=True)
class HostFile:
    """Configuration of one host.

    Attributes:
        title: Name of the host for people.
        folder: Folder of the file; `~` is the home.
        name: Name of the file in that folder.
        form: Form of the file.
        keys: Keys of the mapping that holds the servers.
        style: Form of an entry: command and arguments apart, in one list, or as Goose has them.
        variable: Variable of the environment with which the host is told another folder.
    """

    title: str
    folder: str
    name: str
    form: Literal["json", "toml", "yaml"]
    keys: tuple[str, ...] = ("mcpServers",)
    style: Literal["apart", "list", "goose"] = "apart"
    variable: str = ""

    @property
    def path(self) -> str:
        """Path of the file for people."""
        return f"{os.environ.get(self.variable) or self.folder}/{self.name}"

    @property
    def file(self) -> Path:
        """Path of the file on this machine."""
        return Path(self.path).expanduser()


_XDG: Final = "XDG_CONFIG_HOME"
_CODE: Final = ("~/Library/Application Support", "") if sys.platform == "darwin" else ("~/.config", _XDG)
HOSTS: Final[Mapping[str, HostFile]] = {
    "claude-code": HostFile("Claude Code", "~", ".claude.json", "json", variable="CLAUDE_CONFIG_DIR"),
    "codex": HostFile("Codex", "~/.codex", "config.toml", "toml", ("mcp_servers",), variable="CODEX_HOME"),
    "cursor": HostFile("Cursor", "~/.cursor", "mcp.json", "json"),
    "gemini": HostFile("Gemini CLI", "~/.gemini", "settings.json", "json"),
    "goose": HostFile("Goose", "~/.config", "goose/config.yaml", "yaml", ("extensions",), "goose", _XDG),
    "opencode": HostFile("opencode", "~/.config", "opencode/opencode.json", "json", ("mcp",), "list", _XDG),
    "vscode": HostFile("VS Code", _CODE[0], "Code/User/mcp.json", "json", ("servers",), variable=_CODE[1]),
    "windsurf": HostFile("Windsurf", "~/.codeium/windsurf", "mcp_config.json", "json"),
}
"""Hosts by the name that `connect` takes."""


def build_entry(host: HostFile, command: str, arguments: Sequence[str]) -> dict[str, Any]:
    """Return our entry in the form of a host.

    Args:
        host: Host that starts the server.
        command: Path of the program.
        arguments: Arguments of the program.
    """
    if host.style == "list":
        return {"type": "local", "command": [command, *arguments], "enabled": True}
    if host.style == "goose":
        return {"type": "stdio", "name": NAME, "cmd": command, "args": [*arguments], "enabled": True, "timeout": 60}
    return {"command": command, "args": [*arguments]}


def read_host_text(host: HostFile) -> str:
    """Return the text of a host's file, empty if there is none.

    Raises:
        ConfigurationError: It cannot be read.
    """
    try:
        return host.file.read_text("utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"{host.path} of {host.title} cannot be read: {error}.", code="host_file", recovery="Correct that file."
        ) from None


def read_entry(host: HostFile, text: str) -> Mapping[str, Any] | None:
    """Return our entry in a host's text, or None.

    Raises:
        ConfigurationError: The text is not of the host's form.
    """
    value = _parse(host, text) if text.strip() else {}
    for key in (*host.keys, NAME):
        value = value.get(key) if hasattr(value, "get") else None
    return value if hasattr(value, "get") else None


def write_entry(host: HostFile, text: str, entry: Mapping[str, Any] | None) -> str:
    """Return a host's text with our entry, or without it; comments stay.

    Args:
        host: Host of the file.
        text: Text of the file before the change.
        entry: Entry to write; None removes it.

    Raises:
        ConfigurationError: The text is not of the host's form.
    """
    document = servers = _parse(host, text)
    for key in host.keys:
        if key not in servers:
            servers[key] = {}
        servers = servers[key]
        if not hasattr(servers, "get"):
            raise ConfigurationError(f"{key} in {host.path} is not a mapping.", code="host_file")
    if host.form == "json":
        return remove_member(text, host.keys, NAME) if entry is None else set_member(text, host.keys, NAME, entry)
    if entry is None:
        servers.pop(NAME, None)
    else:
        servers[NAME] = dict(entry)
    return _render(host, document)


def _parse(host: HostFile, text: str) -> Any:
    if host.form != "json":
        package = "tomlkit" if host.form == "toml" else "ruamel"
        check_installed(f"A package that reads {host.path} is not installed.", "mcp", package)
    try:
        match host.form:
            case "json":
                value: Any = parse_json(text)
            case "toml":
                import tomlkit

                value = tomlkit.parse(text)
            case "yaml":
                value = _read_yaml(text)
    except (ValueError, RecursionError) as error:
        raise build_form_error(host, error) from None
    if not hasattr(value, "get"):
        raise build_form_error(host, ValueError("it is not a mapping"))
    return value


def build_form_error(host: HostFile, error: Exception) -> ConfigurationError:
    """Return the error for a host's text of another form."""
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return ConfigurationError(
        f"{host.path} of {host.title} is not {host.form.upper()}: {reason}. Nothing was changed.",
        code="host_file",
        recovery="Correct the file, or add by hand what `agent-memory connect HOST --print` prints.",
    )


def _render(host: HostFile, document: Any) -> str:
    if host.form == "toml":
        import tomlkit

        return tomlkit.dumps(document).rstrip("\n") + "\n"  # an entry that was removed leaves an empty line
    stream = io.StringIO()
    _load_yaml().dump(document, stream)
    return stream.getvalue()


def _read_yaml(text: str) -> Any:
    from ruamel.yaml.error import YAMLError

    try:
        return _load_yaml().load(text) or {}
    except YAMLError as error:
        raise ValueError(str(error)) from None


def _load_yaml() -> Any:
    from ruamel.yaml import YAML

    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 1_000
    return yaml


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


_BACKUP = ".before-agent-memory"
_NO_HOOKS = "{} gets no hooks: what its model stores has low trust."


@dataclass(frozen=True, slots=True)
class HostChange:
    """Change of a host's file that is not made yet.

    Attributes:
        host: Host of the file.
        before, after: Text of the file.
    """

    host: HostFile
    before: str
    after: str

    @property
    def diff(self) -> str:
        """Unified diff of the file; empty if nothing changes."""
        names = self.host.path, self.host.path
        lines = difflib.unified_diff(self.before.splitlines(), self.after.splitlines(), *names, lineterm="", n=2)
        return "\n".join(lines)

    def check(self) -> None:
        """Check that the file is unchanged.

        Raises:
            ConfigurationError: Another program changed it.
        """
        if read_host_text(self.host) != self.before:
            raise ConfigurationError(
                f"{self.host.path} was changed by another program.", code="changed", recovery="Try again."
            )

    def write(self) -> Path | None:
        """Write the file; return its backup, or None.

        Raises:
            StorageError: It cannot be written; it is unchanged.
        """
        path, backup = self.host.file, None
        make_private_folder(path.parent)
        target = path.resolve()  # a link to a file of dotfiles stays a link
        with translated(path, "write"):
            if self.before:
                mode = stat.S_IMODE(target.stat().st_mode)
                backup = path.with_name(path.name + _BACKUP)
                replace_file(backup, self.before.encode(), durable=True)
                replace_file(target, self.after.encode(), durable=True)
                os.chmod(target, mode)  # noqa: PTH101 - the mode of the host's own file
            else:
                replace_file(target, self.after.encode(), durable=True)
        return backup


@dataclass(frozen=True, slots=True)
class ConnectionChange:
    """Planned changes of all files of a host.

    Attributes:
        files: Changes of the files with a difference.
        path: Path of the file with the entry of our server.
        advice: What the user does next in the host.
    """

    files: tuple[HostChange, ...]
    path: str
    advice: str = ""

    @classmethod
    def build(cls, changes: Sequence[HostChange], advice: str = "") -> ConnectionChange:
        """Return the change with these files, the one with the entry first."""
        return cls(tuple(change for change in changes if change.diff), changes[0].host.path, advice)

    @property
    def diff(self) -> str:
        """Unified diff of the files; empty if nothing changes."""
        return "\n".join(change.diff for change in self.files)

    def apply(self) -> list[Path]:
        """Write the files; return their backups.

        Raises:
            ConfigurationError: A file was changed meanwhile; nothing was written.
            StorageError: A file cannot be written; it is unchanged.
        """
        for change in self.files:
            change.check()
        backups = [change.write() for change in self.files]
        return [backup for backup in backups if backup is not None]


def get_host(name: str) -> HostFile:
    """Return a host by its name.

    Raises:
        ConfigurationError: It is unknown.
    """
    if name not in HOSTS:
        raise ConfigurationError(
            f"{name} is no known host. There are: {', '.join(HOSTS)}.",
            code="unknown_host",
            recovery="For another host, add what `agent-memory connect cursor --print` prints to its MCP servers.",
        )
    return HOSTS[name]


def plan_connection(
    name: str, command: str, agent_id: str, root: str, *, is_project_only: bool = False
) -> ConnectionChange:
    """Return the change that connects a host.

    Args:
        name: Name of the host.
        command: Path of our program.
        agent_id: Agent whose memory the host gets.
        root: Folder of all agents; empty for the usual one.
        is_project_only: True if the host sees and writes its own project alone.

    Raises:
        ConfigurationError: The host is unknown, or its file cannot be used.
    """
    host = get_host(name)
    options = ["--agent", agent_id, *(["--root", root] if root else [])]
    arguments = ["mcp", *options, *(["--project-only"] if is_project_only else [])]
    entry, before = build_entry(host, command, arguments), read_host_text(host)
    change = HostChange(host, before, write_entry(host, before, entry))
    advice = HOOK_FILES[name].advice if name in HOOK_FILES else _NO_HOOKS.format(host.title)
    return ConnectionChange.build(_add_hooks(name, change, [command, *options]), advice)


def plan_disconnection(name: str) -> ConnectionChange:
    """Return the change that removes our entry from a host.

    Raises:
        ConfigurationError: The host is unknown, or its file cannot be used.
    """
    host = get_host(name)
    before = read_host_text(host)
    after = before if read_entry(host, before) is None else write_entry(host, before, None)
    return ConnectionChange.build(_add_hooks(name, HostChange(host, before, after), None))


def _add_hooks(name: str, change: HostChange, command: Sequence[str] | None) -> list[HostChange]:
    """Return the changes of a host's entry and hooks; None removes hooks."""
    if name not in HOOK_FILES:
        return [change]
    file = HOOK_FILES[name].file
    if file.file == change.host.file:
        return [HostChange(change.host, change.before, write_hooks(name, change.after, command))]
    before = read_host_text(file)
    return [change, HostChange(file, before, write_hooks(name, before, command))]


def list_connections() -> list[dict[str, Any]]:
    """Return name, file, state and agent of each host.

    The state is `connected`, `only hooks`, `not connected`, `no file` or the reason why the file cannot be used.
    """
    rows: list[dict[str, Any]] = []
    for name, host in HOSTS.items():
        agent, state = None, "not connected" if host.file.exists() else "no file"
        try:
            entry = read_entry(host, read_host_text(host))
            if name in HOOK_FILES and has_hooks(name, read_host_text(HOOK_FILES[name].file)):
                state = "only hooks"
        except ConfigurationError as error:
            entry, state = None, error.message
        if entry is not None:
            words = [*map(str, _list_words(entry))]
            agent, state = words[words.index("--agent") + 1] if "--agent" in words[:-1] else None, "connected"
        rows.append({"host": name, "file": host.path, "state": state, "agent": agent})
    return rows


def _list_words(entry: Any) -> list[Any]:
    command = entry.get("command")
    return [*(command if isinstance(command, list) else ()), *(entry.get("args") or ())]
