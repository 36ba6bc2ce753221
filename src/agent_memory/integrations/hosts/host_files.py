"""Configuration files of MCP hosts, and our entry in them.

Places and forms by the hosts' documentation, as of November 2026.
"""

from __future__ import annotations

import io
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from agent_memory.errors import ConfigurationError
from agent_memory.integrations.hosts.json_edits import parse_json, remove_member, set_member
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
