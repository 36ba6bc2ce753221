"""Consent to store: the strictest of policy, consent, project and host."""

from __future__ import annotations

import contextlib
import functools
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from agent_memory.earlier_name_tables import RENAMED_SETTINGS, SETTINGS
from agent_memory.errors import AgentMemoryError, IdentityError
from agent_memory.files.entries import read_regular
from agent_memory.files.layout import find_project_root, folder_of, resolve_root
from agent_memory.files.names import CONSENT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    ReadRule = Callable[[object, str, Mapping[str, str]], "ConsentRule"]
    FailRule = Callable[[str, str], "ConsentRule"]


LEAST_RETAIN_DAYS: Final = 7
_PROJECT_KEYS: Final = ("enabled", "mode", "categories", "retain_days", "hosts")
Mode: TypeAlias = Literal["autonomous", "ask", "manual", "stopped"]
MODES: Final[tuple[Mode, ...]] = ("autonomous", "ask", "manual")
"""Modes that a configuration may name, from the one that keeps most to the strictest."""
_STRICTNESS: Final[tuple[Mode, ...]] = (*MODES, "stopped")
"""`stopped` stores nothing at all; it comes from a spoken request or from a file that cannot be read."""
SPOKEN: Final = "the user's request in this conversation"
NARROWER: Final = ("projects", "categories")
"""Keys next to `mode`: modes by project and by category."""
SWITCHES: Final = ("enabled", "mode", *NARROWER)
"""Keys by which a source limits memory."""
_OFF: Final = ("off", "False")
"""Other words for manual; YAML reads a bare `off` as false."""
_OUTCOME: Final = "Nothing is captured there; the model stores only what the user asks for."
POLICY: Final = Path("/etc/agent-memory/policy.yaml")
"""Policy of the administrator. Its path is fixed, so that a user cannot name another file."""
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


@dataclass(frozen=True, slots=True)
class ConsentModes:
    """Modes in general, of projects and of categories.

    Attributes:
        mode: Mode of other projects and categories.
        projects: Modes by the name of a project in lower case.
        categories: Modes by category of memories.
    """

    mode: Mode = "autonomous"
    projects: Mapping[str, Mode] = field(default_factory=lambda: MappingProxyType({}))
    categories: Mapping[str, Mode] = field(default_factory=lambda: MappingProxyType({}))

    def of(self, category: str = "", project: str = "") -> Mode:
        """Return the stricter mode of a category and a project."""
        named = (self.projects.get(project.casefold()), self.categories.get(category))
        return strictest([mode for mode in named if mode is not None] or [self.mode])

    def find_key(self, category: str = "", project: str = "") -> str:
        """Return the deciding key: `mode`, `projects.NAME` or `categories.NAME`."""
        mode, name = self.of(category, project), project.casefold()
        if self.projects.get(name) == mode:
            return f"projects.{name}"
        return f"categories.{category}" if self.categories.get(category) == mode else "mode"


@dataclass(frozen=True, slots=True)
class ConsentRule:
    """Limits that one source sets.

    Attributes:
        source: Name of the source, for people: a file, or "your request in this conversation".
        enabled: True if memory is on.
        modes: What may be stored while it is on.
        warnings: A sentence for each thing that was not understood.
        places: File and line of a key, such as `projects.kestrel`, where they are known.
        retain_days: Age at which memories of the project go to the archive, in days; None for never.
    """

    source: str
    enabled: bool = True
    modes: ConsentModes = field(default_factory=ConsentModes)
    warnings: tuple[str, ...] = ()
    places: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    retain_days: int | None = None

    def locate(self, key: str) -> str:
        """Return the file and line of a key, else its source."""
        return self.places.get(key) or self.places.get(key.partition(".")[0]) or self.source


@dataclass(frozen=True, slots=True)
class ConsentState:
    """Consent by all sources: `ConsentState((rule, …)).get_mode("note", "kestrel")`.

    Attributes:
        rules: One for each source that exists.
    """

    rules: tuple[ConsentRule, ...] = ()

    @property
    def is_enabled(self) -> bool:
        """True while memory is on."""
        return all(rule.enabled for rule in self.rules)

    def check_enabled(self) -> None:
        """Check that memory is on.

        Raises:
            IdentityError: A source switches it off (`switched_off`).
        """
        if not self.is_enabled:
            raise IdentityError(
                f"Memory is off: {self.decided_by() or 'a file of consent'} says so.",
                code="switched_off",
                recovery="The user runs: agent-memory consent on",
            )

    @property
    def is_switched_off(self) -> bool:
        """True if a source without an error switches memory off."""
        return any(not rule.enabled and not rule.warnings for rule in self.rules)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings of all sources."""
        return tuple(warning for rule in self.rules for warning in rule.warnings)

    @property
    def retain_days(self) -> int | None:
        """Least age in days for the archive, or None."""
        return min((rule.retain_days for rule in self.rules if rule.retain_days is not None), default=None)

    def get_mode(self, category: str = "", project: str = "") -> Mode:
        """Return the strictest mode for a category in a project."""
        return strictest([rule.modes.of(category, project) for rule in self.rules] or ["autonomous"])

    def may_capture(self, project: str) -> bool:
        """Return True if capture may keep some category, or ask for it."""
        categories = {"", *(name for rule in self.rules for name in rule.modes.categories)}
        return any(self.get_mode(category, project) in {"autonomous", "ask"} for category in categories)

    def decided_by(self, category: str = "", project: str = "") -> str:
        """Return file and line of the strictest limit, or an empty text."""
        for rule in self.rules:
            if not rule.enabled:
                return rule.locate("enabled")
        mode = self.get_mode(category, project)
        rules = [rule for rule in self.rules if rule.modes.of(category, project) == mode != "autonomous"]
        return rules[0].locate(rules[0].modes.find_key(category, project)) if rules else ""


def read_rule(block: object, source: str, places: Mapping[str, str] | None = None) -> ConsentRule:
    """Read `enabled`, `mode`, `projects` and `categories` of one source.

    Fails closed: who writes such keys wants to limit memory. What is neither yes nor no, and an unknown key, switch
    memory off; an unknown mode counts as `manual`.

    Args:
        block: The mapping, or a yes or no alone.
        source: Its place, for people.
        places: File and line of each key.
    """
    limits: dict[object, object] = block if isinstance(block, dict) else {"enabled": block}
    enabled, warnings = True, list[str]()
    for key, value in limits.items():
        if key not in SWITCHES:
            enabled = False
            near = _suggest(str(key), SWITCHES) or "."
            warnings.append(f"{source}: unknown key {str(key)[:40]!r}{near} Memory stays off until it is corrected.")
        elif key == "enabled" and value is not None:
            wanted = _read_bool(value)
            enabled = enabled and bool(wanted)
            if wanted is None:
                warnings.append(f"{source}.enabled is neither true nor false. Memory stays off until it is corrected.")
            elif value is not wanted and not wanted:
                warnings.append(f"{source}.enabled is taken for false; write false, without quotes, to drop the tools.")
    modes, not_understood = read_modes(limits, source)
    return ConsentRule(source, enabled, modes, (*warnings, *not_understood), places or {})


def read_project_rule(block: object, source: str, places: Mapping[str, str], host: str) -> ConsentRule:
    """Read the limits in a project's file; an error stops storing.

    Args:
        block: Content of the file.
        source: Its path, for people.
        places: File and line of each key.
        host: Name of the program that the session runs in, for `hosts`.
    """
    if not isinstance(block, dict):
        return stop_storing(source, "it is not a mapping of keys to values")
    if unknown := next((key for key in block if key not in _PROJECT_KEYS), None):
        near = _suggest(str(unknown), _PROJECT_KEYS)
        return stop_storing(source, f"unknown key {str(unknown)[:40]!r}{near}")
    days, hosts = block.get("retain_days"), block.get("hosts")
    if days is not None and (type(days) is not int or days < LEAST_RETAIN_DAYS):
        return stop_storing(source, f"retain_days is not a whole number of at least {LEAST_RETAIN_DAYS}")
    names = [hosts] if isinstance(hosts, str) else hosts
    if names is not None and not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        return stop_storing(source, "hosts is not a list of names")
    rule = read_rule({key: block[key] for key in SWITCHES if key in block}, source, places)
    if rule.warnings:
        return ConsentRule(source, rule.enabled, ConsentModes("stopped"), rule.warnings, places)
    is_elsewhere = names is not None and host not in {name.casefold() for name in names}
    places = {**places, "enabled": places.get("hosts", source)} if is_elsewhere and rule.enabled else places
    return ConsentRule(source, rule.enabled and not is_elsewhere, rule.modes, (), places, days)


def stop_storing(source: str, problem: str) -> ConsentRule:
    """Return the rule of an erroneous source: it stops storing."""
    sentence = problem if problem.endswith("?") else f"{problem}."
    warning = f"{source}: {sentence} Nothing is stored in this project until it is corrected."
    return ConsentRule(source, modes=ConsentModes("stopped"), warnings=(warning,))


def switch_off(source: str, problem: str) -> ConsentRule:
    """Return the rule of an erroneous source: memory is off."""
    return ConsentRule(source, enabled=False, warnings=(f"{source}: {problem}. Memory is off until it is corrected.",))


def _read_bool(value: object) -> bool | None:
    """Return a value as a bool, or None for another one."""
    import pydantic  # only where a source says something

    try:
        return pydantic.TypeAdapter(bool).validate_python(value)
    except pydantic.ValidationError:
        return None


def _suggest(name: str, names: tuple[str, ...]) -> str:
    from agent_memory.settings import did_you_mean  # for wrong keys alone

    return did_you_mean(name, names)


def strictest(modes: list[Mode]) -> Mode:
    """Return the strictest mode, which stores least."""
    return max(modes, key=_STRICTNESS.index)


def read_modes(memory: Mapping[object, object], where: str) -> tuple[ConsentModes, list[str]]:
    """Read `mode`, `projects` and `categories`; anything else counts as `manual`.

    Args:
        memory: Mapping with these keys.
        where: Place of the mapping in the configuration, for warnings.

    Returns:
        Modes, and a sentence about each wrong value.
    """
    from agent_memory.models import CATEGORIES  # hooks of other hosts mostly find no such block

    warnings: list[str] = []
    general = _read_mode(memory.get("mode"), f"{where}.mode", warnings) or MODES[0]
    by_key: dict[str, dict[str, Mode]] = {}
    for key in NARROWER:
        block = {} if memory.get(key) is None else memory[key]
        if not isinstance(block, dict):
            warnings.append(f"{where}.{key} is no mapping of names to modes. {_OUTCOME}")
            general, block = "manual", {}
        modes = {str(name): _read_mode(value, f"{where}.{key}.{name}", warnings) for name, value in block.items()}
        by_key[key] = {name: mode for name, mode in modes.items() if mode is not None}
    for name, mode in by_key["categories"].items():
        if name not in CATEGORIES and (near := _suggest(name, CATEGORIES)):
            problem = f"{name[:40]!r} is no built-in category{near} It holds for all until it is corrected."
            warnings.append(f"{where}.categories: {problem}")
            general = strictest([general, mode])
    projects = {" ".join(name.split()).casefold(): mode for name, mode in by_key["projects"].items()}
    return ConsentModes(general, MappingProxyType(projects), MappingProxyType(by_key["categories"])), warnings


def _read_mode(value: object, where: str, warnings: list[str]) -> Mode | None:
    """Return the mode that a value means; None for no value."""
    if value is None or str(value) in _OFF:
        return None if value is None else "manual"
    if value not in MODES:
        near = _suggest(str(value)[:40], MODES) or "."
        warnings.append(f"{where[:100]} is not one of {', '.join(MODES)}{near} {_OUTCOME}")
    return next((mode for mode in MODES if mode == value), "manual")


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
        """Return True before the first `read`, or if a file changed since."""
        return not self._rules or any(_get_state(path) != state for path, (state, _) in self._rules.items())

    def _load_rule(self, path: Path, read: ReadRule, fail: FailRule) -> tuple[object, ConsentRule | None]:
        state = _get_state(path)
        cached = self._rules.get(path)
        return cached if cached is not None and cached[0] == state else (state, _read_file(path, read, fail))


def _get_state(path: Path) -> tuple[object, ...]:
    """Return a value that changes with a file, or its error.

    The time of the inode also changes with permissions, and when an editor restores the time of the content.
    """
    try:
        status = path.stat()
    except OSError as error:
        return error.errno, isinstance(error, FileNotFoundError) and path.is_symlink()
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _read_file(path: Path, read: ReadRule, fail: FailRule) -> ConsentRule | None:
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
    for module, config, _ in iter_overrides(folder):
        blocks[module] = {**blocks.get(module, {}), **limits_in(config)}
    return blocks


def iter_overrides(folder: Path | None) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield module, configuration and file of our overrides in host settings."""
    for path, settings, _ in _iter_host_settings(folder, b"overrides"):
        overrides = settings.get("overrides")
        for module in MODULES:
            entry = overrides.get(module) if isinstance(overrides, dict) else None
            config = entry.get("config") if isinstance(entry, dict) else None
            if isinstance(config, dict):
                yield module, config, show_path(path)


def read_module_rules(blocks: Mapping[str, Mapping[str, Any]], folder: Path | None) -> tuple[ConsentRule, ...]:
    """Return the rules in the configuration of modules.

    Args:
        blocks: What limits memory in their configuration, by module.
        folder: Folder that a person works in, whose settings file may be the place of a key.
    """
    limits = {module: block for module, block in blocks.items() if block}
    files = list(_iter_host_settings(folder, b"overrides")) if limits else []
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
        folders.append(resolve_root(storage_root))
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
    for path, settings, lines in _iter_host_settings(folder, b"capabilities"):
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


def find_earlier_settings(folder: Path | None) -> list[str]:
    """Return sentences about earlier names of settings in the host's settings files."""
    names = {
        **{earlier: f"is called `{present}` now" for earlier, present in RENAMED_SETTINGS.items()},
        **{earlier: f"has no effect: {reason}" for earlier, reason in SETTINGS.items()},
    }
    sentences = []
    for _, _, lines in _iter_host_settings(folder, b"memory"):
        for key, place in lines.items():
            section, _, name = key.rpartition(".config.")
            if name in names and "memory" in section:
                sentences.append(f"{place}: `{name}` {names[name]}.")
    return sentences


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
    return value, {key: f"{name}:{line}" for key, line in _iter_lines(node, "")}


def show_path(path: Path) -> str:
    """Return a path as people write it, with `~` for the home."""
    try:
        return f"~/{path.relative_to(Path.home())}"
    except (ValueError, RuntimeError):
        return str(path)


def _iter_host_settings(folder: Path | None, word: bytes) -> Iterator[tuple[Path, dict[str, Any], dict[str, str]]]:
    """Yield path, value and places of host settings files with a word.

    The file that overrides the others comes last.
    """
    places = [] if folder is None else [find_project_root(folder), folder]
    local = [
        place / ".amplifier" / name for place in places if place for name in ("settings.yaml", "settings.local.yaml")
    ]
    with contextlib.suppress(RuntimeError):  # the home folder is unknown
        local.insert(0, Path.home() / ".amplifier" / "settings.yaml")
    for path in dict.fromkeys(local):
        try:
            if word not in read_regular(path):
                continue  # parsing costs milliseconds in every session
            value, lines = read_settings(path)
        except _UNREADABLE:
            continue  # the host reports its own settings
        if isinstance(value, dict):
            yield path, value, lines


def _iter_lines(node: Any, prefix: str) -> Iterator[tuple[str, int]]:
    """Yield the dotted path, in small letters, and line of each key."""
    if getattr(node, "id", "") != "mapping":
        return
    for key, value in node.value:
        path = f"{prefix}{' '.join(str(key.value).split()).casefold()}"
        yield path, key.start_mark.line + 1
        yield from _iter_lines(value, f"{path}.")


def _describe_error(error: OSError | ValueError) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8"
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
