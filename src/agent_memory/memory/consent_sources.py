"""Files that limit memory: policy, consent, project and host settings. Reads only."""

from __future__ import annotations

import contextlib
import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import AgentMemoryError
from agent_memory.files.entries import read_regular
from agent_memory.files.layout import folder_of, root_of
from agent_memory.files.names import CONSENT
from agent_memory.files.project_root import find_project_root
from agent_memory.memory.consent_state import (
    SWITCHES,
    ConsentRule,
    read_project_rule,
    read_rule,
    stop_storing,
    switch_off,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    ReadRule = Callable[[object, str, Mapping[str, str]], ConsentRule]
    FailRule = Callable[[str, str], ConsentRule]

POLICY: Final = Path("/etc/agent-memory/policy.yaml")
"""The administrator's. Its place is part of the code: a user must not be able to name another one."""
PROJECT_FILE: Final = ".agent-memory.yaml"
MODULES: Final = (
    "tool-memory-semantic", "context-memory-scratchpad", "hooks-memory-capture", "hooks-memory-ingestion",
    "tool-memory-knowledge",
)  # fmt: skip
"""Modules whose configuration may limit memory; a limit of one holds for all."""
HOST: Final = "amplifier"
_MAX_BYTES: Final = 1_000_000
_WITHOUT_EFFECT: Final = {
    "agent_identity": "agent_id below overrides: tool-memory-semantic: config:",
    "memory": "enabled, mode, projects or categories below overrides: tool-memory-semantic: config:",
    "tenant_id": "tenant_id below overrides: hooks-memory-ingestion: config:",
}
"""Keys of ours below `session.capabilities`, and what to write instead into the host's settings."""
_UNREADABLE: Final = (OSError, ValueError)


class ConsentFiles:
    """Reader of consent files; reads a file again if it has changed.

    Args:
        policy: The administrator's file.
        host: Name of the program that the session runs in.
    """

    def __init__(self, policy: Path = POLICY, host: str = HOST) -> None:
        self._policy, self._host = policy, host
        self._rules: dict[Path, tuple[object, ConsentRule | None]] = {}  # file state and rule, as last read

    def read(self, folders: Iterable[Path], folder: Path | None) -> tuple[ConsentRule, ...]:
        """Return the rules of all files that exist.

        Args:
            folders: Folders of ours that may hold a person's file: of all agents, of one agent.
            folder: Folder that a person works in; None if it is not known.
        """
        sources: list[tuple[Path, ReadRule, FailRule]] = [(self._policy, _read_policy, switch_off)]
        sources += [(place / CONSENT, read_rule, switch_off) for place in folders]
        project = find_project_root(folder) if folder is not None else None
        if project is not None:
            read = functools.partial(read_project_rule, host=self._host)
            sources.append((project / PROJECT_FILE, read, stop_storing))
        self._rules = {source[0]: self._load_rule(*source) for source in sources}
        return tuple(rule for _, rule in self._rules.values() if rule is not None)

    def has_changed(self) -> bool:
        """Return True if a file changed since the last `read`, or none was read."""
        return not self._rules or any(_get_state(path) != state for path, (state, _) in self._rules.items())

    def _load_rule(self, path: Path, read: ReadRule, fail: FailRule) -> tuple[object, ConsentRule | None]:
        state = _get_state(path)
        cached = self._rules.get(path)
        return cached if cached is not None and cached[0] == state else (state, _rule_in(path, read, fail))


def _get_state(path: Path) -> tuple[object, ...]:
    """Return what changes when a file does, or the reason why it cannot be reached.

    The time of the inode also changes with permissions, and when an editor restores the time of the content.
    """
    try:
        status = path.stat()
    except OSError as error:
        return error.errno, isinstance(error, FileNotFoundError) and path.is_symlink()
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _rule_in(path: Path, read: ReadRule, fail: FailRule) -> ConsentRule | None:
    source = show_path(path)
    try:
        block, places = read_settings(path)
    except (FileNotFoundError, NotADirectoryError) as error:
        # A link without its target was put there on purpose: it is a file that cannot be read.
        return fail(source, _describe_error(error)) if path.is_symlink() else None
    except _UNREADABLE as error:
        return fail(source, _describe_error(error))
    return read({} if block is None else block, source, places)


def _read_policy(block: object, source: str, places: Mapping[str, str]) -> ConsentRule:
    """Read the administrator's rule; whatever is not understood switches memory off."""
    rule = read_rule(block, source, places)
    return ConsentRule(source, rule.enabled and not rule.warnings, rule.modes, rule.warnings, places)


def read_overrides(folder: Path | None) -> dict[str, dict[str, Any]]:
    """Return the limits in the host's settings files, by module."""
    blocks: dict[str, dict[str, Any]] = {}
    for _, settings, _ in _host_settings(folder, b"overrides"):
        overrides = settings.get("overrides")
        for module in MODULES:
            entry = overrides.get(module) if isinstance(overrides, dict) else None
            config = entry.get("config") if isinstance(entry, dict) else None
            if isinstance(config, dict):
                blocks[module] = {**blocks.get(module, {}), **limits_in(config)}
    return blocks


def read_module_rules(blocks: Mapping[str, Mapping[str, Any]], folder: Path | None) -> tuple[ConsentRule, ...]:
    """Return the rules in the configuration of modules.

    Args:
        blocks: What limits memory in their configuration, by module.
        folder: Folder that a person works in, whose settings file may be the place of a key.
    """
    limits = {module: block for module, block in blocks.items() if block}
    files = list(_host_settings(folder, b"overrides")) if limits else []
    rules = []
    for module, block in limits.items():
        prefix = f"overrides.{module}.config."
        places: dict[str, str] = {}
        for _, _, lines in files:
            places |= {key.removeprefix(prefix): place for key, place in lines.items() if key.startswith(prefix)}
        rules.append(read_rule(block, f"the configuration of {module}", places))
    return tuple(rules)


def find_own_folders(storage_root: str, agent_id: str | None) -> list[Path]:
    """Return the usable folders that may hold a person's consent file."""
    folders: list[Path] = []
    with contextlib.suppress(AgentMemoryError):
        folders.append(root_of(storage_root))
        if agent_id:
            folders.append(folder_of(agent_id, storage_root).path)
    return folders


def limits_in(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of a configuration that limit memory.

    `projects: false` is another setting.
    """
    return {
        key: value
        for key, value in config.items()
        if key in SWITCHES and value is not None and not (key == "projects" and isinstance(value, bool))
    }


def find_misplaced(folder: Path | None) -> list[str]:
    """Return warnings about `session:` blocks in the host's settings files.

    The host reads such a block only from bundles.
    """
    warnings = []
    for path, settings, lines in _host_settings(folder, b"capabilities"):
        session = settings.get("session")
        capabilities = session.get("capabilities") if isinstance(session, dict) else None
        for key, replacement in _WITHOUT_EFFECT.items():
            if isinstance(capabilities, dict) and key in capabilities:
                place = lines.get(f"session.capabilities.{key}", show_path(path))
                warnings.append(
                    f"{place}: session.capabilities.{key} has no effect here: the host reads `session:` only from a "
                    f"bundle. In this file write {replacement}"
                )
    return warnings


def read_settings(path: Path) -> tuple[Any, dict[str, str]]:
    """Return a YAML file's value and the place of each key.

    A place is file and line, by the dotted path of the key.

    Raises:
        OSError: It cannot be read, or is not a regular file.
        ValueError: It is not YAML, or too long.
    """
    if path.stat().st_size > _MAX_BYTES:
        raise ValueError(f"it has more than {_MAX_BYTES:,} bytes")
    text = read_regular(path).decode("utf-8")
    import yaml  # 15 ms, only where there is such a file

    from agent_memory.files.yaml_loader import BoundedComposer

    try:
        composer = BoundedComposer(text)
        node = composer.get_single_node()
        value = None if node is None else composer.construct_document(node)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" in line {mark.line + 1}" if mark is not None else ""
        raise ValueError(f"it is not YAML that can be read{line}") from None
    name = show_path(path)
    return value, {key: f"{name}:{line}" for key, line in _lines(node, "")}


def show_path(path: Path) -> str:
    """Return a path as people write it, with `~` for the home."""
    try:
        return f"~/{path.relative_to(Path.home())}"
    except (ValueError, RuntimeError):
        return str(path)


def _host_settings(folder: Path | None, word: bytes) -> Iterator[tuple[Path, dict[str, Any], dict[str, str]]]:
    """Yield path, value and places of host settings files with a word.

    The file that overrides the others comes last.
    """
    places = [] if folder is None else [find_project_root(folder), folder]
    local = [
        place / ".amplifier" / name for place in places if place for name in ("settings.yaml", "settings.local.yaml")
    ]
    for path in dict.fromkeys([_home() / ".amplifier" / "settings.yaml", *local]):
        try:
            if word not in read_regular(path):
                continue  # parsing costs milliseconds in every session
            value, lines = read_settings(path)
        except _UNREADABLE:
            continue  # the host reports its own settings
        if isinstance(value, dict):
            yield path, value, lines


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:
        return Path("/")


def _lines(node: Any, prefix: str) -> Iterator[tuple[str, int]]:
    """Yield the dotted path, in small letters, and line of each key."""
    if getattr(node, "id", "") != "mapping":
        return
    for key, value in node.value:
        path = f"{prefix}{' '.join(str(key.value).split()).casefold()}"
        yield path, key.start_mark.line + 1
        yield from _lines(value, f"{path}.")


def _describe_error(error: OSError | ValueError) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8"
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
