"""Connection of MCP hosts to an agent, with diff and backup."""

from __future__ import annotations

import difflib
import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent_memory.errors import ConfigurationError
from agent_memory.files.atomic import make_private_folder, replace_file, translated
from agent_memory.integrations.hosts.host_files import (
    HOSTS,
    HostFile,
    build_entry,
    read_entry,
    read_host_text,
    write_entry,
)
from agent_memory.integrations.hosts.host_hooks import HOOK_FILES, has_hooks, write_hooks

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

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
